//! What is wrong with a configuration: every fault at once, each with its place.
//!
//! ```text
//! pointsman.yml:12:5: unknown setting `tiemout`; did you mean `timeout`?
//!    12 |     tiemout: 10s
//!       |     ^
//! ```
//!
//! A line that holds a secret is never shown, and no message repeats a secret value.

use std::fmt;

use super::place::Place;

/// The most characters of a line that are shown.
const WIDTH: usize = 100;
/// The most faults that are shown. A person mends these first.
const SHOWN: usize = 200;

/// One fault.
#[derive(Clone, Debug)]
pub struct Fault {
    place: Place,
    message: String,
}

impl Fault {
    /// The file, line and column, or the variable or flag.
    pub fn place(&self) -> String {
        self.place.to_string()
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its line with a caret below the place, unless the line holds a secret or there is none.
    pub fn excerpt(&self) -> Option<String> {
        self.place.source.line(self.place.line).map(|text| self.mark(text))
    }

    /// The same for clients of the API, who are not shown URLs and commands either.
    pub fn excerpt_for_api(&self) -> Option<String> {
        self.place.source.line_for_api(self.place.line).map(|text| self.mark(text))
    }

    /// The text of its line with a caret below the place.
    fn mark(&self, text: &str) -> String {
        let (shown, before) = window(text, self.place.column);
        format!("{:>5} | {shown}\n      | {before}^", self.place.line)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        self.excerpt().map_or(Ok(()), |excerpt| write!(f, "\n{excerpt}"))
    }
}

/// The part of a line around a column, and what to write before the caret to get below it.
fn window(line: &str, column: usize) -> (String, String) {
    let at = column.saturating_sub(1);
    let skip = if at >= WIDTH { at - WIDTH / 2 } else { 0 };
    // A configuration must not be able to steer the terminal that shows its faults.
    let clean = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let shown: String = line.chars().skip(skip).take(WIDTH).map(clean).collect();
    let before = shown.chars().take(at - skip).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    (shown, before)
}

/// All faults of a configuration, sorted by place. Never empty.
#[derive(Clone, Debug)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: without a fault there are no `Faults`.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.0.iter().take(SHOWN) {
            writeln!(f, "{fault}")?;
        }
        match self.0.len() {
            n if n > SHOWN => write!(f, "{n} faults, of which the first {SHOWN} are shown"),
            1 => write!(f, "1 fault"),
            n => write!(f, "{n} faults"),
        }
    }
}

impl std::error::Error for Faults {}

/// Something that is allowed but probably not meant.
#[derive(Clone, Debug)]
pub struct Warning(Fault);

impl Warning {
    pub(super) fn new(place: &Place, message: impl Into<String>) -> Self {
        Self(Fault { place: place.clone(), message: message.into() })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.place, self.0.message)
    }
}

/// Gathers faults and warnings while a configuration is read, so that reading goes on after each.
#[derive(Debug, Default)]
pub(super) struct Findings {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

impl Findings {
    pub(super) fn fault(&mut self, place: &Place, message: impl Into<String>) {
        self.faults.push(Fault { place: place.clone(), message: message.into() });
    }

    pub(super) fn warn(&mut self, place: &Place, message: impl Into<String>) {
        self.warnings.push(Warning::new(place, message));
    }

    /// What was read and the warnings about it, or every fault there was. Reading reports whatever keeps it
    /// from a result; should it ever fail to, the fault is the whole of the place.
    pub(super) fn finish<T>(mut self, read: Option<T>, place: &Place) -> Result<(T, Vec<Warning>), Faults> {
        match read {
            Some(read) if self.faults.is_empty() => {
                self.warnings.sort_by(|a, b| a.0.place.order(&b.0.place));
                return Ok((read, self.warnings));
            }
            None if self.faults.is_empty() => self.fault(place, "this cannot be understood"),
            Some(_) | None => {}
        }
        self.faults.sort_by(|a, b| a.place.order(&b.place));
        Err(Faults(self.faults))
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::{Origin, Source};
    use super::*;

    fn place(text: &str, line: usize, column: usize) -> Place {
        Place { source: Source::new(Origin::File("a.yml".into()), 0, text.into()), line, column }
    }

    #[test]
    fn a_fault_shows_its_line_with_a_caret() {
        let mut findings = Findings::default();
        findings.fault(&place("one\n\tkey: x\n", 2, 7), "no good");
        findings.fault(&place("one\n\tkey: x\n", 1, 1), "nor this");
        let shown = findings.finish(Some(()), &place("", 0, 0)).unwrap_err().to_string();
        assert_eq!(
            shown,
            "a.yml:1:1: nor this\n    1 | one\n      | ^\n\
             a.yml:2:7: no good\n    2 | \tkey: x\n      | \t     ^\n2 faults"
        );
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_are_not_passed_on() {
        let line = "x".repeat(300) + "\u{1b}[31m";
        let (shown, before) = window(&line, 301);
        assert_eq!(before.chars().count(), WIDTH / 2);
        assert_eq!(shown.chars().nth(WIDTH / 2), Some('\u{fffd}'));
    }
}
