//! Load with known contents on a store with injected faults, and checks of its outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use pointsman_core::store::{
    Claim, Claimant, Claimed, Finished, Journal, NodeId, Queue, Registry, Store, StoreError,
};
use pointsman_core::task::Rejected;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store_conformance::world::{Draft, Plan, emission, ending, event, handler, succeeded};
use pointsman_store_postgres::{Postgres, PostgresStore};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::invariants::check_invariants;

/// A generous timeout; only a test that hangs reaches it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Delay of retries while the store is unavailable.
const RETRY_DELAY: Duration = Duration::from_millis(20);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

/// The unique number of an emitter, and of its emit.
type EmitId = (u64, u64);

/// The results that emitters and workers got.
#[derive(Default)]
struct EmitLedger {
    acknowledged: BTreeMap<EmitId, EventId>,
    /// Emits whose outcome is unknown.
    unknown: BTreeSet<EmitId>,
    /// Tasks whose end was acknowledged.
    ended: BTreeSet<TaskSeq>,
}

struct LoadState {
    store: PostgresStore,
    node: NodeId,
    emitters: Range<u64>,
    ledger: Mutex<EmitLedger>,
    stop: AtomicBool,
    /// The numbers of acknowledged and of refused emits.
    counts: watch::Sender<(usize, usize)>,
}

pub(crate) struct Load {
    state: Arc<LoadState>,
    jobs: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts a node with this many emitters, and two workers that run their tasks.
    pub(crate) async fn start(url: &str, emitters: u64) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        store.register(Plan::default().on("load", &["index"]).registration(), now()).await.unwrap();
        let node = store.join("load", now()).await.unwrap();
        static EMITTERS: AtomicU64 = AtomicU64::new(0);
        let first = EMITTERS.fetch_add(emitters, Ordering::Relaxed);
        let emitters = first..first + emitters;
        let (ledger, stop, (counts, _)) = (Mutex::default(), AtomicBool::new(false), watch::channel((0, 0)));
        let state = Arc::new(LoadState { store, node, emitters: emitters.clone(), ledger, stop, counts });
        let mut jobs: Vec<_> = emitters.map(|n| tokio::spawn(state.clone().emit_until_stopped(n))).collect();
        jobs.extend((0..2).map(|_| tokio::spawn(state.clone().run_tasks_until_stopped())));
        Self { state, jobs }
    }

    pub(crate) fn store(&self) -> &PostgresStore {
        &self.state.store
    }

    /// The number of refused emits.
    pub(crate) fn refused_count(&self) -> usize {
        self.state.counts.borrow().1
    }

    /// Waits for this many more acknowledged emits.
    pub(crate) async fn wait_for_acknowledged(&self, more: usize) {
        let target = self.state.counts.borrow().0 + more;
        self.wait_for_count("acknowledged", |(acknowledged, _)| acknowledged >= target).await;
    }

    /// Waits for this many more refused emits.
    pub(crate) async fn wait_for_refused(&self, more: usize) {
        let target = self.state.counts.borrow().1 + more;
        self.wait_for_count("refused", |(_, refused)| refused >= target).await;
    }

    async fn wait_for_count(&self, what: &str, until: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.state.counts.subscribe();
        let done = timeout(TEST_TIMEOUT, counts.wait_for(|counts| until(*counts))).await;
        assert!(done.is_ok(), "not enough emits are {what}: {:?}", self.state.counts.borrow());
    }

    /// Stops emitters and workers.
    pub(crate) async fn stop(mut self) -> Self {
        self.state.stop.store(true, Ordering::Relaxed);
        for job in self.jobs.drain(..) {
            timeout(TEST_TIMEOUT, job).await.unwrap().unwrap();
        }
        self
    }

    /// Stops the loads, runs all tasks, and compares the journal with the acknowledged emits.
    pub(crate) async fn finish_all<const N: usize>(loads: [Self; N], url: &str) {
        let loads = join_all(loads.map(Self::stop)).await;
        check_invariants(url).await;
        for Self { state, .. } in loads {
            state.compare_with_journal(url);
            timeout(TEST_TIMEOUT, state.run_all(url)).await.expect("all tasks can be run");
            tokio::task::spawn_blocking(move || state.store.close()).await.unwrap();
        }
        check_invariants(url).await;
    }
}

