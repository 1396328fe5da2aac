//! Fires: how the planned times of a schedule are handled.
//!
//! Every planned time gets one row in the fire ledger, whichever node writes it: the row's key is the schedule and the
//! time, and the fire's action is carried out in the transaction that writes the row. So a time fires once across all
//! nodes, whatever races or crashes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::{NewCollectionRun, NewOrder};
use crate::{EventId, NewEvent, TaskId, Timestamp};

/// Selects which of the planned times that passed while no node ran, or while the schedule was paused, fire later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatchUpPolicy {
    /// Only the latest of the missed times fires.
    #[default]
    One,
    /// Each missed time fires.
    All,
    /// No missed time fires.
    None,
}

/// The policy for a planned time at which the task or order of the previous fire is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverlapPolicy {
    /// Skip this time.
    Skip,
    /// Fire anyway; the tasks wait in the queue.
    #[default]
    Queue,
    /// Cancel the unfinished task, then fire.
    Cancel,
}

/// The action of a fire: emit an event, synchronise a collection, or add an order.
#[derive(Clone, Debug, PartialEq)]
pub enum FireAction {
    /// Emit an event.
    EmitEvent(Box<NewEvent>),
    /// Synchronise a collection of a source.
    RunCollection(NewCollectionRun),
    /// Add an order.
    AddOrder(Box<NewOrder>),
}

/// Whether a planned time fires or is skipped.
#[derive(Clone, Debug, PartialEq)]
pub enum FireDecision {
    /// The planned time fires.
    Fire {
        /// What the fire creates.
        action: FireAction,
        /// How late the fire is.
        punctuality: Punctuality,
        /// What happens if the previous fire's task or order is unfinished.
        overlap: OverlapPolicy,
    },
    /// The planned time passed too long ago, and the catch-up policy drops it.
    Skip,
}

/// How late a fire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuality {
    /// Within [`ON_TIME_TOLERANCE`] of the planned time.
    OnTime,
    /// Somewhat late, but before the next planned time: the store or the machine was slow.
    Late,
    /// Caught up by the catch-up policy. Such a fire also replaces a row that was skipped because of a pause.
    CaughtUp,
}

/// A fire counts as on time up to this long after its planned time.
pub const ON_TIME_TOLERANCE: Duration = Duration::from_secs(5);
/// A planned time that passed longer ago than this was missed, and the catch-up policy decides whether it fires. A time
/// is also missed if it is no longer on time and the next planned time has passed too.
pub const MISSED_AFTER: Duration = Duration::from_secs(60);

/// How a planned time was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FireOutcome {
    /// The planned time fired on time.
    Fired,
    /// The planned time fired late, but before the next planned time.
    Late,
    /// The planned time was missed at first, and fired later.
    CaughtUp,
    /// The planned time did not fire, for this reason.
    Skipped(SkipReason),
}

/// Why a planned time did not fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// A rule paused or blocked the schedule.
    #[serde(rename = "held")]
    PausedByRule,
    /// The task or order of the previous fire was unfinished.
    Overlap,
    /// The planned time passed while no node ran, and the catch-up policy dropped it.
    Missed,
    /// The source, the collection or the chain is no longer defined.
    #[serde(rename = "gone")]
    TargetUndefined,
}

impl FireOutcome {
    /// The outcome as the API and the stores write it, without the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Late => "late",
            Self::CaughtUp => "caught_up",
            Self::Skipped(_) => "skipped",
        }
    }

    /// The reason as the API and the stores write it; `None` for a fire.
    pub fn skip_reason_name(self) -> Option<&'static str> {
        match self {
            Self::Fired | Self::Late | Self::CaughtUp => None,
            Self::Skipped(SkipReason::PausedByRule) => Some("held"),
            Self::Skipped(SkipReason::Overlap) => Some("overlap"),
            Self::Skipped(SkipReason::Missed) => Some("missed"),
            Self::Skipped(SkipReason::TargetUndefined) => Some("gone"),
        }
    }
}

impl From<Punctuality> for FireOutcome {
    fn from(punctuality: Punctuality) -> Self {
        match punctuality {
            Punctuality::OnTime => Self::Fired,
            Punctuality::Late => Self::Late,
            Punctuality::CaughtUp => Self::CaughtUp,
        }
    }
}

/// A row of the fire ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The planned time.
    pub planned_at: Timestamp,
    /// When the row was written.
    pub recorded_at: Timestamp,
    /// How the planned time was handled.
    pub outcome: FireOutcome,
    /// The event that was emitted, or that announces the added order.
    pub event_id: Option<EventId>,
    /// The task that was created; or, for an overlap, the unfinished one.
    pub task: Option<TaskId>,
}
