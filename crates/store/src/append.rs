//! Sequencing: gives events their ids and `prev`, writes them to the journal and creates their tasks.

use std::sync::Arc;

use pointsman_core::chain::{ChainPath, OrderId};
use pointsman_core::order::OrderOrigin;
use pointsman_core::store::{
    EmitBatch, EmitReceipt, EmittedEventReceipt, IdempotencyError, NewOrder, OrderError,
};
use pointsman_core::task::{TaskLifecycle, TaskSubject};
use pointsman_core::{Event, EventId, NewEvent, ObjectKey, Priority, TaskId, TaskSeq, Timestamp};

use crate::claim::PendingClaim;
use crate::error::{Fault, TableResult};
use crate::lanes::TaskGrouping;
use crate::row::{ActiveTaskRow, HandlerId, ObjectNumber, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;

impl<T: Tables> Txn<'_, T> {
    /// Appends the events of an emit. A repeat under the same idempotency key appends nothing and gets the first
    /// answer.
    pub(crate) fn append_emit_batch(
        &mut self,
        batch: EmitBatch,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<Result<EmitReceipt, IdempotencyError>> {
        match self.read_recorded_answer(batch.idempotency_key.as_ref())? {
            Ok(Some(events)) => return Ok(Ok(EmitReceipt { events, repeated: true })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict)),
        }
        let events = self.append_events(batch.events, slots, now)?;
        self.write_idempotency_record(batch.idempotency_key.as_ref(), &events, now)?;
        Ok(Ok(EmitReceipt { events, repeated: false }))
    }

    /// Appends events to the journal and creates their tasks. A task that can run at once is created leased if a claim
    /// slot is free.
    pub fn append_events(
        &mut self,
        events: Vec<NewEvent>,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<Vec<EmittedEventReceipt>> {
        events.into_iter().map(|event| self.append_event(event, None, slots, now)).collect()
    }

    /// Appends an event that got its id when it was taken out of an outbox. The event keeps that id unless an event
    /// with a greater id has been journaled in the meantime.
    pub fn append_event_with_preassigned_id(
        &mut self,
        event: NewEvent,
        preassigned_id: Option<EventId>,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<EmittedEventReceipt> {
        self.append_event(event, preassigned_id, slots, now)
    }

    fn append_event(
        &mut self,
        new_event: NewEvent,
        preassigned_id: Option<EventId>,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<EmittedEventReceipt> {
        let id = self.state.event_id_generator.use_preassigned_or_next(preassigned_id, now);
        let handlers = self.state.find_handlers_of_event_type(&new_event.event_type);
        let first_task = self.state.allocate_task_numbers(handlers.len());
        let object = match &new_event.key {
            Some(key) => Some(self.record_object_event(&new_event.tenant, key.as_str(), &handlers, id)?),
            None => None,
        };
        let prev = object.as_ref().and_then(|object| object.previous_event());
        let object_number = object.as_ref().map(|object| object.number);
        let (due, priority, planned_at) =
            (new_event.due.unwrap_or(now), new_event.priority, new_event.planned_at);
        let event = Arc::new(build_event(new_event, id, prev));
        self.insert_event(&event, first_task, handlers.len())?;
        if !handlers.is_empty() {
            self.state.recent_events.push_event(&event);
        }
        let mut tasks = Vec::with_capacity(handlers.len());
        let sync_count = handlers.iter().filter(|(_, is_sync)| *is_sync).count();
        for (index, (handler, is_sync)) in handlers.iter().enumerate() {
            let seq = TaskSeq(first_task.0 + index as i64);
            // Synchronous handlers come first in the list, so their index is their sync stage.
            let sync_stage = if *is_sync { index } else { sync_count } as i64;
            let prev_sent = object.as_ref().and_then(|object| object.previous_event_sent_to(*handler));
            let task = NewEventTask {
                seq,
                handler: *handler,
                is_sync: *is_sync,
                sync_stage,
                priority,
                due,
                prev_sent_event: prev_sent,
                planned_at,
                out_of_order: false,
            };
            tasks.push(self.create_event_task(task, &event, object_number, slots, now)?);
        }
        for chain in self.state.chains.find_chains_of_event_type(&event.event_type).iter() {
            self.add_order_for_event(&event, chain, priority, due, now)?;
        }
        Ok(EmittedEventReceipt { id, prev, tasks })
    }

    /// Adds the order that an event creates for a chain. Its order id is the event's id, which no other order has yet.
    fn add_order_for_event(
        &mut self,
        event: &Event,
        chain: &ChainPath,
        priority: Priority,
        due: Timestamp,
        now: Timestamp,
    ) -> TableResult<()> {
        let order = NewOrder {
            id: Some(OrderId::new(event.id.to_string()).map_err(Fault::damaged)?),
            value: event.value.clone(),
            planned_at: Some(due).filter(|due| *due > now),
            priority,
            tenant: event.tenant.clone(),
            origin: Some(OrderOrigin { event_id: event.id, cause_depth: event.cause_depth() }),
            ..NewOrder::new(chain.clone())
        };
        // If the chain no longer exists, the route has no effect.
        if let Err(OrderError::AlreadyExists(..)) =
            self.add_order_for_event_or_schedule(order.clone(), now)?
        {
            let _ = self.add_order_for_event_or_schedule(NewOrder { id: None, ..order }, now)?;
        }
        Ok(())
    }

    /// Inserts an event into the journal, with the number after that of the event before it.
    pub(crate) fn insert_event(
        &mut self,
        event: &Event,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        self.state.counters.journaled_event_count += 1;
        self.tables.insert_event(event, self.state.counters.journaled_event_count, first_task, task_count)
    }

    fn create_event_task(
        &mut self,
        task: NewEventTask,
        event: &Arc<Event>,
        object: Option<ObjectNumber>,
        slots: &mut PendingClaim,
        now: Timestamp,
    ) -> TableResult<TaskId> {
        let handler = self.state.handler(task.handler)?.clone();
        let queue = self.state.get_or_create_event_queue(self.tables, handler.id, &event.tenant)?;
        let TaskGrouping { lane, concurrency_group, key_bucket } =
            TaskGrouping::for_object(self.state.hash_salt, &handler, object);
        let has_lane = lane.is_some();
        let mut task_row = ActiveTaskRow {
            seq: task.seq,
            queue,
            event: Some(event.id),
            order_number: None,
            phase: TaskPhase::SyncGated,
            lane,
            lane_position: lane.map(|_| task.seq.0),
            concurrency_group,
            key_bucket,
            is_sync: task.is_sync,
            sync_stage: task.sync_stage,
            priority: task.priority.into(),
            score: handler.def.limits.task_score_in_queue(task.priority, now),
            rank: 0,
            prev_sent_event: task.prev_sent_event,
            planned_at: task.planned_at,
            created_at: now,
            started_at: None,
            error: None,
            lifecycle: if task.out_of_order {
                TaskLifecycle::new_out_of_order(task.due, has_lane)
            } else {
                TaskLifecycle::new(task.due, has_lane)
            },
        };
        let id = self.state.build_task_id(handler.id, event.event_type.as_str(), task_row.seq)?;
        if task_row.sync_stage > 0 {
            self.tables.insert_active_task(&task_row)?;
            self.state.update_counts_for_phase_change(queue, None, Some(TaskPhase::SyncGated))?;
            return Ok(id);
        }
        (task_row.phase, task_row.rank) = match self.is_lane_occupied(lane)? {
            true => (TaskPhase::BlockedByTask, 0),
            false => self.phase_when_unblocked(&WaitingTask::from_row(&task_row, task.due), now)?,
        };
        if self.may_create_task_locked(&task_row, &handler, slots, now)? {
            let subject = TaskSubject::Event(event.clone());
            self.create_locked_task(task_row, &handler, subject, slots, &id, now)?;
        } else {
            self.tables.insert_active_task(&task_row)?;
            self.state.update_counts_for_phase_change(queue, None, Some(task_row.phase))?;
        }
        Ok(id)
    }

    /// Creates a task for an event that the handler was not sent when the event was journaled. The task runs out of
    /// order, at the lowest priority.
    pub(crate) fn create_replay_task(
        &mut self,
        handler: HandlerId,
        event: &Arc<Event>,
        now: Timestamp,
    ) -> TableResult<TaskId> {
        let task = NewEventTask {
            seq: self.state.allocate_task_numbers(1),
            handler,
            is_sync: false,
            sync_stage: 0,
            priority: Priority::MIN,
            due: now,
            prev_sent_event: None,
            planned_at: None,
            out_of_order: true,
        };
        let object = self.read_object_number(&event.tenant, event.key.as_ref().map(ObjectKey::as_str))?;
        self.create_event_task(task, event, object, &mut PendingClaim::default(), now)
    }
}

/// Input of [`Txn::create_event_task`].
struct NewEventTask {
    seq: TaskSeq,
    handler: HandlerId,
    is_sync: bool,
    sync_stage: i64,
    priority: Priority,
    due: Timestamp,
    prev_sent_event: Option<EventId>,
    planned_at: Option<Timestamp>,
    out_of_order: bool,
}

fn build_event(new_event: NewEvent, id: EventId, prev: Option<EventId>) -> Event {
    Event {
        id,
        prev,
        event_type: new_event.event_type,
        key: new_event.key,
        sub_object: new_event.sub_object,
        value: new_event.value,
        context: new_event.context,
        tenant: new_event.tenant,
        cause: new_event.cause,
    }
}
