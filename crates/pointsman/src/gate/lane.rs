//! What a gate holds of one object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pointsman_core::EventId;

use super::marks::{Mark, Place};
use super::{Arrival, Missing, Object};

#[derive(Debug)]
pub(super) struct Lane<T> {
    /// The one that is being handled.
    pub(super) in_hand: Option<EventId>,
    /// By predecessor, then id: what a new mark brings forward, or shows to be wrong, stands first.
    waiting: BTreeMap<(EventId, EventId), Waiting<T>>,
    /// The ids of those that wait.
    ids: BTreeSet<EventId>,
}

#[derive(Debug)]
struct Waiting<T> {
    since: Instant,
    payload: T,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { in_hand: None, waiting: BTreeMap::new(), ids: BTreeSet::new() }
    }
}

impl<T> Lane<T> {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether it is in hand or waits.
    pub(super) fn knows(&self, id: EventId) -> bool {
        self.in_hand == Some(id) || self.ids.contains(&id)
    }

    /// The oldest that waits.
    pub(super) fn first(&self) -> Option<EventId> {
        self.ids.first().copied()
    }

    pub(super) fn put(&mut self, prev: EventId, id: EventId, since: Instant, payload: T) {
        self.waiting.insert((prev, id), Waiting { since, payload });
        self.ids.insert(id);
    }

    /// Takes out the event with this id.
    pub(super) fn take(&mut self, object: &Object, id: EventId) -> Option<Arrival<T>> {
        let at = *self.waiting.keys().find(|(_, waiting)| *waiting == id)?;
        self.remove(object, at)
    }

    /// Takes out the first event, unless it has to wait for something behind the mark.
    pub(super) fn take_first(&mut self, object: &Object, mark: Mark) -> Option<(Place, Arrival<T>)> {
        let (prev, id) = *self.waiting.keys().next()?;
        match mark.place(id, Some(prev)) {
            Place::Later { .. } => None,
            place @ (Place::Passed | Place::Next | Place::Fork) => {
                self.remove(object, (prev, id)).map(|event| (place, event))
            }
        }
    }

    fn remove(&mut self, object: &Object, at: (EventId, EventId)) -> Option<Arrival<T>> {
        let Waiting { payload, .. } = self.waiting.remove(&at)?;
        let (prev, id) = at;
        self.ids.remove(&id);
        Some(Arrival { object: Some(object.clone()), id, prev: Some(prev), payload })
    }

    /// What is missing: each predecessor that neither waits itself nor is in hand, with the row of those that
    /// stand behind it.
    pub(super) fn gaps(&self, object: &Object) -> Vec<Missing> {
        let mut gaps: Vec<Missing> = Vec::new();
        for ((prev, id), waiting) in &self.waiting {
            if self.in_hand == Some(*prev) {
                continue;
            }
            match gaps.iter_mut().find(|gap| gap.prev == *prev || gap.waiting.contains(prev)) {
                Some(gap) => gap.waiting.push(*id),
                None if self.ids.contains(prev) => {}
                None => gaps.push(Missing {
                    object: object.clone(),
                    prev: *prev,
                    waiting: vec![*id],
                    since: waiting.since,
                }),
            }
        }
        gaps
    }
}
