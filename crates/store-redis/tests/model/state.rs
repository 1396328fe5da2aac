//! State of the model: keys in Redis, beliefs of processes, and commits in transit.
//!
//! Lists are as in Redis: `LPUSH` adds at the front of a vector, `RPOP` takes from its end.

pub(crate) type WorkerId = u8;
pub(crate) type ObjectId = u8;
pub(crate) type EventId = u8;
/// Number of a process. If worker ids are unique, it equals the worker id.
pub(crate) type ProcessNumber = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// Pushed by a producer: the object, and the index among its pushed events.
    Pushed(ObjectId, u8),
    /// Emitted directly: the number of the emitter.
    Direct(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) redis: Redis,
    pub(crate) workers: Vec<WorkerState>,
    pub(crate) emitters: Vec<Emitter>,
    /// Commits that may still arrive, though no process waits for their replies.
    pub(crate) commits_in_transit: Vec<Transaction>,
    /// Number of pushes to each object so far.
    pub(crate) push_counts: Vec<u8>,
    pub(crate) remaining_faults: FaultBudget,
}

/// Number of faults that may still happen.
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
    pub(crate) queued_objects: Vec<ObjectId>,
    pub(crate) worker_keys: Vec<OutboxWorkerKeyValues>,
    pub(crate) next_event_id: EventId,
    /// Number of commits so far.
    pub(crate) version: u8,
    /// Ids of applied commits that may still be resent. Others are dropped, so that states do not differ by them.
    pub(crate) applied_commit_ids: Vec<CommitId>,
    pub(crate) journal: Vec<JournalEntry>,
    /// Events that are not journaled yet, with the ids that were assigned when they were moved in flight.
    pub(crate) assigned_ids: Vec<(Event, EventId)>,
    /// Violations that a commit caused.
    pub(crate) violations: CommitViolations,
}

/// Violations that cannot be seen in the keys afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CommitViolations {
    /// A process has committed events of an object that another process owns.
    pub(crate) committed_object_of_other_process: bool,
    /// An event was journaled with another id than its assigned one, though that was unused.
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
    /// The process that claimed it. Redis does not store this: two processes may have the same worker id.
    pub(crate) owner_process: Option<ProcessNumber>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OutboxWorkerKeyValues {
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

/// Identifies a commit, so that a resent one is recognised. Of the commits that began with one version only one is applied,
/// so the id is unique if the author is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CommitId {
    /// Commit version that the transaction began with.
    pub(crate) version: u8,
    pub(crate) author: u8,
}

/// Data that a transaction has read and is about to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub(crate) commit_id: CommitId,
    pub(crate) object: ObjectId,
    /// Events that it journals from the outbox, in order.
    pub(crate) outbox_events: Vec<Event>,
    /// Assigned id of the first of them, if it is in flight.
    pub(crate) in_flight_event_id: Option<EventId>,
    /// The worker that had it in flight; set only if the safeguard `acknowledgement_finds_moved_events` is disabled.
    pub(crate) in_flight_worker: Option<WorkerId>,
    /// Whether more events are queued after them.
    pub(crate) has_more: bool,
    /// Newest id in the journal, last assigned id, and id of the object's last event.
    pub(crate) newest_event_id: EventId,
    pub(crate) next_event_id: EventId,
    pub(crate) last_event_id: EventId,
    pub(crate) author: Author,
}

/// Author of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Author {
    /// A worker, which releases the object, and its process.
    Worker(WorkerId, ProcessNumber),
    /// A direct emit, whose own event follows all events in the object's outbox. Many events are committed in several parts;
    /// its own event is in the last one.
    Emitter(u8),
}

/// State of a process of an event worker, as the process knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkerState {
    Idle,
    /// The worker believes that it owns an object.
    OwnsObject(ObjectId),
    InTransaction(Transaction),
    /// The commit of the worker was applied, but the reply was lost.
    AwaitingReply(Transaction),
    Dead,
}

/// A client that emits one event directly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Emitter {
    pub(crate) object: ObjectId,
    pub(crate) emit_state: EmitState,
    /// Events that were queued or in flight for the object when its transaction last began: its own event must follow all of
    /// them.
    pub(crate) events_to_follow: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EmitState {
    Waiting,
    /// A part of the outbox is committed; this is the resulting version. It continues without a new begin, so another process
    /// may have committed in between.
    Continuing(u8),
    InTransaction(Transaction),
    /// Its commit was applied, but the reply was lost.
    AwaitingReply(Transaction),
    /// Its emit was acknowledged.
    Done,
}

impl OutboxWorkerKeyValues {
    pub(crate) fn new() -> Self {
        Self { object: vec![], event: vec![], event_id: None, heartbeat: true }
    }
}

impl Transaction {
    /// Returns whether the transaction names a worker.
    pub(crate) fn mentions_worker(&self, worker: WorkerId) -> bool {
        matches!(self.author, Author::Worker(author, _) if author == worker)
            || self.in_flight_worker == Some(worker)
    }
}

impl WorkerState {
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        match self {
            Self::InTransaction(transaction) | Self::AwaitingReply(transaction) => Some(transaction),
            Self::Idle | Self::OwnsObject(_) | Self::Dead => None,
        }
    }

    /// Returns the object that it believes to own.
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
    /// Returns all transactions that are open or whose outcome is unknown.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        let workers = self.workers.iter().filter_map(WorkerState::transaction);
        let emitters = self.emitters.iter().filter_map(|emitter| emitter.emit_state.transaction());
        workers.chain(emitters).chain(&self.commits_in_transit)
    }

    /// Drops ids of commits that can no longer be resent.
    pub(crate) fn drop_unneeded_commit_ids(&mut self) {
        let mut applied_commits = std::mem::take(&mut self.redis.applied_commit_ids);
        applied_commits
            .retain(|applied| self.transactions().any(|transaction| transaction.commit_id == *applied));
        self.redis.applied_commit_ids = applied_commits;
    }
}

impl Redis {
    pub(crate) fn object(&self, object: ObjectId) -> &Object {
        &self.objects[usize::from(object)]
    }

    pub(crate) fn object_mut(&mut self, object: ObjectId) -> &mut Object {
        &mut self.objects[usize::from(object)]
    }

    pub(crate) fn worker_keys(&self, worker: WorkerId) -> &OutboxWorkerKeyValues {
        &self.worker_keys[usize::from(worker)]
    }

    pub(crate) fn worker_keys_mut(&mut self, worker: WorkerId) -> &mut OutboxWorkerKeyValues {
        &mut self.worker_keys[usize::from(worker)]
    }

    /// Returns the newest id in the journal.
    pub(crate) fn newest_event_id(&self) -> EventId {
        self.journal.last().map_or(0, |entry| entry.id)
    }

    /// Returns the events of an object that are in flight at any worker, and then those that are queued.
    pub(crate) fn pending_events(&self, object: ObjectId) -> Vec<Event> {
        let in_flight = self.worker_keys.iter().flat_map(|keys| keys.event.iter().rev());
        let belongs_to_object = |event: &&Event| matches!(event, Event::Pushed(owner, _) if *owner == object);
        let queued = self.object(object).events.iter().rev();
        in_flight.filter(belongs_to_object).chain(queued).copied().collect()
    }
}
