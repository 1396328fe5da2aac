//! The store traits, each verb handed to the writer or to a reader.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::journal::{Extent, Page, Retention};
use pointsman_core::store::{
    Claim, Claims, Emission, Ending, EventView, Finished, Journal, Listener, LogPage, NewLogLine, NodeId,
    ObjectView, Pruned, Queue, QueueView, Read, Receipt, Refused, Registration, Registry, Rescued, Result,
    Store, TaskFilter, TaskPage, Tasks,
};
use pointsman_core::task::{Command, Rejected, Task, TaskSeq};
use pointsman_core::{EventId, HandlerName, ObjectKey, Rule, RuleKind, TaskId, Tenant, Timestamp};

use crate::life::Remains;
use crate::readers::Readers;
use crate::registry::ADOPTED_AT_ONCE;
use crate::{SqliteStore, read_journal, read_tasks, registry};

impl Store for SqliteStore {
    fn listen(&self, listener: Arc<dyn Listener>) {
        self.writer.listen(listener);
    }

    fn close(&self) {
        // The writer goes last: only a connection that may write can fold the log back into the file.
        if let Readers::Pool(pool) = &self.readers {
            pool.close();
        }
        self.writer.close();
    }
}

#[async_trait]
impl Journal for SqliteStore {
    async fn append(
        &self,
        emissions: Vec<Emission>,
        claim: Option<Claim>,
        now: Timestamp,
    ) -> Result<(Vec<std::result::Result<Receipt, Refused>>, Claims)> {
        self.writer
            .run(move |txn| {
                let mut room = txn.room(claim, emissions.iter().flat_map(|e| &e.events), now)?;
                let receipts = emissions.into_iter().map(|emission| txn.append(emission, &mut room, now));
                let receipts = receipts.collect::<crate::error::Result<_>>()?;
                Ok((receipts, txn.claim(room, now)?))
            })
            .await
    }

    async fn extent(&self) -> Result<Extent> {
        self.readers.run(read_journal::extent).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        self.readers.run(move |conn| read_journal::page(conn, &read)).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventView>> {
        self.readers.run(move |conn| read_journal::event_view(conn, id)).await
    }

    async fn object(&self, tenant: &Tenant, key: &ObjectKey, limit: usize) -> Result<Option<ObjectView>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.readers.run(move |conn| read_journal::object(conn, &tenant, &key, limit)).await
    }

    async fn prune(&self, journal: Retention, history: Retention, now: Timestamp) -> Result<Pruned> {
        self.writer.run(move |txn| txn.prune(journal, history, now)).await
    }
}

#[async_trait]
impl Queue for SqliteStore {
    async fn schedule(&self, ahead: usize, now: Timestamp) -> Result<usize> {
        self.writer.run(move |txn| txn.schedule(ahead, now)).await
    }

    async fn claim(&self, claim: Claim, now: Timestamp) -> Result<Claims> {
        self.writer
            .run(move |txn| {
                let room = txn.room(Some(claim), std::iter::empty(), now)?;
                txn.claim(room, now)
            })
            .await
    }

    async fn finish(
        &self,
        endings: Vec<Ending>,
        claim: Option<Claim>,
        now: Timestamp,
    ) -> Result<(Vec<std::result::Result<Finished, Rejected>>, Claims)> {
        self.writer
            .run(move |txn| {
                let mut room = txn.room(claim, endings.iter().flat_map(|e| &e.emits), now)?;
                let finished = endings.into_iter().map(|ending| txn.finish(ending, &mut room, now));
                let finished = finished.collect::<crate::error::Result<_>>()?;
                Ok((finished, txn.claim(room, now)?))
            })
            .await
    }

    async fn log(&self, lines: Vec<NewLogLine>) -> Result<()> {
        self.writer.run(move |txn| txn.log(lines)).await
    }

    async fn rescue(&self, lease: Duration, now: Timestamp) -> Result<Rescued> {
        self.writer.run(move |txn| txn.rescue(lease, now)).await
    }
}

#[async_trait]
impl Registry for SqliteStore {
    async fn register(&self, registration: Registration, _now: Timestamp) -> Result<()> {
        self.writer.run(move |txn| txn.register(&registration)).await
    }

    async fn registration(&self) -> Result<Registration> {
        self.writer.run(|txn| Ok(txn.registration())).await
    }

    async fn join(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        let name = name.to_string();
        self.writer.run(move |txn| txn.join(&name, now)).await
    }

    async fn heartbeat(&self, node: NodeId, now: Timestamp) -> Result<bool> {
        self.writer.run(move |txn| txn.heartbeat(node, now)).await
    }

    async fn leave(&self, node: NodeId, now: Timestamp) -> Result<()> {
        self.writer.run(move |txn| txn.leave(node, now)).await
    }

    async fn hold(&self, rule: Rule) -> Result<()> {
        self.writer.run(move |txn| txn.hold(rule)).await
    }

    async fn release(&self, kind: RuleKind, handler: &HandlerName, tenant: Option<&Tenant>) -> Result<bool> {
        let (handler, tenant) = (handler.clone(), tenant.cloned());
        self.writer.run(move |txn| txn.release(kind, &handler, tenant.as_ref())).await
    }

    async fn rules(&self) -> Result<Vec<Rule>> {
        self.readers.run(registry::read_rules).await
    }

    async fn queues(&self) -> Result<Vec<QueueView>> {
        self.readers.run(read_tasks::queues).await
    }
}

#[async_trait]
impl Tasks for SqliteStore {
    async fn task(&self, id: &TaskId) -> Result<Option<(Task, Extent)>> {
        let id = id.clone();
        self.readers
            .run(move |conn| {
                let extent = read_journal::extent(conn)?;
                Ok(read_tasks::task_named(conn, &id)?.map(|task| (task, extent)))
            })
            .await
    }

    async fn tasks(&self, filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> Result<TaskPage> {
        self.readers.run(move |conn| read_tasks::tasks(conn, &filter, before, limit)).await
    }

    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
        let id = id.clone();
        self.readers.run(move |conn| read_tasks::logs(conn, &id, from, limit)).await
    }

    async fn retry(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>> {
        steer(self, id, Command::Retry, now).await
    }

    async fn cancel(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>> {
        steer(self, id, Command::Cancel, now).await
    }

    async fn adopt(&self, handler: &HandlerName, now: Timestamp) -> Result<u64> {
        // In pieces, so that nobody who emits waits behind a whole backlog.
        let mut adopted = 0;
        loop {
            let handler = handler.clone();
            let piece = self.writer.run(move |txn| txn.adopt(&handler, now)).await?;
            adopted += piece;
            if piece < ADOPTED_AT_ONCE {
                return Ok(adopted);
            }
        }
    }
}

/// What a person does to one task.
async fn steer(
    store: &SqliteStore,
    id: &TaskId,
    command: Command,
    now: Timestamp,
) -> Result<std::result::Result<(), Rejected>> {
    let id = id.clone();
    store
        .writer
        .run(move |txn| match read_tasks::task_named(txn.conn, &id)? {
            Some(task) => Ok(txn.command(task.seq, command, Remains::default(), now)?.map(|_| ())),
            None => Ok(Err(Rejected::NoSuchTask)),
        })
        .await
}
