//! Implements the core's store traits: writes go to the writer thread, reads to a [`StoreReader`].

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pointsman_core::chain::{self, ChainNodeAction, ChainPath, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::fire::Fire;
use pointsman_core::journal::{EventPage, JournalRange, PathFilter, Retention};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    AttemptLogLine, AuditEntry, ChainView, ClaimRequest, ClaimResult, CollectionRunError,
    CollectionRunReceipt, EmitBatch, EmitReceipt, EventView, FinishReceipt, FinishedAttempt, FirePage,
    FireRequest, IdempotencyError, IdempotencyKey, IdempotencyRecord, Journal, JournalQuery, LogPage,
    NewCollectionRun, NodeCapabilities, NodeId, NodeView, ObjectView, OrderBatch, OrderBatchError,
    OrderBatchReceipt, OrderCommand, OrderCursor, OrderError, OrderPage, OrderView, Orders, PruneReport,
    QueueView, Registration, Registry, ReplayReport, RescueOptions, RescueReport, ScheduleDef,
    ScheduleProgress, Schedules, Store, StoreError, StoreListener, StoreResult, TaskFilter, TaskPage,
    TaskQueue, Tasks,
};
use pointsman_core::task::gates::Gate;
use pointsman_core::task::{Task, TaskCommand, TaskCommandError, TaskSeq};
use pointsman_core::{
    EventId, HandlerName, ObjectKey, Rule, RuleKind, RuleScope, ScheduleName, TaskId, Tenant, Timestamp,
};

use crate::lifecycle::AttemptOutput;
use crate::read_set::{
    add_emit_batches_to_read_set, add_finished_attempts_to_read_set, add_fire_requests_to_read_set,
};
use crate::registry::MAX_ADOPTED_PER_TRANSACTION;
use crate::store_reader::StoreReader;
use crate::writer::{JobPosition, JobRequest, Writer};

/// A store over a database backend: writes go to the writer thread, reads to `R`. Cloning is cheap, and all clones are
/// the same store.
pub struct BackendStore<R: StoreReader> {
    writer: Writer<R::Tables>,
    reader: R,
}

impl<R: StoreReader> BackendStore<R> {
    pub fn new(writer: Writer<R::Tables>, reader: R) -> Self {
        Self { writer, reader }
    }

    pub fn writer(&self) -> &Writer<R::Tables> {
        &self.writer
    }

    /// Returns what the database offers beyond the store traits, such as units of work.
    pub fn database(&self) -> &R {
        &self.reader
    }

    /// Fails if the store takes no new events and orders now, because it is full. Called before they are accepted.
    fn check_accepts_new_work(&self) -> StoreResult<()> {
        self.reader.emit_refusal_reason().map_or(Ok(()), |reason| Err(StoreError::Full(reason)))
    }

    /// Re-evaluates all orders whose chains have changed, batch by batch.
    async fn reevaluate_orders_of_changed_chains(&self, now: Timestamp) -> StoreResult<()> {
        while self.writer.run_in_transaction(move |txn| txn.reevaluate_order_batch(now)).await? {}
        Ok(())
    }
}

impl<R: StoreReader> Clone for BackendStore<R> {
    fn clone(&self) -> Self {
        Self { writer: self.writer.clone(), reader: self.reader.clone() }
    }
}

impl<R: StoreReader> fmt::Debug for BackendStore<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackendStore")
    }
}

impl<R: StoreReader> Store for BackendStore<R> {
    fn add_listener(&self, listener: Arc<dyn StoreListener>) {
        self.writer.add_listener(listener);
    }

    fn describe_write_problem(&self) -> Option<String> {
        self.writer.status().describe_write_problem(Instant::now())
    }

    fn health_warnings(&self) -> Vec<String> {
        self.reader.storage_warnings()
    }

    fn close(&self) {
        // The writer closes last, because closing the reader may still write.
        self.reader.close();
        self.writer.close();
    }
}

#[async_trait]
impl<R: StoreReader> Journal for BackendStore<R> {
    async fn append(
        &self,
        batches: Vec<EmitBatch>,
        claim: Option<ClaimRequest>,
        now: Timestamp,
    ) -> StoreResult<(Vec<Result<EmitReceipt, IdempotencyError>>, ClaimResult)> {
        self.check_accepts_new_work()?;
        let request = JobRequest {
            position: JobPosition::First,
            input: (batches, claim),
            add_to_read_set: add_emit_batches_to_read_set,
        };
        self.writer
            .run_job(request, move |txn, (batches, claim)| {
                let mut slots =
                    txn.prepare_claim(claim, batches.iter().flat_map(|batch| &batch.events), now)?;
                let receipts = batches.into_iter().map(|batch| txn.append_emit_batch(batch, &mut slots, now));
                let receipts = receipts.collect::<crate::error::TableResult<_>>()?;
                Ok((receipts, txn.claim_tasks(slots, now)?))
            })
            .await
    }

