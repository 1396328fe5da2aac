//! Reads queues, handlers, rules, nodes, chains, fires and orders.

use pointsman_core::chain::OrderKey;
use pointsman_core::fire::Fire;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::store::{NodeId, NodeView};
use pointsman_core::task::QueueSubject;
use pointsman_core::{HandlerName, Rule, TaskSeq, Tenant};
use pointsman_store::columns::{ChainColumns, FireColumns, NodeColumns, OrderColumns, RuleColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{ChainRow, HandlerId, HandlerRow, OrderRow, QueueId, QueueRow, TaskPhase};

use crate::cells::{LeadingCell, decode_row};
use crate::codec::{MemberOrField, encode_decimal_field};
use crate::connection::args;
use crate::keys::{Index, Table, order_field};
use crate::overlay::{Bytes, CacheFetch, TransactionOverlay, decode_integer};
use crate::rows::{self, decode_row_at};

/// Maximum number of listed nodes.
const MAX_LISTED_NODES: usize = 100;
/// Tasks of pull workers are locked under this id, which no node has.
const PULL_WORKERS_NODE_ID: NodeId = 0;

impl TransactionOverlay {
    /// Reads all rows of a table whose fields are numbers, sorted by number.
    pub(crate) fn read_numbered_rows(&mut self, table: Table) -> TableResult<Vec<(i64, Bytes)>> {
        let rows = self.read_table(table)?.into_iter();
        let mut rows: Vec<(i64, Bytes)> =
            rows.map(|(field, row)| Ok((parse_number(&field)?, row))).collect::<TableResult<_>>()?;
        rows.sort_unstable_by_key(|(number, _)| *number);
        Ok(rows)
    }

    pub(crate) fn read_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        self.fetch_into_cache(vec![CacheFetch::Table(Table::Queues), CacheFetch::Table(Table::QueueCounts)])?;
        let rows = self.read_numbered_rows(Table::Queues)?;
        rows.into_iter().map(|(id, row)| self.decode_queue(id, &row)).collect()
    }

    /// Returns whether a queue is of a collection of a source.
    pub(crate) fn is_collection_queue(&mut self, id: QueueId) -> TableResult<bool> {
        let field = encode_decimal_field(id);
        let is_collection = |row: &[u8]| {
            let subject = rows::decode_queue(id, row, None)?.collection;
            Ok(!subject.is_empty()
                && QueueSubject::from_text(&subject).map_err(Fault::damaged)?.collection().is_some())
        };
        if let Some(is_collection) = self.with_cached_row(&Table::Queues, &field, is_collection) {
            return is_collection;
        }
        self.read_row(Table::Queues, field)?.map_or(Ok(false), |row| is_collection(&row))
    }

    pub(crate) fn read_queue(&mut self, id: QueueId) -> TableResult<Option<QueueRow>> {
        let row = self.read_row(Table::Queues, encode_decimal_field(id))?;
        row.map(|row| self.decode_queue(id, &row)).transpose()
    }

    fn decode_queue(&mut self, id: QueueId, row: &[u8]) -> TableResult<QueueRow> {
        let counts = self.read_row(Table::QueueCounts, encode_decimal_field(id))?;
        rows::decode_queue(id, row, counts.as_deref())?.into_row()
    }

    /// Reads a queue and the name of its handler.
    pub(crate) fn read_queue_with_handler(&mut self, id: QueueId) -> TableResult<(HandlerName, QueueRow)> {
        let queue = self.read_queue(id)?.ok_or_else(|| Fault::damaged(format!("no queue {id}")))?;
        let handler = self.read_row(Table::Handlers, encode_decimal_field(queue.handler))?;
        let handler = handler.ok_or_else(|| Fault::damaged(format!("no handler {}", queue.handler)))?;
        let name = rows::decode_handler(queue.handler, &handler)?.name;
        Ok((HandlerName::new(name).map_err(Fault::damaged)?, queue))
    }

    pub(crate) fn read_limiter_state(&mut self, id: HandlerId) -> TableResult<LimiterAndBreakerState> {
        let row = self.read_row(Table::LimiterStates, id.to_string())?;
        Ok(row.map(|row| rows::decode_json(&row)).transpose()?.unwrap_or_default())
    }

    pub(crate) fn read_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        self.fetch_into_cache(vec![
            CacheFetch::Table(Table::Handlers),
            CacheFetch::Table(Table::LimiterStates),
        ])?;
        let rows = self.read_numbered_rows(Table::Handlers)?;
        let decode_handler = |(id, row): (HandlerId, Bytes)| {
            let handler = rows::decode_handler(id, &row)?;
            Ok(HandlerRow {
                id,
                def: serde_json::from_str(&handler.def).map_err(Fault::damaged)?,
                is_defined: handler.defined,
                limiter_state: self.read_limiter_state(id)?,
            })
        };
        rows.into_iter().map(decode_handler).collect()
    }

    /// Reads all rules, sorted by scope, tenant and kind.
    pub(crate) fn read_rules(&mut self) -> TableResult<Vec<Rule>> {
        let rows = self.read_table(Table::Rules)?;
        let decode =
            |(field, row): &(MemberOrField, Bytes)| decode_row_at::<RuleColumns<'_>>(field, row)?.into_rule();
        let mut rules: Vec<Rule> = rows.iter().map(decode).collect::<TableResult<_>>()?;
        let tenant_name =
            |rule: &Rule| rule.tenant.as_ref().map_or(String::new(), |tenant| tenant.to_string());
        rules.sort_by_cached_key(|rule| {
            (rule.scope.kind_name(), rule.scope.name().to_string(), tenant_name(rule), rule.kind.as_str())
        });
        Ok(rules)
    }

    /// Reads all stored nodes; if `with_running_tasks`, also how many tasks each has locked.
    pub(crate) fn read_all_nodes(&mut self, with_running_tasks: bool) -> TableResult<Vec<NodeView>> {
        let rows = self.read_numbered_rows(Table::Nodes)?;
        let mut nodes = Vec::with_capacity(rows.len());
        for (id, row) in rows {
            let node: NodeColumns<'_> = decode_row(&[LeadingCell::Number(id)], &row)?;
            let running_tasks =
                if with_running_tasks && !node.gone { self.count_locked_tasks(id)? } else { 0 };
            nodes.push(node.into_view(running_tasks)?);
        }
        Ok(nodes)
    }

    /// Lists the ids that may have locked tasks: live nodes, and the id shared by pull workers.
    pub(crate) fn list_possible_lock_owner_ids(&mut self) -> TableResult<Vec<NodeId>> {
        let nodes = self.read_all_nodes(false)?;
        let alive = nodes.iter().filter(|node| !node.has_left_or_died).map(|node| node.id);
        Ok(alive.chain([PULL_WORKERS_NODE_ID]).collect())
    }

    fn count_locked_tasks(&mut self, node: NodeId) -> TableResult<u64> {
        let count = decode_integer(
            self.connection.execute(args!["ZCARD", self.keys.index_key(&Index::LockedTasks(node))])?,
        )?;
        Ok(count.unsigned_abs())
    }

    /// Reads live nodes and the most recent others, newest first.
    pub(crate) fn read_recent_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        let mut nodes = self.read_all_nodes(true)?;
        nodes.sort_by_key(|node| (node.has_left_or_died, std::cmp::Reverse(node.id)));
        nodes.truncate(MAX_LISTED_NODES);
        Ok(nodes)
    }

    /// Reads all chains, sorted by path.
    pub(crate) fn read_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        let rows = self.read_table(Table::Chains)?;
        let decode =
            |(path, row): &(MemberOrField, Bytes)| decode_row_at::<ChainColumns<'_>>(path, row)?.into_row();
        let mut chains: Vec<ChainRow> = rows.iter().map(decode).collect::<TableResult<_>>()?;
        chains.sort_by(|a, b| a.path().as_str().cmp(b.path().as_str()));
        Ok(chains)
    }

    pub(crate) fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        let Some(row) = self.read_row(Table::Orders, number.to_string())? else { return Ok(None) };
        let order: OrderColumns<'_> = decode_row(&[LeadingCell::Number(number)], &row)?;
        let task = order.task.map_or(Ok(None), |task| self.read_active_task(TaskSeq(task)))?;
        order.into_row(task.is_some_and(|active| active.phase == TaskPhase::Locked)).map(Some)
    }

    /// Reads the fire of a planned time.
    pub(crate) fn read_fire(&mut self, schedule: &str, planned: i64) -> TableResult<Option<Fire>> {
        let row = self.read_row(Table::Fires(schedule.into()), encode_decimal_field(planned))?;
        let key = [LeadingCell::Text(schedule), LeadingCell::Number(planned)];
        row.map(|row| decode_row::<FireColumns<'_>>(&key, &row)?.into_fire()).transpose()
    }

    pub(crate) fn read_order_by_key(
        &mut self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> TableResult<Option<OrderRow>> {
        match self.read_row(Table::OrderNumbers, order_field(tenant, key))? {
            Some(number) => self.read_order(parse_number(&number)?),
            None => Ok(None),
        }
    }
}

/// Parses a decimal number.
pub(crate) fn parse_number(bytes: &[u8]) -> TableResult<i64> {
    let text = std::str::from_utf8(bytes).map_err(Fault::damaged)?;
    text.parse().map_err(Fault::damaged)
}
