//! Reading tasks, their logs, and queues.

use std::collections::HashMap;

use pointsman_core::store::{LaneView, LogPage, QueueView, StoredLine};
use pointsman_core::task::{LogLine, Task, TaskId, TaskSeq};
use pointsman_core::{HandlerName, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Counts, HandlerId, Live, ObjectNumber, Past, QueueId, QueueRow};
use pointsman_store::tables::seq_of;
use pointsman_store::views::{LANES_READ, LOG_BYTES, has_ended};

use super::{Chunk, names, orders};
use crate::codec::{Member, Ordered, digits, ordered};
use crate::keys::{Index, Table, bucket};
use crate::link::{word, words};
use crate::rows;
use crate::script;
use crate::sight::{Question, Sight, int_of, list, maybe_bytes, strings};

/// A task by its whole public name: the uuid alone is not enough.
pub(crate) fn task_named(sight: &Sight, id: &TaskId) -> Result<Option<Task>> {
    let Some(seq) = seq_of(sight.realm()?, id) else { return Ok(None) };
    Ok(whole_tasks(sight, &[seq])?.into_iter().find(|task| task.id == *id))
}

/// These tasks with their attempts, wherever they lie, in this order.
pub(super) fn whole_tasks(sight: &Sight, seqs: &[TaskSeq]) -> Result<Vec<Task>> {
    let attempts = seqs.iter().map(|seq| Question::Table(Table::Attempts(*seq)));
    foresee(sight, seqs, attempts.collect())?;
    let mut tasks = Vec::with_capacity(seqs.len());
    for seq in seqs {
        tasks.extend(sight.whole_task(*seq)?);
    }
    Ok(tasks)
}

/// The same without their attempts.
pub(super) fn bare_tasks(sight: &Sight, seqs: &[TaskSeq]) -> Result<Vec<Task>> {
    foresee(sight, seqs, vec![])?;
    let mut tasks = Vec::with_capacity(seqs.len());
    for seq in seqs {
        match sight.task(*seq)? {
            Some(live) => tasks.push(sight.of_live(live)?),
            None => tasks.extend(sight.ended(*seq)?.map(|past| sight.of_past(past)).transpose()?),
        }
    }
    Ok(tasks)
}

/// The first lanes of an object in which somebody stands.
pub(super) fn lanes(sight: &Sight, object: ObjectNumber) -> Result<Vec<LaneView>> {
    let Some(all) = pointsman_store::lanes_of(object) else { return Ok(vec![]) };
    let bound = |lane: &i64| word(Ordered::of(*lane).done());
    let arguments = vec![bound(all.start()), bound(all.end()), word(LANES_READ.to_string())];
    let call = script::LANES.call(vec![sight.keys.index(&Index::Lanes)], arguments);
    let (mut heads, mut standing) = (Vec::new(), Vec::new());
    let mut parts = list(sight.link.ask(call)?)?.into_iter();
    while let (Some(member), Some(count)) = (parts.next(), parts.next()) {
        heads.push(TaskSeq(ordered(&maybe_bytes(member)?.unwrap_or_default(), 2)?));
        standing.push(int_of(count)?.unsigned_abs());
    }
    let heads = sight.tasks(heads)?;
    if heads.len() < standing.len() {
        return Err(Fault::damaged("the head of a lane is gone"));
    }
    foresee_names(sight, heads.iter(), [].iter())?;
    let lane = |(head, standing)| Ok(LaneView::new(sight.of_live(head)?, standing));
    heads.into_iter().zip(standing).map(lane).collect()
}

/// Looks at these tasks, and then at all that they are named by.
fn foresee(sight: &Sight, seqs: &[TaskSeq], also: Vec<Question>) -> Result<()> {
    let row = |seq: &TaskSeq| {
        let (bucket, field) = bucket(*seq);
        [Question::Row(Table::Tasks(bucket), field.clone()), Question::Row(Table::Ended(bucket), field)]
    };
    sight.look(seqs.iter().flat_map(row).chain(also).collect())?;
    let (mut unfinished, mut ended) = (Vec::new(), Vec::new());
    for seq in seqs {
        match sight.task(*seq)? {
            Some(live) => unfinished.push(live),
            None => ended.extend(sight.ended(*seq)?),
        }
    }
    foresee_names(sight, unfinished.iter(), ended.iter())
}

/// Looks at what tasks are named by: their queues, and the events and orders of unfinished ones.
pub(super) fn foresee_names<'t>(
    sight: &Sight,
    unfinished: impl Iterator<Item = &'t Live> + Clone,
    ended: impl Iterator<Item = &'t Past>,
) -> Result<()> {
    let mut queues: Vec<QueueId> = unfinished.clone().map(|live| live.queue).collect();
    queues.extend(ended.map(|past| past.queue));
    queues.sort_unstable();
    queues.dedup();
    let mut questions = names::questions(&queues);
    questions.push(Question::Row(Table::Texts, Member::from_slice(b"realm")));
    for live in unfinished {
        questions.extend(live.event.map(Question::Event));
        questions.extend(live.order.map(|n| Question::Row(Table::Orders, digits(n))));
        questions.extend(has_ended(live).then_some(Question::Table(Table::Attempts(live.seq))));
    }
    sight.look(questions)?;
    names::foresee(sight, &queues)
}

