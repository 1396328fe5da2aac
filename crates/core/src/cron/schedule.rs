//! An expression in a time zone: its instants.
//!
//! ```text
//!   instant ──offset──▶ local time ──Calendar::seek──▶ nearest matching local time ──Zone::place──▶ instant
//! ```
//!
//! Both directions follow the same rules, so `prev` undoes `next`.

use super::bits::Way;
use super::calendar::{Calendar, Manner};
use super::expression::{Expression, Plan};
use super::zone::{Place, Shift, Zone};
use super::{BadExpression, Dialect};
use crate::Timestamp;

/// When something is to happen: an expression and the zone whose clock it reads.
///
/// Where that clock is put forward, local times are lost; where it is put back, they come twice. An expression
/// that names its seconds, minutes and hours one by one (`30 2 * * *`, `0 1,2,3 * * *`) means each of these times
/// once: a lost one fires at the first instant after the gap, a doubled one at its first coming. Lost times that
/// end up on the same instant, or on one that matches anyway, are one firing. An expression with a `*`, a range
/// or a step among these three fields (`*/5 * * * *`, `0 0-6 * * *`, `*/20 2 * * *`) means a rhythm: what is lost
/// stays lost, and both passes fire. Either way planned times strictly increase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    expression: Expression,
    zone: Zone,
}

const SECOND: i64 = 1_000_000;

/// 2200-01-02 00:00 UTC: by then 2199 has ended in every zone, and nothing fires any more.
const LAST: i64 = 7_258_118_400 + 86_400;

impl Schedule {
    pub fn new(expression: Expression, zone: Zone) -> Self {
        Self { expression, zone }
    }

    /// An expression in whichever dialect its fields show, in UTC.
    pub fn utc(text: &str) -> Result<Self, BadExpression> {
        Ok(Self::new(Expression::parse(text, Dialect::Auto)?, Zone::utc()))
    }

    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first planned time after `after`, which itself does not count. None when there is none before 2200.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.seek(second_of(after) + 1, Way::Forward)
    }

    /// The last planned time before `before`, which itself does not count. None when there is none since 1970.
    pub fn prev(&self, before: Timestamp) -> Option<Timestamp> {
        let second = second_of(Timestamp::from_micros(before.micros().saturating_sub(1)));
        if second < 0 { None } else { self.seek(second, Way::Backward) }
    }

    /// The planned times after `after`, in order.
    pub fn upcoming(&self, after: Timestamp) -> Upcoming<'_> {
        Upcoming { schedule: self, after: Some(after) }
    }

    /// The planned times after `from`, up to `to` and including it: what a node that last looked at `from` has
    /// to catch up with at `to`.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.upcoming(from).take_while(move |planned| *planned <= to)
    }

    /// The nearest planned second, `from` itself or further along.
    fn seek(&self, from: i64, way: Way) -> Option<Timestamp> {
        let found = match self.expression.plan() {
            Plan::Every(every) => every.seek(from, way),
            Plan::Calendar(calendar) => match calendar.times.manner {
                Manner::Fixed => self.seek_fixed(calendar, from, way),
                Manner::Interval => self.seek_interval(calendar, from, way),
            },
        };
        let planned = found.filter(|second| (0..=LAST).contains(second))?;
        Some(Timestamp::from_micros(planned * SECOND))
    }

    fn seek_fixed(&self, calendar: &Calendar, from: i64, way: Way) -> Option<i64> {
        // Forward the search starts from the second before, so that it walks into a gap that ends at `from`.
        let known = way.start(from - 1, from);
        let offset = self.zone.offset(known);
        let mut local = known + offset + way.start(1, 0);
        if let Place::Fold(fold) = self.zone.place(known + offset)
            && offset == fold.after
        {
            // In the second pass all doubled times have fired.
            local = way.start(fold.span().1, fold.span().1 - 1);
        }
        let found = calendar.seek(local, way)?;
        Some(match self.zone.place(found) {
            Place::Once(instant) => instant,
            Place::Gap(gap) => gap.at,
            Place::Fold(fold) => found - fold.before,
        })
    }

    fn seek_interval(&self, calendar: &Calendar, from: i64, way: Way) -> Option<i64> {
        let offset = self.zone.offset(from);
        let mut local = from + offset;
        if let Place::Fold(fold) = self.zone.place(local) {
            if let Some(found) = seek_in_fold(calendar, fold, from, way) {
                return Some(found);
            }
            local = fold.exit(way);
        }
        loop {
            let found = calendar.seek(local, way)?;
            match self.zone.place(found) {
                Place::Once(instant) => return Some(instant),
                Place::Fold(fold) => return Some(found - fold.passes(way).0),
                Place::Gap(gap) => local = gap.exit(way),
            }
        }
    }
}

/// The second that an instant lies in; what lies outside the years of schedules counts as just outside.
pub(super) fn second_of(instant: Timestamp) -> i64 {
    instant.micros().div_euclid(SECOND).clamp(-1, LAST)
}

/// Searches what is left of a fold that `from` lies in: the pass it is in, then the one that follows.
fn seek_in_fold(calendar: &Calendar, fold: Shift, from: i64, way: Way) -> Option<i64> {
    let (entered, left) = fold.passes(way);
    let within = |local: i64| calendar.seek(local, way).filter(|found| fold.holds(*found));
    let second_pass = || within(fold.entry(way)).map(|found| found - left);
    let in_first_pass = if way == Way::Forward { from < fold.at } else { from >= fold.at };
    if in_first_pass {
        within(from + entered).map(|found| found - entered).or_else(second_pass)
    } else {
        within(from + left).map(|found| found - left)
    }
}

/// See [`Schedule::upcoming`].
#[derive(Clone, Debug)]
pub struct Upcoming<'s> {
    schedule: &'s Schedule,
    after: Option<Timestamp>,
}

impl Iterator for Upcoming<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        self.after = self.schedule.next(self.after?);
        self.after
    }
}

impl std::iter::FusedIterator for Upcoming<'_> {}
