//! Bounds of the explored state space.

use crate::state::{
    CommitViolations, EmitState, Emitter, Event, FaultBudget, Object, ObjectId, OutboxWorkerKeyValues, Redis,
    State, WorkerState,
};

/// Bounds within which all runs are explored.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Number of event workers. A worker that is restarted after a crash counts as another one.
    pub(crate) worker_count: u8,
    /// For each object, the number of events of each push.
    pub(crate) push_sizes_by_object: Vec<Vec<u8>>,
    /// The object of each direct emit.
    pub(crate) emit_objects: Vec<ObjectId>,
    /// Maximum number of events per transaction.
    pub(crate) max_events_per_transaction: u8,
    /// Maximum number of crashes.
    pub(crate) max_crashes: u8,
    /// Maximum number of times that a live worker loses its heartbeat.
    pub(crate) max_heartbeat_losses: u8,
    /// Maximum number of commands that reach Redis after their sender gave up.
    pub(crate) max_late_commands: u8,
    /// Maximum number of times that the clock leaps ahead of the ids.
    pub(crate) max_clock_leaps: u8,
}

impl Scope {
    /// One object with a main event and a subevent, and then a third event. Each transaction has one event.
    pub(crate) fn one_object(workers: u8) -> Self {
        Self {
            worker_count: workers,
            push_sizes_by_object: vec![vec![2, 1]],
            emit_objects: vec![],
            max_events_per_transaction: 1,
            max_crashes: 1,
            max_heartbeat_losses: 1,
            max_late_commands: 0,
            max_clock_leaps: 0,
        }
    }

    /// Two objects, one with a main event and a subevent, one with a single event.
    pub(crate) fn two_objects(workers: u8) -> Self {
        Self { push_sizes_by_object: vec![vec![2], vec![1]], ..Self::one_object(workers) }
    }

    pub(crate) fn initial_state(&self) -> State {
        let emitter = |object: &ObjectId| Emitter {
            object: *object,
            emit_state: EmitState::Waiting,
            events_to_follow: vec![],
        };
        State {
            redis: Redis {
                objects: vec![Object::default(); self.push_sizes_by_object.len()],
                queued_objects: vec![],
                worker_keys: (0..self.worker_count).map(|_| OutboxWorkerKeyValues::new()).collect(),
                next_event_id: 0,
                version: 0,
                applied_commit_ids: vec![],
                journal: vec![],
                assigned_ids: vec![],
                violations: CommitViolations::default(),
            },
            workers: (0..self.worker_count).map(|_| WorkerState::Idle).collect(),
            emitters: self.emit_objects.iter().map(emitter).collect(),
            commits_in_transit: vec![],
            push_counts: vec![0; self.push_sizes_by_object.len()],
            remaining_faults: FaultBudget {
                crashes: self.max_crashes,
                heartbeat_losses: self.max_heartbeat_losses,
                late_commands: self.max_late_commands,
                clock_leaps: self.max_clock_leaps,
            },
        }
    }

    /// Returns the events of a push.
    pub(crate) fn events_of_push(&self, object: ObjectId, push: u8) -> impl Iterator<Item = Event> {
        let pushes = &self.push_sizes_by_object[usize::from(object)];
        let before: u8 = pushes.iter().take(usize::from(push)).sum();
        let count = pushes.get(usize::from(push)).copied().unwrap_or(0);
        (before..before + count).map(move |index| Event::Pushed(object, index))
    }

    /// Returns the number of events that are journaled at the end.
    pub(crate) fn total_event_count(&self) -> usize {
        let pushed: u8 = self.push_sizes_by_object.iter().flatten().sum();
        usize::from(pushed) + self.emit_objects.len()
    }
}
