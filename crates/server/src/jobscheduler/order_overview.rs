//! The state of orders as a snapshot.
//!
//! All orders are read in one transaction, so that the snapshot is consistent at its `eventId` and a client that reads
//! the events after it misses nothing. The JSON is encoded in chunks.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::header;
use pointsman_core::store::OrderView;
use pointsman_core::{EventId, Tenant, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::order_query::OrderSelection;
use crate::app_state::App;
use crate::auth::Caller;
use crate::limits::{MAX_UNCOUNTED_RESPONSE_BYTES, keep_permit_until_stream_end};
use crate::orders::no_such_order_message;
use crate::problem::Problem;

/// Intended size of a chunk of the response's JSON.
const TARGET_CHUNK_BYTES: usize = 64 << 10;

/// Orders as a snapshot.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Orders {
    orders: Vec<OrderOverview>,
    /// The snapshot is consistent at this id: read the events after it.
    event_id: u64,
}

/// The state of one order.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderOverview {
    #[serde(rename = "TYPE")]
    type_tag: &'static str,
    /// Its chain and its id: `/folder/chain,id`.
    path: String,
    /// The node it is at.
    node_id: String,
    order_state: OrderState,
    /// It starts no step until it is resumed. A running step finishes.
    suspended: bool,
    /// The task of its current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    /// It does not start before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_at: Option<String>,
    /// Start of its first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// Its step failed and is retried at this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    setback_until: Option<String>,
}

/// The state of an order: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum OrderState {
    /// A step is running.
    InProcess,
    /// The order is suspended, and continues when it is resumed.
    Suspended,
    /// The order's node or chain is no longer defined. The order waits until the node is defined again.
    Stranded,
    /// A step of the order failed and is retried later.
    Setback,
    /// The order has started, and the task of its next step waits to run.
    InTask,
    /// The order has not started, and its planned time is in the future.
    Planned,
    /// The order has not started, and its planned time has passed.
    Due,
    /// The order has not started and has no planned time.
    NotPlanned,
}

impl OrderState {
    fn from_view(view: &OrderView, now: Timestamp) -> Self {
        match view.order.planned_at {
            _ if view.order.step_running => Self::InProcess,
            _ if view.order.suspended => Self::Suspended,
            _ if view.is_at_removed_node => Self::Stranded,
            _ if view.retry_at.is_some() => Self::Setback,
            _ if view.order.started_at.is_some() => Self::InTask,
            Some(planned) if planned > now => Self::Planned,
            Some(_) => Self::Due,
            None => Self::NotPlanned,
        }
    }
}

impl OrderOverview {
    fn from_view(view: &OrderView, now: Timestamp) -> Self {
        let order = &view.order;
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            type_tag: "OrderOverview",
            path: order.key.to_string(),
            node_id: order.node.to_string(),
            order_state: OrderState::from_view(view, now),
            suspended: order.suspended,
            task_id: view.task.as_ref().map(|(id, _, _)| id.to_string()),
            planned_at: text(order.planned_at),
            started_at: text(order.started_at),
            setback_until: text(view.retry_at),
        }
    }
}

/// Responds with the state of the selected orders, or of a single order if the path names one. Without a tenant, a
/// single order is `default`'s, and several are those of all tenants.
pub(super) async fn respond_with_overview(
    app: &App,
    caller: &Caller,
    tenant: Option<Tenant>,
    selection: &OrderSelection,
) -> Result<Response, Problem> {
    let Some(key) = &selection.single_order_key else {
        let page =
            app.store().list_all_orders_without_values(&selection.path_filter, tenant.as_ref()).await?;
        return stream_orders(app, caller, page.orders, page.journal_range.newest_event_id);
    };
    let tenant = tenant.unwrap_or_default();
    let found = app.store().read_order(&tenant, key).await?;
    let (view, journal_range) =
        found.ok_or_else(|| Problem::not_found(no_such_order_message(&tenant, key)))?;
    let order = OrderOverview::from_view(&view, app.now());
    Ok(Json(SnapshotBody { value: order, event_id: journal_range.newest_event_id.get() }).into_response())
}

/// A value with the event id at which it is consistent, as one JSON object.
#[derive(Serialize)]
pub(super) struct SnapshotBody<T> {
    #[serde(flatten)]
    pub(super) value: T,
    #[serde(rename = "eventId")]
    pub(super) event_id: u64,
}

