//! Schedules and their ledgers on the wire.

use pointsman_core::fire::{CatchUp, Fire, Overlap};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// Schedules, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub schedules: Vec<ScheduleBody>,
    /// Pass it as `cursor` to read on; null at the end.
    pub next: Option<String>,
}

/// One schedule, stamped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    #[serde(flatten)]
    pub schedule: ScheduleBody,
}

/// A schedule: when it fires, what it makes and what holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleBody {
    /// Its own name, or `source/collection` for that of a collection.
    pub name: String,
    /// False when only its rules are left.
    pub defined: bool,
    pub expression: String,
    /// The expression in words.
    pub words: String,
    pub timezone: String,
    /// Null when it is not defined.
    pub makes: Option<MakesBody>,
    /// `one`, `all` or `none`; null when it is not defined.
    #[schema(value_type = Option<String>)]
    pub catch_up: Option<CatchUp>,
    pub catch_up_within_seconds: f64,
    /// `skip`, `queue` or `cancel`; null when it is not defined.
    #[schema(value_type = Option<String>)]
    pub overlap: Option<Overlap>,
    pub jitter_seconds: f64,
    /// What its author may not expect of it, each in a sentence.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The next planned times.
    pub next: Vec<String>,
    /// The last planned time that was settled, and what became of it.
    pub last: Option<FireBody>,
    /// A rule holds it: its times pass without firing.
    pub held: bool,
    pub rules: Vec<RuleBody>,
}

/// What a schedule makes: an event, a run of a source's collection, or an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MakesBody {
    Event {
        #[serde(rename = "type")]
        kind: String,
        key: Option<String>,
        tenant: String,
    },
    Run {
        source: String,
        collection: String,
    },
    Order {
        chain: String,
        /// Null: each gets a fresh one.
        id: Option<String>,
        /// Null: the chain's first.
        node: Option<String>,
        tenant: String,
    },
}

/// What became of a planned time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FireBody {
    pub planned_at: String,
    pub settled_at: String,
    /// `fired`, `late`, `caught_up` or `skipped`.
    pub outcome: String,
    /// Why it was skipped: `held`, `overlap`, `missed` or `gone`; null if it was not.
    pub reason: Option<String>,
    /// The event that was emitted, or that tells of the order that was added.
    pub event_id: Option<u64>,
    /// The task that was made; for an overlap, the one that was in the way.
    pub task_id: Option<String>,
}

impl From<&Fire> for FireBody {
    fn from(fire: &Fire) -> Self {
        Self {
            planned_at: fire.planned.to_string(),
            settled_at: fire.at.to_string(),
            outcome: fire.outcome.word().into(),
            reason: fire.outcome.reason().map(Into::into),
            event_id: fire.event.map(|id| id.get()),
            task_id: fire.task.as_ref().map(ToString::to_string),
        }
    }
}

/// Rows of a ledger, the latest planned time first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FireList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub fires: Vec<FireBody>,
    /// Pass it as `before` to read on; null at the end.
    pub next: Option<String>,
}

/// What running a schedule at once has made: an event, a source's task, or an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RanNow {
    #[serde(rename = "eventId", default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The order's path; `eventId` is the event that tells of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// False if the task was there before.
    pub created: bool,
}
