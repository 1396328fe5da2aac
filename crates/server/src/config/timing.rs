//! What schedules and sources have in common: when something is planned, and what becomes of times that passed.

use std::time::Duration;

use pointsman_core::Priority;
use pointsman_core::cron::{Dialect, Expression, Zone};
use pointsman_core::fire::CatchUp;
use pointsman_engine::Schedule;

use super::decode::{Fields, duration, one_of, parsed, whole};
use super::fault::Findings;
use super::yaml::Node;

/// How the fields of an expression are read.
pub(super) fn dialect(fields: &Fields, usual: Dialect, findings: &mut Findings) -> Dialect {
    fields.or("dialect", usual, findings, |n, f| parsed(n, f, str::parse::<Dialect>))
}

/// Whose clocks are meant.
pub(super) fn zone(fields: &Fields, usual: Zone, findings: &mut Findings) -> Zone {
    fields.or("timezone", usual, findings, |n, f| parsed(n, f, Zone::named))
}

pub(super) fn expression(node: &Node, dialect: Dialect, findings: &mut Findings) -> Option<Expression> {
    parsed(node, findings, |text| Expression::parse(text, dialect))
}

/// How urgent what a firing makes is.
pub(super) fn priority(fields: &Fields, findings: &mut Findings) -> Priority {
    fields.or("priority", Priority::default(), findings, |n, f| {
        let number = whole(n, f, 1..=Priority::MAX.get().into())?;
        Priority::try_from(i64::try_from(number).ok()?).ok()
    })
}

/// What becomes of times that passed, and how far firings are spread. What is not said stays as it usually is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    catch_up: Option<CatchUp>,
    within: Option<Duration>,
    jitter: Option<Duration>,
}

impl Policy {
    pub(super) fn read(fields: &Fields, findings: &mut Findings) -> Self {
        let words = [("one", CatchUp::One), ("all", CatchUp::All), ("none", CatchUp::None)];
        let catch_up = fields.get("catch_up").and_then(|n| one_of(n, findings, &words));
        let mut length = |key, least| fields.get(key).and_then(|n| duration(n, findings, least));
        let within = length("catch_up_within", Duration::from_secs(1));
        Self { catch_up, within, jitter: length("jitter", Duration::ZERO) }
    }

    /// A schedule with these policies.
    pub(super) fn applied(self, schedule: Schedule) -> Schedule {
        Schedule {
            catch_up: self.catch_up.unwrap_or(schedule.catch_up),
            catch_up_within: self.within.unwrap_or(schedule.catch_up_within),
            jitter: self.jitter.unwrap_or(schedule.jitter),
            ..schedule
        }
    }
}
