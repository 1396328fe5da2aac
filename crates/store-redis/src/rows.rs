//! Encoding and decoding of stored rows.

use pointsman_core::chain::ChainNodeId as ChainNode;
use pointsman_core::fire::Fire;
use pointsman_core::order::{EndedOrder, Order, OrderOrigin};
use pointsman_core::store::{AuditEntry, NodeCapabilities, NodeId, NodeView};
use pointsman_core::task::{AttemptRecord, Lease, QueueSubject, TaskLifecycle};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, HandlerId, ObjectRow, OrderRow, QueueCounts, QueueId,
    QueueRow, ScheduleRow, TaskPhase, decode_attempt_outcome, encode_attempt_outcome, encode_error_reason,
};
use pointsman_store::tables::Counters;
use pointsman_store::views::{EventColumns, encode_context};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{RowDecoder, RowEncoder};

fn timestamp_from_micros(number: i64) -> Timestamp {
    Timestamp::from_micros(number)
}

fn to_event_id(number: i64) -> EventId {
    EventId::from_i64(number)
}

fn to_u32(number: i64) -> TableResult<u32> {
    u32::try_from(number).map_err(Fault::damaged)
}

/// Encodes a value as JSON: the encoding of rows that are rarely written.
pub(crate) fn encode_json(value: &impl Serialize) -> TableResult<Vec<u8>> {
    serde_json::to_vec(value).map_err(Fault::damaged)
}

pub(crate) fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> TableResult<T> {
    serde_json::from_slice(bytes).map_err(Fault::damaged)
}

pub(crate) fn decode_text(bytes: &[u8]) -> TableResult<String> {
    String::from_utf8(bytes.to_vec()).map_err(Fault::damaged)
}

// --- events ------------------------------------------------------------------------------------------------------

/// An event of the journal, and which tasks were created with it.
#[derive(Clone, Debug)]
pub(crate) struct JournaledEvent {
    pub(crate) event: Event,
    pub(crate) first_task: TaskSeq,
    pub(crate) task_count: i64,
}

impl JournaledEvent {
    /// Returns the numbers of the tasks that were created with the event.
    pub(crate) fn task_seqs(&self) -> impl Iterator<Item = TaskSeq> + use<> {
        let Self { first_task, task_count, .. } = self;
        (first_task.0..first_task.0 + task_count).map(TaskSeq)
    }
}

/// Encodes an event. The first eight bytes are `prev`, which `object_events.lua` reads.
pub(crate) fn encode_event(event: &Event, first_task: TaskSeq, task_count: usize) -> TableResult<Vec<u8>> {
    let context = encode_context(event)?;
    Ok(RowEncoder::with_capacity(event.value.as_str().len() + 64)
        .fixed_i64(event.prev.map_or(0, EventId::as_i64))
        .varint(first_task.0)
        .varint(task_count as i64)
        .text(event.event_type.as_str())
        .optional_text(event.key.as_ref().map(|key| key.as_str()))
        .optional_text(event.sub_object.as_ref().map(|sub| sub.as_str()))
        .text(event.tenant.as_str())
        .text(event.value.as_str())
        .optional_text(context.as_deref())
        .optional_varint(event.cause.map(|cause| cause.task.0))
        .optional_varint(event.cause.and_then(|cause| cause.event).map(EventId::as_i64))
        .varint(event.cause_depth().into())
        .finish())
}

pub(crate) fn decode_event(event: EventId, bytes: &[u8]) -> TableResult<JournaledEvent> {
    let mut row = RowDecoder::new(bytes);
    let prev = Some(row.fixed_i64()?).filter(|prev| *prev != 0);
    let (first_task, task_count) = (TaskSeq(row.varint()?), row.varint()?);
    let columns = EventColumns {
        id: event.as_i64(),
        prev,
        event_type: row.text()?,
        key: row.optional_text()?,
        sub: row.optional_text()?,
        tenant: row.text()?,
        value: row.text()?,
        context: row.optional_text()?,
        cause_task: row.optional_varint()?,
        cause_event: row.optional_varint()?,
        cause_depth: u16::try_from(row.varint()?).map_err(Fault::damaged)?,
    };
    Ok(JournaledEvent { event: columns.into_event()?, first_task, task_count })
}

