//! Load on a store while a test injects faults, and checks that no acknowledged emit is lost or duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use pointsman_core::store::{
    ClaimRequest, Claimant, ClaimedTask, FinishReceipt, Journal, NodeId, Registry, Store, StoreError,
    TaskQueue,
};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_emit_batch, new_event, success,
};
use pointsman_store_postgres::{Postgres, PostgresStore};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::invariants::assert_invariants;

/// A generous timeout; only a test that hangs reaches it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Delay of retries while the store is unavailable.
const RETRY_DELAY: Duration = Duration::from_millis(20);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

/// The number of an emitter, unique in this process, and the number of the emit.
type EmitId = (u64, u64);

/// The results that emitters and workers got.
#[derive(Default)]
struct EmitLedger {
    acknowledged_emits: BTreeMap<EmitId, EventId>,
    /// Emits whose outcome is unknown.
    emits_with_unknown_outcome: BTreeSet<EmitId>,
    /// Tasks whose end was acknowledged.
    ended_tasks: BTreeSet<TaskSeq>,
}

/// A node under load, shared by its emitters and workers.
struct LoadState {
    store: PostgresStore,
    node: NodeId,
    emitter_numbers: Range<u64>,
    ledger: Mutex<EmitLedger>,
    stop_requested: AtomicBool,
    /// The numbers of acknowledged and of failed emits.
    emit_counts: watch::Sender<(usize, usize)>,
}

/// Load on a node: emitters, and workers that run the tasks of their events.
pub(crate) struct TestLoad {
    state: Arc<LoadState>,
    /// The emitters and the workers.
    jobs: Vec<JoinHandle<()>>,
}

impl TestLoad {
    /// Starts a node with this many emitters, and two workers that run their tasks.
    pub(crate) async fn start(url: &str, emitters: u64) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        store
            .register_definitions(RegistrationBuilder::default().route("load", &["index"]).build(), now())
            .await
            .unwrap();
        let node = store.join_node("load", now()).await.unwrap();
        static NEXT_EMITTER_NUMBER: AtomicU64 = AtomicU64::new(0);
        let first = NEXT_EMITTER_NUMBER.fetch_add(emitters, Ordering::Relaxed);
        let emitters = first..first + emitters;
        let (ledger, stop_requested, (emit_counts, _)) =
            (Mutex::default(), AtomicBool::new(false), watch::channel((0, 0)));
        let state = Arc::new(LoadState {
            store,
            node,
            emitter_numbers: emitters.clone(),
            ledger,
            stop_requested,
            emit_counts,
        });
        let mut jobs: Vec<_> = emitters.map(|n| tokio::spawn(state.clone().emit_until_stopped(n))).collect();
        jobs.extend((0..2).map(|_| tokio::spawn(state.clone().run_tasks_until_stopped())));
        Self { state, jobs }
    }

    pub(crate) fn store(&self) -> &PostgresStore {
        &self.state.store
    }

    /// The number of failed emits.
    pub(crate) fn failed_emit_count(&self) -> usize {
        self.state.emit_counts.borrow().1
    }

    /// Waits for this many more acknowledged emits.
    pub(crate) async fn wait_for_acknowledged_emits(&self, more: usize) {
        let target = self.state.emit_counts.borrow().0 + more;
        self.wait_for_emit_counts("acknowledged", |(acknowledged, _)| acknowledged >= target).await;
    }

    /// Waits for this many more failed emits.
    pub(crate) async fn wait_for_failed_emits(&self, more: usize) {
        let target = self.state.emit_counts.borrow().1 + more;
        self.wait_for_emit_counts("failed", |(_, failed)| failed >= target).await;
    }

    async fn wait_for_emit_counts(&self, outcome: &str, is_reached: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.state.emit_counts.subscribe();
        let done = timeout(TEST_TIMEOUT, counts.wait_for(|counts| is_reached(*counts))).await;
        assert!(done.is_ok(), "too few emits are {outcome}: {:?}", self.state.emit_counts.borrow());
    }

    /// Stops emitters and workers.
    pub(crate) async fn stop(mut self) -> Self {
        self.state.stop_requested.store(true, Ordering::Relaxed);
        for job in self.jobs.drain(..) {
            timeout(TEST_TIMEOUT, job).await.unwrap().unwrap();
        }
        self
    }

    /// Stops the loads, compares the journal with the acknowledged emits, and runs the remaining tasks.
    pub(crate) async fn stop_and_check_all<const N: usize>(loads: [Self; N], url: &str) {
        let loads = join_all(loads.map(Self::stop)).await;
        assert_invariants(url).await;
        for Self { state, .. } in loads {
            state.assert_journal_matches(url);
            timeout(TEST_TIMEOUT, state.run_all_tasks(url)).await.expect("all tasks can be run");
            tokio::task::spawn_blocking(move || state.store.close()).await.unwrap();
        }
        assert_invariants(url).await;
    }
}

impl LoadState {
    fn is_stopped(&self) -> bool {
        self.stop_requested.load(Ordering::Relaxed)
    }

