//! Properties that always hold, and examples that must be reachable.

use stateright::Property;

use crate::outbox::OutboxModel;
use crate::state::{EmitState, Event, JournalEntry, ObjectId, Redis, State, Transaction, WorkerState};

pub(crate) const IDS_ASCEND: &str = "ids in the journal ascend, and none is used twice";
pub(crate) const PREV_NAMES_PRECEDING_EVENT: &str = "prev is the id of the object's preceding event";
pub(crate) const PUSH_ORDER_IS_KEPT: &str =
    "an object's events are journaled in the order of their pushes, each once";
pub(crate) const EMIT_IS_JOURNALED_AT_MOST_ONCE: &str = "a direct emit is journaled at most once";
pub(crate) const EMIT_FOLLOWS_EARLIER_EVENTS: &str =
    "a direct emit is journaled after all events that were pending when it began";
pub(crate) const ACKNOWLEDGED_EMIT_IS_JOURNALED: &str = "an acknowledged direct emit is journaled";
pub(crate) const OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED: &str =
    "an object with events is queued, or named by its owner";
pub(crate) const OWNER_NAMES_OBJECT: &str = "the owner of an object names it, and no other object";
pub(crate) const ONLY_OWNER_HAS_EVENT_IN_FLIGHT: &str = "only the owner has an event in flight, and only one";
pub(crate) const EVENT_IS_IN_ONE_LIST: &str = "an event is in one list";
pub(crate) const ONLY_OWNER_COMMITS: &str =
    "a worker does not commit events of an object that another process owns";
pub(crate) const ASSIGNED_ID_IS_USED: &str = "an event is journaled with its assigned id, if that is unused";
pub(crate) const NO_EVENT_IS_STUCK: &str = "when no step is possible, everything is journaled";

pub(crate) const EVERYTHING_IS_JOURNALED: &str = "everything is journaled";
pub(crate) const TWO_WORKERS_BELIEVE_TO_OWN: &str = "two workers believe that they own the same object";
pub(crate) const EVENT_WAS_TAKEN_OVER: &str =
    "an event that a worker is about to commit is now in flight at another worker";
pub(crate) const COMMIT_WAS_OVERTAKEN: &str =
    "a worker is about to commit, and another process has committed meanwhile";
pub(crate) const EMIT_REPLY_LOST_AND_OVERTAKEN: &str =
    "a direct emit got no reply to its commit, and another process has committed since";
pub(crate) const EMIT_JOURNALS_IN_FLIGHT_EVENT: &str =
    "a direct emit is about to journal an event that a worker has in flight";
pub(crate) const EMIT_READ_EVENT_NOW_IN_FLIGHT: &str =
    "an event that a direct emit read in the queue is now in flight";

type OutboxProperty = Property<OutboxModel>;

pub(crate) fn all_properties() -> Vec<OutboxProperty> {
    let mut properties = vec![
        OutboxProperty::always(IDS_ASCEND, |_, state| {
            state.redis.journal.is_sorted_by(|one, next| one.id < next.id)
        }),
        OutboxProperty::always(PREV_NAMES_PRECEDING_EVENT, |_, state| {
            holds_for_each_object(state, prev_names_preceding_event)
        }),
        OutboxProperty::always(PUSH_ORDER_IS_KEPT, |_, state| {
            holds_for_each_object(state, is_push_order_kept)
        }),
        OutboxProperty::always(EMIT_IS_JOURNALED_AT_MOST_ONCE, |_, state| {
            direct_emits_with_state(state).all(|(event, _)| count_journal_entries_of_event(state, event) <= 1)
        }),
        OutboxProperty::always(EMIT_FOLLOWS_EARLIER_EVENTS, |_, state| {
            does_emit_follow_earlier_events(state)
        }),
        OutboxProperty::always(ACKNOWLEDGED_EMIT_IS_JOURNALED, |_, state| {
            direct_emits_with_state(state).all(|(event, emit_state)| {
                *emit_state != EmitState::Done || count_journal_entries_of_event(state, event) > 0
            })
        }),
        OutboxProperty::always(OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED, |_, state| {
            holds_for_each_object(state, is_queued_or_owned)
        }),
        OutboxProperty::always(OWNER_NAMES_OBJECT, |_, state| {
            holds_for_each_object(state, does_owner_name_object)
        }),
        OutboxProperty::always(ONLY_OWNER_HAS_EVENT_IN_FLIGHT, |_, state| {
            has_only_owner_event_in_flight(&state.redis)
        }),
        OutboxProperty::always(EVENT_IS_IN_ONE_LIST, |_, state| is_each_event_in_one_list(&state.redis)),
        OutboxProperty::always(ONLY_OWNER_COMMITS, |_, state| {
            !state.redis.violations.committed_object_of_other_process
        }),
        OutboxProperty::always(ASSIGNED_ID_IS_USED, |_, state| !state.redis.violations.changed_event_id),
        OutboxProperty::always(NO_EVENT_IS_STUCK, |outbox, state| {
            is_everything_journaled(outbox, state) || !outbox.possible_steps(state).is_empty()
        }),
    ];
    properties.extend(reachability_properties());
    properties
}

