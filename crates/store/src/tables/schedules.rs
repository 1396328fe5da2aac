//! The tables of schedules and fires.

use std::collections::BTreeMap;

use pointsman_core::fire::Fire;
use pointsman_core::{ScheduleName, TaskSeq, Timestamp};

use crate::error::TableResult;
use crate::row::ScheduleRow;

/// Schedules, and the fire ledger.
pub trait ScheduleTable {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>>;

    /// Starts a schedule now, or restarts it with another expression. It counts as registered now.
    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()>;

    /// Records that a node has registered these schedules now.
    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()>;

    fn delete_schedule(&mut self, name: &str) -> TableResult<()>;

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>>;

    /// Writes the row of a planned time and the schedule's progress. `needs_catch_up`: the time was skipped and is to
    /// be caught up later.
    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()>;

    /// Makes the first planned time after `up_to` that was skipped because of a rule the schedule's next one to catch
    /// up.
    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()>;

    /// Lists the unfinished tasks of a schedule's last event, by age.
    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>>;
}
