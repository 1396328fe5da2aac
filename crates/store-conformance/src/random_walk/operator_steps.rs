//! Steps of operators, the rescuer and the pruner, each with its effect on the model.

use std::collections::BTreeSet;

use pointsman_core::journal::Retention;
use pointsman_core::store::NodeId;
use pointsman_core::task::{TaskCommand, TaskCommandError, TaskSeq, TaskState};
use pointsman_core::{Rule, TaskId, TaskStatus};

use super::producer_and_worker_steps::TENANTS;
use super::{HANDLER_NAMES, RandomWalk, SOURCE_COLLECTIONS, base_registration, random_rule_kind};
use crate::fixture::*;

impl RandomWalk<'_> {
    pub(super) async fn set_random_rule(&mut self) {
        let kind = random_rule_kind(&mut self.rng);
        let name = *self.rng.choose(&[&HANDLER_NAMES[..], &SOURCE_COLLECTIONS[..]].concat());
        let tenant_name = self.rng.chance_percent(50).then(|| TENANTS[self.rng.next_below(2)]);
        let rule: Rule = self.fixture.new_rule(kind, name, tenant_name);
        self.step_log.add(format!("set rule {rule:?}"));
        expect_ok(self.fixture.store.set_rule(rule.clone()).await);
        self.model.rules.retain(|other| !other.replaces(&rule));
        self.model.rules.push(rule);
        for seq in self.model.active_tasks_with_status(TaskStatus::Scheduled) {
            if self.model.is_blocked_by_rule(&self.model.tasks[&seq]) {
                self.model
                    .apply_command(seq, TaskCommand::Unschedule, self.fixture.now)
                    .expect("it was scheduled");
                // Setting a rule takes no time argument, so the store chooses the new due time.
                let stored = self.fixture.read_task(&self.model.tasks[&seq].id).await.lifecycle;
                assert!(
                    matches!(stored.state, TaskState::New { due } if due <= self.fixture.now),
                    "{stored:?}"
                );
                self.model.lifecycle_mut(seq).state = stored.state;
            }
        }
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    pub(super) async fn lift_random_rule(&mut self) {
        let Some(rule) = self.rng.try_choose(&self.model.rules).cloned() else { return };
        self.step_log.add(format!("lift rule {rule:?}"));
        assert!(expect_ok(self.fixture.store.lift_rule(rule.kind, &rule.scope, rule.tenant.as_ref()).await));
        self.model.rules.retain(|other| *other != rule);
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    /// Returns a random task; None if its handler is undefined.
    fn random_task(&mut self) -> Option<TaskSeq> {
        let seqs: Vec<_> = match self.rng.chance_percent(50) {
            true => self.model.active_tasks.iter().copied().collect(),
            false => self.model.tasks.keys().copied().collect(),
        };
        let seq = *self.rng.try_choose(&seqs)?;
        let handler = &self.model.tasks[&seq].handler;
        (!self.undefined_handlers.contains(handler.as_str())).then_some(seq)
    }

    pub(super) async fn retry_random_task(&mut self) {
        let halted = self.model.active_tasks_with_status(TaskStatus::Error);
        let Some(seq) = self.random_task() else { return };
        let seq = self
            .rng
            .try_choose(&halted)
            .copied()
            .filter(|_| self.undefined_handlers.is_empty())
            .unwrap_or(seq);
        let id = self.model.tasks[&seq].id.clone();
        self.step_log.add(format!("retry {id}"));
        let answer = self.fixture.retry_task(&id).await;
        if answer == Err(TaskCommandError::EventExpired) {
            let task = &self.model.tasks[&seq];
            assert!(
                !self.model.active_tasks.contains(&seq),
                "the event of an unfinished task does not expire"
            );
            let expired_up_to = self.fixture.read_journal_range().await.last_expired_event_id;
            assert!(task.event_id.is_some_and(|event| event <= expired_up_to), "{id}");
            return;
        }
        let left_lane =
            matches!(self.model.tasks[&seq].lifecycle.state, TaskState::Error { halts_lane: false, .. });
        if left_lane && self.model.is_collection_of_task_busy(seq) {
            assert_eq!(answer, Err(TaskCommandError::CollectionBusy), "{id}");
            return;
        }
        assert_eq!(answer, self.model.apply_command(seq, TaskCommand::Retry, self.fixture.now), "{id}");
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    pub(super) async fn cancel_random_task(&mut self) {
        let Some(seq) = self.random_task() else { return };
        let id = self.model.tasks[&seq].id.clone();
        self.step_log.add(format!("cancel {id}"));
        let answer = self.fixture.cancel_task(&id).await;
        assert_eq!(answer, self.model.apply_command(seq, TaskCommand::Cancel, self.fixture.now), "{id}");
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    pub(super) async fn adopt_tasks_of_random_handler(&mut self) {
        let name = HANDLER_NAMES[self.rng.next_below(HANDLER_NAMES.len())];
        if !self.undefined_handlers.contains(name) {
            self.adopt_missing_tasks(name).await;
        }
    }

    pub(super) async fn adopt_missing_tasks(&mut self, name: &str) {
        self.step_log.add(format!("adopt tasks of {name}"));
        let mut missing = self.model.active_tasks_with_status(TaskStatus::Missing);
        missing.retain(|seq| self.model.tasks[seq].handler.as_str() == name);
        let mut adopted = 0;
        for seq in missing {
            // One missing task of a collection is adopted, and only if none is queued or running.
            if !self.model.is_collection_of_task_busy(seq) {
                self.model
                    .apply_command(seq, TaskCommand::AdoptMissing, self.fixture.now)
                    .expect("it was missing");
                adopted += 1;
            }
        }
        assert_eq!(self.fixture.adopt_missing_tasks(name).await, adopted);
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    /// Undefines a handler that has no running tasks, or restores all undefined ones.
    pub(super) async fn undefine_or_restore_handler(&mut self) {
        if !self.undefined_handlers.is_empty() {
            self.step_log.add(format!("restore handlers {:?}", self.undefined_handlers));
            self.undefined_handlers.clear();
            self.fixture.register(base_registration()).await;
            return;
        }
        let name = HANDLER_NAMES[self.rng.next_below(HANDLER_NAMES.len())];
        let of_it = |seq: &TaskSeq| self.model.tasks[seq].handler.as_str() == name;
        if self.model.active_tasks_with_status(TaskStatus::Locked).iter().any(of_it) {
            return;
        }
        self.step_log.add(format!("undefine handler {name}"));
        self.undefined_handlers.insert(name);
        self.send_heartbeats().await;
        self.fixture.register(base_registration().without_handler(name)).await;
        let rescued = self.fixture.rescue_tasks().await;
        let expired = self.expire_leases_in_model(None);
        let mut gone = [
            self.model.active_tasks_with_status(TaskStatus::New),
            self.model.active_tasks_with_status(TaskStatus::Scheduled),
        ]
        .concat();
        gone.retain(|seq| self.model.tasks[seq].handler.as_str() == name);
        assert_eq!(
            (sort_tasks(rescued.freed_tasks_with_status), rescued.marked_missing_count),
            (expired, gone.len() as u64)
        );
        for seq in gone {
            self.model.apply_command(seq, TaskCommand::MarkMissing, self.fixture.now).expect("it waited");
        }
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    /// Expires the leases of a dead node and the overdue leases of workers in the model.
    fn expire_leases_in_model(&mut self, dead: Option<NodeId>) -> Vec<(TaskId, TaskStatus)> {
        let mut expired = Vec::new();
        for seq in self.model.active_tasks_with_status(TaskStatus::Locked) {
            let TaskState::Locked(lease) = self.model.tasks[&seq].lifecycle.state else { continue };
            let over = match lease.until {
                Some(until) => until < self.fixture.now,
                None => Some(lease.node) == dead,
            };
            if over {
                let command = TaskCommand::ExpireLease { fence: lease.fence };
                self.model.apply_command(seq, command, self.fixture.now).expect("it ran");
                let task = &self.model.tasks[&seq];
                expired.push((task.id.clone(), task.lifecycle.state.status()));
            }
        }
        sort_tasks(expired)
    }

    async fn send_heartbeats(&self) {
        for node in self.node_ids {
            assert!(
                expect_ok(self.fixture.store.record_heartbeat(node, self.fixture.now).await),
                "{node} lives"
            );
        }
    }

    /// One node sends no heartbeats for longer than its lease; the other one rescues its tasks.
    pub(super) async fn crash_random_node(&mut self) {
        self.send_heartbeats().await;
        let (dead, alive) = if self.rng.chance_percent(50) { (0, 1) } else { (1, 0) };
        self.step_log.add(format!("node {} dies", self.node_ids[dead]));
        self.fixture.advance_clock(LEASE_SECS + 1);
        assert!(expect_ok(self.fixture.store.record_heartbeat(self.node_ids[alive], self.fixture.now).await));
        let rescued = self.fixture.rescue_tasks().await;
        let expired = self.expire_leases_in_model(Some(self.node_ids[dead]));
        assert_eq!((sort_tasks(rescued.freed_tasks_with_status), rescued.marked_missing_count), (expired, 0));
        self.node_ids[dead] = expect_ok(self.fixture.store.join_node("replacement", self.fixture.now).await);
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    /// Prunes events older than two minutes; no task and no younger event may be deleted.
    pub(super) async fn prune_old_events(&mut self) {
        self.step_log.add("prune events older than 120 s".into());
        self.fixture
            .prune_events_and_tasks(Retention { max_age: secs(120), ..KEEP_EVERYTHING }, KEEP_EVERYTHING)
            .await;
        let journal_range = self.fixture.read_journal_range().await;
        let young = self.oldest_event_younger_than(120);
        assert!(young.is_none_or(|young| journal_range.last_expired_event_id < young), "young events stay");
        self.check_journal().await;
    }

    pub(super) async fn restart_store(mut self) -> Self {
        self.step_log.add("restart".into());
        let Self { fixture, .. } = self;
        let fixture = fixture.reopen().await;
        self = Self { fixture, ..self };
        self.check_tasks().await;
        self.check_lanes().await;
        self.check_journal().await;
        self.check_queue_counters(&BTreeSet::new()).await;
        self
    }
}

fn sort_tasks(mut tasks: Vec<(TaskId, TaskStatus)>) -> Vec<(TaskId, TaskStatus)> {
    tasks.sort();
    tasks
}
