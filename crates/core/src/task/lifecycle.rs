//! The lifecycle of a task.
//!
//! ```text
//!            schedule          lock               succeed
//!   ┌────▶ new ─────▶ scheduled ─────▶ locked ─────────────▶ done
//!   │       ▲ ▲  ◀─────────┘             │ │ │
//!   │       │ │  unschedule              │ │ └─ fail (retries used up), expire (crashes used up) ─▶ error
//!   │       │ └── fail, snooze, release, ┘ │                                                         │
//!   │       │     expire                   └─ mark missing ─▶ missing                                │
//!   │       └──────────── adopt ──────────────────────────┘                                          │
//!   └──────────── retry (a person) ──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`transition`] alone decides how a task changes. It is a pure function of the state, a command and the time; it
//! returns the next state and the effects to carry out in the same transaction. Stores carry out effects; they never
//! decide.

use serde::{Deserialize, Serialize};

use super::{TaskSeq, TaskStatus};
use crate::{HandlerDef, LaneFailurePolicy, Timestamp};

/// The right of a node or pull worker to run a task, with the token that fences the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The node that runs the task; 0 for a pull worker.
    pub node: i64,
    /// The token of the attempt, larger than that of every earlier claim in the store.
    pub fence: i64,
    /// When the attempt was claimed.
    pub since: Timestamp,
    /// When the lease expires unless it is renewed. None: it lasts as long as its node sends heartbeats.
    pub until: Option<Timestamp>,
}

/// Why a task ended in `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorReason {
    /// The retries are used up, or the handler said not to retry.
    Failed,
    /// Too many nodes died running the task.
    Crashed,
    /// A person cancelled the task.
    Canceled,
}

/// The state of a task, with the data that only this state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    /// The task waits to be scheduled or claimed.
    New {
        /// When the task is due.
        due: Timestamp,
    },
    /// A node will run the task in one of its next free slots.
    Scheduled,
    /// A node or a pull worker runs the task.
    Locked(Lease),
    /// The task has succeeded.
    Done,
    /// The task has ended without success.
    Error {
        /// Why the task ended.
        reason: ErrorReason,
        /// The task keeps its lane halted until a person retries or cancels it.
        #[serde(rename = "halts")]
        halts_lane: bool,
    },
    /// The task's handler is not defined.
    Missing {
        /// When the task would have been due.
        due: Timestamp,
    },
}

impl TaskState {
    /// The status, without the data of the state.
    pub fn status(&self) -> TaskStatus {
        match self {
            Self::New { .. } => TaskStatus::New,
            Self::Scheduled => TaskStatus::Scheduled,
            Self::Locked(_) => TaskStatus::Locked,
            Self::Done => TaskStatus::Done,
            Self::Error { .. } => TaskStatus::Error,
            Self::Missing { .. } => TaskStatus::Missing,
        }
    }

    /// The reason if the state is `error`.
    pub fn error_reason(&self) -> Option<ErrorReason> {
        match self {
            Self::Error { reason, .. } => Some(*reason),
            Self::New { .. } | Self::Scheduled | Self::Locked(_) | Self::Done | Self::Missing { .. } => None,
        }
    }
}

/// The state of a task and the counts of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLifecycle {
    /// The current state.
    pub state: TaskState,
    /// The number of times that the task was claimed, and so the number of its latest attempt.
    pub attempt: u32,
    /// The number of failures after which the task was retried.
    pub retries: u32,
    /// The number of nodes that died running the task.
    pub crashes: u32,
    /// The task runs out of order: a person retried it after it was parked, or it was adopted or replayed.
    #[serde(rename = "late")]
    pub out_of_order: bool,
    /// The task belongs to a lane, even while it is not in the lane.
    #[serde(rename = "laned")]
    pub has_lane: bool,
    /// The task is in its lane, and the tasks behind it wait for it. A missing or ended task is not.
    #[serde(rename = "ordered")]
    pub in_lane: bool,
}

