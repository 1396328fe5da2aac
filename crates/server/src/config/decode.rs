//! Reading typed values out of the tree. Each reader reports what it cannot take and answers `None`, so that
//! the caller goes on and finds the other faults too.

use std::time::Duration;

use pointsman_core::time::parse_config_duration;

use super::fault::Findings;
use super::nearest::hint;
use super::secret::masked;
use super::yaml::{Entry, Kind, Node};

/// The keys that a map may have.
#[derive(Debug)]
pub(super) struct Keys {
    /// What the map describes, as in "unknown setting of a handler".
    pub(super) of: &'static str,
    pub(super) known: &'static [&'static str],
    /// Part of the configuration language, but not there yet.
    pub(super) later: &'static [&'static str],
}

/// Names of the same thing in different maps: nobody mistyped one for the other.
const AKIN: &[(&str, &str)] = &[("schedule", "cron"), ("cron", "schedule")];

impl Keys {
    /// `; did you mean …?`, or nothing.
    fn hint(&self, wrong: &str) -> String {
        let akin = AKIN.iter().find(|(other, here)| *other == wrong && self.known.contains(here));
        match akin {
            Some((_, here)) => format!("; did you mean `{here}`?"),
            None => hint(wrong, self.known.iter().copied()),
        }
    }
}

/// A map whose keys have been checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'n> {
    pub(super) node: &'n Node,
}

impl<'n> Fields<'n> {
    /// Checks that a node is a map with known keys. Nothing at all counts as an empty map.
    pub(super) fn open(node: &'n Node, keys: &Keys, findings: &mut Findings) -> Option<Self> {
        for entry in entries(node, keys.of, findings)? {
            let key = entry.key.as_str();
            if keys.known.contains(&key) {
                continue;
            }
            let (of, name) = (keys.of, &entry.key);
            let message = if keys.later.contains(&key) {
                format!("`{key}` is not supported yet")
            } else {
                format!("unknown setting {name:?} of {of}{}", keys.hint(key))
            };
            findings.fault(&entry.at, message);
        }
        Some(Self { node })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.node.get(key)
    }

    /// A setting that must be there.
    pub(super) fn need(&self, key: &str, what: &str, findings: &mut Findings) -> Option<&'n Node> {
        let found = self.get(key);
        if found.is_none() {
            findings.fault(&self.node.place, format!("{what} needs `{key}`"));
        }
        found
    }

    /// Reads a setting if it is there; its default otherwise, and also where it is at fault, since the fault
    /// has been reported by then.
    pub(super) fn or<T>(
        &self,
        key: &str,
        default: T,
        findings: &mut Findings,
        read: impl FnOnce(&Node, &mut Findings) -> Option<T>,
    ) -> T {
        self.get(key).and_then(|node| read(node, findings)).unwrap_or(default)
    }
}

/// The entries of a map. Nothing at all counts as an empty one.
pub(super) fn entries<'n>(node: &'n Node, what: &str, findings: &mut Findings) -> Option<&'n [Entry]> {
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        Kind::Null => Some(&[]),
        Kind::Scalar { .. } | Kind::List(_) => {
            findings.fault(&node.place, format!("{what} must be a map, not {}", node.what()));
            None
        }
    }
}

/// The items of a list. Nothing at all counts as an empty one.
pub(super) fn items<'n>(node: &'n Node, what: &str, findings: &mut Findings) -> Option<&'n [Node]> {
    match &node.kind {
        Kind::List(items) => Some(items),
        Kind::Null => Some(&[]),
        Kind::Scalar { .. } | Kind::Map(_) => {
            findings.fault(&node.place, format!("{what} must be a list, not {}", node.what()));
            None
        }
    }
}

/// Any plain value, quoted or not, as its text.
pub(super) fn text<'n>(node: &'n Node, findings: &mut Findings) -> Option<&'n str> {
    match &node.kind {
        Kind::Scalar { text, .. } => Some(text),
        Kind::Null | Kind::List(_) | Kind::Map(_) => {
            findings.fault(&node.place, format!("expected text, found {}", node.what()));
            None
        }
    }
}

/// A value that its own type checks.
pub(super) fn parsed<T, E: std::fmt::Display>(
    node: &Node,
    findings: &mut Findings,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let value = text(node, findings)?;
    parse(value).map_err(|error| findings.fault(&node.place, masked(error.to_string(), value))).ok()
}

