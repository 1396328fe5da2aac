//! The effective configuration as YAML and as JSON, each value with where it comes from, redacted for its audience.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::Config;
use super::json::{plain, quoted};
use super::redact::{Audience, redact};
use super::yaml::{Entry, Kind, Node};

impl Config {
    /// The configuration in force, in YAML, for a person on the machine. A comment behind each value tells its file and
    /// line, its variable, its flag, or that it is the default.
    pub fn to_yaml(&self) -> String {
        self.yaml_for(Audience::Machine)
    }

    /// The same for clients of the API.
    pub fn to_api_yaml(&self) -> String {
        self.yaml_for(Audience::Api)
    }

    fn yaml_for(&self, audience: Audience) -> String {
        let mut out = String::new();
        map(redact(&self.tree, audience).entries(), 0, &mut out);
        out
    }

    /// The configuration in force for programs on the machine: `settings` as they are, and `from`, which tells of each
    /// value by its JSON pointer where it comes from.
    pub fn to_json(&self) -> Value {
        let mut from = Map::new();
        let settings = json_map(redact(&self.tree, Audience::Machine).entries(), "", &mut from);
        json!({ "settings": settings, "from": from })
    }
}

fn json_map(entries: &[Entry], at: &str, from: &mut Map<String, Value>) -> Value {
    let member = |entry: &Entry| {
        let at = format!("{at}/{}", entry.key.replace('~', "~0").replace('/', "~1"));
        (entry.key.clone(), json_value(&entry.value, &at, from))
    };
    Value::Object(entries.iter().map(member).collect())
}

fn json_value(node: &Node, at: &str, from: &mut Map<String, Value>) -> Value {
    let items = match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => return json_map(entries, at, from),
        Kind::List(items) if !items.is_empty() => items,
        Kind::Null | Kind::Scalar { .. } | Kind::Map(_) | Kind::List(_) => {
            from.insert(at.into(), node.place.short().into());
            return json_scalar(node);
        }
    };
    let item = |(index, item): (usize, &Node)| json_value(item, &format!("{at}/{index}"), from);
    items.iter().enumerate().map(item).collect()
}

/// A plain number or `true` is what it looks like, as in the values of events.
fn json_scalar(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Scalar { text, plain: true } => plain(text),
        Kind::Scalar { text, plain: false } => text.as_str().into(),
        Kind::Map(_) => json!({}),
        Kind::List(_) => json!([]),
    }
}

fn map(entries: &[Entry], indent: usize, out: &mut String) {
    for entry in entries {
        let _ = write!(out, "{:indent$}{}:", "", scalar(&entry.key, true));
        value(&entry.value, indent, out);
    }
}

/// What follows a key or a dash, up to the end of its last line.
fn value(node: &Node, indent: usize, out: &mut String) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            map(entries, indent + 2, out);
        }
        Kind::List(items) if items.iter().any(|item| in_line(item).is_none()) => {
            out.push('\n');
            for item in items {
                list_item(item, indent + 2, out);
            }
        }
        _ => {
            let shown = in_line(node).unwrap_or_default();
            let _ = writeln!(out, " {shown}  # {}", node.place.short());
        }
    }
}

/// An item on lines of its own. The first key of a map stands beside the dash.
fn list_item(item: &Node, indent: usize, out: &mut String) {
    let mut inner = String::new();
    match &item.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            map(entries, indent + 2, &mut inner);
            let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
        }
        _ => {
            value(item, indent, &mut inner);
            let _ = write!(out, "{:indent$}-{inner}", "");
        }
    }
}

/// A value that fits on the line of its key: a plain one, or a list of plain ones.
fn in_line(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Null => Some("null".into()),
        Kind::Scalar { text, plain } => Some(scalar(text, *plain)),
        Kind::Map(entries) => entries.is_empty().then(|| "{}".into()),
        Kind::List(items) => {
            let plain = |item: &Node| matches!(item.kind, Kind::Null | Kind::Scalar { .. });
            let shown: Option<Vec<String>> =
                items.iter().map(|item| plain(item).then(|| in_line(item)).flatten()).collect();
            shown.map(|items| format!("[{}]", items.join(", ")))
        }
    }
}

/// A text as YAML reads it back: bare where that is safe, in quotes otherwise.
fn scalar(text: &str, plain: bool) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ' ' | '+');
    let bare = plain
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.'))
        && text.chars().all(safe)
        && !text.contains(": ")
        && !text.ends_with([':', ' ']);
    if bare { text.to_owned() } else { quoted(text) }
}
