//! Cron: expressions for recurring times.
//!
//! ```text
//!   text ──parse──▶ Expression ──with a Zone──▶ Schedule ──next, prev, between──▶ instants
//!                       │                           │
//!                    describe                    warnings
//! ```
//!
//! Three forms are supported:
//!
//! - **Fields.** Five (minute, hour, day of month, month, day of week), six with the second first, seven with the
//!   year last. Five are parsed as in a crontab, Vixie's dialect: Sunday is 0 or 7, and when both day fields
//!   are restricted either is enough. Six or seven are parsed as Quartz: Sunday is 1, `?`, `L`, `W` and `#` are
//!   allowed, at most one day field is restricted. [`Dialect`] overrides the choice; the number of fields then only
//!   says whether there is a second and a year. In both, lists, ranges (also around the end: `22-2`, `FRI-MON`),
//!   steps and names in any case.
//! - **Names**: `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`, and as words
//!   `daily`, `weekly`, `every day`, `every hour` and so on; `fortnightly` is midnight of every second Sunday,
//!   counted from the first of 1970. They follow the calendar of the zone.
//! - **Intervals**: `every 90s`, `every 1h30m`, `every 12hrs`, `every minute`: multiples of the duration since
//!   1970-01-01 00:00 UTC, whatever the zone.
//!
//! [`Schedule`] documents what happens when clocks change. Nothing here reads a clock, and no search is long: an
//! expression that can never fire is rejected when it is parsed, and nothing fires after 2199.

mod bad_expression;
mod calendar;
mod days;
mod describe;
mod expression;
mod field;
mod interval;
mod number_set;
mod parse;
mod quartz;
mod schedule;
mod text_span;
mod vixie;
mod warnings;
mod zone;

use std::fmt;

pub use bad_expression::BadExpression;
pub use expression::Expression;
pub use field::CronField;
pub use schedule::{Schedule, UpcomingTimes};
pub use zone::{BadZone, Zone};

/// How fields are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// Five fields as Vixie's, six or seven as Quartz's.
    #[default]
    Auto,
    /// Five fields, as Vixie's cron reads them.
    Vixie,
    /// Six or seven fields, as Quartz reads them.
    Quartz,
}

/// The error of a text that is no [`Dialect`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a dialect; write `auto`, `vixie` or `quartz`")]
pub struct BadDialect(String);

impl std::str::FromStr for Dialect {
    type Err = BadDialect;
    fn from_str(text: &str) -> Result<Self, BadDialect> {
        match text {
            "auto" => Ok(Self::Auto),
            "vixie" => Ok(Self::Vixie),
            "quartz" => Ok(Self::Quartz),
            other => Err(BadDialect(other.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Vixie => "vixie",
            Self::Quartz => "quartz",
        })
    }
}
