//! Reads typed values from the YAML tree. Each function reports an invalid value and returns `None`, so that the
//! caller continues and finds the other faults too.

use std::time::Duration;

use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::time::parse_config_duration;

use super::fault::Findings;
use super::secrets::mask_credentials;
use super::yaml::{YamlEntry, YamlKind, YamlNode};

/// The keys that a map may have.
#[derive(Debug)]
pub(super) struct AllowedKeys {
    /// The thing that the map describes, as in "unknown setting of a handler".
    pub(super) described_thing: &'static str,
    pub(super) names: &'static [&'static str],
    /// Names that are reserved for settings that do not exist yet.
    pub(super) not_yet_supported: &'static [&'static str],
}

/// Names of one setting in different maps, suggested for each other. They are too different to be found as typos.
const SUGGESTED_KEY_SYNONYMS: &[(&str, &str)] = &[("schedule", "cron"), ("cron", "schedule")];

impl AllowedKeys {
    /// The text `; did you mean …?` with the most similar key, or an empty text if no key is similar.
    fn did_you_mean_key_suffix(&self, wrong: &str) -> String {
        let synonym =
            SUGGESTED_KEY_SYNONYMS.iter().find(|(other, own)| *other == wrong && self.names.contains(own));
        match synonym {
            Some((_, own)) => format!("; did you mean `{own}`?"),
            None => did_you_mean_suffix(wrong, self.names.iter().copied()),
        }
    }
}

/// A map whose keys have been checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedMap<'n> {
    pub(super) node: &'n YamlNode,
}

impl<'n> CheckedMap<'n> {
    /// Checks that a node is a map with known keys. A null counts as an empty map.
    pub(super) fn from_node_with_known_keys(
        node: &'n YamlNode,
        keys: &AllowedKeys,
        findings: &mut Findings,
    ) -> Option<Self> {
        for entry in read_map_entries(node, keys.described_thing, findings)? {
            let key = entry.key.as_str();
            if keys.names.contains(&key) {
                continue;
            }
            let (of, name) = (keys.described_thing, &entry.key);
            let message = if keys.not_yet_supported.contains(&key) {
                format!("`{key}` is not supported yet")
            } else {
                format!("unknown setting {name:?} of {of}{}", keys.did_you_mean_key_suffix(key))
            };
            findings.add_fault(&entry.key_location, message);
        }
        Some(Self { node })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.node.get(key)
    }

    /// A setting that is required; reports a fault if it is missing.
    pub(super) fn get_required(
        &self,
        key: &str,
        owner: &str,
        findings: &mut Findings,
    ) -> Option<&'n YamlNode> {
        let found = self.get(key);
        if found.is_none() {
            findings.add_fault(&self.node.location, format!("{owner} needs `{key}`"));
        }
        found
    }

    /// Reads a setting. Returns the default if it is missing, or if it has a fault, which has been reported then.
    pub(super) fn read_or_default<T>(
        &self,
        key: &str,
        default: T,
        findings: &mut Findings,
        read: impl FnOnce(&YamlNode, &mut Findings) -> Option<T>,
    ) -> T {
        self.get(key).and_then(|node| read(node, findings)).unwrap_or(default)
    }
}

/// Reads the entries of a map. A null counts as an empty map; anything else is a fault.
pub(super) fn read_map_entries<'n>(
    node: &'n YamlNode,
    owner: &str,
    findings: &mut Findings,
) -> Option<&'n [YamlEntry]> {
    match &node.kind {
        YamlKind::Map(entries) => Some(entries),
        YamlKind::Null => Some(&[]),
        YamlKind::Scalar { .. } | YamlKind::List(_) => {
            findings
                .add_fault(&node.location, format!("{owner} must be a map, not {}", node.describe_kind()));
            None
        }
    }
}

/// Reads the items of a list. A null counts as an empty list; anything else is a fault.
pub(super) fn read_list_items<'n>(
    node: &'n YamlNode,
    owner: &str,
    findings: &mut Findings,
) -> Option<&'n [YamlNode]> {
    match &node.kind {
        YamlKind::List(items) => Some(items),
        YamlKind::Null => Some(&[]),
        YamlKind::Scalar { .. } | YamlKind::Map(_) => {
            findings
                .add_fault(&node.location, format!("{owner} must be a list, not {}", node.describe_kind()));
            None
        }
    }
}

/// Reads the text of a scalar, quoted or not.
pub(super) fn read_text<'n>(node: &'n YamlNode, findings: &mut Findings) -> Option<&'n str> {
    match &node.kind {
        YamlKind::Scalar { text, .. } => Some(text),
        YamlKind::Null | YamlKind::List(_) | YamlKind::Map(_) => {
            findings.add_fault(&node.location, format!("expected text, found {}", node.describe_kind()));
            None
        }
    }
}

/// Parses a scalar with the given function, whose error becomes the fault.
pub(super) fn parse_scalar<T, E: std::fmt::Display>(
    node: &YamlNode,
    findings: &mut Findings,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let value = read_text(node, findings)?;
    parse(value)
        .map_err(|error| findings.add_fault(&node.location, mask_credentials(error.to_string(), value)))
        .ok()
}

