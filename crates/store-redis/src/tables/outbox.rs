//! What lies in the outboxes of objects (document 001), as a transaction finds it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::tables::Foreseen;
use redis::Value;

use super::RedisTables;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Keys, object_name};
use crate::overlay::{Bytes, decode_integer, decode_list, decode_optional_bytes};
use crate::script;
use crate::write_lock::OutboxFence;

/// A node has so many event workers: so many objects are served in one transaction.
const OUTBOX_WORKERS: usize = 16;
/// So many events of an object are taken in one transaction: then others have their turn.
const MAX_EVENTS_PER_OBJECT: usize = 64;
/// The same for whoever emits to an object, and waits until all that was left for it before is journaled.
const MAX_EVENTS_BEFORE_EMIT: usize = 1_000;
/// From so many bytes on nothing more is taken along.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// An event may have so many bytes: its value's most, and what stands around it.
pub(crate) const MAX_ENTRY_BYTES: usize = 2 << 20;
/// So much of what is no event is kept, the newest.
pub(crate) const MAX_SET_ASIDE: u64 = 10_000;
/// How long a worker is taken to live after it was heard of, in milliseconds.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;
/// How far the clocks of those who give out ids may be ahead of ours.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// What lies in an object's outbox.
#[derive(Clone, Debug)]
pub(crate) struct OutboxContents {
    pub(crate) object: Vec<u8>,
    /// Who holds it; empty if nobody does.
    pub(crate) owner: Vec<u8>,
    /// The id of the first event, if that is in flight.
    pub(crate) in_flight_id: Option<Vec<u8>>,
    /// It is held by one of our own workers, which lets go of it when this is done.
    pub(crate) is_owned_by_us: bool,
    pub(crate) remainder: OutboxRemainder,
    pub(crate) entries: Vec<OutboxEntry>,
}

/// What is left behind the events that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxRemainder {
    Empty,
    More,
    /// Somebody uses the key for something else.
    NotAList,
}

/// Something that was left for an object.
#[derive(Clone, Debug)]
pub(crate) enum OutboxEntry {
    Event(Bytes),
    /// So many bytes, which are too many.
    TooLong(usize),
}

/// What a transaction journals before all else.
#[derive(Debug, Default)]
pub(crate) struct OutboxState {
    /// The last id that was given out.
    last_assigned_id: Cell<EventId>,
    /// What our workers hold.
    owned_objects: RefCell<Vec<(String, Vec<u8>)>>,
    /// The objects that this transaction writes to, if something was left for one of them.
    written_objects: RefCell<BTreeSet<Vec<u8>>>,
    contents: RefCell<Vec<OutboxContents>>,
    fences: RefCell<Vec<OutboxFence>>,
    /// Those of the objects written to for which more was left than this transaction takes.
    backlogged_objects: RefCell<BTreeSet<Vec<u8>>>,
}

impl OutboxState {
    /// The ids go on after the last one that was given out, unless that is of a clock that had leapt.
    pub(super) fn start_ids_after(&self, given: Option<Bytes>, now: Timestamp) {
        let given = given.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok());
        let latest = now.plus(MAX_CLOCK_SKEW);
        let given = given.filter(|given: &EventId| given.timestamp() <= latest);
        self.last_assigned_id.set(given.unwrap_or(EventId::ZERO));
    }

    pub(super) fn clear(&self) {
        self.written_objects.take();
        self.backlogged_objects.take();
        self.reset_contents();
    }

    /// What was found is journaled, and our workers hold nothing more.
    pub(super) fn reset_contents(&self) {
        self.owned_objects.take();
        self.contents.take();
        self.fences.take();
    }

    pub(super) fn fences(&self) -> Vec<OutboxFence> {
        self.fences.borrow().clone()
    }
}

impl RedisTables {
    /// The names of this node's event workers, which no other start of a process has.
    pub(crate) fn outbox_worker_names(&self) -> Vec<String> {
        (0..OUTBOX_WORKERS).map(|n| format!("{}.{n}", self.lock_owner)).collect()
    }

