//! Compares the store with the model.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pointsman_core::store::{ClaimRequest, ClaimResult, Claimant, LaneView, QueueView};
use pointsman_core::task::{Lease, TaskCommand, TaskLifecycle, TaskState};
use pointsman_core::{EventId, HandlerName, TaskSeq, TaskStatus};

use super::RandomWalk;
use super::model::{LaneHeads, QueueCounts, QueueKey};
use crate::fixture::*;

impl RandomWalk<'_> {
    /// Checks that a claim returned exactly as many tasks as the model allows, and only claimable ones.
    pub(super) fn check_claim_result(&mut self, claim: &ClaimRequest, claims: &ClaimResult) {
        let now = self.fixture.now;
        let (pulls, tenant) = match &claim.claimant {
            Claimant::Node(_) => (false, None),
            Claimant::PullWorker { tenant, .. } => (true, tenant.as_ref()),
        };
        let claimable = |seq: &TaskSeq| {
            let task = &self.model.tasks[seq];
            claim.handlers.contains(&task.handler)
                && !self.model.is_blocked_by_rule(task)
                && self.model.is_pulled(&task.handler) == pulls
                && tenant.is_none_or(|tenant| task.tenant == *tenant)
        };
        let scheduled: BTreeSet<_> = self
            .model
            .active_tasks_with_status(TaskStatus::Scheduled)
            .into_iter()
            .filter(claimable)
            .collect();
        let ready: BTreeSet<_> = self.model.ready_tasks(now).into_iter().filter(claimable).collect();
        let waiting: Vec<_> =
            self.model.new_tasks_past_lane_and_sync_gate().into_iter().filter(claimable).collect();
        let available = self.model.count_tasks_within_limits(scheduled.union(&ready).copied());

        let taken: BTreeSet<_> = claims.tasks.iter().map(|task| task.seq).collect();
        assert_eq!(taken.len(), claims.tasks.len(), "no task is claimed twice");
        for seq in &taken {
            let could_run = scheduled.contains(seq) || ready.contains(seq);
            assert!(could_run, "{seq} was claimed but could not run: {:?}", self.model.tasks.get(seq));
        }
        assert_eq!(taken.len(), claim.max_tasks.min(available), "a claim gives all it can");
        assert_eq!(claims.has_more, available > claim.max_tasks, "whether there is more");
        if taken.iter().any(|seq| ready.contains(seq)) {
            let free = |seq: &&TaskSeq| !self.model.has_concurrency_limit(&self.model.tasks[*seq].handler);
            assert!(
                scheduled.iter().filter(free).all(|seq| taken.contains(seq)),
                "scheduled tasks are claimed first"
            );
        }
        self.check_priorities(&ready, &taken);

        let dues = waiting.iter().filter_map(|seq| match self.model.tasks[seq].lifecycle.state {
            TaskState::New { due } if due > now => Some(due),
            _ => None,
        });
        if let Some(soonest) = dues.min() {
            let published =
                claims.next_task_due_at.unwrap_or_else(|| panic!("a task falls due at {soonest}"));
            assert!(published <= soonest, "next_due is {published}, but a task is due at {soonest}");
        }
        assert!(claims.next_task_due_at.is_none_or(|due| due > now), "`next_due` is not in the past");
        self.lock_claimed_tasks_in_model(claim, claims);
    }

    /// Checks that within one queue no task is claimed before one of higher priority.
    fn check_priorities(&self, ready: &BTreeSet<TaskSeq>, taken: &BTreeSet<TaskSeq>) {
        let mut lowest_taken = BTreeMap::new();
        let mut highest_left = BTreeMap::new();
        for seq in ready {
            let task = &self.model.tasks[seq];
            if self.model.has_concurrency_limit(&task.handler) {
                continue;
            }
            // All sources of a tenant share one queue.
            let queue = (Some(&task.handler).filter(|_| task.source_collection.is_none()), &task.tenant);
            if taken.contains(seq) {
                let least = lowest_taken.entry(queue).or_insert(task.priority);
                *least = task.priority.min(*least);
            } else {
                let most = highest_left.entry(queue).or_insert(task.priority);
                *most = task.priority.max(*most);
            }
        }
        for (queue, taken) in lowest_taken {
            let left = highest_left.get(&queue);
            assert!(left.is_none_or(|left| *left <= taken), "{queue:?}: {taken:?} before {left:?}");
        }
    }

    fn lock_claimed_tasks_in_model(&mut self, claim: &ClaimRequest, claims: &ClaimResult) {
        let mut fences: Vec<_> = claims.tasks.iter().map(|task| task.fence).collect();
        fences.sort();
        fences.insert(0, self.highest_fence);
        assert_strictly_ascending(&fences);
        self.highest_fence = fences[fences.len() - 1];
        let (node, until) = match claim.claimant {
            Claimant::Node(node) => (node, None),
            Claimant::PullWorker { lease_until: until, .. } => (PULL_WORKER_LEASE_NODE, Some(until)),
        };
        for task in &claims.tasks {
            let lease = Lease { node, fence: task.fence, since: self.fixture.now, until };
            self.model
                .apply_command(task.seq, TaskCommand::Lock(lease), self.fixture.now)
                .expect("it could run");
            let model_task = self.model.task_mut(task.seq);
            assert_eq!((&task.id, &task.handler), (&model_task.id, &model_task.handler));
            let published = (task.attempt, task.retries, task.out_of_order);
            assert_eq!(
                published,
                (
                    model_task.lifecycle.attempt,
                    model_task.lifecycle.retries,
                    model_task.lifecycle.out_of_order
                )
            );
            let prev_sent = *model_task.prev_sent_event.get_or_insert(task.prev_sent_event_id);
            assert!(
                task.out_of_order || task.prev_sent_event_id == prev_sent,
                "a repeated attempt carries the same previous event"
            );
            self.claimed_tasks.push(task.clone());
            let model_task = &self.model.tasks[&task.seq];
            let Some(event) = model_task.event_id.map(|id| &self.model.events[&id]) else {
                assert_eq!(
                    Some(&task.collection_run().source_collection),
                    model_task.source_collection.as_ref()
                );
                continue;
            };
            assert_eq!(**task.event(), *event, "the event reaches its handler as it was emitted");
            if let Some(prev) = task.prev_sent_event_id {
                let before = &self.model.events[&prev];
                assert!(prev < event.id && before.key == event.key && before.tenant == event.tenant);
            }
        }
    }

    /// Checks the queue counters against the model. Tasks that became due since the queue's last claim may still count
    /// as waiting, and so may paused ones: for these only the sum of ready and waiting tasks is compared.
    pub(super) async fn check_queue_counters(&self, claimed_handlers: &BTreeSet<HandlerName>) {
        let want = self.model.queue_counts(self.fixture.now);
        let views = expect_ok(self.fixture.store.list_queues(None).await);
        let mut seen = HashSet::new();
        for view in &views {
            let queue = (view.handler.clone(), view.subject.clone(), view.tenant.clone());
            assert!(seen.insert(queue.clone()), "{queue:?} is listed twice");
            let want = want.get(&queue).copied().unwrap_or_default();
            let is_blocked = self.is_queue_blocked_by_rule(&queue);
            if want != [0; 6] {
                assert_eq!(view.is_paused_or_blocked, is_blocked, "{queue:?} is_blocked");
            }
            let got = queue_view_counts(view);
            if !is_blocked
                && claimed_handlers.contains(&view.handler)
                && !self.model.has_concurrency_limit(&view.handler)
            {
                assert_eq!(got, want, "{queue:?}: ready, waiting, scheduled, running, halted, missing");
            }
            assert_eq!(got[0] + got[1], want[0] + want[1], "{queue:?}: ready and waiting");
            assert_eq!(got[2..], want[2..], "{queue:?}: scheduled, running, halted, missing");
        }
        for queue in want.keys() {
            assert!(seen.contains(queue), "{queue:?} has active tasks");
        }
    }

    fn is_queue_blocked_by_rule(&self, (handler, subject, tenant): &QueueKey) -> bool {
        self.model.rules.iter().any(|rule| rule.applies_to_queue(handler, subject, tenant))
    }

    /// Checks that store and model contain the same tasks in the same states.
    pub(super) async fn check_tasks(&self) {
        let found = self.fixture.list_tasks(&Default::default()).await;
        assert_eq!(found.len(), self.model.tasks.len(), "no task is lost and none is added");
        for task in found {
            let model_task = &self.model.tasks[&task.seq];
            assert_eq!((&task.id, task.event_id), (&model_task.id, model_task.event_id));
            assert_eq!(
                normalize_pull_worker_lease(task.lifecycle),
                normalize_pull_worker_lease(model_task.lifecycle),
                "{}",
                task.id
            );
        }
    }

    /// Checks the head and the length of every lane of every object.
    pub(super) async fn check_lanes(&self) {
        for ((tenant, key), want) in self.model.lane_heads_by_object() {
            let view =
                expect_ok(self.fixture.store.read_object(&tenant, &key, 1).await).expect("it has had events");
            let lane =
                |lane: &LaneView| (lane.head.handler.clone(), (lane.head.seq, lane.task_count_behind_head));
            let got: LaneHeads = view.lanes.iter().map(lane).collect();
            assert_eq!((got, view.lanes.len()), (want.clone(), want.len()), "{tenant} {key}");
        }
    }

    /// Checks that every ended attempt is recorded.
    pub(super) async fn check_attempts(&self) {
        for model_task in self.model.tasks.values() {
            let task = self.fixture.read_task(&model_task.id).await;
            let ends: Vec<_> = task.attempts.iter().map(|attempt| attempt.outcome).collect();
            assert_eq!(ends, model_task.attempt_outcomes, "{}", task.id);
        }
    }

    /// Checks that the journal contains every unexpired event as it was emitted.
    pub(super) async fn check_journal(&self) {
        let journal_range = self.fixture.read_journal_range().await;
        assert_eq!(journal_range.newest_event_id, self.model.last_event_id());
        let read =
            self.fixture.read_events_after(journal_range.last_expired_event_id, &Default::default()).await;
        let want: Vec<_> = self
            .model
            .events
            .values()
            .filter(|event| event.id > journal_range.last_expired_event_id)
            .collect();
        assert_eq!(read.iter().map(|event| &**event).collect::<Vec<_>>(), want);
    }

    /// Returns the oldest event that is younger than this many seconds; it must not have expired.
    pub(super) fn oldest_event_younger_than(&self, seconds: u64) -> Option<EventId> {
        let cutoff = self.fixture.now.minus(secs(seconds));
        self.model.events.keys().find(|id| id.timestamp() > cutoff).copied()
    }
}

/// Replaces the node of a worker's lease in comparisons; stores may write any number there.
const PULL_WORKER_LEASE_NODE: i64 = 0;

fn normalize_pull_worker_lease(life: TaskLifecycle) -> TaskLifecycle {
    match life.state {
        TaskState::Locked(lease) if lease.until.is_some() => TaskLifecycle {
            state: TaskState::Locked(Lease { node: PULL_WORKER_LEASE_NODE, ..lease }),
            ..life
        },
        _ => life,
    }
}

fn queue_view_counts(view: &QueueView) -> QueueCounts {
    [
        view.ready_count,
        view.waiting_count,
        view.scheduled_count,
        view.running_count,
        view.halted_count,
        view.missing_count,
    ]
}
