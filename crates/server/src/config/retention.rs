//! Reads the sections `journal`, `history` and `objects`: how many entries are kept, and for how long.

use std::time::Duration;

use pointsman_core::journal::Retention;

use super::decode::{AllowedKeys, CheckedMap, read_duration, read_integer};
use super::fault::Findings;
use super::yaml::YamlNode;

pub(super) const JOURNAL_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the journal",
    names: &["retain_events", "retain_for"],
    not_yet_supported: &[],
};
pub(super) const HISTORY_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the history",
    names: &["retain_tasks", "retain_for"],
    not_yet_supported: &[],
};

pub(super) const OBJECTS_KEYS: AllowedKeys =
    AllowedKeys { described_thing: "the objects", names: &["retain_for"], not_yet_supported: &[] };

/// The largest accepted count. Larger counts are taken for typing errors.
const MAX_RETAINED_COUNT: u64 = 1_000_000_000_000;

/// Reads the retention of the journal. The journal must keep a minimum number of events, so that readers that lag a
/// little do not get `Torn`.
pub(super) fn read_journal_retention(node: &YamlNode, findings: &mut Findings) -> Option<Retention> {
    read_retention(node, &JOURNAL_KEYS, "retain_events", Retention::MIN_JOURNAL_MAX_COUNT, findings)
}

pub(super) fn read_history_retention(node: &YamlNode, findings: &mut Findings) -> Option<Retention> {
    read_retention(node, &HISTORY_KEYS, "retain_tasks", 0, findings)
}

pub(super) fn read_object_retention(node: &YamlNode, findings: &mut Findings) -> Option<Duration> {
    read_retain_for(
        &CheckedMap::from_node_with_known_keys(node, &OBJECTS_KEYS, findings)?,
        &OBJECTS_KEYS,
        findings,
    )
}

fn read_retain_for(fields: &CheckedMap<'_>, keys: &AllowedKeys, findings: &mut Findings) -> Option<Duration> {
    let age = fields.get_required("retain_for", keys.described_thing, findings);
    age.and_then(|n| read_duration(n, findings, Duration::from_secs(1)))
}

fn read_retention(
    node: &YamlNode,
    keys: &AllowedKeys,
    count_key: &str,
    min_count: u64,
    findings: &mut Findings,
) -> Option<Retention> {
    let fields = CheckedMap::from_node_with_known_keys(node, keys, findings)?;
    let count = fields
        .get_required(count_key, keys.described_thing, findings)
        .and_then(|n| read_integer(n, findings, min_count..=MAX_RETAINED_COUNT));
    let age = read_retain_for(&fields, keys, findings);
    Some(Retention { max_count: count?, max_age: age? })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn retain_events_is_at_least_ten_thousand() {
        let retention =
            read_value_from_yaml("{retain_events: 10_000, retain_for: 1d}", read_journal_retention).unwrap();
        assert_eq!((retention.max_count, retention.max_age), (10_000, Duration::from_secs(86_400)));
        assert_eq!(
            fault_messages("{retain_events: 9999, retain_for: 1d}", read_journal_retention),
            ["9999 is too small; the least is 10000"]
        );
        assert_eq!(
            read_value_from_yaml("{retain_tasks: 0, retain_for: 1d}", read_history_retention)
                .unwrap()
                .max_count,
            0
        );
    }

    #[test]
    fn object_retention_is_at_least_one_second() {
        assert_eq!(
            read_value_from_yaml("{retain_for: 90d}", read_object_retention).unwrap(),
            Duration::from_secs(90 * 86_400)
        );
        assert_eq!(fault_messages("{retain_for: 1ms}", read_object_retention).len(), 1);
        assert_eq!(fault_messages("{retain_for: 1d, retain_objects: 5}", read_object_retention).len(), 1);
    }
}
