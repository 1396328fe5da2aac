//! Active and archived tasks.

use pointsman_core::store::NodeId;
use pointsman_core::task::{LogLine, Task};
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{
    ActiveTaskRow, ArchivedTaskRow, AttemptRow, HandlerId, LaneHead, QueueId, SyncGatedTask, TaskPhase,
    WaitingTask,
};

use super::PgTables;
use super::cache::{decode_optional_lane_head, decode_waiting_task};
use super::lane_cache::MAX_CACHED_TASKS_PER_LANE;
use crate::rows::{decode_active_task, decode_archived_task, read_column, read_phase, read_time};
use crate::session::query;
use crate::writer_connection::params;

impl PgTables {
    pub(super) fn find_active_task(&self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        let written = self.write_batch.borrow().find_task(seq);
        match written {
            Some(task) => Ok(task),
            None => self
                .query_optional(query!("write/task", INT8), params![seq.0], |row| decode_active_task(row, 0)),
        }
    }

    /// Adds the lane of a task to the invalidation record.
    fn invalidate_lane_of_task(&self, task_row: &ActiveTaskRow) {
        if let Some(lane) = task_row.lane {
            self.invalidation_builder.add_changed_lane(lane);
        }
    }

    /// Adds the lane of a task of which only the number is known to the invalidation record, and returns the lane. If
    /// it is not cached, the record is given up.
    fn invalidate_lane_of_task_seq(&self, seq: TaskSeq) -> Option<i64> {
        let lane = self.cache.borrow().lanes.find_lane_of_task(seq);
        match lane {
            Some(lane) => self.invalidation_builder.add_changed_lane(lane),
            None => self.invalidation_builder.mark_incomplete(),
        }
        lane
    }

    /// Adds the lane of a task to the invalidation record and drops it from the cache, because cached columns have
    /// changed.
    fn drop_cached_lane_of_task(&self, seq: TaskSeq) {
        if let Some(lane) = self.invalidate_lane_of_task_seq(seq) {
            self.cache.borrow_mut().lanes.mark_lane_unknown(lane);
        }
    }

    pub(super) fn insert_active_task(&self, task_row: &ActiveTaskRow) {
        self.write_batch.borrow_mut().insert_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.borrow_mut().lanes.insert_task(task_row);
    }

    pub(super) fn delete_active_task(&self, task_row: &ActiveTaskRow) {
        self.write_batch.borrow_mut().delete_task(task_row.seq);
        self.invalidate_lane_of_task(task_row);
        self.cache.borrow_mut().lanes.remove_task(task_row.seq);
    }

    pub(super) fn set_task_phase(&self, seq: TaskSeq, phase: TaskPhase, rank: i64) {
        self.write_batch.borrow_mut().set_phase(seq, phase, rank);
        self.invalidate_lane_of_task_seq(seq);
        self.cache.borrow_mut().lanes.set_phase(seq, phase);
    }

    pub(super) fn write_task_lock(&self, task_row: &ActiveTaskRow) {
        self.write_batch.borrow_mut().lock_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.borrow_mut().lanes.insert_task(task_row);
    }

    pub(super) fn update_active_task(&self, task_row: &ActiveTaskRow) {
        self.write_batch.borrow_mut().update_task(task_row);
        self.invalidate_lane_of_task(task_row);
        self.cache.borrow_mut().lanes.insert_task(task_row);
    }

    pub(super) fn set_task_grouping(&self, task_row: &ActiveTaskRow) {
        self.write_batch.borrow_mut().set_task_grouping(task_row);
        self.invalidate_lane_of_task_seq(task_row.seq);
        self.invalidate_lane_of_task(task_row);
        self.cache.borrow_mut().lanes.insert_task(task_row);
    }

    pub(super) fn set_concurrency_group(&self, seq: TaskSeq, group: Option<i64>) {
        self.write_batch.borrow_mut().set_concurrency_group(seq, group);
        self.drop_cached_lane_of_task(seq);
    }

