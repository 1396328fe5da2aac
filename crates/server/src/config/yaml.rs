//! Parses YAML into a tree in which every node has its location. The only module that uses the YAML library.
//!
//! Dangerous or surprising features are refused: anchors and aliases (a few lines can expand to gigabytes), tags,
//! several documents in a file, duplicate keys, keys that are not text. Size and depth are bounded, so that recursion
//! over the tree is safe.

use std::fmt;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::fault::Findings;
use super::location::{ConfigText, SettingLocation};

/// The largest file that is read, in bytes.
pub(super) const MAX_YAML_BYTES: usize = 1 << 20;
/// The deepest nesting that is allowed.
pub(super) const MAX_YAML_DEPTH: usize = 64;

/// The most keys and values of a text: far more than any configuration has, and few enough to process each several
/// times.
pub(super) const MAX_YAML_NODES: usize = 100_000;

/// A value with its location.
#[derive(Clone)]
pub(super) struct YamlNode {
    pub(super) kind: YamlKind,
    pub(super) location: SettingLocation,
    /// The last line of the value in its text.
    pub(super) end_line: usize,
}

#[derive(Clone)]
pub(super) enum YamlKind {
    Null,
    /// `is_plain`: written without quotes, so that `12` and `true` can be a number and a boolean.
    Scalar {
        text: String,
        is_plain: bool,
    },
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

/// A key of a map with its location, and its value.
#[derive(Clone)]
pub(super) struct YamlEntry {
    pub(super) key: String,
    pub(super) key_location: SettingLocation,
    pub(super) value: YamlNode,
}

/// Shows only the kind and location, since a tree may contain secrets.
impl fmt::Debug for YamlNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.describe_kind(), self.location)
    }
}

impl YamlNode {
    pub(super) fn new_unquoted_scalar(location: SettingLocation, text: String) -> Self {
        let end = location.line;
        Self { kind: YamlKind::Scalar { text, is_plain: true }, location, end_line: end }
    }

    pub(super) fn new_empty_map(location: SettingLocation) -> Self {
        let end = location.line;
        Self { kind: YamlKind::Map(Vec::new()), location, end_line: end }
    }

    /// The value of a key, if this is a map that has it.
    pub(super) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a map; empty if this node is not a map.
    pub(super) fn entries(&self) -> &[YamlEntry] {
        match &self.kind {
            YamlKind::Map(entries) => entries,
            YamlKind::Null | YamlKind::Scalar { .. } | YamlKind::List(_) => &[],
        }
    }

    /// The kind as a phrase, such as "a list".
    pub(super) fn describe_kind(&self) -> &'static str {
        match &self.kind {
            YamlKind::Null => "nothing",
            YamlKind::Scalar { .. } => "a plain value",
            YamlKind::List(_) => "a list",
            YamlKind::Map(_) => "a map",
        }
    }
}

/// Parses a text. An empty text is an empty map. A refused feature that can be skipped (an anchor, a duplicate key) is
/// reported and parsing continues; a syntax error ends it.
pub(super) fn parse_yaml(config_text: &Arc<ConfigText>, findings: &mut Findings) -> Option<YamlNode> {
    if config_text.text.len() > MAX_YAML_BYTES {
        findings.add_fault(
            &SettingLocation::whole_text(config_text),
            format!("is larger than {MAX_YAML_BYTES} bytes"),
        );
        return None;
    }
    let text = config_text.text.as_str();
    let mut builder =
        YamlTreeBuilder { config_text, findings, parser: Parser::new_from_str(text), node_count: 0 };
    builder.parse_document()
}

struct YamlTreeBuilder<'a, 'f> {
    config_text: &'a Arc<ConfigText>,
    findings: &'f mut Findings,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    node_count: usize,
}

