//! The fire ledger.

use std::borrow::Cow;

use pointsman_core::fire::Fire;
use pointsman_core::{EventId, TaskId, Timestamp};

use super::columns;
use crate::error::{Fault, TableResult};

columns! {
    /// The columns of a row of the fire ledger.
    FireColumns<'a> key(schedule, planned) {
        schedule: Cow<'a, str>,
        planned: i64,
        at: i64,
        /// JSON.
        outcome: Cow<'a, str>,
        event: Option<i64>,
        task: Option<Cow<'a, str>>,
    }
}

impl<'a> FireColumns<'a> {
    pub fn from_fire(schedule: &'a str, fire: &'a Fire) -> TableResult<Self> {
        Ok(Self {
            schedule: schedule.into(),
            planned: fire.planned_at.micros(),
            at: fire.recorded_at.micros(),
            outcome: serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?.into(),
            event: fire.event_id.map(EventId::as_i64),
            task: fire.task.as_ref().map(|task| task.as_str().into()),
        })
    }

    pub fn into_fire(self) -> TableResult<Fire> {
        Ok(Fire {
            planned_at: Timestamp::from_micros(self.planned),
            recorded_at: Timestamp::from_micros(self.at),
            outcome: serde_json::from_str(&self.outcome).map_err(Fault::damaged)?,
            event_id: self.event.map(EventId::from_i64),
            task: self.task.map(|task| TaskId::from_text(&task)),
        })
    }
}
