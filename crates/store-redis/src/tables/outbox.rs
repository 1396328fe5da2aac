//! Outbox entries of objects (document 001) within a transaction.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::tables::ReadSet;
use redis::Value;

use super::RedisTables;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Keys, object_name};
use crate::overlay::{Bytes, decode_integer, decode_list, decode_optional_bytes};
use crate::script;
use crate::write_lock::OutboxFence;

/// Number of event workers of a node, and so of objects that one transaction drains.
const OUTBOX_WORKERS: usize = 16;
/// Maximum number of events of an object per transaction, so that others are not starved.
const MAX_EVENTS_PER_OBJECT: usize = 64;
/// Maximum number of events before a direct emit, which must wait until all earlier entries are journaled.
const MAX_EVENTS_BEFORE_EMIT: usize = 1_000;
/// A transaction stops reading entries after this many bytes.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Maximum size of an entry: that of the value plus its envelope.
pub(crate) const MAX_ENTRY_BYTES: usize = 2 << 20;
/// Maximum number of set-aside entries; the oldest are deleted.
pub(crate) const MAX_SET_ASIDE: u64 = 10_000;
/// Time to live of a worker's heartbeat, in milliseconds.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;
/// Assigned ids further in the future than this are ignored.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// Contents of an object's outbox.
#[derive(Clone, Debug)]
pub(crate) struct OutboxContents {
    pub(crate) object: Vec<u8>,
    /// Owner; empty if there is none.
    pub(crate) owner: Vec<u8>,
    /// Id of the first event, if it is in flight.
    pub(crate) in_flight_id: Option<Vec<u8>>,
    /// One of our workers owns it and releases it with this commit.
    pub(crate) is_owned_by_us: bool,
    pub(crate) remainder: OutboxRemainder,
    pub(crate) entries: Vec<OutboxEntry>,
}

/// State of the outbox after the returned entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxRemainder {
    Empty,
    More,
    /// The key has the wrong type.
    NotAList,
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub(crate) enum OutboxEntry {
    Event(Bytes),
    /// Size of an entry that is too large.
    TooLong(usize),
}

/// State of the outboxes in a transaction, which journals their entries first.
#[derive(Debug, Default)]
pub(crate) struct OutboxState {
    /// The last assigned id.
    last_assigned_id: Cell<EventId>,
    /// Workers and the objects that they own.
    owned_objects: RefCell<Vec<(String, Vec<u8>)>>,
    /// Objects that this transaction writes to, if any of them has entries.
    written_objects: RefCell<BTreeSet<Vec<u8>>>,
    contents: RefCell<Vec<OutboxContents>>,
    fences: RefCell<Vec<OutboxFence>>,
    /// Written objects with more entries than this transaction journals.
    backlogged_objects: RefCell<BTreeSet<Vec<u8>>>,
}

impl OutboxState {
    /// Continues ids after the last assigned one, unless that is too far in the future.
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

    /// Resets the contents after they were journaled.
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
    /// Returns the names of this node's event workers, which are unique to this process.
    pub(crate) fn outbox_worker_names(&self) -> Vec<String> {
        (0..OUTBOX_WORKERS).map(|n| format!("{}.{n}", self.lock_owner)).collect()
    }

    /// Deletes the heartbeats and requeues owned objects when the node stops, so that peers need not wait.
    pub(crate) fn release_outbox_workers(&self) {
        let (keys, workers) = (&self.overlay.keys, self.outbox_worker_names());
        let heartbeat = |worker: &String| keys.with_prefix(&format!("event.worker:{worker}:heartbeat"));
        let delete_heartbeats = [to_arg("DEL")].into_iter().chain(workers.iter().map(heartbeat)).collect();
        let workers: CommandArgs = workers.iter().map(to_arg).collect();
        self.overlay
            .connection
            .execute_if_connected(&[delete_heartbeats, requeue_dead_workers_command(keys, &workers, &[])]);
    }

    /// Returns the command that reads the last assigned id.
    pub(super) fn last_event_id_command(&self) -> CommandArgs {
        args!["MGET", self.overlay.keys.with_prefix("next.event.id")]
    }

