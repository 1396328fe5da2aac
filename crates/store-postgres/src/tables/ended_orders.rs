//! Orders that have ended, in the write batch of a transaction.

use std::collections::BTreeMap;

use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;
use pointsman_core::order::EndedOrder;

use super::columns::EndedOrderColumns;
use crate::session::query;
use crate::writer_connection::SqlCommand;

/// Ended orders that are written with the commit; of one key and tenant, the last.
#[derive(Debug, Default)]
pub(crate) struct EndedOrderBatch(BTreeMap<(OrderKey, Tenant), EndedOrder>);

impl EndedOrderBatch {
    pub(crate) fn get(&self, tenant: &Tenant, key: &OrderKey) -> Option<EndedOrder> {
        self.0.get(&(key.clone(), tenant.clone())).cloned()
    }

    pub(crate) fn insert(&mut self, ended: &EndedOrder) {
        self.0.insert((ended.key.clone(), ended.tenant.clone()), ended.clone());
    }

    /// Adds the statement that writes them, and empties the batch; returns the number of rows.
    pub(crate) fn take_commands(&mut self, commands: &mut Vec<SqlCommand>) -> u64 {
        let ended: Vec<_> = std::mem::take(&mut self.0).into_values().collect();
        let rows = ended.len() as u64;
        if rows > 0 {
            let query = query!(
                "ended_order/upsert_ended_orders",
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY
            );
            commands.push(SqlCommand::Query(query, EndedOrderColumns::from_orders(ended).all_params()));
        }
        rows
    }
}
