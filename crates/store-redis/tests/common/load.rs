//! Load with known contents for fault tests, and verification of the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use pointsman_core::store::{
    ClaimRequest, Claimant, ClaimedTask, EmittedEventReceipt, FinishReceipt, NodeId, Registry, StoreError,
    TaskQueue,
};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store_conformance::fixture::{
    NewEventExt, RegistrationBuilder, finished_attempt, handler_name, new_event, success,
};
use pointsman_testing::Rng;
use tokio::sync::watch;
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::{sleep, timeout};

use super::invariants::wait_until_outbox_is_drained;
use super::journal_checks::assert_ids_and_prev_links;
use super::redis_location::{RawClient, RedisLocation, outbox_event_json};
use super::test_node::TestNode;
use super::{TEST_TIMEOUT, now, wait_until};

/// Delay before a retry if the store is unavailable.
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// Pause between two actions of a producer.
const ACTION_INTERVAL: Duration = Duration::from_millis(1);

/// Number of a producer, and number of its action.
type ActionId = (u64, u64);

/// Replies that producers and workers received.
#[derive(Default)]
struct ReplyLedger {
    /// Acknowledged actions with the event id; pushed events have none yet.
    acknowledged: BTreeMap<ActionId, Option<EventId>>,
    /// Actions that were acknowledged while a failover could lose them: each may be missing, and none may be journaled twice.
    at_risk: BTreeSet<ActionId>,
    /// Actions without a reply: they may or may not be journaled.
    without_reply: BTreeSet<ActionId>,
    /// Tasks whose end was acknowledged.
    ended_tasks: BTreeSet<TaskSeq>,
}

/// State that producers, workers and the test share.
struct LoadState {
    node: TestNode,
    node_id: NodeId,
    /// Server that producers push to.
    push_location: Mutex<RedisLocation>,
    producer_numbers: Range<u64>,
    ledger: Mutex<ReplyLedger>,
    /// Incremented when a failover begins and when it ends; odd while acknowledged writes may be lost.
    failover_phase: AtomicU64,
    stop_requested: AtomicBool,
    /// Number of acknowledged and of refused actions.
    reply_counts: watch::Sender<(usize, usize)>,
}

/// Producers and workers that run until the test stops them.
pub(crate) struct Load {
    state: Arc<LoadState>,
    join_handles: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts producers that emit and push events, and two workers that run their tasks, on one new node. The node connects
    /// with `url`; producers push directly to `location`.
    pub(crate) async fn start(location: &RedisLocation, url: &str, producers: u64) -> Self {
        let node = TestNode::open_url(url).await;
        node.store
            .register_definitions(RegistrationBuilder::default().route("load", &["index"]).build(), now())
            .await
            .unwrap();
        let id = node.store.join_node("load", now()).await.unwrap();
        static NEXT_PRODUCER_NUMBER: AtomicU64 = AtomicU64::new(0);
        let first = NEXT_PRODUCER_NUMBER.fetch_add(producers, Ordering::Relaxed);
        let producers = first..first + producers;
        let (counts, _) = watch::channel((0, 0));
        let state = Arc::new(LoadState {
            node,
            node_id: id,
            push_location: Mutex::new(location.clone()),
            producer_numbers: producers.clone(),
            ledger: Mutex::default(),
            failover_phase: AtomicU64::new(0),
            stop_requested: AtomicBool::new(false),
            reply_counts: counts,
        });
        let mut join_handles: Vec<_> =
            producers.map(|n| tokio::spawn(state.clone().run_producer(n))).collect();
        join_handles.extend((0..2).map(|_| tokio::spawn(state.clone().run_worker())));
        Self { state, join_handles }
    }

    pub(crate) fn node(&self) -> &TestNode {
        &self.state.node
    }

    /// Returns the number of refused emits and pushes.
    pub(crate) fn refused_count(&self) -> usize {
        self.state.reply_counts.borrow().1
    }

    /// Waits until this many more actions were acknowledged.
    pub(crate) async fn wait_for_acknowledged(&self, more: usize) {
        let target = self.state.reply_counts.borrow().0 + more;
        self.wait_for_counts("acknowledged", |(acknowledged, _)| acknowledged >= target).await;
    }

    /// Waits until this many more actions were refused.
    pub(crate) async fn wait_for_refused(&self, more: usize) {
        let target = self.state.reply_counts.borrow().1 + more;
        self.wait_for_counts("refused", |(_, refused)| refused >= target).await;
    }

