//! Queues and their ready tasks.

use pointsman_core::task::QueueSubject;
use pointsman_core::{TaskSeq, Tenant};
use pointsman_store::columns::QueueColumns;
use pointsman_store::expand_sql;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueCounts, QueueId, QueueRow, RankRange};
use pointsman_store::tables::QueueTable;

use super::SqliteTables;
use super::active_tasks::active_task_from_row;
use super::queries::{query_all, query_first, query_up_to, read_columns, task_seq_from_row};
use crate::error::TableResult;

impl QueueTable for SqliteTables {
    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        let sql = expand_sql!("SELECT :queue_columns FROM pointsman_queue ORDER BY id");
        query_all(&self.conn, sql, [], |row| read_columns::<QueueColumns>(row)?.into_row())
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        let sql = "INSERT INTO pointsman_queue
                     (handler, tenant, collection, ready, waiting, scheduled, running, halted, missing)
                   VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0)";
        self.conn.prepare_cached(sql)?.execute((handler, tenant.as_str(), subject.to_text()))?;
        Ok(self.conn.last_insert_rowid())
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        let sql = "UPDATE pointsman_queue
                   SET ready = ?2, waiting = ?3, scheduled = ?4, running = ?5, halted = ?6, missing = ?7
                   WHERE id = ?1";
        let mut update = self.conn.prepare_cached(sql)?;
        for (id, counts) in counts {
            let QueueCounts { ready, waiting, scheduled, running, halted, missing } = counts;
            update.execute((id, ready, waiting, scheduled, running, halted, missing))?;
        }
        Ok(())
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        let sql = expand_sql!(
            "SELECT score, seq FROM pointsman_task
             WHERE queue = ?1 AND phase = :ready ORDER BY score DESC, rank, seq"
        );
        query_first(&self.conn, sql, [queue], |row| Ok((row.get(0)?, TaskSeq(row.get(1)?))))
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        let sql = expand_sql!(
            "SELECT score, key_bucket, min(rank), max(rank) FROM pointsman_task
             WHERE queue = ?1 AND phase = :ready GROUP BY score, key_bucket"
        );
        query_all(&self.conn, sql, [queue], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
    }

    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        // The index yields them by score, rank and age. ORDER BY would make SQLite prepare the statement again for every
        // queue, and so would a bound LIMIT.
        let sql = expand_sql!(
            "SELECT :task_columns FROM pointsman_task INDEXED BY pointsman_task_ready
             WHERE queue = ?1 AND phase = :ready"
        );
        let mut ready_tasks = Vec::new();
        for (queue, share) in shares {
            let share = usize::try_from(*share).unwrap_or(0);
            ready_tasks.append(&mut query_up_to(&self.conn, sql, [queue], share, active_task_from_row)?);
        }
        Ok(ready_tasks)
    }

    fn count_ready_tasks_before(&mut self, active_task: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        let sql = expand_sql!(
            "SELECT seq FROM pointsman_task
             WHERE queue = ?1 AND phase = :ready ORDER BY score DESC, rank, seq"
        );
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([active_task.queue])?;
        let mut count = 0;
        while count < limit
            && let Some(row) = rows.next()?
            && task_seq_from_row(row)? != active_task.seq
        {
            count += 1;
        }
        Ok(count)
    }
}
