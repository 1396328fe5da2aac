//! Settings from environment variables and flags.
//!
//! `POINTSMAN_SERVER__LISTEN` is `server.listen`: a double underscore goes one level down. Names of tenants,
//! handlers, sources and schedules and the paths of chains are matched without regard to case, with `_` for `-`, `.`
//! and `/` (`/publish/article` is `PUBLISH_ARTICLE`), and only those that the files define can be changed. `…_FILE` names a file that holds the value. A value that begins with `[` or `{` is
//! read as YAML, any other is taken as it stands.
//!
//! A variable that resembles a setting without being one is warned about and otherwise ignored: the
//! environment is shared with others, and a container platform adds variables of its own.

use std::path::Path;
use std::sync::Arc;

use super::fault::Findings;
use super::lookup::Flag;
use super::merge::lay_over;
use super::nearest::nearest;
use super::place::{Origin, Place, Source};
use super::schema::{ROOT, Shape, shape};
use super::secret::{Env, read_small};
use super::yaml::{self, Entry, Kind, Node};

const PREFIX: &str = "POINTSMAN_";

/// Variables of the command line, and those that a command handler finds.
const OTHERS: &[&str] = &[
    "URL",
    "TOKEN",
    "TOKEN_FILE",
    "LOG",
    "CONFIG",
    "CONFIG_DIR",
    "EVENT_ID",
    "PREV",
    "PREV_SENT",
    "LATE",
    "TYPE",
    "KEY",
    "ORDER",
    "NODE",
    "TENANT",
    "TASK_ID",
    "ATTEMPT",
    "FENCE",
    "SOURCE",
    "COLLECTION",
    "EFFECTS",
];

/// Lays the variables that are settings over the tree.
pub(super) fn apply_env(tree: &mut Node, env: &Env, findings: &mut Findings) {
    for (rank, (variable, value)) in env.iter().enumerate() {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        // A cluster's service links describe where a service named `pointsman` is, not how it is set up.
        let link = name.starts_with("SERVICE_") || name == "PORT" || name.starts_with("PORT_");
        if OTHERS.contains(&name) || link {
            continue;
        }
        let place = |text: &str| Place::whole(&Source::new(Origin::Env(variable.into()), rank, text.into()));
        let (path, from_file) = match find(tree, name) {
            Ok(path) => (path, false),
            Err(near) => match name.strip_suffix("_FILE").map(|name| find(tree, name)) {
                Some(Ok(path)) => (path, true),
                _ => {
                    let near = near.map_or(String::new(), |near| format!("; did you mean {PREFIX}{near}?"));
                    findings.warn(&place(""), format!("is not a setting and is ignored{near}"));
                    continue;
                }
            },
        };
        let direct = variable.strip_suffix("_FILE").filter(|direct| from_file && env.get(direct).is_some());
        if let Some(direct) = direct {
            findings.fault(&place(""), format!("{direct} is set as well"));
            continue;
        }
        let text = if from_file { read_small(Path::new(value)) } else { Ok(value.to_owned()) };
        match text {
            Ok(text) => lay(tree, &path, place(&text).source, findings),
            Err(why) => findings.fault(&place(""), format!("the file {value} {why}")),
        }
    }
}

/// Lays the flags over the tree.
pub(super) fn apply_flags(tree: &mut Node, flags: &[Flag], findings: &mut Findings) {
    for (rank, flag) in flags.iter().enumerate() {
        let source = Source::new(Origin::Flag(flag.name.clone()), rank, flag.value.clone());
        let path: Vec<String> = flag.setting.split('.').map(str::to_owned).collect();
        lay(tree, &path, source, findings);
    }
}

/// Puts the text of a source at a path.
fn lay(tree: &mut Node, path: &[String], source: Arc<Source>, findings: &mut Findings) {
    let place = Place::whole(&source);
    let mut node = match source.text.trim_start().chars().next() {
        Some('[' | '{') => match yaml::parse(&source, findings) {
            Some(node) => node,
            None => return,
        },
        _ => Node::scalar(place.clone(), source.text.clone()),
    };
    for key in path.iter().rev() {
        let entry = Entry { key: key.clone(), at: place.clone(), value: node };
        node = Node { kind: Kind::Map(vec![entry]), place: place.clone(), end: 0 };
    }
    lay_over(tree, node);
}

/// The path of a setting, from a variable's name without its prefix; the nearest right name otherwise.
fn find(tree: &Node, name: &str) -> Result<Vec<String>, Option<String>> {
    let mut path: Vec<String> = Vec::new();
    let mut here = Some(tree);
    let mut so_far = String::new();
    for part in name.split("__") {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let known: Vec<&str> = match shape(&keys) {
            Shape::Section(keys) => keys.known.to_vec(),
            Shape::Named => {
                here.map_or(vec![], |node| node.entries().iter().map(|e| e.key.as_str()).collect())
            }
            Shape::Value => return Err(Some(so_far)),
        };
        let Some(key) = known.iter().find(|key| variable_form(key) == part) else {
            let forms: Vec<String> = known.iter().map(|key| variable_form(key)).collect();
            let near = nearest(part, forms.iter().map(String::as_str));
            return Err(near.map(|near| step(&so_far, near)).or_else(|| whole_path(name)));
        };
        so_far = step(&so_far, part);
        here = here.and_then(|node| node.get(key));
        path.push((*key).to_owned());
    }
    Ok(path)
}

fn step(so_far: &str, part: &str) -> String {
    if so_far.is_empty() { part.to_owned() } else { format!("{so_far}__{part}") }
}