    async fn wait_for_counts(&self, what: &str, until: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.state.reply_counts.subscribe();
        let done = timeout(TEST_TIMEOUT, counts.wait_for(|counts| until(*counts))).await;
        assert!(done.is_ok(), "not enough are {what}: {:?}", self.state.reply_counts.borrow());
    }

    /// Records that a failover may lose acknowledged writes until [`Load::record_failover_end`].
    pub(crate) fn record_failover_begin(&self) {
        self.state.failover_phase.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that the failover is complete; producers push to the new master.
    pub(crate) fn record_failover_end(&self, location: &RedisLocation) {
        *self.state.push_location.lock().unwrap() = location.clone();
        self.state.failover_phase.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of actions that were acknowledged while a failover could lose them.
    pub(crate) fn at_risk_count(&self) -> usize {
        self.state.ledger.lock().unwrap().at_risk.len()
    }

    /// Stops producers and workers.
    async fn stop(mut self) -> Self {
        self.state.stop_requested.store(true, Ordering::Relaxed);
        for join_handle in self.join_handles.drain(..) {
            timeout(TEST_TIMEOUT, join_handle).await.unwrap().unwrap();
        }
        self
    }

    /// Stops the loads, runs all tasks, and compares the journal with the replies.
    pub(crate) async fn stop_and_verify<const N: usize>(loads: [Self; N], location: &RedisLocation) {
        let loads = join_all(loads.map(Self::stop)).await;
        wait_until_outbox_is_drained(location).await;
        let verifier = TestNode::open(location).await;
        let events = verifier.read_journal().await;
        assert_ids_and_prev_links(&events);
        for Self { state, .. } in loads {
            state.assert_journal_matches_replies(&events);
            state.run_all_tasks().await;
            let Ok(state) = Arc::try_unwrap(state) else { panic!("a producer or worker still runs") };
            state.node.close().await;
        }
        verifier.close().await;
    }
}

impl LoadState {
    fn is_stop_requested(&self) -> bool {
        self.stop_requested.load(Ordering::Relaxed)
    }

    fn failover_phase(&self) -> u64 {
        self.failover_phase.load(Ordering::SeqCst)
    }

    /// Returns whether no failover can have lost a request that was sent in this phase and has got its reply now.
    fn was_safe_from_failover_since(&self, failover_phase: u64) -> bool {
        failover_phase.is_multiple_of(2) && failover_phase == self.failover_phase()
    }

    /// Pushes and emits events to one object at random until stopped.
    async fn run_producer(self: Arc<Self>, producer: u64) {
        let (mut client, mut rng, object) = (None, Rng::new(producer + 1), format!("producer:{producer}"));
        for n in 0.. {
            if self.is_stop_requested() {
                return;
            }
            let value = format!("[{producer},{n}]");
            let failover_phase = self.failover_phase();
            let reply = match rng.next_below(2) {
                0 => self.push_event(&mut client, &object, &value).map(|()| None),
                _ => self.emit_event(&object, &value).await.map(|event| Some(event.id)),
            };
            self.record_reply((producer, n), reply, failover_phase).await;
            sleep(ACTION_INTERVAL).await;
        }
    }

    fn push_event(&self, client: &mut Option<RawClient>, object: &str, value: &str) -> Option<()> {
        block_in_place(|| {
            if client.is_none() {
                *client = self.push_location.lock().unwrap().try_connect().ok();
            }
            let pushed = client.as_mut()?.try_push_events(object, &[outbox_event_json("load", value)]);
            if pushed.is_err() {
                *client = None;
            }
            pushed.ok()
        })
    }

    async fn emit_event(&self, object: &str, value: &str) -> Option<EmittedEventReceipt> {
        match self.node.try_emit(new_event("load").with_key(object).with_value(value)).await {
            Ok(event) => Some(event),
            Err(StoreError::Unavailable(_)) => None,
            Err(other) => panic!("{other}"),
        }
    }

    async fn record_reply(&self, action: ActionId, reply: Option<Option<EventId>>, failover_phase: u64) {
        match reply {
            Some(id) => {
                let mut ledger = self.ledger.lock().unwrap();
                if !self.was_safe_from_failover_since(failover_phase) {
                    ledger.at_risk.insert(action);
                }
                ledger.acknowledged.insert(action, id);
                drop(ledger);
                self.reply_counts.send_modify(|(acknowledged, _)| *acknowledged += 1);
            }
            None => {
                self.ledger.lock().unwrap().without_reply.insert(action);
                self.reply_counts.send_modify(|(_, refused)| *refused += 1);
                sleep(RETRY_DELAY).await;
            }
        }
    }

    async fn run_worker(self: Arc<Self>) {
        while !self.is_stop_requested() {
            if !self.run_some_tasks().await {
                sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Claims and ends some tasks; returns whether there were any.
    async fn run_some_tasks(&self) -> bool {
        let (claimant, failover_phase) = (Claimant::Node(self.node_id), self.failover_phase());
        let claim =
            ClaimRequest { claimant, handlers: Arc::new([handler_name("index")].into()), max_tasks: 50 };
        match self.node.store.claim_tasks(claim, now()).await {
            Ok(claims) if claims.tasks.is_empty() => false,
            Ok(claims) => {
                self.report_successes(&claims.tasks, failover_phase).await;
                true
            }
            Err(StoreError::Unavailable(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Reports successes until the store has replied. The tasks were claimed in this failover phase.
    async fn report_successes(&self, tasks: &[ClaimedTask], failover_phase: u64) {
        let mut is_first_report = true;
        loop {
            let endings = tasks.iter().map(|task| finished_attempt(task, success())).collect();
            match self.node.store.finish_attempts(endings, None, now()).await {
                Ok((ends, _)) if self.was_safe_from_failover_since(failover_phase) => {
                    return self.record_ends(tasks, &ends, is_first_report);
                }
                // A failover may have lost the claim, and may lose the end.
                Ok(_) => return,
                Err(StoreError::Unavailable(_)) => sleep(RETRY_DELAY).await,
                Err(other) => panic!("{other}"),
            }
            is_first_report = false;
        }
    }

    fn record_ends(
        &self,
        tasks: &[ClaimedTask],
        ends: &[Result<FinishReceipt, TaskCommandError>],
        is_first_report: bool,
    ) {
        let mut ledger = self.ledger.lock().unwrap();
        for (task, ended) in tasks.iter().zip(ends) {
            // A rejection is allowed only if the reply to an earlier report was lost.
            assert!(ended.is_ok() || !is_first_report, "{}: {ended:?}", task.id);
            assert!(ended.is_err() || ledger.ended_tasks.insert(task.seq), "{} has ended twice", task.id);
        }
    }

    /// Asserts that each acknowledged event is journaled once, in order, and with its id if it has one, and that no other event
    /// is journaled twice. Events acknowledged while a failover could lose them may be missing; then no other event has their
    /// id.
    fn assert_journal_matches_replies(&self, events: &[Arc<Event>]) {
        let ledger = self.ledger.lock().unwrap();
        let mut journaled: BTreeMap<ActionId, Vec<EventId>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.event_type.as_str() == "load") {
            let action: ActionId = serde_json::from_str(event.value.as_str()).unwrap();
            if self.producer_numbers.contains(&action.0) {
                journaled.entry(action).or_default().push(event.id);
            }
        }
        let assigned_ids: BTreeSet<_> = events.iter().map(|event| event.id).collect();
        let mut previous: Option<(ActionId, EventId)> = None;
        for (action, id) in &ledger.acknowledged {
            let found = journaled.remove(action).unwrap_or_default();
            if found.is_empty() && ledger.at_risk.contains(action) {
                assert!(
                    id.is_none_or(|id| !assigned_ids.contains(&id)),
                    "another event has the id {id:?} of {action:?}"
                );
                continue;
            }
            assert!(found.len() == 1, "{action:?} was acknowledged and is journaled as {found:?}");
            assert!(id.is_none_or(|id| id == found[0]), "{action:?} was acknowledged as {id:?}: {found:?}");
            if let Some((last, id)) = previous.filter(|(last, _)| last.0 == action.0) {
                assert!(
                    id < found[0],
                    "{last:?} was acknowledged before {action:?} and is journaled after it"
                );
            }
            previous = Some((*action, found[0]));
        }
        for (action, ids) in journaled {
            assert!(
                ledger.without_reply.contains(&action) && ids.len() == 1,
                "{action:?} is journaled as {ids:?}"
            );
        }
        let counts = (ledger.acknowledged.len(), ledger.without_reply.len());
        assert_eq!(counts, *self.reply_counts.borrow());
    }

    /// Runs all tasks until the queues are empty.
    async fn run_all_tasks(&self) {
        wait_until("all tasks have run", async || {
            let ran = self.run_some_tasks().await;
            let queues = self.node.store.list_queues(None).await.unwrap();
            let unfinished = queues.iter().map(|queue| {
                queue.ready_count + queue.waiting_count + queue.scheduled_count + queue.running_count
            });
            !ran && unfinished.sum::<u64>() == 0
        })
        .await;
    }
}