impl TaskLifecycle {
    /// A task that has not run.
    pub fn new(due: Timestamp, has_lane: bool) -> Self {
        let state = TaskState::New { due };
        Self { state, attempt: 0, retries: 0, crashes: 0, out_of_order: false, has_lane, in_lane: has_lane }
    }

    /// A new task that runs out of order: a replay.
    pub fn new_out_of_order(due: Timestamp, has_lane: bool) -> Self {
        Self { out_of_order: true, ..Self::new(due, has_lane) }
    }
}

/// A requested change of a task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCommand {
    /// The scheduler selects the task for one of the next free slots.
    Schedule,
    /// A rule pauses the scheduled task.
    Unschedule,
    /// A worker claims the task. From `new` this is scheduling and locking in one step.
    Lock(Lease),
    /// The handler has succeeded.
    Succeed {
        /// The token of the attempt.
        fence: i64,
    },
    /// The handler has failed.
    Fail {
        /// The token of the attempt.
        fence: i64,
        /// When the target asked to be tried again.
        retry_at: Option<Timestamp>,
        /// The handler said not to retry.
        permanent: bool,
    },
    /// The handler asks to run the task again at a later time.
    Snooze {
        /// The token of the attempt.
        fence: i64,
        /// When the task runs again.
        until: Timestamp,
    },
    /// The node gives the task back unfinished: a drain, a deploy.
    Release {
        /// The token of the attempt.
        fence: i64,
    },
    /// The worker that runs the task extends its lease.
    RenewLease {
        /// The token of the attempt.
        fence: i64,
        /// When the lease expires now.
        until: Timestamp,
    },
    /// The node or the worker that ran the task is dead.
    ExpireLease {
        /// The token of the attempt.
        fence: i64,
    },
    /// The task's handler is no longer defined.
    MarkMissing,
    /// The handler is defined again, and a person wants its tasks run.
    AdoptMissing,
    /// A person wants the task run again.
    Retry,
    /// A person ends the task.
    Cancel,
}

/// How an attempt of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptOutcome {
    /// The handler succeeded.
    Succeeded,
    /// The handler failed.
    Failed,
    /// The handler asked to run the task again later.
    Snoozed,
    /// A stopping node gave the task back.
    Released,
    /// The node or the worker died.
    Crashed,
    /// A person cancelled the task.
    Canceled,
}

/// A write that a transition requires of the store, in the same transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEffect {
    /// Keep a record of the attempt.
    RecordAttempt(AttemptOutcome),
    /// If the task is synchronous, let the event's next tasks run.
    OpenSyncGate,
    /// Move the task to the history.
    Archive,
    /// Make the next task of the lane its head.
    AdvanceLane,
    /// Move the task back out of the history.
    Unarchive,
    /// Append the task to its lane, if it has one.
    JoinLane,
}

/// Why a command on a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskCommandError {
    /// The task's status does not allow the command.
    #[error("the task is `{}`, which does not allow this command", .0.as_str())]
    WrongState(TaskStatus),
    /// The lease of the attempt has ended; another attempt may have the task.
    #[error("another attempt has leased the task")]
    StaleFence,
    /// There is no such task.
    #[error("no such task")]
    NoSuchTask,
    /// The task's event has expired.
    #[error("the task's event has expired, so it cannot be run again")]
    EventExpired,
    /// The task is a step of an order.
    #[error("it is a step of an order; resume the order to run it again")]
    IsOrderStep,
    /// The collection has another active task.
    #[error("another task of its source and collection is queued or running")]
    CollectionBusy,
}

type TransitionResult = Result<(TaskLifecycle, Vec<TaskEffect>), TaskCommandError>;

