//! Conversion between copied rows and stored rows.

use pointsman_core::chain::ChainNodeId;
use pointsman_core::order::{EndedOrder, Order, OrderOrigin};
use pointsman_core::task::{Lease, LogLine, TaskLifecycle};
use pointsman_core::{Json, Priority, Rule, RuleKind, RuleScope, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, OrderRow, TaskPhase, decode_log_level, encode_error_reason,
    encode_log_level,
};
use pointsman_store::store_copy::CopyRow;
use pointsman_store::views::{EventColumns, encode_context};

use super::cells::{RowCells, copy_row};
use crate::rows::JournaledEvent;

pub(super) fn encode_event_row(
    JournaledEvent { event, first_task, task_count }: JournaledEvent,
) -> TableResult<CopyRow> {
    let context = encode_context(&event)?;
    Ok(copy_row![
        event.id,
        event.prev,
        event.event_type.as_str(),
        event.key.as_ref().map(|key| key.as_str()),
        event.sub_object.as_ref().map(|sub| sub.as_str()),
        event.tenant.as_str(),
        event.value.as_str(),
        context,
        event.cause.and_then(|cause| cause.event),
        event.cause.map(|cause| cause.task),
        i64::from(event.cause_depth()),
        first_task,
        task_count,
    ])
}

pub(super) fn decode_event_row(mut cells: RowCells) -> TableResult<JournaledEvent> {
    let (id, prev, event_type) = (cells.number()?, cells.optional_number()?, cells.text()?);
    let (key, sub, tenant) = (cells.optional_text()?, cells.optional_text()?, cells.text()?);
    let (value, context) = (cells.text()?, cells.optional_text()?);
    let columns = EventColumns {
        id,
        prev,
        event_type: &event_type,
        key: key.as_deref(),
        sub: sub.as_deref(),
        tenant: &tenant,
        value: &value,
        context: context.as_deref(),
        cause_event: cells.optional_number()?,
        cause_task: cells.optional_number()?,
        cause_depth: cells.bounded_number()?,
    };
    Ok(JournaledEvent {
        event: columns.into_event()?,
        first_task: TaskSeq(cells.number()?),
        task_count: cells.number()?,
    })
}

/// Encodes an active task. The due time is passed separately, because the state of a locked task does not contain it.
pub(super) fn encode_active_task_row(active: ActiveTaskRow, due: Timestamp) -> CopyRow {
    let lease = active.lease();
    copy_row![
        active.seq,
        active.queue,
        active.event,
        active.order_number,
        active.phase.code(),
        active.lane,
        active.lane_position,
        active.concurrency_group,
        active.key_bucket.map(i64::from),
        active.is_sync,
        active.sync_stage,
        active.priority,
        active.score,
        active.rank,
        due,
        active.lifecycle.attempt,
        active.lifecycle.retries,
        active.lifecycle.crashes,
        active.lifecycle.out_of_order,
        lease.map(|lease| lease.node),
        lease.map(|lease| lease.fence),
        lease.and_then(|lease| lease.until),
        active.started_at,
        active.prev_sent_event,
        active.planned_at,
        active.created_at,
        active.lifecycle.state.error_reason().map(encode_error_reason),
        active.error,
    ]
}

