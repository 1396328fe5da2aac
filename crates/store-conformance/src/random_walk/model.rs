//! The expected content of the store, in plain maps.
//!
//! The model has no queues, indexes or gates. It keeps every task's state, as [`transition`] returns it, and derives
//! the rest by scanning all tasks: lane heads, open gates, runnable tasks. That is slow, but simple enough to trust.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use pointsman_core::store::EmittedEventReceipt;
use pointsman_core::task::lifecycle::{TaskEffect, transition};
use pointsman_core::task::{
    AttemptOutcome, QueueSubject, Task, TaskCommand, TaskCommandError, TaskLifecycle, TaskState,
};
use pointsman_core::{
    Event, EventId, HandlerName, LaneOrdering, NewEvent, ObjectKey, Priority, Rule, SourceCollection, TaskId,
    TaskSeq, TaskStatus, Tenant, Timestamp,
};

use crate::fixture::RegistrationBuilder;

/// A task as the model expects it.
#[derive(Debug)]
pub(super) struct ModelTask {
    pub(super) id: TaskId,
    pub(super) handler: HandlerName,
    pub(super) tenant: Tenant,
    /// The object in whose lane the task runs; None if it has no lane.
    lane_key: Option<ObjectKey>,
    /// The event of the task; None for a run of a source, which has a collection instead.
    pub(super) event_id: Option<EventId>,
    pub(super) source_collection: Option<SourceCollection>,
    /// Position in its lane; tasks with smaller numbers run first.
    lane_position: u64,
    pub(super) priority: Priority,
    is_sync: bool,
    /// Whether an attempt has ended or none ever will, so that later tasks of the event no longer wait for this one.
    has_opened_sync_gate: bool,
    pub(super) lifecycle: TaskLifecycle,
    pub(super) attempt_outcomes: Vec<AttemptOutcome>,
    /// The previous event sent with its first attempt; every other attempt must carry the same.
    pub(super) prev_sent_event: Option<Option<EventId>>,
}

impl ModelTask {
    pub(super) fn queue_subject(&self) -> QueueSubject {
        self.source_collection.as_ref().map_or(QueueSubject::Events, |collection| {
            QueueSubject::Collection(collection.collection.clone())
        })
    }
}

pub(super) struct StoreModel {
    /// The registration with all handlers, whether or not they are registered now.
    pub(super) full_registration: RegistrationBuilder,
    pub(super) tasks: BTreeMap<TaskSeq, ModelTask>,
    /// The tasks that are not in the history.
    pub(super) active_tasks: BTreeSet<TaskSeq>,
    tasks_by_event: HashMap<EventId, Vec<TaskSeq>>,
    pub(super) events: BTreeMap<EventId, Event>,
    last_event_by_object: HashMap<TenantObject, EventId>,
    pub(super) rules: Vec<Rule>,
    /// The next unused lane position.
    next_lane_position: u64,
}

type TenantObject = (Tenant, ObjectKey);

/// The head of each handler's lane, and the number of tasks behind it.
pub(super) type LaneHeads = BTreeMap<HandlerName, (TaskSeq, u64)>;

pub(super) type QueueKey = (HandlerName, QueueSubject, Tenant);

/// Counters of one queue: ready, waiting, scheduled, running, halted, missing.
pub(super) type QueueCounts = [u64; 6];

impl StoreModel {
    pub(super) fn new(registration: RegistrationBuilder) -> Self {
        Self {
            full_registration: registration,
            tasks: BTreeMap::new(),
            active_tasks: BTreeSet::new(),
            tasks_by_event: HashMap::new(),
            events: BTreeMap::new(),
            last_event_by_object: HashMap::new(),
            rules: Vec::new(),
            next_lane_position: 0,
        }
    }

    pub(super) fn last_event_id(&self) -> EventId {
        self.events.keys().next_back().copied().unwrap_or(EventId::ZERO)
    }

