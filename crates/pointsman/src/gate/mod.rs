//! The consumer's gate: each event once, and those of an object in order, however they come.
//!
//! A consumer that is sent events over several ways (connections side by side, resends after a crash, queues of its
//! own) may see them twice, out of order, or with one missing. Each event tells the id of the preceding one of its
//! object that this consumer is sent. That is all a [`Gate`] needs to say what is to be done with it:
//!
//! ```
//! use std::time::Instant;
//!
//! use pointsman::EventId;
//! use pointsman::gate::{Arrival, Gate, InMemory, Object, Verdict};
//!
//! # fn main() -> Result<(), pointsman::BoxError> {
//! let mut gate = Gate::new(InMemory::default()); // or `SqliteMarks::open("marks.db", "indexer")?`
//! let object = Object::new("default", "record:1")?;
//! let event = |id, prev: Option<u64>, payload| Arrival {
//!     object: Some(object.clone()),
//!     id: EventId::from_i64(id),
//!     prev: prev.and_then(EventId::new),
//!     payload,
//! };
//!
//! // The second one comes first.
//! assert_eq!(gate.arrive(event(2, Some(1), "changed"), Instant::now())?, Verdict::Wait);
//!
//! let mut handled = vec![];
//! let mut verdicts = vec![gate.arrive(event(1, None, "made"), Instant::now())?];
//! while let Some(verdict) = verdicts.pop() {
//!     if let Verdict::Ready(event) = verdict {
//!         handled.push(event.payload);
//!         verdicts.extend(gate.done(&event)?); // it is remembered, and what waited for it is ready
//!     }
//! }
//! assert_eq!(handled, ["made", "changed"]);
//! assert_eq!(gate.arrive(event(1, None, "made"), Instant::now())?, Verdict::Duplicate);
//! # Ok(())
//! # }
//! ```
//!
//! # What is remembered, and what is not
//!
//! The id of the last handled event of each object, behind the trait [`Marks`]: [`InMemory`], or [`SqliteMarks`],
//! where it outlives the process. What waits and what is in hand lies in memory alone. So tell whoever sent an event
//! that it has arrived after `done`, not while it waits: then a crash loses nothing, and what was handled without
//! being `done` is ready once more. With [`Gate::mark_in`] the mark is part of the consumer's own transaction, and each
//! event is handled exactly once as far as that database goes:
//!
//! ```
//! # use std::time::Instant;
//! # use pointsman::EventId;
//! # use pointsman::gate::{Arrival, Gate, Object, SqliteMarks, Verdict};
//! use pointsman::gate::rusqlite::Connection;
//!
//! # fn main() -> Result<(), pointsman::BoxError> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("consumer.db");
//! # let event = Arrival {
//! #     object: Some(Object::new("default", "record:1")?), id: EventId::from_i64(1), prev: None, payload: "made",
//! # };
//! let mut gate = Gate::new(SqliteMarks::open(&path, "indexer")?);
//! let mut rows = Connection::open(&path)?; // the same file
//! # rows.execute_batch("CREATE TABLE words (word TEXT)")?;
//! if let Verdict::Ready(event) = gate.arrive(event, Instant::now())? {
//!     let tx = rows.transaction()?;
//!     tx.execute("INSERT INTO words VALUES (?1)", [event.payload])?;
//!     gate.mark_in(&tx, &event)?;
//!     tx.commit()?; // if it fails: `gate.release(&event)`
//!     gate.done(&event)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Holes
//!
//! The gate cannot know whether a missing event will come. It tells what it sees: there is no room to wait
//! ([`Why::Full`]), the event contradicts what is remembered ([`Why::Fork`]), or one has been waited for too long
//! ([`Gate::overdue`]). The consumer then brings what is missing, or goes on behind it with [`Gate::skip`].

mod error;
mod event;
mod lane;
mod marks;
mod sqlite;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pointsman_core::EventId;

pub use error::GateError;
pub use event::{Arrival, Hole, Missing, Object, Verdict, Why};
pub use marks::{InMemory, Mark, Marks};
pub use pointsman_core::{ObjectKey, Tenant};
pub use rusqlite;
pub use sqlite::SqliteMarks;

use lane::Lane;
use marks::Place;

