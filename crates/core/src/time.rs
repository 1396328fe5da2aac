//! Instants, and the parsing of durations. Nothing here reads a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant: microseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first instant of 1970.
    pub const MIN: Self = Self(0);
    /// The last instant of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// The instant this many microseconds after 1970 began.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The instant this many milliseconds after 1970 began.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// The microseconds since 1970 began.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The milliseconds since 1970 began, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The instant `duration` later, at most [`Timestamp::MAX`].
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros)).min(Self::MAX)
    }

    /// The instant `duration` earlier. It may be before [`Timestamp::MIN`].
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The time from `earlier` to this; zero if this is not after it.
    pub fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Formats the instant as RFC 3339 in UTC with six fraction digits.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant:.6}"),
            Err(_) => write!(f, "{}µs", self.0),
        }
    }
}

/// The error of a text that is no [`Timestamp`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time; write one like 2026-01-31T12:00:00Z")]
pub struct BadTime(String);

impl std::str::FromStr for Timestamp {
    type Err = BadTime;
    fn from_str(text: &str) -> Result<Self, BadTime> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| BadTime(text.into()))?;
        let instant = Self(instant.as_microsecond());
        if (Self::MIN..=Self::MAX).contains(&instant) { Ok(instant) } else { Err(BadTime(text.into())) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The error of a text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write one like {examples}")]
pub struct BadDuration {
    text: String,
    examples: &'static str,
}

/// The longest accepted duration: 100 years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Parses a duration in an HTTP parameter: `60`, `0.5`, `60s`, `1h2m3s`, `PT1M`, `P1DT2H`; nothing else.
pub fn parse_http_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration { text: text.into(), examples: "`60`, `60s`, `1h2m3s` or `PT60S`" };
    let parsed = match text.strip_prefix('P') {
        Some(after_p) => parse_iso_duration_after_p(after_p),
        None => parse_seconds(text)
            .or_else(|| parse_numbers_with_units(text, &[('h', 3600), ('m', 60), ('s', 1)])),
    };
    parsed.filter(|d| *d <= MAX_DURATION).ok_or_else(bad)
}

/// Parses a duration in the configuration: all the forms of HTTP, and also `250ms`, `30d`, `1d12h`.
pub fn parse_config_duration(text: &str) -> Result<Duration, BadDuration> {
    if let Ok(duration) = parse_http_duration(text) {
        return Ok(duration);
    }
    let bad = || BadDuration { text: text.into(), examples: "`250ms`, `60s`, `1h30m`, `30d` or `PT60S`" };
    let parsed = match text.strip_suffix("ms") {
        Some(number) => parse_digits(number).map(Duration::from_millis),
        None => parse_numbers_with_units(text, &[('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)]),
    };
    parsed.filter(|d| *d <= MAX_DURATION).ok_or_else(bad)
}

/// Parses `N` or `N.N`, with an optional `s` or `S`.
fn parse_seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix(['s', 'S']).unwrap_or(text);
    parse_decimal_seconds(number)
}

/// Parses `N` or `N.N` as seconds.
fn parse_decimal_seconds(number: &str) -> Option<Duration> {
    match number.split_once('.') {
        None => parse_digits(number).map(Duration::from_secs),
        Some((seconds, fraction)) => {
            let seconds = parse_digits(seconds)?;
            if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let nanos: u32 = format!("{fraction:0<9}")[..9].parse().ok()?;
            Some(Duration::new(seconds, nanos))
        }
    }
}

/// Parses a whole number of at most twelve digits.
fn parse_digits(digits: &str) -> Option<u64> {
    if digits.is_empty() || digits.len() > 12 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Parses whole numbers with units, each unit at most once and in the given order.
fn parse_numbers_with_units(text: &str, order: &[(char, u64)]) -> Option<Duration> {
    let mut rest = text;
    let mut total = 0u64;
    let mut has_number = false;
    for (unit, seconds) in order {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 && rest[digits..].starts_with(*unit) {
            total = total.checked_add(parse_digits(&rest[..digits])?.checked_mul(*seconds)?)?;
            rest = &rest[digits + 1..];
            has_number = true;
        }
    }
    (has_number && rest.is_empty()).then(|| Duration::from_secs(total))
}

/// Parses the text after the `P` of an ISO 8601 duration. Only days, hours, minutes and seconds are accepted.
fn parse_iso_duration_after_p(after_p: &str) -> Option<Duration> {
    let (days, time) = match after_p.split_once('T') {
        Some((days, time)) if !time.is_empty() => (days, time),
        Some(_) => return None,
        None => (after_p, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    if !days.is_empty() {
        total += parse_numbers_with_units(days, &[('D', 86_400)])?;
    }
    if !time.is_empty() {
        let (hours_minutes, seconds) = match time.strip_suffix('S') {
            None => (time, None),
            Some(body) => {
                let seconds_start = body.rfind(['H', 'M']).map_or(0, |i| i + 1);
                (&body[..seconds_start], Some(parse_decimal_seconds(&body[seconds_start..])?))
            }
        };
        if !hours_minutes.is_empty() {
            total += parse_numbers_with_units(hours_minutes, &[('H', 3600), ('M', 60)])?;
        }
        total += seconds.unwrap_or_default();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_durations_are_parsed_or_rejected() {
        let ms = |n| Some(Duration::from_millis(n));
        for (text, want) in [
            ("0", ms(0)),
            ("60", ms(60_000)),
            ("60s", ms(60_000)),
            ("60S", ms(60_000)),
            ("0.25", ms(250)),
            ("1.5s", ms(1500)),
            ("1h2m3s", ms(3_723_000)),
            ("2m", ms(120_000)),
            ("1h3s", ms(3_603_000)),
            ("PT60S", ms(60_000)),
            ("PT0.5S", ms(500)),
            ("P1DT2H", ms(93_600_000)),
            ("P2D", ms(172_800_000)),
            ("PT1H2M3.5S", ms(3_723_500)),
            ("", None),
            ("s", None),
            ("-1", None),
            ("+1", None),
            (" 1", None),
            ("1 s", None),
            ("5 minutes", None),
            ("10ms", None),
            (".1", None),
            ("1.", None),
            ("1.5m", None),
            ("3s1h", None),
            ("1m1m", None),
            ("1d", None),
            ("P", None),
            ("PT", None),
            ("P1H", None),
            ("PT1D", None),
            ("PT1S1M", None),
            ("-PT1S", None),
            ("1e3", None),
            ("99999999999999999999", None),
            ("４s", None),
        ] {
            assert_eq!(parse_http_duration(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn durations_in_the_configuration_may_also_have_days_and_milliseconds() {
        assert_eq!(parse_config_duration("30d").unwrap(), Duration::from_secs(30 * 86_400));
        assert_eq!(parse_config_duration("1d12h").unwrap(), Duration::from_secs(36 * 3600));
        assert_eq!(parse_config_duration("250ms").unwrap(), Duration::from_millis(250));
        assert!(parse_config_duration("1w").is_err());
    }

    #[test]
    fn timestamps_have_six_fraction_digits_and_round_trip() {
        let instant = Timestamp::from_micros(1_478_257_655_827_000);
        assert_eq!(instant.to_string(), "2016-11-04T11:07:35.827000Z");
        assert_eq!("2016-11-04T11:07:35.827Z".parse::<Timestamp>().unwrap(), instant);
        assert_eq!("2016-11-04T12:07:35.827+01:00".parse::<Timestamp>().unwrap(), instant);
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!("1969-12-31T23:59:59Z".parse::<Timestamp>().is_err());
    }
}
