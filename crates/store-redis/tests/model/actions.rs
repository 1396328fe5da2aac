//! Actions of the model: steps and faults.

use crate::outbox::OutboxModel;
use crate::state::{EmitState, ObjectId, Process, State, Worker, WorkerId, WorkerKeys};

/// Whether the sender of a command gets its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Received,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A producer pushes a main event and its subevents.
    Push(ObjectId),
    ClaimObject(Process, Reply),
    /// What a worker without a heartbeat holds is put in line.
    RequeueOrphan(WorkerId),
    /// A worker's transaction begins.
    Begin(Process, Reply),
    /// The same, with the clock ahead of the ids.
    BeginWithClockAhead(Process),
    Commit(Process, Reply),
    /// The transaction of a direct emit begins, or goes on after a piece.
    BeginEmit(u8),
    /// A direct emit commits.
    CommitEmit(u8, Reply),

    Crash(Process),
    /// It crashes, and its commit is under way.
    CrashDuringCommit(Process),
    /// It gives a commit up that is under way.
    AbandonCommit(Process),
    /// A commit that was given up arrives.
    LateCommitArrives(usize),
    /// A heartbeat is gone, whether its worker lives or not.
    HeartbeatExpires(WorkerId),
    /// A worker whose heartbeat was gone has one again.
    HeartbeatReturns(WorkerId),
    /// A command reaches Redis after its sender has given it up, or is dead.
    LateClaim(Process),
    LateBegin(Process, ObjectId),
}

impl OutboxModel {
    /// What brings things forward. If there is nothing, nothing will happen any more but faults.
    pub(crate) fn steps(&self, state: &State) -> Vec<Action> {
        let mut steps = vec![];
        for (object, pushes) in (0..).zip(&self.scope.pushes) {
            if usize::from(state.pushes[usize::from(object)]) < pushes.len() {
                steps.push(Action::Push(object));
            }
        }
        for process in self.processes() {
            match state.workers[usize::from(process)] {
                Worker::Idle if self.can_claim(state, process) => {
                    steps.push(Action::ClaimObject(process, Reply::Received));
                }
                Worker::OwnsObject(_) => steps.push(Action::Begin(process, Reply::Received)),
                Worker::InTransaction(_) | Worker::AwaitingReply(_) => {
                    steps.push(Action::Commit(process, Reply::Received))
                }
                Worker::Idle | Worker::Dead => {}
            }
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            match emitter.state_of_emit {
                EmitState::Waiting | EmitState::Continuing(_) => steps.push(Action::BeginEmit(number)),
                EmitState::InTransaction(_) | EmitState::AwaitingReply(_) => {
                    steps.push(Action::CommitEmit(number, Reply::Received))
                }
                EmitState::Done => {}
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.keys) {
            if self.safeguards.requeue && state.redis.orphaned_object(worker).is_some() {
                steps.push(Action::RequeueOrphan(worker));
            }
            if keys.heartbeat && !keys.object.is_empty() && self.is_dead(state, worker) {
                steps.push(Action::HeartbeatExpires(worker));
            }
        }
        steps
    }

    /// What goes wrong.
    pub(crate) fn faults(&self, state: &State, faults: &mut Vec<Action>) {
        for process in self.processes().filter(|process| !self.is_indistinguishable_from_new(state, *process))
        {
            if state.remaining_faults.crashes > 0 && state.workers[usize::from(process)] != Worker::Dead {
                faults.push(Action::Crash(process));
            }
            if state.remaining_faults.late_commands > 0 {
                faults.push(Action::LateClaim(process));
                let objects = (0..).zip(&self.scope.pushes).map(|(object, _)| object);
                faults.extend(objects.map(|object| Action::LateBegin(process, object)));
            }
        }
        for process in self.processes() {
            self.faults_of_worker(state, process, faults);
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            if matches!(emitter.state_of_emit, EmitState::InTransaction(_)) {
                faults.push(Action::CommitEmit(number, Reply::Lost));
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.keys) {
            if self.is_dead(state, worker) {
                continue;
            }
            if !keys.heartbeat {
                faults.push(Action::HeartbeatReturns(worker));
            } else if state.remaining_faults.heartbeat_losses > 0 && !keys.object.is_empty() {
                faults.push(Action::HeartbeatExpires(worker));
            }
        }
        faults.extend((0..state.in_transit.len()).map(Action::LateCommitArrives));
    }

    fn faults_of_worker(&self, state: &State, process: Process, faults: &mut Vec<Action>) {
        match state.workers[usize::from(process)] {
            Worker::Idle if self.can_claim(state, process) => {
                faults.push(Action::ClaimObject(process, Reply::Lost));
            }
            Worker::OwnsObject(_) => {
                faults.push(Action::Begin(process, Reply::Lost));
                if state.remaining_faults.clock_leaps > 0 {
                    faults.push(Action::BeginWithClockAhead(process));
                }
            }
            Worker::InTransaction(_) => {
                faults.push(Action::Commit(process, Reply::Lost));
                if state.remaining_faults.crashes > 0 {
                    faults.push(Action::CrashDuringCommit(process));
                }
                if state.remaining_faults.late_commands > 0 {
                    faults.push(Action::AbandonCommit(process));
                }
            }
            Worker::Idle | Worker::AwaitingReply(_) | Worker::Dead => {}
        }
    }

    /// Whether there is something that an idle worker would take. Of workers that nothing sets apart only the first one does:
    /// what the others would do is the same.
    fn can_claim(&self, state: &State, process: Process) -> bool {
        let is_first = !self.is_indistinguishable_from_new(state, process)
            || !self.safeguards.unique_workers
            || !(0..process).any(|other| self.is_indistinguishable_from_new(state, other));
        let holds = !state.redis.keys(self.worker_id(process)).object.is_empty();
        is_first && (holds || !state.redis.queue.is_empty())
    }

    /// Whether nothing sets a worker apart from one that has just been started.
    fn is_indistinguishable_from_new(&self, state: &State, process: Process) -> bool {
        state.workers[usize::from(process)] == Worker::Idle
            && *state.redis.keys(self.worker_id(process)) == WorkerKeys::new()
            && !state.transactions().any(|transaction| transaction.mentions_worker(self.worker_id(process)))
    }

    pub(crate) fn is_dead(&self, state: &State, worker: WorkerId) -> bool {
        let mut processes = self.processes().filter(|process| self.worker_id(*process) == worker);
        processes.all(|process| state.workers[usize::from(process)] == Worker::Dead)
    }
}
