//! The consumer's gate: delivers each event once, and the events of an object in order, in whatever order they arrive.
//!
//! A consumer that receives events in several ways (parallel connections, resends after a crash, queues of its own) may
//! get them twice, out of order, or with one missing. Each event has the id of the preceding event of its object that
//! is sent to this consumer. From that a [`Gate`] decides what to do with the event:
//!
//! ```
//! use std::time::Instant;
//!
//! use pointsman::EventId;
//! use pointsman::gate::{Gate, GateDecision, InMemoryPositions, IncomingEvent, TenantObjectKey};
//!
//! # fn main() -> Result<(), pointsman::BoxError> {
//! let mut gate = Gate::new(InMemoryPositions::default()); // or `SqlitePositions::open("positions.db", "indexer")?`
//! let object = TenantObjectKey::new("default", "record:1")?;
//! let event = |id, prev: Option<u64>, payload| IncomingEvent {
//!     object: Some(object.clone()),
//!     id: EventId::from_i64(id),
//!     prev: prev.and_then(EventId::new),
//!     payload,
//! };
//!
//! // The second event arrives first.
//! assert_eq!(gate.receive(event(2, Some(1), "changed"), Instant::now())?, GateDecision::Wait);
//!
//! let mut handled = vec![];
//! let mut decisions = vec![gate.receive(event(1, None, "created"), Instant::now())?];
//! while let Some(decision) = decisions.pop() {
//!     if let GateDecision::Ready(event) = decision {
//!         handled.push(event.payload);
//!         decisions.extend(gate.mark_done(&event)?); // stores its position, and returns the next event
//!     }
//! }
//! assert_eq!(handled, ["created", "changed"]);
//! assert_eq!(gate.receive(event(1, None, "created"), Instant::now())?, GateDecision::Duplicate);
//! # Ok(())
//! # }
//! ```
//!
//! # Stored positions
//!
//! The id of the last handled event of each object is stored through the trait [`PositionStore`]:
//! [`InMemoryPositions`], or [`SqlitePositions`], which survive the process. Waiting events and events in progress are
//! only in memory. So acknowledge an event to its sender after `mark_done`, not while it waits: then a crash loses
//! nothing, and an event that was handled without `mark_done` is ready once more. With
//! [`Gate::write_position_in_transaction`] the position is part of the consumer's own transaction, and each event is
//! handled exactly once as far as that database is concerned:
//!
//! ```
//! # use std::time::Instant;
//! # use pointsman::EventId;
//! # use pointsman::gate::{Gate, GateDecision, IncomingEvent, SqlitePositions, TenantObjectKey};
//! use pointsman::gate::rusqlite::Connection;
//!
//! # fn main() -> Result<(), pointsman::BoxError> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("consumer.db");
//! # let event = IncomingEvent {
//! #     object: Some(TenantObjectKey::new("default", "record:1")?), id: EventId::from_i64(1), prev: None, payload: "created",
//! # };
//! let mut gate = Gate::new(SqlitePositions::open(&path, "indexer")?);
//! let mut rows = Connection::open(&path)?; // the same file
//! # rows.execute_batch("CREATE TABLE words (word TEXT)")?;
//! if let GateDecision::Ready(event) = gate.receive(event, Instant::now())? {
//!     let tx = rows.transaction()?;
//!     tx.execute("INSERT INTO words VALUES (?1)", [event.payload])?;
//!     gate.write_position_in_transaction(&tx, &event)?;
//!     tx.commit()?; // if it fails: `gate.release(&event)`
//!     gate.mark_done(&event)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Missing events
//!
//! The gate cannot know whether a missing event will arrive. It reports that its buffer is full
//! ([`ReturnReason::BufferFull`]), that an event contradicts the object's position ([`ReturnReason::Fork`]), or that an
//! event has been missing for too long ([`Gate::list_overdue_missing_events`]). The consumer then provides the missing
//! event, or skips it with [`Gate::skip_to`].

mod error;
mod events_and_decisions;
mod gate_lane;
mod positions;
#[cfg(feature = "sqlite")]
mod sqlite_positions;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pointsman_core::EventId;

pub use error::GateError;
pub use events_and_decisions::{
    GateDecision, IncomingEvent, MissingEvent, ReturnReason, ReturnedEvent, TenantObjectKey,
};
pub use pointsman_core::{ObjectKey, Tenant};
pub use positions::{InMemoryPositions, ObjectPosition, PositionStore};
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "sqlite")]
pub use sqlite_positions::SqlitePositions;

use gate_lane::GateLane;
use positions::SequenceStatus;

/// Limits of the events that wait in a gate. They count events, whatever their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// The maximum number of waiting events of all objects.
    pub max_waiting: usize,
    /// The maximum number of waiting events of one object.
    pub max_waiting_per_object: usize,
    /// A missing event is overdue when others have waited for it this long.
    pub overdue_after: Duration,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self { max_waiting: 10_000, max_waiting_per_object: 1_000, overdue_after: Duration::from_secs(30) }
    }
}

