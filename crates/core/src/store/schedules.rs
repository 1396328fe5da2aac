//! Planned times, and what became of them.

use async_trait::async_trait;

use super::Result;
use crate::fire::{Fire, Settle};
use crate::journal::Extent;
use crate::{ScheduleName, Timestamp};

/// A schedule that is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub name: ScheduleName,
    /// Its expression with everything that changes its planned times. If this is not what it was, the schedule
    /// begins anew: times of another expression were never planned.
    pub expression: String,
}

/// Where a schedule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// All planned times up to this one are settled. For a new schedule, when it was first planned.
    pub settled: Timestamp,
    /// A rule holds it.
    pub held: bool,
    /// The first planned time that was skipped because a rule held it and has not been made up for.
    pub unmet: Option<Timestamp>,
}

/// A planned time whose hour has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    pub schedule: ScheduleName,
    pub planned: Timestamp,
    pub settle: Settle,
}

/// Rows of a ledger, the latest planned time first.
#[derive(Clone, Debug)]
pub struct FirePage {
    pub fires: Vec<Fire>,
    pub extent: Extent,
}

#[async_trait]
pub trait Schedules: Send + Sync {
    /// Names the schedules that the caller has; answers where each stands, in the order asked. Others may have more, so
    /// that where one stood is forgotten only when nobody has named it for a day. Time in which nobody names any, not
    /// even none, does not count: after it, whoever has a schedule may be about to come back.
    async fn plan(&self, plans: Vec<Plan>, now: Timestamp) -> Result<Vec<Standing>>;

    /// Settles planned times: writes a row for each and makes what it makes, in one transaction. A time that has a
    /// row already stays as it is, except that a caught-up firing replaces one that was skipped because the
    /// schedule was held. While a rule holds the schedule, every time is skipped. Answers the rows as they stand
    /// now, in the order asked, and whether each was written by this call.
    async fn settle(&self, firings: Vec<Firing>, now: Timestamp) -> Result<Vec<(Fire, bool)>>;

    /// What was missed up to this planned time while the schedule was held needs no making up for any more.
    async fn made_up(&self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()>;

    /// Rows of planned times before `before`, if given, the latest first.
    async fn fires(
        &self,
        schedule: &ScheduleName,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<FirePage>;
}
