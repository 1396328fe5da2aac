//! Rules, retries, sweeps: what operators and the rescuer do.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::{Claimed, Pruned, Rescued, Sweep};
use pointsman_core::task::Rejected;
use pointsman_core::{EventId, Rule, RuleKind, TaskId, TaskSeq};

use super::*;

impl World<'_> {
    pub fn rule(&self, kind: RuleKind, name: &str, of: Option<&str>) -> Rule {
        let (by, reason) = ("ops".into(), "maintenance".into());
        Rule { kind, place: place(name), tenant: of.map(tenant), by, reason, since: self.now }
    }

    /// Pauses a handler, a collection (`source/collection`), a schedule (`@name`) or a chain (`/path`).
    pub async fn pause(&self, name: &str) {
        must(self.store.hold(self.rule(RuleKind::Pause, name, None)).await);
    }

    pub async fn resume(&self, name: &str) -> bool {
        must(self.store.release(RuleKind::Pause, &place(name), None).await)
    }

    pub async fn retry(&self, id: &TaskId) -> Result<(), Rejected> {
        let never = TaskSeq(i64::MAX);
        let seq = must(self.store.task(id).await).map_or(never, |(task, _)| task.seq);
        self.retry_all(&[seq]).await.remove(0)
    }

    /// In this order.
    pub async fn retry_all(&self, tasks: &[TaskSeq]) -> Vec<Result<(), Rejected>> {
        must(self.store.retry(tasks.to_vec(), self.now).await)
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
        must(self.store.rescue(Sweep::whole(secs(LEASE)), self.now).await)
    }

    /// Lets time pass while the node lives. Ids follow the clock by at most an hour a sweep.
    pub async fn pass(&mut self, seconds: u64) {
        self.tick(seconds);
        for _ in 0..=seconds / 3_600 {
            self.heartbeat().await;
            self.rescue().await;
        }
    }

    /// Undefines a handler and sweeps; answers how many of its tasks were parked.
    pub async fn lose(&mut self, name: &str) -> u64 {
        self.register(self.plan.clone().without(name)).await;
        self.heartbeat().await;
        self.rescue().await.missing
    }

    /// A worker is still at it, and will be for so long.
    pub async fn renew(&self, task: &Claimed, seconds: u64) -> Result<(), Rejected> {
        must(self.store.renew(task.seq, task.fence, self.later(seconds)).await)
    }

    /// Replays until there is no more; answers how many tasks were made.
    pub async fn replay(&self, name: &str, from: EventId) -> u64 {
        let mut made = 0;
        for _ in 0..ENDLESS {
            let stretch = must(self.store.replay(&handler(name), from, self.now).await);
            made += stretch.tasks;
            if !stretch.more {
                return made;
            }
        }
        panic!("the replay does not end");
    }

    /// Sweeps until nothing is left to remove.
    pub async fn prune(&self, journal: Retention, history: Retention) -> Pruned {
        self.prune_all(journal, history, Duration::MAX).await
    }

    /// Deletes unused objects, and all events, that are older than this.
    pub async fn prune_objects(&self, retain_for: Duration) -> u64 {
        let events = Retention { count: 1_000_000_000, age: retain_for };
        self.prune_all(events, EVERYTHING, retain_for).await.objects
    }

    pub async fn prune_all(&self, journal: Retention, history: Retention, objects: Duration) -> Pruned {
        let mut sum = Pruned::default();
        for _ in 0..ENDLESS {
            let pruned = must(self.store.prune(journal, history, objects, self.now).await);
            sum.events += pruned.events;
            sum.tasks += pruned.tasks;
            sum.objects += pruned.objects;
            if !pruned.more {
                return sum;
            }
        }
        panic!("pruning does not end");
    }
}