/// Delivers the events of an object one at a time, in order, and each once. Use one gate for each consumer: only the
/// gate that made an event ready knows that it is in progress.
#[derive(Debug)]
pub struct Gate<T, P> {
    positions: P,
    limits: GateLimits,
    start_after: EventId,
    /// Objects with an event in progress or waiting events.
    lanes: HashMap<TenantObjectKey, GateLane<T>>,
    /// The number of waiting events in all lanes.
    waiting_count: usize,
}

impl<T, P: PositionStore> Gate<T, P> {
    /// A gate that continues after the stored positions.
    pub fn new(positions: P) -> Self {
        Self {
            positions,
            limits: GateLimits::default(),
            start_after: EventId::ZERO,
            lanes: HashMap::new(),
            waiting_count: 0,
        }
    }

    /// Starts in the middle of the journal: all events up to this id count as handled, for each object without a stored
    /// position.
    pub fn start_after(self, start_after: EventId) -> Self {
        Self { start_after, ..self }
    }

    /// Replaces the default limits.
    pub fn with_limits(self, limits: GateLimits) -> Self {
        Self { limits, ..self }
    }

    /// The number of waiting events.
    pub fn waiting_count(&self) -> usize {
        self.waiting_count
    }

    /// The stored positions.
    pub fn positions(&self) -> &P {
        &self.positions
    }

    /// Receives an event and decides what to do with it. Events without a key are always ready.
    pub fn receive(&mut self, event: IncomingEvent<T>, now: Instant) -> Result<GateDecision<T>, P::Error> {
        let Some(object) = event.object.clone() else { return Ok(GateDecision::Ready(event)) };
        let mut status = self.read_position(&object)?.classify_event(event.id, event.prev);
        let lane = self.lanes.get(&object);
        if lane.is_some_and(|lane| lane.contains(event.id)) {
            return Ok(GateDecision::Duplicate);
        }
        let in_progress = lane.and_then(|lane| lane.in_progress_id);
        // The position may be ahead of `mark_done`, if it was written with the consumer's own rows.
        if let Some(predecessor) =
            in_progress.filter(|_| status == SequenceStatus::Next && event.prev == in_progress)
        {
            status = SequenceStatus::Later { predecessor };
        }
        let is_full = self.waiting_count >= self.limits.max_waiting
            || lane.map_or(0, GateLane::waiting_count) >= self.limits.max_waiting_per_object;
        Ok(match status {
            SequenceStatus::AlreadyHandled => GateDecision::Duplicate,
            SequenceStatus::Next if in_progress.is_none() => {
                self.lanes.entry(object).or_default().in_progress_id = Some(event.id);
                GateDecision::Ready(event)
            }
            // If the event is the next one, another event with the same predecessor is in progress.
            SequenceStatus::Next | SequenceStatus::Fork => {
                GateDecision::Returned(ReturnedEvent { event, reason: ReturnReason::Fork })
            }
            SequenceStatus::Later { .. } if is_full => {
                GateDecision::Returned(ReturnedEvent { event, reason: ReturnReason::BufferFull })
            }
            SequenceStatus::Later { predecessor } => {
                self.lanes.entry(object).or_default().insert_waiting(
                    predecessor,
                    event.id,
                    now,
                    event.payload,
                );
                self.waiting_count += 1;
                GateDecision::Wait
            }
        })
    }

    /// Records that the event was handled: stores the position, and returns the events that waited for it: the object's
    /// next event as ready, and before it those that now turn out to contradict the position, as forks.
    pub fn mark_done(
        &mut self,
        event: &IncomingEvent<T>,
    ) -> Result<Vec<GateDecision<T>>, GateError<P::Error>> {
        let Some(object) = &event.object else { return Ok(Vec::new()) };
        self.check_in_progress(object, event.id)?;
        let position = ObjectPosition::LastHandled(event.id);
        // The position may have been written already, together with the consumer's own rows.
        if self.positions.read_position(object).map_err(GateError::PositionStore)? != Some(position) {
            self.positions.write_position(object, position).map_err(GateError::PositionStore)?;
        }
        self.clear_in_progress(object);
        Ok(self.take_unblocked_events(object, position))
    }

    /// Records that the event could not be handled: it is no longer in progress, and is ready again when it is received
    /// again.
    pub fn release(&mut self, event: &IncomingEvent<T>) -> Result<(), GateError<P::Error>> {
        let Some(object) = &event.object else { return Ok(()) };
        self.check_in_progress(object, event.id)?;
        self.clear_in_progress(object);
        self.remove_empty_lane(object);
        Ok(())
    }