/// How much waits in a gate, and how long. Events are counted, whatever is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Over all objects.
    pub waiting: usize,
    pub waiting_per_object: usize,
    /// After this time an event that waits is overdue.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting: 10_000, waiting_per_object: 1_000, patience: Duration::from_secs(30) }
    }
}

/// Lets events of an object through one at a time, in order, and each once. One gate for each consumer: what is in
/// hand is known to the gate alone that let it through.
#[derive(Debug)]
pub struct Gate<T, M> {
    marks: M,
    limits: Limits,
    after: EventId,
    /// Those objects of which something is in hand or waits.
    lanes: HashMap<Object, Lane<T>>,
    /// How many wait in all lanes together.
    waiting: usize,
}

impl<T, M: Marks> Gate<T, M> {
    pub fn new(marks: M) -> Self {
        Self { marks, limits: Limits::default(), after: EventId::ZERO, lanes: HashMap::new(), waiting: 0 }
    }

    /// For a consumer that starts in the middle: everything up to this id counts as handled, for each object that
    /// is not remembered.
    pub fn after(self, after: EventId) -> Self {
        Self { after, ..self }
    }

    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How many events wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn marks(&self) -> &M {
        &self.marks
    }

    /// Says what is to be done with an event that has come. Events without a key are ready always.
    pub fn arrive(&mut self, event: Arrival<T>, now: Instant) -> Result<Verdict<T>, M::Error> {
        let Some(object) = event.object.clone() else { return Ok(Verdict::Ready(event)) };
        let mut place = self.mark(&object)?.place(event.id, event.prev);
        let lane = self.lanes.get(&object);
        if lane.is_some_and(|lane| lane.knows(event.id)) {
            return Ok(Verdict::Duplicate);
        }
        let in_hand = lane.and_then(|lane| lane.in_hand);
        // The mark may be ahead of `done`, if it was written with the consumer's own rows.
        if let Some(behind) = in_hand.filter(|_| place == Place::Next && event.prev == in_hand) {
            place = Place::Later { behind };
        }
        let full = self.waiting >= self.limits.waiting
            || lane.map_or(0, Lane::len) >= self.limits.waiting_per_object;
        Ok(match place {
            Place::Passed => Verdict::Duplicate,
            Place::Next if in_hand.is_none() => {
                self.lanes.entry(object).or_default().in_hand = Some(event.id);
                Verdict::Ready(event)
            }
            // If it is the next, another one that names the same predecessor is in hand.
            Place::Next | Place::Fork => Verdict::Hole(Hole { event, why: Why::Fork }),
            Place::Later { .. } if full => Verdict::Hole(Hole { event, why: Why::Full }),
            Place::Later { behind } => {
                self.lanes.entry(object).or_default().put(behind, event.id, now, event.payload);
                self.waiting += 1;
                Verdict::Wait
            }
        })
    }

    /// The event was handled. It is remembered, and what waited for it is handed out: the object's next event as
    /// ready, and before it those of which it now shows that they contradict it, as forks.
    pub fn done(&mut self, event: &Arrival<T>) -> Result<Vec<Verdict<T>>, GateError<M::Error>> {
        let Some(object) = &event.object else { return Ok(Vec::new()) };
        self.check_in_hand(object, event.id)?;
        let mark = Mark::Handled(event.id);
        // It may have been written together with the consumer's own rows.
        if self.marks.mark(object).map_err(GateError::Marks)? != Some(mark) {
            self.marks.remember(object, mark).map_err(GateError::Marks)?;
        }
        self.put_down(object);
        Ok(self.next(object, mark))
    }

    /// The event could not be handled: it is no longer in hand, and ready once more when it comes again.
    pub fn release(&mut self, event: &Arrival<T>) -> Result<(), GateError<M::Error>> {
        let Some(object) = &event.object else { return Ok(()) };
        self.check_in_hand(object, event.id)?;
        self.put_down(object);
        self.tidy(object);
        Ok(())
    }

