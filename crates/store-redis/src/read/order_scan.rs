//! Scans many orders in chunks. The cache is cleared between chunks.

use std::ops::Bound;

use pointsman_core::chain::ChainNodeId;
use pointsman_core::journal::PathFilter;
use pointsman_core::order::Order;
use pointsman_core::store::OrderCursor;
use pointsman_core::{TaskSeq, Tenant};
use pointsman_store::columns::OrderColumns;
use pointsman_store::error::TableResult;
use pointsman_store::views::order_key_range;

use super::ChunkSize;
use crate::cells::{LeadingCell, decode_row};
use crate::codec::{MemberOrField, decode_last_member_i64, encode_decimal_field};
use crate::keys::{Index, Table, order_field, order_key_of_field};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, ScanOrder, TransactionOverlay};

/// Scan of the orders that match a path filter and a tenant, sorted by key.
pub(super) struct OrderScan<'a> {
    path_filter: &'a PathFilter,
    tenant: Option<&'a Tenant>,
    /// Remaining range of order keys: from the bound to before the end.
    lower_bound: Bound<MemberOrField>,
    end_key: String,
    chunk: ChunkSize,
    is_exhausted: bool,
}

impl<'a> OrderScan<'a> {
    pub(super) fn new(
        path_filter: &'a PathFilter,
        tenant: Option<&'a Tenant>,
        after: Option<&OrderCursor>,
        limit: usize,
    ) -> Self {
        let (low, end) = order_key_range(path_filter);
        let lower_bound = match after.map(|after| order_field(&after.tenant, &after.key)) {
            Some(after) if after.as_slice() >= low.as_bytes() => Bound::Excluded(after),
            Some(_) | None => Bound::Included(low.into_bytes().into()),
        };
        Self {
            path_filter,
            tenant,
            lower_bound,
            end_key: end,
            chunk: ChunkSize::for_limit(limit),
            is_exhausted: false,
        }
    }

    /// Reads the orders of the next chunk; `None` after the last chunk. A chunk may be empty although others follow.
    pub(super) fn next_chunk(&mut self, overlay: &mut TransactionOverlay) -> TableResult<Option<Vec<Order>>> {
        if self.is_exhausted {
            return Ok(None);
        }
        overlay.clear();
        let lower = self.lower_bound.as_ref().map(MemberOrField::as_slice);
        let bounds = (lower, Bound::Excluded(self.end_key.as_bytes()));
        let mut keys =
            overlay.read_members(&Index::ActiveOrderKeys, bounds, ScanOrder::Ascending, self.chunk.rows())?;
        self.is_exhausted = keys.len() < self.chunk.rows();
        if let Some(last) = keys.last() {
            self.lower_bound = Bound::Excluded(last.clone());
        }
        keys.retain(|field| {
            str::from_utf8(order_key_of_field(field)).is_ok_and(|key| self.path_filter.matches(key))
        });
        let numbers = read_order_numbers(overlay, keys)?;
        let mut orders = read_orders(overlay, &numbers)?;
        self.chunk = self.chunk.next_after(orders.iter().map(|order| order.value.as_str().len()).sum());
        orders.retain(|order| self.tenant.is_none_or(|tenant| order.tenant == *tenant));
        set_step_running_flags(overlay, orders).map(Some)
    }
}

fn read_order_numbers(overlay: &mut TransactionOverlay, keys: Vec<MemberOrField>) -> TableResult<Vec<i64>> {
    let fetch = |key: &MemberOrField| CacheFetch::Row(Table::OrderNumbers, key.clone());
    overlay.fetch_into_cache(keys.iter().map(fetch).collect())?;
    let mut numbers = Vec::with_capacity(keys.len());
    for key in keys {
        numbers.extend(
            overlay.read_row(Table::OrderNumbers, key)?.map(|number| parse_number(&number)).transpose()?,
        );
    }
    Ok(numbers)
}

fn read_orders(overlay: &mut TransactionOverlay, numbers: &[i64]) -> TableResult<Vec<Order>> {
    let fetch = |number: &i64| CacheFetch::Row(Table::Orders, encode_decimal_field(*number));
    overlay.fetch_into_cache(numbers.iter().map(fetch).collect())?;
    let mut orders = Vec::with_capacity(numbers.len());
    for number in numbers {
        let row = overlay.read_row(Table::Orders, number.to_string())?;
        if let Some(row) = row {
            let order: OrderColumns<'_> = decode_row(&[LeadingCell::Number(*number)], &row)?;
            orders.push(order.into_row(false)?.order);
        }
    }
    Ok(orders)
}

/// Sets `step_running` of each order by its task, because the order's row does not say whether its step is running.
fn set_step_running_flags(
    overlay: &mut TransactionOverlay,
    mut orders: Vec<Order>,
) -> TableResult<Vec<Order>> {
    let tasks: Vec<TaskSeq> = orders.iter().filter_map(|order| order.task_seq).collect();
    overlay.prefetch_active_tasks(&tasks)?;
    for order in &mut orders {
        let task = order.task_seq.map_or(Ok(None), |task| overlay.read_active_task(task))?;
        order.step_running = task.is_some_and(|active| active.lease().is_some());
    }
    Ok(orders)
}

/// Scan of all orders that returns only their chains and current chain nodes.
pub(super) struct OrderChainNodeScan {
    after: MemberOrField,
    chunk: ChunkSize,
    is_exhausted: bool,
}

impl OrderChainNodeScan {
    pub(super) fn new() -> Self {
        Self { after: MemberOrField::new(), chunk: ChunkSize::for_limit(usize::MAX), is_exhausted: false }
    }

    /// Reads chain path and current chain node of the orders in the next chunk; `None` after the last chunk.
    pub(super) fn next_chunk(
        &mut self,
        overlay: &mut TransactionOverlay,
    ) -> TableResult<Option<Vec<(String, ChainNodeId)>>> {
        if self.is_exhausted {
            return Ok(None);
        }
        overlay.clear();
        let bounds = (Bound::Excluded(&*self.after), Bound::Unbounded);
        let members =
            overlay.read_members(&Index::OrdersByChain, bounds, ScanOrder::Ascending, self.chunk.rows())?;
        self.is_exhausted = members.len() < self.chunk.rows();
        self.after = members.last().cloned().unwrap_or_default();
        let numbers: Vec<i64> =
            members.iter().map(|member| decode_last_member_i64(member)).collect::<TableResult<_>>()?;
        let orders = read_orders(overlay, &numbers)?;
        self.chunk = self.chunk.next_after(orders.iter().map(|order| order.value.as_str().len()).sum());
        Ok(Some(orders.into_iter().map(|order| (order.key.chain.to_string(), order.node)).collect()))
    }
}
