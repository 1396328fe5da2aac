//! Rows as they lie in Redis, and what they mean.

use pointsman_core::chain::NodeId as ChainNode;
use pointsman_core::fire::Fire;
use pointsman_core::order::{EndedOrder, Order, Origin};
use pointsman_core::store::{Abilities, Deed, NodeId, NodeView};
use pointsman_core::task::{Attempt, Lease, Life, QueueOf};
use pointsman_core::{Event, EventId, Json, Priority, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{
    AttemptRow, Counts, HandlerId, Live, Numbered, Object, Past, Phase, QueueId, QueueRow, end_code, end_of,
    reason_code,
};
use pointsman_store::tables::Counters;
use pointsman_store::views::{EventColumns, context_text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Packer, Unpacker};

fn time(number: i64) -> Timestamp {
    Timestamp::from_micros(number)
}

fn id(number: i64) -> EventId {
    EventId::from_i64(number)
}

fn small(number: i64) -> Result<u32> {
    u32::try_from(number).map_err(Fault::damaged)
}

/// What is seldom written lies there as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Fault::damaged)
}

pub(crate) fn of_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(Fault::damaged)
}

pub(crate) fn of_text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(Fault::damaged)
}

// --- events ------------------------------------------------------------------------------------------------------

/// An event of the journal, and the numbers of its tasks.
#[derive(Clone, Debug)]
pub(crate) struct Journaled {
    pub(crate) event: Event,
    pub(crate) first_task: TaskSeq,
    pub(crate) tasks: i64,
}

impl Journaled {
    /// The tasks that were made with it.
    pub(crate) fn own_tasks(&self) -> impl Iterator<Item = TaskSeq> + use<> {
        let Self { first_task, tasks, .. } = self;
        (first_task.0..first_task.0 + tasks).map(TaskSeq)
    }
}

/// An object's chain is followed by a script, which finds `prev` in the first eight bytes.
pub(crate) fn pack_event(event: &Event, first_task: TaskSeq, tasks: usize) -> Result<Vec<u8>> {
    let context = context_text(event)?;
    Ok(Packer::with_capacity(event.value.as_str().len() + 64)
        .fixed(event.prev.map_or(0, EventId::as_i64))
        .int(first_task.0)
        .int(tasks as i64)
        .text(event.kind.as_str())
        .maybe_text(event.key.as_ref().map(|key| key.as_str()))
        .maybe_text(event.sub.as_ref().map(|sub| sub.as_str()))
        .text(event.tenant.as_str())
        .text(event.value.as_str())
        .maybe_text(context.as_deref())
        .maybe(event.cause.map(|cause| cause.task.0))
        .maybe(event.cause.and_then(|cause| cause.event).map(EventId::as_i64))
        .int(event.depth().into())
        .done())
}

pub(crate) fn unpack_event(event: EventId, bytes: &[u8]) -> Result<Journaled> {
    let mut row = Unpacker::new(bytes);
    let prev = Some(row.fixed()?).filter(|prev| *prev != 0);
    let (first_task, tasks) = (TaskSeq(row.int()?), row.int()?);
    let columns = EventColumns {
        id: event.as_i64(),
        prev,
        kind: row.text()?,
        key: row.maybe_text()?,
        sub: row.maybe_text()?,
        tenant: row.text()?,
        value: row.text()?,
        context: row.maybe_text()?,
        cause_task: row.maybe()?,
        cause_event: row.maybe()?,
        depth: u16::try_from(row.int()?).map_err(Fault::damaged)?,
    };
    Ok(Journaled { event: columns.event()?, first_task, tasks })
}

/// An object, and when retention last found it in use.
pub(crate) fn pack_object(object: &Object, checked: EventId) -> Vec<u8> {
    let packed = Packer::default().int(object.number).int(object.last.as_i64()).bytes(&object.encode_sent());
    packed.int(checked.as_i64()).done()
}

