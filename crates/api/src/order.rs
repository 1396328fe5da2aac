//! Orders on the wire.

use pointsman_core::store::OrderView;
use pointsman_core::{Json, Priority, Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::task::time;

/// Orders, by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub orders: Vec<OrderBody>,
    /// Pass it as `cursor` to read on; null at the end.
    pub next: Option<String>,
}

/// An order on its way. Times are RFC 3339 in UTC with six fraction digits, or empty where there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderBody {
    /// The newest event id when this was read. In a list, the list has it.
    #[serde(rename = "eventId", default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<u64>,
    /// Its whole name: `/chain/path,id`.
    pub path: String,
    pub chain: String,
    pub id: String,
    /// Where it stands.
    pub node: String,
    #[schema(value_type = serde_json::Value)]
    pub value: Json,
    pub tenant: String,
    pub priority: u16,
    /// It does not begin before this.
    pub planned_at: String,
    pub created_at: String,
    /// When its first step began.
    pub started_at: String,
    pub suspended: bool,
    /// The task of the step it stands before or in; null if it has none.
    pub task: Option<OrderTaskBody>,
    /// Its step failed and is tried again then.
    pub setback_until: String,
    /// Its chain has no such node: it waits until the chain has it again, or somebody moves it.
    pub stranded: bool,
    /// What holds its waiting step back: its chain or its node is stopped, or a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// What suspended it, where a step of its own did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedBody>,
}

/// The step that suspended an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedBody {
    pub task: String,
    pub error: String,
}

/// The task of an order's step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderTaskBody {
    pub id: String,
    /// `SCHEDULED` or `RUNNING`.
    pub status: String,
    /// It is not begun before this.
    pub due: String,
}

impl From<&OrderView> for OrderBody {
    fn from(view: &OrderView) -> Self {
        let order = &view.order;
        let task = view.task.as_ref().map(|(id, status, due)| OrderTaskBody {
            id: id.to_string(),
            status: status.public(None).into(),
            due: time(*due),
        });
        Self {
            event_id: None,
            path: order.key.to_string(),
            chain: order.key.chain.to_string(),
            id: order.key.id.to_string(),
            node: order.node.to_string(),
            value: order.value.clone(),
            tenant: order.tenant.to_string(),
            priority: order.priority.get(),
            planned_at: time(order.planned),
            created_at: time(Some(order.created)),
            started_at: time(order.started),
            suspended: order.suspended,
            task,
            setback_until: time(view.setback),
            stranded: view.stranded,
            held: view.held.clone(),
            failed: view
                .failed
                .as_ref()
                .map(|(task, error)| FailedBody { task: task.to_string(), error: error.clone() }),
        }
    }
}

/// An order to be added. What is not given is not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct NewOrderBody {
    /// `/chain/path,id`, or `/chain/path` for one with a fresh number as its id.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Json>,
    /// Where it begins; at the chain's first node if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it begins: RFC 3339. At once if neither is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub at: Option<Timestamp>,
    /// How long it waits, in one of the forms of an HTTP duration. Excludes `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// 1 to 9000, 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>)]
    pub priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tenant: Option<Tenant>,
}

/// The orders that were added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedOrders {
    /// The event that tells of the last one.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    /// One for each, in the order they were sent.
    pub orders: Vec<AddedOrder>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedOrder {
    pub path: String,
    pub chain: String,
    pub id: String,
    /// The event that tells of it.
    #[serde(rename = "eventId")]
    pub event_id: u64,
}

/// What an order is to be given in the place of what it has. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ChangeOrderBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Json>,
    /// Where it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When its step begins: RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub at: Option<Timestamp>,
}
