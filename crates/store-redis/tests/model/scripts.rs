//! Atomic steps of Redis in the model: the scripts, and the `MULTI` of producers.

use crate::safeguards::Safeguards;
use crate::state::{
    Author, CommitId, Event, EventId, JournalEntry, ObjectId, ProcessNumber, Redis, Transaction, WorkerId,
};

/// Reply to a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitReply {
    Committed,
    Refused,
}

/// Parameters with which a transaction begins.
#[derive(Clone, Copy)]
pub(crate) struct TransactionStart {
    pub(crate) object: ObjectId,
    pub(crate) author: Author,
    pub(crate) commit_id: CommitId,
    /// Maximum number of events.
    pub(crate) max_events: u8,
    /// Lead of the clock over the ids.
    pub(crate) clock_lead: u8,
}

impl Redis {
    /// Runs a producer's `MULTI`: pushes a main event, its subevents, and the object's name.
    pub(crate) fn push(&mut self, object: ObjectId, events: impl Iterator<Item = Event>) {
        events.for_each(|event| self.object_mut(object).events.insert(0, event));
        self.queued_objects.insert(0, object);
    }

    /// Renews a worker's heartbeat; the worker claims the object that it already owns, or the next queued one. Returns the
    /// object that it owns now.
    pub(crate) fn claim_object(
        &mut self,
        worker: WorkerId,
        process: ProcessNumber,
        safeguards: &Safeguards,
    ) -> Option<ObjectId> {
        self.worker_keys_mut(worker).heartbeat = true;
        loop {
            if self.worker_keys(worker).object.is_empty() {
                let object = self.queued_objects.pop()?;
                self.worker_keys_mut(worker).object.insert(0, object);
            }
            let object = *self.worker_keys(worker).object.last()?;
            if self.try_own(worker, object, safeguards) {
                self.object_mut(object).owner_process = Some(process);
                return Some(object);
            }
            // The owner is alive, and queues the object again if it still has events when it is released.
            self.worker_keys_mut(worker).object.clear();
        }
    }

    /// Makes the worker the owner of an object, unless that has another live owner; returns whether the worker owns it now.
    fn try_own(&mut self, worker: WorkerId, object: ObjectId, safeguards: &Safeguards) -> bool {
        if let Some(owner) = self.object(object).owner.filter(|owner| *owner != worker) {
            if self.worker_keys(owner).heartbeat || !safeguards.takeover {
                return false;
            }
            self.take_over(owner, worker, safeguards);
        }
        self.object_mut(object).owner = Some(worker);
        true
    }

    fn take_over(&mut self, dead: WorkerId, worker: WorkerId, safeguards: &Safeguards) {
        let dead_keys = self.worker_keys_mut(dead);
        dead_keys.object.clear();
        if safeguards.takeover_moves_event {
            let events = std::mem::take(&mut dead_keys.event);
            self.worker_keys_mut(worker).event.splice(0..0, events);
        }
        if safeguards.takeover_moves_id {
            self.worker_keys_mut(worker).event_id = self.worker_keys_mut(dead).event_id.take();
        }
    }

    /// Returns the object that the scan for dead workers has to queue: that of a worker without a heartbeat, unless it is
    /// queued already.
    pub(crate) fn object_of_dead_worker_to_requeue(&self, dead: WorkerId) -> Option<ObjectId> {
        let keys = self.worker_keys(dead);
        keys.object.last().copied().filter(|object| !keys.heartbeat && !self.queued_objects.contains(object))
    }

    /// Queues the object of a dead worker. If the worker is no longer its owner, the worker's key is deleted.
    pub(crate) fn requeue_object_of_dead_worker(&mut self, dead: WorkerId) -> Option<()> {
        let object = self.object_of_dead_worker_to_requeue(dead)?;
        self.queued_objects.push(object);
        if self.object(object).owner != Some(dead) {
            self.worker_keys_mut(dead).object.clear();
        }
        Some(())
    }

