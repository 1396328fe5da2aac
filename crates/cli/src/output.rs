//! Output of commands: tables and lines for people, JSON for programs.
//!
//! ```text
//!  paint     colours on a terminal
//!  progress  progress bars
//!  table     tables that fit the terminal
//!  text      escaping, measuring and wrapping text
//! ```

mod paint;
mod progress;
mod table;
mod text;

use std::io::{self, IsTerminal, Write};

pub(crate) use pointsman_store::finding::format_age;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::args::{GlobalOptions, OutputFormat};
pub(crate) use paint::Paint;
pub(crate) use progress::Progress;
pub(crate) use text::{
    display_width, escape_and_shorten, escape_controls, escape_controls_in_lines, format_count,
    format_timestamp, pad_to_width, time_of_day, wrap_text,
};

/// Prints to standard output, in the format and with the colours of the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
    pub(crate) paint: Paint,
}

impl Output {
    pub(crate) fn new(global: &GlobalOptions) -> Self {
        Self { format: global.output_format, paint: Paint::for_stdout(global.color) }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == OutputFormat::Json
    }

    pub(crate) fn print_line(self, text: impl AsRef<str>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        // Flush each line into a pipe too: a program that reads a stream needs it now.
        out.flush()
    }

    /// Prints one JSON document on one line.
    pub(crate) fn print_json(self, value: &impl Serialize) -> io::Result<()> {
        self.print_json_text(&serde_json::to_string(value)?)
    }

    /// Prints a serialized JSON document on one line. Line breaks in payloads are whitespace between tokens and become
    /// blanks.
    pub(crate) fn print_json_text(self, json: &str) -> io::Result<()> {
        let line = json.replace(['\n', '\r'], " ");
        if io::stdout().is_terminal() {
            self.print_line(text::escape_controls_in_json(&line))
        } else {
            self.print_line(line)
        }
    }

    /// The width of the terminal; none for a pipe.
    pub(crate) fn terminal_width(self) -> Option<usize> {
        terminal_size_of(io::stdout())
            .map(|(Width(columns), _)| columns.into())
            .filter(|columns| *columns > 0)
    }

    /// Prints a table, or `empty_message` if it has no rows.
    pub(crate) fn print_table(
        self,
        head: &[&str],
        rows: Vec<Vec<String>>,
        empty_message: &str,
    ) -> io::Result<()> {
        if rows.is_empty() {
            return self.print_line(empty_message);
        }
        let lines = table::render_table(head, rows, self.terminal_width(), self.paint);
        lines.iter().try_for_each(|line| self.print_line(line))
    }

    /// Prints names and values, one pair per line. Empty values are left out.
    pub(crate) fn print_fields(self, fields: &[(&str, String)]) -> io::Result<()> {
        let fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_empty()).collect();
        let columns = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields {
            let (name, value) =
                (self.paint.dim(&pad_to_width(name, columns)).into_owned(), escape_controls(value));
            // A payload is not wrapped, so that it can be copied.
            match value.starts_with(['{', '[', '"']) {
                true => self.print_line(format!("{name}  {value}"))?,
                false => self.print_with_hanging_indent(&format!("{name}  "), &value)?,
            }
        }
        Ok(())
    }

    /// Prints `prefix` and a text. Wrapped lines are indented to the start of the text.
    pub(crate) fn print_with_hanging_indent(self, prefix: &str, text: &str) -> io::Result<()> {
        let indent = display_width(prefix);
        let text_width = self.terminal_width().map_or(usize::MAX, |columns| columns.saturating_sub(indent));
        for (index, line) in wrap_text(text, text_width.max(MIN_WRAP_WIDTH)).iter().enumerate() {
            match index {
                0 => self.print_line(format!("{prefix}{line}"))?,
                _ => self.print_line(format!("{:indent$}{line}", ""))?,
            }
        }
        Ok(())
    }
}

/// The minimum width to which texts are wrapped, however narrow the terminal is.
const MIN_WRAP_WIDTH: usize = 20;

/// Prints a note for the user to standard error. A closed standard error is ignored.
pub(crate) fn print_to_stderr(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", escape_controls_in_lines(text.as_ref()));
}
