//! Queries of tasks, their logs, lanes and queues.

use std::collections::HashMap;

use pointsman_core::store::{LaneView, LogPage, QueueView, StoredLogLine};
use pointsman_core::task::{LogLine, Task, TaskId, TaskSeq};
use pointsman_core::{HandlerName, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, HandlerId, ObjectNumber, QueueCounts, QueueId, QueueRow,
};
use pointsman_store::tables::decode_task_seq;
use pointsman_store::views::{LANES_READ_PER_OBJECT_VIEW, MAX_LOG_PAGE_BYTES, is_halted_or_missing};

use super::{ChunkSize, orders, queue_names};
use crate::TASK_ID_NAMESPACE_TEXT_NAME;
use crate::codec::{MemberBuilder, MemberOrField, decode_member_i64, encode_decimal_field};
use crate::connection::{args, to_arg};
use crate::keys::{Index, Table, task_bucket_and_field};
use crate::overlay::{
    CacheFetch, TransactionOverlay, decode_integer, decode_list, decode_optional_bytes, decode_strings,
};
use crate::rows;
use crate::script;

/// Reads a task by its full public id: the uuid alone does not match.
pub(crate) fn read_task(overlay: &mut TransactionOverlay, id: &TaskId) -> TableResult<Option<Task>> {
    let Some(seq) = decode_task_seq(overlay.read_task_id_namespace()?, id) else { return Ok(None) };
    Ok(read_tasks_with_attempts(overlay, &[seq])?.into_iter().find(|task| task.id == *id))
}

/// Reads tasks, both active and archived, with their attempts, in the order of `seqs`. Leaves out numbers without a
/// task.
pub(super) fn read_tasks_with_attempts(
    overlay: &mut TransactionOverlay,
    seqs: &[TaskSeq],
) -> TableResult<Vec<Task>> {
    let attempts = seqs.iter().map(|seq| CacheFetch::Table(Table::Attempts(*seq)));
    prefetch_tasks_and_names(overlay, seqs, attempts.collect())?;
    let mut tasks = Vec::with_capacity(seqs.len());
    for seq in seqs {
        tasks.extend(overlay.read_task_with_attempts(*seq)?);
    }
    Ok(tasks)
}

/// Reads tasks, both active and archived, without their attempts, in the order of `seqs`. Leaves out numbers without a
/// task.
pub(super) fn read_tasks_without_attempts(
    overlay: &mut TransactionOverlay,
    seqs: &[TaskSeq],
) -> TableResult<Vec<Task>> {
    prefetch_tasks_and_names(overlay, seqs, vec![])?;
    let mut tasks = Vec::with_capacity(seqs.len());
    for seq in seqs {
        match overlay.read_active_task(*seq)? {
            Some(active) => tasks.push(overlay.active_task_view(active)?),
            None => tasks.extend(
                overlay
                    .read_archived_task(*seq)?
                    .map(|archived| overlay.archived_task_view(archived))
                    .transpose()?,
            ),
        }
    }
    Ok(tasks)
}

/// Reads the first non-empty lanes of an object.
pub(super) fn read_object_lanes(
    overlay: &mut TransactionOverlay,
    object: ObjectNumber,
) -> TableResult<Vec<LaneView>> {
    let Some(lanes) = pointsman_store::lane_range_of_object(object) else { return Ok(vec![]) };
    let bound = |lane: &i64| to_arg(MemberBuilder::from_i64(*lane).finish());
    let arguments =
        vec![bound(lanes.start()), bound(lanes.end()), to_arg(LANES_READ_PER_OBJECT_VIEW.to_string())];
    let command = script::OBJECT_LANES
        .build_evalsha_command(vec![overlay.keys.index_key(&Index::LanePositions)], arguments);
    let (mut heads, mut waiting_counts) = (Vec::new(), Vec::new());
    let mut parts = decode_list(overlay.connection.execute(command)?)?.into_iter();
    while let (Some(member), Some(count)) = (parts.next(), parts.next()) {
        heads.push(TaskSeq(decode_member_i64(&decode_optional_bytes(member)?.unwrap_or_default(), 2)?));
        waiting_counts.push(decode_integer(count)?.unsigned_abs());
    }
    let heads = overlay.read_active_tasks(heads)?;
    if heads.len() < waiting_counts.len() {
        return Err(Fault::damaged("the head of a lane is gone"));
    }
    prefetch_rows_for_task_names(overlay, heads.iter(), [].iter())?;
    let build_view = |(head, count)| Ok(LaneView::new(overlay.active_task_view(head)?, count));
    heads.into_iter().zip(waiting_counts).map(build_view).collect()
}

