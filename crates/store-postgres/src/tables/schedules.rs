//! Schedules and fires.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{EventId, ScheduleName, TaskId, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ScheduleRow;
use pointsman_store::tables::ScheduleTable;
use tokio_postgres::Row;

use super::PgTables;
use crate::rows::{read_column, read_optional_event_id, read_optional_time, read_time};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl ScheduleTable for PgTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let rows = self.query_all(query!("schedule/list_schedules"), vec![], |row| {
            Ok((read_column(row, 5)?, decode_schedule(row)?))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn read_schedule(&mut self, name: &str) -> TableResult<Option<ScheduleRow>> {
        self.query_optional(
            query!("schedule/read_schedule", TEXT),
            params![name.to_string()],
            decode_schedule,
        )
    }

    fn write_schedule(&mut self, name: &str, schedule: &ScheduleRow) -> TableResult<()> {
        let ScheduleRow { expression, processed_up_to, next_catch_up, last_registered_at, last_event } =
            schedule.clone();
        let params = params![
            name.to_string(),
            expression,
            processed_up_to.micros(),
            next_catch_up.map(Timestamp::micros),
            last_registered_at.micros(),
            last_event.map(EventId::as_i64)
        ];
        let query = query!("schedule/write_schedule", TEXT, TEXT, INT8, INT8, INT8, INT8);
        self.add_to_batch(SqlCommand::Query(query, params));
        Ok(())
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        self.add_to_batch(SqlCommand::Query(
            query!("schedule/delete_schedule", TEXT),
            params![name.to_string()],
        ));
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned_at: Timestamp) -> TableResult<Option<Fire>> {
        let params = params![schedule.to_string(), planned_at.micros()];
        self.query_optional(query!("fire/read_fire", TEXT, INT8), params, crate::rows::decode_fire)
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
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
            query!("fire/write_fire", TEXT, INT8, INT8, TEXT, INT8, TEXT),
            params,
        ));
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
        self.query_optional(query, params, |row| read_time(row, 0))
    }
}

fn decode_schedule(row: &Row) -> TableResult<ScheduleRow> {
    Ok(ScheduleRow {
        expression: read_column(row, 0)?,
        processed_up_to: read_time(row, 1)?,
        next_catch_up: read_optional_time(row, 2)?,
        last_registered_at: read_time(row, 3)?,
        last_event: read_optional_event_id(row, 4)?,
    })
}