    async fn find_idempotent_response(
        &self,
        idempotency: IdempotencyKey,
    ) -> StoreResult<Result<Option<String>, IdempotencyError>> {
        self.writer.run_in_transaction(move |txn| txn.read_recorded_answer_text(&idempotency)).await
    }

    async fn record_idempotent_response(
        &self,
        idempotency: IdempotencyKey,
        answer: String,
        now: Timestamp,
    ) -> StoreResult<Result<IdempotencyRecord, IdempotencyError>> {
        self.writer
            .run_in_transaction(move |txn| txn.write_idempotency_record_if_absent(&idempotency, answer, now))
            .await
    }

    async fn publish_engine_events(&self, events: Vec<EngineEvent>, now: Timestamp) -> StoreResult<()> {
        self.writer
            .run_in_transaction(move |txn| {
                events.iter().try_for_each(|event| txn.publish_engine_event(event, now))
            })
            .await
    }

    async fn read_journal_range(&self) -> StoreResult<JournalRange> {
        self.reader.read_journal_range().await
    }

    async fn read_events(&self, query: JournalQuery) -> StoreResult<EventPage> {
        self.reader.read_events(query).await
    }

    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>> {
        self.reader.read_event(id).await
    }

    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>> {
        self.reader.read_object(tenant, key, limit).await
    }

    async fn prune_events_tasks_and_objects(
        &self,
        journal: Retention,
        history: Retention,
        objects: Duration,
        now: Timestamp,
    ) -> StoreResult<PruneReport> {
        self.writer.run_in_transaction(move |txn| txn.prune_store_batch(journal, history, objects, now)).await
    }
}

#[async_trait]
impl<R: StoreReader> TaskQueue for BackendStore<R> {
    async fn schedule_tasks_ahead(&self, target_count: usize, now: Timestamp) -> StoreResult<usize> {
        self.writer.run_in_transaction(move |txn| txn.schedule_tasks_ahead(target_count, now)).await
    }

    async fn claim_tasks(&self, claim: ClaimRequest, now: Timestamp) -> StoreResult<ClaimResult> {
        self.writer
            .run_in_transaction(move |txn| {
                let slots = txn.prepare_claim(Some(claim), std::iter::empty(), now)?;
                txn.claim_tasks(slots, now)
            })
            .await
    }

    async fn finish_attempts(
        &self,
        attempts: Vec<FinishedAttempt>,
        claim: Option<ClaimRequest>,
        now: Timestamp,
    ) -> StoreResult<(Vec<Result<FinishReceipt, TaskCommandError>>, ClaimResult)> {
        let request = JobRequest {
            position: JobPosition::Last,
            input: (attempts, claim),
            add_to_read_set: add_finished_attempts_to_read_set,
        };
        self.writer
            .run_job(request, move |txn, (attempts, claim)| {
                let mut slots = txn.prepare_claim(
                    claim,
                    attempts.iter().flat_map(|attempt| &attempt.emitted_events),
                    now,
                )?;
                let receipts =
                    attempts.into_iter().map(|attempt| txn.finish_attempt(attempt, &mut slots, now));
                let receipts = receipts.collect::<crate::error::TableResult<_>>()?;
                Ok((receipts, txn.claim_tasks(slots, now)?))
            })
            .await
    }

    async fn append_log_lines(&self, lines: Vec<AttemptLogLine>) -> StoreResult<usize> {
        self.writer.run_in_transaction(move |txn| txn.append_running_attempt_logs(lines)).await
    }

