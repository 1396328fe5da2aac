//! Bounds of the explored state space.

use crate::state::{
    CommitViolations, EmitState, Emitter, Event, FaultBudget, Object, ObjectId, Redis, State, Worker,
    WorkerKeys,
};

/// All runs within these bounds are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Processes that work for the outbox. One that is started again after a crash is another one.
    pub(crate) workers: u8,
    /// For each object how many events are pushed at once, in order.
    pub(crate) pushes: Vec<Vec<u8>>,
    /// For each direct emit its object.
    pub(crate) emits: Vec<ObjectId>,
    /// How many events a turn has.
    pub(crate) max_events: u8,
    /// How many workers crash.
    pub(crate) crashes: u8,
    /// How many times a worker lives on without its heartbeat.
    pub(crate) heartbeat_losses: u8,
    /// How many commands reach Redis after their sender has given them up.
    pub(crate) late_commands: u8,
    /// How many times the clock is ahead of the ids.
    pub(crate) clock_leaps: u8,
}

impl Scope {
    /// One object with a main event and a subevent, and then a third event. Each turn has one event.
    pub(crate) fn one_object(workers: u8) -> Self {
        Self {
            workers,
            pushes: vec![vec![2, 1]],
            emits: vec![],
            max_events: 1,
            crashes: 1,
            heartbeat_losses: 1,
            late_commands: 0,
            clock_leaps: 0,
        }
    }

    /// Two objects, one with a main event and a subevent, one with a single event.
    pub(crate) fn two_objects(workers: u8) -> Self {
        Self { pushes: vec![vec![2], vec![1]], ..Self::one_object(workers) }
    }

    pub(crate) fn start(&self) -> State {
        let emitter = |object: &ObjectId| Emitter {
            object: *object,
            state_of_emit: EmitState::Waiting,
            must_follow: vec![],
        };
        State {
            redis: Redis {
                objects: vec![Object::default(); self.pushes.len()],
                queue: vec![],
                keys: (0..self.workers).map(|_| WorkerKeys::new()).collect(),
                next_event_id: 0,
                version: 0,
                marks: vec![],
                journal: vec![],
                assigned_ids: vec![],
                violations: CommitViolations::default(),
            },
            workers: (0..self.workers).map(|_| Worker::Idle).collect(),
            emitters: self.emits.iter().map(emitter).collect(),
            in_transit: vec![],
            pushes: vec![0; self.pushes.len()],
            remaining_faults: FaultBudget {
                crashes: self.crashes,
                heartbeat_losses: self.heartbeat_losses,
                late_commands: self.late_commands,
                clock_leaps: self.clock_leaps,
            },
        }
    }

    /// The events that a push brings.
    pub(crate) fn events(&self, object: ObjectId, push: u8) -> impl Iterator<Item = Event> {
        let pushes = &self.pushes[usize::from(object)];
        let before: u8 = pushes.iter().take(usize::from(push)).sum();
        let count = pushes.get(usize::from(push)).copied().unwrap_or(0);
        (before..before + count).map(move |place| Event::Pushed(object, place))
    }

    /// How many events are journaled at the end.
    pub(crate) fn total(&self) -> usize {
        let pushed: u8 = self.pushes.iter().flatten().sum();
        usize::from(pushed) + self.emits.len()
    }
}
