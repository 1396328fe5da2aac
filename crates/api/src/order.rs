//! JSON bodies about orders.

use pointsman_core::store::OrderView;
use pointsman_core::{Json, Priority, Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::task::format_optional_time;

/// Orders, by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The orders, by path.
    pub orders: Vec<OrderBody>,
    /// Pass it as `cursor` to read the next page; null at the end.
    pub next: Option<String>,
}

/// An unfinished order. Times are RFC 3339 in UTC with six fraction digits, or empty if there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderBody {
    /// The newest event id when this was read. Absent within a list, which has its own.
    #[serde(rename = "eventId", default, skip_serializing_if = "Option::is_none")]
    pub newest_event_id: Option<u64>,
    /// The order's full name: `/chain/path,id`.
    pub path: String,
    /// The chain's path.
    pub chain: String,
    /// The order's id within its chain and tenant.
    pub id: String,
    /// The node it is at.
    pub node: String,
    /// The value that the next step gets.
    #[schema(value_type = serde_json::Value)]
    pub value: Json,
    /// The order's tenant.
    pub tenant: String,
    /// The priority of its tasks.
    pub priority: u16,
    /// The order's first step does not start before this time.
    pub planned_at: String,
    /// When the order was added.
    pub created_at: String,
    /// When its first step started.
    pub started_at: String,
    /// Whether no step starts until the order is resumed.
    pub suspended: bool,
    /// The task of its waiting or running step; null if it has none.
    pub task: Option<OrderTaskBody>,
    /// When its failed step is retried; empty if it is not waiting for a retry.
    pub setback_until: String,
    /// Whether the chain no longer has the order's node: the order waits until the chain has it again, or somebody
    /// moves the order.
    #[serde(rename = "stranded")]
    pub is_at_removed_node: bool,
    /// Why its waiting step may not start: its chain or node is stopped, or a rule pauses or blocks it.
    #[serde(rename = "blocked_by", default, skip_serializing_if = "Option::is_none")]
    pub step_blocked_because: Option<String>,
    /// The failed step that suspended it, if one did.
    #[serde(rename = "failed", default, skip_serializing_if = "Option::is_none")]
    pub failed_step: Option<FailedStepBody>,
}

/// The failed step that suspended an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedStepBody {
    /// The task of the step.
    pub task: String,
    /// The task's error.
    pub error: String,
}

/// The task of an order's step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderTaskBody {
    /// The task's id.
    pub id: String,
    /// `SCHEDULED` or `RUNNING`.
    pub status: String,
    /// The task does not start before this time.
    pub due: String,
}

impl From<&OrderView> for OrderBody {
    fn from(view: &OrderView) -> Self {
        let order = &view.order;
        let task = view.task.as_ref().map(|(id, status, due)| OrderTaskBody {
            id: id.to_string(),
            status: status.public_name(None).into(),
            due: format_optional_time(*due),
        });
        Self {
            newest_event_id: None,
            path: order.key.to_string(),
            chain: order.key.chain.to_string(),
            id: order.key.id.to_string(),
            node: order.node.to_string(),
            value: order.value.clone(),
            tenant: order.tenant.to_string(),
            priority: order.priority.get(),
            planned_at: format_optional_time(order.planned_at),
            created_at: format_optional_time(Some(order.created_at)),
            started_at: format_optional_time(order.started_at),
            suspended: order.suspended,
            task,
            setback_until: format_optional_time(view.retry_at),
            is_at_removed_node: view.is_at_removed_node,
            step_blocked_because: view.step_blocked_because.clone(),
            failed_step: view
                .suspended_by_failed_task
                .as_ref()
                .map(|(task, error)| FailedStepBody { task: task.to_string(), error: error.clone() }),
        }
    }
}

/// An order to add.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct NewOrderBody {
    /// `/chain/path,id`, or `/chain/path` for a generated id.
    pub path: String,
    /// The value that the first step gets; null if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Json>,
    /// The node it starts at; the chain's first if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it starts: RFC 3339. At once if neither this nor `delay` is given.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub planned_at: Option<Timestamp>,
    /// How long it waits before it starts, as an HTTP duration. Excludes `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// The priority of its tasks, 1 to 9000; 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>)]
    pub priority: Option<Priority>,
    /// The tenant; that of the token if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tenant: Option<Tenant>,
}

/// The orders that were added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddOrdersResponse {
    /// The id of the event that records the last order.
    #[serde(rename = "eventId")]
    pub last_event_id: u64,
    /// The added orders, in the order in which they were sent.
    pub orders: Vec<AddedOrderBody>,
}

/// An order that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedOrderBody {
    /// The order's path: the chain's, a comma and the id.
    pub path: String,
    /// The chain's path.
    pub chain: String,
    /// The order's id.
    pub id: String,
    /// The id of the event that records it.
    #[serde(rename = "eventId")]
    pub event_id: u64,
}

/// A change of an order. Members that are left out stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ChangeOrderBody {
    /// The new value; unchanged if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Json>,
    /// The node it moves to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When its step starts: RFC 3339.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub planned_at: Option<Timestamp>,
}
