//! Active tasks.

use pointsman_core::store::NodeId;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::ActiveTaskColumns;
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueId, SyncGatedTask, TaskPhase, WaitingTask};
use pointsman_store::tables::ActiveTaskTable;
use tokio_postgres::Row;

use super::PgTables;
use super::cache::decode_waiting_task;
use crate::rows::{read_column, read_columns, read_phase, read_task_seq, read_time};
use crate::session::query;
use crate::writer_connection::params;

impl ActiveTaskTable for PgTables {
    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        let written = self.write_batch.find_task(seq);
        match written {
            Some(task) => Ok(task),
            None => self.query_and_decode_first(
                query!("task/read_active_task", INT8),
                params![seq.0],
                decode_active_task,
            ),
        }
    }

    fn insert_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()> {
        self.write_batch.insert_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.lanes.insert_task(task_row);
        Ok(())
    }

    fn delete_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()> {
        self.write_batch.delete_task(task_row.seq);
        self.invalidate_lane_of_task(task_row);
        self.cache.lanes.remove_task(task_row.seq);
        Ok(())
    }

    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> {
        self.write_batch.set_phase(seq, phase, rank);
        self.invalidate_lane_of_task_seq(seq);
        self.cache.lanes.set_phase(seq, phase);
        Ok(())
    }

    fn write_task_lock(&mut self, task_row: &ActiveTaskRow) -> TableResult<()> {
        self.write_batch.lock_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.lanes.insert_task(task_row);
        Ok(())
    }

    fn update_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()> {
        self.write_batch.update_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.lanes.insert_task(task_row);
        Ok(())
    }

    fn set_task_grouping(&mut self, task_row: &ActiveTaskRow) -> TableResult<()> {
        self.write_batch.set_task_grouping(task_row);
        self.invalidate_lane_of_task_seq(task_row.seq);
        self.invalidate_lane_of_task(task_row);
        self.cache.lanes.insert_task(task_row);
        Ok(())
    }

    fn set_concurrency_group(&mut self, seq: TaskSeq, group: Option<i64>) -> TableResult<()> {
        self.write_batch.set_concurrency_group(seq, group);
        self.drop_cached_lane_of_task(seq);
        Ok(())
    }

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()> {
        self.write_batch.set_score(seq, score);
        self.drop_cached_lane_of_task(seq);
        Ok(())
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        self.query_rows(query!("task/set_lease_end", INT8, INT8), params![seq.0, until.micros()]).map(drop)
    }

    fn invalidate_task_on_peers(&mut self, seq: TaskSeq) {
        self.record_invalidation(Invalidation::Task(seq));
    }

    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        self.query_and_decode_rows(query!("task/list_scheduled_tasks"), vec![], decode_active_task)
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        let params = params![now.micros(), limit as i64];
        self.query_and_decode_rows(query!("task/list_due_tasks", INT8, INT8), params, |row| {
            decode_waiting_task(row, 0)
        })
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        self.query_and_decode_first(query!("task/read_earliest_due_time"), vec![], |row| read_time(row, 0))
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        self.query_and_decode_rows(
            query!("task/list_sync_gated_tasks", INT8),
            params![event.as_i64()],
            |row| {
                Ok(SyncGatedTask {
                    task: decode_waiting_task(row, 0)?,
                    lane: read_column(row, 6)?,
                    lane_position: read_column(row, 7)?,
                    sync_stage: read_column(row, 8)?,
                })
            },
        )
    }

    fn list_active_tasks_of_event(&mut self, event: EventId) -> TableResult<Vec<ActiveTaskRow>> {
        let query = query!("task/list_active_tasks_of_event", INT8);
        self.query_and_decode_rows(query, params![event.as_i64()], decode_active_task)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        self.query_and_decode_rows(
            query!("task/list_tasks_locked_by_node", INT8),
            params![node],
            decode_active_task,
        )
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let params = params![now.micros(), since.micros()];
        self.query_and_decode_rows(
            query!("task/list_expired_worker_leases", INT8, INT8),
            params,
            decode_active_task,
        )
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match phases {
            [TaskPhase::Scheduled] => {
                return self.query_and_decode_rows(
                    query!("task/list_scheduled_tasks_of_queue", INT8, INT8),
                    params![queue, limit],
                    |row| read_task_seq(row, 0),
                );
            }
            [TaskPhase::Missing] => {
                return self.query_and_decode_rows(
                    query!("task/list_missing_tasks_of_queue", INT8, INT8),
                    params![queue, limit],
                    |row| read_task_seq(row, 0),
                );
            }
            _ => {}
        }
        let codes: Vec<i16> = phases.iter().map(|phase| phase.code()).collect();
        let params = params![queue, codes, limit];
        self.query_and_decode_rows(
            query!("task/list_tasks_in_phases", INT8, INT2_ARRAY, INT8),
            params,
            |row| read_task_seq(row, 0),
        )
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        self.query_and_decode_rows(
            query!("task/list_running_tasks_of_handler", INT8, INT8),
            params![handler, limit as i64],
            |row| read_task_seq(row, 0),
        )
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        let decode = |row: &_| Ok((read_task_seq(row, 0)?, read_column(row, 1)?, read_time(row, 2)?));
        self.query_and_decode_rows(query!("task/list_tasks_to_rescore", INT8), params![queue], decode)
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        let decode = |row: &_| Ok((decode_waiting_task(row, 0)?, read_phase(row, 6)?, read_column(row, 7)?));
        self.query_and_decode_rows(query!("task/list_tasks_to_regroup", INT8), params![queue], decode)
    }

    fn prefetch_task_subjects(&mut self, events: &[EventId], orders: &[i64]) -> TableResult<()> {
        if !events.is_empty() {
            self.prefetch_events(events)?;
        }
        if !orders.is_empty() {
            self.prefetch_orders(orders)?;
        }
        Ok(())
    }
}

impl PgTables {
    /// Adds the lane of a task to the invalidation record.
    fn invalidate_lane_of_task(&mut self, task_row: &ActiveTaskRow) {
        if let Some(lane) = task_row.lane {
            self.invalidation_builder.add_changed_lane(lane);
        }
    }

    /// Adds the lane of a task of which only the number is known to the invalidation record, and returns the lane. If
    /// it is not cached, the record is given up.
    fn invalidate_lane_of_task_seq(&mut self, seq: TaskSeq) -> Option<i64> {
        let lane = self.cache.lanes.find_lane_of_task(seq);
        match lane {
            Some(lane) => self.invalidation_builder.add_changed_lane(lane),
            None => self.invalidation_builder.mark_incomplete(),
        }
        lane
    }

    /// Adds the lane of a task to the invalidation record and drops it from the cache, because cached columns have
    /// changed.
    fn drop_cached_lane_of_task(&mut self, seq: TaskSeq) {
        if let Some(lane) = self.invalidate_lane_of_task_seq(seq) {
            self.cache.lanes.mark_lane_unknown(lane);
        }
    }
}

pub(super) fn decode_active_task(row: &Row) -> TableResult<ActiveTaskRow> {
    read_columns::<ActiveTaskColumns<'_>>(row, 0)?.into_row()
}
