//! What commands print: tables and lines for people, JSON for programs.

mod table;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

pub(crate) use pointsman_store::finding::age;
use serde::Serialize;

use crate::args::{Color, Format, Global};

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
        self.line(serde_json::to_string(value)?)
    }

    /// The width of the terminal; a pipe has none.
    pub(crate) fn width(self) -> Option<usize> {
        table::terminal()
    }

    /// A table, or a sentence if it would be empty.
    pub(crate) fn table(self, head: &[&str], rows: Vec<Vec<String>>, empty: &str) -> io::Result<()> {
        if rows.is_empty() {
            return self.line(empty);
        }
        table::lines(head, rows, self.width()).iter().try_for_each(|line| self.line(line))
    }

    /// Names and values, one pair a line. What is empty is left out.
    pub(crate) fn facts(self, facts: &[(&str, String)]) -> io::Result<()> {
        let facts: Vec<_> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in facts {
            self.line(format!("{}  {}", self.paint.dim(&format!("{name:<width$}")), clean(value)))?;
        }
        Ok(())
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub(crate) fn new(color: Color) -> Self {
        Self::of(color, io::stdout().is_terminal())
    }

    /// For the log.
    pub(crate) fn of_stderr(color: Color) -> Self {
        Self::of(color, io::stderr().is_terminal())
    }

    fn of(color: Color, terminal: bool) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !unwanted,
        };
        Self { on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn with<'a>(self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m").into() } else { text.into() }
    }

    pub(crate) fn dim(self, text: &str) -> Cow<'_, str> {
        self.with("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> Cow<'_, str> {
        self.with("1", text)
    }

    pub(crate) fn good(self, text: &str) -> Cow<'_, str> {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> Cow<'_, str> {
        self.with("31", text)
    }

    pub(crate) fn busy(self, text: &str) -> Cow<'_, str> {
        self.with("33", text)
    }

    pub(crate) fn name(self, text: &str) -> Cow<'_, str> {
        self.with("36", text)
    }

    /// A task's status, or a log line's level, in the colour that it has everywhere.
    pub(crate) fn status<'a>(self, status: &str, shown: &'a str) -> Cow<'a, str> {
        match status {
            "SUCCESS" | "done" => self.good(shown),
            "FAILED" | "error" | "missing" => self.bad(shown),
            "RUNNING" | "locked" => self.busy(shown),
            _ => self.dim(shown),
        }
    }
}

/// A text from elsewhere, made safe for a terminal: control characters are shown, not obeyed.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\t') {
        return text.into();
    }
    let shown = text.chars().map(|c| match c {
        '\t' => "\t".into(),
        c if c.is_control() => Cow::Owned(c.escape_default().to_string()),
        c => Cow::Owned(c.to_string()),
    });
    shown.collect::<Vec<_>>().concat().into()
}

/// At most so many characters of a text; an ellipsis stands for the rest.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text.into_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A number and what it counts, in the singular or the plural.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The hour, minute, second and millisecond of an RFC 3339 time.
pub(crate) fn clock(time: &str) -> &str {
    time.get(11..23).unwrap_or(time)
}

/// An RFC 3339 time to the second, as people write it.
pub(crate) fn day_and_time(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_wrote_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\tc"), "a\\u{1b}[2Jb\tc");
        assert_eq!(clean("ü"), "ü");
    }

    #[test]
    fn long_texts_are_cut_by_characters() {
        assert_eq!(short("äöüß", 4), "äöüß");
        assert_eq!(short("äöüßx", 4), "äöü…");
    }

    #[test]
    fn one_is_singular() {
        let tries = |count| counted(count, "retry", "retries");
        assert_eq!([tries(0), tries(1), tries(2)], ["0 retries", "1 retry", "2 retries"]);
    }

    #[test]
    fn times_are_shown_as_people_write_them() {
        let time = "2016-11-04T11:07:35.827000Z";
        assert_eq!(clock(time), "11:07:35.827");
        assert_eq!(day_and_time(time), "2016-11-04 11:07:35");
        assert_eq!(day_and_time(""), "");
    }
}
