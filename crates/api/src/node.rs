//! Nodes, who changed what, and who one is, on the wire.

use pointsman_core::store::{ClockReport, ClockStep, Deed, NodeView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The nodes that live, and those that were heard of last, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub nodes: Vec<NodeBody>,
}

/// A process that runs tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeBody {
    pub id: i64,
    pub name: String,
    /// It has not left and was not given up.
    pub alive: bool,
    pub joined_at: String,
    pub heard_at: String,
    /// What it can run.
    pub handlers: Vec<String>,
    /// How many tasks at a time.
    pub slots: u64,
    /// How many it runs now.
    pub running: u64,
    #[serde(default)]
    pub clock: ClockBody,
}

/// The clock of a node, as the node last reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockBody {
    /// By how many milliseconds the clock of the node's machine is ahead of the time that the node uses, which is that
    /// of the store's server where there is one; negative if it is behind.
    pub offset_ms: i64,
    /// The clock is off by more than 30 seconds: the node claims, fires, prunes and accepts nothing until it agrees again.
    pub out_of_service: bool,
    /// The last time the machine's clock was set while the node ran; null if it was not.
    pub last_step: Option<ClockStepBody>,
}

/// A clock was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStepBody {
    pub at: String,
    /// By how many milliseconds it was set forward; negative if it was set back.
    pub by_ms: i64,
}

impl From<&ClockReport> for ClockBody {
    fn from(report: &ClockReport) -> Self {
        let step = |step: ClockStep| ClockStepBody { at: step.at.to_string(), by_ms: step.by_ms };
        Self {
            offset_ms: report.offset_ms,
            out_of_service: report.out_of_service,
            last_step: report.last_step.map(step),
        }
    }
}

impl From<&NodeView> for NodeBody {
    fn from(node: &NodeView) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            alive: !node.gone,
            joined_at: node.joined.to_string(),
            heard_at: node.heard.to_string(),
            handlers: node.abilities.handlers.iter().map(ToString::to_string).collect(),
            slots: node.abilities.slots as u64,
            running: node.running,
            clock: ClockBody::from(&node.abilities.clock),
        }
    }
}

/// Whose token a request carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeBody {
    /// The name of the token.
    pub name: String,
    /// `viewer`, `producer`, `worker`, `operator` or `admin`.
    pub role: String,
    /// The only tenant that it may name; null if it is bound to none.
    pub tenant: Option<String>,
}

/// What people did, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub deeds: Vec<DeedBody>,
    /// Pass it as `before` to read on; null at the end.
    pub next: Option<i64>,
}

/// Somebody changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeedBody {
    pub number: i64,
    pub time: String,
    /// Whose token it was.
    pub by: String,
    /// `pause`, `unpause`, `block`, `unblock`, `retry`, `cancel`, `redrive`, `stop_redrive`, `adopt` or `run`.
    pub action: String,
    /// What it was done to.
    pub what: String,
    /// Why, or how much.
    pub detail: String,
}

impl From<&(i64, Deed)> for DeedBody {
    fn from((number, deed): &(i64, Deed)) -> Self {
        Self {
            number: *number,
            time: deed.at.to_string(),
            by: deed.by.clone(),
            action: deed.action.clone(),
            what: deed.what.clone(),
            detail: deed.detail.clone(),
        }
    }
}
