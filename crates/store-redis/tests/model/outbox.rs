//! The outbox as a model: applies each action to a state.

use stateright::{Model, Property};

use crate::actions::{Action, ReplyDelivery};
use crate::properties;
use crate::safeguards::Safeguards;
use crate::scope::Scope;
use crate::scripts::{CommitReply, TransactionStart};
use crate::state::{
    Author, CommitId, EmitState, Event, ObjectId, ProcessNumber, State, Transaction, WorkerId, WorkerState,
};

/// The outbox within a scope, with its safeguards.
#[derive(Clone, Debug)]
pub(crate) struct OutboxModel {
    pub(crate) scope: Scope,
    pub(crate) safeguards: Safeguards,
}

impl OutboxModel {
    pub(crate) fn processes(&self) -> impl Iterator<Item = ProcessNumber> {
        0..self.scope.worker_count
    }

    /// Returns the worker id of a process. If worker ids are not unique, the second process has the id of the first, as if
    /// it had been restarted while the first still runs.
    pub(crate) fn worker_id(&self, process: ProcessNumber) -> WorkerId {
        if process == 1 && !self.safeguards.unique_workers { 0 } else { process }
    }

    fn transaction_start(
        &self,
        state: &State,
        object: ObjectId,
        author: Author,
        number: u8,
    ) -> TransactionStart {
        let commit_author = if self.safeguards.unique_commit_ids { number } else { 0 };
        let commit_id = CommitId { version: state.redis.version, author: commit_author };
        TransactionStart {
            object,
            author,
            commit_id,
            max_events: self.scope.max_events_per_transaction,
            clock_lead: 0,
        }
    }

    fn begin_worker_transaction(
        &self,
        state: &mut State,
        process: ProcessNumber,
        object: ObjectId,
        clock_lead: u8,
    ) -> Option<Transaction> {
        let worker = self.worker_id(process);
        let start = self.transaction_start(state, object, Author::Worker(worker, process), process);
        state.redis.begin_worker_transaction(
            TransactionStart { clock_lead, ..start },
            worker,
            &self.safeguards,
        )
    }

    fn begin_transaction_and_update_worker(
        &self,
        state: &mut State,
        process: ProcessNumber,
        clock_lead: u8,
        reply: ReplyDelivery,
    ) -> Option<()> {
        let WorkerState::OwnsObject(object) = state.workers[usize::from(process)] else { return None };
        let transaction = self.begin_worker_transaction(state, process, object, clock_lead);
        if reply == ReplyDelivery::Received {
            state.workers[usize::from(process)] =
                transaction.map_or(WorkerState::Idle, WorkerState::InTransaction);
        }
        Some(())
    }

    fn claim_object(&self, state: &mut State, process: ProcessNumber, reply: ReplyDelivery) {
        let claimed = state.redis.claim_object(self.worker_id(process), process, &self.safeguards);
        if let (Some(object), ReplyDelivery::Received) = (claimed, reply) {
            state.workers[usize::from(process)] = WorkerState::OwnsObject(object);
        }
    }