/// When retention last found an object in use; nothing if its row was written by an older version.
pub(crate) fn unpack_checked(bytes: &[u8]) -> Result<Option<EventId>> {
    let mut row = Unpacker::new(bytes);
    let (_number, _last, _sent) = (row.int()?, row.int()?, row.bytes()?);
    if row.ends().is_ok() { Ok(None) } else { row.int().map(|checked| Some(id(checked))) }
}

pub(crate) fn unpack_object(bytes: &[u8]) -> Result<Object> {
    let mut row = Unpacker::new(bytes);
    Ok(Object { number: row.int()?, last: id(row.int()?), sent: Object::decode_sent(row.bytes()?) })
}

// --- tasks -------------------------------------------------------------------------------------------------------

/// A claim's script finds the event in the first eight bytes.
pub(crate) fn pack_live(live: &Live) -> Vec<u8> {
    pack_live_due(live, live.due())
}

/// The same with the time at which it was due, which one that has its turn does not tell any more.
pub(crate) fn pack_live_due(live: &Live, due: Timestamp) -> Vec<u8> {
    let lease = live.lease();
    Packer::with_capacity(80)
        .fixed(live.event.map_or(0, EventId::as_i64))
        .int(live.seq.0)
        .int(live.queue)
        .int(live.phase.code())
        .maybe(live.order)
        .maybe(live.lane)
        .maybe(live.place.map(|place| place - live.seq.0))
        .maybe(live.crowd)
        .maybe(live.bucket.map(i64::from))
        .flag(live.sync)
        .int(live.stage)
        .int(live.priority)
        .int(live.score)
        .int(live.rank)
        .maybe(live.prev_sent.map(EventId::as_i64))
        .maybe(live.planned.map(Timestamp::micros))
        .int(live.created.micros())
        .int(due.micros() - live.created.micros())
        .maybe(live.started.map(Timestamp::micros))
        .maybe_text(live.error.as_deref())
        .int(live.life.attempt.into())
        .int(live.life.retries.into())
        .int(live.life.crashes.into())
        .flag(live.life.late)
        .maybe(live.life.state.reason().map(reason_code))
        .maybe(lease.map(|lease| lease.node))
        .maybe(lease.map(|lease| lease.fence))
        .maybe(lease.and_then(|lease| lease.until).map(Timestamp::micros))
        .done()
}

/// The event of an unfinished task.
pub(crate) fn event_of_live(bytes: &[u8]) -> Result<Option<EventId>> {
    Ok(Some(Unpacker::new(bytes).fixed()?).filter(|event| *event != 0).map(id))
}

pub(crate) fn unpack_live(bytes: &[u8]) -> Result<Live> {
    unpack_live_due(bytes).map(|(live, _)| live)
}

pub(crate) fn unpack_live_due(bytes: &[u8]) -> Result<(Live, Timestamp)> {
    let mut row = Unpacker::new(bytes);
    let event = Some(row.fixed()?).filter(|event| *event != 0).map(id);
    let (seq, queue) = (TaskSeq(row.int()?), row.int()?);
    let phase = Phase::from_code(row.int()?).ok_or_else(|| Fault::damaged("a task's phase"))?;
    let (order, lane, place) = (row.maybe()?, row.maybe()?, row.maybe()?.map(|place| place + seq.0));
    let (crowd, bucket) = (row.maybe()?, row.maybe()?);
    let (sync, stage, priority, score, rank) = (row.flag()?, row.int()?, row.int()?, row.int()?, row.int()?);
    let (prev_sent, planned) = (row.maybe()?.map(id), row.maybe()?.map(time));
    let created = row.int()?;
    let due = time(created + row.int()?);
    let started = row.maybe()?.map(time);
    let error = row.maybe_text()?.map(str::to_string);
    let (attempt, retries, crashes) = (small(row.int()?)?, small(row.int()?)?, small(row.int()?)?);
    let (late, reason) = (row.flag()?, row.maybe()?);
    let (node, fence, until) = (row.maybe()?, row.maybe()?, row.maybe()?);
    let lease = || {
        let whole = node.zip(fence).ok_or_else(|| Fault::damaged("a locked task without a lease"));
        whole.map(|(node, fence)| Lease {
            node,
            fence,
            since: started.unwrap_or_default(),
            until: until.map(time),
        })
    };
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
        created: time(created),
        started,
        error,
        life: Life {
            state: Live::state(phase, due, lease, reason)?,
            attempt,
            retries,
            crashes,
            late,
            laned: lane.is_some(),
            ordered: place.is_some(),
        },
    };
    Ok((live, due))
}