/// Encodes an object, and the event at which retention last found it in use.
pub(crate) fn encode_object(object: &ObjectRow, retention_check: EventId) -> Vec<u8> {
    let row = RowEncoder::default()
        .varint(object.number)
        .varint(object.last_event.as_i64())
        .bytes(&object.encode_last_sent_events());
    row.varint(retention_check.as_i64()).finish()
}

/// Decodes the event at which retention last found an object in use; `None` if an older version wrote the row.
pub(crate) fn decode_object_retention_check_event(bytes: &[u8]) -> TableResult<Option<EventId>> {
    let mut row = RowDecoder::new(bytes);
    let (_number, _last, _sent) = (row.varint()?, row.varint()?, row.bytes()?);
    if row.expect_end().is_ok() { Ok(None) } else { row.varint().map(|event| Some(to_event_id(event))) }
}

pub(crate) fn decode_object(bytes: &[u8]) -> TableResult<ObjectRow> {
    let mut row = RowDecoder::new(bytes);
    Ok(ObjectRow {
        number: row.varint()?,
        last_event: to_event_id(row.varint()?),
        last_sent_events: ObjectRow::decode_last_sent_events(row.bytes()?),
    })
}

// --- tasks -------------------------------------------------------------------------------------------------------

/// Encodes an active task. The first eight bytes are the id of its event, which `ready_tasks.lua` reads.
pub(crate) fn encode_active_task(active: &ActiveTaskRow) -> Vec<u8> {
    encode_active_task_with_due_time(active, active.due_time())
}

/// Encodes an active task with its due time, which the state of a locked task does not contain.
pub(crate) fn encode_active_task_with_due_time(active: &ActiveTaskRow, due: Timestamp) -> Vec<u8> {
    let lease = active.lease();
    RowEncoder::with_capacity(80)
        .fixed_i64(active.event.map_or(0, EventId::as_i64))
        .varint(active.seq.0)
        .varint(active.queue)
        .varint(active.phase.code())
        .optional_varint(active.order_number)
        .optional_varint(active.lane)
        .optional_varint(active.lane_position.map(|lane_position| lane_position - active.seq.0))
        .optional_varint(active.concurrency_group)
        .optional_varint(active.key_bucket.map(i64::from))
        .flag(active.is_sync)
        .varint(active.sync_stage)
        .varint(active.priority)
        .varint(active.score)
        .varint(active.rank)
        .optional_varint(active.prev_sent_event.map(EventId::as_i64))
        .optional_varint(active.planned_at.map(Timestamp::micros))
        .varint(active.created_at.micros())
        .varint(due.micros() - active.created_at.micros())
        .optional_varint(active.started_at.map(Timestamp::micros))
        .optional_text(active.error.as_deref())
        .varint(active.lifecycle.attempt.into())
        .varint(active.lifecycle.retries.into())
        .varint(active.lifecycle.crashes.into())
        .flag(active.lifecycle.out_of_order)
        .optional_varint(active.lifecycle.state.error_reason().map(encode_error_reason))
        .optional_varint(lease.map(|lease| lease.node))
        .optional_varint(lease.map(|lease| lease.fence))
        .optional_varint(lease.and_then(|lease| lease.until).map(Timestamp::micros))
        .finish()
}

/// Decodes only the id of the event of an active task.
pub(crate) fn decode_active_task_event_id(bytes: &[u8]) -> TableResult<Option<EventId>> {
    Ok(Some(RowDecoder::new(bytes).fixed_i64()?).filter(|event| *event != 0).map(to_event_id))
}

pub(crate) fn decode_active_task(bytes: &[u8]) -> TableResult<ActiveTaskRow> {
    decode_active_task_with_due_time(bytes).map(|(active, _)| active)
}

