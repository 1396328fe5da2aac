//! A store, a clock that is set by hand, and one node that works: what every story is told with.
//!
//! The verbs hide what a story does not care about (who asks, what time it is) and panic when the store fails,
//! since a conforming store never does here.

mod clock;
mod looking;
mod orders;
mod plan;
mod steering;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::journal::Retention;
use pointsman_core::limit::Target;
use pointsman_core::store::{
    Claim, Claimant, Claimed, Claims, Emission, Ended, Ending, Finished, NewRun, NodeId, Receipt, Refused,
    RunTask, Sequenced, Store,
};
use pointsman_core::task::Rejected;
use pointsman_core::{HandlerName, NewEvent, TaskId, Timestamp};

use crate::Harness;

pub use clock::*;
pub use orders::*;
pub use plan::{BACKOFF, Plan};
pub use words::*;

/// When every story begins.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// How long a node may be silent, in seconds.
pub const LEASE: u64 = 30;

/// Keeps whatever is asked about.
pub const EVERYTHING: Retention =
    Retention { count: 1_000_000_000, age: std::time::Duration::from_secs(1 << 32) };

/// More than any story has to do: what goes on longer goes on for ever.
const ENDLESS: usize = 100_000;

pub struct World<'h> {
    harness: &'h dyn Harness,
    pub store: Arc<dyn Store>,
    pub now: Timestamp,
    /// The node that claims.
    pub node: NodeId,
    pub plan: Plan,
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now).field("node", &self.node).finish_non_exhaustive()
    }
}

/// What a store answered; a conforming one does not fail.
pub fn must<T>(answer: pointsman_core::store::Result<T>) -> T {
    answer.unwrap_or_else(|fault| panic!("the store failed: {fault}"))
}

impl<'h> World<'h> {
    /// A fresh store with this registered and one node joined.
    pub async fn new(harness: &'h dyn Harness, plan: Plan) -> Self {
        let store = harness.fresh(BEGINNING).await;
        must(store.register(plan.registration(), BEGINNING).await);
        let node = must(store.join("first", BEGINNING).await);
        Self { harness, store, now: BEGINNING, node, plan }
    }

    /// The process ends and another one takes its place: the same store, a new node.
    pub async fn reopen(self) -> Self {
        let Self { harness, store, now, plan, .. } = self;
        let store = harness.reopen(store, now).await;
        let node = must(store.join("next", now).await);
        Self { harness, store, now, node, plan }
    }

    pub fn tick(&mut self, seconds: u64) {
        self.now = self.now.plus(secs(seconds));
    }

    pub fn later(&self, seconds: u64) -> Timestamp {
        self.now.plus(secs(seconds))
    }

    /// Replaces what is registered.
    pub async fn register(&mut self, plan: Plan) {
        must(self.store.register(plan.registration(), self.now).await);
        self.plan = plan;
    }
}

/// Emitting.
impl World<'_> {
    pub async fn emit(&self, event: NewEvent) -> Sequenced {
        self.emit_all(vec![event]).await.events.remove(0)
    }

    /// So many of the same.
    pub async fn emit_many(&self, count: usize, event: NewEvent) -> Vec<Sequenced> {
        self.emit_all(vec![event; count]).await.events
    }

    /// One emission: all or nothing.
    pub async fn emit_all(&self, events: Vec<NewEvent>) -> Receipt {
        self.append(vec![emission(events)]).await.remove(0).expect("nothing to refuse")
    }

    pub async fn append(&self, emissions: Vec<Emission>) -> Vec<Result<Receipt, Refused>> {
        must(self.store.append(emissions, None, self.now).await).0
    }
}