/// A whole number within bounds. Underscores may group its digits.
pub(super) fn whole(
    node: &Node,
    findings: &mut Findings,
    bounds: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let (least, most) = (bounds.start(), bounds.end());
    parsed(node, findings, |text| {
        let digits = text.replace('_', "");
        let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        match number {
            Some(number) if bounds.contains(&number) => Ok(number),
            Some(number) if number < *least => Err(format!("{number} is too small; the least is {least}")),
            Some(number) => Err(format!("{number} is too large; the most is {most}")),
            None => Err(format!("{text:?} is not a whole number")),
        }
    })
}

/// A number of bytes within bounds, with or without a binary unit.
pub(super) fn bytes(
    node: &Node,
    findings: &mut Findings,
    bounds: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    parsed(node, findings, |text| match parse_bytes(text) {
        Some(bytes) if bounds.contains(&bytes) => Ok(bytes),
        Some(bytes) if bytes < *bounds.start() => {
            Err(format!("{text} is too small; the least is {}", format_bytes(*bounds.start())))
        }
        Some(_) => Err(format!("{text} is too large; the most is {}", format_bytes(*bounds.end()))),
        None => Err(format!(
            "{text:?} is not a size; write a number of bytes, or one like `64KiB`, `256MiB` or `1GiB`"
        )),
    })
}

const BYTE_UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];

fn parse_bytes(text: &str) -> Option<u64> {
    let unit = BYTE_UNITS.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    number.checked_mul(1 << shift)
}

/// A number of bytes in the largest unit that divides it.
fn format_bytes(bytes: u64) -> String {
    let unit = BYTE_UNITS.into_iter().rev().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A duration of at least `least`.
pub(super) fn duration(node: &Node, findings: &mut Findings, least: Duration) -> Option<Duration> {
    parsed(node, findings, |text| match parse_config_duration(text) {
        Ok(duration) if duration < least => {
            Err(format!("{text} is too short; the least is {}", words(least)))
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    })
}

pub(super) fn boolean(node: &Node, findings: &mut Findings) -> Option<bool> {
    parsed(node, findings, |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    })
}

/// One of a few words, each with its meaning.
pub(super) fn one_of<T: Copy>(node: &Node, findings: &mut Findings, words: &[(&str, T)]) -> Option<T> {
    parsed(node, findings, |text| match words.iter().find(|(word, _)| *word == text) {
        Some((_, meaning)) => Ok(*meaning),
        None => {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("{text:?} is not one of {}", all.join(", ")))
        }
    })
}

/// A duration as configuration writes it, in the largest units that fit.
pub(super) fn words(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 || !millis.is_multiple_of(1000) {
        return format!("{millis}ms");
    }
    let mut rest = duration.as_secs();
    let mut shown = String::new();
    for (unit, seconds) in [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)] {
        if rest >= seconds {
            shown.push_str(&format!("{}{unit}", rest / seconds));
            rest %= seconds;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read};
    use super::*;

    #[test]
    fn whole_numbers_keep_their_bounds() {
        assert_eq!(read("1_000", |n, f| whole(n, f, 1..=2000)), Ok(1000));
        for (text, want) in [
            ("0", "0 is too small; the least is 1"),
            ("11", "11 is too large; the most is 10"),
            ("-1", "\"-1\" is not a whole number"),
            ("1.5", "\"1.5\" is not a whole number"),
            ("99999999999999999999999", "\"99999999999999999999999\" is not a whole number"),
            ("[1]", "expected text, found a list"),
            ("~", "expected text, found nothing"),
        ] {
            assert_eq!(faults_of(text, |n, f| whole(n, f, 1..=10)), [want], "{text}");
        }
    }

    #[test]
    fn durations_and_their_words() {
        let secs = Duration::from_secs;
        assert_eq!(read("90s", |n, f| duration(n, f, secs(1))), Ok(secs(90)));
        assert_eq!(faults_of("1s", |n, f| duration(n, f, secs(60))), ["1s is too short; the least is 1m"]);
        assert_eq!(words(secs(90_061)), "1d1h1m1s");
        assert_eq!(words(Duration::from_millis(1500)), "1500ms");
        assert_eq!(words(Duration::ZERO), "0ms");
    }

    #[test]
    fn unknown_keys_name_the_nearest_and_coming_ones_say_so() {
        let keys = Keys { of: "a lamp", known: &["colour", "height"], later: &["dimmer"] };
        let open = |n: &Node, f: &mut Findings| Fields::open(n, &keys, f).map(|_| ());
        assert_eq!(
            faults_of("{color: red, dimmer: 1, zzz: 2, height: 3}", open),
            [
                "unknown setting \"color\" of a lamp; did you mean `colour`?",
                "`dimmer` is not supported yet",
                "unknown setting \"zzz\" of a lamp",
            ]
        );
        assert_eq!(faults_of("[]", open), ["a lamp must be a map, not a list"]);
    }
}
