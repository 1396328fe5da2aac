//! `journal`, `history` and `objects`: how much is kept, and for how long.

use std::time::Duration;

use pointsman_core::journal::Retention;

use super::decode::{Fields, Keys, duration, whole};
use super::fault::Findings;
use super::yaml::Node;

pub(super) const JOURNAL: Keys =
    Keys { of: "the journal", known: &["retain_events", "retain_for"], later: &[] };
pub(super) const HISTORY: Keys =
    Keys { of: "the history", known: &["retain_tasks", "retain_for"], later: &[] };

pub(super) const OBJECTS: Keys = Keys { of: "the objects", known: &["retain_for"], later: &[] };

/// Counts beyond this are a slip of the keyboard.
const MOST: u64 = 1_000_000_000_000;

/// Observers that lag a little must not be torn: a journal keeps a least number of events.
pub(super) fn journal(node: &Node, findings: &mut Findings) -> Option<Retention> {
    read(node, &JOURNAL, "retain_events", Retention::LEAST_EVENTS, findings)
}

pub(super) fn history(node: &Node, findings: &mut Findings) -> Option<Retention> {
    read(node, &HISTORY, "retain_tasks", 0, findings)
}

pub(super) fn objects(node: &Node, findings: &mut Findings) -> Option<Duration> {
    retain_for(&Fields::open(node, &OBJECTS, findings)?, &OBJECTS, findings)
}

fn retain_for(fields: &Fields<'_>, keys: &Keys, findings: &mut Findings) -> Option<Duration> {
    let age = fields.need("retain_for", keys.of, findings);
    age.and_then(|n| duration(n, findings, Duration::from_secs(1)))
}

fn read(node: &Node, keys: &Keys, count: &str, least: u64, findings: &mut Findings) -> Option<Retention> {
    let fields = Fields::open(node, keys, findings)?;
    let count = fields.need(count, keys.of, findings).and_then(|n| whole(n, findings, least..=MOST));
    let age = retain_for(&fields, keys, findings);
    Some(Retention { count: count?, age: age? })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn a_journal_keeps_at_least_ten_thousand_events() {
        let kept = read_text("{retain_events: 10_000, retain_for: 1d}", journal).unwrap();
        assert_eq!((kept.count, kept.age), (10_000, Duration::from_secs(86_400)));
        assert_eq!(
            faults_of("{retain_events: 9999, retain_for: 1d}", journal),
            ["9999 is too small; the least is 10000"]
        );
        assert_eq!(read_text("{retain_tasks: 0, retain_for: 1d}", history).unwrap().count, 0);
    }

    #[test]
    fn objects_are_kept_for_at_least_a_second() {
        assert_eq!(read_text("{retain_for: 90d}", objects).unwrap(), Duration::from_secs(90 * 86_400));
        assert_eq!(faults_of("{retain_for: 1ms}", objects).len(), 1);
        assert_eq!(faults_of("{retain_for: 1d, retain_objects: 5}", objects).len(), 1);
    }
}
