//! Conversion between copied rows and stored rows.

use pointsman_core::chain::NodeId;
use pointsman_core::order::{EndedOrder, Order, Origin};
use pointsman_core::task::{Lease, Life, LogLine};
use pointsman_core::{Json, Place as RulePlace, Priority, Rule, RuleKind, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Live, Numbered, Past, Phase, level_code, level_of, reason_code};
use pointsman_store::transfer::Row;
use pointsman_store::views::{EventColumns, context_text};

use super::cells::{RowCells, copy_row};
use crate::rows::JournaledEvent;

pub(super) fn encode_event_row(
    JournaledEvent { event, first_task, task_count }: JournaledEvent,
) -> Result<Row> {
    let context = context_text(&event)?;
    Ok(copy_row![
        event.id,
        event.prev,
        event.kind.as_str(),
        event.key.as_ref().map(|key| key.as_str()),
        event.sub.as_ref().map(|sub| sub.as_str()),
        event.tenant.as_str(),
        event.value.as_str(),
        context,
        event.cause.and_then(|cause| cause.event),
        event.cause.map(|cause| cause.task),
        i64::from(event.depth()),
        first_task,
        task_count,
    ])
}

pub(super) fn decode_event_row(mut cells: RowCells) -> Result<JournaledEvent> {
    let (id, prev, kind) = (cells.number()?, cells.optional_number()?, cells.text()?);
    let (key, sub, tenant) = (cells.optional_text()?, cells.optional_text()?, cells.text()?);
    let (value, context) = (cells.text()?, cells.optional_text()?);
    let columns = EventColumns {
        id,
        prev,
        kind: &kind,
        key: key.as_deref(),
        sub: sub.as_deref(),
        tenant: &tenant,
        value: &value,
        context: context.as_deref(),
        cause_event: cells.optional_number()?,
        cause_task: cells.optional_number()?,
        depth: cells.bounded_number()?,
    };
    Ok(JournaledEvent {
        event: columns.event()?,
        first_task: TaskSeq(cells.number()?),
        task_count: cells.number()?,
    })
}

/// The due time is given separately, because the state of a locked task does not contain it.
pub(super) fn encode_active_task_row(live: Live, due: Timestamp) -> Row {
    let lease = live.lease();
    copy_row![
        live.seq,
        live.queue,
        live.event,
        live.order,
        live.phase.code(),
        live.lane,
        live.place,
        live.crowd,
        live.bucket.map(i64::from),
        live.sync,
        live.stage,
        live.priority,
        live.score,
        live.rank,
        due,
        live.life.attempt,
        live.life.retries,
        live.life.crashes,
        live.life.late,
        lease.map(|lease| lease.node),
        lease.map(|lease| lease.fence),
        lease.and_then(|lease| lease.until),
        live.started,
        live.prev_sent,
        live.planned,
        live.created,
        live.life.state.reason().map(reason_code),
        live.error,
    ]
}

pub(super) fn decode_active_task_row(mut cells: RowCells) -> Result<(Live, Timestamp)> {
    let (seq, queue, event, order) =
        (TaskSeq(cells.number()?), cells.number()?, cells.optional_event()?, cells.optional_number()?);
    let phase = Phase::from_code(cells.number()?).ok_or_else(|| Fault::damaged("a task's phase"))?;
    let (lane, place, crowd, bucket) = (
        cells.optional_number()?,
        cells.optional_number()?,
        cells.optional_number()?,
        cells.optional_number()?,
    );
    let (sync, stage, priority) = (cells.flag()?, cells.number()?, cells.number()?);
    let (score, rank, due) = (cells.number()?, cells.number()?, cells.time()?);
    let (attempt, retries, crashes, late) =
        (cells.bounded_number()?, cells.bounded_number()?, cells.bounded_number()?, cells.flag()?);
    let (node, fence, until, started) =
        (cells.optional_number()?, cells.optional_number()?, cells.optional_time()?, cells.optional_time()?);
    let (prev_sent, planned, created) = (cells.optional_event()?, cells.optional_time()?, cells.time()?);
    let (reason, error) = (cells.optional_number()?, cells.optional_text()?);
    let lease = || {
        let whole = node.zip(fence).ok_or_else(|| Fault::damaged("a locked task without a lease"));
        whole.map(|(node, fence)| Lease { node, fence, since: started.unwrap_or_default(), until })
    };
    let state = Live::state(phase, due, lease, reason)?;
    let (laned, ordered) = (lane.is_some(), place.is_some());
    let live = Live {
        seq,
        queue,
        event,
        order,
        phase,
        lane,
        place,
        crowd,
        bucket: bucket.map(u16::try_from).transpose().map_err(Fault::damaged)?,
        sync,
        stage,
        priority,
        score,
        rank,
        prev_sent,
        planned,
        created,
        started,
        error,
        life: Life { state, attempt, retries, crashes, late, laned, ordered },
    };
    Ok((live, due))
}

pub(super) fn encode_archived_task_row(past: Past) -> Row {
    let (status, reason) = (past.status_code(), past.life.state.reason().map(reason_code));
    copy_row![
        past.seq,
        past.queue,
        past.event,
        past.collection,
        past.key,
        status,
        reason,
        past.sync,
        past.stage,
        past.priority,
        past.life.attempt,
        past.life.retries,
        past.life.crashes,
        past.life.late,
        past.life.laned,
        past.prev_sent,
        past.planned,
        past.created,
        past.started,
        past.finished,
        past.error,
        past.result,
    ]
}

