//! Actions of the model: steps and faults.

use crate::outbox::OutboxModel;
use crate::state::{EmitState, ObjectId, OutboxWorkerKeyValues, ProcessNumber, State, WorkerId, WorkerState};

/// Whether the sender of a command gets its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyDelivery {
    Received,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A producer pushes a main event and its subevents.
    Push(ObjectId),
    ClaimObject(ProcessNumber, ReplyDelivery),
    /// The object of a worker without a heartbeat is queued again.
    RequeueObjectOfDeadWorker(WorkerId),
    /// A worker's transaction begins.
    BeginWorkerTransaction(ProcessNumber, ReplyDelivery),
    /// A worker's transaction begins while the clock is ahead of the ids.
    BeginWithClockAhead(ProcessNumber),
    CommitWorkerTransaction(ProcessNumber, ReplyDelivery),
    /// The transaction of a direct emit begins, or continues after a partial commit.
    BeginEmit(u8),
    /// A direct emit commits.
    CommitEmit(u8, ReplyDelivery),

    Crash(ProcessNumber),
    /// A process crashes while its commit is in transit.
    CrashDuringCommit(ProcessNumber),
    /// A process gives up a commit that is in transit.
    AbandonCommit(ProcessNumber),
    /// An abandoned commit arrives.
    LateCommitArrives(usize),
    /// A heartbeat expires, whether its worker is alive or not.
    HeartbeatExpires(WorkerId),
    /// A worker whose heartbeat had expired renews it.
    HeartbeatReturns(WorkerId),
    /// A command reaches Redis after its sender gave up or died.
    LateClaimArrives(ProcessNumber),
    LateBeginArrives(ProcessNumber, ObjectId),
}

impl OutboxModel {
    /// Returns the steps that make progress. If there are none, only faults can happen.
    pub(crate) fn possible_steps(&self, state: &State) -> Vec<Action> {
        let mut steps = vec![];
        for (object, pushes) in (0..).zip(&self.scope.push_sizes_by_object) {
            if usize::from(state.push_counts[usize::from(object)]) < pushes.len() {
                steps.push(Action::Push(object));
            }
        }
        for process in self.processes() {
            match state.workers[usize::from(process)] {
                WorkerState::Idle if self.can_claim(state, process) => {
                    steps.push(Action::ClaimObject(process, ReplyDelivery::Received));
                }
                WorkerState::OwnsObject(_) => {
                    steps.push(Action::BeginWorkerTransaction(process, ReplyDelivery::Received))
                }
                WorkerState::InTransaction(_) | WorkerState::AwaitingReply(_) => {
                    steps.push(Action::CommitWorkerTransaction(process, ReplyDelivery::Received))
                }
                WorkerState::Idle | WorkerState::Dead => {}
            }
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            match emitter.emit_state {
                EmitState::Waiting | EmitState::Continuing(_) => steps.push(Action::BeginEmit(number)),
                EmitState::InTransaction(_) | EmitState::AwaitingReply(_) => {
                    steps.push(Action::CommitEmit(number, ReplyDelivery::Received))
                }
                EmitState::Done => {}
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.worker_keys) {
            if self.safeguards.requeue && state.redis.object_of_dead_worker_to_requeue(worker).is_some() {
                steps.push(Action::RequeueObjectOfDeadWorker(worker));
            }
            if keys.heartbeat && !keys.object.is_empty() && self.is_worker_dead(state, worker) {
                steps.push(Action::HeartbeatExpires(worker));
            }
        }
        steps
    }

    /// Adds the faults that can happen in a state.
    pub(crate) fn add_possible_faults(&self, state: &State, faults: &mut Vec<Action>) {
        for process in self.processes().filter(|process| !self.is_indistinguishable_from_new(state, *process))
        {
            if state.remaining_faults.crashes > 0 && state.workers[usize::from(process)] != WorkerState::Dead
            {
                faults.push(Action::Crash(process));
            }
            if state.remaining_faults.late_commands > 0 {
                faults.push(Action::LateClaimArrives(process));
                let objects = (0..).zip(&self.scope.push_sizes_by_object).map(|(object, _)| object);
                faults.extend(objects.map(|object| Action::LateBeginArrives(process, object)));
            }
        }
        for process in self.processes() {
            self.add_possible_worker_faults(state, process, faults);
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            if matches!(emitter.emit_state, EmitState::InTransaction(_)) {
                faults.push(Action::CommitEmit(number, ReplyDelivery::Lost));
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.worker_keys) {
            if self.is_worker_dead(state, worker) {
                continue;
            }
            if !keys.heartbeat {
                faults.push(Action::HeartbeatReturns(worker));
            } else if state.remaining_faults.heartbeat_losses > 0 && !keys.object.is_empty() {
                faults.push(Action::HeartbeatExpires(worker));
            }
        }
        faults.extend((0..state.commits_in_transit.len()).map(Action::LateCommitArrives));
    }

    fn add_possible_worker_faults(&self, state: &State, process: ProcessNumber, faults: &mut Vec<Action>) {
        match state.workers[usize::from(process)] {
            WorkerState::Idle if self.can_claim(state, process) => {
                faults.push(Action::ClaimObject(process, ReplyDelivery::Lost));
            }
            WorkerState::OwnsObject(_) => {
                faults.push(Action::BeginWorkerTransaction(process, ReplyDelivery::Lost));
                if state.remaining_faults.clock_leaps > 0 {
                    faults.push(Action::BeginWithClockAhead(process));
                }
            }
            WorkerState::InTransaction(_) => {
                faults.push(Action::CommitWorkerTransaction(process, ReplyDelivery::Lost));
                if state.remaining_faults.crashes > 0 {
                    faults.push(Action::CrashDuringCommit(process));
                }
                if state.remaining_faults.late_commands > 0 {
                    faults.push(Action::AbandonCommit(process));
                }
            }
            WorkerState::Idle | WorkerState::AwaitingReply(_) | WorkerState::Dead => {}
        }
    }

    /// Returns whether an idle worker could claim an object. Of indistinguishable workers only the first one claims, because
    /// the others would lead to equivalent states.
    fn can_claim(&self, state: &State, process: ProcessNumber) -> bool {
        let is_first = !self.is_indistinguishable_from_new(state, process)
            || !self.safeguards.unique_workers
            || !(0..process).any(|other| self.is_indistinguishable_from_new(state, other));
        let names_object = !state.redis.worker_keys(self.worker_id(process)).object.is_empty();
        is_first && (names_object || !state.redis.queued_objects.is_empty())
    }

    /// Returns whether a worker is indistinguishable from one that has just been started.
    fn is_indistinguishable_from_new(&self, state: &State, process: ProcessNumber) -> bool {
        state.workers[usize::from(process)] == WorkerState::Idle
            && *state.redis.worker_keys(self.worker_id(process)) == OutboxWorkerKeyValues::new()
            && !state.transactions().any(|transaction| transaction.mentions_worker(self.worker_id(process)))
    }

    pub(crate) fn is_worker_dead(&self, state: &State, worker: WorkerId) -> bool {
        let mut processes = self.processes().filter(|process| self.worker_id(*process) == worker);
        processes.all(|process| state.workers[usize::from(process)] == WorkerState::Dead)
    }
}