/// The fences of those attempts that do not hold their task. Whoever has lost a task never gets it back with the same fence,
/// so that it does not matter if somebody writes meanwhile.
pub(crate) fn lost(sight: &Sight, held: &[(TaskSeq, i64)]) -> Result<Vec<i64>> {
    let seqs: Vec<TaskSeq> = held.iter().map(|(task, _)| *task).collect();
    sight.foresee_tasks(&seqs)?;
    let mut lost = Vec::new();
    for (task, fence) in held {
        let lease = sight.task(*task)?.and_then(|live| live.lease());
        if lease.is_none_or(|lease| lease.fence != *fence) {
            lost.push(*fence);
        }
    }
    Ok(lost)
}

pub(crate) fn logs(sight: &Sight, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
    let Some(seq) = seq_of(sight.realm()?, id) else { return Ok(None) };
    let found = bare_tasks(sight, &[seq])?.into_iter().find(|task| task.id == *id);
    let Some(task) = found else { return Ok(None) };
    let lines = lines(sight, id, from, limit)?;
    Ok(Some(LogPage { lines, status: task.life.state.status() }))
}

/// A line's rank in the set is its number.
fn lines(sight: &Sight, id: &TaskId, from: u64, limit: usize) -> Result<Vec<StoredLine>> {
    let key = sight.keys.log(id);
    let (mut lines, mut bytes, mut chunk) = (Vec::new(), 0, Chunk::of(limit));
    while lines.len() < limit && bytes < LOG_BYTES {
        let next = i64::try_from(from).unwrap_or(i64::MAX).saturating_add(lines.len() as i64);
        let most = chunk.size().min(limit - lines.len());
        let last = next.saturating_add(most as i64 - 1);
        let found = strings(sight.link.ask(words!["ZRANGE", &key, next.to_string(), last.to_string()])?)?;
        for (number, json) in (next.unsigned_abs()..).zip(&found) {
            if bytes >= LOG_BYTES {
                break;
            }
            let line: LogLine = rows::of_json(json)?;
            bytes += line.message.len();
            lines.push(StoredLine { number, line });
        }
        if found.len() < most {
            break;
        }
        chunk = chunk.after(found.iter().map(Vec::len).sum());
    }
    Ok(lines)
}

pub(crate) fn queues(sight: &Sight, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
    let around = orders::surroundings(sight)?;
    let handlers: HashMap<HandlerId, HandlerName> =
        sight.handlers()?.into_iter().map(|handler| (handler.id, handler.def.name)).collect();
    let mut found: Vec<(HandlerName, QueueRow)> = Vec::new();
    for queue in sight.queue_rows()?.into_iter().filter(|queue| is_used(&queue.counts)) {
        let name = handlers.get(&queue.handler).filter(|name| handler.is_none_or(|wanted| *name == wanted));
        found.extend(name.map(|name| (name.clone(), queue)));
    }
    found.sort_by_cached_key(|(name, queue)| {
        (name.to_string(), queue.tenant.as_str().to_string(), queue.of.text())
    });
    let heads = heads(sight, found.iter().map(|(_, queue)| queue).filter(|queue| queue.counts.ready > 0))?;
    let view = |(name, queue): (HandlerName, QueueRow)| {
        let since = heads.get(&queue.id).copied();
        around.queue(name, queue.tenant, queue.of, queue.counts, since)
    };
    Ok(found.into_iter().map(view).collect())
}

fn is_used(counts: &Counts) -> bool {
    let Counts { ready, waiting, scheduled, running, halted, missing } = *counts;
    ready + waiting + scheduled + running + halted + missing > 0
}

/// When the tasks were made that these queues would give next.
fn heads<'q>(
    sight: &Sight,
    queues: impl Iterator<Item = &'q QueueRow>,
) -> Result<HashMap<QueueId, Timestamp>> {
    let ids: Vec<QueueId> = queues.map(|queue| queue.id).collect();
    let first = |id: &QueueId| words!["ZRANGE", sight.keys.index(&Index::Ready(*id)), "0", "0"];
    let commands: Vec<_> = ids.iter().map(first).collect();
    if commands.is_empty() {
        return Ok(HashMap::new());
    }
    let mut found = Vec::with_capacity(ids.len());
    for (id, answer) in ids.into_iter().zip(sight.link.send(&commands)?) {
        if let Some(member) = strings(answer)?.first() {
            found.push((id, TaskSeq(ordered(member, 2)?)));
        }
    }
    sight.foresee_tasks(&found.iter().map(|(_, seq)| *seq).collect::<Vec<_>>())?;
    let mut heads = HashMap::with_capacity(found.len());
    for (id, seq) in found {
        heads.extend(sight.task(seq)?.map(|live| (id, live.created)));
    }
    Ok(heads)
}
