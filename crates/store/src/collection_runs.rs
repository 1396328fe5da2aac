//! Runs of sources: each collection of a source has at most one unfinished task.

use pointsman_core::store::{
    CollectionRunError, CollectionRunReceipt, IdempotencyKey, NewCollectionRun, NoSuchCollection,
};
use pointsman_core::task::{QueueSubject, TaskCommand, TaskLifecycle};
use pointsman_core::{Priority, SourceCollection, TaskSeq, Tenant, Timestamp};

use crate::error::TableResult;
use crate::lanes::TaskGrouping;
use crate::lifecycle::AttemptOutput;
use crate::row::{ActiveTaskRow, HandlerId, QueueId, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;

/// The registered definition of a source's collection.
struct SourceCollectionDef {
    source: HandlerId,
    tenant: Tenant,
    priority: Priority,
}

impl<T: Tables> Txn<'_, T> {
    /// Creates a task for a source's collection, unless the collection has an unfinished one; returns the task.
    pub(crate) fn get_or_create_collection_run(
        &mut self,
        run: &NewCollectionRun,
        planned_at: Option<Timestamp>,
        now: Timestamp,
    ) -> TableResult<Result<CollectionRunReceipt, NoSuchCollection>> {
        let Some(collection_def) = self.find_source_collection_def(&run.source_collection) else {
            return Ok(Err(NoSuchCollection(run.source_collection.clone())));
        };
        let collection = run.source_collection.collection.as_str();
        let subject = QueueSubject::Collection(run.source_collection.collection.clone());
        let queue = self.state.get_or_create_collection_or_chain_node_queue(
            self.tables,
            collection_def.source,
            &collection_def.tenant,
            subject,
        )?;
        let (seq, created) = match self.find_collection_task_in_lane(collection_def.source, collection)? {
            Some(seq) => (seq, false),
            None => {
                let priority = run.priority.unwrap_or(collection_def.priority);
                (
                    self.create_collection_run_task(
                        &collection_def,
                        queue,
                        collection,
                        priority,
                        planned_at,
                        now,
                    )?,
                    true,
                )
            }
        };
        Ok(Ok(CollectionRunReceipt {
            task: self.state.build_task_id(collection_def.source, collection, seq)?,
            created,
            repeated: false,
        }))
    }

    /// Creates a task for a source's collection on request. A repeat under the same idempotency key creates nothing and
    /// gets the first answer.
    pub(crate) fn create_requested_collection_run(
        &mut self,
        run: &NewCollectionRun,
        idempotency: Option<&IdempotencyKey>,
        now: Timestamp,
    ) -> TableResult<Result<CollectionRunReceipt, CollectionRunError>> {
        match self.read_recorded_answer::<CollectionRunReceipt>(idempotency)? {
            Ok(Some(receipt)) => return Ok(Ok(CollectionRunReceipt { repeated: true, ..receipt })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let receipt = match self.get_or_create_collection_run(run, None, now)? {
            Ok(receipt) => receipt,
            Err(no_such_collection) => return Ok(Err(no_such_collection.into())),
        };
        self.write_idempotency_record(idempotency, &receipt, now)?;
        Ok(Ok(receipt))
    }

    /// Cancels the task of a source's collection, queued or running, if there is one.
    pub(crate) fn cancel_collection_run(
        &mut self,
        source_collection: &SourceCollection,
        output: AttemptOutput<'_>,
        now: Timestamp,
    ) -> TableResult<()> {
        let Some(collection_def) = self.find_source_collection_def(source_collection) else { return Ok(()) };
        if let Some(seq) =
            self.find_collection_task_in_lane(collection_def.source, source_collection.collection.as_str())?
        {
            // The command is rejected if the task has already ended; then there is nothing to cancel.
            let _ = self.apply_task_command(seq, TaskCommand::Cancel, output, now)?;
        }
        Ok(())
    }

    fn find_source_collection_def(
        &self,
        source_collection: &SourceCollection,
    ) -> Option<SourceCollectionDef> {
        let handler =
            self.state.find_handler(&source_collection.source).filter(|handler| handler.is_defined)?;
        let source = handler.def.source.as_ref()?;
        let priority = *source.collections.get(&source_collection.collection)?;
        Some(SourceCollectionDef { source: handler.id, tenant: source.tenant.clone(), priority })
    }

    fn create_collection_run_task(
        &mut self,
        collection_def: &SourceCollectionDef,
        queue: QueueId,
        collection: &str,
        priority: Priority,
        planned_at: Option<Timestamp>,
        now: Timestamp,
    ) -> TableResult<TaskSeq> {
        let handler = self.state.handler(collection_def.source)?.clone();
        let grouping =
            TaskGrouping::for_source_collection(self.state.hash_salt, collection_def.source, collection);
        let seq = self.state.allocate_task_numbers(1);
        let mut task_row = ActiveTaskRow {
            seq,
            queue,
            event: None,
            order_number: None,
            phase: TaskPhase::BlockedByTask,
            lane: grouping.lane,
            lane_position: Some(seq.0),
            concurrency_group: None,
            key_bucket: None,
            is_sync: false,
            sync_stage: 0,
            priority: priority.into(),
            score: handler.def.limits.task_score_in_queue(priority, now),
            rank: 0,
            prev_sent_event: None,
            planned_at,
            created_at: now,
            started_at: None,
            error: None,
            lifecycle: TaskLifecycle::new(now, true),
        };
        if !self.is_lane_occupied(grouping.lane)? {
            (task_row.phase, task_row.rank) =
                self.phase_when_unblocked(&WaitingTask::from_row(&task_row, now), now)?;
        }
        self.tables.insert_active_task(&task_row)?;
        self.state.update_counts_for_phase_change(queue, None, Some(task_row.phase))?;
        Ok(seq)
    }
}
