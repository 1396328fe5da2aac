//! Outboxes of objects (document 001) within a transaction: reads their entries and acknowledges them with the commit.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::tables::ReadSet;
use redis::Value;

use super::RedisTables;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Keys, object_name};
use crate::overlay::{Bytes, decode_integer, decode_list, decode_optional_bytes};
use crate::script;
use crate::write_lock::OutboxFence;

/// Number of event workers of a node: each drains one object at a time.
const OUTBOX_WORKERS_PER_NODE: usize = 16;
/// Maximum number of events that one transaction journals of an object that a worker claimed, so that other objects do not
/// wait long.
const MAX_EVENTS_PER_OWNED_OBJECT: usize = 64;
/// Maximum number of events that one transaction journals of an object to which it also emits directly: the emit must wait
/// until all earlier entries are journaled.
const MAX_EVENTS_BEFORE_EMIT: usize = 1_000;
/// A transaction stops reading entries after this many bytes.
const MAX_READ_OUTBOX_BYTES: usize = 4 << 20;
/// Maximum size of an entry: that of the value plus its envelope.
pub(crate) const MAX_ENTRY_BYTES: usize = 2 << 20;
/// Maximum number of entries that are kept in `events.set.aside`; the oldest are deleted.
pub(crate) const MAX_SET_ASIDE_ENTRIES: u64 = 10_000;
/// Time to live of a worker's heartbeat, in milliseconds.
pub(crate) const WORKER_HEARTBEAT_TTL_MS: u64 = 15_000;
/// A stored assigned id that is further in the future than this is ignored.
const MAX_ASSIGNED_ID_LEAD: Duration = Duration::from_secs(3600);

/// Contents of an object's outbox.
#[derive(Clone, Debug)]
pub(crate) struct OutboxContents {
    pub(crate) object: Vec<u8>,
    /// Name of the worker that owns the object; empty if there is none.
    pub(crate) owner: Vec<u8>,
    /// Id that was assigned to the first event, if that is in flight.
    pub(crate) in_flight_id: Option<Vec<u8>>,
    /// Whether a worker of this node owns the object, and so releases it with this commit.
    pub(crate) is_owned_by_this_node: bool,
    pub(crate) remainder: OutboxRemainder,
    pub(crate) entries: Vec<OutboxEntry>,
}

/// The content of an outbox after the entries that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxRemainder {
    Empty,
    More,
    /// Nothing was read: the key of the outbox has another type.
    NotAList,
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub(crate) enum OutboxEntry {
    /// The bytes that a producer pushed, which may not be an event.
    Unparsed(Bytes),
    /// Size in bytes of an entry that is too large; its bytes are not fetched.
    TooLong(usize),
}

/// The outboxes of a transaction, which journals their entries before its jobs run.
#[derive(Debug, Default)]
pub(crate) struct OutboxState {
    /// The last id that was assigned to an event in flight or in the journal (`next.event.id`).
    last_assigned_id: EventId,
    /// Workers and the objects that they own.
    owned_objects: Vec<(String, Vec<u8>)>,
    /// Objects that this transaction emits to; empty if none of them has outbox entries.
    objects_emitted_to: BTreeSet<Vec<u8>>,
    contents: Vec<OutboxContents>,
    fences: Vec<OutboxFence>,
    /// Objects that this transaction emits to and that have more entries than it journals.
    backlogged_objects: BTreeSet<Vec<u8>>,
}

impl OutboxState {
    /// Sets the last assigned id to the stored one, after which ids continue, unless that is too far in the future.
    pub(super) fn set_last_assigned_id_if_plausible(&mut self, stored_id: Option<Bytes>, now: Timestamp) {
        let stored_id = stored_id.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok());
        let latest = now.plus(MAX_ASSIGNED_ID_LEAD);
        let stored_id = stored_id.filter(|stored_id: &EventId| stored_id.timestamp() <= latest);
        self.last_assigned_id = stored_id.unwrap_or(EventId::ZERO);
    }

    pub(super) fn clear(&mut self) {
        self.objects_emitted_to.clear();
        self.backlogged_objects.clear();
        self.clear_journaled();
    }

    /// Clears the outboxes whose entries were journaled, together with their owners and fences.
    pub(super) fn clear_journaled(&mut self) {
        self.owned_objects.clear();
        self.contents.clear();
        self.fences.clear();
    }

    pub(super) fn fences(&self) -> &[OutboxFence] {
        &self.fences
    }
}