/// Applies a command to a task: returns its next state and the effects. Exhaustive, without catch-all arms.
pub fn transition(
    seq: TaskSeq,
    lifecycle: TaskLifecycle,
    command: TaskCommand,
    def: &HandlerDef,
    now: Timestamp,
) -> TransitionResult {
    let wrong_state = Err(TaskCommandError::WrongState(lifecycle.state.status()));
    match (lifecycle.state, command) {
        (TaskState::New { .. }, TaskCommand::Schedule) => {
            Ok((TaskLifecycle { state: TaskState::Scheduled, ..lifecycle }, vec![]))
        }
        (TaskState::Scheduled, TaskCommand::Unschedule) => {
            Ok((TaskLifecycle { state: TaskState::New { due: now }, ..lifecycle }, vec![]))
        }
        (TaskState::New { .. } | TaskState::Scheduled, TaskCommand::Lock(lease)) => Ok((
            TaskLifecycle { state: TaskState::Locked(lease), attempt: lifecycle.attempt + 1, ..lifecycle },
            vec![],
        )),
        (TaskState::New { .. } | TaskState::Scheduled, TaskCommand::MarkMissing) => {
            let due = match lifecycle.state {
                TaskState::New { due } => due,
                TaskState::Scheduled
                | TaskState::Locked(_)
                | TaskState::Done
                | TaskState::Error { .. }
                | TaskState::Missing { .. } => now,
            };
            let lifecycle = TaskLifecycle { state: TaskState::Missing { due }, in_lane: false, ..lifecycle };
            Ok((lifecycle, vec![TaskEffect::OpenSyncGate, TaskEffect::AdvanceLane]))
        }
        (TaskState::New { .. } | TaskState::Scheduled | TaskState::Missing { .. }, TaskCommand::Cancel) => {
            Ok(end_as_canceled(lifecycle, vec![]))
        }
        (TaskState::Locked(_), TaskCommand::Cancel) => {
            Ok(end_as_canceled(lifecycle, vec![TaskEffect::RecordAttempt(AttemptOutcome::Canceled)]))
        }
        (TaskState::Locked(lease), command) => {
            transition_from_locked(seq, lifecycle, lease, command, def, now)
        }

        (TaskState::Missing { due }, TaskCommand::AdoptMissing) => {
            let lifecycle = TaskLifecycle {
                state: TaskState::New { due },
                out_of_order: true,
                in_lane: lifecycle.has_lane,
                ..lifecycle
            };
            Ok((lifecycle, vec![TaskEffect::JoinLane]))
        }
        (TaskState::Error { halts_lane, .. }, TaskCommand::Retry) => {
            let retried =
                TaskLifecycle { state: TaskState::New { due: now }, retries: 0, crashes: 0, ..lifecycle };
            Ok(match halts_lane {
                true => (retried, vec![]),
                false => {
                    let again = TaskLifecycle { out_of_order: true, in_lane: lifecycle.has_lane, ..retried };
                    (again, vec![TaskEffect::Unarchive, TaskEffect::JoinLane])
                }
            })
        }
        (TaskState::Error { halts_lane: true, .. }, TaskCommand::Cancel) => {
            Ok(end_as_canceled(lifecycle, vec![]))
        }

        (
            TaskState::New { .. },
            TaskCommand::Unschedule
            | TaskCommand::Succeed { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Snooze { .. }
            | TaskCommand::Release { .. }
            | TaskCommand::RenewLease { .. }
            | TaskCommand::ExpireLease { .. }
            | TaskCommand::AdoptMissing
            | TaskCommand::Retry,
        )
        | (
            TaskState::Scheduled,
            TaskCommand::Schedule
            | TaskCommand::Succeed { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Snooze { .. }
            | TaskCommand::Release { .. }
            | TaskCommand::RenewLease { .. }
            | TaskCommand::ExpireLease { .. }
            | TaskCommand::AdoptMissing
            | TaskCommand::Retry,
        )
        | (
            TaskState::Done,
            TaskCommand::Schedule
            | TaskCommand::Unschedule
            | TaskCommand::Lock(_)
            | TaskCommand::Succeed { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Snooze { .. }
            | TaskCommand::Release { .. }
            | TaskCommand::RenewLease { .. }
            | TaskCommand::ExpireLease { .. }
            | TaskCommand::MarkMissing
            | TaskCommand::AdoptMissing
            | TaskCommand::Retry
            | TaskCommand::Cancel,
        )
        | (
            TaskState::Error { .. },
            TaskCommand::Schedule
            | TaskCommand::Unschedule
            | TaskCommand::Lock(_)
            | TaskCommand::Succeed { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Snooze { .. }
            | TaskCommand::Release { .. }
            | TaskCommand::RenewLease { .. }
            | TaskCommand::ExpireLease { .. }
            | TaskCommand::MarkMissing
            | TaskCommand::AdoptMissing,
        )
        | (TaskState::Error { halts_lane: false, .. }, TaskCommand::Cancel)
        | (
            TaskState::Missing { .. },
            TaskCommand::Schedule
            | TaskCommand::Unschedule
            | TaskCommand::Lock(_)
            | TaskCommand::Succeed { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Snooze { .. }
            | TaskCommand::Release { .. }
            | TaskCommand::RenewLease { .. }
            | TaskCommand::ExpireLease { .. }
            | TaskCommand::MarkMissing
            | TaskCommand::Retry,
        ) => wrong_state,
    }
}

/// Applies a command to a running task. Every command that ends an attempt carries the attempt's fence.
fn transition_from_locked(
    seq: TaskSeq,
    lifecycle: TaskLifecycle,
    lease: Lease,
    command: TaskCommand,
    def: &HandlerDef,
    now: Timestamp,
) -> TransitionResult {
    let fence = match command {
        TaskCommand::Succeed { fence }
        | TaskCommand::Fail { fence, .. }
        | TaskCommand::Snooze { fence, .. }
        | TaskCommand::Release { fence }
        | TaskCommand::RenewLease { fence, .. }
        | TaskCommand::ExpireLease { fence } => fence,
        TaskCommand::Schedule
        | TaskCommand::Unschedule
        | TaskCommand::Lock(_)
        | TaskCommand::MarkMissing
        | TaskCommand::AdoptMissing
        | TaskCommand::Retry
        | TaskCommand::Cancel => return Err(TaskCommandError::WrongState(TaskStatus::Locked)),
    };
    if fence != lease.fence {
        return Err(TaskCommandError::StaleFence);
    }
    let back_to_new =
        |due, lifecycle: TaskLifecycle| TaskLifecycle { state: TaskState::New { due }, ..lifecycle };
    Ok(match command {
        TaskCommand::Succeed { .. } => (
            TaskLifecycle { state: TaskState::Done, in_lane: false, ..lifecycle },
            vec![
                TaskEffect::RecordAttempt(AttemptOutcome::Succeeded),
                TaskEffect::OpenSyncGate,
                TaskEffect::Archive,
                TaskEffect::AdvanceLane,
            ],
        ),
        TaskCommand::Fail { retry_at, permanent, .. } => {
            if permanent || lifecycle.retries >= def.retry.max_retries {
                end_in_error(lifecycle, ErrorReason::Failed, AttemptOutcome::Failed, def)
            } else {
                let retries = lifecycle.retries + 1;
                let backoff = now.plus(def.retry.retry_delay(retries, seq.0 as u64));
                let due = retry_at.map_or(backoff, |requested| requested.max(now));
                let effects =
                    vec![TaskEffect::RecordAttempt(AttemptOutcome::Failed), TaskEffect::OpenSyncGate];
                (back_to_new(due, TaskLifecycle { retries, ..lifecycle }), effects)
            }
        }
        TaskCommand::Snooze { until, .. } => (
            back_to_new(until.max(now), lifecycle),
            vec![TaskEffect::RecordAttempt(AttemptOutcome::Snoozed), TaskEffect::OpenSyncGate],
        ),
        TaskCommand::Release { .. } => {
            (back_to_new(now, lifecycle), vec![TaskEffect::RecordAttempt(AttemptOutcome::Released)])
        }
        TaskCommand::RenewLease { until, .. } => {
            let lease = Lease { until: lease.until.map(|_| until), ..lease };
            (TaskLifecycle { state: TaskState::Locked(lease), ..lifecycle }, vec![])
        }
        TaskCommand::ExpireLease { .. } => {
            let crashes = lifecycle.crashes + 1;
            let lifecycle = TaskLifecycle { crashes, ..lifecycle };
            if crashes >= def.max_crashes {
                end_in_error(lifecycle, ErrorReason::Crashed, AttemptOutcome::Crashed, def)
            } else {
                (
                    back_to_new(now, lifecycle),
                    vec![TaskEffect::RecordAttempt(AttemptOutcome::Crashed), TaskEffect::OpenSyncGate],
                )
            }
        }
        TaskCommand::Schedule
        | TaskCommand::Unschedule
        | TaskCommand::Lock(_)
        | TaskCommand::MarkMissing
        | TaskCommand::AdoptMissing
        | TaskCommand::Retry
        | TaskCommand::Cancel => return Err(TaskCommandError::WrongState(TaskStatus::Locked)),
    })
}

/// Ends a task in `error`, and advances or halts its lane by the handler's policy.
fn end_in_error(
    lifecycle: TaskLifecycle,
    reason: ErrorReason,
    outcome: AttemptOutcome,
    def: &HandlerDef,
) -> (TaskLifecycle, Vec<TaskEffect>) {
    // A task that is in no lane halts no lane.
    let halts_lane = def.on_error == LaneFailurePolicy::Halt && lifecycle.in_lane;
    let mut effects = vec![TaskEffect::RecordAttempt(outcome), TaskEffect::OpenSyncGate];
    if !halts_lane {
        effects.extend([TaskEffect::Archive, TaskEffect::AdvanceLane]);
    }
    (
        TaskLifecycle { state: TaskState::Error { reason, halts_lane }, in_lane: halts_lane, ..lifecycle },
        effects,
    )
}

fn end_as_canceled(
    lifecycle: TaskLifecycle,
    mut effects: Vec<TaskEffect>,
) -> (TaskLifecycle, Vec<TaskEffect>) {
    effects.extend([TaskEffect::OpenSyncGate, TaskEffect::Archive, TaskEffect::AdvanceLane]);
    let state = TaskState::Error { reason: ErrorReason::Canceled, halts_lane: false };
    (TaskLifecycle { state, in_lane: false, ..lifecycle }, effects)
}

/// Lists each state and each command, for tests of all combinations.
pub mod all_states_and_commands {
    use super::*;

    /// The fence of the lease of the locked state, which the commands carry.
    pub const LOCKED_STATE_FENCE: i64 = 7;

    /// Each state, with and without each flag that it has.
    pub fn all_states(now: Timestamp) -> Vec<TaskState> {
        let lease = Lease { node: 1, fence: LOCKED_STATE_FENCE, since: now, until: None };
        vec![
            TaskState::New { due: now },
            TaskState::Scheduled,
            TaskState::Locked(lease),
            TaskState::Done,
            TaskState::Error { reason: ErrorReason::Failed, halts_lane: false },
            TaskState::Error { reason: ErrorReason::Failed, halts_lane: true },
            TaskState::Missing { due: now },
        ]
    }

    /// Each command, as the holder of the lease of the locked state would give it.
    pub fn all_commands(now: Timestamp) -> Vec<TaskCommand> {
        vec![
            TaskCommand::Schedule,
            TaskCommand::Unschedule,
            TaskCommand::Lock(Lease { node: 1, fence: LOCKED_STATE_FENCE + 1, since: now, until: None }),
            TaskCommand::Succeed { fence: LOCKED_STATE_FENCE },
            TaskCommand::Fail { fence: LOCKED_STATE_FENCE, retry_at: None, permanent: false },
            TaskCommand::Fail { fence: LOCKED_STATE_FENCE, retry_at: None, permanent: true },
            TaskCommand::Snooze { fence: LOCKED_STATE_FENCE, until: now },
            TaskCommand::Release { fence: LOCKED_STATE_FENCE },
            TaskCommand::RenewLease { fence: LOCKED_STATE_FENCE, until: now },
            TaskCommand::ExpireLease { fence: LOCKED_STATE_FENCE },
            TaskCommand::MarkMissing,
            TaskCommand::AdoptMissing,
            TaskCommand::Retry,
            TaskCommand::Cancel,
        ]
    }
}

#[cfg(test)]
mod tests;
