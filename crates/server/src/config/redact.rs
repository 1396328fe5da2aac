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
//! Names that the author of the configuration has chosen are never taken for names of settings: a type `ev` is not a
//! mistyped `env`.

use std::collections::BTreeSet;

use pointsman_engine::handlers::command::summarize_command;

use super::StoreUrl;
use super::nearest::nearest;
use super::place::Source;
use super::schema::{Shape, shape};
use super::secret::{MASK, is_secret, must_hide, names_secret};
use super::yaml::{Entry, Kind, Node};

/// Who is shown a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A person on the machine, who can read the files.
    Machine,
    /// A client of the API, admins included.
    Api,
}

/// The tree with everything replaced that the audience may not see.
pub(super) fn redact(root: &Node, audience: Audience) -> Node {
    redact_at(root, &Position::default(), audience)
}

/// Marks the lines of a source that faults may not show, at all or over the API.
pub(super) fn hide_lines(source: &Source, root: &Node) {
    let mut lines = HiddenLines::default();
    lines.mark(root, &Position::default());
    source.hide(lines.from_all, lines.from_api);
}

/// Where a value is in the tree. Items of a list are where the list is.
#[derive(Clone, Debug, Default)]
struct Position<'a> {
    path: Vec<&'a str>,
    /// A key above says that everything below it is a secret.
    secret: bool,
}

/// What the keys of a map are.
enum KeyKind {
    /// Settings, perhaps mistyped.
    Settings,
    /// Names that the author has chosen for handlers, types and so on.
    Names,
    /// Members of an event's or order's value.
    Members,
}

impl<'a> Position<'a> {
    fn below(&self, key: &'a str) -> Self {
        let secret = match self.key_kind() {
            KeyKind::Settings => is_secret(key),
            KeyKind::Names => false,
            KeyKind::Members => names_secret(key),
        };
        let path = self.path.iter().copied().chain([key]).collect();
        Self { path, secret: self.secret || secret }
    }

    fn key_kind(&self) -> KeyKind {
        match self.path.as_slice() {
            ["event_handlers"] => KeyKind::Names,
            ["schedules", _, "emit", "value" | "context", ..] | ["schedules", _, "order", "value", ..] => {
                KeyKind::Members
            }
            path if matches!(shape(path), Shape::Named) => KeyKind::Names,
            _ => KeyKind::Settings,
        }
    }

    /// Whether a value here is a secret, or could be one.
    fn hides(&self, value: &str) -> bool {
        must_hide(self.path.last().copied().unwrap_or_default(), value, self.secret)
    }

    fn is_store(&self) -> bool {
        self.path == ["store"]
    }

    fn is_command(&self) -> bool {
        matches!(self.path.as_slice(), ["handlers" | "sources", _, "run", "command"])
    }

    /// Whether a value here may be a command or its argument, also where the setting's name is mistyped.
    fn may_be_argument(&self, value: &str, in_list: bool) -> bool {
        let ["handlers" | "sources", _, .., key] = self.path.as_slice() else { return false };
        in_list || value.contains(char::is_whitespace) || nearest(key, ["command", "http"]).is_some()
    }
}

fn redact_at(node: &Node, at: &Position<'_>, audience: Audience) -> Node {
    let kind = match &node.kind {
        Kind::Null => Kind::Null,
        Kind::Scalar { text, plain } => match replacement(text, at, audience) {
            Some(text) => Kind::Scalar { text, plain: true },
            None => Kind::Scalar { text: text.clone(), plain: *plain },
        },
        Kind::List(items) if audience == Audience::Api && at.is_command() => {
            Kind::Scalar { text: summarize_command(&texts(items)), plain: true }
        }
        Kind::List(items) => Kind::List(items.iter().map(|item| redact_at(item, at, audience)).collect()),
        Kind::Map(entries) => {
            Kind::Map(entries.iter().map(|entry| redact_entry(entry, at, audience)).collect())
        }
    };
    Node { kind, place: node.place.clone(), end: node.end }
}

