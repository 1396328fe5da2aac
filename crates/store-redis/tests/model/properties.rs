//! What must always be true, and what must be reached somewhere, or else the rest would mean little.

use stateright::Property;

use crate::outbox::Outbox;
use crate::state::{Emit, Entry, Event, ObjectId, Redis, State, Transaction, Worker};

pub(crate) const IDS_ASCEND: &str = "ids in the journal ascend, and none is used twice";
pub(crate) const PREV_LEADS_BACK: &str = "prev is the id of the object's event before";
pub(crate) const ORDER_IS_KEPT: &str =
    "an object's events are journaled in the order of their pushes, each once";
pub(crate) const EMITTED_ONCE: &str = "a direct emit is journaled at most once";
pub(crate) const EMIT_IS_BEHIND: &str = "a direct emit stands behind what was there when it began";
pub(crate) const TOLD_IS_TRUE: &str = "a direct emit that was told to be durable is journaled";
pub(crate) const SOMEBODY_CARES: &str = "an object with events is in line, or held by who is responsible";
pub(crate) const OWNER_HOLDS: &str = "who is responsible for an object holds it, and it alone";
pub(crate) const ONLY_OWNERS_FLY: &str = "only who is responsible has an event in flight, and only one";
pub(crate) const IN_ONE_PLACE: &str = "an event is in one place";
pub(crate) const OWNER_COMMITS: &str = "a worker commits nothing that another is responsible for";
pub(crate) const ID_IS_KEPT: &str = "an event is journaled by the id that it was given, if that is free";
pub(crate) const NOTHING_IS_STUCK: &str = "when nothing more happens, everything is journaled";

pub(crate) const ALL_IS_DONE: &str = "everything is journaled";
pub(crate) const TWO_BELIEVE: &str = "two workers believe that they are responsible for one object";
pub(crate) const TAKEN_OVER: &str = "what a worker is about to commit is in flight with another by now";
pub(crate) const OVERTAKEN: &str = "a worker is about to commit, and somebody else has committed meanwhile";
pub(crate) const UNHEARD: &str =
    "a direct emit has not heard of its commit, and somebody else has committed since";
pub(crate) const EMIT_SERVES: &str = "a direct emit is about to serve what a worker has in flight";
pub(crate) const EMIT_FOLLOWS: &str = "what a direct emit saw in the queue is in flight by now";

type Rule = Property<Outbox>;

pub(crate) fn all() -> Vec<Rule> {
    let mut rules = vec![
        Rule::always(IDS_ASCEND, |_, state| state.redis.journal.is_sorted_by(|one, next| one.id < next.id)),
        Rule::always(PREV_LEADS_BACK, |_, state| each_object(state, prev_leads_back)),
        Rule::always(ORDER_IS_KEPT, |_, state| each_object(state, order_is_kept)),
        Rule::always(EMITTED_ONCE, |_, state| emits(state).all(|(event, _)| count(state, event) <= 1)),
        Rule::always(EMIT_IS_BEHIND, |_, state| emit_is_behind(state)),
        Rule::always(TOLD_IS_TRUE, |_, state| {
            emits(state).all(|(event, doing)| *doing != Emit::Done || count(state, event) > 0)
        }),
        Rule::always(SOMEBODY_CARES, |_, state| each_object(state, somebody_cares)),
        Rule::always(OWNER_HOLDS, |_, state| each_object(state, owner_holds)),
        Rule::always(ONLY_OWNERS_FLY, |_, state| only_owners_fly(&state.redis)),
        Rule::always(IN_ONE_PLACE, |_, state| in_one_place(&state.redis)),
        Rule::always(OWNER_COMMITS, |_, state| !state.redis.misdeeds.meddled),
        Rule::always(ID_IS_KEPT, |_, state| !state.redis.misdeeds.renamed),
        Rule::always(NOTHING_IS_STUCK, |outbox, state| {
            is_done(outbox, state) || !outbox.steps(state).is_empty()
        }),
    ];
    rules.extend(examples());
    rules
}

fn examples() -> [Rule; 7] {
    [
        Rule::sometimes(ALL_IS_DONE, is_done),
        Rule::sometimes(TWO_BELIEVE, |_, state| two_believe(state)),
        Rule::sometimes(TAKEN_OVER, |_, state| taken_over(state)),
        Rule::sometimes(OVERTAKEN, |_, state| {
            let is_open = |worker: &&Worker| matches!(worker, Worker::Open(_));
            let mut open = state.workers.iter().filter(is_open).filter_map(Worker::transaction);
            open.any(|transaction| transaction.mark.version < state.redis.version)
        }),
        Rule::sometimes(UNHEARD, |_, state| {
            let is_unsure = |(_, doing): &(Event, &Emit)| matches!(doing, Emit::Unsure(_));
            let mut unsure = emits(state).filter(is_unsure).filter_map(|(_, doing)| doing.transaction());
            unsure.any(|transaction| transaction.mark.version + 1 < state.redis.version)
        }),
        Rule::sometimes(EMIT_SERVES, |_, state| {
            open_emits(state).any(|transaction| transaction.given.is_some())
        }),
        Rule::sometimes(EMIT_FOLLOWS, |_, state| {
            let flies = |event| state.redis.keys.iter().any(|keys| keys.event.contains(event));
            let mut open = open_emits(state).filter(|transaction| transaction.given.is_none());
            open.any(|transaction| transaction.served.iter().any(flies))
        }),
    ]
}

