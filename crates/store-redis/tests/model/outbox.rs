//! The outbox as a model: what each action does.

use stateright::{Model, Property};

use crate::actions::{Action, Reply};
use crate::properties;
use crate::safeguards::Safeguards;
use crate::scope::Scope;
use crate::scripts::{Answer, Beginning};
use crate::state::{Author, Emit, Event, Mark, ObjectId, Process, State, Transaction, Worker, WorkerId};

/// The outbox within a scope, with its safeguards.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) scope: Scope,
    pub(crate) safeguards: Safeguards,
}

impl Outbox {
    pub(crate) fn processes(&self) -> impl Iterator<Item = Process> {
        0..self.scope.workers
    }

    /// The worker that a process is. If workers are not unique, the second process is the first one, started again while it
    /// still lives.
    pub(crate) fn id(&self, process: Process) -> WorkerId {
        if process == 1 && !self.safeguards.unique_workers { 0 } else { process }
    }

    fn beginning(&self, state: &State, object: ObjectId, author: Author, number: u8) -> Beginning {
        let author_of_mark = if self.safeguards.unique_marks { number } else { 0 };
        let mark = Mark { version: state.redis.version, author: author_of_mark };
        Beginning { object, author, mark, budget: self.scope.budget, leap: 0 }
    }

    fn pop(&self, state: &mut State, process: Process, object: ObjectId, leap: u8) -> Option<Transaction> {
        let worker = self.id(process);
        let beginning = self.beginning(state, object, Author::Worker(worker, process), process);
        state.redis.pop(Beginning { leap, ..beginning }, worker, &self.safeguards)
    }

    fn begin(&self, state: &mut State, process: Process, leap: u8, reply: Reply) -> Option<()> {
        let Worker::Holds(object) = state.workers[usize::from(process)] else { return None };
        let popped = self.pop(state, process, object, leap);
        if reply == Reply::Heard {
            state.workers[usize::from(process)] = popped.map_or(Worker::Idle, Worker::Open);
        }
        Some(())
    }

    fn take(&self, state: &mut State, process: Process, reply: Reply) {
        let taken = state.redis.take(self.id(process), process, &self.safeguards);
        if let (Some(object), Reply::Heard) = (taken, reply) {
            state.workers[usize::from(process)] = Worker::Holds(object);
        }
    }

    /// A worker's commit, which is sent again until there is an answer. Whatever that is: what it holds then, it takes.
    fn commit(&self, state: &mut State, process: Process, reply: Reply) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (Reply::Heard, Answer::Done | Answer::Refused) => Worker::Idle,
            (Reply::Lost, Answer::Done) => Worker::Unsure(transaction),
            // Sent again, it is refused again.
            (Reply::Lost, Answer::Refused) => return None,
        };
        Some(())
    }

    fn look(&self, state: &mut State, number: u8) {
        let object = state.emitters[usize::from(number)].object;
        let beginning = self.beginning(state, object, Author::Emitter(number), self.scope.workers + number);
        let emitter = &mut state.emitters[usize::from(number)];
        if !state.redis.journal.iter().any(|entry| entry.event == Event::Direct(number)) {
            emitter.behind = state.redis.unserved(object);
        }
        let mut transaction = state.redis.look(beginning, &self.safeguards);
        if let Emit::GoesOn(version) = emitter.doing {
            // Whoever goes on knows of no version but its own, and of no id that was given out since.
            transaction.mark.version = version;
            transaction.next_event_id = transaction.newest;
        }
        emitter.doing = Emit::Open(transaction);
    }

    /// The commit of a direct emit, which is sent again until there is an answer. After a piece of what was left it goes on;
    /// refused, it begins again.
    fn emit(&self, state: &mut State, number: u8, reply: Reply) -> Option<()> {
        let emitter = &mut state.emitters[usize::from(number)];
        let transaction = emitter.doing.transaction()?.clone();
        emitter.doing = match (reply, state.redis.commit(&transaction, &self.safeguards)) {
            (Reply::Heard, Answer::Done) if transaction.is_piece(&self.safeguards) => {
                Emit::GoesOn(transaction.mark.version + 1)
            }
            (Reply::Heard, Answer::Done) => Emit::Done,
            (Reply::Heard, Answer::Refused) => Emit::Waits,
            (Reply::Lost, Answer::Done) => Emit::Unsure(transaction),
            (Reply::Lost, Answer::Refused) => return None,
        };
        Some(())
    }

    /// What a process leaves behind that sends its commit and waits for no answer.
    fn leave_under_way(&self, state: &mut State, process: Process, then: Worker) -> Option<()> {
        let worker = &mut state.workers[usize::from(process)];
        let transaction = worker.transaction()?.clone();
        *worker = then;
        state.under_way.push(transaction);
        Some(())
    }

    fn apply_action(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Push(object) => {
                let push = &mut state.pushes[usize::from(object)];
                state.redis.push(object, self.scope.events(object, *push));
                *push += 1;
            }
            Action::Take(process, reply) => self.take(state, process, reply),
            Action::Sweep(worker) => state.redis.sweep(worker)?,
            Action::Begin(process, reply) => self.begin(state, process, 0, reply)?,
            Action::Commit(process, reply) => self.commit(state, process, reply)?,
            Action::Look(number) => self.look(state, number),
            Action::Emit(number, reply) => self.emit(state, number, reply)?,
            Action::BeginAhead(process) => {
                state.left.leaps -= 1;
                self.begin(state, process, 1, Reply::Heard)?;
            }
            Action::Crash(process) => {
                state.left.crashes -= 1;
                state.workers[usize::from(process)] = Worker::Dead;
            }
            Action::CrashSending(process) => {
                state.left.crashes -= 1;
                self.leave_under_way(state, process, Worker::Dead)?;
            }
            Action::GiveUp(process) => {
                state.left.late -= 1;
                self.leave_under_way(state, process, Worker::Idle)?;
            }
            Action::Arrive(place) => {
                let transaction = state.under_way.remove(place);
                state.redis.commit(&transaction, &self.safeguards);
            }
            Action::Lapse(worker) => {
                state.left.lapses -= u8::from(!self.is_dead(state, worker));
                state.redis.keys_mut(worker).heartbeat = false;
            }
            Action::Beat(worker) => state.redis.keys_mut(worker).heartbeat = true,
            Action::LateTake(process) => {
                state.left.late -= 1;
                self.take(state, process, Reply::Lost);
            }
            Action::LateBegin(process, object) => {
                state.left.late -= 1;
                self.pop(state, process, object, 0);
            }
        }
        Some(())
    }
}

impl Model for Outbox {
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
        next.forget();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }

    /// Without its safeguards, the outbox might journal for ever.
    fn within_boundary(&self, state: &State) -> bool {
        state.redis.journal.len() <= self.scope.total() + 2
    }
}
