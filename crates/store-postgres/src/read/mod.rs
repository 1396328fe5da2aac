//! The verbs that read, each in one transaction on a connection of the pool.
//!
//! Statements whose answers do not depend on each other are sent together, so that a read costs one way there and back
//! where it can. Long lists come in chunks, each behind the last, so that a short page does not fetch a long one.

mod journal;
mod orders;
mod people;
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

pub(crate) use people::{clock, nodes};
pub(crate) use tasks::whole_task;

/// So many rows at most come in one chunk.
const CHUNK: usize = 1_000;

/// How many rows are asked for at a time: at first as many as are wanted, then more and more.
#[derive(Clone, Copy, Debug)]
struct Chunk(usize);

impl Chunk {
    fn of(wanted: usize) -> Self {
        Self(wanted.clamp(1, CHUNK))
    }

    fn rows(self) -> i64 {
        self.0 as i64
    }

    fn grown(self) -> Self {
        Self((self.0 * 4).min(CHUNK))
    }

    /// Whether there is nothing behind these rows: fewer came than were asked for, and they were not cut off because
    /// they are long. `bytes`: how many there are up to the last.
    fn is_last(self, rows: &[Row], bytes: i64) -> bool {
        rows.len() < self.0 && bytes < MOST_BYTES
    }
}

const MOST_BYTES: i64 = PAGE_BYTES as i64;

/// A limit as PostgreSQL reads it.
fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[async_trait]
impl Reads for Postgres {
    type Tables = PgTables;

    async fn extent(&self) -> Result<Extent> {
        self.pool.glance((), |session, ()| journal::extent(session).boxed()).await
    }

    async fn page(&self, read: Read) -> Result<Page> {
        self.pool.read(read, |session, read| journal::page(session, read).boxed()).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventView>> {
        self.pool.read(id, |session, id| journal::event_view(session, *id).boxed()).await
    }

    async fn object(&self, tenant: &Tenant, key: &ObjectKey, limit: usize) -> Result<Option<ObjectView>> {
        let asked = (tenant.clone(), key.clone(), limit);
        let read = self.pool.read(asked, |session, (tenant, key, limit)| {
            journal::object(session, tenant, key, *limit).boxed()
        });
        read.await
    }

    async fn read_clock(&self) -> Result<Option<Timestamp>> {
        self.pool.glance((), |session, ()| people::clock(session).boxed()).await.map(Some)
    }

    async fn nodes(&self) -> Result<Vec<NodeView>> {
        self.pool.glance((), |session, ()| people::nodes(session).boxed()).await
    }

    async fn rules(&self) -> Result<Vec<Rule>> {
        self.pool.glance((), |session, ()| people::rules(session).boxed()).await
    }

    async fn queues(&self, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
        let handler = handler.cloned();
        self.pool.read(handler, |session, handler| tasks::queues(session, handler.as_ref()).boxed()).await
    }

    async fn deeds(&self, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
        let asked = (before, limit);
        let deeds = self
            .pool
            .glance(asked, |session, (before, limit)| people::deeds(session, *before, *limit).boxed());
        deeds.await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<(Task, Extent)>> {
        let read = self.pool.read(id.clone(), |session, id| {
            async move {
                let (task, extent) =
                    try_join(tasks::task_named(session, id), journal::extent(session)).await?;
                Ok(task.map(|task| (task, extent)))
            }
            .boxed()
        });
        read.await
    }

    async fn tasks(&self, filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> Result<TaskPage> {
        let read = self.pool.read((filter, before, limit), |session, (filter, before, limit)| {
            tasks::list(session, filter, *before, *limit).boxed()
        });
        read.await
    }

    async fn lost(&self, held: Vec<(TaskSeq, i64)>) -> Result<Vec<i64>> {
        self.pool.glance(held, |session, held| tasks::lost(session, held).boxed()).await
    }

    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
        let read = self.pool.read((id.clone(), from, limit), |session, (id, from, limit)| {
            tasks::logs(session, id, *from, *limit).boxed()
        });
        read.await
    }

    async fn order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<(OrderView, Extent)>> {
        let asked = (tenant.clone(), key.clone());
        self.pool.read(asked, |session, (tenant, key)| orders::order(session, tenant, key).boxed()).await
    }

    async fn orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> Result<OrderPage> {
        let asked = (path.clone(), tenant.cloned(), after, limit);
        let read = self.pool.read(asked, |session, (path, tenant, after, limit)| {
            orders::orders(session, path, tenant.as_ref(), after.as_ref(), *limit).boxed()
        });
        read.await
    }

    async fn all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> Result<OrderPage> {
        let read = self.pool.read((path.clone(), tenant.cloned()), |session, (path, tenant)| {
            orders::all_orders(session, path, tenant.as_ref()).boxed()
        });
        read.await
    }

    async fn order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> Result<(OrderStatistics, Extent)> {
        let read = self.pool.read((path.clone(), tenant.cloned(), now), |session, (path, tenant, now)| {
            orders::statistics(session, path, tenant.as_ref(), *now).boxed()
        });
        read.await
    }

    async fn chains(&self) -> Result<(Vec<ChainView>, Extent)> {
        self.pool.read((), |session, ()| orders::chains(session).boxed()).await
    }

    async fn fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<FirePage> {
        let asked = (schedule.clone(), before, limit);
        let read = self.pool.read(asked, |session, (schedule, before, limit)| {
            people::fires(session, schedule, *before, *limit).boxed()
        });
        read.await
    }

    fn warnings(&self) -> Vec<String> {
        self.refused.warnings()
    }

    fn close(&self) {
        self.beside.stop();
        self.pool.close();
        self.units.close();
    }
}
