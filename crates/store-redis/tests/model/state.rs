//! What there is: the keys in Redis, what each process believes, and what is on its way.
//!
//! Lists are as in Redis: `LPUSH` adds at the front of a vector, `RPOP` takes from its end.

pub(crate) type WorkerId = u8;
pub(crate) type ObjectId = u8;
pub(crate) type EventId = u8;
/// The number of a process. If workers are unique, it is the worker's, too.
pub(crate) type Process = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// Pushed by a producer, for this object and as its so-manieth.
    Pushed(ObjectId, u8),
    /// Emitted directly, by this emitter.
    Direct(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) redis: Redis,
    pub(crate) workers: Vec<Worker>,
    pub(crate) emitters: Vec<Emitter>,
    /// Commits that may still arrive, though nobody waits for their answers any more.
    pub(crate) under_way: Vec<Transaction>,
    /// How many times each object was pushed to.
    pub(crate) pushes: Vec<u8>,
    pub(crate) left: Left,
}

/// What may still go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) crashes: u8,
    pub(crate) lapses: u8,
    pub(crate) late: u8,
    pub(crate) leaps: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Redis {
    pub(crate) objects: Vec<Object>,
    /// `objects.with.events`
    pub(crate) line: Vec<ObjectId>,
    pub(crate) keys: Vec<WorkerKeys>,
    pub(crate) next_event_id: EventId,
    /// How many transactions were committed.
    pub(crate) version: u8,
    /// The marks of commits that somebody may still ask for. Others are forgotten, so that states do not differ by them.
    pub(crate) marks: Vec<Mark>,
    pub(crate) journal: Vec<Entry>,
    /// Events that are not journaled yet, and the ids by which they are known since they went into flight.
    pub(crate) given: Vec<(Event, EventId)>,
    /// What must not be was done by a commit.
    pub(crate) misdeeds: Misdeeds,
}

/// What cannot be seen any more as soon as it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Misdeeds {
    /// A process has committed what another one is responsible for.
    pub(crate) meddled: bool,
    /// An event was journaled by another id than it was given, though that was free.
    pub(crate) renamed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    /// `OBJ:events`
    pub(crate) events: Vec<Event>,
    /// `OBJ:event.worker`
    pub(crate) owner: Option<WorkerId>,
    /// `OBJ:last.event.id`
    pub(crate) last: EventId,
    /// The process that took it. Redis does not know: two processes may have one name.
    pub(crate) holder: Option<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WorkerKeys {
    /// `event.worker:W:object`
    pub(crate) object: Vec<ObjectId>,
    /// `event.worker:W:event`
    pub(crate) event: Vec<Event>,
    /// `event.worker:W:event.id`
    pub(crate) event_id: Option<EventId>,
    /// `event.worker:W:heartbeat`
    pub(crate) heartbeat: bool,
}

/// An event in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) object: ObjectId,
    pub(crate) event: Event,
    pub(crate) id: EventId,
    pub(crate) prev: EventId,
}

/// By what a commit that is sent again knows itself. Of those that began with one version only one is applied, so that this
/// is unique as long as its author is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// The version that the transaction began with.
    pub(crate) version: u8,
    pub(crate) author: u8,
}

/// What a transaction has read, and means to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub(crate) mark: Mark,
    pub(crate) object: ObjectId,
    /// What it takes out of the outbox, the first one first.
    pub(crate) served: Vec<Event>,
    /// The id of the first of these, if that is in flight.
    pub(crate) given: Option<EventId>,
    /// Who had that in flight. Only if the acknowledgement cannot follow it.
    pub(crate) from: Option<WorkerId>,
    /// Whether more is queued behind them.
    pub(crate) more: bool,
    /// The newest id in the journal, the last that was given out, and that of the object's last event.
    pub(crate) newest: EventId,
    pub(crate) next_event_id: EventId,
    pub(crate) last: EventId,
    pub(crate) author: Author,
}

