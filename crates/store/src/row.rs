//! Rows of the tables, and the encoding of their codes.

use pointsman_core::chain::{Chain, ChainNodeId, ChainPath, ChainState};
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::order::Order;
use pointsman_core::task::{
    AttemptOutcome, ErrorReason, Lease, LogLevel, QueueSubject, StepRun, TaskLifecycle, TaskState,
    TaskStatus, TaskSubject,
};
use pointsman_core::{EventId, HandlerDef, ObjectKey, TaskSeq, Tenant, Timestamp};

use crate::error::{Fault, TableResult};
use crate::lifecycle::AttemptOutput;
pub use crate::phase::TaskPhase;

pub type HandlerId = i64;
pub type QueueId = i64;
pub type ObjectNumber = i64;

/// Row of an unfinished task.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveTaskRow {
    pub seq: TaskSeq,
    pub queue: QueueId,
    /// `None` for a source's task and for an order's step.
    pub event: Option<EventId>,
    /// Number of the order whose step the task is.
    pub order_number: Option<i64>,
    pub phase: TaskPhase,
    /// The lane of the task; `None` if its handler has no ordering.
    pub lane: Option<i64>,
    /// Position of the task in its lane; `None` if it is not in the lane.
    pub lane_position: Option<i64>,
    /// Concurrency group of the task: the tasks of one handler and object, of which only a limited number may run at a
    /// time.
    pub concurrency_group: Option<i64>,
    /// Bucket of the task's key in the queue's round robin of keys.
    pub key_bucket: Option<u16>,
    pub is_sync: bool,
    /// Position of the task among the tasks of its event, which run in this order: each synchronous task has a sync
    /// stage of its own, and all other tasks share the last one.
    pub sync_stage: i64,
    pub priority: i64,
    /// Order in the queue, the highest first: computed from the priority and, with ageing, the creation time.
    pub score: i64,
    /// Order among tasks of the same score, the lowest first; assigned when the task becomes ready.
    pub rank: i64,
    /// The previous event of the same object that was sent to this handler.
    pub prev_sent_event: Option<EventId>,
    /// The time for which a schedule planned it.
    pub planned_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When its latest attempt started.
    pub started_at: Option<Timestamp>,
    pub error: Option<String>,
    pub lifecycle: TaskLifecycle,
}

impl ActiveTaskRow {
    /// Returns when the task may run; for a task that does not wait for a time, when it was created.
    pub fn due_time(&self) -> Timestamp {
        match self.lifecycle.state {
            TaskState::New { due } | TaskState::Missing { due } => due,
            TaskState::Scheduled | TaskState::Locked(_) | TaskState::Done | TaskState::Error { .. } => {
                self.created_at
            }
        }
    }

    pub fn lease(&self) -> Option<Lease> {
        match self.lifecycle.state {
            TaskState::Locked(lease) => Some(lease),
            TaskState::New { .. }
            | TaskState::Scheduled
            | TaskState::Done
            | TaskState::Error { .. }
            | TaskState::Missing { .. } => None,
        }
    }

    /// Decodes the state from its columns.
    pub fn decode_state(
        phase: TaskPhase,
        due: Timestamp,
        lease: impl FnOnce() -> TableResult<Lease>,
        reason: Option<i16>,
    ) -> TableResult<TaskState> {
        Ok(match phase {
            TaskPhase::BlockedByTask | TaskPhase::SyncGated | TaskPhase::Delayed | TaskPhase::Ready => {
                TaskState::New { due }
            }
            TaskPhase::Scheduled => TaskState::Scheduled,
            TaskPhase::Locked => TaskState::Locked(lease()?),
            TaskPhase::Halted => TaskState::Error { reason: decode_error_reason(reason)?, halts_lane: true },
            TaskPhase::Missing => TaskState::Missing { due },
        })
    }
}

/// Row of an archived task: a task that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedTaskRow {
    pub seq: TaskSeq,
    pub queue: QueueId,
    /// `None` for a source's task and for an order's step.
    pub event: Option<EventId>,
    /// The event's type, the source's collection, or the chain node of the step.
    pub subject_name: String,
    pub key: Option<String>,
    pub is_sync: bool,
    pub sync_stage: i64,
    pub priority: i64,
    pub lifecycle: TaskLifecycle,
    pub prev_sent_event: Option<EventId>,
    pub planned_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    pub error: Option<String>,
    pub result: Option<String>,
}

