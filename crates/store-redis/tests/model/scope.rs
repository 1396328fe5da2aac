//! Bounds of the explored state space.

use crate::state::{
    CommitViolations, EmitState, Emitter, Event, FaultBudget, Object, ObjectId, Redis, State, WorkerKeys,
    WorkerState,
};

/// Bounds within which all runs are explored.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Number of event workers. A worker that is restarted after a crash counts as another one.
    pub(crate) workers: u8,
    /// For each object, the number of events of each push.
    pub(crate) pushes: Vec<Vec<u8>>,
    /// The object of each direct emit.
    pub(crate) emits: Vec<ObjectId>,
    /// Maximum number of events per transaction.
    pub(crate) max_events: u8,
    /// Maximum number of crashes.
    pub(crate) crashes: u8,
    /// Maximum number of times that a live worker loses its heartbeat.
    pub(crate) heartbeat_losses: u8,
    /// Maximum number of commands that reach Redis after their sender gave up.
    pub(crate) late_commands: u8,
    /// Maximum number of times that the clock leaps ahead of the ids.
    pub(crate) clock_leaps: u8,
}

impl Scope {
    /// One object with a main event and a subevent, and then a third event. Each transaction has one event.
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

    pub(crate) fn initial_state(&self) -> State {
        let emitter = |object: &ObjectId| Emitter {
            object: *object,
            emit_state: EmitState::Waiting,
            must_follow: vec![],
        };
        State {
            redis: Redis {
                objects: vec![Object::default(); self.pushes.len()],
                queue: vec![],
                keys: (0..self.workers).map(|_| WorkerKeys::new()).collect(),
                next_event_id: 0,
                version: 0,
                applied_commits: vec![],
                journal: vec![],
                assigned_ids: vec![],
                violations: CommitViolations::default(),
            },
            workers: (0..self.workers).map(|_| WorkerState::Idle).collect(),
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

    /// Returns the events of a push.
    pub(crate) fn events(&self, object: ObjectId, push: u8) -> impl Iterator<Item = Event> {
        let pushes = &self.pushes[usize::from(object)];
        let before: u8 = pushes.iter().take(usize::from(push)).sum();
        let count = pushes.get(usize::from(push)).copied().unwrap_or(0);
        (before..before + count).map(move |index| Event::Pushed(object, index))
    }

    /// Returns the number of events that are journaled at the end.
    pub(crate) fn total_events(&self) -> usize {
        let pushed: u8 = self.pushes.iter().flatten().sum();
        usize::from(pushed) + self.emits.len()
    }
}
