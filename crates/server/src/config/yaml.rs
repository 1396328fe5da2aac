//! YAML as a tree that knows where everything stands. The one module that touches the YAML library.
//!
//! What makes YAML dangerous or surprising is refused: anchors and aliases (a few lines can expand to
//! gigabytes), tags, several documents in a file, the same key twice, keys that are not text. Size and depth
//! are bounded, so that whoever walks the tree may recurse.

use std::fmt;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::fault::Findings;
use super::place::{Place, Source};

/// The largest file that is read, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting that is taken.
pub(super) const MAX_DEPTH: usize = 64;

/// The most keys and values that a text may have: far beyond any configuration, and few enough to look at each
/// several times.
pub(super) const MAX_NODES: usize = 100_000;

/// A value and its place.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) place: Place,
    /// The line its text ends on.
    pub(super) end: usize,
}

#[derive(Clone)]
pub(super) enum Kind {
    Null,
    /// `plain`: written without quotes, so that `12` and `true` may be meant as more than text.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map, with its own place, and its value.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Place,
    pub(super) value: Node,
}

/// A tree may hold secrets, so that only its outside is shown.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.what(), self.place)
    }
}

impl Node {
    pub(super) fn scalar(place: Place, text: String) -> Self {
        let end = place.line;
        Self { kind: Kind::Scalar { text, plain: true }, place, end }
    }

    pub(super) fn empty_map(place: Place) -> Self {
        let end = place.line;
        Self { kind: Kind::Map(Vec::new()), place, end }
    }

    /// The value of a key, if this is a map that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a map; none if it is something else.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            Kind::Null | Kind::Scalar { .. } | Kind::List(_) => &[],
        }
    }

    /// What it is, in words.
    pub(super) fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Scalar { .. } => "a plain value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

/// Reads a text. An empty one is an empty map. What is refused but can be passed over (an anchor, a key set
/// twice) is put into `findings` and reading goes on; what is not YAML at all ends it.
pub(super) fn parse(source: &Arc<Source>, findings: &mut Findings) -> Option<Node> {
    if source.text.len() > MAX_BYTES {
        findings.fault(&Place::whole(source), format!("is larger than {MAX_BYTES} bytes"));
        return None;
    }
    let text = source.text.as_str();
    let mut builder = Builder { source, findings, parser: Parser::new_from_str(text), nodes: 0 };
    builder.document()
}

struct Builder<'a, 'f> {
    source: &'a Arc<Source>,
    findings: &'f mut Findings,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    nodes: usize,
}

impl<'a> Builder<'a, '_> {
    /// The one document of a text.
    fn document(&mut self) -> Option<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) if root.is_some() => {
                    self.fault(&span, "a second document begins here; put it into a file of its own");
                    break;
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?);
                }
                Event::Alias(..)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {
                    self.fault(&span, "this cannot be understood as YAML");
                    return None;
                }
            }
        }
        Some(root.unwrap_or_else(|| Node::empty_map(Place::whole(self.source))))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            self.fault(&span, format!("nested deeper than {MAX_DEPTH}"));
            return None;
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.fault(&span, format!("there are more than {MAX_NODES} keys and values"));
            return None;
        }
        let place = self.place(&span);
        let (anchor, tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            self.fault(&span, "anchors (`&name`) are not taken here; write the value out where it is needed");
        }
        if tagged {
            self.fault(&span, "tags (`!name`) are not taken here");
        }
        let (kind, end) = match event {
            Event::Scalar(text, style, ..) => {
                let plain = style == ScalarStyle::Plain;
                let kind = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if plain => Kind::Null,
                    _ => Kind::Scalar { text: text.into_owned(), plain },
                };
                (kind, span.end.line())
            }
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(_) => {
                self.fault(&span, "aliases (`*name`) are not taken here; write the value out");
                (Kind::Null, span.end.line())
            }
            _ => {
                self.fault(&span, "a value is missing here");
                return None;
            }
        };
        Some(Node { kind, place, end })
    }

    fn list(&mut self, depth: usize) -> Option<(Kind, usize)> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Some((Kind::List(items), span.end.line()));
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Option<(Kind, usize)> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Some((Kind::Map(entries), span.end.line()));
            }
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            let at = key.place;
            let Kind::Scalar { text: key, .. } = key.kind else {
                self.findings.fault(&at, "a key must be text");
                continue;
            };
            match seen.get(&key) {
                Some(line) => self.findings.fault(&at, format!("{key:?} is already set in line {line}")),
                None => {
                    seen.insert(key.clone(), at.line);
                    entries.push(Entry { key, at, value });
                }
            }
        }
    }

    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        match self.parser.next_event()? {
            Ok(next) => Some(next),
            Err(error) => {
                self.syntax(&error);
                None
            }
        }
    }

    fn syntax(&mut self, error: &ScanError) {
        let marker = error.marker();
        let place =
            Place { source: self.source.clone(), line: marker.line().max(1), column: marker.col() + 1 };
        // The most frequent slip, and the one whose message helps least.
        let hint = match error.info().contains("mapping values are not allowed") {
            true => "; a value that ends in a colon, or has a blank behind one, needs quotes",
            false => "",
        };
        self.findings.fault(&place, format!("this is not YAML: {}{hint}", error.info()));
    }

    fn fault(&mut self, span: &Span, message: impl Into<String>) {
        let place = self.place(span);
        self.findings.fault(&place, message);
    }

    fn place(&self, span: &Span) -> Place {
        let start = span.start;
        Place { source: self.source.clone(), line: start.line().max(1), column: start.col() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::Origin;
    use super::*;

    fn tree(text: &str) -> Node {
        let source = Source::new(Origin::File("a.yml".into()), 0, text.into());
        parse(&source, &mut Findings::default()).unwrap()
    }

    #[test]
    fn everything_knows_its_place() {
        let root = tree("# first\na:\n  - x\n  - {k: \"v\", é: w}\nb: |\n  one\n  two\n");
        let Kind::List(items) = &root.get("a").unwrap().kind else { panic!("{root:?}") };
        assert_eq!(items[0].place.to_string(), "a.yml:3:5");
        let inner = items[1].entries();
        assert_eq!(
            (inner[0].at.to_string(), inner[0].value.place.to_string()),
            ("a.yml:4:6".into(), "a.yml:4:9".into())
        );
        assert_eq!(inner[1].value.place.to_string(), "a.yml:4:17", "columns count characters");
        assert!(root.get("b").unwrap().end >= 7);
    }

    #[test]
    fn only_what_stands_bare_can_be_nothing() {
        let root = tree("{a: , b: ~, c: null, d: 'null', e: '', f: nil}");
        let nothing = |key: &str| matches!(root.get(key).unwrap().kind, Kind::Null);
        assert_eq!(["a", "b", "c", "d", "e", "f"].map(nothing), [true, true, true, false, false, false]);
        assert!(tree("").entries().is_empty() && tree("# nothing\n").entries().is_empty());
    }
}
