//! Load with known contents, on a store that is maltreated meanwhile; and what must have become of it.

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

use super::audit::audit;

/// Far more than anything here takes; only a test that hangs meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How soon somebody who was told that the store is not available tries again.
const AGAIN: Duration = Duration::from_millis(20);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

/// The number of an emitter, which no other has, and how many it had emitted.
type Mark = (u64, u64);

/// What was answered to whom.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeMap<Mark, EventId>,
    /// Nobody knows whether these are there.
    unknown: BTreeSet<Mark>,
    /// Attempts that ended, as far as that was answered.
    ended: BTreeSet<TaskSeq>,
}

struct Shared {
    store: PostgresStore,
    node: NodeId,
    emitters: Range<u64>,
    ledger: Mutex<Ledger>,
    stop: AtomicBool,
    /// How many emits were acknowledged, and how many were not.
    counts: watch::Sender<(usize, usize)>,
}

pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many emitters, and two workers that run what they emit, on a node of their own.
    pub(crate) async fn start(url: &str, emitters: u64) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        store.register(Plan::default().on("load", &["index"]).registration(), now()).await.unwrap();
        let node = store.join("load", now()).await.unwrap();
        static EMITTERS: AtomicU64 = AtomicU64::new(0);
        let first = EMITTERS.fetch_add(emitters, Ordering::Relaxed);
        let emitters = first..first + emitters;
        let (ledger, stop, (counts, _)) = (Mutex::default(), AtomicBool::new(false), watch::channel((0, 0)));
        let shared = Arc::new(Shared { store, node, emitters: emitters.clone(), ledger, stop, counts });
        let mut tasks: Vec<_> = emitters.map(|n| tokio::spawn(shared.clone().emit_on(n))).collect();
        tasks.extend((0..2).map(|_| tokio::spawn(shared.clone().work_on())));
        Self { shared, tasks }
    }

    pub(crate) fn store(&self) -> &PostgresStore {
        &self.shared.store
    }

    /// How many emits were refused.
    pub(crate) fn refusals(&self) -> usize {
        self.shared.counts.borrow().1
    }

    /// Waits until so many more emits were acknowledged.
    pub(crate) async fn acknowledged(&self, more: usize) {
        let target = self.shared.counts.borrow().0 + more;
        self.wait("acknowledged", |(acknowledged, _)| acknowledged >= target).await;
    }

    /// Waits until so many more emits were refused.
    pub(crate) async fn refused(&self, more: usize) {
        let target = self.shared.counts.borrow().1 + more;
        self.wait("refused", |(_, refused)| refused >= target).await;
    }

    async fn wait(&self, what: &str, until: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        let done = timeout(PATIENCE, counts.wait_for(|counts| until(*counts))).await;
        assert!(done.is_ok(), "not enough emits are {what}: {:?}", self.shared.counts.borrow());
    }

    /// Stops emitting and working.
    pub(crate) async fn stop(mut self) -> Self {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in self.tasks.drain(..) {
            timeout(PATIENCE, task).await.unwrap().unwrap();
        }
        self
    }

    /// Ends them, lets all tasks run, and compares what is there with what was answered.
    pub(crate) async fn end<const N: usize>(loads: [Self; N], url: &str) {
        let loads = join_all(loads.map(Self::stop)).await;
        audit(url).await;
        for Self { shared, .. } in loads {
            shared.compare(url);
            timeout(PATIENCE, shared.run_all(url)).await.expect("all tasks can be run");
            tokio::task::spawn_blocking(move || shared.store.close()).await.unwrap();
        }
        audit(url).await;
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    async fn emit_on(self: Arc<Self>, emitter: u64) {
        let mut last = EventId::ZERO;
        for n in 0.. {
            if self.stopped() {
                return;
            }
            let mark = (emitter, n);
            let new = event("load").key(&format!("emitter:{emitter}")).value(&format!("[{emitter},{n}]"));
            match self.store.append(vec![emission([new])], None, now()).await {
                Ok((mut receipts, _)) => {
                    let id = receipts.remove(0).unwrap().events[0].id;
                    assert!(id > last, "ids ascend");
                    last = id;
                    self.ledger.lock().unwrap().acknowledged.insert(mark, id);
                    self.counts.send_modify(|(acknowledged, _)| *acknowledged += 1);
                }
                Err(StoreError::Unavailable(_)) => {
                    self.ledger.lock().unwrap().unknown.insert(mark);
                    self.counts.send_modify(|(_, refused)| *refused += 1);
                    sleep(AGAIN).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    async fn work_on(self: Arc<Self>) {
        while !self.stopped() {
            if !self.run_some().await {
                sleep(AGAIN).await;
            }
        }
    }

    /// Claims and ends some tasks; whether there were any.
    async fn run_some(&self) -> bool {
        let by = Claimant::Node(self.node);
        let claim = Claim { by, handlers: Arc::new([handler("index")].into()), max: 50 };
        match self.store.claim(claim, now()).await {
            Ok(claims) if claims.tasks.is_empty() => false,
            Ok(claims) => {
                self.succeed(&claims.tasks).await;
                true
            }
            Err(StoreError::Unavailable(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Tells of successes until somebody has heard it.
    async fn succeed(&self, tasks: &[Claimed]) {
        let mut first = true;
        loop {
            let endings = tasks.iter().map(|task| ending(task, succeeded())).collect();
            match self.store.finish(endings, None, now()).await {
                Ok((ends, _)) => return self.note_ends(tasks, &ends, first),
                Err(StoreError::Unavailable(_)) => sleep(AGAIN).await,
                Err(other) => panic!("{other}"),
            }
            first = false;
        }
    }

    fn note_ends(&self, tasks: &[Claimed], ends: &[Result<Finished, Rejected>], first: bool) {
        let mut ledger = self.ledger.lock().unwrap();
        for (task, ended) in tasks.iter().zip(ends) {
            // Only where an answer was lost can it have ended before.
            assert!(ended.is_ok() || !first, "{}: {ended:?}", task.id);
            assert!(ended.is_err() || ledger.ended.insert(task.seq), "{} has ended twice", task.id);
        }
    }

    /// Every event that was acknowledged is there once and under its id, and of the others none is there twice.
    fn compare(&self, url: &str) {
        let ledger = self.ledger.lock().unwrap();
        let mut there: BTreeMap<Mark, Vec<i64>> = BTreeMap::new();
        for row in rows(url, "SELECT id, value FROM pointsman.journal WHERE type = 'load' ORDER BY id") {
            let mark: Mark = serde_json::from_str(row[1].as_ref().unwrap()).unwrap();
            if self.emitters.contains(&mark.0) {
                there.entry(mark).or_default().push(row[0].as_ref().unwrap().parse().unwrap());
            }
        }
        for (mark, id) in &ledger.acknowledged {
            assert_eq!(there.remove(mark), Some(vec![id.as_i64()]), "{mark:?} was acknowledged");
        }
        for (mark, ids) in there {
            assert!(ledger.unknown.contains(&mark) && ids.len() == 1, "{mark:?} is there as {ids:?}");
        }
        let answered = (ledger.acknowledged.len(), ledger.unknown.len());
        assert_eq!(answered, *self.counts.borrow());
    }

    /// Lets everything run, and nothing be left over.
    async fn run_all(&self, url: &str) {
        let left = "SELECT count(*) FROM pointsman.task";
        while rows(url, left)[0][0].as_deref() != Some("0") {
            if !self.run_some().await {
                sleep(AGAIN).await;
            }
        }
    }
}

/// A URL with another one for listening.
pub(crate) fn listening_at(url: &str, listen: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    let listen = listen.replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
    format!("{url}{sign}listen={listen}")
}

/// What a question on the side is answered.
pub(crate) fn rows(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let (server, database) = url.rsplit_once('/').unwrap();
    let admin = pointsman_testing::Admin::new(&format!("{server}/postgres")).unwrap();
    admin.query(database.split('?').next().unwrap(), sql).unwrap()
}
