//! The fire ledger, and the state of each schedule.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::columns::{FireColumns, ScheduleProgressColumns};
use pointsman_store::expand_sql;
use pointsman_store::row::ScheduleProgressRow;
use pointsman_store::tables::ScheduleTable;

use super::SqliteTables;
use super::queries::{query_all, query_first, read_columns, read_time, write_columns};
use crate::error::{Fault, TableResult};

impl ScheduleTable for SqliteTables {
    fn list_schedule_progress(&mut self) -> TableResult<BTreeMap<String, ScheduleProgressRow>> {
        let sql = expand_sql!("SELECT :schedule_columns FROM pointsman_schedule");
        let rows =
            query_all(
                &self.conn,
                sql,
                [],
                |row| Ok(read_columns::<ScheduleProgressColumns>(row)?.into_row()),
            );
        Ok(rows?.into_iter().collect())
    }

    fn read_schedule_progress(&mut self, name: &str) -> TableResult<Option<ScheduleProgressRow>> {
        let sql = expand_sql!("SELECT :schedule_columns FROM pointsman_schedule WHERE name = ?1");
        query_first(&self.conn, sql, [name], |row| {
            Ok(read_columns::<ScheduleProgressColumns>(row)?.into_row().1)
        })
    }

    fn write_schedule_progress(&mut self, name: &str, schedule: &ScheduleProgressRow) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT OR REPLACE INTO pointsman_schedule (:schedule_columns) VALUES (:schedule_parameters)"
        );
        write_columns(&self.conn, sql, &ScheduleProgressColumns::from_row(name, schedule))
    }

    fn delete_schedule_progress(&mut self, name: &str) -> TableResult<()> {
        self.conn.prepare_cached("DELETE FROM pointsman_schedule WHERE name = ?1")?.execute([name])?;
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        let sql =
            expand_sql!("SELECT :fire_columns FROM pointsman_fire WHERE schedule = ?1 AND planned = ?2");
        query_first(&self.conn, sql, (schedule.as_str(), planned_at.micros()), |row| {
            read_columns::<FireColumns>(row)?.into_fire()
        })
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        let sql =
            expand_sql!("INSERT OR REPLACE INTO pointsman_fire (:fire_columns) VALUES (:fire_parameters)");
        write_columns(&self.conn, sql, &FireColumns::from_fire(schedule.as_str(), fire)?)
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