pub(crate) fn decode_active_task_with_due_time(bytes: &[u8]) -> TableResult<(ActiveTaskRow, Timestamp)> {
    let mut row = RowDecoder::new(bytes);
    let event = Some(row.fixed_i64()?).filter(|event| *event != 0).map(to_event_id);
    let (seq, queue) = (TaskSeq(row.varint()?), row.varint()?);
    let phase = TaskPhase::from_code(row.varint()?).ok_or_else(|| Fault::damaged("a task's phase"))?;
    let (order, lane, lane_position) = (
        row.optional_varint()?,
        row.optional_varint()?,
        row.optional_varint()?.map(|lane_position| lane_position + seq.0),
    );
    let (group, bucket) = (row.optional_varint()?, row.optional_varint()?);
    let (sync, sync_stage, priority, score, rank) =
        (row.flag()?, row.varint()?, row.varint()?, row.varint()?, row.varint()?);
    let (prev_sent, planned) =
        (row.optional_varint()?.map(to_event_id), row.optional_varint()?.map(timestamp_from_micros));
    let created = row.varint()?;
    let due = timestamp_from_micros(created + row.varint()?);
    let started = row.optional_varint()?.map(timestamp_from_micros);
    let error = row.optional_text()?.map(str::to_string);
    let (attempt, retries, crashes) =
        (to_u32(row.varint()?)?, to_u32(row.varint()?)?, to_u32(row.varint()?)?);
    let (out_of_order, reason) = (row.flag()?, row.optional_varint()?);
    let (node, fence, until) = (row.optional_varint()?, row.optional_varint()?, row.optional_varint()?);
    let lease = || {
        let node_and_fence = node.zip(fence).ok_or_else(|| Fault::damaged("a locked task without a lease"));
        node_and_fence.map(|(node, fence)| Lease {
            node,
            fence,
            since: started.unwrap_or_default(),
            until: until.map(timestamp_from_micros),
        })
    };
    let active = ActiveTaskRow {
        seq,
        queue,
        event,
        order_number: order,
        phase,
        lane,
        lane_position,
        concurrency_group: group,
        key_bucket: bucket.map(u16::try_from).transpose().map_err(Fault::damaged)?,
        is_sync: sync,
        sync_stage,
        priority,
        score,
        rank,
        prev_sent_event: prev_sent,
        planned_at: planned,
        created_at: timestamp_from_micros(created),
        started_at: started,
        error,
        lifecycle: TaskLifecycle {
            state: ActiveTaskRow::decode_state(phase, due, lease, reason)?,
            attempt,
            retries,
            crashes,
            out_of_order,
            has_lane: lane.is_some(),
            in_lane: lane_position.is_some(),
        },
    };
    Ok((active, due))
}

pub(crate) fn encode_archived_task(archived: &ArchivedTaskRow) -> Vec<u8> {
    RowEncoder::with_capacity(100)
        .varint(archived.seq.0)
        .varint(archived.queue)
        .optional_varint(archived.event.map(EventId::as_i64))
        .text(&archived.subject_name)
        .optional_text(archived.key.as_deref())
        .flag(archived.is_sync)
        .varint(archived.sync_stage)
        .varint(archived.priority)
        .varint(archived.encode_status())
        .optional_varint(archived.lifecycle.state.error_reason().map(encode_error_reason))
        .varint(archived.lifecycle.attempt.into())
        .varint(archived.lifecycle.retries.into())
        .varint(archived.lifecycle.crashes.into())
        .flag(archived.lifecycle.out_of_order)
        .flag(archived.lifecycle.has_lane)
        .optional_varint(archived.prev_sent_event.map(EventId::as_i64))
        .optional_varint(archived.planned_at.map(Timestamp::micros))
        .varint(archived.created_at.micros())
        .optional_varint(archived.started_at.map(Timestamp::micros))
        .varint(archived.finished_at.micros())
        .optional_text(archived.error.as_deref())
        .optional_text(archived.result.as_deref())
        .finish()
}

pub(crate) fn decode_archived_task(bytes: &[u8]) -> TableResult<ArchivedTaskRow> {
    let mut row = RowDecoder::new(bytes);
    Ok(ArchivedTaskRow {
        seq: TaskSeq(row.varint()?),
        queue: row.varint()?,
        event: row.optional_varint()?.map(to_event_id),
        subject_name: row.text()?.into(),
        key: row.optional_text()?.map(str::to_string),
        is_sync: row.flag()?,
        sync_stage: row.varint()?,
        priority: row.varint()?,
        lifecycle: TaskLifecycle {
            state: ArchivedTaskRow::decode_state(row.varint()?, row.optional_varint()?)?,
            attempt: to_u32(row.varint()?)?,
            retries: to_u32(row.varint()?)?,
            crashes: to_u32(row.varint()?)?,
            out_of_order: row.flag()?,
            has_lane: row.flag()?,
            in_lane: false,
        },
        prev_sent_event: row.optional_varint()?.map(to_event_id),
        planned_at: row.optional_varint()?.map(timestamp_from_micros),
        created_at: timestamp_from_micros(row.varint()?),
        started_at: row.optional_varint()?.map(timestamp_from_micros),
        finished_at: timestamp_from_micros(row.varint()?),
        error: row.optional_text()?.map(str::to_string),
        result: row.optional_text()?.map(str::to_string),
    })
}

