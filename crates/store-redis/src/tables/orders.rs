//! Orders.

use std::ops::Bound;

use pointsman_core::Tenant;
use pointsman_core::chain::{ChainPath, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::columns::{EndedOrderColumns, OrderColumns};
use pointsman_store::error::TableResult;
use pointsman_store::row::OrderRow;
use pointsman_store::tables::OrderTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::codec::{MemberBuilder, MemberOrField, decode_last_member_i64};
use crate::keys::{Index, Table, order_field};
use crate::overlay::{ScanOrder, end_of_prefix};
use crate::rows::decode_row_at;

impl OrderTable for RedisTables {
    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        self.overlay.read_order(number)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        self.overlay.read_order_by_key(tenant, key)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let chain = chain_orders_prefix(path);
        let after = MemberBuilder::default().push_bytes(&chain).push_i64(number).finish();
        let end = end_of_prefix(&chain);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let members = self.overlay.read_members(
            &Index::OrdersByChain,
            (Bound::Excluded(&after), upper),
            ScanOrder::Ascending,
            limit,
        )?;
        members.iter().map(|member| decode_last_member_i64(member)).collect()
    }

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()> {
        let field = order_field(&order.tenant, &order.key);
        self.write_order(number, order);
        self.overlay.write_row(Table::OrderNumbers, field.clone(), number.to_string().into_bytes());
        self.overlay.add_member(Index::OrdersByChain, chain_order_member(&order.key, number));
        self.overlay.add_member(Index::ActiveOrderKeys, field);
        Ok(())
    }

    fn update_order(&mut self, order: &OrderRow) -> TableResult<()> {
        self.write_order(order.number, &order.order);
        Ok(())
    }

    fn delete_order(&mut self, number: i64) -> TableResult<()> {
        let Some(OrderRow { order, .. }) = self.overlay.read_order(number)? else { return Ok(()) };
        let field = order_field(&order.tenant, &order.key);
        self.overlay.delete_row(Table::Orders, number.to_string());
        self.overlay.delete_row(Table::OrderNumbers, field.clone());
        self.overlay.remove_member(Index::OrdersByChain, chain_order_member(&order.key, number));
        self.overlay.remove_member(Index::ActiveOrderKeys, field);
        Ok(())
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        let field = order_field(tenant, key);
        let row = self.overlay.read_row(Table::EndedOrders, &field)?;
        row.map(|row| decode_row_at::<EndedOrderColumns<'_>>(&field, &row)?.into_ended_order()).transpose()
    }

    fn write_ended_order(&mut self, order: &EndedOrder) -> TableResult<()> {
        if let Some(earlier) = self.read_ended_order(&order.tenant, &order.key)? {
            self.overlay.remove_member(Index::EndedOrdersByAge, ended_order_age_member(&earlier));
        }
        self.overlay.add_member(Index::EndedOrdersByAge, ended_order_age_member(order));
        let field = order_field(&order.tenant, &order.key);
        self.overlay.write_row(
            Table::EndedOrders,
            field,
            encode_row(&EndedOrderColumns::from_ended_order(order)),
        );
        Ok(())
    }
}

impl RedisTables {
    fn write_order(&mut self, number: i64, order: &Order) {
        let row = encode_row(&OrderColumns::from_order(number, order));
        self.overlay.write_row(Table::Orders, number.to_string(), row);
    }
}

/// Returns the prefix of the index members of a chain's orders. A path contains no zero byte, so that no prefix extends
/// another.
pub(crate) fn chain_orders_prefix(path: &ChainPath) -> Vec<u8> {
    [path.as_str().as_bytes(), b"\0"].concat()
}

fn chain_order_member(key: &OrderKey, number: i64) -> MemberOrField {
    MemberBuilder::default().push_bytes(&chain_orders_prefix(&key.chain)).push_i64(number).finish()
}

fn ended_order_age_member(order: &EndedOrder) -> MemberOrField {
    MemberBuilder::from_i64(order.ended_at.micros())
        .push_bytes(&order_field(&order.tenant, &order.key))
        .finish()
}
