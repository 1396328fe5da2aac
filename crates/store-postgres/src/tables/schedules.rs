//! Schedules and fires.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome, SkipReason};
use pointsman_core::{EventId, ScheduleName, TaskId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ScheduleRow;
use pointsman_store::tables::ScheduleTable;

use super::PgTables;
use crate::rows::{read_column, read_optional_time, read_time};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl ScheduleTable for PgTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let rows = self.query_all(query!("write/schedules"), vec![], |row| {
            let schedule = ScheduleRow {
                expression: read_column(row, 1)?,
                processed_up_to: read_time(row, 2)?,
                next_catch_up: read_optional_time(row, 3)?,
                last_registered_at: read_time(row, 4)?,
            };
            Ok((read_column(row, 0)?, schedule))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()> {
        let params = params![name.to_string(), expression.to_string(), now.micros()];
        self.add_to_batch(SqlCommand::Query(query!("write/upsert_schedule", TEXT, TEXT, INT8), params));
        Ok(())
    }

    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()> {
        let params = params![names.to_vec(), now.micros()];
        self.add_to_batch(SqlCommand::Query(query!("write/refresh_schedules", TEXT_ARRAY, INT8), params));
        Ok(())
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        self.add_to_batch(SqlCommand::Query(
            query!("write/delete_schedule", TEXT),
            params![name.to_string()],
        ));
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        let params = params![schedule.to_string(), planned_at.micros()];
        self.query_optional(query!("write/fire", TEXT, INT8), params, crate::rows::decode_fire)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        let outcome = serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?;
        let event = fire.event_id.map(EventId::as_i64);
        let task = fire.task.as_ref().map(TaskId::to_string);
        let params = params![
            schedule.to_string(),
            fire.planned_at.micros(),
            fire.recorded_at.micros(),
            outcome,
            event,
            task
        ];
        self.add_to_batch(SqlCommand::Query(
            query!("write/upsert_fire", TEXT, INT8, INT8, TEXT, INT8, TEXT),
            params,
        ));
        let next_catch_up = needs_catch_up.then_some(fire.planned_at.micros());
        let params = params![schedule.to_string(), fire.planned_at.micros(), next_catch_up, event];
        self.add_to_batch(SqlCommand::Query(
            query!("write/set_schedule_progress", TEXT, INT8, INT8, INT8),
            params,
        ));
        Ok(())
    }

    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        let skipped_outcome =
            serde_json::to_string(&FireOutcome::Skipped(SkipReason::PausedByRule)).map_err(Fault::damaged)?;
        let params = params![schedule.to_string(), up_to.micros(), skipped_outcome];
        self.add_to_batch(SqlCommand::Query(query!("write/advance_catch_up", TEXT, INT8, TEXT), params));
        Ok(())
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        let params = params![schedule.to_string()];
        self.query_all(query!("write/unfinished_tasks_of_schedule", TEXT), params, |row| {
            read_column(row, 0).map(TaskSeq)
        })
    }
}