    /// Goes on with this event of the object, whatever is missing before it: all before it are duplicates from now
    /// on. If it waits it is handed out; if it was given back with a hole, let it arrive again. Refused while an
    /// older one waits or is in hand, for that would be lost.
    pub fn skip(&mut self, object: &Object, to: EventId) -> Result<Vec<Verdict<T>>, GateError<M::Error>> {
        let lane = self.lanes.get(object);
        if let Some(id) = lane.and_then(|lane| lane.in_hand) {
            return Err(GateError::InHand { id });
        }
        if let Some(first) = lane.and_then(Lane::first).filter(|first| *first < to) {
            return Err(GateError::WaitsBefore { id: to, first });
        }
        if self.mark(object).map_err(GateError::Marks)?.place(to, None) == Place::Passed {
            return Ok(Vec::new());
        }
        let mark = Mark::UpTo(EventId::from_i64(to.as_i64() - 1));
        self.marks.remember(object, mark).map_err(GateError::Marks)?;
        let waited = self.lanes.get_mut(object).and_then(|lane| lane.take(object, to));
        Ok(match waited {
            Some(event) => vec![self.hand_out(object, event)],
            None => self.next(object, mark),
        })
    }

    /// Those events that have been waited for longer than the limits allow, with what waits for each. They stay
    /// overdue until they come or are skipped.
    pub fn overdue(&self, now: Instant) -> Vec<Missing> {
        let gaps = self.lanes.iter().flat_map(|(object, lane)| lane.gaps(object));
        let late = |gap: &Missing| now.saturating_duration_since(gap.since) > self.limits.patience;
        let mut missing: Vec<Missing> = gaps.filter(late).collect();
        missing.sort_by(|a, b| (a.since, &a.object, a.prev).cmp(&(b.since, &b.object, b.prev)));
        missing
    }

    fn mark(&self, object: &Object) -> Result<Mark, M::Error> {
        Ok(self.marks.mark(object)?.unwrap_or(Mark::UpTo(self.after)))
    }

    /// What follows on the mark, as far as it waits. Nothing of the object is in hand.
    fn next(&mut self, object: &Object, mark: Mark) -> Vec<Verdict<T>> {
        let mut verdicts = Vec::new();
        while let Some((place, event)) =
            self.lanes.get_mut(object).and_then(|lane| lane.take_first(object, mark))
        {
            if place == Place::Next {
                verdicts.push(self.hand_out(object, event));
                return verdicts;
            }
            self.waiting -= 1;
            verdicts.push(Verdict::Hole(Hole { event, why: Why::Fork }));
        }
        self.tidy(object);
        verdicts
    }

    /// An event that waited is in hand from now on.
    fn hand_out(&mut self, object: &Object, event: Arrival<T>) -> Verdict<T> {
        self.waiting -= 1;
        self.lanes.entry(object.clone()).or_default().in_hand = Some(event.id);
        Verdict::Ready(event)
    }

    fn put_down(&mut self, object: &Object) {
        if let Some(lane) = self.lanes.get_mut(object) {
            lane.in_hand = None;
        }
    }

    /// Forgets a lane in which there is nothing.
    fn tidy(&mut self, object: &Object) {
        if self.lanes.get(object).is_some_and(|lane| lane.in_hand.is_none() && lane.len() == 0) {
            self.lanes.remove(object);
        }
    }

    fn check_in_hand<E>(&self, object: &Object, id: EventId) -> Result<(), GateError<E>> {
        match self.lanes.get(object).and_then(|lane| lane.in_hand) {
            Some(in_hand) if in_hand == id => Ok(()),
            Some(_) | None => Err(GateError::NotInHand { id }),
        }
    }
}

impl<T> Gate<T, SqliteMarks> {
    /// Writes the mark of an event that is in hand inside a transaction on the database that has the marks, so that
    /// it commits with the consumer's own rows. Say [`Gate::done`] after the commit, or [`Gate::release`] if there
    /// was none; between this and the commit the gate cannot write, for the transaction has the lock.
    pub fn mark_in(
        &self,
        tx: &rusqlite::Transaction<'_>,
        event: &Arrival<T>,
    ) -> Result<(), GateError<rusqlite::Error>> {
        let Some(object) = &event.object else { return Ok(()) };
        self.check_in_hand(object, event.id)?;
        self.marks.write(tx, object, Mark::Handled(event.id)).map_err(GateError::Marks)
    }
}