/// Fetches the rows of these tasks together with `more_fetches`, and then the rows that the names of the tasks come
/// from.
fn prefetch_tasks_and_names(
    overlay: &mut TransactionOverlay,
    seqs: &[TaskSeq],
    more_fetches: Vec<CacheFetch>,
) -> TableResult<()> {
    let row = |seq: &TaskSeq| {
        let (bucket, field) = task_bucket_and_field(*seq);
        [
            CacheFetch::Row(Table::ActiveTasks(bucket), field.clone()),
            CacheFetch::Row(Table::ArchivedTasks(bucket), field),
        ]
    };
    overlay.fetch_into_cache(seqs.iter().flat_map(row).chain(more_fetches).collect())?;
    let (mut active_tasks, mut archived_tasks) = (Vec::new(), Vec::new());
    for seq in seqs {
        match overlay.read_active_task(*seq)? {
            Some(active) => active_tasks.push(active),
            None => archived_tasks.extend(overlay.read_archived_task(*seq)?),
        }
    }
    prefetch_rows_for_task_names(overlay, active_tasks.iter(), archived_tasks.iter())
}

/// Fetches the rows that names of tasks come from: queues, and events and orders of active ones.
pub(super) fn prefetch_rows_for_task_names<'t>(
    overlay: &mut TransactionOverlay,
    active_tasks: impl Iterator<Item = &'t ActiveTaskRow> + Clone,
    archived_tasks: impl Iterator<Item = &'t ArchivedTaskRow>,
) -> TableResult<()> {
    let mut queues: Vec<QueueId> = active_tasks.clone().map(|active| active.queue).collect();
    queues.extend(archived_tasks.map(|archived| archived.queue));
    queues.sort_unstable();
    queues.dedup();
    let mut fetches = queue_names::queue_fetches(&queues);
    fetches.push(CacheFetch::Row(
        Table::NamedTexts,
        MemberOrField::from_slice(TASK_ID_NAMESPACE_TEXT_NAME.as_bytes()),
    ));
    for active in active_tasks {
        fetches.extend(active.event.map(CacheFetch::Event));
        fetches.extend(
            active.order_number.map(|number| CacheFetch::Row(Table::Orders, encode_decimal_field(number))),
        );
        fetches
            .extend(is_halted_or_missing(active).then_some(CacheFetch::Table(Table::Attempts(active.seq))));
    }
    overlay.fetch_into_cache(fetches)?;
    queue_names::prefetch_queues_and_handlers(overlay, &queues)
}

/// Lists the fences of those leases under which the task is not locked any more. A task never gets the same fence
/// again, so this needs no consistent snapshot.
pub(crate) fn list_lost_fences(
    overlay: &mut TransactionOverlay,
    leases: &[(TaskSeq, i64)],
) -> TableResult<Vec<i64>> {
    let seqs: Vec<TaskSeq> = leases.iter().map(|(task, _)| *task).collect();
    overlay.prefetch_active_tasks(&seqs)?;
    let mut lost = Vec::new();
    for (task, fence) in leases {
        let lease = overlay.read_active_task(*task)?.and_then(|active| active.lease());
        if lease.is_none_or(|lease| lease.fence != *fence) {
            lost.push(*fence);
        }
    }
    Ok(lost)
}

