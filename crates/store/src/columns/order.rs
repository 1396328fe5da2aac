//! Orders, and the outcomes of ended ones.

use std::borrow::Cow;

use pointsman_core::chain::ChainNodeId;
use pointsman_core::order::{EndedOrder, Order, OrderOrigin};
use pointsman_core::{EventId, Json, Priority, TaskSeq, Tenant, Timestamp};

use super::columns;
use crate::error::{Fault, TableResult};
use crate::row::OrderRow;

columns! {
    /// The columns of an unfinished order.
    OrderColumns<'a> key(n) {
        n: i64,
        /// `/chain/path,id`.
        key: Cow<'a, str>,
        chain: Cow<'a, str>,
        node: Cow<'a, str>,
        tenant: Cow<'a, str>,
        value: Cow<'a, str>,
        priority: i64,
        planned: Option<i64>,
        created: i64,
        started: Option<i64>,
        suspended: bool,
        task: Option<i64>,
        /// The event that the order was created for.
        origin: Option<i64>,
        /// The length of the chain of causes before that event.
        depth: u16,
        step_succeeded: bool,
        suspended_by_task: Option<i64>,
        took_on_error: bool,
    }
}

impl<'a> OrderColumns<'a> {
    pub fn from_order(number: i64, order: &'a Order) -> Self {
        Self {
            n: number,
            key: order.key.to_string().into(),
            chain: order.key.chain.as_str().into(),
            node: order.node.as_str().into(),
            tenant: order.tenant.as_str().into(),
            value: order.value.as_str().into(),
            priority: order.priority.into(),
            planned: order.planned_at.map(Timestamp::micros),
            created: order.created_at.micros(),
            started: order.started_at.map(Timestamp::micros),
            suspended: order.suspended,
            task: order.task_seq.map(|task| task.0),
            origin: order.origin.map(|origin| origin.event_id.as_i64()),
            depth: order.origin.map_or(0, |origin| origin.cause_depth),
            step_succeeded: order.step_succeeded_at_removed_node,
            suspended_by_task: order.suspended_by_task_seq.map(|task| task.0),
            took_on_error: order.took_on_error,
        }
    }

    /// Converts the columns to a row. Whether the order's task is running is not one of them.
    pub fn into_row(self, step_running: bool) -> TableResult<OrderRow> {
        let order = Order {
            key: self.key.parse().map_err(Fault::damaged)?,
            tenant: Tenant::new(self.tenant).map_err(Fault::damaged)?,
            node: ChainNodeId::new(self.node).map_err(Fault::damaged)?,
            value: Json::from_trusted(&*self.value),
            priority: Priority::try_from(self.priority).map_err(Fault::damaged)?,
            planned_at: self.planned.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(self.created),
            origin: self
                .origin
                .map(|event| OrderOrigin { event_id: EventId::from_i64(event), cause_depth: self.depth }),
            started_at: self.started.map(Timestamp::from_micros),
            suspended: self.suspended,
            task_seq: self.task.map(TaskSeq),
            step_running,
            step_succeeded_at_removed_node: self.step_succeeded,
            suspended_by_task_seq: self.suspended_by_task.map(TaskSeq),
            took_on_error: self.took_on_error,
        };
        Ok(OrderRow { number: self.n, order })
    }
}

columns! {
    /// The columns of the outcome of an ended order.
    EndedOrderColumns<'a> key(key, tenant) {
        /// `/chain/path,id`.
        key: Cow<'a, str>,
        tenant: Cow<'a, str>,
        outcome: Cow<'a, str>,
        node: Cow<'a, str>,
        ended: i64,
    }
}

impl<'a> EndedOrderColumns<'a> {
    pub fn from_ended_order(order: &'a EndedOrder) -> Self {
        Self {
            key: order.key.to_string().into(),
            tenant: order.tenant.as_str().into(),
            outcome: order.outcome.as_str().into(),
            node: order.node.as_str().into(),
            ended: order.ended_at.micros(),
        }
    }

    pub fn into_ended_order(self) -> TableResult<EndedOrder> {
        Ok(EndedOrder {
            key: self.key.parse().map_err(Fault::damaged)?,
            tenant: Tenant::new(self.tenant).map_err(Fault::damaged)?,
            outcome: self.outcome.parse().map_err(Fault::damaged)?,
            node: ChainNodeId::new(self.node).map_err(Fault::damaged)?,
            ended_at: Timestamp::from_micros(self.ended),
        })
    }
}