fn reachability_properties() -> [OutboxProperty; 7] {
    [
        OutboxProperty::sometimes(EVERYTHING_IS_JOURNALED, is_everything_journaled),
        OutboxProperty::sometimes(TWO_WORKERS_BELIEVE_TO_OWN, |_, state| {
            do_two_workers_believe_to_own(state)
        }),
        OutboxProperty::sometimes(EVENT_WAS_TAKEN_OVER, |_, state| was_event_taken_over(state)),
        OutboxProperty::sometimes(COMMIT_WAS_OVERTAKEN, |_, state| {
            let is_open = |worker: &&WorkerState| matches!(worker, WorkerState::InTransaction(_));
            let mut open = state.workers.iter().filter(is_open).filter_map(WorkerState::transaction);
            open.any(|transaction| transaction.commit_id.version < state.redis.version)
        }),
        OutboxProperty::sometimes(EMIT_REPLY_LOST_AND_OVERTAKEN, |_, state| {
            let is_awaiting_reply =
                |(_, emit_state): &(Event, &EmitState)| matches!(emit_state, EmitState::AwaitingReply(_));
            let mut awaiting_reply = direct_emits_with_state(state)
                .filter(is_awaiting_reply)
                .filter_map(|(_, emit_state)| emit_state.transaction());
            awaiting_reply.any(|transaction| transaction.commit_id.version + 1 < state.redis.version)
        }),
        OutboxProperty::sometimes(EMIT_JOURNALS_IN_FLIGHT_EVENT, |_, state| {
            committable_emit_transactions(state).any(|transaction| transaction.in_flight_event_id.is_some())
        }),
        OutboxProperty::sometimes(EMIT_READ_EVENT_NOW_IN_FLIGHT, |_, state| {
            let is_in_flight = |event| state.redis.worker_keys.iter().any(|keys| keys.event.contains(event));
            let mut open = committable_emit_transactions(state)
                .filter(|transaction| transaction.in_flight_event_id.is_none());
            open.any(|transaction| transaction.outbox_events.iter().any(is_in_flight))
        }),
    ]
}

fn holds_for_each_object(state: &State, holds: fn(&Redis, ObjectId) -> bool) -> bool {
    (0..).zip(&state.redis.objects).all(|(object, _)| holds(&state.redis, object))
}

/// Returns the directly emitted events with the state of each emit.
fn direct_emits_with_state(state: &State) -> impl Iterator<Item = (Event, &EmitState)> {
    (0..).zip(&state.emitters).map(|(number, emitter)| (Event::Direct(number), &emitter.emit_state))
}

/// Returns the transactions of direct emits that could be committed now.
fn committable_emit_transactions(state: &State) -> impl Iterator<Item = &Transaction> {
    let open = direct_emits_with_state(state)
        .filter(|(_, emit_state)| matches!(emit_state, EmitState::InTransaction(_)));
    let open = open.filter_map(|(_, emit_state)| emit_state.transaction());
    open.filter(|transaction| transaction.commit_id.version == state.redis.version)
}

