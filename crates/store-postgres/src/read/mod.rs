//! Implements the reads, each in one transaction on a connection of the pool.
//!
//! Statements that do not depend on each other are sent together, so that a read costs one round trip where possible.
//! Long lists are read in chunks, each after the last, so that a short page does not fetch a long one.

mod journal;
mod nodes_rules_audit_fires;
mod orders;
mod tasks;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::try_join;
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
use pointsman_store::views::MAX_PAGE_PAYLOAD_BYTES;
use tokio_postgres::Row;

use crate::Postgres;
use crate::tables::PgTables;

pub(crate) use nodes_rules_audit_fires::{list_nodes, read_clock};
pub(crate) use tasks::find_task;

/// Limit of rows in a chunk.
const MAX_CHUNK_ROWS: usize = 1_000;

/// The number of rows in the next chunk: at first the requested limit, then more and more.
#[derive(Clone, Copy, Debug)]
struct ChunkSize(usize);

impl ChunkSize {
    fn for_limit(limit: usize) -> Self {
        Self(limit.clamp(1, MAX_CHUNK_ROWS))
    }

    fn rows(self) -> i64 {
        self.0 as i64
    }

    fn next_larger(self) -> Self {
        Self((self.0 * 4).min(MAX_CHUNK_ROWS))
    }

    /// True if no rows follow: fewer were returned than requested, and not because of the byte limit. `bytes` is the
    /// sum of their sizes.
    fn is_last_chunk(self, rows: &[Row], bytes: i64) -> bool {
        rows.len() < self.0 && bytes < SQL_MAX_PAGE_BYTES
    }
}

/// [`MAX_PAGE_PAYLOAD_BYTES`] as a query parameter.
const SQL_MAX_PAGE_BYTES: i64 = MAX_PAGE_PAYLOAD_BYTES as i64;

/// Converts a limit to a query parameter.
fn to_sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[async_trait]
impl StoreReader for Postgres {
    type Tables = PgTables;

    async fn read_journal_range(&self) -> StoreResult<JournalRange> {
        self.session_pool
            .run_single_statement((), |session, ()| journal::read_journal_range(session).boxed())
            .await
    }

    async fn read_events(&self, read: JournalQuery) -> StoreResult<EventPage> {
        self.session_pool
            .run_read_transaction(read, |session, read| journal::read_event_page(session, read).boxed())
            .await
    }

    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>> {
        self.session_pool
            .run_read_transaction(id, |session, id| journal::read_event_view(session, *id).boxed())
            .await
    }

    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>> {
        let input = (tenant.clone(), key.clone(), limit);
        let read = self.session_pool.run_read_transaction(input, |session, (tenant, key, limit)| {
            journal::read_object_view(session, tenant, key, *limit).boxed()
        });
        read.await
    }

    async fn read_server_clock(&self) -> StoreResult<Option<Timestamp>> {
        self.session_pool
            .run_single_statement((), |session, ()| nodes_rules_audit_fires::read_clock(session).boxed())
            .await
            .map(Some)
    }

    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>> {
        self.session_pool
            .run_single_statement((), |session, ()| nodes_rules_audit_fires::list_nodes(session).boxed())
            .await
    }

    async fn list_rules(&self) -> StoreResult<Vec<Rule>> {
        self.session_pool
            .run_single_statement((), |session, ()| nodes_rules_audit_fires::list_rules(session).boxed())
            .await
    }

    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>> {
        let handler = handler.cloned();
        self.session_pool
            .run_read_transaction(handler, |session, handler| {
                tasks::list_queues(session, handler.as_ref()).boxed()
            })
            .await
    }

    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>> {
        let input = (before, limit);
        let entries = self.session_pool.run_single_statement(input, |session, (before, limit)| {
            nodes_rules_audit_fires::list_audit_entries(session, *before, *limit).boxed()
        });
        entries.await
    }

    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>> {
        let read = self.session_pool.run_read_transaction(id.clone(), |session, id| {
            async move {
                let (task, journal_range) =
                    try_join(tasks::find_task_by_id(session, id), journal::read_journal_range(session))
                        .await?;
                Ok(task.map(|task| (task, journal_range)))
            }
            .boxed()
        });
        read.await
    }

    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage> {
        let read = self.session_pool.run_read_transaction(
            (filter, before, limit),
            |session, (filter, before, limit)| {
                tasks::list_task_page(session, filter, *before, *limit).boxed()
            },
        );
        read.await
    }

    async fn find_lost_attempts(&self, leased: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>> {
        self.session_pool
            .run_single_statement(leased, |session, leased| tasks::list_lost_fences(session, leased).boxed())
            .await
    }

    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>> {
        let read = self
            .session_pool
            .run_read_transaction((id.clone(), from, limit), |session, (id, from, limit)| {
                tasks::read_log_page(session, id, *from, *limit).boxed()
            });
        read.await
    }

    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>> {
        let input = (tenant.clone(), key.clone());
        self.session_pool
            .run_read_transaction(input, |session, (tenant, key)| {
                orders::find_order(session, tenant, key).boxed()
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
        let input = (path.clone(), tenant.cloned(), after, limit);
        let read = self.session_pool.run_read_transaction(input, |session, (path, tenant, after, limit)| {
            orders::list_order_page(session, path, tenant.as_ref(), after.as_ref(), *limit).boxed()
        });
        read.await
    }

    async fn list_all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> StoreResult<OrderPage> {
        let read = self
            .session_pool
            .run_read_transaction((path.clone(), tenant.cloned()), |session, (path, tenant)| {
                orders::list_all_orders(session, path, tenant.as_ref()).boxed()
            });
        read.await
    }

    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)> {
        let read = self.session_pool.run_read_transaction(
            (path.clone(), tenant.cloned(), now),
            |session, (path, tenant, now)| {
                orders::read_order_statistics(session, path, tenant.as_ref(), *now).boxed()
            },
        );
        read.await
    }

    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)> {
        self.session_pool
            .run_read_transaction((), |session, ()| orders::list_chain_views(session).boxed())
            .await
    }

    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage> {
        let input = (schedule.clone(), before, limit);
        let read = self.session_pool.run_read_transaction(input, |session, (schedule, before, limit)| {
            nodes_rules_audit_fires::list_fires(session, schedule, *before, *limit).boxed()
        });
        read.await
    }

    fn storage_warnings(&self) -> Vec<String> {
        self.refused_row_tracker.health_warnings()
    }

    fn close(&self) {
        self.background_jobs.abort_all();
        self.session_pool.close();
        self.unit_of_work_pool.close();
    }
}
