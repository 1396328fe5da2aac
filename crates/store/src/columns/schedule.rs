//! Schedules.

use std::borrow::Cow;

use pointsman_core::{EventId, Timestamp};

use super::columns;
use crate::row::ScheduleProgressRow;

columns! {
    /// The columns of a schedule's progress.
    ScheduleProgressColumns<'a> key(name) {
        name: Cow<'a, str>,
        expression: Cow<'a, str>,
        /// The last planned time that has a row in the fire ledger, or when the schedule started.
        resolved_up_to: i64,
        next_catch_up: Option<i64>,
        last_event: Option<i64>,
        last_registered_at: i64,
    }
}

impl<'a> ScheduleProgressColumns<'a> {
    pub fn from_row(name: &'a str, row: &'a ScheduleProgressRow) -> Self {
        let ScheduleProgressRow {
            expression,
            processed_up_to,
            next_catch_up,
            last_registered_at,
            last_event,
        } = row;
        Self {
            name: name.into(),
            expression: expression.into(),
            resolved_up_to: processed_up_to.micros(),
            next_catch_up: next_catch_up.map(Timestamp::micros),
            last_event: last_event.map(EventId::as_i64),
            last_registered_at: last_registered_at.micros(),
        }
    }

    /// Returns the schedule's name, and its row.
    pub fn into_row(self) -> (String, ScheduleProgressRow) {
        let row = ScheduleProgressRow {
            expression: self.expression.into(),
            processed_up_to: Timestamp::from_micros(self.resolved_up_to),
            next_catch_up: self.next_catch_up.map(Timestamp::from_micros),
            last_registered_at: Timestamp::from_micros(self.last_registered_at),
            last_event: self.last_event.map(EventId::from_i64),
        };
        (self.name.into(), row)
    }
}
