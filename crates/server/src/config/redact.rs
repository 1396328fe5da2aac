//! Redacts a configuration for the person or client that it is shown to.
//!
//! | value | on the machine (`config show`) | over the API |
//! |---|---|---|
//! | a reference to a secret (`env:NAME`, `file:PATH`) | as it is | as it is |
//! | anything else where a secret belongs | `***` | `***` |
//! | the store's URL | without its password | scheme, host, port and database |
//! | any other URL | as it is | scheme, host, port and first path segment |
//! | a command | as it is | its program's name and the number of its arguments |
//!
//! Names that the author of the configuration has chosen are not treated as names of settings: an event type `ev` is
//! not a mistyped `env`.

use std::collections::BTreeSet;

use pointsman_core::suggestion::suggest_name;
use pointsman_engine::handlers::command::summarize_command;

use super::StoreUrl;
use super::location::ConfigText;
use super::schema::{SettingShape, setting_shape_at};
use super::secrets::{MASK, is_secret_name, key_may_have_secret_value, must_hide_value};
use super::yaml::{YamlEntry, YamlKind, YamlNode};

/// The audience that a configuration is shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A user of the machine, who can read the files.
    LocalUser,
    /// A client of the API, admins included.
    ApiClient,
}

/// Replaces all values of a tree that the audience may not see.
pub(super) fn redact_tree(root: &YamlNode, audience: Audience) -> YamlNode {
    redact_node(root, &TreePosition::default(), audience)
}

/// Marks the lines of a text that excerpts of faults must not show, at all or over the API.
pub(super) fn mark_hidden_lines(config_text: &ConfigText, root: &YamlNode) {
    let mut lines = HiddenLines::default();
    lines.collect_from_node(root, &TreePosition::default());
    config_text.set_hidden_lines(lines.hidden_from_all, lines.hidden_from_api);
}

/// The position of a value in the tree. Items of a list have the position of the list.
#[derive(Clone, Debug, Default)]
struct TreePosition<'a> {
    path: Vec<&'a str>,
    /// Whether a key of the path is the name of a secret, so that everything below it is secret.
    is_below_secret_key: bool,
}

/// The kind of keys that a map has.
enum KeyKind {
    /// Names of settings, possibly mistyped.
    SettingNames,
    /// Names that the author has chosen for handlers, types and so on.
    AuthorChosenNames,
    /// Members of an event's or order's value.
    PayloadMembers,
}

impl<'a> TreePosition<'a> {
    fn child(&self, key: &'a str) -> Self {
        let secret = match self.key_kind() {
            KeyKind::SettingNames => key_may_have_secret_value(key),
            KeyKind::AuthorChosenNames => false,
            KeyKind::PayloadMembers => is_secret_name(key),
        };
        let path = self.path.iter().copied().chain([key]).collect();
        Self { path, is_below_secret_key: self.is_below_secret_key || secret }
    }

    fn key_kind(&self) -> KeyKind {
        match self.path.as_slice() {
            ["event_handlers"] => KeyKind::AuthorChosenNames,
            ["schedules", _, "emit", "value" | "context", ..] | ["schedules", _, "order", "value", ..] => {
                KeyKind::PayloadMembers
            }
            path if matches!(setting_shape_at(path), SettingShape::AuthorNamedMap) => {
                KeyKind::AuthorChosenNames
            }
            _ => KeyKind::SettingNames,
        }
    }

    /// Whether a value at this position is a secret, or could be a secret.
    fn hides_value(&self, value: &str) -> bool {
        must_hide_value(self.path.last().copied().unwrap_or_default(), value, self.is_below_secret_key)
    }

    fn is_store_url(&self) -> bool {
        self.path == ["store"]
    }

    fn is_command(&self) -> bool {
        matches!(self.path.as_slice(), ["handlers" | "sources", _, "run", "command"])
    }

    /// Whether a value here may be a command or its argument, even if the name of the setting is mistyped.
    fn may_be_command_argument(&self, value: &str, in_list: bool) -> bool {
        let ["handlers" | "sources", _, .., key] = self.path.as_slice() else { return false };
        in_list || value.contains(char::is_whitespace) || suggest_name(key, ["command", "http"]).is_some()
    }
}

fn redact_node(node: &YamlNode, at: &TreePosition<'_>, audience: Audience) -> YamlNode {
    let kind = match &node.kind {
        YamlKind::Null => YamlKind::Null,
        YamlKind::Scalar { text, is_plain: plain } => match replacement_if_hidden(text, at, audience) {
            Some(text) => YamlKind::Scalar { text, is_plain: true },
            None => YamlKind::Scalar { text: text.clone(), is_plain: *plain },
        },
        YamlKind::List(items) if audience == Audience::ApiClient && at.is_command() => {
            YamlKind::Scalar { text: summarize_command(&scalar_texts(items)), is_plain: true }
        }
        YamlKind::List(items) => {
            YamlKind::List(items.iter().map(|item| redact_node(item, at, audience)).collect())
        }
        YamlKind::Map(entries) => {
            YamlKind::Map(entries.iter().map(|entry| redact_entry(entry, at, audience)).collect())
        }
    };
    YamlNode { kind, location: node.location.clone(), end_line: node.end_line }
}

