//! Handlers, routes, rules and nodes, and what happens to tasks when one of them is removed.

use pointsman_core::store::{
    AuditEntry, NodeCapabilities, NodeId, Registration, RescueOptions, RescueReport,
};
use pointsman_core::task::{TaskCommand, TaskState, TaskStatus};
use pointsman_core::{HandlerName, Rule, RuleKind, RuleScope, TaskId, Tenant, Timestamp};

use crate::chains::is_step_queue_of_chain;
use crate::error::TableResult;
use crate::lifecycle::AttemptOutput;
use crate::queues::QueueState;
use crate::row::{ActiveTaskRow, QueueId, TaskPhase};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::write_named_json;

/// Most tasks that one sweep marks as missing.
const MAX_MARKED_MISSING_PER_SWEEP: usize = 10_000;
/// Most missing tasks that one transaction adopts.
pub(crate) const MAX_ADOPTED_PER_TRANSACTION: usize = 1_000;
/// Phases of tasks that are not running yet.
const PENDING_PHASES: [TaskPhase; 5] = [
    TaskPhase::BlockedByTask,
    TaskPhase::SyncGated,
    TaskPhase::Delayed,
    TaskPhase::Ready,
    TaskPhase::Scheduled,
];

impl<T: Tables> Txn<'_, T> {
    /// Replaces the effective registration: the union of all registrations.
    pub(crate) fn apply_registration(
        &mut self,
        registration: &Registration,
        now: Timestamp,
    ) -> TableResult<()> {
        self.state.clear_fair_queues()?;
        let handlers_before = std::mem::take(&mut self.state.handlers);
        self.tables.set_defined_handlers(&registration.handlers)?;
        write_named_json(self.tables, "routes", &registration.routes)?;
        write_named_json(self.tables, "tenants", &registration.tenant_weights)?;
        self.state.load_registration(self.tables)?;
        for handler in self.state.handlers.clone() {
            let was_defined = handlers_before.iter().any(|old| old.id == handler.id && old.is_defined);
            self.update_missed_event_ranges(handler.id, was_defined, handler.is_defined)?;
        }
        self.rescore_tasks_after_ageing_change(&handlers_before)?;
        self.state.refill_fair_queues(now)?;
        self.reconcile_tasks_of_handlers(&handlers_before, now)?;
        let new_handlers =
            self.state.handlers.iter().filter(|h| handlers_before.iter().all(|old| old.id != h.id));
        let new_handlers: Vec<_> = new_handlers.map(|handler| handler.def.name.clone()).collect();
        self.register_chains(&registration.chains, &registration.chain_routes, &new_handlers)?;
        self.publish_configured_object_changes(&registration.configured_object_digests, now)?;
        self.state.has_new_ready_tasks = true;
        Ok(())
    }

    /// Returns the effective registration, which has no name.
    pub(crate) fn merged_registration(&mut self) -> TableResult<Registration> {
        let defined = self.state.handlers.iter().filter(|h| h.is_defined);
        Ok(Registration {
            registration_name: String::new(),
            handlers: defined.map(|h| h.def.clone()).collect(),
            routes: self.state.routes.clone(),
            tenant_weights: self.state.tenant_weights.clone(),
            chains: self.state.chains.iter_defined_chains().cloned().collect(),
            chain_routes: self.state.chains.routes().clone(),
            configured_object_digests: self.tables.list_configured_object_digests()?,
        })
    }

    /// Adds a node to the cluster; returns its id.
    pub(crate) fn join_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        self.state.event_id_generator.observe_clock(now);
        let node = self.tables.insert_node(name, now)?;
        self.state.live_nodes.insert(node);
        Ok(node)
    }

    /// Records a heartbeat; returns `false` if the node has been declared gone.
    pub(crate) fn record_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        self.state.event_id_generator.observe_clock(now);
        self.tables.record_node_heartbeat(node, now)
    }

    pub(crate) fn write_node_capabilities(
        &mut self,
        node: NodeId,
        capabilities: &NodeCapabilities,
    ) -> TableResult<()> {
        self.tables.write_node_capabilities(node, capabilities)
    }

    pub(crate) fn record_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        self.tables.insert_audit_entry(entry)
    }

    /// Removes a node that leaves, and releases the tasks that are still leased to it.
    pub(crate) fn remove_node(&mut self, node: NodeId, now: Timestamp) -> TableResult<()> {
        self.mark_node_gone(node)?;
        for task_row in self.tables.list_tasks_locked_by_node(node)? {
            if let TaskState::Locked(lease) = task_row.lifecycle.state {
                let release = TaskCommand::Release { fence: lease.fence };
                // The command is rejected if the task is no longer locked; then there is nothing to release.
                let _ =
                    self.apply_command_to_active_task(task_row, release, AttemptOutput::default(), now)?;
            }
        }
        Ok(())
    }

    /// Marks a node as gone. It gets no more tasks, even if it is still running.
    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()> {
        self.tables.mark_node_gone(node)?;
        self.state.live_nodes.remove(&node);
        Ok(())
    }

    pub(crate) fn add_rule(&mut self, rule: Rule) -> TableResult<()> {
        self.tables.write_rule(&rule)?;
        self.state.load_rules(self.tables)?;
        for queue in self.refresh_paused_flags_in_scope(&rule.scope)? {
            self.unschedule_queue_tasks(queue, rule.since)?;
        }
        Ok(())
    }

    /// Reloads rules that were changed directly in the database.
    pub fn reload_rules(&mut self, now: Timestamp) -> TableResult<()> {
        let rules_before = std::mem::take(&mut self.state.rules);
        self.state.load_rules(self.tables)?;
        if self.state.rules == rules_before {
            return Ok(());
        }
        for queue in self.state.refresh_paused_flags(|_| true)? {
            self.unschedule_queue_tasks(queue, now)?;
        }
        self.state.has_new_ready_tasks = true;
        Ok(())
    }

    /// Updates which of the queues in a rule's scope are paused; returns those that are paused now.
    fn refresh_paused_flags_in_scope(&mut self, scope: &RuleScope) -> TableResult<Vec<QueueId>> {
        let handler = match scope {
            RuleScope::Handler(name) => name,
            RuleScope::Collection(collection) => &collection.source,
            RuleScope::Chain(path) => {
                return self.state.refresh_paused_flags(|queue| is_step_queue_of_chain(queue, path));
            }
            RuleScope::Schedule(_) => return Ok(vec![]),
        };
        match self.state.find_handler(handler).map(|h| h.id) {
            Some(handler) => self.state.refresh_paused_flags(|queue| queue.handler == handler),
            None => Ok(vec![]),
        }
    }

    /// Returns the scheduled tasks of a queue to `new`. There are never more of them than tasks are scheduled ahead,
    /// however long the queue is.
    pub(crate) fn unschedule_queue_tasks(&mut self, queue: QueueId, now: Timestamp) -> TableResult<()> {
        let scheduled = usize::try_from(self.state.queue(queue)?.counts.scheduled).unwrap_or(0);
        if scheduled == 0 {
            return Ok(());
        }
        for seq in self.tables.list_tasks_in_phases(queue, &[TaskPhase::Scheduled], scheduled)? {
            let _ = self.apply_task_command(seq, TaskCommand::Unschedule, AttemptOutput::default(), now)?;
        }
        Ok(())
    }

    pub(crate) fn remove_rule(
        &mut self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> TableResult<bool> {
        if !self.state.has_rule(kind, scope, tenant) {
            return Ok(false);
        }
        self.tables.delete_rule(kind, scope, tenant)?;
        self.state.load_rules(self.tables)?;
        self.refresh_paused_flags_in_scope(scope)?;
        self.state.has_new_ready_tasks = true;
        Ok(true)
    }

    /// Releases tasks of silent nodes and of expired worker leases, and marks tasks without a handler as missing.
    pub(crate) fn rescue_tasks(&mut self, sweep: RescueOptions, now: Timestamp) -> TableResult<RescueReport> {
        let mut report = RescueReport::default();
        for node in self.tables.list_nodes_silent_since(now.minus(sweep.node_timeout))? {
            self.mark_node_gone(node)?;
            for task_row in self.tables.list_tasks_locked_by_node(node)? {
                let error = format!(
                    "node {node} stopped sending heartbeats during attempt {}",
                    task_row.lifecycle.attempt
                );
                report.freed_tasks_with_status.extend(self.expire_lease(task_row, &error, now)?);
            }
        }
        for task_row in self.tables.list_expired_worker_leases(sweep.pull_worker_leases_since, now)? {
            let error = format!(
                "the worker of attempt {} did not renew its lease in time",
                task_row.lifecycle.attempt
            );
            report.freed_tasks_with_status.extend(self.expire_lease(task_row, &error, now)?);
        }
        if sweep.mark_missing {
            report.marked_missing_count = self.mark_tasks_of_undefined_handlers_missing(now)?;
        }
        Ok(report)
    }

    /// Ends the attempt of a running task whose node or worker is gone.
    fn expire_lease(
        &mut self,
        task_row: ActiveTaskRow,
        error: &str,
        now: Timestamp,
    ) -> TableResult<Option<(TaskId, TaskStatus)>> {
        let TaskState::Locked(lease) = task_row.lifecycle.state else { return Ok(None) };
        let handler = self.state.queue(task_row.queue)?.handler;
        let subject = self.read_task_subject(&task_row)?;
        let id = self.state.build_task_id(handler, subject.name(), task_row.seq)?;
        let output = AttemptOutput::from_error(error);
        let expired = self.apply_command_to_active_task(
            task_row,
            TaskCommand::ExpireLease { fence: lease.fence },
            output,
            now,
        )?;
        Ok(expired.ok().map(|lifecycle| (id, lifecycle.state.status())))
    }

    /// Marks tasks whose handler is no longer defined as `missing`; returns how many.
    fn mark_tasks_of_undefined_handlers_missing(&mut self, now: Timestamp) -> TableResult<u64> {
        let mut marked_count = 0;
        let has_waiting_tasks = |q: &&QueueState| q.counts.ready + q.counts.waiting + q.counts.scheduled > 0;
        let undefined = self.state.iter_queues().filter(|q| !q.is_defined).filter(has_waiting_tasks);
        let queues: Vec<QueueId> = undefined.map(|q| q.id).collect();
        for queue in queues {
            for seq in
                self.tables.list_tasks_in_phases(queue, &PENDING_PHASES, MAX_MARKED_MISSING_PER_SWEEP)?
            {
                let error = AttemptOutput::from_error("its handler is no longer defined");
                if self.apply_task_command(seq, TaskCommand::MarkMissing, error, now)?.is_ok() {
                    marked_count += 1;
                }
                if marked_count >= MAX_MARKED_MISSING_PER_SWEEP as u64 {
                    return Ok(marked_count);
                }
            }
        }
        Ok(marked_count)
    }

    /// Adopts some of a handler's missing tasks; fewer than [`MAX_ADOPTED_PER_TRANSACTION`] if no more are left.
    pub(crate) fn adopt_missing_tasks(&mut self, handler: &HandlerName, now: Timestamp) -> TableResult<u64> {
        let Some(handler) = self.state.find_handler(handler).map(|h| h.id) else { return Ok(0) };
        let adoptable =
            self.state.iter_queues().filter(|q| q.handler == handler && q.is_defined && q.counts.missing > 0);
        let queues: Vec<QueueId> = adoptable.map(|q| q.id).collect();
        let mut adopted_count = 0;
        for queue in queues {
            for seq in
                self.tables.list_tasks_in_phases(queue, &[TaskPhase::Missing], MAX_ADOPTED_PER_TRANSACTION)?
            {
                if self
                    .apply_task_command(seq, TaskCommand::AdoptMissing, AttemptOutput::default(), now)?
                    .is_ok()
                {
                    adopted_count += 1;
                }
                if adopted_count >= MAX_ADOPTED_PER_TRANSACTION as u64 {
                    return Ok(adopted_count);
                }
            }
        }
        Ok(adopted_count)
    }
}
