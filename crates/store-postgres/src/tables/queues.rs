//! Queues and their ready tasks.

use pointsman_core::task::QueueSubject;
use pointsman_core::{TaskSeq, Tenant};
use pointsman_store::columns::QueueColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueCounts, QueueId, QueueRow, RankRange};
use pointsman_store::tables::QueueTable;
use tokio_postgres::Row;

use super::PgTables;
use super::active_tasks::decode_active_task;
use crate::documented_tables::canvas_id_of_tenant;
use crate::rows::{read_column, read_columns, read_key_bucket, read_task_seq};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl QueueTable for PgTables {
    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        self.query_and_decode_rows(query!("queue/list_queues"), vec![], decode_queue_row)
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        let params =
            params![handler, tenant.to_string(), subject.to_text(), canvas_id_of_tenant(Some(tenant))];
        let query = query!("queue/create_queue", INT8, TEXT, TEXT, UUID);
        let id = self.query_and_decode_first(query, params, |row| read_column(row, 0))?;
        let id = id.ok_or_else(|| Fault::damaged("a queue without a number"))?;
        self.record_invalidation(Invalidation::Queue(id));
        Ok(id)
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        let column = |read_count: fn(&QueueCounts) -> i64| {
            counts.iter().map(|(_, c)| read_count(c)).collect::<Vec<i64>>()
        };
        let ids: Vec<i64> = counts.iter().map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.record_invalidation(Invalidation::Queue(*id)));
        let params = params![
            ids,
            column(|c| c.ready),
            column(|c| c.waiting),
            column(|c| c.scheduled),
            column(|c| c.running),
            column(|c| c.halted),
            column(|c| c.missing),
        ];
        let query = query!(
            "queue/write_queue_counts",
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY
        );
        self.add_to_batch(SqlCommand::Query(query, params));
        Ok(())
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        let decode_head = |row: &Row| Ok((read_column(row, 0)?, read_task_seq(row, 1)?));
        self.query_and_decode_first(query!("task/read_queue_head", INT8), params![queue], decode_head)
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        let decode_rank_range = |row: &Row| {
            Ok((read_column(row, 0)?, read_key_bucket(row, 1)?, read_column(row, 2)?, read_column(row, 3)?))
        };
        self.query_and_decode_rows(query!("task/list_rank_ranges", INT8), params![queue], decode_rank_range)
    }

    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        if shares.is_empty() {
            return Ok(vec![]);
        }
        let (queues, shares): (Vec<i64>, Vec<i64>) = shares.iter().copied().unzip();
        let query = query!("task/list_first_ready_tasks_of_queues", INT8_ARRAY, INT8_ARRAY);
        self.query_and_decode_rows(query, params![queues, shares], decode_active_task)
    }

    fn count_ready_tasks_before(&mut self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = params![task_row.queue, task_row.score, task_row.rank, task_row.seq.0, limit];
        let query = query!("task/count_ready_tasks_before", INT8, INT8, INT8, INT8, INT8);
        let count = self.query_and_decode_first(query, params, |row| read_column::<i64>(row, 0))?;
        Ok(count.unwrap_or(0).max(0) as u64)
    }
}

impl PgTables {
    pub(super) fn list_queues_by_id(&mut self, ids: Vec<QueueId>) -> TableResult<Vec<QueueRow>> {
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.query_and_decode_rows(
                query!("queue/list_queues_by_id", INT8_ARRAY),
                params![ids],
                decode_queue_row,
            ),
        }
    }
}

fn decode_queue_row(row: &Row) -> TableResult<QueueRow> {
    read_columns::<QueueColumns<'_>>(row, 0)?.into_row()
}
