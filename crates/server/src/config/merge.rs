//! Merges the trees of several files and layers into one.
//!
//! Files have equal precedence: a setting in two files is a fault. Layers do not: environment variables override files,
//! and files override the defaults.

use std::collections::HashMap;

use super::fault::Findings;
use super::yaml::{YamlEntry, YamlKind, YamlNode};

/// The depth to which files can add to the same map: the root and the sections (`handlers`, `server`, …). Anything
/// deeper, such as a handler, belongs to one file.
const MAX_MERGE_DEPTH: usize = 2;

/// Lists to which several files can add. In other lists the order matters.
const APPENDABLE_LISTS: &[&[&str]] = &[&["auth", "tokens"], &["network", "allow"]];

/// Merges the tree of another file.
pub(super) fn merge_files(into: &mut YamlNode, from: YamlNode, findings: &mut Findings) {
    merge_nodes(into, from, &mut Vec::new(), findings);
}

fn merge_nodes(into: &mut YamlNode, from: YamlNode, path: &mut Vec<String>, findings: &mut Findings) {
    let (own, other) = match (&mut into.kind, from.kind) {
        (_, YamlKind::Null) => return,
        (YamlKind::Map(own), YamlKind::Map(other)) => (own, other),
        (own @ YamlKind::Null, other) => {
            *own = other;
            into.location = from.location;
            return;
        }
        (YamlKind::List(own), YamlKind::List(other)) if APPENDABLE_LISTS.iter().any(|list| list == path) => {
            own.extend(other);
            return;
        }
        // Two different kinds of values: the first one is kept and the second one reported.
        (_, _) => {
            findings.add_fault(
                &from.location,
                format!("`{}` is already set at {}", path.join("."), into.location),
            );
            return;
        }
    };
    let index = index_by_key(own);
    for entry in other {
        match index.get(&entry.key) {
            None => own.push(entry),
            Some(&first) => merge_entries(&mut own[first], entry, path, findings),
        }
    }
}

/// The index of each key. It need not be updated during a merge, since the merged map has each key only once.
fn index_by_key(entries: &[YamlEntry]) -> HashMap<String, usize> {
    entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect()
}

fn merge_entries(first: &mut YamlEntry, second: YamlEntry, path: &mut Vec<String>, findings: &mut Findings) {
    path.push(second.key.clone());
    let is_appended_list = APPENDABLE_LISTS.iter().any(|list| list == path);
    if path.len() < MAX_MERGE_DEPTH || is_appended_list {
        let both_scalars = matches!(
            (&first.value.kind, &second.value.kind),
            (YamlKind::Scalar { .. }, YamlKind::Scalar { .. })
        );
        if both_scalars {
            report_duplicate_setting(first, &second, path, findings);
        } else {
            merge_nodes(&mut first.value, second.value, path, findings);
        }
    } else {
        report_duplicate_setting(first, &second, path, findings);
    }
    path.pop();
}

fn report_duplicate_setting(first: &YamlEntry, second: &YamlEntry, path: &[String], findings: &mut Findings) {
    findings.add_fault(
        &second.key_location,
        format!("`{}` is already set at {}", path.join("."), first.key_location),
    );
}

/// Overrides one layer with another: maps are merged, all other values replaced. An empty section changes nothing.
pub(super) fn override_layer(base: &mut YamlNode, over: YamlNode) {
    match (&mut base.kind, over.kind) {
        (YamlKind::Map(_) | YamlKind::List(_), YamlKind::Null) => {}
        (YamlKind::Map(base), YamlKind::Map(over)) => {
            let index = index_by_key(base);
            for entry in over {
                match index.get(&entry.key) {
                    None => base.push(entry),
                    Some(&existing) => {
                        let existing = &mut base[existing];
                        existing.key_location = entry.key_location;
                        override_layer(&mut existing.value, entry.value);
                    }
                }
            }
        }
        (kind, over_kind) => {
            *kind = over_kind;
            base.location = over.location;
            base.end_line = over.end_line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::location::{ConfigText, SettingOrigin};
    use super::super::yaml;
    use super::*;

    fn parse_yaml_text(name: &str, text_index: usize, text: &str) -> YamlNode {
        let config_text = ConfigText::new(SettingOrigin::File(name.into()), text_index, text.into());
        yaml::parse_yaml(&config_text, &mut Findings::default()).unwrap()
    }

    fn merge_two_files(a: &str, b: &str) -> Result<YamlNode, Vec<String>> {
        let mut findings = Findings::default();
        let mut into = parse_yaml_text("a.yml", 0, a);
        merge_files(&mut into, parse_yaml_text("b.yml", 1, b), &mut findings);
        let location = into.location.clone();
        match findings.into_result(Some(into), &location) {
            Ok((merged, _)) => Ok(merged),
            Err(faults) => Err(faults.iter().map(|f| format!("{}: {}", f.location(), f.message())).collect()),
        }
    }

    #[test]
    fn files_are_merged_by_section_and_token_lists_are_appended() {
        let merged = merge_two_files(
            "handlers: {a: {}}\nauth: {tokens: [1]}\nserver:\n",
            "handlers: {b: {}}\nauth: {tokens: [2]}\nserver: {drain: 1s}\n",
        )
        .unwrap();
        assert_eq!(merged.get("handlers").unwrap().entries().len(), 2);
        assert!(merged.get("server").unwrap().get("drain").is_some());
        let tokens = merged.get("auth").unwrap().get("tokens").unwrap();
        assert!(matches!(&tokens.kind, YamlKind::List(items) if items.len() == 2));
    }

    #[test]
    fn a_setting_in_two_files_is_a_fault_with_both_locations() {
        let faults = merge_two_files(
            "workers: 1\nhandlers: {a: {}}\nevent_handlers: {x: [a]}\nserver: {drain: 1s}\nservices: [http]\n",
            "workers: 2\nhandlers: {a: {}}\nevent_handlers: {x: [b]}\nserver: {drain: 2s}\nservices: http\n",
        );
        assert_eq!(
            faults.unwrap_err(),
            [
                "b.yml:1:1: `workers` is already set at a.yml:1:1",
                "b.yml:2:12: `handlers.a` is already set at a.yml:2:12",
                "b.yml:3:18: `event_handlers.x` is already set at a.yml:3:18",
                "b.yml:4:10: `server.drain` is already set at a.yml:4:10",
                "b.yml:5:11: `services` is already set at a.yml:5:11",
            ]
        );
    }

    #[test]
    fn a_higher_layer_overrides_lower_settings() {
        let mut base =
            parse_yaml_text("a.yml", 0, "server: {listen: x, drain: 1s}\nhandlers: {}\nworkers: 1\n");
        override_layer(&mut base, parse_yaml_text("b.yml", 1, "server: {drain: 2s}\nhandlers:\nworkers:\n"));
        let server = base.get("server").unwrap();
        assert_eq!(server.get("listen").unwrap().location.to_string(), "a.yml:1:18");
        assert_eq!(server.get("drain").unwrap().location.to_string(), "b.yml:1:17");
        assert!(matches!(base.get("handlers").unwrap().kind, YamlKind::Map(_)));
        assert!(matches!(base.get("workers").unwrap().kind, YamlKind::Null));
    }
}
