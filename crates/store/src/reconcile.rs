//! Reconciles waiting tasks with a changed registration. This is rare, and its cost is proportional to the backlog.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_core::{LaneOrdering, ObjectKey, Priority, TaskSeq, Timestamp};

use crate::error::{Fault, TableResult};
use crate::lanes::TaskGrouping;
use crate::row::{ActiveTaskRow, QueueId, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

impl<T: Tables> Txn<'_, T> {
    /// Reconciles the waiting tasks of handlers with their new definitions: unschedules those of handlers that are
    /// pulled or undefined now, and regroups those of handlers whose limit per key has changed.
    pub(crate) fn reconcile_tasks_of_handlers(
        &mut self,
        handlers_before: &[Arc<RegisteredHandler>],
        now: Timestamp,
    ) -> TableResult<()> {
        for old in handlers_before {
            let new = self.state.handler(old.id)?.clone();
            let queues = self.state.iter_queues().filter(|queue| queue.handler == new.id);
            let queues: Vec<QueueId> = queues.map(|queue| queue.id).collect();
            for queue in queues {
                if new.def.pull || !new.is_defined {
                    self.unschedule_queue_tasks(queue, now)?;
                }
                let limits_per_key = [&old.def, &new.def].map(|def| def.limits.concurrency_per_key);
                if limits_per_key[0] != limits_per_key[1] && new.def.ordering == LaneOrdering::None {
                    self.apply_concurrency_per_key_to_queue(queue, &new, now)?;
                }
            }
        }
        Ok(())
    }

    /// Recomputes the scores of the tasks of handlers whose ageing has changed.
    pub(crate) fn rescore_tasks_after_ageing_change(
        &mut self,
        handlers_before: &[Arc<RegisteredHandler>],
    ) -> TableResult<()> {
        for old in handlers_before {
            let new = self.state.handler(old.id)?.clone();
            if new.def.limits.ageing_interval != old.def.limits.ageing_interval {
                let queues = self.state.iter_queues().filter(|queue| queue.handler == new.id);
                let queues: Vec<QueueId> = queues.map(|queue| queue.id).collect();
                for queue in queues {
                    self.rescore_queue_tasks(queue, &new)?;
                    self.state.reload_collection_task_rank(self.tables, queue)?;
                }
            }
        }
        Ok(())
    }

    fn rescore_queue_tasks(&mut self, queue: QueueId, handler: &RegisteredHandler) -> TableResult<()> {
        for (seq, priority, created_at) in self.tables.list_tasks_to_rescore(queue)? {
            let priority = Priority::try_from(priority).map_err(Fault::damaged)?;
            self.tables.set_task_score(seq, handler.def.limits.task_score_in_queue(priority, created_at))?;
        }
        Ok(())
    }

    /// Applies a new limit per key to the tasks of a queue: running tasks count first, then the oldest get the
    /// remaining slots.
    fn apply_concurrency_per_key_to_queue(
        &mut self,
        queue: QueueId,
        handler: &RegisteredHandler,
        now: Timestamp,
    ) -> TableResult<()> {
        let limit = handler.def.limits.concurrency_per_key.map_or(usize::MAX, |limit| limit as usize);
        let tenant = self.state.queue(queue)?.tenant.clone();
        let mut counts_by_key: HashMap<String, usize> = HashMap::new();
        for (mut waiting, phase, key) in self.tables.list_tasks_to_regroup(queue)? {
            let object = self.read_object_number(&tenant, Some(&key))?;
            waiting.concurrency_group =
                TaskGrouping::for_object(self.state.hash_salt, handler, object).concurrency_group;
            self.tables.set_concurrency_group(waiting.seq, waiting.concurrency_group)?;
            let count = counts_by_key.entry(key).or_default();
            match phase {
                TaskPhase::Scheduled | TaskPhase::Locked => *count += 1,
                TaskPhase::Ready | TaskPhase::BlockedByTask if *count < limit => {
                    *count += 1;
                    if phase == TaskPhase::BlockedByTask {
                        self.change_task_phase(&waiting, phase, TaskPhase::Ready)?;
                    }
                }
                TaskPhase::Ready => self.change_task_phase(&waiting, phase, TaskPhase::BlockedByTask)?,
                TaskPhase::BlockedByTask
                | TaskPhase::SyncGated
                | TaskPhase::Delayed
                | TaskPhase::Halted
                | TaskPhase::Missing => {}
            }
        }
        // The cached rows of running tasks get their new concurrency group too; tasks in a lane keep their lane.
        let is_in_queue = |task_row: &ActiveTaskRow| task_row.queue == queue && task_row.lane.is_none();
        let running_tasks = self.state.running_tasks.iter().filter(|(_, running)| is_in_queue(&running.row));
        let keys: Vec<(TaskSeq, Option<ObjectKey>)> =
            running_tasks.map(|(seq, running)| (*seq, running.subject.key().cloned())).collect();
        for (seq, key) in keys {
            let object = self.read_object_number(&tenant, key.as_ref().map(|key| key.as_str()))?;
            let grouping = TaskGrouping::for_object(self.state.hash_salt, handler, object);
            if let Some(running) = self.state.running_tasks.get_mut(&seq) {
                running.row.concurrency_group = grouping.concurrency_group;
            }
        }
        self.state.refresh_handler_free_slots(handler.id, now)
    }

    fn change_task_phase(
        &mut self,
        waiting: &WaitingTask,
        from: TaskPhase,
        to: TaskPhase,
    ) -> TableResult<()> {
        let rank = match to {
            TaskPhase::Ready => {
                self.state.assign_task_rank(self.tables, waiting.queue, waiting.score, waiting.key_bucket)?
            }
            _ => 0,
        };
        self.tables.set_task_phase(waiting.seq, to, rank)?;
        self.state.update_counts_for_phase_change(waiting.queue, Some(from), Some(to))
    }
}
