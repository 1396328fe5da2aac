//! Read sets: the rows that a job will read, collected before its transaction begins so that they can be prefetched.
//! For objects with outboxes the read set also determines which outboxes are drained first; otherwise it affects speed
//! only.

use pointsman_core::fire::{FireAction, FireDecision};
use pointsman_core::store::{ClaimRequest, EmitBatch, FinishedAttempt, FireRequest};
use pointsman_core::{LaneOrdering, NewEvent};

use crate::row::HandlerId;
use crate::tables::ReadSet;
use crate::writer_state::WriterState;

/// Means no handler in the read set: only the object is read, not a lane.
const NO_HANDLER: HandlerId = 0;

/// Adds the idempotency keys and the objects of emits.
pub fn add_emit_batches_to_read_set(
    (batches, _): &(Vec<EmitBatch>, Option<ClaimRequest>),
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for batch in batches {
        if let Some(idempotency) = &batch.idempotency_key {
            read_set.idempotency_keys.push((idempotency.tenant.clone(), idempotency.key.clone()));
        }
        add_events_to_read_set(&batch.events, state, read_set);
    }
}

/// Adds the tasks of finished attempts, their lanes, and the objects of the events they emitted.
pub(crate) fn add_finished_attempts_to_read_set(
    (attempts, _): &(Vec<FinishedAttempt>, Option<ClaimRequest>),
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for attempt in attempts {
        read_set.tasks.push(attempt.task_seq);
        read_set
            .lanes
            .extend(state.running_tasks.get(&attempt.task_seq).and_then(|running| running.row.lane));
        add_events_to_read_set(&attempt.emitted_events, state, read_set);
    }
}

/// Adds the objects of the events that schedules emit.
pub(crate) fn add_fire_requests_to_read_set(
    requests: &Vec<FireRequest>,
    state: &mut WriterState,
    read_set: &mut ReadSet,
) {
    for request in requests {
        if let FireDecision::Fire { action: FireAction::EmitEvent(event), .. } = &request.decision {
            add_events_to_read_set(std::slice::from_ref(event), state, read_set);
        }
    }
}

/// Adds the objects of events, with each handler that has lanes or concurrency groups for them.
fn add_events_to_read_set(events: &[NewEvent], state: &mut WriterState, read_set: &mut ReadSet) {
    for event in events {
        let Some(key) = &event.key else { continue };
        let handlers = state.find_handlers_of_event_type(&event.event_type);
        let mut limited_handlers: Vec<HandlerId> = handlers.iter().map(|(id, _)| *id).collect();
        limited_handlers.retain(|id| is_ordered_or_limited_per_key(state, *id));
        if limited_handlers.is_empty() {
            limited_handlers.push(NO_HANDLER);
        }
        let object_with_handler = |handler| (event.tenant.clone(), key.as_str().to_string(), handler);
        read_set.objects.extend(limited_handlers.into_iter().map(object_with_handler));
    }
}

/// Returns whether a handler's tasks of one object wait for each other.
fn is_ordered_or_limited_per_key(state: &WriterState, handler: HandlerId) -> bool {
    state.handler(handler).is_ok_and(|handler| {
        handler.def.ordering == LaneOrdering::Key || handler.def.limits.concurrency_per_key.is_some()
    })
}
