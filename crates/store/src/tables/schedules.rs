//! The tables of schedule progress and fires.

use std::collections::BTreeMap;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{ScheduleName, Timestamp};

use crate::error::TableResult;
use crate::row::ScheduleProgressRow;

/// The progress of schedules, and the fire ledger.
pub trait ScheduleTable {
    fn list_schedule_progress(&mut self) -> TableResult<BTreeMap<String, ScheduleProgressRow>>;

    fn read_schedule_progress(&mut self, name: &str) -> TableResult<Option<ScheduleProgressRow>>;

    /// Inserts or replaces the progress of a schedule.
    fn write_schedule_progress(&mut self, name: &str, progress: &ScheduleProgressRow) -> TableResult<()>;

    fn delete_schedule_progress(&mut self, name: &str) -> TableResult<()>;

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>>;

    /// Inserts or replaces the row of a planned time.
    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()>;

    /// Returns the first planned time of a schedule after `after` whose row has this outcome.
    fn find_planned_time_with_outcome(
        &mut self,
        schedule: &ScheduleName,
        after: Timestamp,
        outcome: &FireOutcome,
    ) -> TableResult<Option<Timestamp>>;
}