    pub(super) fn set_task_score(&self, seq: TaskSeq, score: i64) {
        self.write_batch.borrow_mut().set_score(seq, score);
        self.drop_cached_lane_of_task(seq);
    }

    pub(super) fn extend_lease(&self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        self.query_rows(query!("write/set_lease_until", INT8, INT8), params![seq.0, until.micros()]).map(drop)
    }

    pub(super) fn invalidate_task_on_peers(&self, seq: TaskSeq) {
        self.record_invalidation(Invalidation::Task(seq));
    }

    pub(super) fn find_lane_head(&self, lane: i64) -> TableResult<Option<LaneHead>> {
        if let Some(cached) = self.cache.borrow_mut().lanes.cached_head(lane) {
            return Ok(cached);
        }
        let query = query!("write/prefetch_lanes", INT8_ARRAY, INT8);
        let first_tasks =
            self.query_all(query, params![vec![lane], MAX_CACHED_TASKS_PER_LANE as i64], |row| {
                decode_optional_lane_head(row, 1)
            })?;
        let first_tasks: Vec<LaneHead> = first_tasks.into_iter().flatten().collect();
        let first = first_tasks.first().cloned();
        self.cache.borrow_mut().lanes.insert_lane(lane, first_tasks, MAX_CACHED_TASKS_PER_LANE);
        Ok(first)
    }

    pub(super) fn list_lane_tasks(&self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        let decode_lane_task = |row: &_| Ok((TaskSeq(read_column(row, 0)?), read_column(row, 1)?));
        self.query_all(query!("write/lane_tasks", INT8), params![lane], decode_lane_task)
    }

    pub(super) fn list_active_in_concurrency_group(
        &self,
        group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.query_all(
            query!("write/active_in_concurrency_group", INT8, INT8),
            params![group, limit],
            read_task_seq,
        )
    }

    pub(super) fn find_oldest_blocked_in_concurrency_group(
        &self,
        group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        self.query_optional(query!("write/blocked_in_concurrency_group", INT8), params![group], |row| {
            decode_waiting_task(row, 0)
        })
    }

    pub(super) fn list_first_ready_tasks_of_queues(
        &self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        if shares.is_empty() {
            return Ok(vec![]);
        }
        let (queues, shares): (Vec<i64>, Vec<i64>) = shares.iter().copied().unzip();
        let query = query!("write/ready_tasks", INT8_ARRAY, INT8_ARRAY);
        self.query_all(query, params![queues, shares], |row| decode_active_task(row, 0))
    }

    pub(super) fn list_scheduled_tasks(&self) -> TableResult<Vec<ActiveTaskRow>> {
        self.query_all(query!("write/scheduled_tasks"), vec![], |row| decode_active_task(row, 0))
    }

    pub(super) fn list_due_tasks(&self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        let params = params![now.micros(), limit as i64];
        self.query_all(query!("write/due_tasks", INT8, INT8), params, |row| decode_waiting_task(row, 0))
    }

    pub(super) fn find_earliest_due(&self) -> TableResult<Option<Timestamp>> {
        self.query_optional(query!("write/earliest_due"), vec![], |row| read_time(row, 0))
    }

    pub(super) fn list_sync_gated_tasks(&self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        self.query_all(query!("write/gated_tasks", INT8), params![event.as_i64()], |row| {
            Ok(SyncGatedTask {
                task: decode_waiting_task(row, 0)?,
                lane: read_column(row, 6)?,
                lane_position: read_column(row, 7)?,
                sync_stage: read_column(row, 8)?,
            })
        })
    }

