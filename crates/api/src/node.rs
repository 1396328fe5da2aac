//! Nodes, who changed what, and who one is, on the wire.

use pointsman_core::store::{Deed, NodeView};
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