    async fn renew_pull_worker_lease(
        &self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> StoreResult<Result<(), TaskCommandError>> {
        self.writer.run_in_transaction(move |txn| txn.renew_lease(task, fence, until)).await
    }

    async fn find_lost_attempts(&self, leases: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>> {
        match leases.is_empty() {
            true => Ok(vec![]),
            false => self.reader.find_lost_attempts(leases).await,
        }
    }

    async fn run_collection(
        &self,
        run: NewCollectionRun,
        idempotency: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> StoreResult<Result<CollectionRunReceipt, CollectionRunError>> {
        self.writer
            .run_in_transaction(move |txn| {
                txn.create_requested_collection_run(&run, idempotency.as_ref(), now)
            })
            .await
    }

    async fn rescue_tasks(&self, sweep: RescueOptions, now: Timestamp) -> StoreResult<RescueReport> {
        let (report, has_expired_registrations) = self
            .writer
            .run_in_transaction(move |txn| {
                let has_expired_registrations = sweep.mark_missing && txn.expire_registrations(now)?;
                Ok((txn.rescue_tasks(sweep, now)?, has_expired_registrations))
            })
            .await?;
        if has_expired_registrations {
            self.reevaluate_orders_of_changed_chains(now).await?;
        }
        Ok(report)
    }
}

#[async_trait]
impl<R: StoreReader> Registry for BackendStore<R> {
    async fn register_definitions(&self, registration: Registration, now: Timestamp) -> StoreResult<()> {
        self.writer.run_in_transaction(move |txn| txn.register_definitions(registration, now)).await?;
        self.reevaluate_orders_of_changed_chains(now).await
    }

    async fn read_merged_registration(&self) -> StoreResult<Registration> {
        self.writer.run_in_transaction(|txn| txn.merged_registration()).await
    }

    async fn list_registration_names(&self) -> StoreResult<Vec<String>> {
        self.writer.run_in_transaction(|txn| txn.list_registration_names()).await
    }

    async fn join_node(&self, name: &str, now: Timestamp) -> StoreResult<NodeId> {
        let name = name.to_string();
        self.writer.run_in_transaction(move |txn| txn.join_node(&name, now)).await
    }

    async fn store_node_capabilities(&self, node: NodeId, capabilities: NodeCapabilities) -> StoreResult<()> {
        self.writer.run_in_transaction(move |txn| txn.write_node_capabilities(node, &capabilities)).await
    }

    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>> {
        self.reader.list_nodes().await
    }

    async fn read_store_server_clock(&self) -> StoreResult<Option<Timestamp>> {
        self.reader.read_server_clock().await
    }

    async fn record_heartbeat(&self, node: NodeId, now: Timestamp) -> StoreResult<bool> {
        self.writer.run_in_transaction(move |txn| txn.record_heartbeat(node, now)).await
    }

    async fn remove_node(&self, node: NodeId, now: Timestamp) -> StoreResult<()> {
        self.writer.run_in_transaction(move |txn| txn.remove_node(node, now)).await
    }

    async fn set_rule(&self, rule: Rule) -> StoreResult<()> {
        self.writer.run_in_transaction(move |txn| txn.add_rule(rule)).await
    }

    async fn lift_rule(
        &self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> StoreResult<bool> {
        let (scope, tenant) = (scope.clone(), tenant.cloned());
        self.writer.run_in_transaction(move |txn| txn.remove_rule(kind, &scope, tenant.as_ref())).await
    }

    async fn list_rules(&self) -> StoreResult<Vec<Rule>> {
        self.reader.list_rules().await
    }

    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>> {
        self.reader.list_queues(handler).await
    }

    async fn append_audit_entry(&self, entry: AuditEntry) -> StoreResult<()> {
        self.writer.run_in_transaction(move |txn| txn.record_audit_entry(&entry)).await
    }

    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>> {
        self.reader.list_audit_entries(before, limit).await
    }
}

#[async_trait]
impl<R: StoreReader> Tasks for BackendStore<R> {
    async fn read_task(&self, id: &TaskId) -> StoreResult<Option<(Task, JournalRange)>> {
        self.reader.read_task(id).await
    }

    async fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> StoreResult<TaskPage> {
        self.reader.list_tasks(filter, before, limit).await
    }

    async fn read_logs(&self, id: &TaskId, from: u64, limit: usize) -> StoreResult<Option<LogPage>> {
        self.reader.read_logs(id, from, limit).await
    }

    async fn explain_waiting(&self, id: &TaskId, now: Timestamp) -> StoreResult<Option<Vec<Gate>>> {
        let id = id.clone();
        self.writer.run_in_transaction(move |txn| txn.explain_waiting(&id, now)).await
    }

    async fn retry_tasks(
        &self,
        tasks: Vec<TaskSeq>,
        now: Timestamp,
    ) -> StoreResult<Vec<Result<(), TaskCommandError>>> {
        self.writer
            .run_in_transaction(move |txn| {
                let retry_task = |task| {
                    Ok(txn
                        .apply_task_command(task, TaskCommand::Retry, AttemptOutput::default(), now)?
                        .map(|_| ()))
                };
                tasks.into_iter().map(retry_task).collect()
            })
            .await
    }

    async fn cancel_task(&self, id: &TaskId, now: Timestamp) -> StoreResult<Result<(), TaskCommandError>> {
        let id = id.clone();
        self.writer
            .run_in_transaction(move |txn| match txn.find_task_by_id(&id)? {
                Some(task) => Ok(txn
                    .apply_task_command(task.seq, TaskCommand::Cancel, AttemptOutput::default(), now)?
                    .map(|_| ())),
                None => Ok(Err(TaskCommandError::NoSuchTask)),
            })
            .await
    }

    async fn adopt_missing_tasks(&self, handler: &HandlerName, now: Timestamp) -> StoreResult<u64> {
        // Each batch is one transaction, so that emits do not wait until the whole backlog is adopted.
        let mut adopted = 0;
        loop {
            let handler = handler.clone();
            let batch =
                self.writer.run_in_transaction(move |txn| txn.adopt_missing_tasks(&handler, now)).await?;
            adopted += batch;
            if batch < MAX_ADOPTED_PER_TRANSACTION as u64 {
                return Ok(adopted);
            }
        }
    }

    async fn replay_events(
        &self,
        handler: &HandlerName,
        from: EventId,
        now: Timestamp,
    ) -> StoreResult<ReplayReport> {
        let handler = handler.clone();
        self.writer.run_in_transaction(move |txn| txn.replay_missed_events(&handler, from, now)).await
    }
}

#[async_trait]
impl<R: StoreReader> Schedules for BackendStore<R> {
    async fn register_schedules(
        &self,
        schedules: Vec<ScheduleDef>,
        now: Timestamp,
    ) -> StoreResult<Vec<ScheduleProgress>> {
        self.writer.run_in_transaction(move |txn| txn.register_schedules(schedules, now)).await
    }

    async fn execute_fire_requests(
        &self,
        requests: Vec<FireRequest>,
        now: Timestamp,
    ) -> StoreResult<Vec<(Fire, bool)>> {
        let request = JobRequest {
            position: JobPosition::Last,
            input: requests,
            add_to_read_set: add_fire_requests_to_read_set,
        };
        self.writer.run_job(request, move |txn, requests| txn.process_fire_requests(requests, now)).await
    }

    async fn mark_caught_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> StoreResult<()> {
        let schedule = schedule.clone();
        self.writer.run_in_transaction(move |txn| txn.advance_catch_up(&schedule, up_to)).await
    }

    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage> {
        self.reader.list_fires(schedule, before, limit).await
    }
}

#[async_trait]
impl<R: StoreReader> Orders for BackendStore<R> {
    async fn add_orders(
        &self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> StoreResult<Result<OrderBatchReceipt, OrderBatchError>> {
        self.check_accepts_new_work()?;
        self.writer.run_in_transaction(move |txn| txn.add_orders(batch, now)).await
    }

    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>> {
        self.reader.read_order(tenant, key).await
    }

    async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> StoreResult<OrderPage> {
        self.reader.list_orders(path, tenant, after, limit).await
    }

    async fn list_all_orders_without_values(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
    ) -> StoreResult<OrderPage> {
        self.reader.list_all_orders(path, tenant).await
    }

    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)> {
        self.reader.read_order_statistics(path, tenant, now).await
    }

    async fn apply_order_command(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.writer.run_in_transaction(move |txn| txn.apply_order_command(&tenant, &key, command, now)).await
    }

    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)> {
        self.reader.list_chains().await
    }

    async fn set_chain_stopped(
        &self,
        chain: &ChainPath,
        stopped: bool,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>> {
        let chain = chain.clone();
        let result =
            self.writer.run_in_transaction(move |txn| txn.set_chain_stopped(&chain, stopped, now)).await?;
        self.reevaluate_orders_of_changed_chains(now).await?;
        Ok(result)
    }

    async fn set_chain_node_action(
        &self,
        chain: &ChainPath,
        node: &chain::ChainNodeId,
        action: ChainNodeAction,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>> {
        let (chain, node) = (chain.clone(), node.clone());
        let result = self
            .writer
            .run_in_transaction(move |txn| txn.set_chain_node_action(&chain, &node, action, now))
            .await?;
        self.reevaluate_orders_of_changed_chains(now).await?;
        Ok(result)
    }
}
