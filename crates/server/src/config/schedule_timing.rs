//! Settings that schedules and sources share: cron expressions, time zones, and the policies for missed times.

use std::time::Duration;

use pointsman_core::Priority;
use pointsman_core::cron::{BadExpression, Dialect, Expression, Zone};
use pointsman_core::fire::CatchUpPolicy;
use pointsman_engine::ScheduleSpec;

use super::decode::{CheckedMap, parse_scalar, read_choice, read_duration, read_integer, read_text};
use super::fault::Findings;
use super::yaml::YamlNode;

/// Reads the dialect of cron expressions.
pub(super) fn read_dialect(fields: &CheckedMap, default: Dialect, findings: &mut Findings) -> Dialect {
    fields.read_or_default("dialect", default, findings, |n, f| parse_scalar(n, f, str::parse::<Dialect>))
}

/// Reads the time zone.
pub(super) fn read_time_zone(fields: &CheckedMap, default: Zone, findings: &mut Findings) -> Zone {
    fields.read_or_default("timezone", default, findings, |n, f| parse_scalar(n, f, Zone::from_name))
}

/// Reads a cron expression. A fault points at the invalid part of the expression if a file contains it on one line.
pub(super) fn read_cron_expression(
    node: &YamlNode,
    dialect: Dialect,
    findings: &mut Findings,
) -> Option<Expression> {
    let text = read_text(node, findings)?;
    let BadExpression { field, column, problem } = match Expression::parse(text, dialect) {
        Ok(expression) => return Some(expression),
        Err(error) => error,
    };
    let (location, message) = match (node.location.locate_character(text, column), field) {
        (Some(location), Some(field)) => (location, format!("{field} field: {problem}")),
        (Some(location), None) => (location, problem),
        (None, Some(field)) => (node.location.clone(), format!("character {column} ({field}): {problem}")),
        (None, None) => (node.location.clone(), format!("character {column}: {problem}")),
    };
    findings.add_fault(&location, message);
    None
}

/// Reads the priority of the events, runs or orders that firings create.
pub(super) fn read_priority(fields: &CheckedMap, findings: &mut Findings) -> Priority {
    fields.read_or_default("priority", Priority::default(), findings, |n, f| {
        let number = read_integer(n, f, 1..=Priority::MAX.get().into())?;
        Priority::try_from(i64::try_from(number).ok()?).ok()
    })
}

/// The policies for missed times and jitter. Policies that are not set keep their defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulePolicy {
    catch_up: Option<CatchUpPolicy>,
    catch_up_window: Option<Duration>,
    jitter: Option<Duration>,
}

impl SchedulePolicy {
    pub(super) fn read(fields: &CheckedMap, findings: &mut Findings) -> Self {
        let choices =
            [("one", CatchUpPolicy::One), ("all", CatchUpPolicy::All), ("none", CatchUpPolicy::None)];
        let catch_up = fields.get("catch_up").and_then(|n| read_choice(n, findings, &choices));
        let mut length = |key, least| fields.get(key).and_then(|n| read_duration(n, findings, least));
        let within = length("catch_up_within", Duration::from_secs(1));
        Self { catch_up, catch_up_window: within, jitter: length("jitter", Duration::ZERO) }
    }

    /// Applies these policies to a schedule.
    pub(super) fn apply_to(self, schedule: ScheduleSpec) -> ScheduleSpec {
        ScheduleSpec {
            catch_up: self.catch_up.unwrap_or(schedule.catch_up),
            catch_up_window: self.catch_up_window.unwrap_or(schedule.catch_up_window),
            jitter: self.jitter.unwrap_or(schedule.jitter),
            ..schedule
        }
    }
}