    /// Commits for a worker; the commit is resent until there is a reply. After any reply the worker claims again, and gets
    /// the object that it still owns.
    fn commit_worker_transaction(
        &self,
        state: &mut State,
        process: ProcessNumber,
        reply: ReplyDelivery,
    ) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (ReplyDelivery::Received, CommitReply::Committed | CommitReply::Refused) => WorkerState::Idle,
            (ReplyDelivery::Lost, CommitReply::Committed) => WorkerState::AwaitingReply(transaction),
            // A resent commit is refused again.
            (ReplyDelivery::Lost, CommitReply::Refused) => return None,
        };
        Some(())
    }

    fn begin_emit(&self, state: &mut State, number: u8) {
        let object = state.emitters[usize::from(number)].object;
        let start =
            self.transaction_start(state, object, Author::Emitter(number), self.scope.worker_count + number);
        let emitter = &mut state.emitters[usize::from(number)];
        if !state.redis.journal.iter().any(|entry| entry.event == Event::Direct(number)) {
            emitter.events_to_follow = state.redis.pending_events(object);
        }
        let mut transaction = state.redis.begin_emit_transaction(start, &self.safeguards);
        if let EmitState::Continuing(version) = emitter.emit_state {
            // A continuing emit knows only its own version, and no ids assigned since.
            transaction.commit_id.version = version;
            transaction.next_event_id = transaction.newest_event_id;
        }
        emitter.emit_state = EmitState::InTransaction(transaction);
    }

    /// Commits for a direct emit; the commit is resent until there is a reply. After a partial commit the emit continues; a
    /// refused one begins again.
    fn commit_emit(&self, state: &mut State, number: u8, reply: ReplyDelivery) -> Option<()> {
        let emitter = &mut state.emitters[usize::from(number)];
        let transaction = emitter.emit_state.transaction()?.clone();
        emitter.emit_state = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (ReplyDelivery::Received, CommitReply::Committed) if transaction.is_partial(&self.safeguards) => {
                EmitState::Continuing(transaction.commit_id.version + 1)
            }
            (ReplyDelivery::Received, CommitReply::Committed) => EmitState::Done,
            (ReplyDelivery::Received, CommitReply::Refused) => EmitState::Waiting,
            (ReplyDelivery::Lost, CommitReply::Committed) => EmitState::AwaitingReply(transaction),
            (ReplyDelivery::Lost, CommitReply::Refused) => return None,
        };
        Some(())
    }

    /// Leaves the commit of a process in transit; the process does not wait for the reply, and gets the next state.
    fn leave_commit_in_transit(
        &self,
        state: &mut State,
        process: ProcessNumber,
        next_state: WorkerState,
    ) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = next_state;
        state.commits_in_transit.push(transaction);
        Some(())
    }

    fn apply_action(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Push(object) => {
                let push = &mut state.push_counts[usize::from(object)];
                state.redis.push(object, self.scope.events_of_push(object, *push));
                *push += 1;
            }
            Action::ClaimObject(process, reply) => self.claim_object(state, process, reply),
            Action::RequeueObjectOfDeadWorker(worker) => state.redis.requeue_object_of_dead_worker(worker)?,
            Action::BeginWorkerTransaction(process, reply) => {
                self.begin_transaction_and_update_worker(state, process, 0, reply)?
            }
            Action::CommitWorkerTransaction(process, reply) => {
                self.commit_worker_transaction(state, process, reply)?
            }
            Action::BeginEmit(number) => self.begin_emit(state, number),
            Action::CommitEmit(number, reply) => self.commit_emit(state, number, reply)?,
            Action::BeginWithClockAhead(process) => {
                state.remaining_faults.clock_leaps -= 1;
                self.begin_transaction_and_update_worker(state, process, 1, ReplyDelivery::Received)?;
            }
            Action::Crash(process) => {
                state.remaining_faults.crashes -= 1;
                state.workers[usize::from(process)] = WorkerState::Dead;
            }
            Action::CrashDuringCommit(process) => {
                state.remaining_faults.crashes -= 1;
                self.leave_commit_in_transit(state, process, WorkerState::Dead)?;
            }
            Action::AbandonCommit(process) => {
                state.remaining_faults.late_commands -= 1;
                self.leave_commit_in_transit(state, process, WorkerState::Idle)?;
            }
            Action::LateCommitArrives(index) => {
                let transaction = state.commits_in_transit.remove(index);
                state.redis.commit(&transaction, &self.safeguards);
            }
            Action::HeartbeatExpires(worker) => {
                state.remaining_faults.heartbeat_losses -= u8::from(!self.is_worker_dead(state, worker));
                state.redis.worker_keys_mut(worker).heartbeat = false;
            }
            Action::HeartbeatReturns(worker) => state.redis.worker_keys_mut(worker).heartbeat = true,
            Action::LateClaimArrives(process) => {
                state.remaining_faults.late_commands -= 1;
                self.claim_object(state, process, ReplyDelivery::Lost);
            }
            Action::LateBeginArrives(process, object) => {
                state.remaining_faults.late_commands -= 1;
                self.begin_worker_transaction(state, process, object, 0);
            }
        }
        Some(())
    }
}

impl Model for OutboxModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.scope.initial_state()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.possible_steps(state));
        self.add_possible_faults(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.apply_action(&mut next, action)?;
        next.drop_unneeded_commit_ids();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all_properties()
    }

    /// Bounds the journal, which could grow forever without safeguards.
    fn within_boundary(&self, state: &State) -> bool {
        state.redis.journal.len() <= self.scope.total_event_count() + 2
    }
}