pub(crate) fn encode_attempt(attempt: &AttemptRow<'_>) -> Vec<u8> {
    RowEncoder::default()
        .varint(attempt.started_at.micros())
        .varint(attempt.ended_at.micros())
        .varint(encode_attempt_outcome(attempt.outcome))
        .optional_text(attempt.error)
        .finish()
}

pub(crate) fn decode_attempt(number: u32, bytes: &[u8]) -> TableResult<AttemptRecord> {
    let mut row = RowDecoder::new(bytes);
    Ok(AttemptRecord {
        number,
        started_at: timestamp_from_micros(row.varint()?),
        ended_at: timestamp_from_micros(row.varint()?),
        outcome: decode_attempt_outcome(row.varint()?)?,
        error: row.optional_text()?.map(str::to_string),
    })
}

// --- queues, nodes, audit entries --------------------------------------------------------------------------------

pub(crate) fn encode_queue(handler: HandlerId, tenant: &Tenant, subject: &QueueSubject) -> Vec<u8> {
    RowEncoder::default().varint(handler).text(tenant.as_str()).text(&subject.to_text()).finish()
}

pub(crate) fn decode_queue(id: QueueId, bytes: &[u8], counts: QueueCounts) -> TableResult<QueueRow> {
    let mut row = RowDecoder::new(bytes);
    Ok(QueueRow {
        id,
        handler: row.varint()?,
        tenant: Tenant::new(row.text()?).map_err(Fault::damaged)?,
        subject: QueueSubject::from_text(row.text()?).map_err(Fault::damaged)?,
        counts,
    })
}

/// Returns whether the tasks of an encoded queue synchronise a collection of a source.
pub(crate) fn is_source_queue(bytes: &[u8]) -> TableResult<bool> {
    let mut row = RowDecoder::new(bytes);
    row.varint()?;
    row.bytes()?;
    let subject = row.text()?;
    Ok(!subject.is_empty()
        && QueueSubject::from_text(subject).map_err(Fault::damaged)?.collection().is_some())
}

pub(crate) fn encode_queue_counts(counts: &QueueCounts) -> Vec<u8> {
    let QueueCounts { ready, waiting, scheduled, running, halted, missing } = *counts;
    RowEncoder::default()
        .varint(ready)
        .varint(waiting)
        .varint(scheduled)
        .varint(running)
        .varint(halted)
        .varint(missing)
        .finish()
}

pub(crate) fn decode_queue_counts(bytes: &[u8]) -> TableResult<QueueCounts> {
    let mut row = RowDecoder::new(bytes);
    Ok(QueueCounts {
        ready: row.varint()?,
        waiting: row.varint()?,
        scheduled: row.varint()?,
        running: row.varint()?,
        halted: row.varint()?,
        missing: row.varint()?,
    })
}

/// A stored node. Times are microseconds since 1970; the capabilities are JSON, or empty if the node never reported any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRow<'b> {
    pub(crate) name: &'b str,
    pub(crate) joined_at: i64,
    pub(crate) last_heartbeat_at: i64,
    pub(crate) has_left: bool,
    pub(crate) capabilities_json: &'b str,
}

impl<'b> NodeRow<'b> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { name, joined_at, last_heartbeat_at, has_left, capabilities_json } = *self;
        RowEncoder::default()
            .text(name)
            .varint(joined_at)
            .varint(last_heartbeat_at)
            .flag(has_left)
            .text(capabilities_json)
            .finish()
    }

    pub(crate) fn decode(bytes: &'b [u8]) -> TableResult<Self> {
        let mut row = RowDecoder::new(bytes);
        Ok(Self {
            name: row.text()?,
            joined_at: row.varint()?,
            last_heartbeat_at: row.varint()?,
            has_left: row.flag()?,
            capabilities_json: row.text()?,
        })
    }
}

