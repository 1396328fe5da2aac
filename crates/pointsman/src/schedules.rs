//! Schedules of the bus: what they create at planned times, and running one on request.

use pointsman_core::names::BadName;
use pointsman_core::store::{FirePage, StoreError};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_engine::ScheduleRunResult;

use crate::Bus;
use crate::emit::EmitError;

/// Why a schedule was not run on request.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunScheduleError {
    /// The name is invalid.
    #[error(transparent)]
    InvalidName(#[from] BadName),
    /// This program has no schedule of this name.
    #[error("this program has no schedule {name}{suggestion}; add it with `schedule` before the start")]
    UnknownSchedule {
        /// The name that was given.
        name: ScheduleName,
        /// The text `; did you mean …?`; empty if no schedule has a similar name.
        suggestion: String,
    },
    /// The event, task or order was not created.
    #[error(transparent)]
    Emit(#[from] EmitError),
}

impl Bus {
    /// Creates at once what a schedule of this program creates at its planned times. No planned time is used up, and a
    /// pause of the schedule does not apply.
    pub async fn run_schedule(&self, schedule: &str) -> Result<ScheduleRunResult, RunScheduleError> {
        let name = ScheduleName::new(schedule)?;
        match self.engine.run_schedule(&name).await.map_err(EmitError::EmitFailed)? {
            Some(created) => Ok(created),
            None => {
                let setup = self.engine.current_setup();
                let names = setup.schedules.iter().map(|schedule| schedule.name.as_str());
                let suggestion = did_you_mean_suffix(name.as_str(), names);
                Err(RunScheduleError::UnknownSchedule { name, suggestion })
            }
        }
    }

    /// Lists how planned times of a schedule were handled, the latest first, before `before` if given.
    pub async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<FirePage, StoreError> {
        self.engine.store().list_fires(schedule, before, limit).await
    }
}
