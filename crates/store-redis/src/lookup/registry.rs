//! Queues, handlers, rules, nodes, chains and orders.

use pointsman_core::chain::{Chain, ChainState, OrderKey};
use pointsman_core::limit::Pace;
use pointsman_core::store::{NodeId, NodeView};
use pointsman_core::{HandlerDef, HandlerName, Rule, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Counts, HandlerId, HandlerRow, Known, Numbered, Phase, QueueId, QueueRow};
use serde::{Deserialize, Serialize};

use crate::codec::{Member, digits, ordered};
use crate::keys::{Index, Table, order_field};
use crate::link::words;
use crate::rows;
use crate::sight::{Bytes, Question, Sight, int_of};

/// A handler as it lies in its table.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandlerEntry {
    pub(crate) def: HandlerDef,
    pub(crate) defined: bool,
}

/// A chain as it lies in its table.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChainEntry {
    pub(crate) chain: Chain,
    pub(crate) defined: bool,
    pub(crate) state: ChainState,
}

/// So many nodes are told of at most.
const NODES: usize = 100;
/// Tasks of workers elsewhere are held under this number, which no node has.
const WORKERS: NodeId = 0;

impl Sight {
    /// All rows of a table whose fields are numbers, by number.
    pub(crate) fn numbered(&self, table: Table) -> Result<Vec<(i64, Bytes)>> {
        let rows = self.all(table)?.into_iter();
        let mut rows: Vec<(i64, Bytes)> =
            rows.map(|(field, row)| Ok((number_of(&field)?, row))).collect::<Result<_>>()?;
        rows.sort_unstable_by_key(|(number, _)| *number);
        Ok(rows)
    }

    pub(crate) fn queue_rows(&self) -> Result<Vec<QueueRow>> {
        self.look(vec![Question::Table(Table::Queues), Question::Table(Table::Counts)])?;
        let rows = self.numbered(Table::Queues)?;
        rows.into_iter().map(|(id, row)| rows::unpack_queue(id, &row, self.counts(id)?)).collect()
    }

    /// Whether the tasks of a queue synchronise a collection of a source.
    pub(crate) fn is_of_source(&self, id: QueueId) -> Result<bool> {
        let field = digits(id);
        if let Some(is) = self.if_there(&Table::Queues, &field, rows::is_of_source) {
            return is;
        }
        self.row(Table::Queues, field)?.map_or(Ok(false), |row| rows::is_of_source(&row))
    }

    pub(crate) fn queue_row(&self, id: QueueId) -> Result<Option<QueueRow>> {
        let row = self.row(Table::Queues, digits(id))?;
        row.map(|row| rows::unpack_queue(id, &row, self.counts(id)?)).transpose()
    }

    fn counts(&self, id: QueueId) -> Result<Counts> {
        let row = self.row(Table::Counts, digits(id))?;
        Ok(row.map(|row| rows::unpack_counts(&row)).transpose()?.unwrap_or_default())
    }

    /// A queue, and the name of its handler.
    pub(crate) fn queue_names(&self, id: QueueId) -> Result<(HandlerName, QueueRow)> {
        let queue = self.queue_row(id)?.ok_or_else(|| Fault::damaged(format!("no queue {id}")))?;
        let handler = self.handler(queue.handler)?;
        let handler = handler.ok_or_else(|| Fault::damaged(format!("no handler {}", queue.handler)))?;
        Ok((handler.def.name, queue))
    }

    fn handler(&self, id: HandlerId) -> Result<Option<HandlerEntry>> {
        self.row(Table::Handlers, id.to_string())?.map(|row| rows::of_json(&row)).transpose()
    }

    pub(crate) fn pace(&self, id: HandlerId) -> Result<Pace> {
        let row = self.row(Table::Paces, id.to_string())?;
        Ok(row.map(|row| rows::of_json(&row)).transpose()?.unwrap_or_default())
    }

