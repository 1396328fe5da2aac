//! JSON bodies about schedules and their fires.

use pointsman_core::fire::{CatchUpPolicy, Fire, OverlapPolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// Schedules, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The schedules, by name.
    pub schedules: Vec<ScheduleBody>,
    /// Pass it as `cursor` to read the next page; null at the end.
    pub next: Option<String>,
}

/// One schedule, and the newest event id when it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The schedule.
    #[serde(flatten)]
    pub schedule: ScheduleBody,
}

/// A schedule: when it fires, what it creates, and its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleBody {
    /// The schedule's own name, or `source/collection` for the schedule of a collection.
    pub name: String,
    /// False if it is no longer configured and only its rules are left.
    pub defined: bool,
    /// The cron expression.
    pub expression: String,
    /// The expression in plain English.
    pub description: String,
    /// The time zone in which the expression is evaluated.
    pub timezone: String,
    /// The event, run or order that it creates when it fires; null if it is not defined.
    pub action: Option<ScheduleActionBody>,
    /// `one`, `all` or `none`; null if it is not defined.
    #[schema(value_type = Option<String>)]
    pub catch_up: Option<CatchUpPolicy>,
    /// How old a missed time may be to be caught up.
    pub catch_up_within_seconds: f64,
    /// `skip`, `queue` or `cancel`; null if it is not defined.
    #[schema(value_type = Option<String>)]
    pub overlap: Option<OverlapPolicy>,
    /// The maximum delay of a fire.
    pub jitter_seconds: f64,
    /// Warnings about surprising effects of the expression, each in a sentence.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The next planned times.
    #[serde(rename = "next")]
    pub next_planned_times: Vec<String>,
    /// The latest planned time that has passed, and its outcome.
    #[serde(rename = "last")]
    pub last_fire: Option<FireBody>,
    /// Whether a rule pauses or blocks the schedule: its planned times pass without firing.
    #[serde(rename = "held")]
    pub is_paused_or_blocked: bool,
    /// The rules that pause or block the schedule.
    pub rules: Vec<RuleBody>,
}

/// The action of a schedule when it fires: it emits an event, runs a source's collection, or adds an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleActionBody {
    /// The schedule emits an event.
    #[serde(rename = "event")]
    EmitEvent {
        /// The event's type.
        #[serde(rename = "type")]
        event_type: String,
        /// The object.
        key: Option<String>,
        /// The event's tenant.
        tenant: String,
    },
    /// The schedule runs a source's collection.
    #[serde(rename = "run")]
    RunCollection {
        /// The source.
        source: String,
        /// The collection.
        collection: String,
    },
    /// The schedule adds an order.
    #[serde(rename = "order")]
    AddOrder {
        /// The chain's path.
        chain: String,
        /// The order's id; null if an id is generated for each order.
        id: Option<String>,
        /// The node at which the order starts; null for the chain's first node.
        node: Option<String>,
        /// The order's tenant.
        tenant: String,
    },
}

/// The outcome of a planned time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FireBody {
    /// The planned time.
    pub planned_at: String,
    /// When the outcome was decided.
    #[serde(rename = "decided_at")]
    pub recorded_at: String,
    /// `fired`, `late`, `caught_up` or `skipped`.
    pub outcome: String,
    /// Why it was skipped: `held`, `overlap`, `missed` or `gone`; null if it fired.
    #[serde(rename = "reason")]
    pub skip_reason: Option<String>,
    /// The event that was emitted, or that records the order that was added.
    pub event_id: Option<u64>,
    /// The task that was created; for an overlap, the earlier task that still ran.
    pub task_id: Option<String>,
}

impl From<&Fire> for FireBody {
    fn from(fire: &Fire) -> Self {
        Self {
            planned_at: fire.planned_at.to_string(),
            recorded_at: fire.recorded_at.to_string(),
            outcome: fire.outcome.as_str().into(),
            skip_reason: fire.outcome.skip_reason_name().map(Into::into),
            event_id: fire.event_id.map(|id| id.get()),
            task_id: fire.task.as_ref().map(ToString::to_string),
        }
    }
}

/// The outcomes of planned times, the latest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FireList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The outcomes, the latest planned time first.
    pub fires: Vec<FireBody>,
    /// Pass it as `before` to read the next page; null at the end.
    pub next: Option<String>,
}

/// The event, source's task or order that a schedule has created when it was run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunScheduleResponse {
    /// The event that was emitted, or that records the order.
    #[serde(rename = "eventId", default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<u64>,
    /// The task of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The order's path; `eventId` is the event that records it.
    #[serde(rename = "order", default, skip_serializing_if = "Option::is_none")]
    pub order_path: Option<String>,
    /// False if the task existed before.
    pub created: bool,
}
