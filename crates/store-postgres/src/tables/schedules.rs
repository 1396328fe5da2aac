//! Schedules and their ledger.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, Outcome, Skipped};
use pointsman_core::{EventId, ScheduleName, TaskId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::ScheduleRow;

use super::PgTables;
use crate::link::{Piece, params};
use crate::rows::{get, maybe_time, time};
use crate::session::query;

impl PgTables {
    pub(super) fn all_schedules(&self) -> Result<BTreeMap<String, ScheduleRow>> {
        let rows = self.ask_all(query!("write/schedules"), vec![], |row| {
            let schedule = ScheduleRow {
                expression: get(row, 1)?,
                settled: time(row, 2)?,
                unmet: maybe_time(row, 3)?,
                named: time(row, 4)?,
            };
            Ok((get(row, 0)?, schedule))
        })?;
        Ok(rows.into_iter().collect())
    }

    pub(super) fn new_schedule(&self, name: &ScheduleName, expression: &str, now: Timestamp) {
        let asked = params![name.to_string(), expression.to_string(), now.micros()];
        self.hold(Piece::Statement(query!("write/begin_schedule", TEXT, TEXT, INT8), asked));
    }

    pub(super) fn note_schedules(&self, names: &[String], now: Timestamp) {
        let asked = params![names.to_vec(), now.micros()];
        self.hold(Piece::Statement(query!("write/name_schedules", TEXT_ARRAY, INT8), asked));
    }

    pub(super) fn remove_schedule(&self, name: &str) {
        self.hold(Piece::Statement(query!("write/forget_schedule", TEXT), params![name.to_string()]));
    }

    pub(super) fn find_fire(&self, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
        let asked = params![schedule.to_string(), planned.micros()];
        self.ask_one(query!("write/fire", TEXT, INT8), asked, crate::rows::fire_of)
    }

    pub(super) fn keep_fire(&self, schedule: &ScheduleName, fire: &Fire, unmet: bool) -> Result<()> {
        let outcome = serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?;
        let event = fire.event.map(EventId::as_i64);
        let task = fire.task.as_ref().map(TaskId::to_string);
        let asked =
            params![schedule.to_string(), fire.planned.micros(), fire.at.micros(), outcome, event, task];
        self.hold(Piece::Statement(query!("write/put_fire", TEXT, INT8, INT8, TEXT, INT8, TEXT), asked));
        let unmet = unmet.then_some(fire.planned.micros());
        let asked = params![schedule.to_string(), fire.planned.micros(), unmet, event];
        self.hold(Piece::Statement(query!("write/settle", TEXT, INT8, INT8, INT8), asked));
        Ok(())
    }

    pub(super) fn make_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        let held = serde_json::to_string(&Outcome::Skipped(Skipped::Held)).map_err(Fault::damaged)?;
        let asked = params![schedule.to_string(), up_to.micros(), held];
        self.hold(Piece::Statement(query!("write/made_up", TEXT, INT8, TEXT), asked));
        Ok(())
    }

    pub(super) fn unfinished(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        let asked = params![schedule.to_string()];
        self.ask_all(query!("write/unfinished_of", TEXT), asked, |row| get(row, 0).map(TaskSeq))
    }
}