    /// Adds an event that the store journaled. `seqs` are the sequence numbers of its tasks.
    pub(super) fn add_event(
        &mut self,
        current: &RegistrationBuilder,
        new: &NewEvent,
        got: &EmittedEventReceipt,
        seqs: &[TaskSeq],
        now: Timestamp,
    ) {
        assert!(got.id > self.last_event_id(), "ids ascend");
        let object = new.key.clone().map(|key| (new.tenant.clone(), key));
        let prev = object.as_ref().and_then(|object| self.last_event_by_object.get(object).copied());
        assert_eq!(got.prev, prev, "prev is the object's last event");
        if let Some(object) = object {
            self.last_event_by_object.insert(object, got.id);
        }
        let bindings = current.build_routes().find_handlers_of_event_type(&new.event_type);
        assert_eq!(bindings.len(), got.tasks.len(), "one task for each handler");
        for ((binding, id), seq) in bindings.into_iter().zip(&got.tasks).zip(seqs) {
            assert!(self.tasks.keys().next_back().is_none_or(|last| last < seq), "task numbers ascend");
            let prefix = format!("{}_{}_", binding.handler, new.event_type);
            assert!(id.as_str().starts_with(&prefix), "{id} should begin with {prefix}");
            let ordered = self.full_registration.expect_handler_def(binding.handler.as_str()).ordering
                == LaneOrdering::Key;
            let model_task = ModelTask {
                id: id.clone(),
                handler: binding.handler,
                tenant: new.tenant.clone(),
                lane_key: new.key.clone().filter(|_| ordered),
                event_id: Some(got.id),
                source_collection: None,
                lane_position: self.next_lane_position,
                priority: new.priority,
                is_sync: binding.sync,
                has_opened_sync_gate: false,
                lifecycle: TaskLifecycle::new(new.due.unwrap_or(now), ordered && new.key.is_some()),
                attempt_outcomes: Vec::new(),
                prev_sent_event: None,
            };
            self.next_lane_position += 1;
            self.tasks.insert(*seq, model_task);
            self.active_tasks.insert(*seq);
        }
        self.tasks_by_event.insert(got.id, seqs.to_vec());
        self.events.insert(got.id, expected_event(new, got));
    }

    /// Adds a run that the store created for a collection.
    pub(super) fn add_collection_run(&mut self, collection: &SourceCollection, task: &Task) {
        let model_task = ModelTask {
            id: task.id.clone(),
            handler: collection.source.clone(),
            tenant: task.tenant.clone(),
            lane_key: None,
            event_id: None,
            source_collection: Some(collection.clone()),
            lane_position: self.next_lane_position,
            priority: task.priority,
            is_sync: false,
            has_opened_sync_gate: false,
            // The store may put it in a lane or not: a collection has at most one unfinished task either way.
            lifecycle: TaskLifecycle::new(task.created_at, task.lifecycle.has_lane),
            attempt_outcomes: Vec::new(),
            prev_sent_event: None,
        };
        self.next_lane_position += 1;
        self.tasks.insert(task.seq, model_task);
        self.active_tasks.insert(task.seq);
    }

    /// The new, scheduled or running task of a collection.
    pub(super) fn queued_or_running_task_of_collection(
        &self,
        collection: &SourceCollection,
    ) -> Option<TaskSeq> {
        let queued = [TaskStatus::New, TaskStatus::Scheduled, TaskStatus::Locked];
        let is_wanted = |seq: &&TaskSeq| {
            let task = &self.tasks[*seq];
            task.source_collection.as_ref() == Some(collection)
                && queued.contains(&task.lifecycle.state.status())
        };
        self.active_tasks.iter().find(is_wanted).copied()
    }

    /// Whether a task cannot be retried or adopted because another task of its collection is queued or running.
    pub(super) fn is_collection_of_task_busy(&self, seq: TaskSeq) -> bool {
        self.tasks[&seq]
            .source_collection
            .as_ref()
            .is_some_and(|collection| self.queued_or_running_task_of_collection(collection).is_some())
    }

