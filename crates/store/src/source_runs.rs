//! Runs of sources: at most one task at a time for each pair of source and collection.

use pointsman_core::store::{Idempotency, NewRun, NoSuchPair, RunRefused, RunTask};
use pointsman_core::task::{Command, Life, QueueOf};
use pointsman_core::{Pair, Priority, TaskSeq, Tenant, Timestamp};

use crate::error::Result;
use crate::lanes::TaskGrouping;
use crate::lifecycle::AttemptOutput;
use crate::row::{ActiveTaskRow, HandlerId, QueueId, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;

/// The registered definition of a pair.
struct PairDefinition {
    source: HandlerId,
    tenant: Tenant,
    priority: Priority,
}

impl<T: Tables> Txn<'_, T> {
    /// Creates a task for a pair, or returns the existing one.
    pub(crate) fn create_run(
        &mut self,
        run: &NewRun,
        planned: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<std::result::Result<RunTask, NoSuchPair>> {
        let Some(pair_def) = self.find_pair(&run.pair) else { return Ok(Err(NoSuchPair(run.pair.clone()))) };
        let collection = run.pair.collection.as_str();
        let kind = QueueOf::Collection(run.pair.collection.clone());
        let queue = self.state.get_or_create_queue(self.tables, pair_def.source, &pair_def.tenant, kind)?;
        let (seq, created) = match self.find_pair_task(pair_def.source, collection)? {
            Some(seq) => (seq, false),
            None => {
                let priority = run.priority.unwrap_or(pair_def.priority);
                (self.create_run_task(&pair_def, queue, collection, priority, planned, now)?, true)
            }
        };
        Ok(Ok(RunTask {
            task: self.state.task_id(pair_def.source, collection, seq)?,
            created,
            repeated: false,
        }))
    }

    /// Creates a task for a pair on request. A repeat under the same idempotency key creates nothing and gets the first
    /// answer.
    pub(crate) fn create_requested_run(
        &mut self,
        run: &NewRun,
        idempotency: Option<&Idempotency>,
        now: Timestamp,
    ) -> Result<std::result::Result<RunTask, RunRefused>> {
        match self.read_recorded_answer::<RunTask>(idempotency)? {
            Ok(Some(answer)) => return Ok(Ok(RunTask { repeated: true, ..answer })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let ran = match self.create_run(run, None, now)? {
            Ok(ran) => ran,
            Err(no_such_pair) => return Ok(Err(no_such_pair.into())),
        };
        self.write_idempotency_record(idempotency, &ran, now)?;
        Ok(Ok(ran))
    }

    /// Cancels the queued or running task of a pair.
    pub(crate) fn cancel_run(
        &mut self,
        pair: &Pair,
        reason: AttemptOutput<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let Some(pair_def) = self.find_pair(pair) else { return Ok(()) };
        if let Some(seq) = self.find_pair_task(pair_def.source, pair.collection.as_str())? {
            // A refusal means that the task has already ended.
            let _ = self.apply_command(seq, Command::Cancel, reason, now)?;
        }
        Ok(())
    }

    fn find_pair(&self, pair: &Pair) -> Option<PairDefinition> {
        let handler = self.state.find_handler(&pair.source).filter(|handler| handler.is_defined)?;
        let source = handler.def.source.as_ref()?;
        let priority = *source.collections.get(&pair.collection)?;
        Some(PairDefinition { source: handler.id, tenant: source.tenant.clone(), priority })
    }

    fn create_run_task(
        &mut self,
        pair_def: &PairDefinition,
        queue: QueueId,
        collection: &str,
        priority: Priority,
        planned: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<TaskSeq> {
        let handler = self.state.handler(pair_def.source)?.clone();
        let track = TaskGrouping::for_pair(self.state.salt, pair_def.source, collection);
        let seq = self.state.allocate_task_numbers(1);
        let mut task_row = ActiveTaskRow {
            seq,
            queue,
            event: None,
            order: None,
            phase: TaskPhase::Blocked,
            lane: track.lane,
            lane_position: Some(seq.0),
            concurrency_group: None,
            key_bucket: None,
            is_sync: false,
            stage: 0,
            priority: priority.into(),
            score: handler.def.limits.score(priority, now),
            rank: 0,
            prev_sent_event: None,
            planned_at: planned,
            created_at: now,
            started_at: None,
            error: None,
            life: Life::beginning(now, true),
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
