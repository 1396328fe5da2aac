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
use crate::turn::Fence;

/// A node has so many event workers: so many objects are served in one transaction.
const WORKERS: usize = 16;
/// So many events of an object are taken in one transaction: then others have their turn.
const BUDGET: usize = 64;
/// The same for whoever emits to an object, and waits until all that was left for it before is journaled.
const LARGE_BUDGET: usize = 1_000;
/// From so many bytes on nothing more is taken along.
const MOST_BYTES: usize = 4 << 20;
/// An event may have so many bytes: its value's most, and what stands around it.
pub(crate) const LONGEST: usize = 2 << 20;
/// So much of what is no event is kept, the newest.
pub(crate) const KEPT_ASIDE: u64 = 10_000;
/// How long a worker is taken to live after it was heard of, in milliseconds.
pub(crate) const HEARTBEAT: u64 = 15_000;
/// How far the clocks of those who give out ids may be ahead of ours.
const LEAP: Duration = Duration::from_secs(3600);

/// What lies in an object's outbox.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) object: Vec<u8>,
    /// Who holds it; empty if nobody does.
    pub(crate) owner: Vec<u8>,
    /// The id of the first event, if that is in flight.
    pub(crate) given: Option<Vec<u8>>,
    /// It is held by one of our own workers, which lets go of it when this is done.
    pub(crate) ours: bool,
    pub(crate) behind: Behind,
    pub(crate) events: Vec<Entry>,
}

/// What is left behind the events that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    More,
    /// Somebody uses the key for something else.
    Strange,
}

/// Something that was left for an object.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Event(Bytes),
    /// So many bytes, which are too many.
    TooLong(usize),
}

/// What a transaction journals before all else.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The last id that was given out.
    given: Cell<EventId>,
    /// What our workers hold.
    held: RefCell<Vec<(String, Vec<u8>)>>,
    /// The objects that this transaction writes to, if something was left for one of them.
    written: RefCell<BTreeSet<Vec<u8>>>,
    found: RefCell<Vec<Found>>,
    fences: RefCell<Vec<Fence>>,
    /// Those of the objects written to for which more was left than this transaction takes.
    behind: RefCell<BTreeSet<Vec<u8>>>,
}

impl Outbox {
    /// The ids go on after the last one that was given out, unless that is of a clock that had leapt.
    pub(super) fn begins(&self, given: Option<Bytes>, now: Timestamp) {
        let given = given.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok());
        let latest = now.plus(LEAP);
        let given = given.filter(|given: &EventId| given.timestamp() <= latest);
        self.given.set(given.unwrap_or(EventId::ZERO));
    }

    pub(super) fn clear(&self) {
        self.written.take();
        self.behind.take();
        self.ends();
    }

    /// What was found is journaled, and our workers hold nothing more.
    pub(super) fn ends(&self) {
        self.held.take();
        self.found.take();
        self.fences.take();
    }

    pub(super) fn fences(&self) -> Vec<Fence> {
        self.fences.borrow().clone()
    }
}

impl RedisTables {
    /// The names of this node's event workers, which no other start of a process has.
    pub(crate) fn workers(&self) -> Vec<String> {
        (0..WORKERS).map(|n| format!("{}.{n}", self.me)).collect()
    }

    /// The node ends: others need not wait until its workers are taken for dead.
    pub(crate) fn workers_leave(&self) {
        let (keys, workers) = (&self.overlay.keys, self.workers());
        let heartbeat = |worker: &String| keys.with_prefix(&format!("event.worker:{worker}:heartbeat"));
        let die = [to_arg("DEL")].into_iter().chain(workers.iter().map(heartbeat)).collect();
        let workers: CommandArgs = workers.iter().map(to_arg).collect();
        self.overlay.connection.execute_if_connected(&[die, sweep_of(keys, &workers, &[])]);
    }

    /// Asks for the last id that was given out.
    pub(super) fn last_event_id_command(&self) -> CommandArgs {
        args!["MGET", self.overlay.keys.with_prefix("next.event.id")]
    }

