//! Claims: leases the next tasks to a node or a worker. `selection.rs` selects them.

use std::collections::BTreeSet;

use pointsman_core::limit::Admission;
use pointsman_core::store::{ClaimRequest, ClaimResult, Claimant, ClaimedTask};
use pointsman_core::task::lifecycle::transition;
use pointsman_core::task::{Lease, TaskCommand, TaskLifecycle, TaskSubject};
use pointsman_core::{NewEvent, Priority, TaskId, Timestamp};

use crate::error::{Fault, TableResult};
use crate::lifecycle::AttemptOutput;
use crate::row::{ActiveTaskRow, TaskPhase};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::{RegisteredHandler, RunningTask};

/// Most delayed tasks that one claim makes ready.
const MAX_DUE_TASKS_PER_CLAIM: usize = 1000;

/// The slots of a claim that is combined with another operation: the request, and the tasks leased for it so far.
#[derive(Debug, Default)]
pub struct PendingClaim {
    request: Option<ClaimRequest>,
    claimed_tasks: Vec<ClaimedTask>,
    /// The highest priority among the events of this transaction. Only tasks of this priority may be created leased;
    /// otherwise a later event of the batch with a higher priority would be overtaken.
    highest_event_priority: Option<Priority>,
    /// The number of new tasks that would have been created leased if the claim had had a free slot.
    new_tasks_without_slot: usize,
}

