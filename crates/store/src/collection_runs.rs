//! Runs of sources: at most one task at a time for each pair of source and collection.

use pointsman_core::store::{
    CollectionRunError, CollectionRunReceipt, IdempotencyKey, NewCollectionRun, NoSuchCollection,
};
use pointsman_core::task::{QueueSubject, TaskCommand, TaskLifecycle};
use pointsman_core::{Priority, SourceCollection, TaskSeq, Tenant, Timestamp};

use crate::error::Result;
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
    /// Creates a task for a source's collection, or returns the existing one.
    pub(crate) fn create_collection_run(
        &mut self,
        run: &NewCollectionRun,
        planned: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<std::result::Result<CollectionRunReceipt, NoSuchCollection>> {
        let Some(pair_def) = self.find_source_collection(&run.source_collection) else {
            return Ok(Err(NoSuchCollection(run.source_collection.clone())));
        };
        let collection = run.source_collection.collection.as_str();
        let kind = QueueSubject::Collection(run.source_collection.collection.clone());
        let queue =
            self.state.get_or_create_non_event_queue(self.tables, pair_def.source, &pair_def.tenant, kind)?;
        let (seq, created) = match self.find_source_collection_task(pair_def.source, collection)? {
            Some(seq) => (seq, false),
            None => {
                let priority = run.priority.unwrap_or(pair_def.priority);
                (self.create_collection_run_task(&pair_def, queue, collection, priority, planned, now)?, true)
            }
        };
        Ok(Ok(CollectionRunReceipt {
            task: self.state.build_task_id(pair_def.source, collection, seq)?,
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
    ) -> Result<std::result::Result<CollectionRunReceipt, CollectionRunError>> {
        match self.read_recorded_answer::<CollectionRunReceipt>(idempotency)? {
            Ok(Some(answer)) => return Ok(Ok(CollectionRunReceipt { repeated: true, ..answer })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let ran = match self.create_collection_run(run, None, now)? {
            Ok(ran) => ran,
            Err(no_such_pair) => return Ok(Err(no_such_pair.into())),
        };
        self.write_idempotency_record(idempotency, &ran, now)?;
        Ok(Ok(ran))
    }

    /// Cancels the queued or running task of a source's collection.
    pub(crate) fn cancel_collection_run(
        &mut self,
        pair: &SourceCollection,
        reason: AttemptOutput<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let Some(pair_def) = self.find_source_collection(pair) else { return Ok(()) };
        if let Some(seq) = self.find_source_collection_task(pair_def.source, pair.collection.as_str())? {
            // A refusal means that the task has already ended.
            let _ = self.apply_task_command(seq, TaskCommand::Cancel, reason, now)?;
        }
        Ok(())
    }

    fn find_source_collection(&self, pair: &SourceCollection) -> Option<SourceCollectionDef> {
        let handler = self.state.find_handler(&pair.source).filter(|handler| handler.is_defined)?;
        let source = handler.def.source.as_ref()?;
        let priority = *source.collections.get(&pair.collection)?;
        Some(SourceCollectionDef { source: handler.id, tenant: source.tenant.clone(), priority })
    }

    fn create_collection_run_task(
        &mut self,
        pair_def: &SourceCollectionDef,
        queue: QueueId,
        collection: &str,
        priority: Priority,
        planned: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<TaskSeq> {
        let handler = self.state.handler(pair_def.source)?.clone();
        let track = TaskGrouping::for_source_collection(self.state.salt, pair_def.source, collection);
        let seq = self.state.allocate_task_numbers(1);
        let mut task_row = ActiveTaskRow {
            seq,
            queue,
            event: None,
            order_number: None,
            phase: TaskPhase::Blocked,
            lane: track.lane,
            lane_position: Some(seq.0),
            concurrency_group: None,
            key_bucket: None,
            is_sync: false,
            stage: 0,
            priority: priority.into(),
            score: handler.def.limits.queue_score(priority, now),
            rank: 0,
            prev_sent_event: None,
            planned_at: planned,
            created_at: now,
            started_at: None,
            error: None,
            lifecycle: TaskLifecycle::new(now, true),
        };
        if !self.is_lane_occupied(track.lane)? {
            (task_row.phase, task_row.rank) =
                self.phase_when_unblocked(&WaitingTask::from_row(&task_row, now), now)?;
        }
        self.tables.insert_active_task(&task_row)?;
        self.state.count_phase_change(queue, None, Some(task_row.phase))?;
        Ok(seq)
    }
}
