//! Atomic steps of Redis in the model: the scripts, and the `MULTI` of producers.

use crate::safeguards::Safeguards;
use crate::state::{
    Author, CommitMark, Event, EventId, JournalEntry, ObjectId, Process, Redis, Transaction, WorkerId,
};

/// What the author of a commit is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitReply {
    Done,
    Refused,
}

/// How a transaction begins.
#[derive(Clone, Copy)]
pub(crate) struct TransactionStart {
    pub(crate) object: ObjectId,
    pub(crate) author: Author,
    pub(crate) mark: CommitMark,
    /// How many events a turn has.
    pub(crate) max_events: u8,
    /// By how much the clock is ahead of the ids.
    pub(crate) clock_lead: u8,
}

impl Redis {
    /// A producer's `MULTI`: a main event and its subevents, and the object's name.
    pub(crate) fn push(&mut self, object: ObjectId, events: impl Iterator<Item = Event>) {
        events.for_each(|event| self.object_mut(object).events.insert(0, event));
        self.queue.insert(0, object);
    }

    /// A worker shows that it lives, and takes what it holds already, or the next object in line. Answers what it is
    /// responsible for now.
    pub(crate) fn claim_object(
        &mut self,
        worker: WorkerId,
        process: Process,
        safeguards: &Safeguards,
    ) -> Option<ObjectId> {
        self.keys_mut(worker).heartbeat = true;
        loop {
            if self.keys(worker).object.is_empty() {
                let object = self.queue.pop()?;
                self.keys_mut(worker).object.insert(0, object);
            }
            let object = *self.keys(worker).object.last()?;
            if self.try_own(worker, object, safeguards) {
                self.object_mut(object).owner_process = Some(process);
                return Some(object);
            }
            // Its owner lives, and lets go of it only when it has no events.
            self.keys_mut(worker).object.clear();
        }
    }

    /// Whether the worker is responsible for the object now.
    fn try_own(&mut self, worker: WorkerId, object: ObjectId, safeguards: &Safeguards) -> bool {
        if let Some(owner) = self.object(object).owner.filter(|owner| *owner != worker) {
            if self.keys(owner).heartbeat || !safeguards.takeover {
                return false;
            }
            self.take_over(owner, worker, safeguards);
        }
        self.object_mut(object).owner = Some(worker);
        true
    }

    fn take_over(&mut self, dead: WorkerId, worker: WorkerId, safeguards: &Safeguards) {
        let other = self.keys_mut(dead);
        other.object.clear();
        if safeguards.takeover_moves_event {
            let events = std::mem::take(&mut other.event);
            self.keys_mut(worker).event.splice(0..0, events);
        }
        if safeguards.takeover_moves_id {
            self.keys_mut(worker).event_id = self.keys_mut(dead).event_id.take();
        }
    }

    /// What the sweep has to put in line: the object of a worker without a heartbeat. Being there twice changes nothing.
    pub(crate) fn orphaned_object(&self, dead: WorkerId) -> Option<ObjectId> {
        let keys = self.keys(dead);
        keys.object.last().copied().filter(|object| !keys.heartbeat && !self.queue.contains(object))
    }

    /// Puts it there. A worker that holds nothing of it any more need not name it.
    pub(crate) fn requeue_orphan(&mut self, dead: WorkerId) -> Option<()> {
        let object = self.orphaned_object(dead)?;
        self.queue.push(object);
        if self.object(object).owner != Some(dead) {
            self.keys_mut(dead).object.clear();
        }
        Some(())
    }

    /// A worker's transaction begins: its next event goes into flight, and those behind it are looked at. Nothing, if the
    /// worker is not responsible.
    pub(crate) fn begin_worker_transaction(
        &mut self,
        beginning: TransactionStart,
        worker: WorkerId,
        safeguards: &Safeguards,
    ) -> Option<Transaction> {
        if safeguards.begin_checks_owner && self.object(beginning.object).owner != Some(worker) {
            return None;
        }
        let given_before = self.next_event_id;
        self.keys_mut(worker).heartbeat = true;
        if self.keys(worker).event.is_empty() || !safeguards.idempotent_begin {
            self.move_event_in_flight(beginning.object, worker, beginning.clock_lead);
        }
        let most = usize::from(beginning.max_events);
        let transaction = self.read_transaction(beginning, Some(worker), most, safeguards);
        Some(Transaction { next_event_id: given_before, ..transaction })
    }