impl ArchivedTaskRow {
    /// Builds the row of a task that has just ended. The row repeats the type and the key of the event, because the
    /// event may expire before the row.
    pub(crate) fn from_ended_task(
        task_row: &ActiveTaskRow,
        subject: &TaskSubject,
        lifecycle: TaskLifecycle,
        finished_at: Timestamp,
        output: AttemptOutput<'_>,
    ) -> Self {
        let has_failed = lifecycle.state.status() != TaskStatus::Done;
        let error = output.error.or(task_row.error.as_deref().filter(|_| has_failed));
        Self {
            seq: task_row.seq,
            queue: task_row.queue,
            event: task_row.event,
            subject_name: subject.name().into(),
            key: subject.key().map(|key| key.as_str().into()),
            is_sync: task_row.is_sync,
            sync_stage: task_row.sync_stage,
            priority: task_row.priority,
            lifecycle,
            prev_sent_event: task_row.prev_sent_event,
            planned_at: task_row.planned_at,
            created_at: task_row.created_at,
            started_at: task_row.started_at,
            finished_at,
            error: error.map(str::to_string),
            result: output.result.map(str::to_string),
        }
    }

    /// Returns [`STATUS_DONE`] or [`STATUS_ERROR`].
    pub fn encode_status(&self) -> i16 {
        if self.lifecycle.state.status() == TaskStatus::Done { STATUS_DONE } else { STATUS_ERROR }
    }

    /// Decodes the state from its columns.
    pub fn decode_state(status: i16, reason: Option<i16>) -> TableResult<TaskState> {
        Ok(match status {
            STATUS_DONE => TaskState::Done,
            _ => TaskState::Error { reason: decode_error_reason(reason)?, halts_lane: false },
        })
    }
}

/// Code of the status `done` in the history.
pub const STATUS_DONE: i16 = 0;
/// Code of the status `error` in the history.
pub const STATUS_ERROR: i16 = 1;

/// The columns of a waiting task that decide whether it can run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    pub seq: TaskSeq,
    pub queue: QueueId,
    pub key_bucket: Option<u16>,
    pub concurrency_group: Option<i64>,
    pub score: i64,
    pub due: Timestamp,
}

impl WaitingTask {
    pub fn from_row(task_row: &ActiveTaskRow, due: Timestamp) -> Self {
        let ActiveTaskRow { seq, queue, key_bucket, concurrency_group, score, .. } = *task_row;
        Self { seq, queue, key_bucket, concurrency_group, score, due }
    }
}

/// The first task of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneHead {
    pub lane_position: i64,
    pub phase: TaskPhase,
    pub task: WaitingTask,
}

/// A task that waits for a synchronous task of its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncGatedTask {
    pub task: WaitingTask,
    pub lane: Option<i64>,
    pub lane_position: Option<i64>,
    pub sync_stage: i64,
}

/// Row of an object: its number, its last event, and the last event sent to each handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// 0 for an object that has a row but no event in this store yet.
    pub number: ObjectNumber,
    pub last_event: EventId,
    /// The last event sent to each handler.
    pub last_sent_events: Vec<(HandlerId, EventId)>,
}

/// An object that retention has not found in use for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleObject {
    pub tenant: Tenant,
    pub key: String,
    pub row: ObjectRow,
    /// Whether an outbox contains events of it that are not journaled yet.
    pub has_outbox_events: bool,
}

impl ObjectRow {
    pub fn last_event_sent_to(&self, handler: HandlerId) -> Option<EventId> {
        self.last_sent_events.iter().find(|(h, _)| *h == handler).map(|(_, id)| *id)
    }

    /// Encodes the last events sent: pairs of a handler's number (4 bytes) and an event id (8 bytes), little-endian.
    pub fn encode_last_sent_events(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.last_sent_events.len() * 12);
        for (handler, id) in &self.last_sent_events {
            bytes.extend_from_slice(&(*handler as u32).to_le_bytes());
            bytes.extend_from_slice(&id.get().to_le_bytes());
        }
        bytes
    }

    pub fn decode_last_sent_events(bytes: &[u8]) -> Vec<(HandlerId, EventId)> {
        let (pairs, _) = bytes.as_chunks::<12>();
        let decode_pair = |bytes: &[u8; 12]| {
            let [h0, h1, h2, h3, id @ ..] = *bytes;
            let id = i64::from_le_bytes(id);
            (i64::from(u32::from_le_bytes([h0, h1, h2, h3])), EventId::from_i64(id))
        };
        pairs.iter().map(decode_pair).collect()
    }
}

/// Number of a queue's tasks in each group of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    pub ready: i64,
    /// Blocked, gated or delayed.
    pub waiting: i64,
    pub scheduled: i64,
    /// Locked.
    pub running: i64,
    pub halted: i64,
    pub missing: i64,
}

impl QueueCounts {
    /// Returns the count to which the tasks in a phase belong.
    pub(crate) fn count_of_phase_mut(&mut self, phase: TaskPhase) -> &mut i64 {
        match phase {
            TaskPhase::Ready => &mut self.ready,
            TaskPhase::BlockedByTask | TaskPhase::SyncGated | TaskPhase::Delayed => &mut self.waiting,
            TaskPhase::Scheduled => &mut self.scheduled,
            TaskPhase::Locked => &mut self.running,
            TaskPhase::Halted => &mut self.halted,
            TaskPhase::Missing => &mut self.missing,
        }
    }
}