/// Working.
impl World<'_> {
    /// A claim of this node for all handlers there are.
    pub fn asking(&self, max: usize) -> Claim {
        self.asking_for(self.plan.names(), max)
    }

    pub fn asking_for(&self, handlers: BTreeSet<HandlerName>, max: usize) -> Claim {
        Claim { by: Claimant::Node(self.node), handlers: Arc::new(handlers), max }
    }

    /// A claim of a worker for these handlers of any tenant, with a lease as long as a node's.
    pub fn asking_as_worker(&self, names: &[&str], max: usize) -> Claim {
        let handlers = names.iter().map(|name| handler(name)).collect();
        let by = Claimant::Worker { until: self.later(LEASE), tenant: None };
        Claim { by, ..self.asking_for(handlers, max) }
    }

    pub async fn claims(&self, max: usize) -> Claims {
        must(self.store.claim(self.asking(max), self.now).await)
    }

    pub async fn claim(&self, max: usize) -> Vec<Claimed> {
        self.claims(max).await.tasks
    }

    pub async fn claim_for(&self, names: &[&str], max: usize) -> Vec<Claimed> {
        let names = names.iter().map(|name| handler(name)).collect();
        must(self.store.claim(self.asking_for(names, max), self.now).await).tasks
    }

    pub async fn fetch(&self, names: &[&str], max: usize) -> Vec<Claimed> {
        must(self.store.claim(self.asking_as_worker(names, max), self.now).await).tasks
    }

    /// The one task that is there to be fetched by a worker.
    pub async fn fetch_one(&self, name: &str) -> Claimed {
        let mut tasks = self.fetch(&[name], 1).await;
        assert_eq!(tasks.len(), 1, "a task of {name} should be ready");
        tasks.remove(0)
    }

    /// The one task that is there to be claimed.
    pub async fn claim_one(&self) -> Claimed {
        let mut tasks = self.claim(1).await;
        assert_eq!(tasks.len(), 1, "a task should be ready");
        tasks.remove(0)
    }

    /// The same of one handler.
    pub async fn claim_one_for(&self, name: &str) -> Claimed {
        let mut tasks = self.claim_for(&[name], 1).await;
        assert_eq!(tasks.len(), 1, "a task of {name} should be ready");
        tasks.remove(0)
    }

    pub async fn end_all(&self, endings: Vec<Ending>) -> Vec<Result<Finished, Rejected>> {
        must(self.store.finish(endings, None, self.now).await).0
    }

    pub async fn end(&self, ending: Ending) -> Result<Finished, Rejected> {
        self.end_all(vec![ending]).await.remove(0)
    }

    pub async fn end_as(&self, task: &Claimed, ended: Ended) -> Finished {
        self.end(ending(task, ended)).await.expect("the attempt is this node's")
    }

    pub async fn succeed(&self, task: &Claimed) -> Finished {
        self.end_as(task, succeeded()).await
    }

    pub async fn fail(&self, task: &Claimed) -> Finished {
        self.end_as(task, failed()).await
    }

    pub async fn fail_for_good(&self, task: &Claimed) -> Finished {
        self.end_as(task, failed_for_good()).await
    }

    pub async fn snooze(&self, task: &Claimed, seconds: u64) -> Finished {
        self.end_as(task, Ended::Snoozed { until: self.later(seconds) }).await
    }

    /// Succeeds or fails, and tells how the target fares.
    pub async fn end_telling(&self, task: &Claimed, ended: Ended, target: Target) -> Finished {
        let ending = Ending { target: Some(target), ..ending(task, ended) };
        self.end(ending).await.expect("the attempt is this node's")
    }

    pub async fn give_back(&self, task: &Claimed) -> Finished {
        self.end_as(task, Ended::Released).await
    }

    /// Claims and succeeds, one after the other, until nothing is ready; answers what ran, in order.
    pub async fn run_all(&self) -> Vec<Claimed> {
        let mut ran = Vec::new();
        while let Some(task) = self.claim(1).await.pop() {
            self.succeed(&task).await;
            ran.push(task);
            assert!(ran.len() < ENDLESS, "the work does not end");
        }
        ran
    }

    /// Asks for a run of a pair (`source/collection`) that is there.
    pub async fn run(&self, name: &str) -> RunTask {
        let run = NewRun { pair: pair(name), priority: None };
        must(self.store.run(run, None, self.now).await).expect("the pair is there")
    }

    /// The same, where none is queued or running.
    pub async fn run_anew(&self, name: &str) -> TaskId {
        let run = self.run(name).await;
        assert!(run.created, "{name} was idle");
        run.task
    }

    pub async fn schedule(&self, ahead: usize) -> usize {
        must(self.store.schedule(ahead, self.now).await)
    }
}