    /// Moves an object's next event into the worker's hands.
    fn move_event_in_flight(&mut self, object: ObjectId, worker: WorkerId, clock_lead: u8) {
        if let Some(event) = self.object_mut(object).events.pop() {
            self.next_event_id += 1 + clock_lead;
            let id = self.next_event_id;
            let keys = self.keys_mut(worker);
            keys.event.insert(0, event);
            keys.event_id = Some(id);
            self.assigned_ids.push((event, id));
            self.assigned_ids.sort_by_key(|(_, id)| *id);
        }
    }

    /// The transaction of a direct emit begins: it looks at what it has to serve first.
    pub(crate) fn begin_emit_transaction(
        &self,
        beginning: TransactionStart,
        safeguards: &Safeguards,
    ) -> Transaction {
        let most = if safeguards.emit_journals_outbox_first { usize::from(beginning.max_events) } else { 0 };
        let owner = self.object(beginning.object).owner.filter(|_| safeguards.emit_journals_outbox_first);
        self.read_transaction(beginning, owner, most, safeguards)
    }

    /// What a transaction sees that serves what is in flight with the owner, and then what is queued, up to so many in all.
    fn read_transaction(
        &self,
        beginning: TransactionStart,
        owner: Option<WorkerId>,
        most: usize,
        safeguards: &Safeguards,
    ) -> Transaction {
        let object = self.object(beginning.object);
        let owner = owner.filter(|owner| !self.keys(*owner).event.is_empty());
        let keys = owner.map(|owner| self.keys(owner));
        let in_flight: Vec<Event> =
            keys.into_iter().flat_map(|keys| keys.event.iter().rev()).copied().collect();
        let room = most.saturating_sub(in_flight.len());
        let queued = object.events.iter().rev().take(room).copied();
        Transaction {
            mark: beginning.mark,
            object: beginning.object,
            outbox_events: in_flight.into_iter().chain(queued).collect(),
            has_more: object.events.len() > room,
            in_flight_id: keys.and_then(|keys| keys.event_id),
            in_flight_worker: owner.filter(|_| !safeguards.acknowledgement_finds_moved_events),
            newest_id: self.newest_id(),
            next_event_id: self.next_event_id,
            last_event_id: object.last_event_id,
            author: beginning.author,
        }
    }

    /// All that a transaction writes, or nothing.
    pub(crate) fn commit(&mut self, transaction: &Transaction, safeguards: &Safeguards) -> CommitReply {
        if self.is_already_applied(transaction.mark, safeguards) {
            return CommitReply::Done;
        }
        if !self.is_as_expected(transaction, safeguards) {
            return CommitReply::Refused;
        }
        self.acknowledge(transaction, safeguards);
        self.journal_events(transaction, safeguards);
        self.version += 1;
        self.marks.push(transaction.mark);
        self.marks.sort();
        if let Author::Worker(worker, process) = transaction.author {
            self.violations.committed_for_other |=
                self.object(transaction.object).owner_process != Some(process);
            self.release(worker, transaction, safeguards);
        }
        CommitReply::Done
    }

    fn is_already_applied(&self, mark: CommitMark, safeguards: &Safeguards) -> bool {
        let is_kept = safeguards.marks_are_kept || mark.version + 1 == self.version;
        safeguards.resend_checks_mark && is_kept && self.marks.contains(&mark)
    }

