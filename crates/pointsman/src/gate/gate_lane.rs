//! The buffered events of one object in a gate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pointsman_core::EventId;

use super::positions::{ObjectPosition, SequenceStatus};
use super::{IncomingEvent, MissingEvent, TenantObjectKey};

/// The event in progress and the waiting events of one object.
#[derive(Debug)]
pub(super) struct GateLane<T> {
    /// The event that the consumer is handling.
    pub(super) in_progress_id: Option<EventId>,
    /// The waiting events by predecessor, then id: events that a new position makes ready or shows to be forks come
    /// first.
    waiting_events: BTreeMap<(EventId, EventId), WaitingEvent<T>>,
    /// The ids of the waiting events.
    waiting_ids: BTreeSet<EventId>,
}

/// An event that waits for its predecessor.
#[derive(Debug)]
struct WaitingEvent<T> {
    received_at: Instant,
    payload: T,
}

impl<T> Default for GateLane<T> {
    fn default() -> Self {
        Self { in_progress_id: None, waiting_events: BTreeMap::new(), waiting_ids: BTreeSet::new() }
    }
}

impl<T> GateLane<T> {
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting_ids.len()
    }

    /// Whether the event is in progress or waits.
    pub(super) fn contains(&self, id: EventId) -> bool {
        self.in_progress_id == Some(id) || self.waiting_ids.contains(&id)
    }

    /// The id of the oldest waiting event.
    pub(super) fn oldest_waiting_id(&self) -> Option<EventId> {
        self.waiting_ids.first().copied()
    }

    /// Buffers an event until its predecessor is handled.
    pub(super) fn insert_waiting(&mut self, prev: EventId, id: EventId, received_at: Instant, payload: T) {
        self.waiting_events.insert((prev, id), WaitingEvent { received_at, payload });
        self.waiting_ids.insert(id);
    }

    /// Removes and returns the waiting event with this id.
    pub(super) fn take_waiting_by_id(
        &mut self,
        object: &TenantObjectKey,
        id: EventId,
    ) -> Option<IncomingEvent<T>> {
        let key = *self.waiting_events.keys().find(|(_, waiting)| *waiting == id)?;
        self.remove_waiting(object, key)
    }

    /// Removes and returns the first waiting event, unless its predecessor is not handled yet.
    pub(super) fn take_first_unblocked_event(
        &mut self,
        object: &TenantObjectKey,
        position: ObjectPosition,
    ) -> Option<(SequenceStatus, IncomingEvent<T>)> {
        let (prev, id) = *self.waiting_events.keys().next()?;
        match position.classify_event(id, Some(prev)) {
            SequenceStatus::Later { .. } => None,
            status @ (SequenceStatus::AlreadyHandled | SequenceStatus::Next | SequenceStatus::Fork) => {
                self.remove_waiting(object, (prev, id)).map(|event| (status, event))
            }
        }
    }

    fn remove_waiting(
        &mut self,
        object: &TenantObjectKey,
        key: (EventId, EventId),
    ) -> Option<IncomingEvent<T>> {
        let WaitingEvent { payload, .. } = self.waiting_events.remove(&key)?;
        let (prev, id) = key;
        self.waiting_ids.remove(&id);
        Some(IncomingEvent { object: Some(object.clone()), id, prev: Some(prev), payload })
    }

    /// The missing events: each predecessor that neither waits nor is in progress, with the events that wait for it.
    pub(super) fn missing_events(&self, object: &TenantObjectKey) -> Vec<MissingEvent> {
        let mut missing_events: Vec<MissingEvent> = Vec::new();
        for ((prev, id), waiting) in &self.waiting_events {
            if self.in_progress_id == Some(*prev) {
                continue;
            }
            match missing_events
                .iter_mut()
                .find(|missing| missing.missing_id == *prev || missing.waiting_ids.contains(prev))
            {
                Some(missing) => missing.waiting_ids.push(*id),
                None if self.waiting_ids.contains(prev) => {}
                None => missing_events.push(MissingEvent {
                    object: object.clone(),
                    missing_id: *prev,
                    waiting_ids: vec![*id],
                    waiting_since: waiting.received_at,
                }),
            }
        }
        missing_events
    }
}