pub(crate) fn pack_past(past: &Past) -> Vec<u8> {
    Packer::with_capacity(100)
        .int(past.seq.0)
        .int(past.queue)
        .maybe(past.event.map(EventId::as_i64))
        .text(&past.collection)
        .maybe_text(past.key.as_deref())
        .flag(past.sync)
        .int(past.stage)
        .int(past.priority)
        .int(past.status_code())
        .maybe(past.life.state.reason().map(reason_code))
        .int(past.life.attempt.into())
        .int(past.life.retries.into())
        .int(past.life.crashes.into())
        .flag(past.life.late)
        .flag(past.life.laned)
        .maybe(past.prev_sent.map(EventId::as_i64))
        .maybe(past.planned.map(Timestamp::micros))
        .int(past.created.micros())
        .maybe(past.started.map(Timestamp::micros))
        .int(past.finished.micros())
        .maybe_text(past.error.as_deref())
        .maybe_text(past.result.as_deref())
        .done()
}

pub(crate) fn unpack_past(bytes: &[u8]) -> Result<Past> {
    let mut row = Unpacker::new(bytes);
    Ok(Past {
        seq: TaskSeq(row.int()?),
        queue: row.int()?,
        event: row.maybe()?.map(id),
        collection: row.text()?.into(),
        key: row.maybe_text()?.map(str::to_string),
        sync: row.flag()?,
        stage: row.int()?,
        priority: row.int()?,
        life: Life {
            state: Past::state(row.int()?, row.maybe()?)?,
            attempt: small(row.int()?)?,
            retries: small(row.int()?)?,
            crashes: small(row.int()?)?,
            late: row.flag()?,
            laned: row.flag()?,
            ordered: false,
        },
        prev_sent: row.maybe()?.map(id),
        planned: row.maybe()?.map(time),
        created: time(row.int()?),
        started: row.maybe()?.map(time),
        finished: time(row.int()?),
        error: row.maybe_text()?.map(str::to_string),
        result: row.maybe_text()?.map(str::to_string),
    })
}

pub(crate) fn pack_attempt(attempt: &AttemptRow<'_>) -> Vec<u8> {
    Packer::default()
        .int(attempt.started.micros())
        .int(attempt.ended.micros())
        .int(end_code(attempt.end))
        .maybe_text(attempt.error)
        .done()
}

pub(crate) fn unpack_attempt(number: u32, bytes: &[u8]) -> Result<Attempt> {
    let mut row = Unpacker::new(bytes);
    Ok(Attempt {
        number,
        started_at: time(row.int()?),
        ended_at: time(row.int()?),
        end: end_of(row.int()?)?,
        error: row.maybe_text()?.map(str::to_string),
    })
}

// --- queues, nodes, deeds ----------------------------------------------------------------------------------------

pub(crate) fn pack_queue(handler: HandlerId, tenant: &Tenant, of: &QueueOf) -> Vec<u8> {
    Packer::default().int(handler).text(tenant.as_str()).text(&of.text()).done()
}

pub(crate) fn unpack_queue(id: QueueId, bytes: &[u8], counts: Counts) -> Result<QueueRow> {
    let mut row = Unpacker::new(bytes);
    Ok(QueueRow {
        id,
        handler: row.int()?,
        tenant: Tenant::new(row.text()?).map_err(Fault::damaged)?,
        of: QueueOf::read(row.text()?).map_err(Fault::damaged)?,
        counts,
    })
}

