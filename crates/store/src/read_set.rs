//! Read sets: what a job will read, collected before its transaction begins so that it can be prefetched. For objects
//! with outboxes the read set also determines which outboxes are drained first; otherwise it affects speed only.

use pointsman_core::fire::{FireAction, FireDecision};
use pointsman_core::store::{ClaimRequest, EmitBatch, FinishedAttempt, FireRequest};
use pointsman_core::{LaneOrdering, NewEvent};

use crate::row::HandlerId;
use crate::tables::ReadSet;
use crate::writer_state::WriterState;

/// Stands for no handler: only the object is read.
const NO_HANDLER: HandlerId = 0;

pub fn add_emit_batches_to_read_set(
    (emissions, _): &(Vec<EmitBatch>, Option<ClaimRequest>),
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for emission in emissions {
        if let Some(idempotency) = &emission.idempotency {
            read_set.idempotency_keys.push((idempotency.tenant.clone(), idempotency.key.clone()));
        }
        add_events_to_read_set(&emission.events, state, read_set);
    }
}

pub(crate) fn add_finished_attempts_to_read_set(
    (endings, _): &(Vec<FinishedAttempt>, Option<ClaimRequest>),
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for ending in endings {
        read_set.tasks.push(ending.task);
        read_set.lanes.extend(state.running_tasks.get(&ending.task).and_then(|running| running.row.lane));
        add_events_to_read_set(&ending.emitted_events, state, read_set);
    }
}

pub(crate) fn add_fire_requests_to_read_set(
    firings: &Vec<FireRequest>,
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for firing in firings {
        if let FireDecision::Fire { action: FireAction::EmitEvent(event), .. } = &firing.decision {
            add_events_to_read_set(std::slice::from_ref(event), state, read_set);
        }
    }
}

/// Adds the objects of events, with each handler that has lanes or concurrency groups for them.
fn add_events_to_read_set(events: &[NewEvent], state: &mut WriterState, read_set: &mut ReadSet) {
    for event in events {
        let Some(key) = &event.key else { continue };
        let handlers = state.resolve_handlers(&event.kind);
        let mut tracked: Vec<HandlerId> = handlers.iter().map(|(id, _)| *id).collect();
        tracked.retain(|id| is_limited_per_key(state, *id));
        if tracked.is_empty() {
            tracked.push(NO_HANDLER);
        }
        let object = |handler| (event.tenant.clone(), key.as_str().to_string(), handler);
        read_set.objects.extend(tracked.into_iter().map(object));
    }
}

/// Returns whether a handler's tasks of one object wait for each other.
fn is_limited_per_key(state: &WriterState, handler: HandlerId) -> bool {
    state.handler(handler).is_ok_and(|handler| {
        handler.def.ordering == LaneOrdering::Key || handler.def.limits.concurrency_per_key.is_some()
    })
}