impl RedisTables {
    /// Returns the names of this node's event workers, which are unique to this process.
    pub(crate) fn outbox_worker_names(&self) -> Vec<String> {
        (0..OUTBOX_WORKERS_PER_NODE).map(|n| format!("{}.{n}", self.lock_owner_name)).collect()
    }

    /// Deletes the heartbeats and requeues owned objects when the node stops, so that peers need not wait.
    pub(crate) fn release_outbox_workers(&mut self) {
        let (keys, workers) = (&self.overlay.keys, self.outbox_worker_names());
        let heartbeat = |worker: &String| keys.with_prefix(&format!("event.worker:{worker}:heartbeat"));
        let delete_heartbeats = [to_arg("DEL")].into_iter().chain(workers.iter().map(heartbeat)).collect();
        let workers: CommandArgs = workers.iter().map(to_arg).collect();
        self.overlay.connection.execute_if_connected(&[
            delete_heartbeats,
            requeue_objects_of_dead_workers_command(keys, &workers, &[]),
        ]);
    }

    /// Returns the command that reads the last assigned id.
    pub(super) fn last_assigned_id_command(&self) -> CommandArgs {
        args!["MGET", self.overlay.keys.with_prefix("next.event.id")]
    }

    /// Returns the command that checks whether an object of the read set has outbox entries.
    pub(super) fn outbox_exists_command(&self, read_set: &ReadSet) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut args = args!["EXISTS"];
        for object in object_names_of_read_set(read_set) {
            args.extend(["events", "event.worker"].map(|suffix| keys.redis_key_of_object(&object, suffix)));
        }
        if args.len() == 1 {
            // EXISTS needs at least one key.
            args.push(keys.with_prefix("pointsman:no-such-key"));
        }
        args
    }

    /// Reads the outboxes of the objects that this transaction writes to, if they have entries, and of those that
    /// our workers own.
    pub(super) fn read_outboxes_for(&mut self, read_set: &ReadSet, has_entries: bool) -> TableResult<()> {
        self.outbox_state.owned_objects.extend(read_set.claimed_outbox_objects.iter().cloned());
        if has_entries {
            self.outbox_state.objects_emitted_to.extend(object_names_of_read_set(read_set));
        }
        if has_entries || !read_set.claimed_outbox_objects.is_empty() {
            self.read_outboxes()?;
        }
        Ok(())
    }

    /// Reads the outboxes of the owned objects and of those emitted to; replaces what was read before.
    pub(super) fn read_outboxes(&mut self) -> TableResult<()> {
        let reply = self.overlay.connection.execute(self.read_outboxes_command())?;
        self.outbox_state.contents =
            decode_list(reply)?.into_iter().map(decode_outbox_contents).collect::<TableResult<_>>()?;
        Ok(())
    }

    fn read_outboxes_command(&self) -> CommandArgs {
        let (keys, owned) = (&self.overlay.keys, &self.outbox_state.owned_objects);
        let min_id = self.caller_time.now().millis() * 1000;
        let mut arguments = args![
            keys.with_prefix(""),
            min_id.to_string(),
            MAX_EVENTS_PER_OWNED_OBJECT.to_string(),
            MAX_EVENTS_BEFORE_EMIT.to_string(),
            MAX_READ_OUTBOX_BYTES.to_string(),
            MAX_ENTRY_BYTES.to_string(),
            WORKER_HEARTBEAT_TTL_MS.to_string(),
            owned.len().to_string()
        ];
        arguments.extend(owned.iter().flat_map(|(worker, object)| args![worker, object]));
        let owned_names: HashSet<&[u8]> = owned.iter().map(|(_, object)| &**object).collect();
        let written = &self.outbox_state.objects_emitted_to;
        arguments.extend(written.iter().filter(|object| !owned_names.contains(&***object)).cloned());
        script::READ_OUTBOXES.build_evalsha_command(vec![keys.with_prefix("next.event.id")], arguments)
    }

    /// Takes the outboxes that were read, and returns the last assigned id.
    pub(crate) fn take_outboxes_and_last_assigned_id(&mut self) -> (Vec<OutboxContents>, EventId) {
        (std::mem::take(&mut self.outbox_state.contents), self.outbox_state.last_assigned_id)
    }

    /// Records which objects that the transaction emits to have more entries than were read; returns whether none has.
    pub(crate) fn record_outbox_backlog(&mut self, outboxes: &[OutboxContents]) -> bool {
        let written = &self.outbox_state.objects_emitted_to;
        let unfinished = outboxes.iter().filter(|outbox| outbox.remainder == OutboxRemainder::More);
        let backlogged =
            unfinished.map(|outbox| outbox.object.clone()).filter(|object| written.contains(object));
        self.outbox_state.backlogged_objects = backlogged.collect();
        self.outbox_state.backlogged_objects.is_empty()
    }

    /// Returns whether a job on these objects must wait, because one of them has a backlog.
    pub(crate) fn has_outbox_backlog(&self, read_set: &ReadSet) -> bool {
        let backlogged = &self.outbox_state.backlogged_objects;
        object_names_of_read_set(read_set).iter().any(|object| backlogged.contains(object))
    }

    /// Acknowledges the first entries of an object. Each has a header: empty for a journaled entry, else the line that is written
    /// before the entry when it is set aside.
    pub(crate) fn acknowledge_outbox_entries(&mut self, outbox: &OutboxContents, headers: Vec<String>) {
        let OutboxContents { object, owner, in_flight_id, is_owned_by_this_node, .. } = outbox;
        let fence = OutboxFence {
            object: object.clone(),
            required_owner: if *is_owned_by_this_node { owner.clone() } else { vec![] },
            in_flight_id: in_flight_id.clone().unwrap_or_default(),
            acknowledged_event_count: headers.len(),
        };
        self.outbox_state.fences.push(fence);
        let has_set_aside = headers.iter().any(|header| !header.is_empty());
        let headers: CommandArgs = headers.into_iter().map(to_arg).collect();
        if !headers.is_empty() {
            self.overlay.add_extra_command([&args!["acknowledge", object], &headers[..]].concat());
        }
        if has_set_aside {
            let set_aside_key = self.overlay.keys.with_prefix("events.set.aside");
            self.overlay.add_extra_command(args![
                "LTRIM",
                set_aside_key,
                "0",
                (MAX_SET_ASIDE_ENTRIES - 1).to_string()
            ]);
        }
        if *is_owned_by_this_node {
            self.overlay.add_extra_command(args!["release", owner, object]);
        }
    }
}