pub(super) fn decode_active_task_row(mut cells: RowCells) -> TableResult<(ActiveTaskRow, Timestamp)> {
    let (seq, queue, event, order) =
        (TaskSeq(cells.number()?), cells.number()?, cells.optional_event_id()?, cells.optional_number()?);
    let phase = TaskPhase::from_code(cells.number()?).ok_or_else(|| Fault::damaged("a task's phase"))?;
    let (lane, lane_position, group, bucket) = (
        cells.optional_number()?,
        cells.optional_number()?,
        cells.optional_number()?,
        cells.optional_number()?,
    );
    let (sync, sync_stage, priority) = (cells.flag()?, cells.number()?, cells.number()?);
    let (score, rank, due) = (cells.number()?, cells.number()?, cells.time()?);
    let (attempt, retries, crashes, out_of_order) =
        (cells.bounded_number()?, cells.bounded_number()?, cells.bounded_number()?, cells.flag()?);
    let (node, fence, until, started) =
        (cells.optional_number()?, cells.optional_number()?, cells.optional_time()?, cells.optional_time()?);
    let (prev_sent, planned, created) = (cells.optional_event_id()?, cells.optional_time()?, cells.time()?);
    let (reason, error) = (cells.optional_number()?, cells.optional_text()?);
    let lease = || {
        let node_and_fence = node.zip(fence).ok_or_else(|| Fault::damaged("a locked task without a lease"));
        node_and_fence.map(|(node, fence)| Lease { node, fence, since: started.unwrap_or_default(), until })
    };
    let state = ActiveTaskRow::decode_state(phase, due, lease, reason)?;
    let (has_lane, in_lane) = (lane.is_some(), lane_position.is_some());
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
        created_at: created,
        started_at: started,
        error,
        lifecycle: TaskLifecycle { state, attempt, retries, crashes, out_of_order, has_lane, in_lane },
    };
    Ok((active, due))
}

pub(super) fn encode_archived_task_row(archived: ArchivedTaskRow) -> CopyRow {
    let (status, reason) =
        (archived.encode_status(), archived.lifecycle.state.error_reason().map(encode_error_reason));
    copy_row![
        archived.seq,
        archived.queue,
        archived.event,
        archived.subject_name,
        archived.key,
        status,
        reason,
        archived.is_sync,
        archived.sync_stage,
        archived.priority,
        archived.lifecycle.attempt,
        archived.lifecycle.retries,
        archived.lifecycle.crashes,
        archived.lifecycle.out_of_order,
        archived.lifecycle.has_lane,
        archived.prev_sent_event,
        archived.planned_at,
        archived.created_at,
        archived.started_at,
        archived.finished_at,
        archived.error,
        archived.result,
    ]
}

pub(super) fn decode_archived_task_row(mut cells: RowCells) -> TableResult<ArchivedTaskRow> {
    let (seq, queue, event) = (TaskSeq(cells.number()?), cells.number()?, cells.optional_event_id()?);
    let (subject_name, key) = (cells.text()?, cells.optional_text()?);
    let state = ArchivedTaskRow::decode_state(cells.number()?, cells.optional_number()?)?;
    let (sync, sync_stage, priority) = (cells.flag()?, cells.number()?, cells.number()?);
    let lifecycle = TaskLifecycle {
        state,
        attempt: cells.bounded_number()?,
        retries: cells.bounded_number()?,
        crashes: cells.bounded_number()?,
        out_of_order: cells.flag()?,
        has_lane: cells.flag()?,
        in_lane: false,
    };
    Ok(ArchivedTaskRow {
        seq,
        queue,
        event,
        subject_name,
        key,
        is_sync: sync,
        sync_stage,
        priority,
        lifecycle,
        prev_sent_event: cells.optional_event_id()?,
        planned_at: cells.optional_time()?,
        created_at: cells.time()?,
        started_at: cells.optional_time()?,
        finished_at: cells.time()?,
        error: cells.optional_text()?,
        result: cells.optional_text()?,
    })
}

pub(super) fn encode_order_row(OrderRow { number, order }: OrderRow) -> CopyRow {
    copy_row![
        number,
        order.key.to_string(),
        order.key.chain.as_str(),
        order.node.as_str(),
        order.tenant.as_str(),
        order.value.as_str(),
        i64::from(order.priority),
        order.planned_at,
        order.created_at,
        order.started_at,
        order.suspended,
        order.task_seq,
        order.origin.map(|origin| origin.event_id),
        i64::from(order.origin.map_or(0, |origin| origin.cause_depth)),
        order.step_succeeded_at_removed_node,
        order.suspended_by_task_seq,
        order.took_on_error,
    ]
}

