//! The store traits, each verb handed to the writer or to a reader.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::chain::{self, Action, ChainPath, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::fire::Fire;
use pointsman_core::journal::{Extent, Page, PathFilter, Retention};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    Abilities, Added, ChainView, Claim, Claims, Deed, Emission, Ending, EventView, Finished, FirePage,
    Firing, Journal, Listener, LogPage, NewLogLine, NewOrder, NewRun, NoSuchPair, NodeId, NodeView,
    ObjectView, OrderCommand, OrderPage, OrderRefused, OrderView, Orders, Plan, Pruned, Queue, QueueView,
    Read, Receipt, Refused, Registration, Registry, Replayed, Rescued, Result, RunTask, Schedules, Standing,
    Store, Sweep, TaskFilter, TaskPage, Tasks,
};
use pointsman_core::task::why::Gate;
use pointsman_core::task::{Command, Rejected, Task, TaskSeq};
use pointsman_core::{
    EventId, HandlerName, ObjectKey, Place, Rule, RuleKind, ScheduleName, TaskId, Tenant, Timestamp,
};

use crate::life::Remains;
use crate::readers::Readers;
use crate::registry::ADOPTED_AT_ONCE;
use crate::writer::Place as InGroup;
use crate::{SqliteStore, list_tasks, people, read_journal, read_orders, read_tasks, registry, schedules};

impl Store for SqliteStore {
    fn listen(&self, listener: Arc<dyn Listener>) {
        self.writer.listen(listener);
    }

