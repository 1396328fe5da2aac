//! The effective configuration as YAML and as JSON, each value with where it comes from and secrets masked.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::json::{plain, quoted};
use super::secret::{MASK, is_secret, must_hide};
use super::yaml::{Entry, Kind, Node};
use super::{Config, StoreUrl};

impl Config {
    /// The configuration in force, in YAML. A comment behind each value tells its file and line, its variable,
    /// its flag, or that it is the default.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        map(self.tree.entries(), 0, false, &mut out);
        out
    }

    /// The same for programs: `settings` as they are, and `from`, which tells of each value by its JSON pointer where it
    /// comes from.
    pub fn to_json(&self) -> Value {
        let mut from = Map::new();
        let settings = json_map(self.tree.entries(), "", false, &mut from);
        json!({ "settings": settings, "from": from })
    }
}

fn json_map(entries: &[Entry], at: &str, secret: bool, from: &mut Map<String, Value>) -> Value {
    let member = |entry: &Entry| {
        let at = format!("{at}/{}", entry.key.replace('~', "~0").replace('/', "~1"));
        let secret = secret || is_secret(&entry.key);
        (entry.key.clone(), json_value(&entry.value, &entry.key, &at, secret, from))
    };
    Value::Object(entries.iter().map(member).collect())
}

fn json_value(node: &Node, key: &str, at: &str, secret: bool, from: &mut Map<String, Value>) -> Value {
    let items = match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => return json_map(entries, at, secret, from),
        Kind::List(items) if !items.is_empty() => items,
        Kind::Null | Kind::Scalar { .. } | Kind::Map(_) | Kind::List(_) => {
            from.insert(at.into(), node.place.short().into());
            return json_scalar(node, key, secret);
        }
    };
    let item = |(index, item): (usize, &Node)| json_value(item, key, &format!("{at}/{index}"), secret, from);
    items.iter().enumerate().map(item).collect()
}

/// A plain number or `true` is what it looks like, as in the values of events.
fn json_scalar(node: &Node, key: &str, secret: bool) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Scalar { text, .. } if must_hide(key, text, secret) => shown_of_secret(key, text).into(),
        Kind::Scalar { text, plain: true } => plain(text),
        Kind::Scalar { text, plain: false } => text.as_str().into(),
        Kind::Map(_) => json!({}),
        Kind::List(_) => json!([]),
    }
}

fn map(entries: &[Entry], indent: usize, secret: bool, out: &mut String) {
    for entry in entries {
        let _ = write!(out, "{:indent$}{}:", "", scalar(&entry.key, true));
        value(&entry.value, &entry.key, indent, secret || is_secret(&entry.key), out);
    }
}

/// What follows a key or a dash, up to the end of its last line.
fn value(node: &Node, key: &str, indent: usize, secret: bool, out: &mut String) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            map(entries, indent + 2, secret, out);
        }
        Kind::List(items) if items.iter().any(|item| in_line(item, key, secret).is_none()) => {
            out.push('\n');
            for item in items {
                list_item(item, key, indent + 2, secret, out);
            }
        }
        _ => {
            let shown = in_line(node, key, secret).unwrap_or_default();
            let _ = writeln!(out, " {shown}  # {}", node.place.short());
        }
    }
}

/// An item on lines of its own. The first key of a map stands beside the dash.
fn list_item(item: &Node, key: &str, indent: usize, secret: bool, out: &mut String) {
    let mut inner = String::new();
    match &item.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            map(entries, indent + 2, secret, &mut inner);
            let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
        }
        _ => {
            value(item, key, indent, secret, &mut inner);
            let _ = write!(out, "{:indent$}-{inner}", "");
        }
    }
}

/// A value that fits on the line of its key: a plain one, or a list of plain ones.
fn in_line(node: &Node, key: &str, secret: bool) -> Option<String> {
    match &node.kind {
        Kind::Null => Some("null".into()),
        Kind::Scalar { text, .. } if must_hide(key, text, secret) => Some(hidden(key, text)),
        Kind::Scalar { text, plain } => Some(scalar(text, *plain)),
        Kind::Map(entries) => entries.is_empty().then(|| "{}".into()),
        Kind::List(items) => {
            let plain = |item: &Node| matches!(item.kind, Kind::Null | Kind::Scalar { .. });
            let shown: Option<Vec<String>> =
                items.iter().map(|item| plain(item).then(|| in_line(item, key, secret)).flatten()).collect();
            shown.map(|items| format!("[{}]", items.join(", ")))
        }
    }
}

/// What is shown of a value that holds a secret: nothing, but of the store where it is.
fn hidden(key: &str, text: &str) -> String {
    let shown = shown_of_secret(key, text);
    if shown == MASK { quoted(MASK) } else { scalar(&shown, true) }
}

fn shown_of_secret(key: &str, text: &str) -> String {
    let store = (key == "store").then(|| text.parse::<StoreUrl>().ok()).flatten();
    store.map_or_else(|| MASK.into(), |url| url.to_string())
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