    /// Begins a worker's transaction: moves its next event in flight and reads the events after it. Returns `None` if the
    /// worker does not own the object.
    pub(crate) fn begin_worker_transaction(
        &mut self,
        start: TransactionStart,
        worker: WorkerId,
        safeguards: &Safeguards,
    ) -> Option<Transaction> {
        if safeguards.begin_checks_owner && self.object(start.object).owner != Some(worker) {
            return None;
        }
        let last_assigned_id = self.next_event_id;
        self.worker_keys_mut(worker).heartbeat = true;
        if self.worker_keys(worker).event.is_empty() || !safeguards.idempotent_begin {
            self.move_event_in_flight(start.object, worker, start.clock_lead);
        }
        let max_events = usize::from(start.max_events);
        let transaction = self.read_transaction(start, Some(worker), max_events, safeguards);
        Some(Transaction { next_event_id: last_assigned_id, ..transaction })
    }

    /// Moves an object's next event in flight at the worker.
    fn move_event_in_flight(&mut self, object: ObjectId, worker: WorkerId, clock_lead: u8) {
        if let Some(event) = self.object_mut(object).events.pop() {
            self.next_event_id += 1 + clock_lead;
            let id = self.next_event_id;
            let keys = self.worker_keys_mut(worker);
            keys.event.insert(0, event);
            keys.event_id = Some(id);
            self.assigned_ids.push((event, id));
            self.assigned_ids.sort_by_key(|(_, id)| *id);
        }
    }

    /// Begins the transaction of a direct emit: reads the events that it has to journal first.
    pub(crate) fn begin_emit_transaction(
        &self,
        start: TransactionStart,
        safeguards: &Safeguards,
    ) -> Transaction {
        let max_events =
            if safeguards.emit_journals_outbox_first { usize::from(start.max_events) } else { 0 };
        let owner = self.object(start.object).owner.filter(|_| safeguards.emit_journals_outbox_first);
        self.read_transaction(start, owner, max_events, safeguards)
    }

    /// Reads the events in flight at the owner, and then the queued ones, up to `max_events` in all.
    fn read_transaction(
        &self,
        start: TransactionStart,
        owner: Option<WorkerId>,
        max_events: usize,
        safeguards: &Safeguards,
    ) -> Transaction {
        let object = self.object(start.object);
        let owner = owner.filter(|owner| !self.worker_keys(*owner).event.is_empty());
        let keys = owner.map(|owner| self.worker_keys(owner));
        let in_flight: Vec<Event> =
            keys.into_iter().flat_map(|keys| keys.event.iter().rev()).copied().collect();
        let queue_limit = max_events.saturating_sub(in_flight.len());
        let queued = object.events.iter().rev().take(queue_limit).copied();
        Transaction {
            commit_id: start.commit_id,
            object: start.object,
            outbox_events: in_flight.into_iter().chain(queued).collect(),
            has_more: object.events.len() > queue_limit,
            in_flight_event_id: keys.and_then(|keys| keys.event_id),
            in_flight_worker: owner.filter(|_| !safeguards.acknowledgement_finds_moved_events),
            newest_event_id: self.newest_event_id(),
            next_event_id: self.next_event_id,
            last_event_id: object.last_event_id,
            author: start.author,
        }
    }

    /// Writes all changes of a transaction, or nothing.
    pub(crate) fn commit(&mut self, transaction: &Transaction, safeguards: &Safeguards) -> CommitReply {
        if self.is_already_applied(transaction.commit_id, safeguards) {
            return CommitReply::Committed;
        }
        if !self.is_unchanged_since_begin(transaction, safeguards) {
            return CommitReply::Refused;
        }
        self.remove_acknowledged_events(transaction, safeguards);
        self.journal_events(transaction, safeguards);
        self.version += 1;
        self.applied_commit_ids.push(transaction.commit_id);
        self.applied_commit_ids.sort();
        if let Author::Worker(worker, process) = transaction.author {
            self.violations.committed_object_of_other_process |=
                self.object(transaction.object).owner_process != Some(process);
            self.release_object(worker, transaction, safeguards);
        }
        CommitReply::Committed
    }

    fn is_already_applied(&self, commit_id: CommitId, safeguards: &Safeguards) -> bool {
        let is_kept = safeguards.commit_ids_are_kept || commit_id.version + 1 == self.version;
        safeguards.resend_checks_commit_id && is_kept && self.applied_commit_ids.contains(&commit_id)
    }

