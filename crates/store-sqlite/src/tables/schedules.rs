//! The fire ledger, and the state of each schedule.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{EventId, ScheduleName, TaskId, Timestamp};
use pointsman_store::row::ScheduleRow;
use pointsman_store::tables::ScheduleTable;
use rusqlite::Row;

use super::SqliteTables;
use super::row::{
    fire_columns, fire_from_row, query_all, query_first, read_optional_event_id, read_optional_time,
    read_time,
};
use crate::error::{Fault, TableResult};

/// The columns of a schedule, in the order that [`schedule_from_row`] reads them.
macro_rules! schedule_columns {
    () => {
        "expression, resolved_up_to, next_catch_up, last_registered_at, last_event"
    };
}

impl ScheduleTable for SqliteTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let sql = concat!("SELECT ", schedule_columns!(), ", name FROM pointsman_schedule");
        let rows = query_all(&self.conn, sql, [], |row| Ok((row.get(5)?, schedule_from_row(row)?)));
        Ok(rows?.into_iter().collect())
    }

    fn read_schedule(&mut self, name: &str) -> TableResult<Option<ScheduleRow>> {
        let sql = concat!("SELECT ", schedule_columns!(), " FROM pointsman_schedule WHERE name = ?1");
        query_first(&self.conn, sql, [name], schedule_from_row)
    }

    fn write_schedule(&mut self, name: &str, schedule: &ScheduleRow) -> TableResult<()> {
        let sql = concat!(
            "INSERT OR REPLACE INTO pointsman_schedule (",
            schedule_columns!(),
            ", name) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        );
        let ScheduleRow { expression, processed_up_to, next_catch_up, last_registered_at, last_event } =
            schedule;
        self.conn.prepare_cached(sql)?.execute((
            expression,
            processed_up_to.micros(),
            next_catch_up.map(Timestamp::micros),
            last_registered_at.micros(),
            last_event.map(EventId::as_i64),
            name,
        ))?;
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

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_fire (schedule, planned, at, outcome, event, task)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.conn.prepare_cached(sql)?.execute((
            schedule.as_str(),
            fire.planned_at.micros(),
            fire.recorded_at.micros(),
            serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?,
            fire.event_id.map(EventId::as_i64),
            fire.task.as_ref().map(TaskId::as_str),
        ))?;
        Ok(())
    }

    fn find_planned_time_with_outcome(
        &mut self,
        schedule: &ScheduleName,
        after: Timestamp,
        outcome: &FireOutcome,
    ) -> TableResult<Option<Timestamp>> {
        let sql = "SELECT planned FROM pointsman_fire
                   WHERE schedule = ?1 AND planned > ?2 AND outcome = ?3 ORDER BY planned LIMIT 1";
        let outcome = serde_json::to_string(outcome).map_err(Fault::damaged)?;
        query_first(&self.conn, sql, (schedule.as_str(), after.micros(), outcome), |row| {
            Ok(read_time(row, 0)?)
        })
    }
}

fn schedule_from_row(row: &Row<'_>) -> TableResult<ScheduleRow> {
    Ok(ScheduleRow {
        expression: row.get(0)?,
        processed_up_to: read_time(row, 1)?,
        next_catch_up: read_optional_time(row, 2)?,
        last_registered_at: read_time(row, 3)?,
        last_event: read_optional_event_id(row, 4)?,
    })
}
