//! What commands print: tables and lines for people, JSON for programs.
//!
//! ```text
//!  paint     colours, on a terminal
//!  progress  how far long work has come
//!  table     tables that fit a terminal
//!  text      what is safe to show there, and how much room it takes
//! ```

mod paint;
mod progress;
mod table;
mod text;

use std::io::{self, IsTerminal, Write};

pub(crate) use pointsman_store::finding::age;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::args::{Format, Global};
pub(crate) use paint::Paint;
pub(crate) use progress::Progress;
pub(crate) use text::{clean, clean_lines, clock, counted, day_and_time, fold, pad, short, width};

/// Standard output, and how it is to be written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) paint: Paint,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self { format: global.output, paint: Paint::new(global.color) }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    pub(crate) fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        // A line at a time also into a pipe: whoever follows a stream wants what has happened so far.
        out.flush()
    }

    /// One JSON document on a line of its own.
    pub(crate) fn json(self, value: &impl Serialize) -> io::Result<()> {
        self.json_text(&serde_json::to_string(value)?)
    }

    /// The same, of one that is a text already. Payloads in it are as they came, also with line breaks: those are blanks
    /// between tokens.
    pub(crate) fn json_text(self, json: &str) -> io::Result<()> {
        let line = json.replace(['\n', '\r'], " ");
        if io::stdout().is_terminal() { self.line(text::clean_json(&line)) } else { self.line(line) }
    }

    /// The width of the terminal; a pipe has none.
    pub(crate) fn width(self) -> Option<usize> {
        terminal_size_of(io::stdout())
            .map(|(Width(columns), _)| columns.into())
            .filter(|columns| *columns > 0)
    }

    /// A table, or a sentence if it would be empty.
    pub(crate) fn table(self, head: &[&str], rows: Vec<Vec<String>>, empty: &str) -> io::Result<()> {
        if rows.is_empty() {
            return self.line(empty);
        }
        table::lines(head, rows, self.width(), self.paint).iter().try_for_each(|line| self.line(line))
    }

    /// Names and values, one pair a line. What is empty is left out.
    pub(crate) fn facts(self, facts: &[(&str, String)]) -> io::Result<()> {
        let facts: Vec<_> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
        let columns = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in facts {
            let (name, value) = (self.paint.dim(&pad(name, columns)).into_owned(), clean(value));
            // A payload is for copying.
            match value.starts_with(['{', '[', '"']) {
                true => self.line(format!("{name}  {value}"))?,
                false => self.hanging(&format!("{name}  "), &value)?,
            }
        }
        Ok(())
    }

    /// A text behind what begins its line; what a terminal has no room for goes below the text's own beginning.
    pub(crate) fn hanging(self, start: &str, text: &str) -> io::Result<()> {
        let indent = width(start);
        let room = self.width().map_or(usize::MAX, |columns| columns.saturating_sub(indent));
        for (at, line) in fold(text, room.max(LEAST)).iter().enumerate() {
            match at {
                0 => self.line(format!("{start}{line}"))?,
                _ => self.line(format!("{:indent$}{line}", ""))?,
            }
        }
        Ok(())
    }
}

/// The fewest columns that a text is broken into.
const LEAST: usize = 20;

/// Something for a person beside the answer, on standard error. That nobody reads it any more is no failure.
pub(crate) fn say(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", clean_lines(text.as_ref()));
}
