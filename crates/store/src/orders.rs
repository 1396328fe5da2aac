//! Applies inputs to orders and carries out the effects that the core decides on, in the transaction of the input.

use pointsman_core::chain::{ChainNodeId, ChainState, OrderKey};
use pointsman_core::engine_event::{EngineEvent, FileBasedChange};
use pointsman_core::order::{EndedOrder, Order, OrderEffect, OrderInput, OrderOutcome, StepOutcome};
use pointsman_core::store::{OrderCommand, OrderError};
use pointsman_core::task::{QueueSubject, StepRun, TaskCommand, TaskLifecycle, TaskSeq, TaskState};
use pointsman_core::{Event, EventId, HandlerName, Json, TaskId, Tenant, Timestamp};

use crate::error::{Fault, TableResult};
use crate::lifecycle::AttemptOutput;
use crate::row::{ActiveTaskRow, OrderRow, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;

impl<T: Tables> Txn<'_, T> {
    /// Publishes an engine event that belongs to no tenant.
    pub(crate) fn publish_engine_event(&mut self, event: &EngineEvent, now: Timestamp) -> TableResult<()> {
        self.publish_tenant_engine_event(&Tenant::no_tenant(), event, now).map(drop)
    }

    /// Publishes an engine event about an order or task of a tenant.
    pub(crate) fn publish_tenant_engine_event(
        &mut self,
        tenant: &Tenant,
        event: &EngineEvent,
        now: Timestamp,
    ) -> TableResult<EventId> {
        let event =
            Event { tenant: tenant.clone(), ..event.to_event(self.state.event_id_generator.next(now)) };
        self.insert_event(&event, TaskSeq(0), 0)?;
        Ok(event.id)
    }

    pub(crate) fn apply_order_command(
        &mut self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
        now: Timestamp,
    ) -> TableResult<Result<(), OrderError>> {
        let Some(order_row) = self.tables.find_order_by_key(tenant, key)? else {
            return Ok(Err(OrderError::NoSuchOrder(key.clone())));
        };
        let is_running = order_row.order.step_running;
        match command {
            OrderCommand::Suspend => drop(self.apply_order_input(order_row, OrderInput::Suspend, now)?),
            OrderCommand::Resume => drop(self.apply_order_input(order_row, OrderInput::Resume, now)?),
            OrderCommand::Remove | OrderCommand::Change { .. } if is_running => {
                return Ok(Err(OrderError::StepRunning(key.clone())));
            }
            OrderCommand::Remove => drop(self.apply_order_input(order_row, OrderInput::Remove, now)?),
            OrderCommand::Change { value, node, planned_at } => {
                return self.change_order(order_row, value, node, planned_at, now);
            }
        }
        Ok(Ok(()))
    }

    fn change_order(
        &mut self,
        mut order_row: OrderRow,
        value: Option<Json>,
        node: Option<ChainNodeId>,
        planned_at: Option<Timestamp>,
        now: Timestamp,
    ) -> TableResult<Result<(), OrderError>> {
        let path = order_row.order.key.chain.clone();
        if let Some(target_node) = &node {
            let Some(chain) =
                self.state.chains.find_chain(&path).and_then(|chain_row| chain_row.current_definition())
            else {
                return Ok(Err(OrderError::NoSuchChain(path)));
            };
            if chain.find_node(target_node).is_none() {
                return Ok(Err(OrderError::NoSuchNode(path, target_node.clone())));
            }
        }
        let target_node = node.filter(|node| *node != order_row.order.node);
        let value = value.filter(|value| *value != order_row.order.value);
        let is_replaced = value.is_some() || planned_at.is_some();
        if let Some(value) = value {
            order_row.order.value = value;
            self.tables.update_order(&order_row)?;
        }
        if planned_at.is_some() {
            order_row.order.planned_at = planned_at;
            // The task was created for the old time. It is canceled here, and created again below.
            let task = order_row.order.task_seq.take();
            self.tables.update_order(&order_row)?;
            self.cancel_step_task(task, now)?;
        }
        if is_replaced {
            let key = format!("Order:{}", order_row.order.key);
            let replaced = EngineEvent::FileBasedChanged { change: FileBasedChange::Replaced, key };
            self.publish_tenant_engine_event(&order_row.order.tenant, &replaced, now)?;
        }
        self.apply_order_input(
            order_row,
            target_node
                .map_or(OrderInput::Reevaluate, |target_node| OrderInput::MoveTo { node: target_node }),
            now,
        )?;
        Ok(Ok(()))
    }

    /// Applies an input to the order with this number, if it exists.
    pub(crate) fn apply_input_to_order_number(
        &mut self,
        number: i64,
        input: OrderInput,
        now: Timestamp,
    ) -> TableResult<()> {
        match self.tables.read_order(number)? {
            Some(order_row) => self.apply_order_input(order_row, input, now).map(drop),
            None => Ok(()),
        }
    }

    /// Applies an input to an order; returns the order afterwards.
    pub(crate) fn apply_order_input(
        &mut self,
        order_row: OrderRow,
        input: OrderInput,
        now: Timestamp,
    ) -> TableResult<OrderRow> {
        let OrderRow { number, order } = order_row;
        let before = order.clone();
        let chain_row = self.state.chains.find_chain(&order.key.chain).cloned();
        let state = chain_row.as_ref().map_or_else(ChainState::default, |chain_row| chain_row.state.clone());
        let chain = chain_row.as_ref().and_then(|chain_row| chain_row.current_definition());
        let (order, effects) = order.apply(input, chain, &state, now);
        let mut order_row = OrderRow { number, order };
        let (mut canceled_task, mut outcome) = (None, None);
        for effect in effects {
            match effect {
                OrderEffect::Publish(event) => {
                    self.publish_tenant_engine_event(&before.tenant, &event, now)?;
                }
                OrderEffect::CreateTask { handler } => {
                    order_row.order.task_seq = self.create_step_task(&order_row, &handler, now)?
                }
                OrderEffect::KeepOrReplaceTask { handler } => {
                    if !self.is_task_of_step(order_row.order.task_seq, &order_row.order.node, &handler)? {
                        canceled_task = order_row.order.task_seq;
                        order_row.order.task_seq = self.create_step_task(&order_row, &handler, now)?;
                    }
                }
                OrderEffect::CancelTask => canceled_task = before.task_seq,
                OrderEffect::EndOrder(order_outcome) => outcome = Some(order_outcome),
            }
        }
        if mutable_order_fields(&order_row.order) != mutable_order_fields(&before) {
            self.tables.update_order(&order_row)?;
        }
        self.cancel_step_task(canceled_task, now)?;
        if let Some(outcome) = outcome {
            self.delete_order_and_record_outcome(&order_row, outcome, now)?;
        }
        // The running step has the order cached; the cache may be on another node.
        let Some(task) = order_row.order.task_seq else { return Ok(order_row) };
        match self.state.running_tasks.get_mut(&task) {
            Some(running) => running.order = Some(order_row.clone()),
            None if before.step_running && order_row.order.step_running => {
                self.tables.invalidate_task_on_peers(task)
            }
            None => {}
        }
        Ok(order_row)
    }

    /// Deletes an ended order and records its outcome. A generated id is never used for a second order, so it needs no
    /// record.
    fn delete_order_and_record_outcome(
        &mut self,
        order_row: &OrderRow,
        outcome: OrderOutcome,
        now: Timestamp,
    ) -> TableResult<()> {
        self.tables.delete_order(order_row.number)?;
        if order_row.order.key.id.is_generated() {
            return Ok(());
        }
        let Order { key, tenant, node, .. } = order_row.order.clone();
        self.tables.write_ended_order(&EndedOrder { key, tenant, outcome, node, ended_at: now })
    }

    /// Cancels a step task that its order no longer needs. A task without an attempt is deleted and leaves no record.
    fn cancel_step_task(&mut self, task: Option<TaskSeq>, now: Timestamp) -> TableResult<()> {
        let Some(task_row) = task.map(|task| self.tables.read_active_task(task)).transpose()?.flatten()
        else {
            return Ok(());
        };
        if task_row.lifecycle.attempt == 0 {
            self.tables.delete_active_task(&task_row)?;
            return self.state.update_counts_for_phase_change(task_row.queue, Some(task_row.phase), None);
        }
        // The command is rejected if the task has already ended; then there is nothing to cancel.
        let _ =
            self.apply_command_to_active_task(task_row, TaskCommand::Cancel, AttemptOutput::default(), now)?;
        Ok(())
    }

    /// Returns whether a waiting task belongs to this chain node and handler.
    fn is_task_of_step(
        &mut self,
        task: Option<TaskSeq>,
        node: &ChainNodeId,
        handler: &HandlerName,
    ) -> TableResult<bool> {
        let Some(task) = task else { return Ok(false) };
        let Some(task_row) = self.tables.read_active_task(task)? else { return Ok(false) };
        let queue = self.state.queue(task_row.queue)?;
        let is_at_node =
            matches!(&queue.subject, QueueSubject::ChainNode { node: queue_node, .. } if queue_node == node);
        Ok(is_at_node && self.state.handler(queue.handler)?.def.name == *handler)
    }

    /// Creates the task of an order's step. If the handler was never registered, the order gets no task.
    fn create_step_task(
        &mut self,
        order_row: &OrderRow,
        handler: &HandlerName,
        now: Timestamp,
    ) -> TableResult<Option<TaskSeq>> {
        let order = &order_row.order;
        let Some(handler) = self.state.find_handler(handler).cloned() else { return Ok(None) };
        let subject = QueueSubject::ChainNode { chain: order.key.chain.clone(), node: order.node.clone() };
        let queue = self.state.get_or_create_collection_or_chain_node_queue(
            self.tables,
            handler.id,
            &order.tenant,
            subject,
        )?;
        let due = order.planned_at.unwrap_or(now).max(now);
        let seq = self.state.allocate_task_numbers(1);
        let mut task_row = ActiveTaskRow {
            seq,
            queue,
            event: None,
            order_number: Some(order_row.number),
            phase: TaskPhase::Ready,
            lane: None,
            lane_position: None,
            concurrency_group: None,
            key_bucket: None,
            is_sync: false,
            sync_stage: 0,
            priority: order.priority.into(),
            score: handler.def.limits.task_score_in_queue(order.priority, now),
            rank: 0,
            prev_sent_event: None,
            planned_at: order.planned_at.filter(|_| order.started_at.is_none()),
            created_at: now,
            started_at: None,
            error: None,
            lifecycle: TaskLifecycle::new(due, false),
        };
        (task_row.phase, task_row.rank) =
            self.phase_when_unblocked(&WaitingTask::from_row(&task_row, due), now)?;
        self.tables.insert_active_task(&task_row)?;
        self.state.update_counts_for_phase_change(queue, None, Some(task_row.phase))?;
        Ok(Some(seq))
    }

    /// Returns the order step that a task runs.
    pub(crate) fn build_step_run_of_task(
        &self,
        task_row: &ActiveTaskRow,
        order: &OrderRow,
    ) -> TableResult<StepRun> {
        match &self.state.queue(task_row.queue)?.subject {
            QueueSubject::ChainNode { node, .. } => order.build_step_run(node),
            QueueSubject::Events | QueueSubject::Collection(_) => {
                Err(Fault::damaged("a step is in a queue of another kind"))
            }
        }
    }

    /// Returns the order whose step a task is.
    pub(crate) fn read_order_of_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<Option<OrderRow>> {
        let Some(number) = task_row.order_number else { return Ok(None) };
        let order = self.tables.read_order(number)?;
        order
            .ok_or_else(|| Fault::damaged(format!("the order of task {} does not exist", task_row.seq)))
            .map(Some)
    }

    /// Applies the start of a step's attempt to its order.
    pub(crate) fn record_step_start(
        &mut self,
        order: Option<OrderRow>,
        task: &TaskId,
        now: Timestamp,
    ) -> TableResult<Option<OrderRow>> {
        let Some(order) = order else { return Ok(None) };
        self.apply_order_input(order, OrderInput::StepStarted { task: task.clone() }, now).map(Some)
    }

    /// Applies the end of a step's attempt to its order. `order` is the cached order, if there is one.
    pub(crate) fn record_step_end(
        &mut self,
        task_row: &ActiveTaskRow,
        order: Option<OrderRow>,
        outcome: Option<StepOutcome>,
        now: Timestamp,
    ) -> TableResult<()> {
        let (Some(number), Some(outcome)) = (task_row.order_number, outcome) else { return Ok(()) };
        let order = match order {
            Some(order) => Some(order),
            None => self.tables.read_order(number)?,
        };
        match order {
            // An order that has moved on from the task ignores its end.
            Some(order_row) if order_row.order.task_seq == Some(task_row.seq) => {
                self.apply_order_input(order_row, OrderInput::StepEnded(outcome), now).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns the fields of an order that can change and that its row stores.
fn mutable_order_fields(order: &Order) -> impl PartialEq + '_ {
    let Order {
        node,
        value,
        planned_at,
        started_at,
        suspended,
        task_seq: task,
        step_succeeded_at_removed_node: step_succeeded,
        suspended_by_task_seq: suspended_by_task,
        took_on_error,
        ..
    } = order;
    (
        node,
        value.as_str(),
        planned_at,
        started_at,
        suspended,
        task,
        step_succeeded,
        suspended_by_task,
        took_on_error,
    )
}

/// Returns the outcome that a command to a step's task has for the step; `None` if the command does not end an attempt.
pub(crate) fn step_outcome_of_command(
    task_row: &ActiveTaskRow,
    command: TaskCommand,
    lifecycle: &TaskLifecycle,
    output: AttemptOutput<'_>,
) -> Option<StepOutcome> {
    let has_ended = matches!(lifecycle.state, TaskState::Done | TaskState::Error { .. });
    Some(match command {
        TaskCommand::Succeed { .. } => StepOutcome::Success { value: output.result.map(Json::from_trusted) },
        TaskCommand::Fail { .. } | TaskCommand::ExpireLease { .. } if has_ended => {
            StepOutcome::FailedForGood { return_code: output.return_code }
        }
        TaskCommand::Fail { .. } => StepOutcome::WillRetry,
        TaskCommand::ExpireLease { .. } | TaskCommand::Snooze { .. } | TaskCommand::Release { .. } => {
            StepOutcome::Unfinished
        }
        TaskCommand::Cancel => StepOutcome::Canceled { was_running: task_row.phase == TaskPhase::Locked },
        TaskCommand::Schedule
        | TaskCommand::Unschedule
        | TaskCommand::Lock(_)
        | TaskCommand::RenewLease { .. }
        | TaskCommand::Retry
        | TaskCommand::MarkMissing
        | TaskCommand::AdoptMissing => return None,
    })
}