/// Whether the queue that lies there is one of a source.
pub(crate) fn is_of_source(bytes: &[u8]) -> Result<bool> {
    let mut row = Unpacker::new(bytes);
    row.int()?;
    row.bytes()?;
    let of = row.text()?;
    Ok(!of.is_empty() && QueueOf::read(of).map_err(Fault::damaged)?.collection().is_some())
}

pub(crate) fn pack_counts(counts: &Counts) -> Vec<u8> {
    let Counts { ready, waiting, scheduled, running, halted, missing } = *counts;
    Packer::default().int(ready).int(waiting).int(scheduled).int(running).int(halted).int(missing).done()
}

pub(crate) fn unpack_counts(bytes: &[u8]) -> Result<Counts> {
    let mut row = Unpacker::new(bytes);
    Ok(Counts {
        ready: row.int()?,
        waiting: row.int()?,
        scheduled: row.int()?,
        running: row.int()?,
        halted: row.int()?,
        missing: row.int()?,
    })
}

/// A node as it lies there: what it can do is JSON, or nothing if it never said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRow<'b> {
    pub(crate) name: &'b str,
    pub(crate) joined: i64,
    pub(crate) heard: i64,
    pub(crate) gone: bool,
    pub(crate) abilities: &'b str,
}

impl<'b> NodeRow<'b> {
    pub(crate) fn pack(&self) -> Vec<u8> {
        let Self { name, joined, heard, gone, abilities } = *self;
        Packer::default().text(name).int(joined).int(heard).flag(gone).text(abilities).done()
    }

    pub(crate) fn unpack(bytes: &'b [u8]) -> Result<Self> {
        let mut row = Unpacker::new(bytes);
        Ok(Self {
            name: row.text()?,
            joined: row.int()?,
            heard: row.int()?,
            gone: row.flag()?,
            abilities: row.text()?,
        })
    }
}

pub(crate) fn pack_node(node: &NodeView) -> Result<Vec<u8>> {
    let abilities = serde_json::to_string(&node.abilities).map_err(Fault::damaged)?;
    let (joined, heard) = (node.joined.micros(), node.heard.micros());
    Ok(NodeRow { name: &node.name, joined, heard, gone: node.gone, abilities: &abilities }.pack())
}

/// How many tasks it holds is told elsewhere.
pub(crate) fn unpack_node(id: NodeId, bytes: &[u8], running: u64) -> Result<NodeView> {
    let NodeRow { name, joined, heard, gone, abilities } = NodeRow::unpack(bytes)?;
    let abilities = match abilities {
        "" => Abilities::default(),
        json => serde_json::from_str(json).map_err(Fault::damaged)?,
    };
    Ok(NodeView { id, name: name.into(), joined: time(joined), heard: time(heard), gone, abilities, running })
}

pub(crate) fn pack_deed(deed: &Deed) -> Vec<u8> {
    Packer::default()
        .int(deed.at.micros())
        .text(&deed.by)
        .text(&deed.action)
        .text(&deed.what)
        .text(&deed.detail)
        .done()
}

pub(crate) fn unpack_deed(bytes: &[u8]) -> Result<Deed> {
    let mut row = Unpacker::new(bytes);
    Ok(Deed {
        at: time(row.int()?),
        by: row.text()?.into(),
        action: row.text()?.into(),
        what: row.text()?.into(),
        detail: row.text()?.into(),
    })
}

// --- orders, fires, counters -------------------------------------------------------------------------------------

pub(crate) fn pack_order(order: &Order) -> Vec<u8> {
    Packer::with_capacity(order.value.as_str().len() + 64)
        .text(&order.key.to_string())
        .text(order.tenant.as_str())
        .text(order.node.as_str())
        .text(order.value.as_str())
        .int(order.priority.into())
        .maybe(order.planned.map(Timestamp::micros))
        .int(order.created.micros())
        .maybe(order.origin.map(|origin| origin.event.as_i64()))
        .int(order.origin.map_or(0, |origin| origin.depth.into()))
        .maybe(order.started.map(Timestamp::micros))
        .flag(order.suspended)
        .maybe(order.task.map(|task| task.0))
        .flag(order.stepped)
        .maybe(order.halted_by.map(|task| task.0))
        .flag(order.took_on_error)
        .done()
}