/// Counts the journal entries of an event.
fn count_journal_entries_of_event(state: &State, event: Event) -> usize {
    state.redis.journal.iter().filter(|entry| entry.event == event).count()
}

fn journal_entries_of_object(redis: &Redis, object: ObjectId) -> impl Iterator<Item = &JournalEntry> {
    redis.journal.iter().filter(move |entry| entry.object == object)
}

fn prev_names_preceding_event(redis: &Redis, object: ObjectId) -> bool {
    let mut previous_id = 0;
    journal_entries_of_object(redis, object)
        .all(|entry| std::mem::replace(&mut previous_id, entry.id) == entry.prev)
}

fn is_push_order_kept(redis: &Redis, object: ObjectId) -> bool {
    let pushed =
        journal_entries_of_object(redis, object).filter(|entry| matches!(entry.event, Event::Pushed(..)));
    pushed.zip(0..).all(|(entry, index)| entry.event == Event::Pushed(object, index))
}

fn does_emit_follow_earlier_events(state: &State) -> bool {
    let journal = &state.redis.journal;
    (0..).zip(&state.emitters).all(|(number, emitter)| {
        let position = journal.iter().position(|entry| entry.event == Event::Direct(number));
        let is_before =
            |event: &Event, position| journal.iter().take(position).any(|entry| entry.event == *event);
        position
            .is_none_or(|position| emitter.events_to_follow.iter().all(|event| is_before(event, position)))
    })
}

fn is_queued_or_owned(redis: &Redis, object: ObjectId) -> bool {
    let owner = redis.object(object).owner;
    redis.queued_objects.contains(&object)
        || owner.is_some_and(|owner| redis.worker_keys(owner).object.contains(&object))
        || redis.pending_events(object).is_empty()
}

fn does_owner_name_object(redis: &Redis, object: ObjectId) -> bool {
    redis.object(object).owner.is_none_or(|owner| redis.worker_keys(owner).object == [object])
}

fn has_only_owner_event_in_flight(redis: &Redis) -> bool {
    (0..).zip(&redis.worker_keys).all(|(worker, keys)| match keys.event.as_slice() {
        [] => true,
        [Event::Pushed(object, _)] => keys.object == [*object] && redis.object(*object).owner == Some(worker),
        [Event::Direct(_)] | [_, _, ..] => false,
    })
}

/// Returns whether each event is in flight at one worker, or in one queue.
fn is_each_event_in_one_list(redis: &Redis) -> bool {
    let in_flight = redis.worker_keys.iter().flat_map(|keys| &keys.event);
    let all: Vec<_> = in_flight.chain(redis.objects.iter().flat_map(|object| &object.events)).collect();
    all.iter().enumerate().all(|(index, event)| !all[index + 1..].contains(event))
}

fn is_everything_journaled(outbox: &OutboxModel, state: &State) -> bool {
    direct_emits_with_state(state).all(|(_, emit_state)| *emit_state == EmitState::Done)
        && state.redis.journal.len() >= outbox.scope.total_event_count()
        && (0..).zip(&outbox.scope.push_sizes_by_object).all(|(object, pushes)| {
            (0..pushes.iter().sum())
                .all(|index| count_journal_entries_of_event(state, Event::Pushed(object, index)) > 0)
        })
}

fn do_two_workers_believe_to_own(state: &State) -> bool {
    let believed: Vec<_> = state.workers.iter().filter_map(WorkerState::believed_object).collect();
    believed.iter().enumerate().any(|(index, object)| believed[index + 1..].contains(object))
}

fn was_event_taken_over(state: &State) -> bool {
    let mut open =
        (0..).zip(&state.workers).filter(|(_, worker)| matches!(worker, WorkerState::InTransaction(_)));
    open.any(|(number, worker)| {
        let first = worker.transaction().and_then(|transaction| transaction.outbox_events.first());
        let mut others = (0..).zip(&state.redis.worker_keys).filter(|(other, _)| *other != number);
        others.any(|(_, keys)| first.is_some() && keys.event.last() == first)
    })
}
