//! Lanes and concurrency groups.

use pointsman_core::TaskSeq;
use pointsman_store::error::TableResult;
use pointsman_store::row::{LaneHead, QueueId, WaitingTask};
use pointsman_store::tables::LaneTable;

use super::PgTables;
use super::cache::{decode_optional_lane_head, decode_waiting_task};
use super::lane_cache::MAX_CACHED_TASKS_PER_LANE;
use crate::rows::{read_column, read_task_seq};
use crate::session::query;
use crate::writer_connection::params;

impl LaneTable for PgTables {
    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        if let Some(cached) = self.cache.lanes.cached_head(lane) {
            return Ok(cached);
        }
        let query = query!("task/list_lane_heads", INT8_ARRAY, INT8);
        let first_tasks = self.query_and_decode_rows(
            query,
            params![vec![lane], MAX_CACHED_TASKS_PER_LANE as i64],
            |row| decode_optional_lane_head(row, 1),
        )?;
        let first_tasks: Vec<LaneHead> = first_tasks.into_iter().flatten().collect();
        let first = first_tasks.first().cloned();
        self.cache.lanes.insert_lane(lane, first_tasks, MAX_CACHED_TASKS_PER_LANE);
        Ok(first)
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        let decode_lane_task = |row: &_| Ok((read_task_seq(row, 0)?, read_column(row, 1)?));
        self.query_and_decode_rows(query!("task/list_lane_tasks", INT8), params![lane], decode_lane_task)
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.query_and_decode_rows(
            query!("task/list_counted_tasks_of_concurrency_group", INT8, INT8),
            params![group, limit],
            |row| read_task_seq(row, 0),
        )
    }

    fn find_oldest_blocked_in_concurrency_group(&mut self, group: i64) -> TableResult<Option<WaitingTask>> {
        self.query_and_decode_first(
            query!("task/find_oldest_blocked_in_concurrency_group", INT8),
            params![group],
            |row| decode_waiting_task(row, 0),
        )
    }
}