    /// Asks whether something was left for one of the objects that will be written to.
    pub(super) fn outbox_exists_command(&self, foreseen: &Foreseen) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut args = args!["EXISTS"];
        for object in names(foreseen) {
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
    pub(super) fn look_at_outbox(&self, foreseen: &Foreseen, occupied: bool) -> Result<()> {
        self.outbox.held.borrow_mut().extend(foreseen.left.iter().cloned());
        if occupied {
            self.outbox.written.borrow_mut().extend(names(foreseen));
        }
        if occupied || !foreseen.left.is_empty() {
            self.look_at_all_left()?;
        }
        Ok(())
    }

    /// Looks at all of it. What was seen before may have grown since.
    pub(super) fn look_at_all_left(&self) -> Result<()> {
        let answer = self.overlay.connection.execute(self.read_outboxes_command())?;
        let found = decode_list(answer)?.into_iter().map(read).collect::<Result<_>>()?;
        self.outbox.found.replace(found);
        Ok(())
    }

    fn read_outboxes_command(&self) -> CommandArgs {
        let (keys, held) = (&self.overlay.keys, self.outbox.held.borrow());
        let least = self.time.now().millis() * 1000;
        let mut arguments = args![
            keys.with_prefix(""),
            least.to_string(),
            BUDGET.to_string(),
            LARGE_BUDGET.to_string(),
            MOST_BYTES.to_string(),
            LONGEST.to_string(),
            HEARTBEAT.to_string(),
            held.len().to_string()
        ];
        arguments.extend(held.iter().flat_map(|(worker, object)| args![worker, object]));
        let ours: HashSet<&[u8]> = held.iter().map(|(_, object)| &**object).collect();
        let written = self.outbox.written.borrow();
        arguments.extend(written.iter().filter(|object| !ours.contains(&***object)).cloned());
        script::SERVE.call(vec![keys.with_prefix("next.event.id")], arguments)
    }

    /// What is to be journaled first, and the last id that was given out before it.
    pub(crate) fn left(&self) -> (Vec<Found>, EventId) {
        (self.outbox.found.take(), self.outbox.given.get())
    }

    /// Whether this is all that was left for the objects that this transaction writes to.
    pub(crate) fn is_all(&self, found: &[Found]) -> bool {
        let written = self.outbox.written.borrow();
        let more = found.iter().filter(|found| found.behind == Behind::More);
        let behind = more.map(|found| found.object.clone()).filter(|object| written.contains(object));
        let behind: BTreeSet<Vec<u8>> = behind.collect();
        let all = behind.is_empty();
        self.outbox.behind.replace(behind);
        all
    }

    /// Whether somebody who writes to these objects must wait: more was left for one of them than is journaled yet.
    pub(crate) fn is_behind(&self, foreseen: &Foreseen) -> bool {
        let behind = self.outbox.behind.borrow();
        names(foreseen).iter().any(|object| behind.contains(object))
    }

    /// The first events of an object are journaled, or set aside: one header each, which is empty where it is journaled.
    pub(crate) fn acknowledge(&self, found: &Found, headers: Vec<String>) {
        let Found { object, owner, given, ours, .. } = found;
        let fence = Fence {
            object: object.clone(),
            holder: if *ours { owner.clone() } else { vec![] },
            id: given.clone().unwrap_or_default(),
            count: headers.len(),
        };
        self.outbox.fences.borrow_mut().push(fence);
        let any_aside = headers.iter().any(|header| !header.is_empty());
        let headers: CommandArgs = headers.into_iter().map(to_arg).collect();
        if !headers.is_empty() {
            self.overlay.add_command([&args!["acknowledge", object], &headers[..]].concat());
        }
        if any_aside {
            let aside = self.overlay.keys.with_prefix("events.set.aside");
            self.overlay.add_command(args!["LTRIM", aside, "0", (KEPT_ASIDE - 1).to_string()]);
        }
        if *ours {
            self.overlay.add_command(args!["release", owner, object]);
        }
    }
}

/// Puts in line what these workers hold, and these objects, as far as those who hold them are dead.
pub(crate) fn sweep_of(keys: &Keys, workers: &[Vec<u8>], objects: &[Vec<u8>]) -> CommandArgs {
    let arguments = [&args![keys.with_prefix(""), workers.len().to_string()], workers, objects].concat();
    script::SWEEP.call(vec![keys.with_prefix("objects.with.events")], arguments)
}

/// The objects that will be written to, by the names that they have in the outbox.
fn names(foreseen: &Foreseen) -> BTreeSet<Vec<u8>> {
    foreseen.objects.iter().map(|(tenant, key, _)| object_name(tenant, key).into_bytes()).collect()
}

fn read(answer: Value) -> Result<Found> {
    let mut parts = decode_list(answer)?.into_iter();
    let mut bytes = || decode_optional_bytes(parts.next().unwrap_or(Value::Nil));
    let [object, owner, id] = [bytes()?, bytes()?, bytes()?].map(|bytes| bytes.unwrap_or_default().to_vec());
    let mut number = || decode_integer(parts.next().unwrap_or(Value::Nil));
    let (ours, behind) = (number()? == 1, number()?);
    let behind = match behind {
        0 => Behind::Nothing,
        1 => Behind::More,
        _ => Behind::Strange,
    };
    let entry = |value: Value| match value {
        Value::Int(bytes) => Ok(Entry::TooLong(usize::try_from(bytes).unwrap_or(usize::MAX))),
        event => Ok(Entry::Event(decode_optional_bytes(event)?.unwrap_or_default())),
    };
    let events = parts.map(entry).collect::<Result<_>>()?;
    Ok(Found { object, owner, given: Some(id).filter(|id| !id.is_empty()), ours, behind, events })
}
