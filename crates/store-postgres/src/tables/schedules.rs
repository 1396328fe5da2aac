//! Schedules and fires.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::columns::{FireColumns, ScheduleProgressColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ScheduleProgressRow;
use pointsman_store::tables::ScheduleTable;

use super::PgTables;
use crate::rows::{read_columns, read_time};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl ScheduleTable for PgTables {
    fn list_schedule_progress(&mut self) -> TableResult<BTreeMap<String, ScheduleProgressRow>> {
        let rows = self.query_and_decode_rows(query!("schedule/list_schedule_progress"), vec![], |row| {
            Ok(read_columns::<ScheduleProgressColumns<'_>>(row, 0)?.into_row())
        })?;
        Ok(rows.into_iter().collect())
    }

    fn read_schedule_progress(&mut self, name: &str) -> TableResult<Option<ScheduleProgressRow>> {
        self.query_and_decode_first(
            query!("schedule/read_schedule_progress", TEXT),
            params![name.to_string()],
            |row| Ok(read_columns::<ScheduleProgressColumns<'_>>(row, 0)?.into_row().1),
        )
    }

    fn write_schedule_progress(&mut self, name: &str, schedule: &ScheduleProgressRow) -> TableResult<()> {
        let query = query!("schedule/write_schedule_progress", ..ScheduleProgressColumns);
        let row = ScheduleProgressColumns::from_row(name, schedule);
        self.add_to_batch(SqlCommand::query_with_rows(query, vec![], [row]));
        Ok(())
    }

    fn delete_schedule_progress(&mut self, name: &str) -> TableResult<()> {
        self.add_to_batch(SqlCommand::Query(
            query!("schedule/delete_schedule_progress", TEXT),
            params![name.to_string()],
        ));
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        let params = params![schedule.to_string(), planned_at.micros()];
        self.query_and_decode_first(query!("fire/read_fire", TEXT, INT8), params, |row| {
            read_columns::<FireColumns<'_>>(row, 0)?.into_fire()
        })
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        let query = query!("fire/write_fire", ..FireColumns);
        let row = FireColumns::from_fire(schedule.as_str(), fire)?;
        self.add_to_batch(SqlCommand::query_with_rows(query, vec![], [row]));
        Ok(())
    }

    fn find_planned_time_with_outcome(
        &mut self,
        schedule: &ScheduleName,
        after: Timestamp,
        outcome: &FireOutcome,
    ) -> TableResult<Option<Timestamp>> {
        let outcome = serde_json::to_string(outcome).map_err(Fault::damaged)?;
        let params = params![schedule.to_string(), after.micros(), outcome];
        let query = query!("fire/find_planned_time_with_outcome", TEXT, INT8, TEXT);
        self.query_and_decode_first(query, params, |row| read_time(row, 0))
    }
}