    /// Continues with this event of the object: all events before it count as handled. If it waits, it is returned as
    /// ready; if the gate had returned it as [`GateDecision::Returned`], pass it to [`receive`](Self::receive) again.
    /// Fails while an older event waits or is in progress, because the older event would be lost.
    pub fn skip_to(
        &mut self,
        object: &TenantObjectKey,
        to: EventId,
    ) -> Result<Vec<GateDecision<T>>, GateError<P::Error>> {
        let lane = self.lanes.get(object);
        if let Some(id) = lane.and_then(|lane| lane.in_progress_id) {
            return Err(GateError::InProgress { id });
        }
        if let Some(first) = lane.and_then(GateLane::oldest_waiting_id).filter(|first| *first < to) {
            return Err(GateError::OlderEventWaits { id: to, older_id: first });
        }
        let position = self.read_position(object).map_err(GateError::PositionStore)?;
        if position.classify_event(to, None) == SequenceStatus::AlreadyHandled {
            return Ok(Vec::new());
        }
        let position = ObjectPosition::HandledUpTo(EventId::from_i64(to.as_i64() - 1));
        self.positions.write_position(object, position).map_err(GateError::PositionStore)?;
        let waiting_event = self.lanes.get_mut(object).and_then(|lane| lane.take_waiting_by_id(object, to));
        Ok(match waiting_event {
            Some(event) => vec![self.start_waiting_event(object, event)],
            None => self.take_unblocked_events(object, position),
        })
    }

    /// Lists the events that have been missing for longer than the limits allow, with the events that wait for each.
    /// They stay overdue until they arrive or are skipped.
    pub fn list_overdue_missing_events(&self, now: Instant) -> Vec<MissingEvent> {
        let all_missing = self.lanes.iter().flat_map(|(object, lane)| lane.missing_events(object));
        let is_overdue = |missing: &MissingEvent| {
            now.saturating_duration_since(missing.waiting_since) > self.limits.overdue_after
        };
        let mut overdue: Vec<MissingEvent> = all_missing.filter(is_overdue).collect();
        overdue.sort_by(|a, b| {
            (a.waiting_since, &a.object, a.missing_id).cmp(&(b.waiting_since, &b.object, b.missing_id))
        });
        overdue
    }

    fn read_position(&self, object: &TenantObjectKey) -> Result<ObjectPosition, P::Error> {
        let stored = self.positions.read_position(object)?;
        Ok(stored.unwrap_or(ObjectPosition::HandledUpTo(self.start_after)))
    }

    /// Takes the waiting events that the position unblocks. No event of the object may be in progress.
    fn take_unblocked_events(
        &mut self,
        object: &TenantObjectKey,
        position: ObjectPosition,
    ) -> Vec<GateDecision<T>> {
        let mut decisions = Vec::new();
        while let Some((status, event)) =
            self.lanes.get_mut(object).and_then(|lane| lane.take_first_unblocked_event(object, position))
        {
            if status == SequenceStatus::Next {
                decisions.push(self.start_waiting_event(object, event));
                return decisions;
            }
            self.waiting_count -= 1;
            decisions.push(GateDecision::Returned(ReturnedEvent { event, reason: ReturnReason::Fork }));
        }
        self.remove_empty_lane(object);
        decisions
    }

    /// Puts a waiting event in progress.
    fn start_waiting_event(&mut self, object: &TenantObjectKey, event: IncomingEvent<T>) -> GateDecision<T> {
        self.waiting_count -= 1;
        self.lanes.entry(object.clone()).or_default().in_progress_id = Some(event.id);
        GateDecision::Ready(event)
    }

    fn clear_in_progress(&mut self, object: &TenantObjectKey) {
        if let Some(lane) = self.lanes.get_mut(object) {
            lane.in_progress_id = None;
        }
    }

    /// Removes a lane without events, so that idle objects take no memory.
    fn remove_empty_lane(&mut self, object: &TenantObjectKey) {
        if self
            .lanes
            .get(object)
            .is_some_and(|lane| lane.in_progress_id.is_none() && lane.waiting_count() == 0)
        {
            self.lanes.remove(object);
        }
    }

    fn check_in_progress<E>(&self, object: &TenantObjectKey, id: EventId) -> Result<(), GateError<E>> {
        match self.lanes.get(object).and_then(|lane| lane.in_progress_id) {
            Some(in_progress) if in_progress == id => Ok(()),
            Some(_) | None => Err(GateError::NotInProgress { id }),
        }
    }
}

#[cfg(feature = "sqlite")]
impl<T> Gate<T, SqlitePositions> {
    /// Writes the position of an event in progress inside a transaction on the database of the positions, so that it
    /// commits with the consumer's own rows. Call [`Gate::mark_done`] after the commit, or [`Gate::release`] if it
    /// failed; until the commit the gate cannot write, because the transaction has the write lock.
    pub fn write_position_in_transaction(
        &self,
        tx: &rusqlite::Transaction<'_>,
        event: &IncomingEvent<T>,
    ) -> Result<(), GateError<rusqlite::Error>> {
        let Some(object) = &event.object else { return Ok(()) };
        self.check_in_progress(object, event.id)?;
        self.positions
            .write_position_with_connection(tx, object, ObjectPosition::LastHandled(event.id))
            .map_err(GateError::PositionStore)
    }
}