/// On whose behalf something is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Author {
    /// A worker, which lets go of the object; and the process that is this worker.
    Worker(WorkerId, Process),
    /// Somebody whose own event comes behind all that was left for the object. Where that is much, it is committed a piece at
    /// a time, and the own event comes with the last one.
    Emitter(u8),
}

/// A process that works for the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    Idle,
    /// It believes that it is responsible for an object.
    Holds(ObjectId),
    Open(Transaction),
    /// Its commit was applied, and it has heard nothing.
    Unsure(Transaction),
    Dead,
}

/// Somebody who emits one event directly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Emitter {
    pub(crate) object: ObjectId,
    pub(crate) doing: Emit,
    /// What was queued or in flight for the object when it last began, before its event was journaled: that comes behind all
    /// of it.
    pub(crate) behind: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Emit {
    Waits,
    /// A piece of what was left is committed, by which this became the version. It goes on without beginning again: that
    /// nobody else writes between the two is likely, and not sure.
    GoesOn(u8),
    Open(Transaction),
    /// Its commit was applied, and it has heard nothing.
    Unsure(Transaction),
    /// It was told that its event is durable.
    Done,
}

impl WorkerKeys {
    pub(crate) fn new() -> Self {
        Self { object: vec![], event: vec![], event_id: None, heartbeat: true }
    }
}

impl Transaction {
    /// Whether this worker is named in it.
    pub(crate) fn names(&self, worker: WorkerId) -> bool {
        matches!(self.author, Author::Worker(author, _) if author == worker) || self.from == Some(worker)
    }
}

impl Worker {
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match self {
            Self::Open(transaction) | Self::Unsure(transaction) => Some(transaction),
            Self::Idle | Self::Holds(_) | Self::Dead => None,
        }
    }

    /// The object that it believes to be responsible for.
    pub(crate) fn believes(&self) -> Option<ObjectId> {
        match self {
            Self::Holds(object) => Some(*object),
            Self::Open(transaction) | Self::Unsure(transaction) => Some(transaction.object),
            Self::Idle | Self::Dead => None,
        }
    }
}

impl Emit {
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match self {
            Self::Open(transaction) | Self::Unsure(transaction) => Some(transaction),
            Self::Waits | Self::GoesOn(_) | Self::Done => None,
        }
    }
}

impl State {
    /// All transactions that are open, or whose outcome is not known.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        let workers = self.workers.iter().filter_map(Worker::transaction);
        let emitters = self.emitters.iter().filter_map(|emitter| emitter.doing.transaction());
        workers.chain(emitters).chain(&self.under_way)
    }

    /// Forgets the marks that nobody can ask for any more.
    pub(crate) fn forget(&mut self) {
        let mut marks = std::mem::take(&mut self.redis.marks);
        marks.retain(|mark| self.transactions().any(|transaction| transaction.mark == *mark));
        self.redis.marks = marks;
    }
}

impl Redis {
    pub(crate) fn object(&self, object: ObjectId) -> &Object {
        &self.objects[usize::from(object)]
    }

    pub(crate) fn object_mut(&mut self, object: ObjectId) -> &mut Object {
        &mut self.objects[usize::from(object)]
    }

    pub(crate) fn keys(&self, worker: WorkerId) -> &WorkerKeys {
        &self.keys[usize::from(worker)]
    }

    pub(crate) fn keys_mut(&mut self, worker: WorkerId) -> &mut WorkerKeys {
        &mut self.keys[usize::from(worker)]
    }

    /// The newest id in the journal.
    pub(crate) fn newest(&self) -> EventId {
        self.journal.last().map_or(0, |entry| entry.id)
    }

    /// What is in flight for an object, with whichever worker, and what is queued for it.
    pub(crate) fn unserved(&self, object: ObjectId) -> Vec<Event> {
        let in_flight = self.keys.iter().flat_map(|keys| keys.event.iter().rev());
        let of_object = |event: &&Event| matches!(event, Event::Pushed(of, _) if *of == object);
        let queued = self.object(object).events.iter().rev();
        in_flight.filter(of_object).chain(queued).copied().collect()
    }
}