fn redact_entry(entry: &Entry, at: &Position<'_>, audience: Audience) -> Entry {
    let value = redact_at(&entry.value, &at.below(&entry.key), audience);
    Entry { key: entry.key.clone(), at: entry.at.clone(), value }
}

fn texts(items: &[Node]) -> Vec<String> {
    let text = |item: &Node| match &item.kind {
        Kind::Scalar { text, .. } => text.clone(),
        Kind::Null | Kind::List(_) | Kind::Map(_) => String::new(),
    };
    items.iter().map(text).collect()
}

/// What is shown instead of a value; none where it may be shown itself.
fn replacement(text: &str, at: &Position<'_>, audience: Audience) -> Option<String> {
    match audience {
        _ if at.is_store() => shown_store(text, audience),
        _ if at.hides(text) => Some(MASK.into()),
        Audience::Api if text.contains("://") => Some(shorten_url(text)),
        Audience::Machine | Audience::Api => None,
    }
}

/// A store without what may be secret in its URL. That of a file holds nothing.
fn shown_store(text: &str, audience: Audience) -> Option<String> {
    match (text.parse::<StoreUrl>(), audience) {
        (Ok(StoreUrl::Sqlite { .. } | StoreUrl::SqliteMemory), _) => None,
        (Ok(url), Audience::Machine) => must_hide("store", text, false).then(|| url.to_string()),
        (Ok(url), Audience::Api) => Some(shorten_url(&without_user(&url.to_string()))),
        (Err(_), _) => Some(MASK.into()),
    }
}

/// A database's URL, which shows no password any more, without its user.
fn without_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

/// A URL up to its first path segment. One with an `@` may hold a password anywhere.
fn shorten_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|_| !text.contains('@')) else {
        return MASK.into();
    };
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let mut parts = place.splitn(3, '/');
    let (host, first) = (parts.next().unwrap_or_default(), parts.next());
    let shown = first.map_or(String::new(), |first| format!("/{first}"));
    let more = match (parts.next().is_some_and(|more| !more.is_empty()), query.is_empty()) {
        (false, true) => "",
        (true, _) => "/…",
        (false, false) => "…",
    };
    format!("{scheme}://{host}{shown}{more}")
}

/// The lines of a source that are not shown.
#[derive(Debug, Default)]
struct HiddenLines {
    from_all: BTreeSet<usize>,
    /// Those of `from_all` too.
    from_api: BTreeSet<usize>,
}

impl HiddenLines {
    fn mark(&mut self, node: &Node, at: &Position<'_>) {
        match &node.kind {
            Kind::Null => {}
            Kind::Scalar { text, .. } => self.mark_scalar(node, text, at, false),
            Kind::List(items) => {
                for item in items {
                    match &item.kind {
                        Kind::Scalar { text, .. } => self.mark_scalar(item, text, at, true),
                        Kind::Null | Kind::List(_) | Kind::Map(_) => self.mark(item, at),
                    }
                }
            }
            Kind::Map(entries) => {
                for entry in entries {
                    self.mark(&entry.value, &at.below(&entry.key));
                }
            }
        }
    }

    fn mark_scalar(&mut self, node: &Node, text: &str, at: &Position<'_>, in_list: bool) {
        let lines = node.place.line..=node.end.max(node.place.line);
        if at.hides(text) {
            self.from_all.extend(lines.clone());
            self.from_api.extend(lines);
        } else if text.contains("://") || at.may_be_argument(text, in_list) {
            self.from_api.extend(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_up_to_their_first_segment() {
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
    fn stores_are_shown_without_users_and_parameters() {
        let api = |url| shown_store(url, Audience::Api);
        assert_eq!(api("sqlite:pointsman.db"), None);
        assert_eq!(api("postgres://me:pw@db/shop?sslmode=require").unwrap(), "postgres://db:5432/shop");
        assert!(!api("redis://me:pw@cache:6379/1").unwrap().contains("me"));
        assert_eq!(api("postgres://me:pw@db:port/shop").unwrap(), "***");
    }
}
