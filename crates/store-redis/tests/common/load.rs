//! Load with known contents, on a store that is maltreated meanwhile; and what must have become of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use pointsman_core::store::{
    Claim, Claimant, Claimed, Finished, NodeId, Queue, Registry, Sequenced, StoreError,
};
use pointsman_core::task::Rejected;
use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, succeeded};
use pointsman_testing::Chance;
use tokio::sync::watch;
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::{sleep, timeout};

use super::chains::assert_chained;
use super::invariants::rest;
use super::node::Node;
use super::place::{Hand, Place, left};
use super::{PATIENCE, now, until};

/// How soon somebody who was told that the store is not available tries again.
const AGAIN: Duration = Duration::from_millis(20);
/// Beyond this they let the others go on.
const HASTE: Duration = Duration::from_millis(1);

/// The number of an actor, which no other has, and how many things it had done.
type Mark = (u64, u64);

/// What was answered to whom.
#[derive(Default)]
struct Ledger {
    /// What was left has no id yet.
    acknowledged: BTreeMap<Mark, Option<EventId>>,
    /// Acknowledged while a failover could lose them: each may be missing, and none may be there twice.
    at_risk: BTreeSet<Mark>,
    /// Nobody knows whether these are there.
    unknown: BTreeSet<Mark>,
    /// Attempts that ended, as far as that was answered.
    ended: BTreeSet<TaskSeq>,
}

struct Shared {
    node: Node,
    id: NodeId,
    /// Where the producers push.
    place: Mutex<Place>,
    actors: Range<u64>,
    ledger: Mutex<Ledger>,
    /// Counts the borders between safe and risky times; odd while a failover may lose what is acknowledged.
    period: AtomicU64,
    stop: AtomicBool,
    /// How many events were acknowledged, and how many were not.
    counts: watch::Sender<(usize, usize)>,
}

pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many who emit and push, and two workers that run what comes of it, on a node of their own. The node reaches the
    /// server by the URL; producers always directly.
    pub(crate) async fn start(place: &Place, url: &str, actors: u64) -> Self {
        let node = Node::at(url).await;
        node.store.register(Plan::default().on("load", &["index"]).registration(), now()).await.unwrap();
        let id = node.store.join("load", now()).await.unwrap();
        static ACTORS: AtomicU64 = AtomicU64::new(0);
        let first = ACTORS.fetch_add(actors, Ordering::Relaxed);
        let actors = first..first + actors;
        let (counts, _) = watch::channel((0, 0));
        let shared = Arc::new(Shared {
            node,
            id,
            place: Mutex::new(place.clone()),
            actors: actors.clone(),
            ledger: Mutex::default(),
            period: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            counts,
        });
        let mut tasks: Vec<_> = actors.map(|n| tokio::spawn(shared.clone().act_on(n))).collect();
        tasks.extend((0..2).map(|_| tokio::spawn(shared.clone().work_on())));
        Self { shared, tasks }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.shared.node
    }

    /// How many emits and pushes were refused.
    pub(crate) fn refusals(&self) -> usize {
        self.shared.counts.borrow().1
    }

    /// Waits until so many more were acknowledged.
    pub(crate) async fn acknowledged(&self, more: usize) {
        let target = self.shared.counts.borrow().0 + more;
        self.wait("acknowledged", |(acknowledged, _)| acknowledged >= target).await;
    }

    /// Waits until so many more were refused.
    pub(crate) async fn refused(&self, more: usize) {
        let target = self.shared.counts.borrow().1 + more;
        self.wait("refused", |(_, refused)| refused >= target).await;
    }

    async fn wait(&self, what: &str, until: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        let done = timeout(PATIENCE, counts.wait_for(|counts| until(*counts))).await;
        assert!(done.is_ok(), "not enough are {what}: {:?}", self.shared.counts.borrow());
    }

    /// From now on a failover may lose what is acknowledged, until [`Load::fail_over_to`].
    pub(crate) fn begin_failover(&self) {
        self.shared.period.fetch_add(1, Ordering::SeqCst);
    }

    /// The failover is complete, and producers push to the new master.
    pub(crate) fn fail_over_to(&self, place: &Place) {
        *self.shared.place.lock().unwrap() = place.clone();
        self.shared.period.fetch_add(1, Ordering::SeqCst);
    }

    /// How many acknowledged events were acknowledged while a failover could lose them.
    pub(crate) fn at_risk(&self) -> usize {
        self.shared.ledger.lock().unwrap().at_risk.len()
    }

    /// Stops emitting and working.
    async fn stop(mut self) -> Self {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in self.tasks.drain(..) {
            timeout(PATIENCE, task).await.unwrap().unwrap();
        }
        self
    }

    /// Ends them, lets all tasks run, and compares what is there with what was answered.
    pub(crate) async fn end<const N: usize>(loads: [Self; N], place: &Place) {
        let loads = join_all(loads.map(Self::stop)).await;
        rest(place).await;
        let witness = Node::open(place).await;
        let events = witness.journal().await;
        assert_chained(&events);
        for Self { shared, .. } in loads {
            shared.compare(&events);
            shared.run_all().await;
            let Ok(shared) = Arc::try_unwrap(shared) else { panic!("nobody has it any more") };
            shared.node.close().await;
        }
        witness.close().await;
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn period(&self) -> u64 {
        self.period.load(Ordering::SeqCst)
    }

    /// Whether no failover can have lost what was asked in `period` and is answered now.
    fn was_safe_since(&self, period: u64) -> bool {
        period.is_multiple_of(2) && period == self.period()
    }

    /// Leaves events and emits, in turns, to one object.
    async fn act_on(self: Arc<Self>, actor: u64) {
        let (mut hand, mut chance, object) = (None, Chance::new(actor + 1), format!("actor:{actor}"));
        for n in 0.. {
            if self.stopped() {
                return;
            }
            let value = format!("[{actor},{n}]");
            let period = self.period();
            let done = match chance.below(2) {
                0 => self.push(&mut hand, &object, &value).map(|()| None),
                _ => self.emit(&object, &value).await.map(|event| Some(event.id)),
            };
            self.note((actor, n), done, period).await;
            sleep(HASTE).await;
        }
    }

    fn push(&self, hand: &mut Option<Hand>, object: &str, value: &str) -> Option<()> {
        block_in_place(|| {
            if hand.is_none() {
                *hand = self.place.lock().unwrap().try_connect().ok();
            }
            let pushed = hand.as_mut()?.try_push(object, &[left("load", value)]);
            if pushed.is_err() {
                *hand = None;
            }
            pushed.ok()
        })
    }

    async fn emit(&self, object: &str, value: &str) -> Option<Sequenced> {
        match self.node.try_emit(event("load").key(object).value(value)).await {
            Ok(event) => Some(event),
            Err(StoreError::Unavailable(_)) => None,
            Err(other) => panic!("{other}"),
        }
    }

    async fn note(&self, mark: Mark, done: Option<Option<EventId>>, period: u64) {
        match done {
            Some(id) => {
                let mut ledger = self.ledger.lock().unwrap();
                if !self.was_safe_since(period) {
                    ledger.at_risk.insert(mark);
                }
                ledger.acknowledged.insert(mark, id);
                drop(ledger);
                self.counts.send_modify(|(acknowledged, _)| *acknowledged += 1);
            }
            None => {
                self.ledger.lock().unwrap().unknown.insert(mark);
                self.counts.send_modify(|(_, refused)| *refused += 1);
                sleep(AGAIN).await;
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
        let (by, period) = (Claimant::Node(self.id), self.period());
        let claim = Claim { by, handlers: Arc::new([handler("index")].into()), max: 50 };
        match self.node.store.claim(claim, now()).await {
            Ok(claims) if claims.tasks.is_empty() => false,
            Ok(claims) => {
                self.succeed(&claims.tasks, period).await;
                true
            }
            Err(StoreError::Unavailable(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Reports successes until the store has answered. The tasks were claimed in `period`.
    async fn succeed(&self, tasks: &[Claimed], period: u64) {
        let mut first = true;
        loop {
            let endings = tasks.iter().map(|task| ending(task, succeeded())).collect();
            match self.node.store.finish(endings, None, now()).await {
                Ok((ends, _)) if self.was_safe_since(period) => return self.note_ends(tasks, &ends, first),
                // A failover may have lost the claim, and may lose the end.
                Ok(_) => return,
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

    /// Every event that was acknowledged is there once, in its order, and under its id if it has got one; and of the others
    /// none is there twice. Those acknowledged while a failover could lose them may be missing; then nothing else has their
    /// id.
    fn compare(&self, events: &[Arc<Event>]) {
        let ledger = self.ledger.lock().unwrap();
        let mut there: BTreeMap<Mark, Vec<EventId>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.kind.as_str() == "load") {
            let mark: Mark = serde_json::from_str(event.value.as_str()).unwrap();
            if self.actors.contains(&mark.0) {
                there.entry(mark).or_default().push(event.id);
            }
        }
        let given: BTreeSet<_> = events.iter().map(|event| event.id).collect();
        let mut before: Option<(Mark, EventId)> = None;
        for (mark, id) in &ledger.acknowledged {
            let found = there.remove(mark).unwrap_or_default();
            if found.is_empty() && ledger.at_risk.contains(mark) {
                assert!(
                    id.is_none_or(|id| !given.contains(&id)),
                    "another event has the id {id:?} of {mark:?}"
                );
                continue;
            }
            assert!(found.len() == 1, "{mark:?} was acknowledged, and is there as {found:?}");
            assert!(id.is_none_or(|id| id == found[0]), "{mark:?} was acknowledged as {id:?}: {found:?}");
            if let Some((last, id)) = before.filter(|(last, _)| last.0 == mark.0) {
                assert!(id < found[0], "{last:?} was done before {mark:?}, and comes behind it");
            }
            before = Some((*mark, found[0]));
        }
        for (mark, ids) in there {
            assert!(ledger.unknown.contains(&mark) && ids.len() == 1, "{mark:?} is there as {ids:?}");
        }
        let answered = (ledger.acknowledged.len(), ledger.unknown.len());
        assert_eq!(answered, *self.counts.borrow());
    }

    /// Lets everything run, and nothing be left over.
    async fn run_all(&self) {
        until("all tasks are run", async || {
            let ran = self.run_some().await;
            let queues = self.node.store.queues(None).await.unwrap();
            let left =
                queues.iter().map(|queue| queue.ready + queue.waiting + queue.scheduled + queue.running);
            !ran && left.sum::<u64>() == 0
        })
        .await;
    }
}
