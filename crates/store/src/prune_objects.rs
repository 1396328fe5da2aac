//! Retention of objects: deletes those that no event in the journal and no unfinished task belongs to.
//!
//! An object has no list of its unfinished tasks: keeping one would cost a write for each task. Instead, each object
//! has a `checked` id, its first event's to begin with, and objects are found in the order of these. A round has three
//! steps:
//!
//! 1. Choose the cutoff: events up to it are old, and no longer in the journal. If no object was checked at or before
//!    it, the round ends here.
//! 2. Page through the events up to the cutoff that are stored for their unfinished tasks, and set `checked` of their
//!    objects to now.
//! 3. Visit the objects that were checked at or before the cutoff: set `checked` of those that have had an event since
//!    to that event, and delete the others.
//!
//! A visited object that stays is not visited again before another retention period has passed and the journal has
//! dropped its last event, so that the cost of a round follows the deleted objects and the old events of unfinished
//! tasks. Neither the objects that stay nor tasks of orders, sources and recent events count. A round is worth its cost
//! if it deletes a batch; for fewer objects there is at most one round an hour.
//!
//! The round is stored with what it changes: it survives a restart, and all nodes continue the same one.

use std::time::Duration;

use pointsman_core::{EventId, Tenant, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::TableResult;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::write_named_json;

/// Most events or objects that one transaction visits. Emits wait for it.
const PRUNE_ROUND_BATCH_SIZE: usize = 500;

/// While fewer than [`PRUNE_ROUND_BATCH_SIZE`] objects are idle, a round begins only after this interval.
const SMALL_PRUNE_ROUND_INTERVAL: Duration = Duration::from_secs(3600);

/// A stored round is abandoned if its cutoff is later than the current one by more than this: the round began with a
/// shorter retention period.
const CUTOFF_TOLERANCE: Duration = Duration::from_secs(3600);

/// Name of the named text in which the latest round is stored.
const OBJECT_ROUND_TEXT_NAME: &str = "object_round";

/// The latest round and its progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ObjectPruneRound {
    /// When it began, in microseconds.
    #[serde(rename = "begun")]
    begun_at: i64,
    cutoff: EventId,
    /// The last event that had expired when the round began. Objects with later events stay: a clock that
    /// is behind may give a new event an id before the cutoff.
    #[serde(rename = "newest")]
    last_expired_event: EventId,
    step: PruneRoundStep,
}

/// The step that a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PruneRoundStep {
    /// Marks the objects of events that unfinished tasks need; continues after this event.
    #[serde(rename = "events")]
    MarkObjectsOfEvents(EventId),
    /// Visits the idle objects: deletes those that are unused, and marks the others.
    #[serde(rename = "objects")]
    VisitIdleObjects,
    #[serde(rename = "done")]
    Done,
}

impl ObjectPruneRound {
    /// Returns whether the cutoff of the round is about this one, or earlier: see [`CUTOFF_TOLERANCE`].
    fn has_cutoff_not_later_than(&self, cutoff: EventId) -> bool {
        self.cutoff.timestamp() <= cutoff.timestamp().plus(CUTOFF_TOLERANCE)
    }

