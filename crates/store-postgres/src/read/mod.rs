//! Implements the reads, each in one transaction on a connection of the pool.
//!
//! Statements that do not depend on each other are sent together, so that a read costs one round trip where possible.
//! Long lists are read in chunks, each after the last, so that a short page does not fetch a long one.

mod journal;
mod orders;
mod registry;
mod tasks;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::try_join;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::{Extent, Page, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    ChainView, Deed, EventView, FirePage, LogPage, NodeView, ObjectView, OrderCursor, OrderPage, OrderView,
    QueueView, Read, Result, TaskFilter, TaskPage,
};
use pointsman_core::task::{Task, TaskId, TaskSeq};
use pointsman_core::{EventId, HandlerName, ObjectKey, Rule, ScheduleName, Tenant, Timestamp};
use pointsman_store::Reads;
use pointsman_store::views::PAGE_BYTES;
use tokio_postgres::Row;

use crate::Postgres;
use crate::tables::PgTables;

pub(crate) use registry::{list_nodes, read_clock};
pub(crate) use tasks::find_task;

/// Limit of rows in one chunk.
const MAX_CHUNK_ROWS: usize = 1_000;

/// The number of rows per chunk: at first as many as requested, then more and more.
#[derive(Clone, Copy, Debug)]
struct ChunkSize(usize);

impl ChunkSize {
    fn for_limit(limit: usize) -> Self {
        Self(limit.clamp(1, MAX_CHUNK_ROWS))
    }

    fn rows(self) -> i64 {
        self.0 as i64
    }

    fn grown(self) -> Self {
        Self((self.0 * 4).min(MAX_CHUNK_ROWS))
    }

    /// True if no rows follow: fewer were returned than requested, and they were not cut off by size. `bytes` is their
    /// size up to the last row.
    fn is_last(self, rows: &[Row], bytes: i64) -> bool {
        rows.len() < self.0 && bytes < MAX_PAGE_BYTES
    }
}

const MAX_PAGE_BYTES: i64 = PAGE_BYTES as i64;

/// Converts a limit to PostgreSQL's type.
fn to_sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[async_trait]
impl Reads for Postgres {
    type Tables = PgTables;

    async fn extent(&self) -> Result<Extent> {
        self.pool.read_statement((), |session, ()| journal::read_extent(session).boxed()).await
    }

    async fn page(&self, read: Read) -> Result<Page> {
        self.pool.read_transaction(read, |session, read| journal::read_page(session, read).boxed()).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventView>> {
        self.pool.read_transaction(id, |session, id| journal::event_view(session, *id).boxed()).await
    }

    async fn object(&self, tenant: &Tenant, key: &ObjectKey, limit: usize) -> Result<Option<ObjectView>> {
        let input = (tenant.clone(), key.clone(), limit);
        let read = self.pool.read_transaction(input, |session, (tenant, key, limit)| {
            journal::read_object(session, tenant, key, *limit).boxed()
        });
        read.await
    }

    async fn read_clock(&self) -> Result<Option<Timestamp>> {
        self.pool.read_statement((), |session, ()| registry::read_clock(session).boxed()).await.map(Some)
    }

    async fn nodes(&self) -> Result<Vec<NodeView>> {
        self.pool.read_statement((), |session, ()| registry::list_nodes(session).boxed()).await
    }

    async fn rules(&self) -> Result<Vec<Rule>> {
        self.pool.read_statement((), |session, ()| registry::list_rules(session).boxed()).await
    }

    async fn queues(&self, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
        let handler = handler.cloned();
        self.pool
            .read_transaction(handler, |session, handler| {
                tasks::list_queues(session, handler.as_ref()).boxed()
            })
            .await
    }

    async fn deeds(&self, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
        let input = (before, limit);
        let entries = self.pool.read_statement(input, |session, (before, limit)| {
            registry::list_audit_entries(session, *before, *limit).boxed()
        });
        entries.await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<(Task, Extent)>> {
        let read = self.pool.read_transaction(id.clone(), |session, id| {
            async move {
                let (task, extent) =
                    try_join(tasks::find_task_by_id(session, id), journal::read_extent(session)).await?;
                Ok(task.map(|task| (task, extent)))
            }
            .boxed()
        });
        read.await
    }

    async fn tasks(&self, filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> Result<TaskPage> {
        let read = self.pool.read_transaction((filter, before, limit), |session, (filter, before, limit)| {
            tasks::list_task_page(session, filter, *before, *limit).boxed()
        });
        read.await
    }

    async fn lost(&self, leased: Vec<(TaskSeq, i64)>) -> Result<Vec<i64>> {
        self.pool
            .read_statement(leased, |session, leased| tasks::list_lost_fences(session, leased).boxed())
            .await
    }

    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
        let read = self.pool.read_transaction((id.clone(), from, limit), |session, (id, from, limit)| {
            tasks::read_log_page(session, id, *from, *limit).boxed()
        });
        read.await
    }

    async fn order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<(OrderView, Extent)>> {
        let input = (tenant.clone(), key.clone());
        self.pool
            .read_transaction(input, |session, (tenant, key)| {
                orders::find_order(session, tenant, key).boxed()
            })
            .await
    }

    async fn orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> Result<OrderPage> {
        let input = (path.clone(), tenant.cloned(), after, limit);
        let read = self.pool.read_transaction(input, |session, (path, tenant, after, limit)| {
            orders::list_orders(session, path, tenant.as_ref(), after.as_ref(), *limit).boxed()
        });
        read.await
    }

    async fn all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> Result<OrderPage> {
        let read = self.pool.read_transaction((path.clone(), tenant.cloned()), |session, (path, tenant)| {
            orders::list_all_orders(session, path, tenant.as_ref()).boxed()
        });
        read.await
    }

    async fn order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> Result<(OrderStatistics, Extent)> {
        let read = self.pool.read_transaction(
            (path.clone(), tenant.cloned(), now),
            |session, (path, tenant, now)| {
                orders::read_statistics(session, path, tenant.as_ref(), *now).boxed()
            },
        );
        read.await
    }

    async fn chains(&self) -> Result<(Vec<ChainView>, Extent)> {
        self.pool.read_transaction((), |session, ()| orders::list_chain_views(session).boxed()).await
    }

    async fn fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<FirePage> {
        let input = (schedule.clone(), before, limit);
        let read = self.pool.read_transaction(input, |session, (schedule, before, limit)| {
            registry::list_fires(session, schedule, *before, *limit).boxed()
        });
        read.await
    }

    fn warnings(&self) -> Vec<String> {
        self.refused_rows.warnings()
    }

    fn close(&self) {
        self.background_jobs.stop();
        self.pool.close();
        self.units_of_work.close();
    }
}