impl<T: Tables> Txn<'_, T> {
    /// Schedules tasks ahead of their claims until `target_count` tasks are `scheduled`, as far as there are any;
    /// returns how many are scheduled now.
    pub(crate) fn schedule_tasks_ahead(&mut self, target_count: usize, now: Timestamp) -> TableResult<usize> {
        self.make_due_tasks_ready(now)?;
        let already_scheduled = usize::try_from(self.state.scheduled_count).unwrap_or(0);
        let mut scheduled = already_scheduled;
        for task_row in self.select_for_look_ahead(target_count.saturating_sub(already_scheduled), now)? {
            if self
                .apply_command_to_active_task(task_row, TaskCommand::Schedule, AttemptOutput::default(), now)?
                .is_ok()
            {
                scheduled += 1;
            }
        }
        Ok(scheduled)
    }

    /// Prepares the slots of a claim in a transaction that will journal these events. Makes due tasks ready first,
    /// because they have waited longer than tasks that are created now.
    pub(crate) fn prepare_claim<'e>(
        &mut self,
        claim: Option<ClaimRequest>,
        events: impl Iterator<Item = &'e NewEvent>,
        now: Timestamp,
    ) -> TableResult<PendingClaim> {
        if claim.is_none() {
            return Ok(PendingClaim::default());
        }
        self.make_due_tasks_ready(now)?;
        Ok(PendingClaim {
            request: claim,
            highest_event_priority: events.map(|event| event.priority).max(),
            ..PendingClaim::default()
        })
    }

    /// Leases tasks to the claimant, for the free slots of its claim.
    pub(crate) fn claim_tasks(&mut self, slots: PendingClaim, now: Timestamp) -> TableResult<ClaimResult> {
        let PendingClaim {
            request: claim,
            claimed_tasks: mut tasks,
            new_tasks_without_slot: tasks_without_slot,
            ..
        } = slots;
        let Some(claim) = claim else {
            return Ok(ClaimResult {
                new_task_count_without_slot: tasks_without_slot,
                ..ClaimResult::default()
            });
        };
        let free_slots = if self.may_claim(&claim) { claim.max_tasks.saturating_sub(tasks.len()) } else { 0 };
        self.record_pull_time(&claim, now);
        let (scheduled, has_more_scheduled) = self.select_scheduled_tasks(&claim, free_slots, now)?;
        if free_slots > 0 {
            let free_slots = free_slots - scheduled.len();
            tasks.extend(self.lock_tasks(scheduled, &claim, now)?);
            let selected = self.select_for_claim(&claim, free_slots, now)?;
            tasks.extend(self.lock_tasks(selected, &claim, now)?);
        }
        let has_more = has_more_scheduled || self.has_more_for_claim(&claim, now)?;
        Ok(ClaimResult {
            tasks,
            has_more,
            new_task_count_without_slot: tasks_without_slot,
            next_task_due_at: self.state.next_due_or_available_time(),
        })
    }

    /// Returns whether a claimant may get tasks. A node that was declared gone gets none, even if it is still running.
    fn may_claim(&self, claim: &ClaimRequest) -> bool {
        match claim.claimant {
            Claimant::Node(node) => self.state.live_nodes.contains(&node),
            Claimant::PullWorker { .. } => true,
        }
    }

    /// Records when a worker last pulled tasks of each handler.
    fn record_pull_time(&mut self, claim: &ClaimRequest, now: Timestamp) {
        if let Claimant::PullWorker { .. } = claim.claimant {
            for name in claim.handlers.iter() {
                if let Some(id) = self.state.find_handler(name).map(|handler| handler.id) {
                    self.state.last_pull_times.insert(id, now);
                }
            }
        }
    }

    /// Selects scheduled tasks that the node can run, and returns whether there are more than `max`. Tasks whose
    /// handler has reached a limit stay scheduled.
    fn select_scheduled_tasks(
        &mut self,
        claim: &ClaimRequest,
        max: usize,
        now: Timestamp,
    ) -> TableResult<(Vec<ActiveTaskRow>, bool)> {
        let mut selected_tasks: Vec<ActiveTaskRow> = Vec::new();
        if self.state.scheduled_count == 0 || claim.is_by_pull_worker() {
            return Ok((selected_tasks, false));
        }
        for task_row in self.tables.list_scheduled_tasks()? {
            let queue = self.state.queue(task_row.queue)?;
            let handler = self.state.handler(queue.handler)?;
            let has_free_slot = !self.state.must_check_handler_limits(handler.id)?
                || matches!(self.state.check_handler_limits(handler.id, now)?, Admission::Admitted(slots)
                    if (slots as usize) > self.count_selected_tasks_of_handler(&selected_tasks, handler)?);
            if has_free_slot && claim.handlers.contains(&handler.def.name) {
                if selected_tasks.len() == max {
                    return Ok((selected_tasks, true));
                }
                selected_tasks.push(task_row);
            }
        }
        Ok((selected_tasks, false))
    }

    /// Counts the selected tasks that belong to a handler.
    fn count_selected_tasks_of_handler(
        &self,
        selected_tasks: &[ActiveTaskRow],
        handler: &RegisteredHandler,
    ) -> TableResult<usize> {
        let mut count = 0;
        for task_row in selected_tasks {
            count += usize::from(self.state.queue(task_row.queue)?.handler == handler.id);
        }
        Ok(count)
    }

    /// Leases the selected tasks to the claimant. Their events and orders are prefetched together.
    fn lock_tasks(
        &mut self,
        selected_tasks: Vec<ActiveTaskRow>,
        claim: &ClaimRequest,
        now: Timestamp,
    ) -> TableResult<Vec<ClaimedTask>> {
        self.prefetch_task_subjects(&selected_tasks)?;
        selected_tasks.into_iter().map(|task_row| self.lock_task(task_row, claim, now)).collect()
    }

    fn prefetch_task_subjects(&mut self, selected_tasks: &[ActiveTaskRow]) -> TableResult<()> {
        let events = selected_tasks.iter().filter_map(|task_row| task_row.event);
        let events: BTreeSet<_> =
            events.filter(|id| self.state.recent_events.find_event(*id).is_none()).collect();
        let events: Vec<_> = events.into_iter().collect();
        let orders: Vec<_> = selected_tasks.iter().filter_map(|task_row| task_row.order_number).collect();
        if events.is_empty() && orders.is_empty() {
            return Ok(());
        }
        self.tables.prefetch_task_subjects(&events, &orders)
    }

    fn lock_task(
        &mut self,
        mut task_row: ActiveTaskRow,
        claim: &ClaimRequest,
        now: Timestamp,
    ) -> TableResult<ClaimedTask> {
        let order = self.read_order_of_task(&task_row)?;
        let subject = match &order {
            Some(order) => TaskSubject::Step(self.build_step_run_of_task(&task_row, order)?),
            None => self.read_task_subject(&task_row)?,
        };
        let handler = self.state.handler(self.state.queue(task_row.queue)?.handler)?.clone();
        let id = self.state.build_task_id(handler.id, subject.name(), task_row.seq)?;
        let before = task_row.phase;
        let lease = self.grant_lease(&mut task_row, &handler, claim, now)?;
        self.tables.write_task_lock(&task_row)?;
        self.state.update_counts_for_phase_change(task_row.queue, Some(before), Some(TaskPhase::Locked))?;
        self.record_attempt_start(&task_row, &handler, &id, now)?;
        let order = self.record_step_start(order, &id, now)?;
        let running = RunningTask { row: task_row, subject, order };
        Ok(self.cache_running_task(running, &handler, id, lease))
    }

    /// Records the start of an attempt: publishes it, and charges it to the key's round robin and to the handler's
    /// limits.
    fn record_attempt_start(
        &mut self,
        task_row: &ActiveTaskRow,
        handler: &RegisteredHandler,
        task: &TaskId,
        now: Timestamp,
    ) -> TableResult<()> {
        self.publish_attempt_start_if_observed(task_row, handler, task, now)?;
        self.state.record_served_rank(task_row.queue, task_row.score, task_row.rank)?;
        if self.state.must_check_handler_limits(handler.id)? {
            self.state.update_limiter_state(handler.id, |limiter_state| {
                limiter_state.record_start(&handler.def.limits, now)
            })?;
            self.state.refresh_handler_free_slots(handler.id, now)?;
        }
        Ok(())
    }

    /// Sets the lease of a task in its row; the caller writes the row.
    fn grant_lease(
        &mut self,
        task_row: &mut ActiveTaskRow,
        handler: &RegisteredHandler,
        claim: &ClaimRequest,
        now: Timestamp,
    ) -> TableResult<Lease> {
        let fence = self.state.allocate_fence();
        let lease = match claim.claimant {
            Claimant::Node(node) => Lease { node, fence, since: now, until: None },
            Claimant::PullWorker { lease_until: until, .. } => {
                Lease { node: 0, fence, since: now, until: Some(until) }
            }
        };
        let (lifecycle, _) =
            transition(task_row.seq, task_row.lifecycle, TaskCommand::Lock(lease), &handler.def, now)
                .map_err(|error| {
                    Fault::damaged(format!(
                        "task {} was selected but cannot be locked: {error}",
                        task_row.seq
                    ))
                })?;
        task_row.lifecycle = lifecycle;
        task_row.phase = TaskPhase::Locked;
        task_row.started_at = Some(now);
        Ok(lease)
    }

    /// Returns whether a new task may be created leased, because it would run next and the claim has a free slot.
    /// Counts the tasks that would run next and find no free slot.
    pub(crate) fn may_create_task_locked(
        &self,
        task_row: &ActiveTaskRow,
        handler: &RegisteredHandler,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<bool> {
        let queue = self.state.queue(task_row.queue)?;
        let would_run_now = task_row.phase == TaskPhase::Ready
            && !handler.def.pull
            && !queue.is_paused
            && queue.is_defined
            && self.state.would_queue_be_served_next(task_row.queue)?
            && (!self.state.must_check_handler_limits(handler.id)?
                || matches!(self.state.check_handler_limits(handler.id, now)?, Admission::Admitted(_)));
        let Some(claim) = slots.request.as_ref().filter(|claim| slots.claimed_tasks.len() < claim.max_tasks)
        else {
            slots.new_tasks_without_slot += usize::from(would_run_now);
            return Ok(false);
        };
        Ok(would_run_now
            && slots.highest_event_priority.map(i64::from) == Some(task_row.priority)
            && self.may_claim(claim)
            && !claim.is_by_pull_worker()
            && claim.handlers.contains(&handler.def.name))
    }

    /// Inserts a new task that is already leased: one write instead of an insert and an update.
    pub(crate) fn create_locked_task(
        &mut self,
        mut task_row: ActiveTaskRow,
        handler: &RegisteredHandler,
        subject: TaskSubject,
        slots: &mut PendingClaim,
        id: &TaskId,
        now: Timestamp,
    ) -> TableResult<()> {
        let Some(claim) = slots.request.clone() else { return Ok(()) };
        let lease = self.grant_lease(&mut task_row, handler, &claim, now)?;
        self.tables.insert_active_task(&task_row)?;
        self.state.update_counts_for_phase_change(task_row.queue, None, Some(TaskPhase::Locked))?;
        self.state.record_queue_served(task_row.queue)?;
        self.record_attempt_start(&task_row, handler, id, now)?;
        // Steps of orders are never created leased.
        let running = RunningTask { row: task_row, subject, order: None };
        slots.claimed_tasks.push(self.cache_running_task(running, handler, id.clone(), lease));
        Ok(())
    }

    /// Caches a running task, so that its end needs no read; returns it as the claimant sees it.
    fn cache_running_task(
        &mut self,
        running: RunningTask,
        handler: &RegisteredHandler,
        id: TaskId,
        lease: Lease,
    ) -> ClaimedTask {
        let TaskLifecycle { attempt, retries, out_of_order, .. } = running.row.lifecycle;
        let ActiveTaskRow { seq, prev_sent_event, planned_at, .. } = running.row;
        let subject = running.subject.clone();
        self.state.running_tasks.insert(seq, running);
        ClaimedTask {
            seq,
            id,
            handler: handler.def.name.clone(),
            subject,
            planned_at,
            attempt,
            retries,
            fence: lease.fence,
            pull_worker_lease_until: lease.until,
            prev_sent_event_id: prev_sent_event,
            out_of_order,
        }
    }

    /// Makes due tasks ready, and reopens handlers whose limits allow more tasks again.
    pub(crate) fn make_due_tasks_ready(&mut self, now: Timestamp) -> TableResult<()> {
        self.state.refresh_due_limiters(now)?;
        if self.state.counters.next_due.is_none_or(|due| due > now) {
            return Ok(());
        }
        for waiting in self.tables.list_due_tasks(now, MAX_DUE_TASKS_PER_CLAIM)? {
            self.advance_waiting_task(&waiting, TaskPhase::Delayed, now)?;
        }
        self.state.reload_next_due(self.tables)
    }
}