    pub(crate) fn handlers(&self) -> Result<Vec<HandlerRow>> {
        self.look(vec![Question::Table(Table::Handlers), Question::Table(Table::Paces)])?;
        let handler = |(id, row): (HandlerId, Bytes)| {
            let HandlerEntry { def, defined } = rows::of_json(&row)?;
            Ok(HandlerRow { id, def, defined, pace: self.pace(id)? })
        };
        self.numbered(Table::Handlers)?.into_iter().map(handler).collect()
    }

    /// By place, tenant and kind.
    pub(crate) fn rules(&self) -> Result<Vec<Rule>> {
        let rows = self.all(Table::Rules)?;
        let mut rules: Vec<Rule> = rows.iter().map(|(_, row)| rows::of_json(row)).collect::<Result<_>>()?;
        let tenant = |rule: &Rule| rule.tenant.as_ref().map_or(String::new(), |tenant| tenant.to_string());
        rules.sort_by_cached_key(|rule| {
            (rule.place.space(), rule.place.name().to_string(), tenant(rule), rule.kind.as_str())
        });
        Ok(rules)
    }

    /// All nodes that are remembered, with how many tasks each holds if that is wanted.
    pub(crate) fn node_rows(&self, running: bool) -> Result<Vec<NodeView>> {
        let rows = self.numbered(Table::Nodes)?;
        let mut nodes = Vec::with_capacity(rows.len());
        for (id, row) in rows {
            let node = rows::unpack_node(id, &row, 0)?;
            let running = if running && !node.gone { self.count_held(id)? } else { 0 };
            nodes.push(NodeView { running, ..node });
        }
        Ok(nodes)
    }

    /// Whoever may hold tasks: the nodes that live, and the workers elsewhere, who are all one.
    pub(crate) fn holders(&self) -> Result<Vec<NodeId>> {
        let nodes = self.node_rows(false)?;
        let alive = nodes.iter().filter(|node| !node.gone).map(|node| node.id);
        Ok(alive.chain([WORKERS]).collect())
    }

    fn count_held(&self, node: NodeId) -> Result<u64> {
        let count = int_of(self.link.ask(words!["ZCARD", self.keys.index(&Index::Held(node))])?)?;
        Ok(count.unsigned_abs())
    }

    /// The nodes that live, and those that were heard of last, newest first.
    pub(crate) fn nodes(&self) -> Result<Vec<NodeView>> {
        let mut nodes = self.node_rows(true)?;
        nodes.sort_by_key(|node| (node.gone, std::cmp::Reverse(node.id)));
        nodes.truncate(NODES);
        Ok(nodes)
    }

    /// By path.
    pub(crate) fn chains(&self) -> Result<Vec<Known>> {
        let rows = self.all(Table::Chains)?;
        let known = |row: &Bytes| {
            let ChainEntry { chain, defined, state } = rows::of_json(row)?;
            Ok(Known { chain, defined, state })
        };
        let mut chains: Vec<Known> = rows.iter().map(|(_, row)| known(row)).collect::<Result<_>>()?;
        chains.sort_by(|a, b| a.path().as_str().cmp(b.path().as_str()));
        Ok(chains)
    }

    pub(crate) fn order(&self, n: i64) -> Result<Option<Numbered>> {
        let Some(row) = self.row(Table::Orders, n.to_string())? else { return Ok(None) };
        let mut found = rows::unpack_order(n, &row)?;
        if let Some(task) = found.order.task {
            found.order.running = self.task(task)?.is_some_and(|live| live.phase == Phase::Locked);
        }
        Ok(Some(found))
    }

    pub(crate) fn order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        match self.row(Table::OrderNames, order_field(tenant, key))? {
            Some(n) => self.order(number_of(&n)?),
            None => Ok(None),
        }
    }

    /// The numbers that stand last in these members.
    pub(crate) fn last_numbers(members: &[Member]) -> Result<Vec<i64>> {
        let last = |member: &Member| ordered(member.get(member.len().saturating_sub(8)..).unwrap_or(&[]), 0);
        members.iter().map(last).collect()
    }
}

/// A number that is written out.
pub(crate) fn number_of(bytes: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(bytes).map_err(Fault::damaged)?;
    text.parse().map_err(Fault::damaged)
}