    pub(super) fn find_unfinished_sync_task_before_stage(
        &self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>> {
        let params = params![event.as_i64(), sync_stage, only_untried];
        self.query_optional(query!("write/sync_task_before", INT8, INT8, BOOL), params, read_task_seq)
    }

    pub(super) fn list_tasks_locked_by_node(&self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        self.query_all(query!("write/locked_by_node", INT8), params![node], |row| decode_active_task(row, 0))
    }

    pub(super) fn list_expired_worker_leases(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let params = params![now.micros(), since.micros()];
        self.query_all(query!("write/expired_leases", INT8, INT8), params, |row| decode_active_task(row, 0))
    }

    pub(super) fn list_tasks_in_phases(
        &self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match phases {
            [TaskPhase::Scheduled] => {
                return self.query_all(
                    query!("write/scheduled_tasks_of_queue", INT8, INT8),
                    params![queue, limit],
                    read_task_seq,
                );
            }
            [TaskPhase::Missing] => {
                return self.query_all(
                    query!("write/missing_tasks", INT8, INT8),
                    params![queue, limit],
                    read_task_seq,
                );
            }
            _ => {}
        }
        let codes: Vec<i16> = phases.iter().map(|phase| phase.code() as i16).collect();
        let params = params![queue, codes, limit];
        self.query_all(query!("write/tasks_in_phases", INT8, INT2_ARRAY, INT8), params, read_task_seq)
    }

    pub(super) fn list_running_tasks_of_handler(
        &self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        self.query_all(
            query!("write/running_tasks", INT8, INT8),
            params![handler, limit as i64],
            read_task_seq,
        )
    }

    pub(super) fn list_tasks_to_rescore(
        &self,
        queue: QueueId,
    ) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        let decode = |row: &_| Ok((TaskSeq(read_column(row, 0)?), read_column(row, 1)?, read_time(row, 2)?));
        self.query_all(query!("write/tasks_to_score", INT8), params![queue], decode)
    }

    pub(super) fn list_tasks_to_regroup(
        &self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        let decode = |row: &_| Ok((decode_waiting_task(row, 0)?, read_phase(row, 6)?, read_column(row, 7)?));
        self.query_all(query!("write/tasks_to_regroup", INT8), params![queue], decode)
    }

    pub(super) fn count_ready_tasks_before(&self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = params![task_row.queue, task_row.score, task_row.rank, task_row.seq.0, limit];
        let query = query!("write/count_ready_tasks_before", INT8, INT8, INT8, INT8, INT8);
        let count = self.query_optional(query, params, |row| read_column::<i64>(row, 0))?;
        Ok(count.unwrap_or(0).max(0) as u64)
    }

    pub(super) fn find_archived_task(&self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        if let Some(archived_row) = self.write_batch.borrow().find_archived_task(seq) {
            return Ok(Some(archived_row.clone()));
        }
        let expired_archive_number = self.commit_version_row.borrow().expired_archive_number;
        self.query_optional(
            query!("write/archived_task", INT8, INT8),
            params![seq.0, expired_archive_number],
            |row| decode_archived_task(row, 0),
        )
    }

    pub(super) fn insert_archived_task(&self, archived_row: &ArchivedTaskRow) {
        let archive_number = {
            let mut commit_state = self.commit_version_row.borrow_mut();
            commit_state.last_archive_number += 1;
            commit_state.last_archive_number
        };
        self.write_batch.borrow_mut().insert_archived_task(archive_number, archived_row);
    }

    pub(super) fn write_attempt(&self, attempt: &AttemptRow<'_>) {
        self.write_batch.borrow_mut().insert_attempt(attempt);
    }

    pub(super) fn append_log_lines(&self, task: TaskSeq, lines: Vec<LogLine>) {
        self.write_batch.borrow_mut().add_log_lines(task, lines);
    }

    pub(super) fn delete_archived_task(&self, seq: TaskSeq) -> TableResult<()> {
        if self.write_batch.borrow_mut().delete_archived_task(seq) {
            return Ok(());
        }
        self.query_rows(query!("write/delete_archived_task", INT8), params![seq.0]).map(drop)
    }

    /// Sends the buffered writes, and reads a task with its attempts.
    pub(super) fn find_task_with_attempts(&self, seq: TaskSeq) -> TableResult<Option<Task>> {
        let commands = self.take_batch_commands()?;
        self.connection.send_commands(&commands)?;
        self.connection.run_on_session(|session| Box::pin(crate::read::find_task(session, seq)))
    }
}

fn read_task_seq(row: &tokio_postgres::Row) -> TableResult<TaskSeq> {
    read_column(row, 0).map(TaskSeq)
}