    fn close(&self) {
        // The writer goes last: only a connection that may write can fold the log back into the file.
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.stop();
        }
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
            .run_at(InGroup::First, move |txn| {
                let mut room = txn.room(claim, emissions.iter().flat_map(|e| &e.events), now)?;
                let receipts = emissions.into_iter().map(|emission| txn.append(emission, &mut room, now));
                let receipts = receipts.collect::<crate::error::Result<_>>()?;
                Ok((receipts, txn.claim(room, now)?))
            })
            .await
    }

    async fn tell(&self, events: Vec<EngineEvent>, now: Timestamp) -> Result<()> {
        self.writer.run(move |txn| events.iter().try_for_each(|event| txn.tell(event, now))).await
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

    async fn log(&self, lines: Vec<NewLogLine>) -> Result<usize> {
        self.writer.run(move |txn| txn.log(lines)).await
    }

    async fn renew(
        &self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> Result<std::result::Result<(), Rejected>> {
        self.writer.run(move |txn| txn.renew(task, fence, until)).await
    }

    async fn run(&self, run: NewRun, now: Timestamp) -> Result<std::result::Result<RunTask, NoSuchPair>> {
        self.writer.run(move |txn| txn.run(&run, None, now)).await
    }

    async fn rescue(&self, sweep: Sweep, now: Timestamp) -> Result<Rescued> {
        self.writer.run(move |txn| txn.rescue(sweep, now)).await
    }
}

#[async_trait]
impl Registry for SqliteStore {
    async fn register(&self, registration: Registration, now: Timestamp) -> Result<()> {
        self.writer.run(move |txn| txn.register(&registration, now)).await?;
        self.reconsider(now).await
    }

    async fn registration(&self) -> Result<Registration> {
        self.writer.run(|txn| txn.registration()).await
    }

    async fn join(&self, name: &str, now: Timestamp) -> Result<NodeId> {
        let name = name.to_string();
        self.writer.run(move |txn| txn.join(&name, now)).await
    }

    async fn announce(&self, node: NodeId, abilities: Abilities) -> Result<()> {
        self.writer.run(move |txn| txn.announce(node, abilities)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeView>> {
        self.readers.run(people::nodes).await
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

    async fn release(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<bool> {
        let (place, tenant) = (place.clone(), tenant.cloned());
        self.writer.run(move |txn| txn.release(kind, &place, tenant.as_ref())).await
    }

    async fn rules(&self) -> Result<Vec<Rule>> {
        self.readers.run(registry::read_rules).await
    }

    async fn queues(&self, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
        let handler = handler.cloned();
        self.readers.run(move |conn| read_tasks::queues(conn, handler.as_ref())).await
    }

    async fn note(&self, deed: Deed) -> Result<()> {
        self.writer.run(move |txn| txn.note(deed)).await
    }

    async fn deeds(&self, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
        self.readers.run(move |conn| people::deeds(conn, before, limit)).await
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
        self.readers.run(move |conn| list_tasks::tasks(conn, &filter, before, limit)).await
    }

    async fn logs(&self, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
        let id = id.clone();
        self.readers.run(move |conn| read_tasks::logs(conn, &id, from, limit)).await
    }

    async fn why(&self, id: &TaskId, now: Timestamp) -> Result<Option<Vec<Gate>>> {
        let id = id.clone();
        self.writer.run(move |txn| txn.why(&id, now)).await
    }

    async fn retry(
        &self,
        tasks: Vec<TaskSeq>,
        now: Timestamp,
    ) -> Result<Vec<std::result::Result<(), Rejected>>> {
        self.writer
            .run(move |txn| {
                let again =
                    |task| Ok(txn.command(task, Command::Retry, Remains::default(), now)?.map(|_| ()));
                tasks.into_iter().map(again).collect()
            })
            .await
    }

    async fn cancel(&self, id: &TaskId, now: Timestamp) -> Result<std::result::Result<(), Rejected>> {
        let id = id.clone();
        self.writer
            .run(move |txn| match read_tasks::task_named(txn.conn, &id)? {
                Some(task) => {
                    Ok(txn.command(task.seq, Command::Cancel, Remains::default(), now)?.map(|_| ()))
                }
                None => Ok(Err(Rejected::NoSuchTask)),
            })
            .await
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

    async fn replay(&self, handler: &HandlerName, from: EventId, now: Timestamp) -> Result<Replayed> {
        let handler = handler.clone();
        self.writer.run(move |txn| txn.replay(&handler, from, now)).await
    }
}

#[async_trait]
impl Schedules for SqliteStore {
    async fn plan(&self, plans: Vec<Plan>, now: Timestamp) -> Result<Vec<Standing>> {
        self.writer.run(move |txn| txn.plan(plans, now)).await
    }

    async fn settle(&self, firings: Vec<Firing>, now: Timestamp) -> Result<Vec<(Fire, bool)>> {
        self.writer.run(move |txn| txn.settle(firings, now)).await
    }

    async fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        let schedule = schedule.clone();
        self.writer.run(move |txn| txn.made_up(&schedule, up_to)).await
    }

    async fn fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<FirePage> {
        let schedule = schedule.clone();
        self.readers.run(move |conn| schedules::fires(conn, &schedule, before, limit)).await
    }
}

impl SqliteStore {
    /// Looks at all orders again whose chains have changed.
    async fn reconsider(&self, now: Timestamp) -> Result<()> {
        while self.writer.run(move |txn| txn.reconsider_some(now)).await? {}
        Ok(())
    }
}

#[async_trait]
impl Orders for SqliteStore {
    async fn add_orders(
        &self,
        orders: Vec<NewOrder>,
        now: Timestamp,
    ) -> Result<std::result::Result<Vec<Added>, (usize, OrderRefused)>> {
        self.writer.run(move |txn| txn.add_orders(orders, now)).await
    }

    async fn order(&self, key: &OrderKey) -> Result<Option<(OrderView, Extent)>> {
        let key = key.clone();
        self.readers.run(move |conn| read_orders::order(conn, &key)).await
    }

    async fn orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderKey>,
        limit: usize,
    ) -> Result<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers
            .run(move |conn| read_orders::orders(conn, &path, tenant.as_ref(), after.as_ref(), limit))
            .await
    }

    async fn all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> Result<OrderPage> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers.run(move |conn| read_orders::all_orders(conn, &path, tenant.as_ref())).await
    }

    async fn order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> Result<(OrderStatistics, Extent)> {
        let (path, tenant) = (path.clone(), tenant.cloned());
        self.readers.run(move |conn| read_orders::statistics(conn, &path, tenant.as_ref(), now)).await
    }

    async fn steer_order(
        &self,
        key: &OrderKey,
        command: OrderCommand,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>> {
        let key = key.clone();
        self.writer.run(move |txn| txn.steer_order(&key, command, now)).await
    }

    async fn chains(&self) -> Result<(Vec<ChainView>, Extent)> {
        self.readers.run(read_orders::chains).await
    }

    async fn stop_chain(
        &self,
        chain: &ChainPath,
        stopped: bool,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>> {
        let chain = chain.clone();
        let done = self.writer.run(move |txn| txn.stop_chain(&chain, stopped, now)).await?;
        self.reconsider(now).await?;
        Ok(done)
    }

    async fn set_node(
        &self,
        chain: &ChainPath,
        node: &chain::NodeId,
        action: Action,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>> {
        let (chain, node) = (chain.clone(), node.clone());
        let done = self.writer.run(move |txn| txn.set_node(&chain, &node, action, now)).await?;
        self.reconsider(now).await?;
        Ok(done)
    }
}