/// A setting that was written with a single underscore (`SERVER_LISTEN`).
fn whole_path(name: &str) -> Option<String> {
    let mut all = Vec::new();
    for section in ROOT.known {
        if let Shape::Section(keys) = shape(&[section]) {
            all.extend(
                keys.known.iter().map(|key| format!("{}__{}", variable_form(section), variable_form(key))),
            );
        }
    }
    nearest(name, all.iter().map(String::as_str)).map(str::to_owned)
}

fn variable_form(key: &str) -> String {
    key.trim_start_matches('/').to_ascii_uppercase().replace(['-', '.', '/'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Node {
        let source = Source::new(Origin::File("a.yml".into()), 0, text.into());
        yaml::parse(&source, &mut Findings::default()).unwrap()
    }

    fn applied(text: &str, variables: &[(&str, &str)]) -> (Node, Result<Vec<String>, Vec<String>>) {
        let mut tree = tree(text);
        let mut findings = Findings::default();
        apply_env(&mut tree, &variables.iter().copied().collect(), &mut findings);
        let findings = match findings.finish(Some(()), &tree.place) {
            Ok(((), warnings)) => Ok(warnings.iter().map(ToString::to_string).collect()),
            Err(faults) => Err(faults.iter().map(ToString::to_string).collect()),
        };
        (tree, findings)
    }

    fn at<'n>(tree: &'n Node, path: &[&str]) -> &'n str {
        let node = path.iter().fold(tree, |node, key| node.get(key).unwrap());
        match &node.kind {
            Kind::Scalar { text, .. } => text,
            _ => panic!("{node:?}"),
        }
    }

    #[test]
    fn double_underscores_go_down() {
        let (tree, found) = applied(
            "server: {listen: x}\nhandlers: {my-index: {retry: {max: 1}}}\n\
             sources: {shop: {collections: [a]}}\ntenants: {lab: {}}\n",
            &[
                ("POINTSMAN_SERVER__LISTEN", "127.0.0.1:1"),
                ("POINTSMAN_STORE", "sqlite::memory:"),
                ("POINTSMAN_HANDLERS__MY_INDEX__RETRY__MAX", "7"),
                ("POINTSMAN_HANDLERS__MY_INDEX__RATE", "10/s"),
                ("POINTSMAN_SOURCES__SHOP__SCHEDULE", "@daily"),
                ("POINTSMAN_SOURCES__SHOP__RUN__TIMEOUT", "1m"),
                ("POINTSMAN_SOURCES__SHOP__COLLECTIONS", "[b, {name: c}]"),
                ("POINTSMAN_TENANTS__LAB__WEIGHT", "5"),
                ("POINTSMAN_ROOMS", "[http, worker]"),
                ("POINTSMAN_URL", "http://x"),
                ("POINTSMAN_PORT_7646_TCP", "tcp://x"),
            ],
        );
        assert_eq!(found, Ok(vec![]));
        assert_eq!(at(&tree, &["server", "listen"]), "127.0.0.1:1");
        assert_eq!(at(&tree, &["store"]), "sqlite::memory:");
        assert_eq!(at(&tree, &["handlers", "my-index", "retry", "max"]), "7");
        assert_eq!(at(&tree, &["handlers", "my-index", "rate"]), "10/s");
        assert_eq!(at(&tree, &["sources", "shop", "schedule"]), "@daily");
        assert_eq!(at(&tree, &["sources", "shop", "run", "timeout"]), "1m");
        assert_eq!(at(&tree, &["tenants", "lab", "weight"]), "5");
        let collections = tree.get("sources").and_then(|n| n.get("shop")).and_then(|n| n.get("collections"));
        assert!(matches!(&collections.unwrap().kind, Kind::List(parts) if parts.len() == 2));
        assert!(matches!(&tree.get("rooms").unwrap().kind, Kind::List(rooms) if rooms.len() == 2));
    }

    #[test]
    fn what_resembles_a_setting_is_warned_about() {
        let (_, found) = applied(
            "handlers: {index: {}}",
            &[
                ("POINTSMAN_BANANA", "1"),
                ("POINTSMAN_HANDLERS__INDX__CRASHES", "1"),
                ("POINTSMAN_SERVER_LISTEN", "1"),
                ("POINTSMAN_WORKRES", "1"),
            ],
        );
        assert_eq!(
            found.unwrap(),
            [
                "POINTSMAN_BANANA: is not a setting and is ignored",
                "POINTSMAN_HANDLERS__INDX__CRASHES: is not a setting and is ignored; did you mean POINTSMAN_HANDLERS__INDEX?",
                "POINTSMAN_SERVER_LISTEN: is not a setting and is ignored; did you mean POINTSMAN_SERVER__LISTEN?",
                "POINTSMAN_WORKRES: is not a setting and is ignored; did you mean POINTSMAN_WORKERS?",
            ]
        );
    }

    #[test]
    fn a_value_can_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        std::fs::write(&path, "sqlite:other.db\n").unwrap();
        let path = path.to_str().unwrap();
        let (tree, found) = applied("", &[("POINTSMAN_STORE_FILE", path)]);
        assert_eq!((at(&tree, &["store"]), found), ("sqlite:other.db", Ok(vec![])));
        let (_, found) = applied("", &[("POINTSMAN_STORE_FILE", path), ("POINTSMAN_STORE", "x")]);
        assert_eq!(found, Err(vec!["POINTSMAN_STORE_FILE: POINTSMAN_STORE is set as well".to_owned()]));
    }
}