    async fn emit_until_stopped(self: Arc<Self>, emitter: u64) {
        let mut last = EventId::ZERO;
        for n in 0.. {
            if self.is_stopped() {
                return;
            }
            let emit_id = (emitter, n);
            let event = new_event("load")
                .with_key(&format!("emitter:{emitter}"))
                .with_value(&format!("[{emitter},{n}]"));
            match self.store.append(vec![new_emit_batch([event])], None, now()).await {
                Ok((mut receipts, _)) => {
                    let id = receipts.remove(0).unwrap().events[0].id;
                    assert!(id > last, "ids ascend");
                    last = id;
                    self.ledger.lock().unwrap().acknowledged_emits.insert(emit_id, id);
                    self.emit_counts.send_modify(|(acknowledged, _)| *acknowledged += 1);
                }
                Err(StoreError::Unavailable(_)) => {
                    self.ledger.lock().unwrap().emits_with_unknown_outcome.insert(emit_id);
                    self.emit_counts.send_modify(|(_, failed)| *failed += 1);
                    sleep(RETRY_DELAY).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    async fn run_tasks_until_stopped(self: Arc<Self>) {
        while !self.is_stopped() {
            if !self.run_claimed_tasks().await {
                sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Claims and finishes some tasks; returns whether there were any.
    async fn run_claimed_tasks(&self) -> bool {
        let claimant = Claimant::Node(self.node);
        let claim =
            ClaimRequest { claimant, handlers: Arc::new([handler_name("index")].into()), max_tasks: 50 };
        match self.store.claim_tasks(claim, now()).await {
            Ok(claims) if claims.tasks.is_empty() => false,
            Ok(claims) => {
                self.report_success(&claims.tasks).await;
                true
            }
            Err(StoreError::Unavailable(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Reports success until it is acknowledged.
    async fn report_success(&self, tasks: &[ClaimedTask]) {
        let mut is_first_try = true;
        loop {
            let endings = tasks.iter().map(|task| finished_attempt(task, success())).collect();
            match self.store.finish_attempts(endings, None, now()).await {
                Ok((ends, _)) => return self.record_task_ends(tasks, &ends, is_first_try),
                Err(StoreError::Unavailable(_)) => sleep(RETRY_DELAY).await,
                Err(other) => panic!("{other}"),
            }
            is_first_try = false;
        }
    }

    fn record_task_ends(
        &self,
        tasks: &[ClaimedTask],
        ends: &[Result<FinishReceipt, TaskCommandError>],
        is_first_try: bool,
    ) {
        let mut ledger = self.ledger.lock().unwrap();
        for (task, ended) in tasks.iter().zip(ends) {
            // A retry fails if the first try ended the task and its reply was lost.
            assert!(ended.is_ok() || !is_first_try, "{}: {ended:?}", task.id);
            assert!(ended.is_err() || ledger.ended_tasks.insert(task.seq), "{} has ended twice", task.id);
        }
    }

    /// Checks that every acknowledged emit has one event with its id, and every other emit at most one event.
    fn assert_journal_matches(&self, url: &str) {
        let ledger = self.ledger.lock().unwrap();
        let mut found: BTreeMap<EmitId, Vec<i64>> = BTreeMap::new();
        for row in query_rows(url, "SELECT id, value FROM pointsman.journal WHERE type = 'load' ORDER BY id")
        {
            let emit_id: EmitId = serde_json::from_str(row[1].as_ref().unwrap()).unwrap();
            if self.emitter_numbers.contains(&emit_id.0) {
                found.entry(emit_id).or_default().push(row[0].as_ref().unwrap().parse().unwrap());
            }
        }
        for (emit_id, id) in &ledger.acknowledged_emits {
            assert_eq!(found.remove(emit_id), Some(vec![id.as_i64()]), "{emit_id:?} was acknowledged");
        }
        for (emit_id, ids) in found {
            assert!(
                ledger.emits_with_unknown_outcome.contains(&emit_id) && ids.len() == 1,
                "{emit_id:?} was not acknowledged once, and has the ids {ids:?}"
            );
        }
        let emit_counts = (ledger.acknowledged_emits.len(), ledger.emits_with_unknown_outcome.len());
        assert_eq!(emit_counts, *self.emit_counts.borrow());
    }

    /// Runs all remaining tasks.
    async fn run_all_tasks(&self, url: &str) {
        let count_tasks_sql = "SELECT count(*) FROM pointsman.task";
        while query_rows(url, count_tasks_sql)[0][0].as_deref() != Some("0") {
            if !self.run_claimed_tasks().await {
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Adds the parameter `listen` to a URL.
pub(crate) fn with_listen_url(url: &str, listen_url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    let listen_url = listen_url.replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
    format!("{url}{separator}listen={listen_url}")
}

/// Runs a query on a separate connection.
pub(crate) fn query_rows(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let (server, database) = url.rsplit_once('/').unwrap();
    let admin = pointsman_testing::PostgresAdmin::new(&format!("{server}/postgres")).unwrap();
    admin.query(database.split('?').next().unwrap(), sql).unwrap()
}