    /// Returns whether nothing that the commit checks has changed since the transaction began.
    fn is_unchanged_since_begin(&self, transaction: &Transaction, safeguards: &Safeguards) -> bool {
        if safeguards.commit_checks_version && transaction.commit_id.version != self.version {
            return false;
        }
        let owner = self.object(transaction.object).owner;
        let in_flight_keys = owner.map(|owner| self.worker_keys(owner)).filter(|keys| !keys.event.is_empty());
        let same_id = in_flight_keys.and_then(|keys| keys.event_id) == transaction.in_flight_event_id;
        let available =
            in_flight_keys.map_or(0, |keys| keys.event.len()) + self.object(transaction.object).events.len();
        if available < transaction.outbox_events.len() {
            return false;
        }
        let same_event = same_id || !safeguards.commit_checks_event_id;
        match transaction.author {
            Author::Worker(worker, _) => {
                (owner == Some(worker) || !safeguards.commit_checks_owner) && same_event
            }
            // An emit that acknowledges nothing does not depend on the owner.
            Author::Emitter(_) => same_event || transaction.outbox_events.is_empty(),
        }
    }

    /// Removes the journaled events from the list in flight and from the queue.
    fn remove_acknowledged_events(&mut self, transaction: &Transaction, safeguards: &Safeguards) {
        let owner = self.object(transaction.object).owner;
        let in_flight_keys =
            if safeguards.acknowledgement_finds_moved_events { owner } else { transaction.in_flight_worker };
        for _ in &transaction.outbox_events {
            match in_flight_keys
                .map(|worker| self.worker_keys_mut(worker))
                .filter(|keys| !keys.event.is_empty())
            {
                Some(keys) => {
                    keys.event.pop();
                    keys.event_id = None;
                }
                None => {
                    self.object_mut(transaction.object).events.pop();
                }
            }
        }
    }

    /// Journals the outbox events, and then the emitted event.
    fn journal_events(&mut self, transaction: &Transaction, safeguards: &Safeguards) {
        let Transaction {
            object,
            newest_event_id: newest,
            in_flight_event_id: assigned_id,
            next_event_id,
            ..
        } = *transaction;
        let direct = match transaction.author {
            Author::Emitter(number) if !transaction.is_partial(safeguards) => Some(Event::Direct(number)),
            Author::Emitter(_) | Author::Worker(..) => None,
        };
        let (mut id, mut prev) = (newest, transaction.last_event_id);
        for (index, event) in transaction.outbox_events.iter().copied().chain(direct).enumerate() {
            id = match assigned_id.filter(|_| index == 0) {
                Some(assigned) if is_assigned_id_usable(assigned, newest, safeguards) => assigned,
                Some(_) => id + 1,
                None => id.max(next_event_id) + 1,
            };
            self.record_changed_id_violation(event, id);
            self.journal.push(JournalEntry { object, event, id, prev });
            prev = id;
        }
        if id != newest {
            self.object_mut(object).last_event_id = id;
            self.next_event_id = id;
        }
    }

    /// Records a violation if an event is journaled with another id than its assigned one, though that is unused.
    fn record_changed_id_violation(&mut self, event: Event, id: EventId) {
        if let Some(index) = self.assigned_ids.iter().position(|(assigned, _)| *assigned == event) {
            let (_, assigned) = self.assigned_ids.remove(index);
            self.violations.changed_event_id |= assigned != id && assigned > self.newest_event_id();
        }
    }

    /// Releases an object. If it still has events, it is queued again.
    fn release_object(&mut self, worker: WorkerId, transaction: &Transaction, safeguards: &Safeguards) {
        let object = transaction.object;
        if self.object(object).owner == Some(worker) {
            self.object_mut(object).owner = None;
            self.object_mut(object).owner_process = None;
            let has_events = !self.object(object).events.is_empty();
            let must_queue = if safeguards.release_checks_queue { has_events } else { transaction.has_more };
            if must_queue {
                self.queued_objects.insert(0, object);
            }
        }
        self.worker_keys_mut(worker).object.clear();
    }
}

impl Transaction {
    /// Returns whether the commit has only a part of the outbox, so that the own event of the emit follows later.
    pub(crate) fn is_partial(&self, safeguards: &Safeguards) -> bool {
        self.has_more && safeguards.emit_journals_outbox_first && safeguards.emit_journals_whole_outbox
    }
}

/// Returns whether an event in flight can be journaled with its assigned id.
fn is_assigned_id_usable(assigned: EventId, newest: EventId, safeguards: &Safeguards) -> bool {
    if safeguards.assigned_ids_must_be_new { assigned > newest } else { assigned >= newest }
}