/// Streams orders as one JSON document. The whole document is encoded before anything is sent, so that the memory of
/// the orders is freed.
fn stream_orders(
    app: &App,
    caller: &Caller,
    orders: Vec<OrderView>,
    newest_event_id: EventId,
) -> Result<Response, Problem> {
    let chunks = encode_order_chunks(orders, newest_event_id, app.now());
    let bytes: usize = chunks.iter().map(Bytes::len).sum();
    let memory = (bytes > MAX_UNCOUNTED_RESPONSE_BYTES)
        .then(|| app.response_memory_budget.reserve(caller, bytes))
        .transpose()?;
    let text = stream::iter(chunks.into_iter().map(Ok::<_, std::convert::Infallible>));
    let body = Body::from_stream(keep_permit_until_stream_end(text, memory));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn encode_order_chunks(orders: Vec<OrderView>, newest_event_id: EventId, now: Timestamp) -> Vec<Bytes> {
    OrderChunks { orders: orders.into_iter(), newest_event_id, has_started: false, now }.collect()
}

/// The orders that are still to be encoded.
struct OrderChunks {
    orders: std::vec::IntoIter<OrderView>,
    newest_event_id: EventId,
    has_started: bool,
    now: Timestamp,
}

impl Iterator for OrderChunks {
    type Item = Bytes;
    fn next(&mut self) -> Option<Bytes> {
        let mut text = String::new();
        if !self.has_started {
            text.push_str("{\"orders\":[");
        } else if self.orders.len() == 0 {
            return None;
        }
        while text.len() < TARGET_CHUNK_BYTES
            && let Some(view) = self.orders.next()
        {
            if std::mem::replace(&mut self.has_started, true) {
                text.push(',');
            }
            let order = OrderOverview::from_view(&view, self.now);
            text.push_str(&serde_json::to_string(&order).unwrap_or_default());
        }
        self.has_started = true;
        if self.orders.len() == 0 {
            text.push_str(&format!("],\"eventId\":{}}}", self.newest_event_id));
        }
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::order::Order;
    use pointsman_core::{Json, Priority};
    use serde_json::Value;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn order_view(key: &str) -> OrderView {
        let order = Order {
            key: key.parse().unwrap(),
            tenant: Tenant::default(),
            node: "a".parse().unwrap(),
            value: Json::null(),
            priority: Priority::default(),
            planned_at: None,
            created_at: NOW,
            origin: None,
            started_at: None,
            suspended: false,
            task_seq: None,
            step_running: false,
            step_succeeded_at_removed_node: false,
            suspended_by_task_seq: None,
            took_on_error: false,
        };
        OrderView {
            order,
            task: None,
            retry_at: None,
            is_at_removed_node: false,
            step_blocked_because: None,
            suspended_by_failed_task: None,
        }
    }

    fn encode_orders(count: usize) -> Value {
        let orders = (0..count).map(|n| order_view(&format!("/a/b,{n}"))).collect();
        serde_json::from_slice(&encode_order_chunks(orders, EventId::new(7).unwrap(), NOW).concat()).unwrap()
    }

    #[test]
    fn any_number_of_orders_is_encoded_as_one_document() {
        assert_eq!(encode_orders(0), serde_json::json!({"orders": [], "eventId": 7}));
        for count in [1, 2, 2_000] {
            let all = encode_orders(count);
            let orders = all["orders"].as_array().unwrap();
            let paths: std::collections::BTreeSet<_> = orders.iter().map(|o| o["path"].as_str()).collect();
            assert_eq!((orders.len(), paths.len(), &all["eventId"]), (count, count, &7.into()));
        }
    }

    #[test]
    fn the_first_matching_order_state_is_used() {
        let later = NOW.plus(std::time::Duration::from_secs(1));
        let state = |change: fn(&mut OrderView, Timestamp)| {
            let mut view = order_view("/a/b,1");
            change(&mut view, later);
            OrderState::from_view(&view, NOW)
        };
        assert_eq!(state(|_, _| {}), OrderState::NotPlanned);
        assert_eq!(state(|view, later| view.order.planned_at = Some(later)), OrderState::Planned);
        assert_eq!(state(|view, _| view.order.planned_at = Some(NOW)), OrderState::Due);
        assert_eq!(state(|view, _| view.order.started_at = Some(NOW)), OrderState::InTask);
        assert_eq!(state(|view, later| view.retry_at = Some(later)), OrderState::Setback);
        assert_eq!(state(|view, _| view.is_at_removed_node = true), OrderState::Stranded);
        assert_eq!(state(|view, _| view.order.suspended = true), OrderState::Suspended);
        let both = state(|view, _| {
            view.order.suspended = true;
            view.order.step_running = true;
        });
        assert_eq!(both, OrderState::InProcess);
    }
}