impl<'a> YamlTreeBuilder<'a, '_> {
    /// Reads the only document of a text.
    fn parse_document(&mut self) -> Option<YamlNode> {
        let mut root = None;
        loop {
            let (event, span) = self.next_event()?;
            match event {
                Event::StreamEnd => break,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) if root.is_some() => {
                    self.add_fault(&span, "a second document begins here; put it into a file of its own");
                    break;
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next_event()?;
                    root = Some(self.parse_node(event, span, 0)?);
                }
                Event::Alias(..)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {
                    self.add_fault(&span, "this cannot be read as YAML");
                    return None;
                }
            }
        }
        Some(root.unwrap_or_else(|| YamlNode::new_empty_map(SettingLocation::whole_text(self.config_text))))
    }

    fn parse_node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Option<YamlNode> {
        if depth > MAX_YAML_DEPTH {
            self.add_fault(&span, format!("nested deeper than {MAX_YAML_DEPTH}"));
            return None;
        }
        self.node_count += 1;
        if self.node_count > MAX_YAML_NODES {
            self.add_fault(&span, format!("there are more than {MAX_YAML_NODES} keys and values"));
            return None;
        }
        let location = self.start_location(&span);
        let (anchor, tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            self.add_fault(
                &span,
                "anchors (`&name`) are not supported; write the value out where it is needed",
            );
        }
        if tagged {
            self.add_fault(&span, "tags (`!name`) are not supported");
        }
        let (kind, end) = match event {
            Event::Scalar(text, style, ..) => {
                let plain = style == ScalarStyle::Plain;
                let kind = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if plain => YamlKind::Null,
                    _ => YamlKind::Scalar { text: text.into_owned(), is_plain: plain },
                };
                (kind, span.end.line())
            }
            Event::SequenceStart(..) => self.parse_list(depth)?,
            Event::MappingStart(..) => self.parse_map(depth)?,
            Event::Alias(_) => {
                self.add_fault(&span, "aliases (`*name`) are not supported; write the value out");
                (YamlKind::Null, span.end.line())
            }
            _ => {
                self.add_fault(&span, "a value is missing here");
                return None;
            }
        };
        Some(YamlNode { kind, location, end_line: end })
    }

    fn parse_list(&mut self, depth: usize) -> Option<(YamlKind, usize)> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next_event()?;
            if event == Event::SequenceEnd {
                return Some((YamlKind::List(items), span.end.line()));
            }
            items.push(self.parse_node(event, span, depth + 1)?);
        }
    }

    fn parse_map(&mut self, depth: usize) -> Option<(YamlKind, usize)> {
        let mut entries: Vec<YamlEntry> = Vec::new();
        let mut key_lines = std::collections::HashMap::new();
        loop {
            let (event, span) = self.next_event()?;
            if event == Event::MappingEnd {
                return Some((YamlKind::Map(entries), span.end.line()));
            }
            let key = self.parse_node(event, span, depth + 1)?;
            let (event, span) = self.next_event()?;
            let value = self.parse_node(event, span, depth + 1)?;
            let at = key.location;
            let YamlKind::Scalar { text: key, .. } = key.kind else {
                self.findings.add_fault(&at, "a key must be text");
                continue;
            };
            match key_lines.get(&key) {
                Some(line) => self.findings.add_fault(&at, format!("{key:?} is already set in line {line}")),
                None => {
                    key_lines.insert(key.clone(), at.line);
                    entries.push(YamlEntry { key, key_location: at, value });
                }
            }
        }
    }

    fn next_event(&mut self) -> Option<(Event<'a>, Span)> {
        match self.parser.next_event()? {
            Ok(next) => Some(next),
            Err(error) => {
                self.add_syntax_fault(&error);
                None
            }
        }
    }

    fn add_syntax_fault(&mut self, error: &ScanError) {
        let marker = error.marker();
        let location = SettingLocation {
            config_text: self.config_text.clone(),
            line: marker.line().max(1),
            column: marker.col() + 1,
        };
        // This is the most frequent mistake, and the library's message alone does not help.
        let hint = match error.info().contains("mapping values are not allowed") {
            true => "; a value that ends in a colon, or has a space after one, needs quotes",
            false => "",
        };
        self.findings.add_fault(&location, format!("this is not YAML: {}{hint}", error.info()));
    }

    fn add_fault(&mut self, span: &Span, message: impl Into<String>) {
        let location = self.start_location(span);
        self.findings.add_fault(&location, message);
    }

    fn start_location(&self, span: &Span) -> SettingLocation {
        let start = span.start;
        SettingLocation {
            config_text: self.config_text.clone(),
            line: start.line().max(1),
            column: start.col() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::location::SettingOrigin;
    use super::*;

    fn parse_yaml_text(text: &str) -> YamlNode {
        let config_text = ConfigText::new(SettingOrigin::File("a.yml".into()), 0, text.into());
        parse_yaml(&config_text, &mut Findings::default()).unwrap()
    }

    #[test]
    fn nodes_and_keys_have_line_and_column() {
        let root = parse_yaml_text("# first\na:\n  - x\n  - {k: \"v\", é: w}\nb: |\n  one\n  two\n");
        let YamlKind::List(items) = &root.get("a").unwrap().kind else { panic!("{root:?}") };
        assert_eq!(items[0].location.to_string(), "a.yml:3:5");
        let inner = items[1].entries();
        assert_eq!(
            (inner[0].key_location.to_string(), inner[0].value.location.to_string()),
            ("a.yml:4:6".into(), "a.yml:4:9".into())
        );
        assert_eq!(inner[1].value.location.to_string(), "a.yml:4:17", "columns count characters");
        assert!(root.get("b").unwrap().end_line >= 7);
    }

    #[test]
    fn only_unquoted_scalars_can_be_null() {
        let root = parse_yaml_text("{a: , b: ~, c: null, d: 'null', e: '', f: nil}");
        let is_null = |key: &str| matches!(root.get(key).unwrap().kind, YamlKind::Null);
        assert_eq!(["a", "b", "c", "d", "e", "f"].map(is_null), [true, true, true, false, false, false]);
        assert!(
            parse_yaml_text("").entries().is_empty() && parse_yaml_text("# nothing\n").entries().is_empty()
        );
    }
}