impl LoadState {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    async fn emit_until_stopped(self: Arc<Self>, emitter: u64) {
        let mut last = EventId::ZERO;
        for n in 0.. {
            if self.is_stopped() {
                return;
            }
            let emit_id = (emitter, n);
            let new = event("load").key(&format!("emitter:{emitter}")).value(&format!("[{emitter},{n}]"));
            match self.store.append(vec![emission([new])], None, now()).await {
                Ok((mut receipts, _)) => {
                    let id = receipts.remove(0).unwrap().events[0].id;
                    assert!(id > last, "ids ascend");
                    last = id;
                    self.ledger.lock().unwrap().acknowledged.insert(emit_id, id);
                    self.counts.send_modify(|(acknowledged, _)| *acknowledged += 1);
                }
                Err(StoreError::Unavailable(_)) => {
                    self.ledger.lock().unwrap().unknown.insert(emit_id);
                    self.counts.send_modify(|(_, refused)| *refused += 1);
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
        let by = Claimant::Node(self.node);
        let claim = Claim { by, handlers: Arc::new([handler("index")].into()), max: 50 };
        match self.store.claim(claim, now()).await {
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
    async fn report_success(&self, tasks: &[Claimed]) {
        let mut first = true;
        loop {
            let endings = tasks.iter().map(|task| ending(task, succeeded())).collect();
            match self.store.finish(endings, None, now()).await {
                Ok((ends, _)) => return self.record_ends(tasks, &ends, first),
                Err(StoreError::Unavailable(_)) => sleep(RETRY_DELAY).await,
                Err(other) => panic!("{other}"),
            }
            first = false;
        }
    }

    fn record_ends(&self, tasks: &[Claimed], ends: &[Result<Finished, Rejected>], first: bool) {
        let mut ledger = self.ledger.lock().unwrap();
        for (task, ended) in tasks.iter().zip(ends) {
            // Only if a reply was lost, the task may have ended before.
            assert!(ended.is_ok() || !first, "{}: {ended:?}", task.id);
            assert!(ended.is_err() || ledger.ended.insert(task.seq), "{} has ended twice", task.id);
        }
    }

    /// Checks that every acknowledged event exists once with its id, and no other one twice.
    fn compare_with_journal(&self, url: &str) {
        let ledger = self.ledger.lock().unwrap();
        let mut found: BTreeMap<EmitId, Vec<i64>> = BTreeMap::new();
        for row in query_rows(url, "SELECT id, value FROM pointsman.journal WHERE type = 'load' ORDER BY id")
        {
            let emit_id: EmitId = serde_json::from_str(row[1].as_ref().unwrap()).unwrap();
            if self.emitters.contains(&emit_id.0) {
                found.entry(emit_id).or_default().push(row[0].as_ref().unwrap().parse().unwrap());
            }
        }
        for (emit_id, id) in &ledger.acknowledged {
            assert_eq!(found.remove(emit_id), Some(vec![id.as_i64()]), "{emit_id:?} was acknowledged");
        }
        for (emit_id, ids) in found {
            assert!(ledger.unknown.contains(&emit_id) && ids.len() == 1, "{emit_id:?} is there as {ids:?}");
        }
        let answered = (ledger.acknowledged.len(), ledger.unknown.len());
        assert_eq!(answered, *self.counts.borrow());
    }

    /// Runs all remaining tasks.
    async fn run_all(&self, url: &str) {
        let left = "SELECT count(*) FROM pointsman.task";
        while query_rows(url, left)[0][0].as_deref() != Some("0") {
            if !self.run_claimed_tasks().await {
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Adds a listen URL to a URL.
pub(crate) fn with_listen_url(url: &str, listen: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    let listen = listen.replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
    format!("{url}{sign}listen={listen}")
}

/// Runs a query on a separate connection.
pub(crate) fn query_rows(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let (server, database) = url.rsplit_once('/').unwrap();
    let admin = pointsman_testing::Admin::new(&format!("{server}/postgres")).unwrap();
    admin.query(database.split('?').next().unwrap(), sql).unwrap()
}