    /// Applies a command to a task with the core's transition function.
    pub(super) fn apply_command(
        &mut self,
        seq: TaskSeq,
        command: TaskCommand,
        now: Timestamp,
    ) -> Result<(), TaskCommandError> {
        let task = self.tasks.get_mut(&seq).ok_or(TaskCommandError::NoSuchTask)?;
        let def = self.full_registration.expect_handler_def(task.handler.as_str());
        let (life, effects) = transition(seq, task.lifecycle, command, def, now)?;
        task.lifecycle = life;
        for effect in effects {
            match effect {
                TaskEffect::RecordAttempt(end) => task.attempt_outcomes.push(end),
                TaskEffect::OpenSyncGate => task.has_opened_sync_gate = true,
                TaskEffect::Archive => drop(self.active_tasks.remove(&seq)),
                TaskEffect::Unarchive => drop(self.active_tasks.insert(seq)),
                // The model derives the lane heads from the lane positions.
                TaskEffect::AdvanceLane => {}
                TaskEffect::JoinLane => {
                    task.lane_position = self.next_lane_position;
                    self.next_lane_position += 1;
                }
            }
        }
        Ok(())
    }

    pub(super) fn lifecycle_mut(&mut self, seq: TaskSeq) -> &mut TaskLifecycle {
        &mut self.task_mut(seq).lifecycle
    }

    pub(super) fn task_mut(&mut self, seq: TaskSeq) -> &mut ModelTask {
        self.tasks.get_mut(&seq).expect("a task of the model")
    }

    /// Active tasks with this status.
    pub(super) fn active_tasks_with_status(&self, status: TaskStatus) -> Vec<TaskSeq> {
        let is_wanted = |seq: &&TaskSeq| self.tasks[*seq].lifecycle.state.status() == status;
        self.active_tasks.iter().filter(is_wanted).copied().collect()
    }