/// Returns the command that requeues objects of dead workers.
pub(crate) fn requeue_objects_of_dead_workers_command(
    keys: &Keys,
    workers: &[Vec<u8>],
    objects: &[Vec<u8>],
) -> CommandArgs {
    let arguments = [&args![keys.with_prefix(""), workers.len().to_string()], workers, objects].concat();
    script::REQUEUE_OBJECTS.build_evalsha_command(vec![keys.with_prefix("objects.with.events")], arguments)
}

/// Returns the outbox names of the objects of a read set.
fn object_names_of_read_set(read_set: &ReadSet) -> BTreeSet<Vec<u8>> {
    read_set.objects.iter().map(|(tenant, key, _)| object_name(tenant, key).into_bytes()).collect()
}

fn decode_outbox_contents(reply: Value) -> TableResult<OutboxContents> {
    let mut parts = decode_list(reply)?.into_iter();
    let mut bytes = || decode_optional_bytes(parts.next().unwrap_or(Value::Nil));
    let [object, owner, id] = [bytes()?, bytes()?, bytes()?].map(|bytes| bytes.unwrap_or_default().to_vec());
    let mut number = || decode_integer(parts.next().unwrap_or(Value::Nil));
    let (is_owned_by_this_node, remainder) = (number()? == 1, number()?);
    let remainder = match remainder {
        0 => OutboxRemainder::Empty,
        1 => OutboxRemainder::More,
        _ => OutboxRemainder::NotAList,
    };
    let decode_entry = |value: Value| match value {
        Value::Int(bytes) => Ok(OutboxEntry::TooLong(usize::try_from(bytes).unwrap_or(usize::MAX))),
        event => Ok(OutboxEntry::Unparsed(decode_optional_bytes(event)?.unwrap_or_default())),
    };
    let entries = parts.map(decode_entry).collect::<TableResult<_>>()?;
    Ok(OutboxContents {
        object,
        owner,
        in_flight_id: Some(id).filter(|id| !id.is_empty()),
        is_owned_by_this_node,
        remainder,
        entries,
    })
}