pub(crate) fn encode_node(node: &NodeView) -> TableResult<Vec<u8>> {
    let capabilities = serde_json::to_string(&node.capabilities).map_err(Fault::damaged)?;
    let (joined_at, last_heartbeat_at) = (node.joined_at.micros(), node.last_heartbeat_at.micros());
    Ok(NodeRow {
        name: &node.name,
        joined_at,
        last_heartbeat_at,
        has_left: node.has_left_or_died,
        capabilities_json: &capabilities,
    }
    .encode())
}

/// Decodes a node. The number of its running tasks is not part of the row: the caller passes it.
pub(crate) fn decode_node(id: NodeId, bytes: &[u8], running_tasks: u64) -> TableResult<NodeView> {
    let NodeRow { name, joined_at, last_heartbeat_at, has_left, capabilities_json } = NodeRow::decode(bytes)?;
    let capabilities = match capabilities_json {
        "" => NodeCapabilities::default(),
        json => serde_json::from_str(json).map_err(Fault::damaged)?,
    };
    Ok(NodeView {
        id,
        name: name.into(),
        joined_at: timestamp_from_micros(joined_at),
        last_heartbeat_at: timestamp_from_micros(last_heartbeat_at),
        has_left_or_died: has_left,
        capabilities,
        running_task_count: running_tasks,
    })
}

pub(crate) fn encode_audit_entry(entry: &AuditEntry) -> Vec<u8> {
    RowEncoder::default()
        .varint(entry.at.micros())
        .text(&entry.actor)
        .text(&entry.action)
        .text(&entry.target)
        .text(&entry.detail)
        .finish()
}

pub(crate) fn decode_audit_entry(bytes: &[u8]) -> TableResult<AuditEntry> {
    let mut row = RowDecoder::new(bytes);
    Ok(AuditEntry {
        at: timestamp_from_micros(row.varint()?),
        actor: row.text()?.into(),
        action: row.text()?.into(),
        target: row.text()?.into(),
        detail: row.text()?.into(),
    })
}

// --- orders, fires, counters -------------------------------------------------------------------------------------

pub(crate) fn encode_order(order: &Order) -> Vec<u8> {
    RowEncoder::with_capacity(order.value.as_str().len() + 64)
        .text(&order.key.to_string())
        .text(order.tenant.as_str())
        .text(order.node.as_str())
        .text(order.value.as_str())
        .varint(order.priority.into())
        .optional_varint(order.planned_at.map(Timestamp::micros))
        .varint(order.created_at.micros())
        .optional_varint(order.origin.map(|origin| origin.event_id.as_i64()))
        .varint(order.origin.map_or(0, |origin| origin.cause_depth.into()))
        .optional_varint(order.started_at.map(Timestamp::micros))
        .flag(order.suspended)
        .optional_varint(order.task_seq.map(|task| task.0))
        .flag(order.step_succeeded_at_removed_node)
        .optional_varint(order.suspended_by_task_seq.map(|task| task.0))
        .flag(order.took_on_error)
        .finish()
}

/// Decodes an order, except `step_running`, which is not part of the row: the caller reads it from the order's task.
pub(crate) fn decode_order(number: i64, bytes: &[u8]) -> TableResult<OrderRow> {
    let mut row = RowDecoder::new(bytes);
    let (key, tenant, node) = (row.text()?, row.text()?, row.text()?);
    let (value, priority, planned, created) =
        (row.text()?, row.varint()?, row.optional_varint()?, row.varint()?);
    let (event, depth) = (row.optional_varint()?, u16::try_from(row.varint()?).map_err(Fault::damaged)?);
    let order = Order {
        key: key.parse().map_err(Fault::damaged)?,
        tenant: Tenant::new(tenant).map_err(Fault::damaged)?,
        node: ChainNode::new(node).map_err(Fault::damaged)?,
        value: Json::from_trusted(value),
        priority: Priority::try_from(priority).map_err(Fault::damaged)?,
        planned_at: planned.map(timestamp_from_micros),
        created_at: timestamp_from_micros(created),
        origin: event.map(|event| OrderOrigin { event_id: to_event_id(event), cause_depth: depth }),
        started_at: row.optional_varint()?.map(timestamp_from_micros),
        suspended: row.flag()?,
        task_seq: row.optional_varint()?.map(TaskSeq),
        step_running: false,
        step_succeeded_at_removed_node: row.flag()?,
        suspended_by_task_seq: row.optional_varint()?.map(TaskSeq),
        took_on_error: row.flag()?,
    };
    Ok(OrderRow { number, order })
}