    /// The node ends: others need not wait until its workers are taken for dead.
    pub(crate) fn release_outbox_workers(&self) {
        let (keys, workers) = (&self.overlay.keys, self.outbox_worker_names());
        let heartbeat = |worker: &String| keys.with_prefix(&format!("event.worker:{worker}:heartbeat"));
        let die = [to_arg("DEL")].into_iter().chain(workers.iter().map(heartbeat)).collect();
        let workers: CommandArgs = workers.iter().map(to_arg).collect();
        self.overlay
            .connection
            .execute_if_connected(&[die, requeue_dead_workers_command(keys, &workers, &[])]);
    }

    /// Asks for the last id that was given out.
    pub(super) fn last_event_id_command(&self) -> CommandArgs {
        args!["MGET", self.overlay.keys.with_prefix("next.event.id")]
    }

    /// Asks whether something was left for one of the objects that will be written to.
    pub(super) fn outbox_exists_command(&self, foreseen: &Foreseen) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut args = args!["EXISTS"];
        for object in written_object_names(foreseen) {
            args.extend(["events", "event.worker"].map(|what| keys.object_key(&object, what)));
        }
        if args.len() == 1 {
            // It does not go without a key.
            args.push(keys.with_prefix("pointsman:nothing"));
        }
        args
    }

    /// Looks for what was left for the objects that this transaction writes to, if there is something, and for those that
    /// are held.
    pub(super) fn read_outboxes_for(&self, foreseen: &Foreseen, occupied: bool) -> Result<()> {
        self.outbox.owned_objects.borrow_mut().extend(foreseen.left.iter().cloned());
        if occupied {
            self.outbox.written_objects.borrow_mut().extend(written_object_names(foreseen));
        }
        if occupied || !foreseen.left.is_empty() {
            self.read_outboxes()?;
        }
        Ok(())
    }

    /// Looks at all of it. What was seen before may have grown since.
    pub(super) fn read_outboxes(&self) -> Result<()> {
        let answer = self.overlay.connection.execute(self.read_outboxes_command())?;
        let found = decode_list(answer)?.into_iter().map(decode_contents).collect::<Result<_>>()?;
        self.outbox.contents.replace(found);
        Ok(())
    }

    fn read_outboxes_command(&self) -> CommandArgs {
        let (keys, held) = (&self.overlay.keys, self.outbox.owned_objects.borrow());
        let least = self.caller_time.now().millis() * 1000;
        let mut arguments = args![
            keys.with_prefix(""),
            least.to_string(),
            MAX_EVENTS_PER_OBJECT.to_string(),
            MAX_EVENTS_BEFORE_EMIT.to_string(),
            MAX_BATCH_BYTES.to_string(),
            MAX_ENTRY_BYTES.to_string(),
            HEARTBEAT_MS.to_string(),
            held.len().to_string()
        ];
        arguments.extend(held.iter().flat_map(|(worker, object)| args![worker, object]));
        let ours: HashSet<&[u8]> = held.iter().map(|(_, object)| &**object).collect();
        let written = self.outbox.written_objects.borrow();
        arguments.extend(written.iter().filter(|object| !ours.contains(&***object)).cloned());
        script::READ_OUTBOXES.call_command(vec![keys.with_prefix("next.event.id")], arguments)
    }

    /// What is to be journaled first, and the last id that was given out before it.
    pub(crate) fn take_outbox_contents(&self) -> (Vec<OutboxContents>, EventId) {
        (self.outbox.contents.take(), self.outbox.last_assigned_id.get())
    }

    /// Whether this is all that was left for the objects that this transaction writes to.
    pub(crate) fn record_outbox_backlog(&self, found: &[OutboxContents]) -> bool {
        let written = self.outbox.written_objects.borrow();
        let more = found.iter().filter(|found| found.remainder == OutboxRemainder::More);
        let behind = more.map(|found| found.object.clone()).filter(|object| written.contains(object));
        let behind: BTreeSet<Vec<u8>> = behind.collect();
        let all = behind.is_empty();
        self.outbox.backlogged_objects.replace(behind);
        all
    }

    /// Whether somebody who writes to these objects must wait: more was left for one of them than is journaled yet.
    pub(crate) fn has_outbox_backlog(&self, foreseen: &Foreseen) -> bool {
        let behind = self.outbox.backlogged_objects.borrow();
        written_object_names(foreseen).iter().any(|object| behind.contains(object))
    }

    /// The first events of an object are journaled, or set aside: one header each, which is empty where it is journaled.
    pub(crate) fn acknowledge_outbox_entries(&self, found: &OutboxContents, headers: Vec<String>) {
        let OutboxContents { object, owner, in_flight_id, is_owned_by_us, .. } = found;
        let fence = OutboxFence {
            object: object.clone(),
            owner: if *is_owned_by_us { owner.clone() } else { vec![] },
            in_flight_id: in_flight_id.clone().unwrap_or_default(),
            event_count: headers.len(),
        };
        self.outbox.fences.borrow_mut().push(fence);
        let any_aside = headers.iter().any(|header| !header.is_empty());
        let headers: CommandArgs = headers.into_iter().map(to_arg).collect();
        if !headers.is_empty() {
            self.overlay.add_command([&args!["acknowledge", object], &headers[..]].concat());
        }
        if any_aside {
            let aside = self.overlay.keys.with_prefix("events.set.aside");
            self.overlay.add_command(args!["LTRIM", aside, "0", (MAX_SET_ASIDE - 1).to_string()]);
        }
        if *is_owned_by_us {
            self.overlay.add_command(args!["release", owner, object]);
        }
    }
}