/// Reads an integer within bounds. Underscores may group its digits.
pub(super) fn read_integer(
    node: &YamlNode,
    findings: &mut Findings,
    bounds: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let (min, max) = (bounds.start(), bounds.end());
    parse_scalar(node, findings, |text| {
        let plain = text.replace('_', "");
        let digits = plain.strip_prefix('-').unwrap_or(&plain);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("{text:?} is not a whole number"));
        }
        let is_negative = digits.len() < plain.len();
        match plain.parse::<u64>() {
            Ok(number) if bounds.contains(&number) => Ok(number),
            Ok(number) if number < *min => Err(format!("{number} is too small; the least is {min}")),
            Err(_) if is_negative => Err(format!("{plain} is too small; the least is {min}")),
            Ok(_) | Err(_) => Err(format!("{plain} is too large; the most is {max}")),
        }
    })
}

/// Reads a number of bytes within bounds, with or without a binary unit.
pub(super) fn read_byte_size(
    node: &YamlNode,
    findings: &mut Findings,
    bounds: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    parse_scalar(node, findings, |text| match parse_byte_size(text) {
        Some(bytes) if bounds.contains(&bytes) => Ok(bytes),
        Some(bytes) if bytes < *bounds.start() => {
            Err(format!("{text} is too small; the least is {}", format_byte_size(*bounds.start())))
        }
        Some(_) => Err(format!("{text} is too large; the most is {}", format_byte_size(*bounds.end()))),
        None => Err(format!(
            "{text:?} is not a size; write a number of bytes, or one like `64KiB`, `256MiB` or `1GiB`"
        )),
    })
}

const BYTE_UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];

fn parse_byte_size(text: &str) -> Option<u64> {
    let unit = BYTE_UNITS.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    number.checked_mul(1 << shift)
}

/// Formats a number of bytes in the largest unit that divides it.
fn format_byte_size(bytes: u64) -> String {
    let unit = BYTE_UNITS.into_iter().rev().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Reads a duration of at least `min`.
pub(super) fn read_duration(node: &YamlNode, findings: &mut Findings, min: Duration) -> Option<Duration> {
    parse_scalar(node, findings, |text| match parse_config_duration(text) {
        Ok(duration) if duration < min => {
            Err(format!("{text} is too short; the least is {}", format_duration(min)))
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    })
}

pub(super) fn read_boolean(node: &YamlNode, findings: &mut Findings) -> Option<bool> {
    parse_scalar(node, findings, |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    })
}

/// Reads one of several words, each with its value.
pub(super) fn read_choice<T: Copy>(
    node: &YamlNode,
    findings: &mut Findings,
    words: &[(&str, T)],
) -> Option<T> {
    parse_scalar(node, findings, |text| match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("{text:?} is not one of {}", all.join(", ")))
        }
    })
}

/// Formats a duration as it is written in a configuration, in the largest units that fit.
pub(super) fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 || !millis.is_multiple_of(1000) {
        return format!("{millis}ms");
    }
    let mut rest = duration.as_secs();
    let mut formatted = String::new();
    for (unit, seconds) in [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)] {
        if rest >= seconds {
            formatted.push_str(&format!("{}{unit}", rest / seconds));
            rest %= seconds;
        }
    }
    formatted
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn integers_outside_their_bounds_are_faults() {
        assert_eq!(read_value_from_yaml("1_000", |n, f| read_integer(n, f, 1..=2000)), Ok(1000));
        for (text, want) in [
            ("0", "0 is too small; the least is 1"),
            ("11", "11 is too large; the most is 10"),
            ("-5", "-5 is too small; the least is 1"),
            ("'-'", "\"-\" is not a whole number"),
            ("_", "\"_\" is not a whole number"),
            ("1.5", "\"1.5\" is not a whole number"),
            ("99999999999999999999999", "99999999999999999999999 is too large; the most is 10"),
            ("[1]", "expected text, found a list"),
            ("~", "expected text, found nothing"),
        ] {
            assert_eq!(fault_messages(text, |n, f| read_integer(n, f, 1..=10)), [want], "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_formatted() {
        let secs = Duration::from_secs;
        assert_eq!(read_value_from_yaml("90s", |n, f| read_duration(n, f, secs(1))), Ok(secs(90)));
        assert_eq!(
            fault_messages("1s", |n, f| read_duration(n, f, secs(60))),
            ["1s is too short; the least is 1m"]
        );
        assert_eq!(format_duration(secs(90_061)), "1d1h1m1s");
        assert_eq!(format_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(format_duration(Duration::ZERO), "0ms");
    }

    #[test]
    fn unknown_keys_get_a_suggestion_and_planned_keys_are_not_yet_supported() {
        let keys = AllowedKeys {
            described_thing: "a lamp",
            names: &["colour", "height"],
            not_yet_supported: &["dimmer"],
        };
        let open =
            |n: &YamlNode, f: &mut Findings| CheckedMap::from_node_with_known_keys(n, &keys, f).map(|_| ());
        assert_eq!(
            fault_messages("{color: red, dimmer: 1, zzz: 2, height: 3}", open),
            [
                "unknown setting \"color\" of a lamp; did you mean `colour`?",
                "`dimmer` is not supported yet",
                "unknown setting \"zzz\" of a lamp",
            ]
        );
        assert_eq!(fault_messages("[]", open), ["a lamp must be a map, not a list"]);
    }
}
