//! Retention of objects: deletes those that no event in the journal and no unfinished task belongs to.
//!
//! An object has no list of its unfinished tasks: keeping one would cost a write for each task. Instead, each object has
//! a `checked` id, its first event's to begin with, and objects are found in the order of these. A round has three steps:
//!
//! 1. Choose the cutoff: events up to it are old, and no longer in the journal. If no object was checked at or before
//!    it, the round ends here.
//! 2. Page through the unfinished tasks of events up to the cutoff, and set `checked` of their objects to now.
//! 3. Visit the objects that were checked at or before the cutoff: set `checked` of those that have had an event since
//!    to that event, and delete the others.
//!
//! A visited object that stays is not visited again before another retention period has passed and the journal has
//! dropped its last event, so that the cost of a round follows the deleted objects and the old unfinished tasks, not the
//! objects that stay.

use std::time::Duration;

use pointsman_core::{EventId, TaskSeq, Tenant, Timestamp};

use crate::error::Result;
use crate::tables::Tables;
use crate::writer::Txn;

/// Tasks or objects that one transaction visits at most: emits wait for it.
const BATCH: usize = 500;

/// A round that takes longer starts again with later cutoffs.
const LONGEST_ROUND: Duration = Duration::from_secs(3600);

/// How far a round has come. It is lost with the node's memory; the next one starts from the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectRound {
    cutoff: EventId,
    step: RoundStep,
}

#[derive(Clone, Copy, Debug)]
enum RoundStep {
    /// Unfinished tasks after this one.
    Tasks(TaskSeq),
    /// Events after this one that have late unfinished tasks.
    LateTasks(EventId),
    Objects,
}

impl ObjectRound {
    /// Whether a round that begins now would find many more: this one was interrupted for a while.
    fn is_outdated(&self, cutoff: EventId) -> bool {
        cutoff.timestamp() > self.cutoff.timestamp().plus(LONGEST_ROUND)
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Deletes a batch of unused objects; answers how many, and whether the round goes on.
    pub(crate) fn prune_objects(&mut self, retain_for: Duration, now: Timestamp) -> Result<(u64, bool)> {
        let cutoff = self.object_cutoff(retain_for, now);
        let round = match self.state.object_round.take().filter(|round| !round.is_outdated(cutoff)) {
            Some(round) => Some(round),
            None => self.begin_object_round(cutoff)?,
        };
        let Some(ObjectRound { cutoff, step }) = round else { return Ok((0, false)) };
        let in_use = first_id_at(now).max(EventId::from_i64(cutoff.as_i64() + 1));
        let (deleted, next) = match step {
            RoundStep::Tasks(after) => (0, Some(self.keep_objects_of_tasks(after, cutoff, in_use)?)),
            RoundStep::LateTasks(after) => (0, Some(self.keep_objects_of_late(after, cutoff, in_use)?)),
            RoundStep::Objects => self.delete_unused(cutoff, in_use)?,
        };
        self.state.object_round = next.map(|step| ObjectRound { cutoff, step });
        Ok((deleted, next.is_some()))
    }

    /// Up to this id, events are older than the retention period and no longer in the journal. An empty journal has no
    /// event after it either, and does not count.
    fn object_cutoff(&self, retain_for: Duration, now: Timestamp) -> EventId {
        let (age, forgotten) = (first_id_at(now.minus(retain_for)), self.state.counters.forgotten);
        if forgotten >= self.state.ids.last() { age } else { age.min(forgotten) }
    }

    fn begin_object_round(&self, cutoff: EventId) -> Result<Option<ObjectRound>> {
        let is_due = cutoff > EventId::ZERO && !self.tables.idle_objects(cutoff, 1)?.is_empty();
        Ok(is_due.then_some(ObjectRound { cutoff, step: RoundStep::Tasks(TaskSeq(0)) }))
    }

    /// Tasks that are not late are numbered in the order of their events, so that the first one of a younger event ends
    /// this step.
    fn keep_objects_of_tasks(&self, after: TaskSeq, cutoff: EventId, in_use: EventId) -> Result<RoundStep> {
        let tasks = self.tables.unfinished_after(after, BATCH)?;
        let (old, younger): (Vec<EventId>, Vec<EventId>) =
            tasks.iter().filter_map(|(_, event)| *event).partition(|event| *event <= cutoff);
        self.tables.keep_objects(&old, cutoff, in_use)?;
        Ok(match tasks.last() {
            Some((last, _)) if tasks.len() >= BATCH && younger.is_empty() => RoundStep::Tasks(*last),
            Some(_) | None => RoundStep::LateTasks(EventId::ZERO),
        })
    }

    fn keep_objects_of_late(&self, after: EventId, cutoff: EventId, in_use: EventId) -> Result<RoundStep> {
        let events = self.tables.late_events(after, cutoff, BATCH)?;
        self.tables.keep_objects(&events, cutoff, in_use)?;
        Ok(match events.last() {
            Some(last) if events.len() >= BATCH => RoundStep::LateTasks(*last),
            Some(_) | None => RoundStep::Objects,
        })
    }

    fn delete_unused(&self, cutoff: EventId, in_use: EventId) -> Result<(u64, Option<RoundStep>)> {
        let idle = self.tables.idle_objects(cutoff, BATCH)?;
        let next = (idle.len() >= BATCH).then_some(RoundStep::Objects);
        // A clock that is behind may have given a new event an id before the cutoff.
        let newest = cutoff.min(self.state.counters.forgotten);
        let (unused, used): (Vec<_>, Vec<_>) =
            idle.into_iter().partition(|idle| idle.object.last <= newest && !idle.queued);
        let checked = |last: EventId| if last > cutoff { last } else { in_use };
        let used: Vec<_> =
            used.into_iter().map(|idle| (idle.tenant, idle.key, checked(idle.object.last))).collect();
        self.tables.set_objects_checked(&used)?;
        self.tables.delete_objects(&unused)?;
        Ok((unused.len() as u64, next))
    }

    /// A task of an old event is unfinished again: a round that has passed it by must not delete its object.
    pub(crate) fn keep_object(&self, tenant: &Tenant, key: &str, now: Timestamp) -> Result<()> {
        self.tables.set_objects_checked(&[(tenant.clone(), key.to_string(), first_id_at(now))])
    }
}

/// The least id that an event of this time can have.
fn first_id_at(time: Timestamp) -> EventId {
    EventId::from_i64(time.millis().max(0).saturating_mul(1000))
}
