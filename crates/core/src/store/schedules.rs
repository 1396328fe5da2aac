//! Schedules, their planned times and the fire ledger.

use async_trait::async_trait;

use super::StoreResult;
use crate::fire::{Fire, FireDecision};
use crate::journal::JournalRange;
use crate::{ScheduleName, Timestamp};

/// A configured schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleDef {
    /// The schedule's name.
    pub name: ScheduleName,
    /// The expression, with everything else that changes the planned times. If it differs from the stored one, the
    /// schedule starts anew: times of another expression were never planned.
    pub expression_zone_and_dialect: String,
}

/// How far the planned times of a schedule have been processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleProgress {
    /// All planned times up to this one have a row in the ledger. For a new schedule, when it was first registered.
    pub processed_up_to: Timestamp,
    /// A rule pauses or blocks the schedule.
    pub paused: bool,
    /// The first planned time that was skipped because a rule paused the schedule, and not caught up since.
    pub first_skipped_while_paused: Option<Timestamp>,
}

/// A planned time that has passed, and the decision whether it fires.
#[derive(Clone, Debug, PartialEq)]
pub struct FireRequest {
    /// The schedule.
    pub schedule: ScheduleName,
    /// The planned time.
    pub planned_at: Timestamp,
    /// Whether and how it fires.
    pub decision: FireDecision,
}

/// Rows of the fire ledger, the latest planned time first.
#[derive(Clone, Debug)]
pub struct FirePage {
    /// The rows.
    pub fires: Vec<Fire>,
    /// The ids in the journal when the rows were read.
    pub journal_range: JournalRange,
}

/// Stores schedules and the fire ledger.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Registers the caller's schedules; returns the progress of each, in the same order. Other nodes may have other
    /// schedules, so the progress of a schedule is deleted only when no node has registered it for a day. Time in which
    /// no node calls this, not even with an empty list, does not count: after it, the nodes may be about to return.
    async fn register_schedules(
        &self,
        schedules: Vec<ScheduleDef>,
        now: Timestamp,
    ) -> StoreResult<Vec<ScheduleProgress>>;

    /// Fires or skips planned times: writes a ledger row for each and carries out its action, in one transaction. A
    /// time that has a row already stays as it is, except that a caught-up fire replaces one that was skipped because
    /// the schedule was paused. While a rule pauses the schedule, every time is skipped. Returns the rows as they are
    /// now, in the same order, and whether each was written by this call.
    async fn execute_fire_requests(
        &self,
        requests: Vec<FireRequest>,
        now: Timestamp,
    ) -> StoreResult<Vec<(Fire, bool)>>;

    /// Marks the planned times up to `up_to` that were skipped while the schedule was paused as caught up.
    async fn mark_caught_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> StoreResult<()>;

    /// Lists the ledger rows of planned times before `before`, if given, the latest first.
    async fn list_fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> StoreResult<FirePage>;
}