pub(crate) fn read_task_log(
    overlay: &mut TransactionOverlay,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> TableResult<Option<LogPage>> {
    let Some(seq) = decode_task_seq(overlay.read_task_id_namespace()?, id) else { return Ok(None) };
    let found = read_tasks_without_attempts(overlay, &[seq])?.into_iter().find(|task| task.id == *id);
    let Some(task) = found else { return Ok(None) };
    let lines = read_log_lines(overlay, id, from, limit)?;
    Ok(Some(LogPage { lines, task_status: task.lifecycle.state.status() }))
}

/// Reads log lines from a number on. The number of a line is its rank in the sorted set.
fn read_log_lines(
    overlay: &mut TransactionOverlay,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> TableResult<Vec<StoredLogLine>> {
    let key = overlay.keys.task_log_key(id);
    let (mut lines, mut bytes, mut chunk) = (Vec::new(), 0, ChunkSize::for_limit(limit));
    while lines.len() < limit && bytes < MAX_LOG_PAGE_BYTES {
        let next = i64::try_from(from).unwrap_or(i64::MAX).saturating_add(lines.len() as i64);
        let chunk_limit = chunk.rows().min(limit - lines.len());
        let last = next.saturating_add(chunk_limit as i64 - 1);
        let found = decode_strings(overlay.connection.execute(args![
            "ZRANGE",
            &key,
            next.to_string(),
            last.to_string()
        ])?)?;
        for (number, json) in (next.unsigned_abs()..).zip(&found) {
            if bytes >= MAX_LOG_PAGE_BYTES {
                break;
            }
            let line: LogLine = rows::decode_json(json)?;
            bytes += line.message.len();
            lines.push(StoredLogLine { number, line });
        }
        if found.len() < chunk_limit {
            break;
        }
        chunk = chunk.next_after(found.iter().map(Vec::len).sum());
    }
    Ok(lines)
}

pub(crate) fn list_queues(
    overlay: &mut TransactionOverlay,
    handler: Option<&HandlerName>,
) -> TableResult<Vec<QueueView>> {
    let environment = orders::read_view_environment(overlay)?;
    let handlers: HashMap<HandlerId, HandlerName> =
        overlay.read_handlers()?.into_iter().map(|handler| (handler.id, handler.def.name)).collect();
    let mut found: Vec<(HandlerName, QueueRow)> = Vec::new();
    for queue in overlay.read_queues()?.into_iter().filter(|queue| has_tasks(&queue.counts)) {
        let name = handlers.get(&queue.handler).filter(|name| handler.is_none_or(|wanted| *name == wanted));
        found.extend(name.map(|name| (name.clone(), queue)));
    }
    found.sort_by_cached_key(|(name, queue)| {
        (name.to_string(), queue.tenant.as_str().to_string(), queue.subject.to_text())
    });
    let heads = read_creation_times_of_next_tasks(
        overlay,
        found.iter().map(|(_, queue)| queue).filter(|queue| queue.counts.ready > 0),
    )?;
    let view = |(name, queue): (HandlerName, QueueRow)| {
        let since = heads.get(&queue.id).copied();
        environment.build_queue_view(name, queue.tenant, queue.subject, queue.counts, since)
    };
    Ok(found.into_iter().map(view).collect())
}

fn has_tasks(counts: &QueueCounts) -> bool {
    let QueueCounts { ready, waiting, scheduled, running, halted, missing } = *counts;
    ready + waiting + scheduled + running + halted + missing > 0
}

/// Reads when the first ready task of each of these queues was created.
fn read_creation_times_of_next_tasks<'q>(
    overlay: &mut TransactionOverlay,
    queues: impl Iterator<Item = &'q QueueRow>,
) -> TableResult<HashMap<QueueId, Timestamp>> {
    let ids: Vec<QueueId> = queues.map(|queue| queue.id).collect();
    let first_command =
        |id: &QueueId| args!["ZRANGE", overlay.keys.index_key(&Index::ReadyTasks(*id)), "0", "0"];
    let commands: Vec<_> = ids.iter().map(first_command).collect();
    if commands.is_empty() {
        return Ok(HashMap::new());
    }
    let mut found = Vec::with_capacity(ids.len());
    for (id, reply) in ids.into_iter().zip(overlay.connection.execute_all(&commands)?) {
        if let Some(member) = decode_strings(reply)?.first() {
            found.push((id, TaskSeq(decode_member_i64(member, 2)?)));
        }
    }
    overlay.prefetch_active_tasks(&found.iter().map(|(_, seq)| *seq).collect::<Vec<_>>())?;
    let mut heads = HashMap::with_capacity(found.len());
    for (id, seq) in found {
        heads.extend(overlay.read_active_task(seq)?.map(|active| (id, active.created_at)));
    }
    Ok(heads)
}