/// The smallest and the largest rank of a queue's ready tasks with the same score and key bucket: score, bucket,
/// smallest rank, largest rank.
pub type RankRange = (i64, Option<u16>, i64, i64);

/// A queue and its task counts.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRow {
    pub id: QueueId,
    pub handler: HandlerId,
    pub tenant: Tenant,
    /// Whether its tasks run for events, for a collection or for a chain node.
    pub subject: QueueSubject,
    pub counts: QueueCounts,
}

/// A handler that was ever registered.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRow {
    pub id: HandlerId,
    pub def: HandlerDef,
    pub is_defined: bool,
    pub limiter_state: LimiterAndBreakerState,
}

/// A chain and its operator settings. The settings outlive the definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainRow {
    pub chain: Chain,
    pub is_defined: bool,
    pub state: ChainState,
}

impl ChainRow {
    pub fn path(&self) -> &ChainPath {
        &self.chain.path
    }

    /// Returns the definition, if the chain is defined now.
    pub fn current_definition(&self) -> Option<&Chain> {
        Some(&self.chain).filter(|_| self.is_defined)
    }
}

/// An order and its number.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderRow {
    pub number: i64,
    pub order: Order,
}

impl OrderRow {
    /// Returns the run of the order's step at a chain node. The node is that of the task, which the order may have
    /// left.
    pub fn build_step_run(&self, node: &ChainNodeId) -> TableResult<StepRun> {
        let Order { key, tenant, value, origin, .. } = &self.order;
        Ok(StepRun {
            object_key: ObjectKey::new(key.to_string()).map_err(Fault::damaged)?,
            order_key: key.clone(),
            node: node.clone(),
            tenant: tenant.clone(),
            origin: *origin,
            value: value.clone(),
        })
    }
}

/// Progress of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleProgressRow {
    pub expression: String,
    /// The last planned time that has a row in the fire ledger, or when the schedule started.
    pub processed_up_to: Timestamp,
    /// The first planned time that a rule skipped and that is still to be caught up.
    pub next_catch_up: Option<Timestamp>,
    /// When a node last registered the schedule; updated at intervals only.
    pub last_registered_at: Timestamp,
    /// The last event that one of its planned times created.
    pub last_event: Option<EventId>,
}

/// A recorded attempt that did not succeed. A success is recorded in the task itself.
#[derive(Clone, Copy, Debug)]
pub struct AttemptRow<'a> {
    pub task: TaskSeq,
    pub number: u32,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: AttemptOutcome,
    pub error: Option<&'a str>,
}

pub fn encode_error_reason(reason: ErrorReason) -> i16 {
    match reason {
        ErrorReason::Failed => 0,
        ErrorReason::Crashed => 1,
        ErrorReason::Canceled => 2,
    }
}

fn decode_error_reason(code: Option<i16>) -> TableResult<ErrorReason> {
    match code {
        Some(0) => Ok(ErrorReason::Failed),
        Some(1) => Ok(ErrorReason::Crashed),
        Some(2) => Ok(ErrorReason::Canceled),
        _ => Err(Fault::damaged("unknown code for the reason of a task's end")),
    }
}

pub fn encode_attempt_outcome(outcome: AttemptOutcome) -> i16 {
    match outcome {
        AttemptOutcome::Succeeded => 0,
        AttemptOutcome::Failed => 1,
        AttemptOutcome::Snoozed => 2,
        AttemptOutcome::Released => 3,
        AttemptOutcome::Crashed => 4,
        AttemptOutcome::Canceled => 5,
    }
}

pub fn decode_attempt_outcome(code: i16) -> TableResult<AttemptOutcome> {
    const ALL: [AttemptOutcome; 6] = [
        AttemptOutcome::Succeeded,
        AttemptOutcome::Failed,
        AttemptOutcome::Snoozed,
        AttemptOutcome::Released,
        AttemptOutcome::Crashed,
        AttemptOutcome::Canceled,
    ];
    let outcome = usize::try_from(code).ok().and_then(|index| ALL.get(index).copied());
    outcome.ok_or_else(|| Fault::damaged("unknown code for the end of an attempt"))
}

pub fn encode_log_level(level: LogLevel) -> i16 {
    match level {
        LogLevel::Info => 0,
        LogLevel::Error => 1,
    }
}

pub fn decode_log_level(code: i16) -> LogLevel {
    if code == 1 { LogLevel::Error } else { LogLevel::Info }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_sent_events_are_decoded_as_encoded() {
        let sent_events = vec![(1, EventId::new(5).unwrap()), (70_000, EventId::MAX)];
        let object =
            ObjectRow { number: 1, last_event: EventId::ZERO, last_sent_events: sent_events.clone() };
        assert_eq!(ObjectRow::decode_last_sent_events(&object.encode_last_sent_events()), sent_events);
        assert!(ObjectRow::decode_last_sent_events(&[]).is_empty());
    }
}
