//! Implements the read operations of the store ([`StoreReader`]), each on a read-only connection.

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
use pointsman_store::StoreReader;

use crate::readers::Readers;
use crate::tables::{SqliteTables, rules};
use crate::{Sqlite, list_tasks, read_fires, read_journal, read_nodes, read_orders, read_tasks};

#[async_trait]
impl StoreReader for Sqlite {
    type Tables = SqliteTables;

    async fn read_journal_range(&self) -> StoreResult<JournalRange> {
        self.readers.run_read(read_journal::read_journal_range).await
    }

    async fn read_events(&self, query: JournalQuery) -> StoreResult<EventPage> {
        self.readers.run_read(move |conn| read_journal::read_event_page(conn, &query)).await
    }

    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>> {
        self.readers.run_read(move |conn| read_journal::read_event_view(conn, id)).await
    }

    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.readers.run_read(move |conn| read_journal::read_object_view(conn, &tenant, &key, limit)).await
    }

    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>> {
        self.readers.run_read(read_nodes::list_nodes).await
    }

    async fn list_rules(&self) -> StoreResult<Vec<Rule>> {
        self.readers.run_read(rules::list_rules).await
    }

    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>> {
        let handler = handler.cloned();
        self.readers.run_read(move |conn| read_tasks::list_queue_views(conn, handler.as_ref())).await
    }

    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>> {
        self.readers.run_read(move |conn| read_nodes::list_audit_entries(conn, before, limit)).await
    }

    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>> {
        let id = id.clone();
        self.readers
            .run_read(move |conn| {
                let journal_range = read_journal::read_journal_range(conn)?;
                Ok(read_tasks::read_task_by_id(conn, &id)?.map(|task| (task, journal_range)))
            })
            .await
    }

    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage> {
        self.readers.run_read(move |conn| list_tasks::list_tasks(conn, &filter, before, limit)).await
    }

    async fn find_lost_attempts(&self, leases: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>> {
        self.readers.run_read(move |conn| read_tasks::find_lost_fences(conn, &leases)).await
    }

    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>> {
        let id = id.clone();
        self.readers.run_read(move |conn| read_tasks::read_log_page(conn, &id, from, limit)).await
    }

    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.readers.run_read(move |conn| read_orders::read_order_view(conn, &tenant, &key)).await
    }

    async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> StoreResult<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers
            .run_read(move |conn| {
                read_orders::list_orders(conn, &path, tenant.as_ref(), after.as_ref(), limit)
            })
            .await
    }

    async fn list_all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> StoreResult<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers.run_read(move |conn| read_orders::list_all_orders(conn, &path, tenant.as_ref())).await
    }

    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers
            .run_read(move |conn| read_orders::read_order_statistics(conn, &path, tenant.as_ref(), now))
            .await
    }

    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)> {
        self.readers.run_read(read_orders::list_chain_views).await
    }

    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage> {
        let schedule = schedule.clone();
        self.readers.run_read(move |conn| read_fires::list_fires(conn, &schedule, before, limit)).await
    }

    /// Closes checkpointer and readers before the writer: the last connection to close must be able to write, because
    /// it checkpoints the WAL.
    fn close(&self) {
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.stop();
        }
        if let Readers::Pool(pool) = &self.readers {
            pool.close();
        }
    }
}