    /// Returns whether the round began within the last [`SMALL_PRUNE_ROUND_INTERVAL`].
    fn began_recently(&self, now: Timestamp) -> bool {
        (now.minus(SMALL_PRUNE_ROUND_INTERVAL).micros() + 1..=now.micros()).contains(&self.begun_at)
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Deletes a batch of unused objects; returns how many, and whether the round continues.
    pub(crate) fn prune_objects(&mut self, retention: Duration, now: Timestamp) -> TableResult<(u64, bool)> {
        let cutoff = self.compute_object_cutoff(retention, now);
        if cutoff == EventId::ZERO {
            return Ok((0, false));
        }
        // A round that another version has stored in a different format starts again.
        let latest = self
            .tables
            .read_named_text(OBJECT_ROUND_TEXT_NAME)?
            .and_then(|text| serde_json::from_str::<ObjectPruneRound>(&text).ok());
        let round = match latest.filter(|round| round.has_cutoff_not_later_than(cutoff)) {
            Some(round) if round.step != PruneRoundStep::Done => Some(round),
            latest => self.begin_object_round_if_due(latest, cutoff, now)?,
        };
        let Some(round) = round else { return Ok((0, false)) };
        let checked_id = first_event_id_at(now).max(EventId::from_i64(round.cutoff.as_i64() + 1));
        let (deleted, step) = match round.step {
            PruneRoundStep::MarkObjectsOfEvents(after) => {
                (0, self.mark_objects_of_event_batch_in_use(after, round.cutoff, checked_id)?)
            }
            PruneRoundStep::VisitIdleObjects => self.delete_or_mark_idle_objects(&round, checked_id)?,
            PruneRoundStep::Done => (0, PruneRoundStep::Done),
        };
        write_named_json(self.tables, OBJECT_ROUND_TEXT_NAME, &ObjectPruneRound { step, ..round })?;
        Ok((deleted, step != PruneRoundStep::Done))
    }

    /// Returns the cutoff: events up to this id are older than the retention period and no longer in the journal. An
    /// empty journal has no later event, so its low-water mark does not count.
    fn compute_object_cutoff(&self, retention: Duration, now: Timestamp) -> EventId {
        let (expired_by_age, low_water_mark) =
            (first_event_id_at(now.minus(retention)), self.state.counters.expired_up_to);
        if low_water_mark >= self.state.event_id_generator.last_id() {
            expired_by_age
        } else {
            expired_by_age.min(low_water_mark)
        }
    }

    fn begin_object_round_if_due(
        &mut self,
        latest: Option<ObjectPruneRound>,
        cutoff: EventId,
        now: Timestamp,
    ) -> TableResult<Option<ObjectPruneRound>> {
        let min_count =
            if latest.is_some_and(|round| round.began_recently(now)) { PRUNE_ROUND_BATCH_SIZE } else { 1 };
        let is_due = self.tables.list_idle_objects(cutoff, min_count)?.len() >= min_count;
        let last_expired_event = cutoff.min(self.state.counters.expired_up_to);
        let step = PruneRoundStep::MarkObjectsOfEvents(EventId::ZERO);
        Ok(is_due.then_some(ObjectPruneRound { begun_at: now.micros(), cutoff, last_expired_event, step }))
    }

    fn mark_objects_of_event_batch_in_use(
        &mut self,
        after: EventId,
        cutoff: EventId,
        checked_id: EventId,
    ) -> TableResult<PruneRoundStep> {
        let (events, next) =
            self.tables.list_events_of_unfinished_tasks(after, cutoff, PRUNE_ROUND_BATCH_SIZE)?;
        self.tables.mark_objects_of_events_in_use(&events, cutoff, checked_id)?;
        Ok(next.map_or(PruneRoundStep::VisitIdleObjects, PruneRoundStep::MarkObjectsOfEvents))
    }

    fn delete_or_mark_idle_objects(
        &mut self,
        round: &ObjectPruneRound,
        checked_id: EventId,
    ) -> TableResult<(u64, PruneRoundStep)> {
        let ObjectPruneRound { cutoff, last_expired_event, .. } = *round;
        let idle = self.tables.list_idle_objects(cutoff, PRUNE_ROUND_BATCH_SIZE)?;
        let next = if idle.len() >= PRUNE_ROUND_BATCH_SIZE {
            PruneRoundStep::VisitIdleObjects
        } else {
            PruneRoundStep::Done
        };
        let (unused, in_use_objects): (Vec<_>, Vec<_>) = idle
            .into_iter()
            .partition(|idle| idle.row.last_event <= last_expired_event && !idle.has_outbox_events);
        let checked = |last: EventId| if last > cutoff { last } else { checked_id };
        let in_use_objects: Vec<_> = in_use_objects
            .into_iter()
            .map(|idle| (idle.tenant, idle.key, checked(idle.row.last_event)))
            .collect();
        self.tables.mark_objects_in_use(&in_use_objects)?;
        self.tables.delete_objects(&unused)?;
        Ok((unused.len() as u64, next))
    }

    /// Marks the object of an old event as in use, because a task of the event is unfinished again: a round that has
    /// already passed the event must not delete the object.
    pub(crate) fn mark_object_in_use(
        &mut self,
        tenant: &Tenant,
        key: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        self.tables.mark_objects_in_use(&[(tenant.clone(), key.to_string(), first_event_id_at(now))])
    }
}

/// Returns the smallest id that an event of this time can have.
fn first_event_id_at(time: Timestamp) -> EventId {
    EventId::from_i64(time.millis().max(0).saturating_mul(1000))
}
