//! Read operations of a store. Each result is consistent as of one moment; where the core's trait says so, it includes
//! the range of the journal at that moment.

use async_trait::async_trait;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::{EventPage, JournalRange, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    AuditEntry, ChainView, EventView, FirePage, JournalQuery, LogPage, NodeView, ObjectView, OrderCursor,
    OrderPage, OrderView, QueueView, StoreResult, TaskFilter, TaskPage,
};
use pointsman_core::task::{Task, TaskId, TaskSeq};
use pointsman_core::{EventId, HandlerName, ObjectKey, Rule, ScheduleName, Tenant, Timestamp};

use crate::tables::Tables;

/// Reads what the writer has committed. The operations have the meaning of the core's traits.
#[async_trait]
pub trait StoreReader: Clone + Send + Sync + 'static {
    /// Tables that the writer of the same store writes to.
    type Tables: Tables;

    async fn read_journal_range(&self) -> StoreResult<JournalRange>;

    async fn read_events(&self, query: JournalQuery) -> StoreResult<EventPage>;

    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>>;

    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>>;

    /// Reads the clock of the store's server; `None` for an embedded store.
    async fn read_server_clock(&self) -> StoreResult<Option<Timestamp>> {
        Ok(None)
    }

    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>>;

    async fn list_rules(&self) -> StoreResult<Vec<Rule>>;

    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>>;

    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>>;

    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>>;

    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage>;

    async fn find_lost_attempts(&self, leases: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>>;

    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>>;

    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>>;

    async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> StoreResult<OrderPage>;

    async fn list_all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> StoreResult<OrderPage>;

    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)>;

    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)>;

    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage>;

    /// Returns why the store is full: it rejects new events and orders, but existing ones can still be processed.
    /// `None` if it is not full.
    fn emit_refusal_reason(&self) -> Option<String> {
        None
    }

    /// Returns warnings about the storage, for operators.
    fn storage_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Closes the connections for reads. The writer is closed after the reader.
    fn close(&self);
}
