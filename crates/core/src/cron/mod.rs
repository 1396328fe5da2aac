//! Cron: when something is to happen again.
//!
//! ```text
//!   text ──parse──▶ Expression ──with a Zone──▶ Schedule ──next, prev, between──▶ instants
//!                       │                           │
//!                    describe                    warnings
//! ```
//!
//! Three forms are read:
//!
//! - **Fields.** Five (minute, hour, day of month, month, day of week), six with the second first, seven with the
//!   year last. Five are read as a crontab has them, Vixie's dialect: Sunday is 0 or 7, and when both day fields
//!   are restricted either is enough. Six or seven are read as Quartz: Sunday is 1, `?`, `L`, `W` and `#` are
//!   known, one day field is restricted at most. [`Dialect`] overrides the choice; the number of fields then only
//!   says whether there is a second and a year. In both, lists, ranges (also round the end: `22-2`, `FRI-MON`),
//!   steps and names in any case.
//! - **Names**: `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`, and as words
//!   `daily`, `weekly`, `every day`, `every hour` and so on; `fortnightly` is midnight of every second Sunday,
//!   counted from the first of 1970. They follow the calendar of the zone.
//! - **Intervals**: `every 90s`, `every 1h30m`, `every 12hrs`, `every minute`: multiples of the duration since
//!   1970-01-01 00:00 UTC, whatever the zone.
//!
//! What happens when clocks are moved is said at [`Schedule`]. Nothing here reads a clock, and no search is long:
//! what can never fire is refused when it is parsed, and nothing fires after 2199.

mod bits;
mod calendar;
mod days;
mod error;
mod every;
mod expression;
mod field;
mod parse;
mod quartz;
mod schedule;
mod text;
mod vixie;
mod warn;
mod words;
mod zone;

use std::fmt;

pub use error::BadExpression;
pub use expression::Expression;
pub use field::Field;
pub use schedule::{Schedule, Upcoming};
pub use zone::{BadZone, Zone};

/// How fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// Five fields as Vixie's, six or seven as Quartz's.
    #[default]
    Auto,
    Vixie,
    Quartz,
}

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