fn each_object(state: &State, holds: fn(&Redis, ObjectId) -> bool) -> bool {
    (0..).zip(&state.redis.objects).all(|(object, _)| holds(&state.redis, object))
}

/// The events that are emitted directly, and how far their emitters are.
fn emits(state: &State) -> impl Iterator<Item = (Event, &Emit)> {
    (0..).zip(&state.emitters).map(|(number, emitter)| (Event::Direct(number), &emitter.doing))
}

/// The transactions of direct emits that could be committed now.
fn open_emits(state: &State) -> impl Iterator<Item = &Transaction> {
    let open = emits(state).filter(|(_, doing)| matches!(doing, Emit::Open(_)));
    let open = open.filter_map(|(_, doing)| doing.transaction());
    open.filter(|transaction| transaction.mark.version == state.redis.version)
}

/// How often an event is journaled.
fn count(state: &State, event: Event) -> usize {
    state.redis.journal.iter().filter(|entry| entry.event == event).count()
}

fn entries(redis: &Redis, object: ObjectId) -> impl Iterator<Item = &Entry> {
    redis.journal.iter().filter(move |entry| entry.object == object)
}

fn prev_leads_back(redis: &Redis, object: ObjectId) -> bool {
    let mut before = 0;
    entries(redis, object).all(|entry| std::mem::replace(&mut before, entry.id) == entry.prev)
}

fn order_is_kept(redis: &Redis, object: ObjectId) -> bool {
    let pushed = entries(redis, object).filter(|entry| matches!(entry.event, Event::Pushed(..)));
    pushed.zip(0..).all(|(entry, place)| entry.event == Event::Pushed(object, place))
}

fn emit_is_behind(state: &State) -> bool {
    let journal = &state.redis.journal;
    (0..).zip(&state.emitters).all(|(number, emitter)| {
        let place = journal.iter().position(|entry| entry.event == Event::Direct(number));
        let is_before = |event: &Event, place| journal.iter().take(place).any(|entry| entry.event == *event);
        place.is_none_or(|place| emitter.behind.iter().all(|event| is_before(event, place)))
    })
}

fn somebody_cares(redis: &Redis, object: ObjectId) -> bool {
    let owner = redis.object(object).owner;
    redis.line.contains(&object)
        || owner.is_some_and(|owner| redis.keys(owner).object.contains(&object))
        || redis.unserved(object).is_empty()
}

fn owner_holds(redis: &Redis, object: ObjectId) -> bool {
    redis.object(object).owner.is_none_or(|owner| redis.keys(owner).object == [object])
}

fn only_owners_fly(redis: &Redis) -> bool {
    (0..).zip(&redis.keys).all(|(worker, keys)| match keys.event.as_slice() {
        [] => true,
        [Event::Pushed(object, _)] => keys.object == [*object] && redis.object(*object).owner == Some(worker),
        [Event::Direct(_)] | [_, _, ..] => false,
    })
}

/// In flight with one worker, or in one queue.
fn in_one_place(redis: &Redis) -> bool {
    let in_flight = redis.keys.iter().flat_map(|keys| &keys.event);
    let all: Vec<_> = in_flight.chain(redis.objects.iter().flat_map(|object| &object.events)).collect();
    all.iter().enumerate().all(|(index, event)| !all[index + 1..].contains(event))
}

fn is_done(outbox: &Outbox, state: &State) -> bool {
    emits(state).all(|(_, doing)| *doing == Emit::Done)
        && state.redis.journal.len() >= outbox.scope.total()
        && (0..).zip(&outbox.scope.pushes).all(|(object, pushes)| {
            (0..pushes.iter().sum()).all(|place| count(state, Event::Pushed(object, place)) > 0)
        })
}

fn two_believe(state: &State) -> bool {
    let believed: Vec<_> = state.workers.iter().filter_map(Worker::believes).collect();
    believed.iter().enumerate().any(|(index, object)| believed[index + 1..].contains(object))
}

fn taken_over(state: &State) -> bool {
    let mut open = (0..).zip(&state.workers).filter(|(_, worker)| matches!(worker, Worker::Open(_)));
    open.any(|(number, worker)| {
        let first = worker.transaction().and_then(|transaction| transaction.served.first());
        let mut others = (0..).zip(&state.redis.keys).filter(|(other, _)| *other != number);
        others.any(|(_, keys)| first.is_some() && keys.event.last() == first)
    })
}