pub(super) fn decode_order_row(mut cells: RowCells) -> TableResult<OrderRow> {
    let (number, key, _chain, node) = (cells.number()?, cells.text()?, cells.text()?, cells.text()?);
    let (tenant, value, priority) = (cells.tenant()?, cells.text()?, cells.number()?);
    let (planned, created, started) = (cells.optional_time()?, cells.time()?, cells.optional_time()?);
    let (suspended, task) = (cells.flag()?, cells.optional_number()?.map(TaskSeq));
    let (event, depth) = (cells.optional_event_id()?, cells.bounded_number()?);
    let order = Order {
        key: key.parse().map_err(Fault::damaged)?,
        tenant,
        node: ChainNodeId::new(node).map_err(Fault::damaged)?,
        value: Json::from_trusted(value),
        priority: Priority::try_from(priority).map_err(Fault::damaged)?,
        planned_at: planned,
        created_at: created,
        origin: event.map(|event| OrderOrigin { event_id: event, cause_depth: depth }),
        started_at: started,
        suspended,
        task_seq: task,
        step_running: false,
        step_succeeded_at_removed_node: cells.flag()?,
        suspended_by_task_seq: cells.optional_number()?.map(TaskSeq),
        took_on_error: cells.flag()?,
    };
    Ok(OrderRow { number, order })
}

pub(super) fn encode_ended_order_row(order: EndedOrder) -> CopyRow {
    let EndedOrder { key, tenant, outcome, node, ended_at } = order;
    copy_row![key.to_string(), tenant.as_str(), outcome.as_str(), node.as_str(), ended_at]
}

pub(super) fn decode_ended_order_row(mut cells: RowCells) -> TableResult<EndedOrder> {
    Ok(EndedOrder {
        key: cells.text()?.parse().map_err(Fault::damaged)?,
        tenant: cells.tenant()?,
        outcome: cells.text()?.parse().map_err(Fault::damaged)?,
        node: ChainNodeId::new(cells.text()?).map_err(Fault::damaged)?,
        ended_at: cells.time()?,
    })
}

pub(super) fn encode_rule_row(rule: Rule) -> CopyRow {
    let name = rule.scope.name().to_string();
    let tenant = rule.tenant.as_ref().map_or("", Tenant::as_str);
    copy_row![rule.kind.as_str(), rule.scope.kind_name(), name, tenant, rule.set_by, rule.reason, rule.since]
}

pub(super) fn decode_rule_row(mut cells: RowCells) -> TableResult<Rule> {
    let (kind, scope_kind, name, tenant) = (cells.text()?, cells.text()?, cells.text()?, cells.text()?);
    let kind = RuleKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let tenant = Some(tenant).filter(|name| !name.is_empty());
    Ok(Rule {
        kind: kind.ok_or_else(|| Fault::damaged("the kind of a rule"))?,
        scope: RuleScope::parse(&scope_kind, &name).ok_or_else(|| Fault::damaged("the scope of a rule"))?,
        tenant: tenant.map(Tenant::new).transpose().map_err(Fault::damaged)?,
        set_by: cells.text()?,
        reason: cells.text()?,
        since: cells.time()?,
    })
}

pub(super) fn encode_log_line_row(task: TaskSeq, number: i64, line: LogLine) -> CopyRow {
    copy_row![task, number, line.time, encode_log_level(line.level), line.message]
}

/// Decodes a log line and its task. The number of the line is ignored: it is the position in the log.
pub(super) fn decode_log_line_row(mut cells: RowCells) -> TableResult<(TaskSeq, LogLine)> {
    let (task, _number, time) = (TaskSeq(cells.number()?), cells.number()?, cells.time()?);
    Ok((task, LogLine { time, level: decode_log_level(cells.number()?), message: cells.text()? }))
}
