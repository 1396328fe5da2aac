//! What can happen next: steps that bring things forward, and faults.

use crate::outbox::Outbox;
use crate::state::{Emit, ObjectId, Process, State, Worker, WorkerId, WorkerKeys};

/// Whether the sender of a command gets its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Heard,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A producer pushes a main event and its subevents.
    Push(ObjectId),
    Take(Process, Reply),
    /// What a worker without a heartbeat holds is put in line.
    Sweep(WorkerId),
    /// A worker's transaction begins.
    Begin(Process, Reply),
    /// The same, with the clock ahead of the ids.
    BeginAhead(Process),
    Commit(Process, Reply),
    /// The transaction of a direct emit begins, or goes on after a piece.
    Look(u8),
    /// A direct emit commits.
    Emit(u8, Reply),

    Crash(Process),
    /// It crashes, and its commit is under way.
    CrashSending(Process),
    /// It gives a commit up that is under way.
    GiveUp(Process),
    /// A commit that was given up arrives.
    Arrive(usize),
    /// A heartbeat is gone, whether its worker lives or not.
    Lapse(WorkerId),
    /// A worker whose heartbeat was gone has one again.
    Beat(WorkerId),
    /// A command reaches Redis after its sender has given it up, or is dead.
    LateTake(Process),
    LateBegin(Process, ObjectId),
}

impl Outbox {
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
                Worker::Idle if self.can_take(state, process) => {
                    steps.push(Action::Take(process, Reply::Heard));
                }
                Worker::Holds(_) => steps.push(Action::Begin(process, Reply::Heard)),
                Worker::Open(_) | Worker::Unsure(_) => steps.push(Action::Commit(process, Reply::Heard)),
                Worker::Idle | Worker::Dead => {}
            }
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            match emitter.doing {
                Emit::Waits | Emit::GoesOn(_) => steps.push(Action::Look(number)),
                Emit::Open(_) | Emit::Unsure(_) => steps.push(Action::Emit(number, Reply::Heard)),
                Emit::Done => {}
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.keys) {
            if self.safeguards.sweep && state.redis.orphan(worker).is_some() {
                steps.push(Action::Sweep(worker));
            }
            if keys.heartbeat && !keys.object.is_empty() && self.is_dead(state, worker) {
                steps.push(Action::Lapse(worker));
            }
        }
        steps
    }

    /// What goes wrong.
    pub(crate) fn faults(&self, state: &State, faults: &mut Vec<Action>) {
        for process in self.processes().filter(|process| !self.is_blank(state, *process)) {
            if state.left.crashes > 0 && state.workers[usize::from(process)] != Worker::Dead {
                faults.push(Action::Crash(process));
            }
            if state.left.late > 0 {
                faults.push(Action::LateTake(process));
                let objects = (0..).zip(&self.scope.pushes).map(|(object, _)| object);
                faults.extend(objects.map(|object| Action::LateBegin(process, object)));
            }
        }
        for process in self.processes() {
            self.faults_of_worker(state, process, faults);
        }
        for (number, emitter) in (0..).zip(&state.emitters) {
            if matches!(emitter.doing, Emit::Open(_)) {
                faults.push(Action::Emit(number, Reply::Lost));
            }
        }
        for (worker, keys) in (0..).zip(&state.redis.keys) {
            if self.is_dead(state, worker) {
                continue;
            }
            if !keys.heartbeat {
                faults.push(Action::Beat(worker));
            } else if state.left.lapses > 0 && !keys.object.is_empty() {
                faults.push(Action::Lapse(worker));
            }
        }
        faults.extend((0..state.under_way.len()).map(Action::Arrive));
    }

    fn faults_of_worker(&self, state: &State, process: Process, faults: &mut Vec<Action>) {
        match state.workers[usize::from(process)] {
            Worker::Idle if self.can_take(state, process) => {
                faults.push(Action::Take(process, Reply::Lost));
            }
            Worker::Holds(_) => {
                faults.push(Action::Begin(process, Reply::Lost));
                if state.left.leaps > 0 {
                    faults.push(Action::BeginAhead(process));
                }
            }
            Worker::Open(_) => {
                faults.push(Action::Commit(process, Reply::Lost));
                if state.left.crashes > 0 {
                    faults.push(Action::CrashSending(process));
                }
                if state.left.late > 0 {
                    faults.push(Action::GiveUp(process));
                }
            }
            Worker::Idle | Worker::Unsure(_) | Worker::Dead => {}
        }
    }

    /// Whether there is something that an idle worker would take. Of workers that nothing sets apart only the first one does:
    /// what the others would do is the same.
    fn can_take(&self, state: &State, process: Process) -> bool {
        let is_first = !self.is_blank(state, process)
            || !self.safeguards.unique_workers
            || !(0..process).any(|other| self.is_blank(state, other));
        let holds = !state.redis.keys(self.id(process)).object.is_empty();
        is_first && (holds || !state.redis.line.is_empty())
    }

    /// Whether nothing sets a worker apart from one that has just been started.
    fn is_blank(&self, state: &State, process: Process) -> bool {
        state.workers[usize::from(process)] == Worker::Idle
            && *state.redis.keys(self.id(process)) == WorkerKeys::new()
            && !state.transactions().any(|transaction| transaction.names(self.id(process)))
    }

    pub(crate) fn is_dead(&self, state: &State, worker: WorkerId) -> bool {
        let mut processes = self.processes().filter(|process| self.id(*process) == worker);
        processes.all(|process| state.workers[usize::from(process)] == Worker::Dead)
    }
}
