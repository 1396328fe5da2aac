//! Active (unfinished) tasks.

use pointsman_core::store::NodeId;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::ActiveTaskColumns;
use pointsman_store::expand_sql;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueId, SyncGatedTask, TaskPhase, WaitingTask};
use pointsman_store::tables::ActiveTaskTable;
use rusqlite::{Connection, Row};

use super::SqliteTables;
use super::queries::{
    query_all, query_first, query_up_to, read_columns, read_phase, read_text, read_time, task_seq_from_row,
    waiting_task_from_row, write_columns,
};
use crate::error::TableResult;

impl ActiveTaskTable for SqliteTables {
    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        read_active_task(&self.conn, seq)
    }

    fn insert_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        let sql = expand_sql!("INSERT INTO pointsman_task (:task_columns) VALUES (:task_parameters)");
        write_columns(&self.conn, sql, &ActiveTaskColumns::from_row(active_task))
    }

    fn delete_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        self.conn
            .prepare_cached("DELETE FROM pointsman_task WHERE seq = ?1")?
            .execute([active_task.seq.0])?;
        Ok(())
    }

    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> {
        let sql = "UPDATE pointsman_task SET phase = ?2, rank = ?3 WHERE seq = ?1";
        self.conn.prepare_cached(sql)?.execute((seq.0, phase.code(), rank))?;
        Ok(())
    }

    fn write_task_lock(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        let sql =
            "UPDATE pointsman_task SET phase = ?2, attempt = ?3, node = ?4, fence = ?5, started = ?6, leased_until = ?7
                   WHERE seq = ?1";
        let ActiveTaskColumns { seq, phase, attempt, node, fence, started, leased_until, .. } =
            ActiveTaskColumns::from_row(active_task);
        let row = (seq, phase, attempt, node, fence, started, leased_until);
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    fn update_active_task(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        let sql = "UPDATE pointsman_task
                   SET phase = ?2, lane_position = ?3, due = ?4, attempt = ?5, retries = ?6, crashes = ?7, late = ?8,
                       node = ?9, fence = ?10, leased_until = ?11, started = ?12, reason = ?13, error = ?14, rank = ?15
                   WHERE seq = ?1";
        let columns = ActiveTaskColumns::from_row(active_task);
        self.conn.prepare_cached(sql)?.execute((
            columns.seq,
            columns.phase,
            columns.lane_position,
            columns.due,
            columns.attempt,
            columns.retries,
            columns.crashes,
            columns.late,
            columns.node,
            columns.fence,
            columns.leased_until,
            columns.started,
            columns.reason,
            columns.error,
            columns.rank,
        ))?;
        Ok(())
    }

    fn set_task_grouping(&mut self, active_task: &ActiveTaskRow) -> TableResult<()> {
        let sql =
            "UPDATE pointsman_task SET lane = ?2, concurrency_group = ?3, key_bucket = ?4 WHERE seq = ?1";
        self.conn.prepare_cached(sql)?.execute((
            active_task.seq.0,
            active_task.lane,
            active_task.concurrency_group,
            active_task.key_bucket,
        ))?;
        Ok(())
    }

    fn set_concurrency_group(&mut self, seq: TaskSeq, concurrency_group: Option<i64>) -> TableResult<()> {
        self.conn
            .prepare_cached("UPDATE pointsman_task SET concurrency_group = ?2 WHERE seq = ?1")?
            .execute((seq.0, concurrency_group))?;
        Ok(())
    }

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()> {
        self.conn
            .prepare_cached("UPDATE pointsman_task SET score = ?2 WHERE seq = ?1")?
            .execute((seq.0, score))?;
        Ok(())
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        let sql = "UPDATE pointsman_task SET leased_until = ?2 WHERE seq = ?1 AND leased_until IS NOT NULL";
        self.conn.prepare_cached(sql)?.execute((seq.0, until.micros()))?;
        Ok(())
    }

    /// Does nothing: no other process has the file, so there are no caches to invalidate.
    fn invalidate_task_on_peers(&mut self, _seq: TaskSeq) {}

    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        let sql = expand_sql!(
            "SELECT :task_columns FROM pointsman_task WHERE phase = :scheduled ORDER BY score DESC, rank, seq"
        );
        query_all(&self.conn, sql, [], active_task_from_row)
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        let sql = expand_sql!(
            "SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman_task
             WHERE phase = :delayed AND due <= ?1 ORDER BY due"
        );
        query_up_to(&self.conn, sql, [now.micros()], limit, waiting_task_from_row)
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        let mut earliest = self
            .conn
            .prepare_cached(expand_sql!("SELECT min(due) FROM pointsman_task WHERE phase = :delayed"))?;
        let due: Option<i64> = earliest.query_row([], |r| r.get(0))?;
        Ok(due.map(Timestamp::from_micros))
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        let sql = expand_sql!(
            "SELECT seq, queue, key_bucket, concurrency_group, score, due, lane, lane_position, stage
             FROM pointsman_task
             WHERE phase = :sync_gated AND event = ?1 ORDER BY stage, seq"
        );
        query_all(&self.conn, sql, [event.as_i64()], |row| {
            Ok(SyncGatedTask {
                task: waiting_task_from_row(row)?,
                lane: row.get(6)?,
                lane_position: row.get(7)?,
                sync_stage: row.get(8)?,
            })
        })
    }

    fn list_active_tasks_of_event(&mut self, event: EventId) -> TableResult<Vec<ActiveTaskRow>> {
        let sql = expand_sql!(
            "SELECT :task_columns FROM pointsman_task
             WHERE seq >= (SELECT first_task FROM pointsman_journal WHERE id = ?1)
               AND seq < (SELECT first_task + tasks FROM pointsman_journal WHERE id = ?1) ORDER BY seq"
        );
        query_all(&self.conn, sql, [event.as_i64()], active_task_from_row)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        let sql = expand_sql!(
            "SELECT :task_columns FROM pointsman_task WHERE phase = :locked AND node = ?1 ORDER BY seq"
        );
        query_all(&self.conn, sql, [node], active_task_from_row)
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let sql = expand_sql!(
            "SELECT :task_columns FROM pointsman_task
             WHERE leased_until < ?1 AND started >= ?2 AND phase = :locked ORDER BY leased_until"
        );
        query_all(&self.conn, sql, (now.micros(), since.micros()), active_task_from_row)
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        // SQLite uses the index of a phase only if the condition names that phase alone.
        let condition = match phases {
            [TaskPhase::Scheduled] => {
                expand_sql!("INDEXED BY pointsman_task_phase_scheduled WHERE phase = :scheduled AND").into()
            }
            [phase] => format!("WHERE phase = {} AND", phase.code()),
            phases => {
                let codes: Vec<_> = phases.iter().map(|phase| phase.code().to_string()).collect();
                format!("WHERE phase IN ({}) AND", codes.join(", "))
            }
        };
        let sql = format!("SELECT seq FROM pointsman_task {condition} queue = ?1 ORDER BY seq");
        query_up_to(&self.conn, &sql, [queue], limit, task_seq_from_row)
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let sql = expand_sql!(
            "SELECT t.seq FROM pointsman_task t JOIN pointsman_queue q ON q.id = t.queue
             WHERE t.phase = :locked AND q.handler = ?1"
        );
        query_up_to(&self.conn, sql, [handler], limit, task_seq_from_row)
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        let sql = "SELECT seq, priority, created FROM pointsman_task WHERE queue = ?1";
        query_all(&self.conn, sql, [queue], |row| {
            Ok((task_seq_from_row(row)?, row.get(1)?, read_time(row, 2)?))
        })
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        let sql = expand_sql!(
            "SELECT t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due, t.phase, j.key
             FROM pointsman_task t JOIN pointsman_journal j ON j.id = t.event
             WHERE t.queue = ?1 AND t.phase <= :locked AND t.lane IS NULL AND j.key IS NOT NULL
             ORDER BY t.phase >= :scheduled DESC, t.seq"
        );
        query_all(&self.conn, sql, [queue], |row| {
            Ok((waiting_task_from_row(row)?, read_phase(row, 6)?, read_text(row, 7)?.into()))
        })
    }
}

pub(crate) fn read_active_task(conn: &Connection, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
    let sql = expand_sql!("SELECT :task_columns FROM pointsman_task WHERE seq = ?1");
    query_first(conn, sql, [seq.0], active_task_from_row)
}

pub(crate) fn active_task_from_row(row: &Row<'_>) -> TableResult<ActiveTaskRow> {
    read_columns::<ActiveTaskColumns>(row)?.into_row()
}