    /// Whether everything is as the transaction saw it.
    fn is_as_expected(&self, transaction: &Transaction, safeguards: &Safeguards) -> bool {
        if safeguards.commit_checks_version && transaction.mark.version != self.version {
            return false;
        }
        let owner = self.object(transaction.object).owner;
        let hands = owner.map(|owner| self.keys(owner)).filter(|keys| !keys.event.is_empty());
        let same_id = hands.and_then(|keys| keys.event_id) == transaction.in_flight_id;
        let there = hands.map_or(0, |keys| keys.event.len()) + self.object(transaction.object).events.len();
        if there < transaction.outbox_events.len() {
            return false;
        }
        let same_event = same_id || !safeguards.commit_checks_event_id;
        match transaction.author {
            Author::Worker(worker, _) => {
                (owner == Some(worker) || !safeguards.commit_checks_owner) && same_event
            }
            // Whoever takes nothing need not know who has it.
            Author::Emitter(_) => same_event || transaction.outbox_events.is_empty(),
        }
    }

    /// Takes what is served out of the hands of whoever has it in flight, and off the queue.
    fn acknowledge(&mut self, transaction: &Transaction, safeguards: &Safeguards) {
        let owner = self.object(transaction.object).owner;
        let hands =
            if safeguards.acknowledgement_finds_moved_events { owner } else { transaction.in_flight_worker };
        for _ in &transaction.outbox_events {
            match hands.map(|worker| self.keys_mut(worker)).filter(|keys| !keys.event.is_empty()) {
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

    /// Journals what is served, and what is emitted behind it.
    fn journal_events(&mut self, transaction: &Transaction, safeguards: &Safeguards) {
        let Transaction { object, newest_id: newest, in_flight_id: given, next_event_id, .. } = *transaction;
        let direct = match transaction.author {
            Author::Emitter(number) if !transaction.is_partial(safeguards) => Some(Event::Direct(number)),
            Author::Emitter(_) | Author::Worker(..) => None,
        };
        let (mut id, mut prev) = (newest, transaction.last_event_id);
        for (place, event) in transaction.outbox_events.iter().copied().chain(direct).enumerate() {
            id = match given.filter(|_| place == 0) {
                Some(given) if is_assigned_id_usable(given, newest, safeguards) => given,
                Some(_) => id + 1,
                None => id.max(next_event_id) + 1,
            };
            self.record_changed_id(event, id);
            self.journal.push(JournalEntry { object, event, id, prev });
            prev = id;
        }
        if id != newest {
            self.object_mut(object).last_event_id = id;
            self.next_event_id = id;
        }
    }

    /// An event is journaled by this id. If it was known by another that is still free, somebody knows it by the wrong one.
    fn record_changed_id(&mut self, event: Event, id: EventId) {
        if let Some(place) = self.assigned_ids.iter().position(|(flew, _)| *flew == event) {
            let (_, given) = self.assigned_ids.remove(place);
            self.violations.changed_event_id |= given != id && given > self.newest_id();
        }
    }

    /// Lets go of an object. If it has events still, it goes to the end of the line.
    fn release(&mut self, worker: WorkerId, transaction: &Transaction, safeguards: &Safeguards) {
        let object = transaction.object;
        if self.object(object).owner == Some(worker) {
            self.object_mut(object).owner = None;
            self.object_mut(object).owner_process = None;
            let is_left = !self.object(object).events.is_empty();
            let goes_in_line = if safeguards.release_checks_queue { is_left } else { transaction.has_more };
            if goes_in_line {
                self.queue.insert(0, object);
            }
        }
        self.keys_mut(worker).object.clear();
    }
}

impl Transaction {
    /// Whether a direct emit has to come back with its own event, because more was left for the object.
    pub(crate) fn is_partial(&self, safeguards: &Safeguards) -> bool {
        self.has_more && safeguards.emit_journals_outbox_first && safeguards.emit_journals_whole_outbox
    }
}

/// Whether an event in flight can be journaled by the id that it was given.
fn is_assigned_id_usable(given: EventId, newest: EventId, safeguards: &Safeguards) -> bool {
    if safeguards.assigned_ids_must_be_new { given > newest } else { given >= newest }
}