    /// Returns the command that checks whether an object of the read set has outbox entries.
    pub(super) fn outbox_exists_command(&self, read_set: &ReadSet) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut args = args!["EXISTS"];
        for object in written_object_names(read_set) {
            args.extend(["events", "event.worker"].map(|what| keys.object_key(&object, what)));
        }
        if args.len() == 1 {
            // EXISTS needs at least one key.
            args.push(keys.with_prefix("pointsman:no-such-key"));
        }
        args
    }

    /// Reads the outboxes of the objects that this transaction writes to, if they have entries, and of those that
    /// our workers own.
    pub(super) fn read_outboxes_for(&self, read_set: &ReadSet, occupied: bool) -> Result<()> {
        self.outbox.owned_objects.borrow_mut().extend(read_set.claimed_outbox_objects.iter().cloned());
        if occupied {
            self.outbox.written_objects.borrow_mut().extend(written_object_names(read_set));
        }
        if occupied || !read_set.claimed_outbox_objects.is_empty() {
            self.read_outboxes()?;
        }
        Ok(())
    }

    /// Reads all outboxes again; they may have grown.
    pub(super) fn read_outboxes(&self) -> Result<()> {
        let reply = self.overlay.connection.execute(self.read_outboxes_command())?;
        let found = decode_list(reply)?.into_iter().map(decode_contents).collect::<Result<_>>()?;
        self.outbox.contents.replace(found);
        Ok(())
    }

    fn read_outboxes_command(&self) -> CommandArgs {
        let (keys, owned) = (&self.overlay.keys, self.outbox.owned_objects.borrow());
        let least = self.caller_time.now().millis() * 1000;
        let mut arguments = args![
            keys.with_prefix(""),
            least.to_string(),
            MAX_EVENTS_PER_OBJECT.to_string(),
            MAX_EVENTS_BEFORE_EMIT.to_string(),
            MAX_BATCH_BYTES.to_string(),
            MAX_ENTRY_BYTES.to_string(),
            HEARTBEAT_MS.to_string(),
            owned.len().to_string()
        ];
        arguments.extend(owned.iter().flat_map(|(worker, object)| args![worker, object]));
        let ours: HashSet<&[u8]> = owned.iter().map(|(_, object)| &**object).collect();
        let written = self.outbox.written_objects.borrow();
        arguments.extend(written.iter().filter(|object| !ours.contains(&***object)).cloned());
        script::READ_OUTBOXES.call_command(vec![keys.with_prefix("next.event.id")], arguments)
    }

    /// Takes the contents to journal first, and the last assigned id.
    pub(crate) fn take_outbox_contents(&self) -> (Vec<OutboxContents>, EventId) {
        (self.outbox.contents.take(), self.outbox.last_assigned_id.get())
    }

    /// Records objects with a backlog; returns whether there are none.
    pub(crate) fn record_outbox_backlog(&self, found: &[OutboxContents]) -> bool {
        let written = self.outbox.written_objects.borrow();
        let more = found.iter().filter(|found| found.remainder == OutboxRemainder::More);
        let backlogged = more.map(|found| found.object.clone()).filter(|object| written.contains(object));
        let backlogged: BTreeSet<Vec<u8>> = backlogged.collect();
        let all = backlogged.is_empty();
        self.outbox.backlogged_objects.replace(backlogged);
        all
    }

    /// Returns whether a job on these objects must wait, because one of them has a backlog.
    pub(crate) fn has_outbox_backlog(&self, read_set: &ReadSet) -> bool {
        let backlogged = self.outbox.backlogged_objects.borrow();
        written_object_names(read_set).iter().any(|object| backlogged.contains(object))
    }

    /// Acknowledges the first entries of an object: one header each, empty for a journaled entry, else it is set aside.
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

/// Returns the command that requeues objects of dead workers.
pub(crate) fn requeue_dead_workers_command(
    keys: &Keys,
    workers: &[Vec<u8>],
    objects: &[Vec<u8>],
) -> CommandArgs {
    let arguments = [&args![keys.with_prefix(""), workers.len().to_string()], workers, objects].concat();
    script::REQUEUE_OBJECTS.call_command(vec![keys.with_prefix("objects.with.events")], arguments)
}

/// Returns the outbox names of the objects of a read set.
fn written_object_names(read_set: &ReadSet) -> BTreeSet<Vec<u8>> {
    read_set.objects.iter().map(|(tenant, key, _)| object_name(tenant, key).into_bytes()).collect()
}

fn decode_contents(reply: Value) -> Result<OutboxContents> {
    let mut parts = decode_list(reply)?.into_iter();
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
