//! Formats the effective configuration as YAML and JSON, each value with its location, redacted for the audience.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::Config;
use super::json_value::{plain_scalar_to_json, quote_json};
use super::redact::{Audience, redact_tree};
use super::yaml::{YamlEntry, YamlKind, YamlNode};

impl Config {
    /// The effective configuration as YAML, for a user of the machine. A comment after each value names its file and
    /// line, its variable or its flag, or says that it is the default.
    pub fn to_yaml(&self) -> String {
        self.format_yaml_for(Audience::LocalUser)
    }

    /// The effective configuration as YAML, for clients of the API.
    pub fn to_api_yaml(&self) -> String {
        self.format_yaml_for(Audience::ApiClient)
    }

    fn format_yaml_for(&self, audience: Audience) -> String {
        let mut out = String::new();
        write_yaml_map(redact_tree(&self.merged_tree, audience).entries(), 0, &mut out);
        out
    }

    /// The effective configuration as JSON, for programs on the machine: `settings`, and `from`, which maps the JSON
    /// pointer of each value to its location.
    pub fn to_json_with_locations(&self) -> Value {
        let mut origins = Map::new();
        let settings =
            map_to_json(redact_tree(&self.merged_tree, Audience::LocalUser).entries(), "", &mut origins);
        json!({ "settings": settings, "from": origins })
    }
}

fn map_to_json(entries: &[YamlEntry], pointer: &str, origins: &mut Map<String, Value>) -> Value {
    let member = |entry: &YamlEntry| {
        let pointer = format!("{pointer}/{}", entry.key.replace('~', "~0").replace('/', "~1"));
        (entry.key.clone(), node_to_json(&entry.value, &pointer, origins))
    };
    Value::Object(entries.iter().map(member).collect())
}

fn node_to_json(node: &YamlNode, pointer: &str, origins: &mut Map<String, Value>) -> Value {
    let items = match &node.kind {
        YamlKind::Map(entries) if !entries.is_empty() => return map_to_json(entries, pointer, origins),
        YamlKind::List(items) if !items.is_empty() => items,
        YamlKind::Null | YamlKind::Scalar { .. } | YamlKind::Map(_) | YamlKind::List(_) => {
            origins.insert(pointer.into(), node.location.format_without_column().into());
            return scalar_to_json(node);
        }
    };
    let item = |(index, item): (usize, &YamlNode)| node_to_json(item, &format!("{pointer}/{index}"), origins);
    items.iter().enumerate().map(item).collect()
}

/// Unquoted numbers, `true` and `false` become JSON values of that kind, as in the values of events.
fn scalar_to_json(node: &YamlNode) -> Value {
    match &node.kind {
        YamlKind::Null => Value::Null,
        YamlKind::Scalar { text, is_plain: true } => plain_scalar_to_json(text),
        YamlKind::Scalar { text, is_plain: false } => text.as_str().into(),
        YamlKind::Map(_) => json!({}),
        YamlKind::List(_) => json!([]),
    }
}

fn write_yaml_map(entries: &[YamlEntry], indent: usize, out: &mut String) {
    for entry in entries {
        let _ = write!(out, "{:indent$}{}:", "", format_yaml_scalar(&entry.key, true));
        write_yaml_value(&entry.value, indent, out);
    }
}

/// Writes a value after its key or dash, up to the end of its last line.
fn write_yaml_value(node: &YamlNode, indent: usize, out: &mut String) {
    match &node.kind {
        YamlKind::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            write_yaml_map(entries, indent + 2, out);
        }
        YamlKind::List(items) if items.iter().any(|item| format_inline_yaml(item).is_none()) => {
            out.push('\n');
            for item in items {
                write_yaml_list_item(item, indent + 2, out);
            }
        }
        _ => {
            let formatted = format_inline_yaml(node).unwrap_or_default();
            let _ = writeln!(out, " {formatted}  # {}", node.location.format_without_column());
        }
    }
}

/// Writes a list item on its own lines. The first key of a map is on the line of the dash.
fn write_yaml_list_item(item: &YamlNode, indent: usize, out: &mut String) {
    let mut inner = String::new();
    match &item.kind {
        YamlKind::Map(entries) if !entries.is_empty() => {
            write_yaml_map(entries, indent + 2, &mut inner);
            let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
        }
        _ => {
            write_yaml_value(item, indent, &mut inner);
            let _ = write!(out, "{:indent$}-{inner}", "");
        }
    }
}

/// Formats a value that fits on the line of its key: a scalar, or a list of scalars.
fn format_inline_yaml(node: &YamlNode) -> Option<String> {
    match &node.kind {
        YamlKind::Null => Some("null".into()),
        YamlKind::Scalar { text, is_plain: plain } => Some(format_yaml_scalar(text, *plain)),
        YamlKind::Map(entries) => entries.is_empty().then(|| "{}".into()),
        YamlKind::List(items) => {
            let plain = |item: &YamlNode| matches!(item.kind, YamlKind::Null | YamlKind::Scalar { .. });
            let formatted: Option<Vec<String>> =
                items.iter().map(|item| plain(item).then(|| format_inline_yaml(item)).flatten()).collect();
            formatted.map(|items| format!("[{}]", items.join(", ")))
        }
    }
}

/// Formats a scalar so that YAML parses it to the same text: unquoted if that is safe, else quoted.
fn format_yaml_scalar(text: &str, plain: bool) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ' ' | '+');
    let can_be_unquoted = plain
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.'))
        && text.chars().all(is_safe)
        && !text.contains(": ")
        && !text.ends_with([':', ' ']);
    if can_be_unquoted { text.to_owned() } else { quote_json(text) }
}