/// Puts in line what these workers hold, and these objects, as far as those who hold them are dead.
pub(crate) fn requeue_dead_workers_command(
    keys: &Keys,
    workers: &[Vec<u8>],
    objects: &[Vec<u8>],
) -> CommandArgs {
    let arguments = [&args![keys.with_prefix(""), workers.len().to_string()], workers, objects].concat();
    script::REQUEUE_OBJECTS.call_command(vec![keys.with_prefix("objects.with.events")], arguments)
}

/// The objects that will be written to, by the names that they have in the outbox.
fn written_object_names(foreseen: &Foreseen) -> BTreeSet<Vec<u8>> {
    foreseen.objects.iter().map(|(tenant, key, _)| object_name(tenant, key).into_bytes()).collect()
}

fn decode_contents(answer: Value) -> Result<OutboxContents> {
    let mut parts = decode_list(answer)?.into_iter();
    let mut bytes = || decode_optional_bytes(parts.next().unwrap_or(Value::Nil));
    let [object, owner, id] = [bytes()?, bytes()?, bytes()?].map(|bytes| bytes.unwrap_or_default().to_vec());
    let mut number = || decode_integer(parts.next().unwrap_or(Value::Nil));
    let (is_owned_by_us, remainder) = (number()? == 1, number()?);
    let remainder = match remainder {
        0 => OutboxRemainder::Empty,
        1 => OutboxRemainder::More,
        _ => OutboxRemainder::NotAList,
    };
    let entry = |value: Value| match value {
        Value::Int(bytes) => Ok(OutboxEntry::TooLong(usize::try_from(bytes).unwrap_or(usize::MAX))),
        event => Ok(OutboxEntry::Event(decode_optional_bytes(event)?.unwrap_or_default())),
    };
    let entries = parts.map(entry).collect::<Result<_>>()?;
    Ok(OutboxContents {
        object,
        owner,
        in_flight_id: Some(id).filter(|id| !id.is_empty()),
        is_owned_by_us,
        remainder,
        entries,
    })
}