pub(crate) fn encode_ended_order(order: &EndedOrder) -> Vec<u8> {
    RowEncoder::default()
        .text(&order.key.to_string())
        .text(order.tenant.as_str())
        .text(order.outcome.as_str())
        .text(order.node.as_str())
        .varint(order.ended_at.micros())
        .finish()
}

pub(crate) fn decode_ended_order(bytes: &[u8]) -> TableResult<EndedOrder> {
    let mut row = RowDecoder::new(bytes);
    Ok(EndedOrder {
        key: row.text()?.parse().map_err(Fault::damaged)?,
        tenant: Tenant::new(row.text()?).map_err(Fault::damaged)?,
        outcome: row.text()?.parse().map_err(Fault::damaged)?,
        node: ChainNode::new(row.text()?).map_err(Fault::damaged)?,
        ended_at: timestamp_from_micros(row.varint()?),
    })
}

pub(crate) fn encode_schedule(schedule: &ScheduleRow) -> Vec<u8> {
    let ScheduleRow { expression, processed_up_to, next_catch_up, last_registered_at, last_event } = schedule;
    RowEncoder::default()
        .text(expression)
        .varint(processed_up_to.micros())
        .optional_varint(next_catch_up.map(Timestamp::micros))
        .varint(last_registered_at.micros())
        .optional_varint(last_event.map(EventId::as_i64))
        .finish()
}

pub(crate) fn decode_schedule(bytes: &[u8]) -> TableResult<ScheduleRow> {
    let mut row = RowDecoder::new(bytes);
    Ok(ScheduleRow {
        expression: row.text()?.into(),
        processed_up_to: Timestamp::from_micros(row.varint()?),
        next_catch_up: row.optional_varint()?.map(Timestamp::from_micros),
        last_registered_at: Timestamp::from_micros(row.varint()?),
        last_event: row.optional_varint()?.map(EventId::from_i64),
    })
}

pub(crate) fn encode_fire(fire: &Fire) -> TableResult<Vec<u8>> {
    Ok(RowEncoder::default()
        .varint(fire.planned_at.micros())
        .varint(fire.recorded_at.micros())
        .bytes(&encode_json(&fire.outcome)?)
        .optional_varint(fire.event_id.map(EventId::as_i64))
        .optional_text(fire.task.as_ref().map(TaskId::as_str))
        .finish())
}

pub(crate) fn decode_fire(bytes: &[u8]) -> TableResult<Fire> {
    let mut row = RowDecoder::new(bytes);
    Ok(Fire {
        planned_at: timestamp_from_micros(row.varint()?),
        recorded_at: timestamp_from_micros(row.varint()?),
        outcome: decode_json(row.bytes()?)?,
        event_id: row.optional_varint()?.map(to_event_id),
        task: row.optional_text()?.map(TaskId::from_text),
    })
}

/// Appends the counters of the store to a row.
pub(crate) fn encode_counters(counters: &Counters, encoder: RowEncoder) -> RowEncoder {
    encoder
        .varint(counters.last_event.as_i64())
        .varint(counters.expired_up_to.as_i64())
        .varint(counters.last_task)
        .varint(counters.last_fence)
        .varint(counters.last_object)
        .varint(counters.last_order)
        .varint(counters.journaled_event_count)
        .varint(counters.archived_task_count)
        .optional_varint(counters.next_due.map(Timestamp::micros))
}

pub(crate) fn decode_counters(row: &mut RowDecoder<'_>) -> TableResult<Counters> {
    Ok(Counters {
        last_event: to_event_id(row.varint()?),
        expired_up_to: to_event_id(row.varint()?),
        last_task: row.varint()?,
        last_fence: row.varint()?,
        last_object: row.varint()?,
        last_order: row.varint()?,
        journaled_event_count: row.varint()?,
        archived_task_count: row.varint()?,
        next_due: row.optional_varint()?.map(timestamp_from_micros),
    })
}
