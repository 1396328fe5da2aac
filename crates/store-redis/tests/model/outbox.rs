//! The outbox as a model: what each action does.

use stateright::{Model, Property};

use crate::actions::{Action, Reply};
use crate::properties;
use crate::safeguards::Safeguards;
use crate::scope::Scope;
use crate::scripts::{CommitReply, TransactionStart};
use crate::state::{
    Author, CommitMark, EmitState, Event, ObjectId, Process, State, Transaction, Worker, WorkerId,
};

/// The outbox within a scope, with its safeguards.
#[derive(Clone, Debug)]
pub(crate) struct OutboxModel {
    pub(crate) scope: Scope,
    pub(crate) safeguards: Safeguards,
}

impl OutboxModel {
    pub(crate) fn processes(&self) -> impl Iterator<Item = Process> {
        0..self.scope.workers
    }

    /// The worker that a process is. If workers are not unique, the second process is the first one, started again while it
    /// still lives.
    pub(crate) fn worker_id(&self, process: Process) -> WorkerId {
        if process == 1 && !self.safeguards.unique_workers { 0 } else { process }
    }

    fn transaction_start(
        &self,
        state: &State,
        object: ObjectId,
        author: Author,
        number: u8,
    ) -> TransactionStart {
        let author_of_mark = if self.safeguards.unique_marks { number } else { 0 };
        let mark = CommitMark { version: state.redis.version, author: author_of_mark };
        TransactionStart { object, author, mark, max_events: self.scope.max_events, clock_lead: 0 }
    }

    fn begin_worker_transaction(
        &self,
        state: &mut State,
        process: Process,
        object: ObjectId,
        clock_lead: u8,
    ) -> Option<Transaction> {
        let worker = self.worker_id(process);
        let beginning = self.transaction_start(state, object, Author::Worker(worker, process), process);
        state.redis.begin_worker_transaction(
            TransactionStart { clock_lead, ..beginning },
            worker,
            &self.safeguards,
        )
    }

    fn begin_transaction(
        &self,
        state: &mut State,
        process: Process,
        clock_lead: u8,
        reply: Reply,
    ) -> Option<()> {
        let Worker::OwnsObject(object) = state.workers[usize::from(process)] else { return None };
        let popped = self.begin_worker_transaction(state, process, object, clock_lead);
        if reply == Reply::Received {
            state.workers[usize::from(process)] = popped.map_or(Worker::Idle, Worker::InTransaction);
        }
        Some(())
    }

    fn claim_object(&self, state: &mut State, process: Process, reply: Reply) {
        let taken = state.redis.claim_object(self.worker_id(process), process, &self.safeguards);
        if let (Some(object), Reply::Received) = (taken, reply) {
            state.workers[usize::from(process)] = Worker::OwnsObject(object);
        }
    }

    /// A worker's commit, which is sent again until there is an answer. Whatever that is: what it holds then, it takes.
    fn commit_worker(&self, state: &mut State, process: Process, reply: Reply) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (Reply::Received, CommitReply::Done | CommitReply::Refused) => Worker::Idle,
            (Reply::Lost, CommitReply::Done) => Worker::AwaitingReply(transaction),
            // Sent again, it is refused again.
            (Reply::Lost, CommitReply::Refused) => return None,
        };
        Some(())
    }

    fn begin_emit(&self, state: &mut State, number: u8) {
        let object = state.emitters[usize::from(number)].object;
        let beginning =
            self.transaction_start(state, object, Author::Emitter(number), self.scope.workers + number);
        let emitter = &mut state.emitters[usize::from(number)];
        if !state.redis.journal.iter().any(|entry| entry.event == Event::Direct(number)) {
            emitter.must_follow = state.redis.pending_events(object);
        }
        let mut transaction = state.redis.begin_emit_transaction(beginning, &self.safeguards);
        if let EmitState::Continuing(version) = emitter.state_of_emit {
            // Whoever goes on knows of no version but its own, and of no id that was given out since.
            transaction.mark.version = version;
            transaction.next_event_id = transaction.newest_id;
        }
        emitter.state_of_emit = EmitState::InTransaction(transaction);
    }

    /// The commit of a direct emit, which is sent again until there is an answer. After a piece of what was left it goes on;
    /// refused, it begins again.
    fn commit_emit(&self, state: &mut State, number: u8, reply: Reply) -> Option<()> {
        let emitter = &mut state.emitters[usize::from(number)];
        let transaction = emitter.state_of_emit.transaction()?.clone();
        emitter.state_of_emit = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (Reply::Received, CommitReply::Done) if transaction.is_partial(&self.safeguards) => {
                EmitState::Continuing(transaction.mark.version + 1)
            }
            (Reply::Received, CommitReply::Done) => EmitState::Done,
            (Reply::Received, CommitReply::Refused) => EmitState::Waiting,
            (Reply::Lost, CommitReply::Done) => EmitState::AwaitingReply(transaction),
            (Reply::Lost, CommitReply::Refused) => return None,
        };
        Some(())
    }

    /// What a process leaves behind that sends its commit and waits for no answer.
    fn leave_in_transit(&self, state: &mut State, process: Process, then: Worker) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = then;
        state.in_transit.push(transaction);
        Some(())
    }

    fn apply_action(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Push(object) => {
                let push = &mut state.pushes[usize::from(object)];
                state.redis.push(object, self.scope.events(object, *push));
                *push += 1;
            }
            Action::ClaimObject(process, reply) => self.claim_object(state, process, reply),
            Action::RequeueOrphan(worker) => state.redis.requeue_orphan(worker)?,
            Action::Begin(process, reply) => self.begin_transaction(state, process, 0, reply)?,
            Action::Commit(process, reply) => self.commit_worker(state, process, reply)?,
            Action::BeginEmit(number) => self.begin_emit(state, number),
            Action::CommitEmit(number, reply) => self.commit_emit(state, number, reply)?,
            Action::BeginWithClockAhead(process) => {
                state.remaining_faults.clock_leaps -= 1;
                self.begin_transaction(state, process, 1, Reply::Received)?;
            }
            Action::Crash(process) => {
                state.remaining_faults.crashes -= 1;
                state.workers[usize::from(process)] = Worker::Dead;
            }
            Action::CrashDuringCommit(process) => {
                state.remaining_faults.crashes -= 1;
                self.leave_in_transit(state, process, Worker::Dead)?;
            }
            Action::AbandonCommit(process) => {
                state.remaining_faults.late_commands -= 1;
                self.leave_in_transit(state, process, Worker::Idle)?;
            }
            Action::LateCommitArrives(place) => {
                let transaction = state.in_transit.remove(place);
                state.redis.commit(&transaction, &self.safeguards);
            }
            Action::HeartbeatExpires(worker) => {
                state.remaining_faults.heartbeat_losses -= u8::from(!self.is_dead(state, worker));
                state.redis.keys_mut(worker).heartbeat = false;
            }
            Action::HeartbeatReturns(worker) => state.redis.keys_mut(worker).heartbeat = true,
            Action::LateClaim(process) => {
                state.remaining_faults.late_commands -= 1;
                self.claim_object(state, process, Reply::Lost);
            }
            Action::LateBegin(process, object) => {
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
        vec![self.scope.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(self.steps(state));
        self.faults(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.apply_action(&mut next, action)?;
        next.drop_unneeded_marks();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all_properties()
    }

    /// Without its safeguards, the outbox might journal for ever.
    fn within_boundary(&self, state: &State) -> bool {
        state.redis.journal.len() <= self.scope.total() + 2
    }
}