pub(super) fn decode_archived_task_row(mut cells: RowCells) -> Result<Past> {
    let (seq, queue, event) = (TaskSeq(cells.number()?), cells.number()?, cells.optional_event()?);
    let (collection, key) = (cells.text()?, cells.optional_text()?);
    let state = Past::state(cells.number()?, cells.optional_number()?)?;
    let (sync, stage, priority) = (cells.flag()?, cells.number()?, cells.number()?);
    let life = Life {
        state,
        attempt: cells.bounded_number()?,
        retries: cells.bounded_number()?,
        crashes: cells.bounded_number()?,
        late: cells.flag()?,
        laned: cells.flag()?,
        ordered: false,
    };
    Ok(Past {
        seq,
        queue,
        event,
        collection,
        key,
        sync,
        stage,
        priority,
        life,
        prev_sent: cells.optional_event()?,
        planned: cells.optional_time()?,
        created: cells.time()?,
        started: cells.optional_time()?,
        finished: cells.time()?,
        error: cells.optional_text()?,
        result: cells.optional_text()?,
    })
}

pub(super) fn encode_order_row(Numbered { n, order }: Numbered) -> Row {
    copy_row![
        n,
        order.key.to_string(),
        order.key.chain.as_str(),
        order.node.as_str(),
        order.tenant.as_str(),
        order.value.as_str(),
        i64::from(order.priority),
        order.planned,
        order.created,
        order.started,
        order.suspended,
        order.task,
        order.origin.map(|origin| origin.event),
        i64::from(order.origin.map_or(0, |origin| origin.depth)),
        order.stepped,
        order.halted_by,
        order.took_on_error,
    ]
}

pub(super) fn decode_order_row(mut cells: RowCells) -> Result<Numbered> {
    let (n, key, _chain, node) = (cells.number()?, cells.text()?, cells.text()?, cells.text()?);
    let (tenant, value, priority) = (cells.tenant()?, cells.text()?, cells.number()?);
    let (planned, created, started) = (cells.optional_time()?, cells.time()?, cells.optional_time()?);
    let (suspended, task) = (cells.flag()?, cells.optional_number()?.map(TaskSeq));
    let (event, depth) = (cells.optional_event()?, cells.bounded_number()?);
    let order = Order {
        key: key.parse().map_err(Fault::damaged)?,
        tenant,
        node: NodeId::new(node).map_err(Fault::damaged)?,
        value: Json::trusted(value),
        priority: Priority::try_from(priority).map_err(Fault::damaged)?,
        planned,
        created,
        origin: event.map(|event| Origin { event, depth }),
        started,
        suspended,
        task,
        running: false,
        stepped: cells.flag()?,
        halted_by: cells.optional_number()?.map(TaskSeq),
        took_on_error: cells.flag()?,
    };
    Ok(Numbered { n, order })
}

pub(super) fn encode_ended_order_row(order: EndedOrder) -> Row {
    let EndedOrder { key, tenant, outcome, node, ended } = order;
    copy_row![key.to_string(), tenant.as_str(), outcome.as_str(), node.as_str(), ended]
}

pub(super) fn decode_ended_order_row(mut cells: RowCells) -> Result<EndedOrder> {
    Ok(EndedOrder {
        key: cells.text()?.parse().map_err(Fault::damaged)?,
        tenant: cells.tenant()?,
        outcome: cells.text()?.parse().map_err(Fault::damaged)?,
        node: NodeId::new(cells.text()?).map_err(Fault::damaged)?,
        ended: cells.time()?,
    })
}

pub(super) fn encode_rule_row(rule: Rule) -> Row {
    let name = rule.place.name().to_string();
    let tenant = rule.tenant.as_ref().map_or("", Tenant::as_str);
    copy_row![rule.kind.as_str(), rule.place.space(), name, tenant, rule.by, rule.reason, rule.since]
}

pub(super) fn decode_rule_row(mut cells: RowCells) -> Result<Rule> {
    let (kind, space, name, tenant) = (cells.text()?, cells.text()?, cells.text()?, cells.text()?);
    let kind = RuleKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let tenant = Some(tenant).filter(|name| !name.is_empty());
    Ok(Rule {
        kind: kind.ok_or_else(|| Fault::damaged("the kind of a rule"))?,
        place: RulePlace::read(&space, &name).ok_or_else(|| Fault::damaged("the place of a rule"))?,
        tenant: tenant.map(Tenant::new).transpose().map_err(Fault::damaged)?,
        by: cells.text()?,
        reason: cells.text()?,
        since: cells.time()?,
    })
}

pub(super) fn encode_log_line_row(task: TaskSeq, n: i64, line: LogLine) -> Row {
    copy_row![task, n, line.time, level_code(line.level), line.message]
}

/// Decodes a log line and its task. Its number is its position in the log.
pub(super) fn decode_log_line_row(mut cells: RowCells) -> Result<(TaskSeq, LogLine)> {
    let (task, _n, time) = (TaskSeq(cells.number()?), cells.number()?, cells.time()?);
    Ok((task, LogLine { time, level: level_of(cells.number()?), message: cells.text()? }))
}
