//! JSON bodies about the nodes of the cluster.

use pointsman_core::store::{ClockReport, ClockStep, NodeView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The nodes that are alive, and those that left or died last, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The nodes, newest first.
    pub nodes: Vec<NodeBody>,
}

/// A process that runs tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeBody {
    /// The node's id; every start of a process gets a new one.
    pub id: i64,
    /// The node's name.
    pub name: String,
    /// Whether the node has neither left nor been declared dead.
    pub alive: bool,
    /// When the node joined the cluster.
    pub joined_at: String,
    /// The time of its last heartbeat.
    pub last_heartbeat_at: String,
    /// The handlers it can run.
    pub handlers: Vec<String>,
    /// The maximal number of tasks it runs at a time.
    pub slots: u64,
    /// The number of tasks it runs now.
    #[serde(rename = "running")]
    pub running_task_count: u64,
    /// The node's clock.
    #[serde(default)]
    pub clock: NodeClockBody,
}

/// The clock of a node, as the node last reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeClockBody {
    /// Milliseconds by which the clock of the node's machine is ahead of the time that the node uses, which is that of the
    /// store's server if it has one; negative if it is behind.
    pub offset_ms: i64,
    /// Whether the node's clock is off by more than 30 seconds: the node claims, fires, prunes and accepts nothing
    /// until it is right again.
    pub out_of_service: bool,
    /// The last time the machine's clock was set while the node ran; null if it was not.
    pub last_step: Option<ClockStepBody>,
}

/// A change of a machine's clock while the node ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStepBody {
    /// When the step was noticed.
    pub at: String,
    /// Milliseconds by which it was set forward; negative if it was set back.
    pub by_ms: i64,
}

impl From<&ClockReport> for NodeClockBody {
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
            alive: !node.has_left_or_died,
            joined_at: node.joined_at.to_string(),
            last_heartbeat_at: node.last_heartbeat_at.to_string(),
            handlers: node.capabilities.handlers.iter().map(ToString::to_string).collect(),
            slots: node.capabilities.slots as u64,
            running_task_count: node.running_task_count,
            clock: NodeClockBody::from(&node.capabilities.clock),
        }
    }
}
