//! The fire ledger, and the state of each schedule.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome, SkipReason};
use pointsman_core::{EventId, ScheduleName, TaskId, TaskSeq, Timestamp};
use pointsman_store::row::ScheduleRow;
use pointsman_store::tables::ScheduleTable;

use super::SqliteTables;
use super::row::{
    fire_columns, fire_from_row, query_all, query_first, read_optional_time, read_time, task_seq_from_row,
};
use crate::error::{Fault, TableResult};

impl ScheduleTable for SqliteTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let sql = "SELECT name, expression, resolved_up_to, next_catch_up, last_registered_at FROM pointsman_schedule";
        let rows = query_all(&self.conn, sql, [], |row| {
            let schedule = ScheduleRow {
                expression: row.get(1)?,
                processed_up_to: read_time(row, 2)?,
                next_catch_up: read_optional_time(row, 3)?,
                last_registered_at: read_time(row, 4)?,
            };
            Ok((row.get(0)?, schedule))
        });
        Ok(rows?.into_iter().collect())
    }

    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()> {
        let sql = "INSERT INTO pointsman_schedule (name, expression, resolved_up_to, last_registered_at)
                   VALUES (?1, ?2, ?3, ?3)
                   ON CONFLICT (name) DO UPDATE SET expression = ?2, resolved_up_to = ?3, next_catch_up = NULL,
                   last_registered_at = ?3";
        self.conn.prepare_cached(sql)?.execute((name.as_str(), expression, now.micros()))?;
        Ok(())
    }

    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()> {
        let mut update = self
            .conn
            .prepare_cached("UPDATE pointsman_schedule SET last_registered_at = ?2 WHERE name = ?1")?;
        for name in names {
            update.execute((name, now.micros()))?;
        }
        Ok(())
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        self.conn.prepare_cached("DELETE FROM pointsman_schedule WHERE name = ?1")?.execute([name])?;
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        let sql =
            concat!("SELECT ", fire_columns!(), " FROM pointsman_fire WHERE schedule = ?1 AND planned = ?2");
        query_first(&self.conn, sql, (schedule.as_str(), planned_at.micros()), fire_from_row)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_fire (schedule, planned, at, outcome, event, task)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let outcome = serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?;
        let (planned_at, event) = (fire.planned_at.micros(), fire.event_id.map(EventId::as_i64));
        self.conn.prepare_cached(sql)?.execute((
            schedule.as_str(),
            planned_at,
            fire.recorded_at.micros(),
            outcome,
            event,
            fire.task.as_ref().map(TaskId::as_str),
        ))?;
        let sql = "UPDATE pointsman_schedule
                   SET resolved_up_to = max(resolved_up_to, ?2), next_catch_up = coalesce(next_catch_up, ?3),
                       last_event = coalesce(?4, last_event)
                   WHERE name = ?1";
        let next_catch_up = needs_catch_up.then_some(planned_at);
        self.conn.prepare_cached(sql)?.execute((schedule.as_str(), planned_at, next_catch_up, event))?;
        Ok(())
    }

    /// Ends the catch-up of planned times up to `up_to`. The first later planned time that a rule has skipped in the
    /// meantime becomes the next to catch up.
    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        let sql = "UPDATE pointsman_schedule SET next_catch_up =
                     (SELECT min(planned) FROM pointsman_fire WHERE schedule = ?1 AND planned > ?2 AND outcome = ?3)
                   WHERE name = ?1";
        let skipped_outcome =
            serde_json::to_string(&FireOutcome::Skipped(SkipReason::PausedByRule)).map_err(Fault::damaged)?;
        self.conn.prepare_cached(sql)?.execute((schedule.as_str(), up_to.micros(), skipped_outcome))?;
        Ok(())
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        let sql = "SELECT t.seq FROM pointsman_schedule s
                   JOIN pointsman_journal j ON j.id = s.last_event
                   JOIN pointsman_task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
                   WHERE s.name = ?1 AND t.phase <= 5 ORDER BY t.seq";
        query_all(&self.conn, sql, [schedule.as_str()], task_seq_from_row)
    }
}