    pub(super) fn is_blocked_by_rule(&self, task: &ModelTask) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.applies_to_queue(&task.handler, &task.queue_subject(), &task.tenant))
    }

    /// New tasks at the head of their lane with an open sync gate. They can only wait for their due time, a rule or a limit.
    pub(super) fn new_tasks_past_lane_and_sync_gate(&self) -> HashSet<TaskSeq> {
        let mut taken = HashSet::new();
        let mut heads = HashSet::new();
        for (seq, task) in self.tasks_by_lane_position() {
            let first = match &task.lane_key {
                Some(key) if task.lifecycle.in_lane => taken.insert((&task.handler, &task.tenant, key)),
                _ => true,
            };
            if first
                && matches!(task.lifecycle.state, TaskState::New { .. })
                && self.is_sync_gate_open(*seq, task)
            {
                heads.insert(*seq);
            }
        }
        heads
    }

    fn tasks_by_lane_position(&self) -> Vec<(&TaskSeq, &ModelTask)> {
        let mut by_position: Vec<_> = self.active_tasks.iter().map(|seq| (seq, &self.tasks[seq])).collect();
        by_position.sort_by_key(|(_, task)| task.lane_position);
        by_position
    }

    /// The lanes of every object: the head of each and the number of tasks behind it.
    pub(super) fn lane_heads_by_object(&self) -> HashMap<TenantObject, LaneHeads> {
        let mut lanes: HashMap<TenantObject, LaneHeads> =
            self.last_event_by_object.keys().map(|object| (object.clone(), LaneHeads::new())).collect();
        for (seq, task) in self.tasks_by_lane_position() {
            let Some(key) = task.lane_key.as_ref().filter(|_| task.lifecycle.in_lane) else { continue };
            let object_lanes = lanes.entry((task.tenant.clone(), key.clone())).or_default();
            object_lanes
                .entry(task.handler.clone())
                .and_modify(|(_, behind)| *behind += 1)
                .or_insert((*seq, 0));
        }
        lanes
    }

    /// Whether all synchronous tasks before this one have had their first attempt.
    fn is_sync_gate_open(&self, seq: TaskSeq, task: &ModelTask) -> bool {
        let Some(event) = task.event_id else { return true };
        let before =
            self.tasks_by_event[&event].iter().filter(|other| **other < seq).map(|other| &self.tasks[other]);
        before.filter(|other| other.is_sync).all(|other| other.has_opened_sync_gate)
    }

    /// Unblocked new tasks that are due, whether or not a rule or a limit keeps them from starting.
    pub(super) fn ready_tasks(&self, now: Timestamp) -> HashSet<TaskSeq> {
        let due =
            |seq: &TaskSeq| matches!(self.tasks[seq].lifecycle.state, TaskState::New { due } if due <= now);
        self.new_tasks_past_lane_and_sync_gate().into_iter().filter(due).collect()
    }

    /// The number of these tasks that their handlers' limits allow to run in addition to the running ones.
    pub(super) fn count_tasks_within_limits(&self, tasks: impl Iterator<Item = TaskSeq>) -> usize {
        let mut waiting: HashMap<&HandlerName, HashMap<Option<TenantObject>, usize>> = HashMap::new();
        for seq in tasks {
            let task = &self.tasks[&seq];
            *waiting.entry(&task.handler).or_default().entry(self.object_of_task(task)).or_default() += 1;
        }
        let mut running: HashMap<&HandlerName, HashMap<Option<TenantObject>, usize>> = HashMap::new();
        for seq in self.active_tasks_with_status(TaskStatus::Locked) {
            let task = &self.tasks[&seq];
            *running.entry(&task.handler).or_default().entry(self.object_of_task(task)).or_default() += 1;
        }
        let capacity = waiting.into_iter().map(|(handler, objects)| {
            let limits = &self.full_registration.expect_handler_def(handler.as_str()).limits;
            let taken = running.remove(handler).unwrap_or_default();
            let of_object = |(object, count): (Option<TenantObject>, usize)| {
                let limit = limits.concurrency_per_key.filter(|_| object.is_some());
                let taken = taken.get(&object).copied().unwrap_or(0);
                limit.map_or(count, |limit| count.min((limit as usize).saturating_sub(taken)))
            };
            let count: usize = objects.into_iter().map(of_object).sum();
            let taken: usize = taken.values().sum();
            limits.concurrency.map_or(count, |limit| count.min((limit as usize).saturating_sub(taken)))
        });
        capacity.sum()
    }

    fn object_of_task(&self, task: &ModelTask) -> Option<TenantObject> {
        let event = &self.events[&task.event_id?];
        event.key.clone().map(|key| (event.tenant.clone(), key))
    }

    /// Whether a limit applies to the handler; the store then chooses which of its tasks run.
    pub(super) fn has_concurrency_limit(&self, handler: &HandlerName) -> bool {
        let limits = &self.full_registration.expect_handler_def(handler.as_str()).limits;
        limits.concurrency.is_some() || limits.concurrency_per_key.is_some()
    }

    pub(super) fn is_pulled(&self, handler: &HandlerName) -> bool {
        self.full_registration.expect_handler_def(handler.as_str()).pull
    }

    /// The counters of every queue that has active tasks.
    pub(super) fn queue_counts(&self, now: Timestamp) -> BTreeMap<QueueKey, QueueCounts> {
        let ready = self.ready_tasks(now);
        let mut counts: BTreeMap<_, QueueCounts> = BTreeMap::new();
        for seq in &self.active_tasks {
            let task = &self.tasks[seq];
            let column = match task.lifecycle.state {
                TaskState::New { .. } if ready.contains(seq) => 0,
                TaskState::New { .. } => 1,
                TaskState::Scheduled => 2,
                TaskState::Locked(_) => 3,
                TaskState::Error { .. } => 4,
                TaskState::Missing { .. } => 5,
                TaskState::Done => unreachable!("a done task is history"),
            };
            counts.entry((task.handler.clone(), task.queue_subject(), task.tenant.clone())).or_default()
                [column] += 1;
        }
        counts
    }
}

/// The event as the journal should contain it.
fn expected_event(new: &NewEvent, got: &EmittedEventReceipt) -> Event {
    let NewEvent { event_type, key, sub_object: sub, value, context, tenant, cause, .. } = new.clone();
    Event { id: got.id, prev: got.prev, event_type, key, sub_object: sub, value, context, tenant, cause }
}
