//! Computes the instants at which a cron expression fires in a time zone.
//!
//! ```text
//!   instant ──offset──▶ local time ──find_time_at_or_beyond──▶ matching local time ──Zone::resolve_local──▶ instant
//! ```
//!
//! Both directions follow the same rules, so `prev` is the inverse of `next`.

use super::calendar::{CalendarFields, DstHandling};
use super::expression::{Expression, Recurrence};
use super::number_set::Direction;
use super::zone::{LocalTimeResolution, OffsetChange, Zone};
use super::{BadExpression, Dialect};
use crate::Timestamp;

/// A cron expression in a time zone; computes its planned times.
///
/// Where the local clock is set forward, local times are skipped; where it is set back, they are repeated. An
/// expression that lists its seconds, minutes and hours (`30 2 * * *`, `0 1,2,3 * * *`) fires at each of these times
/// once: a skipped one at the first instant after the gap, a repeated one at its first occurrence. Skipped times that
/// fire at the same instant, or at one that matches anyway, are one fire. An expression with a `*`, a range or a step
/// in one of these three fields (`*/5 * * * *`, `0 0-6 * * *`, `*/20 2 * * *`) does not fire at skipped times, and
/// fires at repeated times twice. Either way planned times strictly increase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    expression: Expression,
    zone: Zone,
}

const MICROS_PER_SECOND: i64 = 1_000_000;

/// 2200-01-02 00:00 UTC: by then 2199 has ended in every zone, and nothing fires any more.
const LAST_POSSIBLE_FIRE_SECOND: i64 = 7_258_118_400 + 86_400;

impl Schedule {
    /// Combines an expression with a time zone.
    pub fn new(expression: Expression, zone: Zone) -> Self {
        Self { expression, zone }
    }

    /// Parses an expression in the dialect that its number of fields implies, in UTC.
    pub fn parse_utc(text: &str) -> Result<Self, BadExpression> {
        Ok(Self::new(Expression::parse(text, Dialect::Auto)?, Zone::utc()))
    }

    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The time zone in which the expression is evaluated.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first planned time after `after`, exclusive. None when there is none before 2200.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.find_time_at_or_beyond(to_clamped_unix_second(after) + 1, Direction::Forward)
    }

    /// The last planned time before `before`, exclusive. None when there is none since 1970.
    pub fn prev(&self, before: Timestamp) -> Option<Timestamp> {
        let second = to_clamped_unix_second(Timestamp::from_micros(before.micros().saturating_sub(1)));
        if second < 0 { None } else { self.find_time_at_or_beyond(second, Direction::Backward) }
    }

    /// The planned times after `after`, in order.
    pub fn upcoming(&self, after: Timestamp) -> UpcomingTimes<'_> {
        UpcomingTimes { schedule: self, after: Some(after) }
    }

    /// The planned times after `from`, up to and including `to`: the times that a node has to catch
    /// up at `to` if it last checked at `from`.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.upcoming(from).take_while(move |planned| *planned <= to)
    }

    /// The planned time nearest to the second `from` in this direction, `from` included.
    fn find_time_at_or_beyond(&self, from: i64, direction: Direction) -> Option<Timestamp> {
        let found = match self.expression.recurrence() {
            Recurrence::Interval(interval) => interval.find_multiple_at_or_beyond(from, direction),
            Recurrence::Calendar(calendar) => match calendar.times.dst_handling {
                DstHandling::FireOnce => {
                    self.find_time_with_fire_once_dst_handling(calendar, from, direction)
                }
                DstHandling::SkipAndRepeat => {
                    self.find_time_with_skip_and_repeat_dst_handling(calendar, from, direction)
                }
            },
        };
        let planned = found.filter(|second| (0..=LAST_POSSIBLE_FIRE_SECOND).contains(second))?;
        Some(Timestamp::from_micros(planned * MICROS_PER_SECOND))
    }

    /// Finds a planned time as [`DstHandling::FireOnce`] requires.
    fn find_time_with_fire_once_dst_handling(
        &self,
        calendar: &CalendarFields,
        from: i64,
        direction: Direction,
    ) -> Option<i64> {
        // Forward the search starts from the second before, so that it walks into a gap that ends at `from`.
        let start = direction.select(from - 1, from);
        let offset = self.zone.offset_seconds_at(start);
        let mut local = start + offset + direction.select(1, 0);
        if let LocalTimeResolution::Fold(fold) = self.zone.resolve_local(start + offset)
            && offset == fold.offset_after
        {
            // `start` is in the second pass of a fold: all repeated times have fired in the first pass.
            local = direction.select(fold.affected_local_range().1, fold.affected_local_range().1 - 1);
        }
        let found = calendar.find_time_at_or_beyond(local, direction)?;
        Some(match self.zone.resolve_local(found) {
            LocalTimeResolution::Once(instant) => instant,
            LocalTimeResolution::Gap(gap) => gap.at,
            LocalTimeResolution::Fold(fold) => found - fold.offset_before,
        })
    }

    /// Finds a planned time as [`DstHandling::SkipAndRepeat`] requires.
    fn find_time_with_skip_and_repeat_dst_handling(
        &self,
        calendar: &CalendarFields,
        from: i64,
        direction: Direction,
    ) -> Option<i64> {
        let offset = self.zone.offset_seconds_at(from);
        let mut local = from + offset;
        if let LocalTimeResolution::Fold(fold) = self.zone.resolve_local(local) {
            if let Some(found) = find_in_fold(calendar, fold, from, direction) {
                return Some(found);
            }
            local = fold.first_unaffected(direction);
        }
        loop {
            let found = calendar.find_time_at_or_beyond(local, direction)?;
            match self.zone.resolve_local(found) {
                LocalTimeResolution::Once(instant) => return Some(instant),
                LocalTimeResolution::Fold(fold) => return Some(found - fold.fold_offsets(direction).0),
                LocalTimeResolution::Gap(gap) => local = gap.first_unaffected(direction),
            }
        }
    }
}

/// The Unix second of an instant, clamped to just outside the years in which schedules fire.
pub(super) fn to_clamped_unix_second(instant: Timestamp) -> i64 {
    instant.micros().div_euclid(MICROS_PER_SECOND).clamp(-1, LAST_POSSIBLE_FIRE_SECOND)
}

/// Searches the rest of a fold that contains `from`: the current pass, then the following one.
fn find_in_fold(
    calendar: &CalendarFields,
    fold: OffsetChange,
    from: i64,
    direction: Direction,
) -> Option<i64> {
    let (first_pass_offset, second_pass_offset) = fold.fold_offsets(direction);
    let find_within_fold = |local: i64| {
        calendar.find_time_at_or_beyond(local, direction).filter(|found| fold.affects_local_time(*found))
    };
    let second_pass =
        || find_within_fold(fold.first_affected(direction)).map(|found| found - second_pass_offset);
    let in_first_pass = if direction == Direction::Forward { from < fold.at } else { from >= fold.at };
    if in_first_pass {
        find_within_fold(from + first_pass_offset).map(|found| found - first_pass_offset).or_else(second_pass)
    } else {
        find_within_fold(from + second_pass_offset).map(|found| found - second_pass_offset)
    }
}

/// An iterator over the planned times of a schedule, in order: see [`Schedule::upcoming`].
#[derive(Clone, Debug)]
pub struct UpcomingTimes<'s> {
    schedule: &'s Schedule,
    after: Option<Timestamp>,
}

impl Iterator for UpcomingTimes<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        self.after = self.schedule.next(self.after?);
        self.after
    }
}

impl std::iter::FusedIterator for UpcomingTimes<'_> {}
