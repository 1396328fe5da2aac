//! State of the model: keys in Redis, beliefs of processes, and commits in transit.
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
    pub(crate) in_transit: Vec<Transaction>,
    /// How many times each object was pushed to.
    pub(crate) pushes: Vec<u8>,
    pub(crate) remaining_faults: FaultBudget,
}

/// What may still go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FaultBudget {
    pub(crate) crashes: u8,
    pub(crate) heartbeat_losses: u8,
    pub(crate) late_commands: u8,
    pub(crate) clock_leaps: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Redis {
    pub(crate) objects: Vec<Object>,
    /// `objects.with.events`
    pub(crate) queue: Vec<ObjectId>,
    pub(crate) keys: Vec<WorkerKeys>,
    pub(crate) next_event_id: EventId,
    /// How many transactions were committed.
    pub(crate) version: u8,
    /// The marks of commits that somebody may still ask for. Others are forgotten, so that states do not differ by them.
    pub(crate) marks: Vec<CommitMark>,
    pub(crate) journal: Vec<JournalEntry>,
    /// Events that are not journaled yet, and the ids by which they are known since they went into flight.
    pub(crate) assigned_ids: Vec<(Event, EventId)>,
    /// What must not be was done by a commit.
    pub(crate) violations: CommitViolations,
}

/// What cannot be seen any more as soon as it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CommitViolations {
    /// A process has committed what another one is responsible for.
    pub(crate) committed_for_other: bool,
    /// An event was journaled by another id than it was given, though that was free.
    pub(crate) changed_event_id: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    /// `OBJ:events`
    pub(crate) events: Vec<Event>,
    /// `OBJ:event.worker`
    pub(crate) owner: Option<WorkerId>,
    /// `OBJ:last.event.id`
    pub(crate) last_event_id: EventId,
    /// The process that took it. Redis does not know: two processes may have one name.
    pub(crate) owner_process: Option<Process>,
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
pub(crate) struct JournalEntry {
    pub(crate) object: ObjectId,
    pub(crate) event: Event,
    pub(crate) id: EventId,
    pub(crate) prev: EventId,
}

/// By what a commit that is sent again knows itself. Of those that began with one version only one is applied, so that this
/// is unique as long as its author is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CommitMark {
    /// The version that the transaction began with.
    pub(crate) version: u8,
    pub(crate) author: u8,
}

/// What a transaction has read, and means to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub(crate) mark: CommitMark,
    pub(crate) object: ObjectId,
    /// What it takes out of the outbox, the first one first.
    pub(crate) outbox_events: Vec<Event>,
    /// The id of the first of these, if that is in flight.
    pub(crate) in_flight_id: Option<EventId>,
    /// Who had that in flight. Only if the acknowledgement cannot follow it.
    pub(crate) in_flight_worker: Option<WorkerId>,
    /// Whether more is queued behind them.
    pub(crate) has_more: bool,
    /// The newest id in the journal, the last that was given out, and that of the object's last event.
    pub(crate) newest_id: EventId,
    pub(crate) next_event_id: EventId,
    pub(crate) last_event_id: EventId,
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
    OwnsObject(ObjectId),
    InTransaction(Transaction),
    /// Its commit was applied, and it has heard nothing.
    AwaitingReply(Transaction),
    Dead,
}

/// Somebody who emits one event directly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Emitter {
    pub(crate) object: ObjectId,
    pub(crate) state_of_emit: EmitState,
    /// What was queued or in flight for the object when it last began, before its event was journaled: that comes behind all
    /// of it.
    pub(crate) must_follow: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EmitState {
    Waiting,
    /// A piece of what was left is committed, by which this became the version. It goes on without beginning again: that
    /// nobody else writes between the two is likely, and not sure.
    Continuing(u8),
    InTransaction(Transaction),
    /// Its commit was applied, and it has heard nothing.
    AwaitingReply(Transaction),
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
    pub(crate) fn mentions_worker(&self, worker: WorkerId) -> bool {
        matches!(self.author, Author::Worker(author, _) if author == worker)
            || self.in_flight_worker == Some(worker)
    }
}

impl Worker {
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match self {
            Self::InTransaction(transaction) | Self::AwaitingReply(transaction) => Some(transaction),
            Self::Idle | Self::OwnsObject(_) | Self::Dead => None,
        }
    }

    /// The object that it believes to be responsible for.
    pub(crate) fn believed_object(&self) -> Option<ObjectId> {
        match self {
            Self::OwnsObject(object) => Some(*object),
            Self::InTransaction(transaction) | Self::AwaitingReply(transaction) => Some(transaction.object),
            Self::Idle | Self::Dead => None,
        }
    }
}

impl EmitState {
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match self {
            Self::InTransaction(transaction) | Self::AwaitingReply(transaction) => Some(transaction),
            Self::Waiting | Self::Continuing(_) | Self::Done => None,
        }
    }
}

impl State {
    /// All transactions that are open, or whose outcome is not known.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        let workers = self.workers.iter().filter_map(Worker::transaction);
        let emitters = self.emitters.iter().filter_map(|emitter| emitter.state_of_emit.transaction());
        workers.chain(emitters).chain(&self.in_transit)
    }

    /// Forgets the marks that nobody can ask for any more.
    pub(crate) fn drop_unneeded_marks(&mut self) {
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
    pub(crate) fn newest_id(&self) -> EventId {
        self.journal.last().map_or(0, |entry| entry.id)
    }

    /// What is in flight for an object, with whichever worker, and what is queued for it.
    pub(crate) fn pending_events(&self, object: ObjectId) -> Vec<Event> {
        let in_flight = self.keys.iter().flat_map(|keys| keys.event.iter().rev());
        let of_object = |event: &&Event| matches!(event, Event::Pushed(of, _) if *of == object);
        let queued = self.object(object).events.iter().rev();
        in_flight.filter(of_object).chain(queued).copied().collect()
    }
}
