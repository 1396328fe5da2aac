//! What becomes of a schedule's planned times.
//!
//! Every planned time gets one row in the fire ledger, whoever writes it: the row's key is the schedule and the
//! time, and what the firing makes is made in the transaction that writes the row. So a time fires once across
//! all nodes, whatever races or dies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::{NewOrder, NewRun};
use crate::{EventId, NewEvent, TaskId, Timestamp};

/// What to do about planned times that passed while nobody was there, or while the schedule was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatchUp {
    /// The latest of them fires.
    #[default]
    One,
    All,
    None,
}

/// What to do at a planned time while what the last one began has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// Let it pass.
    Skip,
    /// Fire all the same; the tasks stand in line as any others.
    #[default]
    Queue,
    /// End what has not ended, then fire.
    Cancel,
}

/// What a firing makes.
#[derive(Clone, Debug, PartialEq)]
pub enum Makes {
    Event(Box<NewEvent>),
    Run(NewRun),
    Order(Box<NewOrder>),
}

/// How a planned time is to be settled.
#[derive(Clone, Debug, PartialEq)]
pub enum Settle {
    Fire {
        makes: Makes,
        when: Punctual,
        overlap: Overlap,
    },
    /// It passed too long ago, and the policy lets it go.
    Skip,
}

/// How a firing relates to its planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctual {
    OnTime,
    /// Somewhat after it, and no later time has come: the store or the machine was slow.
    Late,
    /// Made up for by the catch-up policy. It also replaces a time that was skipped because the schedule was held.
    CaughtUp,
}

/// A firing up to so long after its time is on time.
pub const ON_TIME: Duration = Duration::from_secs(5);
/// A time that passed longer ago was missed, and the catch-up policy decides; so was one that is no longer on time and
/// has been followed by another.
pub const MISSED: Duration = Duration::from_secs(60);

/// What became of a planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Fired,
    Late,
    CaughtUp,
    Skipped(Skipped),
}

/// Why a planned time made nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// A rule held the schedule.
    Held,
    /// What the last firing began had not ended.
    Overlap,
    /// It passed while nobody was there, and the catch-up policy let it go.
    Missed,
    /// The source, the collection or the chain is no longer defined.
    Gone,
}

impl Outcome {
    /// One word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Late => "late",
            Self::CaughtUp => "caught_up",
            Self::Skipped(_) => "skipped",
        }
    }

    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Fired | Self::Late | Self::CaughtUp => None,
            Self::Skipped(Skipped::Held) => Some("held"),
            Self::Skipped(Skipped::Overlap) => Some("overlap"),
            Self::Skipped(Skipped::Missed) => Some("missed"),
            Self::Skipped(Skipped::Gone) => Some("gone"),
        }
    }
}

impl From<Punctual> for Outcome {
    fn from(when: Punctual) -> Self {
        match when {
            Punctual::OnTime => Self::Fired,
            Punctual::Late => Self::Late,
            Punctual::CaughtUp => Self::CaughtUp,
        }
    }
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    pub planned: Timestamp,
    /// When it was settled.
    pub at: Timestamp,
    pub outcome: Outcome,
    /// The event that was emitted, or that tells of the order that was added.
    pub event: Option<EventId>,
    /// The task that was made; or, for an overlap, the one that was in the way.
    pub task: Option<TaskId>,
}