fn redact_entry(entry: &YamlEntry, at: &TreePosition<'_>, audience: Audience) -> YamlEntry {
    let value = redact_node(&entry.value, &at.child(&entry.key), audience);
    YamlEntry { key: entry.key.clone(), key_location: entry.key_location.clone(), value }
}

fn scalar_texts(items: &[YamlNode]) -> Vec<String> {
    let text = |item: &YamlNode| match &item.kind {
        YamlKind::Scalar { text, .. } => text.clone(),
        YamlKind::Null | YamlKind::List(_) | YamlKind::Map(_) => String::new(),
    };
    items.iter().map(text).collect()
}

/// The text to show instead of a value; `None` if the value itself may be shown.
fn replacement_if_hidden(text: &str, at: &TreePosition<'_>, audience: Audience) -> Option<String> {
    match audience {
        _ if at.is_store_url() => redact_store_url(text, audience),
        _ if at.hides_value(text) => Some(MASK.into()),
        Audience::ApiClient if text.contains("://") => Some(shorten_url(text)),
        Audience::LocalUser | Audience::ApiClient => None,
    }
}

/// Redacts the URL of a store. The URL of a file contains no secret.
fn redact_store_url(text: &str, audience: Audience) -> Option<String> {
    match (text.parse::<StoreUrl>(), audience) {
        (Ok(StoreUrl::Sqlite { .. } | StoreUrl::SqliteMemory), _) => None,
        (Ok(url), Audience::LocalUser) => must_hide_value("store", text, false).then(|| url.to_string()),
        (Ok(url), Audience::ApiClient) => Some(shorten_url(&strip_url_user(&url.to_string()))),
        (Err(_), _) => Some(MASK.into()),
    }
}

/// Removes the user from a database URL whose password has been removed already.
fn strip_url_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

/// Shortens a URL to its first path segment. A URL with an `@` is masked, as it may contain a password anywhere.
fn shorten_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|_| !text.contains('@')) else {
        return MASK.into();
    };
    let (location, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let mut parts = location.splitn(3, '/');
    let (host, first) = (parts.next().unwrap_or_default(), parts.next());
    let shown = first.map_or(String::new(), |first| format!("/{first}"));
    let more = match (parts.next().is_some_and(|more| !more.is_empty()), query.is_empty()) {
        (false, true) => "",
        (true, _) => "/…",
        (false, false) => "…",
    };
    format!("{scheme}://{host}{shown}{more}")
}

/// The lines of a text that must not be shown.
#[derive(Debug, Default)]
struct HiddenLines {
    hidden_from_all: BTreeSet<usize>,
    /// The lines that must not be shown over the API, including those of `hidden_from_all`.
    hidden_from_api: BTreeSet<usize>,
}

impl HiddenLines {
    fn collect_from_node(&mut self, node: &YamlNode, at: &TreePosition<'_>) {
        match &node.kind {
            YamlKind::Null => {}
            YamlKind::Scalar { text, .. } => self.collect_from_scalar(node, text, at, false),
            YamlKind::List(items) => {
                for item in items {
                    match &item.kind {
                        YamlKind::Scalar { text, .. } => self.collect_from_scalar(item, text, at, true),
                        YamlKind::Null | YamlKind::List(_) | YamlKind::Map(_) => {
                            self.collect_from_node(item, at)
                        }
                    }
                }
            }
            YamlKind::Map(entries) => {
                for entry in entries {
                    self.collect_from_node(&entry.value, &at.child(&entry.key));
                }
            }
        }
    }

    fn collect_from_scalar(&mut self, node: &YamlNode, text: &str, at: &TreePosition<'_>, in_list: bool) {
        let lines = node.location.line..=node.end_line.max(node.location.line);
        if at.hides_value(text) {
            self.hidden_from_all.extend(lines.clone());
            self.hidden_from_api.extend(lines);
        } else if text.contains("://") || at.may_be_command_argument(text, in_list) {
            self.hidden_from_api.extend(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shortened_to_their_first_path_segment() {
        for (url, shown) in [
            ("https://hooks.example/services/T0/B1?key=x", "https://hooks.example/services/…"),
            ("https://hooks.example/in?key=x", "https://hooks.example/in…"),
            ("https://hooks.example:8443/in", "https://hooks.example:8443/in"),
            ("https://hooks.example/in/", "https://hooks.example/in"),
            ("https://hooks.example?key=x", "https://hooks.example…"),
            ("https://hooks.example/#x", "https://hooks.example/…"),
            ("https://me:pa/ss@hooks.example/in", "***"),
            ("see https://hooks.example/a/b", "see https://hooks.example/a/…"),
        ] {
            assert_eq!(shorten_url(url), shown, "{url}");
        }
    }

    #[test]
    fn store_urls_are_shown_to_api_clients_without_user_and_parameters() {
        let redact_for_api = |url| redact_store_url(url, Audience::ApiClient);
        assert_eq!(redact_for_api("sqlite:pointsman.db"), None);
        assert_eq!(
            redact_for_api("postgres://me:pw@db/shop?sslmode=require").unwrap(),
            "postgres://db:5432/shop"
        );
        assert!(!redact_for_api("redis://me:pw@cache:6379/1").unwrap().contains("me"));
        assert_eq!(redact_for_api("postgres://me:pw@db:port/shop").unwrap(), "***");
    }
}
