//! The reads of the store (`StoreReader`): each runs on a reader of the pool.

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

use crate::Redis;
use crate::read::{audit_and_fires, journal, orders, task_list, tasks};
use crate::tables::RedisTables;

#[async_trait]
impl StoreReader for Redis {
    type Tables = RedisTables;

    async fn read_journal_range(&self) -> StoreResult<JournalRange> {
        self.reader_pool.read_without_snapshot(|reader| Ok(reader.read_store_state()?.journal_range())).await
    }

    async fn read_events(&self, query: JournalQuery) -> StoreResult<EventPage> {
        self.reader_pool.read_without_snapshot(move |reader| journal::read_journal_page(reader, &query)).await
    }

    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>> {
        self.reader_pool
            .read_snapshot(move |overlay, store_state| journal::read_event_view(overlay, store_state, id))
            .await
    }

    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.reader_pool
            .read_snapshot(move |overlay, store_state| {
                journal::read_object_view(overlay, store_state, &tenant, &key, limit)
            })
            .await
    }

    async fn read_server_clock(&self) -> StoreResult<Option<Timestamp>> {
        self.reader_pool.read_without_snapshot(|reader| reader.read_server_time()).await.map(Some)
    }

    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>> {
        self.reader_pool.read_snapshot(|overlay, _| overlay.read_recent_nodes()).await
    }

    /// Reads rules directly: they are one table, which is consistent by itself.
    async fn list_rules(&self) -> StoreResult<Vec<Rule>> {
        self.reader_pool.read_without_snapshot(|reader| reader.overlay.read_rules()).await
    }

    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>> {
        let handler = handler.cloned();
        self.reader_pool.read_snapshot(move |overlay, _| tasks::list_queues(overlay, handler.as_ref())).await
    }

    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>> {
        self.reader_pool
            .read_snapshot(move |overlay, _| audit_and_fires::list_audit_entries(overlay, before, limit))
            .await
    }

    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>> {
        let id = id.clone();
        self.reader_pool
            .read_snapshot(move |overlay, store_state| {
                Ok(tasks::read_task(overlay, &id)?.map(|task| (task, store_state.journal_range())))
            })
            .await
    }

    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage> {
        self.reader_pool
            .read_snapshot_as_long_scan(move |overlay, store_state| {
                task_list::list_tasks(overlay, store_state, &filter, before, limit)
            })
            .await
    }

    async fn find_lost_attempts(&self, leases: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>> {
        self.reader_pool
            .read_without_snapshot(move |reader| tasks::list_lost_fences(&mut reader.overlay, &leases))
            .await
    }

    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>> {
        let id = id.clone();
        self.reader_pool
            .read_snapshot(move |overlay, _| tasks::read_task_log(overlay, &id, from, limit))
            .await
    }

    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.reader_pool
            .read_snapshot(move |overlay, store_state| {
                orders::read_order_view(overlay, store_state, &tenant, &key)
            })
            .await
    }

    async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> StoreResult<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.reader_pool
            .read_snapshot_as_long_scan(move |overlay, store_state| {
                orders::list_orders(overlay, store_state, (&path, tenant.as_ref()), after.as_ref(), limit)
            })
            .await
    }

    async fn list_all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> StoreResult<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.reader_pool
            .read_snapshot_as_long_scan(move |overlay, store_state| {
                orders::list_all_orders_without_values(overlay, store_state, &path, tenant.as_ref())
            })
            .await
    }

    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.reader_pool
            .read_snapshot_as_long_scan(move |overlay, store_state| {
                orders::read_order_statistics(overlay, store_state, &path, tenant.as_ref(), now)
            })
            .await
    }

    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)> {
        self.reader_pool.read_snapshot_as_long_scan(orders::list_chains).await
    }

    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage> {
        let schedule = schedule.clone();
        self.reader_pool
            .read_snapshot(move |overlay, store_state| {
                audit_and_fires::list_fires(overlay, store_state, &schedule, before, limit)
            })
            .await
    }

    fn emit_refusal_reason(&self) -> Option<String> {
        self.health.emit_refusal_reason()
    }

    fn storage_warnings(&self) -> Vec<String> {
        self.health.warnings()
    }

    fn close(&self) {
        self.background_jobs.abort_all();
        self.reader_pool.close();
    }
}
