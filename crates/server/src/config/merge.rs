//! Making one tree of many.
//!
//! Files are equals: they are *joined*, and whoever sets what another file has set is at fault. Layers are
//! not: environment variables are *laid over* files, and files over the defaults.

use std::collections::HashMap;

use super::fault::Findings;
use super::yaml::{Entry, Kind, Node};

/// How deep files share maps: the top, and the sections (`handlers`, `server`, …). What lies below, a handler
/// for example, belongs to one file.
const SHARED: usize = 2;

/// Lists that files may add to together. The order of the others means something.
const ADDED: &[&[&str]] = &[&["auth", "tokens"], &["network", "allow"]];

/// Adds what another file says.
pub(super) fn join(into: &mut Node, from: Node, findings: &mut Findings) {
    join_at(into, from, &mut Vec::new(), findings);
}

fn join_at(into: &mut Node, from: Node, path: &mut Vec<String>, findings: &mut Findings) {
    let (mine, theirs) = match (&mut into.kind, from.kind) {
        (_, Kind::Null) => return,
        (Kind::Map(mine), Kind::Map(theirs)) => (mine, theirs),
        (mine @ Kind::Null, theirs) => {
            *mine = theirs;
            into.place = from.place;
            return;
        }
        (Kind::List(mine), Kind::List(theirs)) if ADDED.iter().any(|list| list == path) => {
            mine.extend(theirs);
            return;
        }
        // Two kinds in one place: keep the one that says less wrong, and tell of the other.
        (_, _) => {
            findings.fault(&from.place, format!("`{}` is already set at {}", path.join("."), into.place));
            return;
        }
    };
    let index = index(mine);
    for entry in theirs {
        match index.get(&entry.key) {
            None => mine.push(entry),
            Some(&first) => join_entry(&mut mine[first], entry, path, findings),
        }
    }
}

/// Where each key stands. What is merged in has every key once, so that it need not be kept up to date.
fn index(entries: &[Entry]) -> HashMap<String, usize> {
    entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect()
}

fn join_entry(first: &mut Entry, second: Entry, path: &mut Vec<String>, findings: &mut Findings) {
    path.push(second.key.clone());
    let added = ADDED.iter().any(|list| list == path);
    if path.len() < SHARED || added {
        let both =
            matches!((&first.value.kind, &second.value.kind), (Kind::Scalar { .. }, Kind::Scalar { .. }));
        if both {
            already(first, &second, path, findings);
        } else {
            join_at(&mut first.value, second.value, path, findings);
        }
    } else {
        already(first, &second, path, findings);
    }
    path.pop();
}

fn already(first: &Entry, second: &Entry, path: &[String], findings: &mut Findings) {
    findings.fault(&second.at, format!("`{}` is already set at {}", path.join("."), first.at));
}

/// Lays one layer over another: maps are merged, everything else replaced. An empty section changes nothing.
pub(super) fn lay_over(base: &mut Node, over: Node) {
    match (&mut base.kind, over.kind) {
        (Kind::Map(_) | Kind::List(_), Kind::Null) => {}
        (Kind::Map(base), Kind::Map(over)) => {
            let index = index(base);
            for entry in over {
                match index.get(&entry.key) {
                    None => base.push(entry),
                    Some(&known) => {
                        let known = &mut base[known];
                        known.at = entry.at;
                        lay_over(&mut known.value, entry.value);
                    }
                }
            }
        }
        (kind, over_kind) => {
            *kind = over_kind;
            base.place = over.place;
            base.end = over.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::{Origin, Source};
    use super::super::yaml;
    use super::*;

    fn tree(name: &str, rank: usize, text: &str) -> Node {
        let source = Source::new(Origin::File(name.into()), rank, text.into());
        yaml::parse(&source, &mut Findings::default()).unwrap()
    }

    fn joined(a: &str, b: &str) -> Result<Node, Vec<String>> {
        let mut findings = Findings::default();
        let mut into = tree("a.yml", 0, a);
        join(&mut into, tree("b.yml", 1, b), &mut findings);
        let place = into.place.clone();
        match findings.finish(Some(into), &place) {
            Ok((joined, _)) => Ok(joined),
            Err(faults) => Err(faults.iter().map(|f| format!("{}: {}", f.place(), f.message())).collect()),
        }
    }

    #[test]
    fn files_add_up() {
        let both = joined(
            "handlers: {a: {}}\nauth: {tokens: [1]}\nserver:\n",
            "handlers: {b: {}}\nauth: {tokens: [2]}\nserver: {drain: 1s}\n",
        )
        .unwrap();
        assert_eq!(both.get("handlers").unwrap().entries().len(), 2);
        assert!(both.get("server").unwrap().get("drain").is_some());
        let tokens = both.get("auth").unwrap().get("tokens").unwrap();
        assert!(matches!(&tokens.kind, Kind::List(items) if items.len() == 2));
    }

    #[test]
    fn what_two_files_set_is_a_fault_that_names_both() {
        let faults = joined(
            "workers: 1\nhandlers: {a: {}}\nevent_handlers: {x: [a]}\nserver: {drain: 1s}\nrooms: [http]\n",
            "workers: 2\nhandlers: {a: {}}\nevent_handlers: {x: [b]}\nserver: {drain: 2s}\nrooms: http\n",
        );
        assert_eq!(
            faults.unwrap_err(),
            [
                "b.yml:1:1: `workers` is already set at a.yml:1:1",
                "b.yml:2:12: `handlers.a` is already set at a.yml:2:12",
                "b.yml:3:18: `event_handlers.x` is already set at a.yml:3:18",
                "b.yml:4:10: `server.drain` is already set at a.yml:4:10",
                "b.yml:5:8: `rooms` is already set at a.yml:5:8",
            ]
        );
    }

    #[test]
    fn a_layer_replaces_what_lies_under_it() {
        let mut base = tree("a.yml", 0, "server: {listen: x, drain: 1s}\nhandlers: {}\nworkers: 1\n");
        lay_over(&mut base, tree("b.yml", 1, "server: {drain: 2s}\nhandlers:\nworkers:\n"));
        let server = base.get("server").unwrap();
        assert_eq!(server.get("listen").unwrap().place.to_string(), "a.yml:1:18");
        assert_eq!(server.get("drain").unwrap().place.to_string(), "b.yml:1:17");
        assert!(matches!(base.get("handlers").unwrap().kind, Kind::Map(_)));
        assert!(matches!(base.get("workers").unwrap().kind, Kind::Null));
    }
}
