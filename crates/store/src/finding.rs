//! Findings of a store check (`pointsman doctor`).

use std::error::Error;

use pointsman_core::ErrorChain;
use serde::Serialize;

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    Ok,
    /// The store works, but not well or not for long.
    Warning,
    /// The store does not work, or acknowledged data can be lost.
    Fault,
}

/// One checked property of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub name: &'static str,
    #[serde(rename = "verdict")]
    pub severity: FindingSeverity,
    #[serde(rename = "found")]
    pub observation: String,
    /// How to fix the problem.
    pub advice: Option<String>,
}

impl Finding {
    /// Builds a finding without a problem.
    pub fn ok(name: &'static str, observation: impl Into<String>) -> Self {
        Self { name, severity: FindingSeverity::Ok, observation: observation.into(), advice: None }
    }

    /// Builds a finding that is a warning.
    pub fn warning(name: &'static str, observation: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Warning, ..Self::ok(name, observation) }
    }

    /// Builds a fault from the error of opening a store. The text after the last `; ` of its message is the advice.
    pub fn from_open_error(name: &'static str, error: &dyn Error) -> Self {
        let message = error.to_string();
        let cause = error.source().map(|cause| format!(": {}", ErrorChain(cause))).unwrap_or_default();
        match message.rsplit_once("; ") {
            Some((problem, advice)) => {
                Self::fault(name, format!("{problem}{cause}")).with_advice(capitalize(advice))
            }
            None => Self::fault(name, message + &cause),
        }
    }

    /// Builds a finding that is a fault.
    pub fn fault(name: &'static str, observation: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Fault, ..Self::ok(name, observation) }
    }

    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

/// Largest clock difference, in seconds, that is no warning.
const MAX_CLOCK_OFFSET_SECONDS: f64 = 1.0;

/// Compares a server's clock with this machine's: the server's was `ahead_seconds` ahead at some moment within
/// `read_seconds` after this machine's was read.
pub fn check_clock_offset(ahead_seconds: f64, read_seconds: f64) -> Finding {
    let offset_seconds =
        if ahead_seconds < 0.0 { ahead_seconds } else { (ahead_seconds - read_seconds).max(0.0) };
    let observation = match offset_seconds {
        offset_seconds if offset_seconds.abs() < 0.05 => "as this machine's".into(),
        offset_seconds if offset_seconds > 0.0 => format!("{offset_seconds:.1} s ahead of this machine's"),
        offset_seconds => format!("{:.1} s behind this machine's", -offset_seconds),
    };
    match offset_seconds.abs() > MAX_CLOCK_OFFSET_SECONDS {
        true => Finding::warning("clock", observation)
            .with_advice("Synchronize both machines' clocks (NTP): a node whose clock is off by more than 30 s is out of service."),
        false => Finding::ok("clock", observation),
    }
}

/// Capitalizes the first letter of a clause.
fn capitalize(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Formats a list: the first items, and the number of the others.
pub fn format_first_items(items: &[String], max_items: usize) -> String {
    let listed = items.iter().take(max_items).map(String::as_str).collect::<Vec<_>>().join("; ");
    match items.len() {
        n if n > max_items => format!("{listed}; and {} more", n - max_items),
        _ => listed,
    }
}

/// Formats a size with a binary unit.
pub fn format_bytes(bytes: u64) -> String {
    const SIZE_UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = (bytes as f64, "bytes");
    for unit in SIZE_UNITS {
        if scaled.0 < 1024.0 {
            break;
        }
        scaled = (scaled.0 / 1024.0, unit);
    }
    match scaled {
        (number, unit) if number < 10.0 && unit != "bytes" => format!("{number:.1} {unit}"),
        (number, unit) => format!("{number:.0} {unit}"),
    }
}

/// Formats a duration in seconds, minutes, hours or days, whichever suits its length.
pub fn format_age(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_offset_more_than_a_second_beyond_the_read_delay_is_a_warning() {
        let check = |ahead_seconds, read_seconds| {
            let Finding { severity, observation, .. } = check_clock_offset(ahead_seconds, read_seconds);
            (severity, observation)
        };
        assert_eq!(check(0.001, 0.002), (FindingSeverity::Ok, "as this machine's".into()));
        assert_eq!(check(2.0, 2.5), (FindingSeverity::Ok, "as this machine's".into()));
        assert_eq!(check(3.5, 0.5), (FindingSeverity::Warning, "3.0 s ahead of this machine's".into()));
        assert_eq!(check(-0.4, 0.5), (FindingSeverity::Ok, "0.4 s behind this machine's".into()));
        assert_eq!(check(-60.0, 0.5), (FindingSeverity::Warning, "60.0 s behind this machine's".into()));
    }

    #[test]
    fn sizes_are_formatted_with_units() {
        let formatted = [0, 1023, 1024, 12_345, 5_000_000, 1 << 40].map(format_bytes);
        assert_eq!(formatted, ["0 bytes", "1023 bytes", "1.0 KiB", "12 KiB", "4.8 MiB", "1.0 TiB"]);
    }

    #[test]
    fn ages_are_formatted_with_units() {
        assert_eq!(
            [0.4, 90.0, 600.0, 7300.0, 900_000.0].map(format_age),
            ["0 s", "90 s", "10 min", "2 h", "10 d"]
        );
    }

    #[test]
    fn severities_are_ordered() {
        assert!(
            FindingSeverity::Ok < FindingSeverity::Warning
                && FindingSeverity::Warning < FindingSeverity::Fault
        );
    }
}