/// Whether its task runs is told by the task.
pub(crate) fn unpack_order(n: i64, bytes: &[u8]) -> Result<Numbered> {
    let mut row = Unpacker::new(bytes);
    let (key, tenant, node) = (row.text()?, row.text()?, row.text()?);
    let (value, priority, planned, created) = (row.text()?, row.int()?, row.maybe()?, row.int()?);
    let (event, depth) = (row.maybe()?, u16::try_from(row.int()?).map_err(Fault::damaged)?);
    let order = Order {
        key: key.parse().map_err(Fault::damaged)?,
        tenant: Tenant::new(tenant).map_err(Fault::damaged)?,
        node: ChainNode::new(node).map_err(Fault::damaged)?,
        value: Json::trusted(value),
        priority: Priority::try_from(priority).map_err(Fault::damaged)?,
        planned: planned.map(time),
        created: time(created),
        origin: event.map(|event| Origin { event: id(event), depth }),
        started: row.maybe()?.map(time),
        suspended: row.flag()?,
        task: row.maybe()?.map(TaskSeq),
        running: false,
        stepped: row.flag()?,
        halted_by: row.maybe()?.map(TaskSeq),
        took_on_error: row.flag()?,
    };
    Ok(Numbered { n, order })
}

pub(crate) fn pack_ended_order(order: &EndedOrder) -> Vec<u8> {
    Packer::default()
        .text(&order.key.to_string())
        .text(order.tenant.as_str())
        .text(order.outcome.as_str())
        .text(order.node.as_str())
        .int(order.ended.micros())
        .done()
}

pub(crate) fn unpack_ended_order(bytes: &[u8]) -> Result<EndedOrder> {
    let mut row = Unpacker::new(bytes);
    Ok(EndedOrder {
        key: row.text()?.parse().map_err(Fault::damaged)?,
        tenant: Tenant::new(row.text()?).map_err(Fault::damaged)?,
        outcome: row.text()?.parse().map_err(Fault::damaged)?,
        node: ChainNode::new(row.text()?).map_err(Fault::damaged)?,
        ended: time(row.int()?),
    })
}

pub(crate) fn pack_fire(fire: &Fire) -> Result<Vec<u8>> {
    Ok(Packer::default()
        .int(fire.planned.micros())
        .int(fire.at.micros())
        .bytes(&json(&fire.outcome)?)
        .maybe(fire.event.map(EventId::as_i64))
        .maybe_text(fire.task.as_ref().map(TaskId::as_str))
        .done())
}

pub(crate) fn unpack_fire(bytes: &[u8]) -> Result<Fire> {
    let mut row = Unpacker::new(bytes);
    Ok(Fire {
        planned: time(row.int()?),
        at: time(row.int()?),
        outcome: of_json(row.bytes()?)?,
        event: row.maybe()?.map(id),
        task: row.maybe_text()?.map(TaskId::from_text),
    })
}

pub(crate) fn pack_counters(counters: &Counters, into: Packer) -> Packer {
    into.int(counters.last_event.as_i64())
        .int(counters.forgotten.as_i64())
        .int(counters.tasks)
        .int(counters.fences)
        .int(counters.objects)
        .int(counters.orders)
        .int(counters.journaled)
        .int(counters.ended)
        .maybe(counters.next_due.map(Timestamp::micros))
}

pub(crate) fn unpack_counters(row: &mut Unpacker<'_>) -> Result<Counters> {
    Ok(Counters {
        last_event: id(row.int()?),
        forgotten: id(row.int()?),
        tasks: row.int()?,
        fences: row.int()?,
        objects: row.int()?,
        orders: row.int()?,
        journaled: row.int()?,
        ended: row.int()?,
        next_due: row.maybe()?.map(time),
    })
}
