//! A store, a clock that is set by hand, and one node that works: what every story is told with.
//!
//! The verbs hide what a story does not care about (who asks, what time it is) and panic when the store fails,
//! since a conforming store never does here.

mod plan;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::journal::{Extent, Filter, Retention};
use pointsman_core::store::{
    Claim, Claimed, Claims, Emission, Ended, Ending, Finished, NodeId, Pruned, QueueView, Read, Receipt,
    Refused, Rescued, Sequenced, Store, StoredLine, TaskFilter,
};
use pointsman_core::task::{Rejected, Task};
use pointsman_core::{
    Event, EventId, HandlerName, NewEvent, Rule, RuleKind, Status, TaskId, Tenant, Timestamp,
};

use crate::Harness;

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
        Claim { node: self.node, handlers: Arc::new(handlers), max }
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

    pub async fn schedule(&self, ahead: usize) -> usize {
        must(self.store.schedule(ahead, self.now).await)
    }
}

/// Steering and sweeping.
impl World<'_> {
    pub fn rule(&self, kind: RuleKind, name: &str, of: Option<&str>) -> Rule {
        let (by, reason) = ("ops".into(), "maintenance".into());
        Rule { kind, handler: handler(name), tenant: of.map(tenant), by, reason, since: self.now }
    }

    pub async fn pause(&self, name: &str) {
        must(self.store.hold(self.rule(RuleKind::Pause, name, None)).await);
    }

    pub async fn resume(&self, name: &str) -> bool {
        must(self.store.release(RuleKind::Pause, &handler(name), None).await)
    }

    pub async fn retry(&self, id: &TaskId) -> Result<(), Rejected> {
        must(self.store.retry(id, self.now).await)
    }

    pub async fn cancel(&self, id: &TaskId) -> Result<(), Rejected> {
        must(self.store.cancel(id, self.now).await)
    }

    pub async fn adopt(&self, name: &str) -> u64 {
        must(self.store.adopt(&handler(name), self.now).await)
    }

    pub async fn heartbeat(&self) -> bool {
        must(self.store.heartbeat(self.node, self.now).await)
    }

    pub async fn rescue(&self) -> Rescued {
        must(self.store.rescue(secs(LEASE), self.now).await)
    }

    /// Undefines a handler and sweeps; answers how many of its tasks were parked.
    pub async fn lose(&mut self, name: &str) -> u64 {
        self.register(self.plan.clone().without(name)).await;
        self.heartbeat().await;
        self.rescue().await.missing
    }

    /// Sweeps until nothing is left to remove.
    pub async fn prune(&self, journal: Retention, history: Retention) -> Pruned {
        let mut sum = Pruned::default();
        for _ in 0..ENDLESS {
            let pruned = must(self.store.prune(journal, history, self.now).await);
            sum.events += pruned.events;
            sum.tasks += pruned.tasks;
            if !pruned.more {
                return sum;
            }
        }
        panic!("pruning does not end");
    }
}

/// Looking.
impl World<'_> {
    pub async fn extent(&self) -> Extent {
        must(self.store.extent().await)
    }

    pub async fn task(&self, id: &TaskId) -> Task {
        let found = must(self.store.task(id).await);
        found.unwrap_or_else(|| panic!("{id} should be there")).0
    }

    pub async fn status(&self, id: &TaskId) -> Status {
        self.task(id).await.life.state.status()
    }

    /// All events after `after` that match, read page by page.
    pub async fn read_after(&self, after: EventId, filter: &Filter) -> Vec<Arc<Event>> {
        let (mut after, mut found) = (after, Vec::new());
        for _ in 0..ENDLESS {
            let read = Read { after, until: None, filter: filter.clone(), limit: 100, backwards: false };
            let page = must(self.store.read(read).await);
            found.extend(page.events);
            if page.scanned >= page.extent.head {
                return found;
            }
            assert!(page.scanned > after, "reading does not advance");
            after = page.scanned;
        }
        panic!("reading does not end");
    }

    /// All events that are remembered.
    pub async fn read_all(&self) -> Vec<Arc<Event>> {
        self.read_after(self.extent().await.forgotten, &Filter::default()).await
    }

    /// All tasks that match, newest first, read page by page.
    pub async fn tasks(&self, filter: &TaskFilter) -> Vec<Task> {
        let (mut before, mut found) = (None, Vec::new());
        for _ in 0..ENDLESS {
            let page = must(self.store.tasks(filter.clone(), before, 50).await);
            found.extend(page.tasks);
            match page.next {
                None => return found,
                next => before = next,
            }
        }
        panic!("listing tasks does not end");
    }

    pub async fn logs(&self, id: &TaskId) -> Vec<StoredLine> {
        let (mut from, mut found) = (0, Vec::new());
        loop {
            let page = must(self.store.logs(id, from, 100).await).expect("the task is there");
            match page.lines.last() {
                None => return found,
                Some(last) => from = last.number + 1,
            }
            found.extend(page.lines);
        }
    }

    pub async fn messages(&self, id: &TaskId) -> Vec<String> {
        self.logs(id).await.into_iter().map(|stored| stored.line.message).collect()
    }

    /// The queue of a handler for the default tenant; an empty one if none is told of.
    pub async fn queue(&self, name: &str) -> QueueView {
        let found = must(self.store.queues().await).into_iter();
        let (handler, tenant) = (handler(name), Tenant::default());
        found.into_iter().find(|queue| queue.handler == handler && queue.tenant == tenant).unwrap_or(
            QueueView {
                handler,
                tenant,
                ready: 0,
                waiting: 0,
                scheduled: 0,
                running: 0,
                halted: 0,
                missing: 0,
                held: false,
            },
        )
    }
}
