//! Colours, on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use crate::args::Color;

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

    /// For the log, and for what is said beside the answer.
    pub(crate) fn of_stderr(color: Color) -> Self {
        Self::of(color, io::stderr().is_terminal())
    }

    fn of(color: Color, terminal: bool) -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let unwanted = !variable("NO_COLOR").is_empty() || variable("TERM") == "dumb";
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
            "FAILED" | "HALTED" | "error" | "missing" => self.bad(shown),
            "RUNNING" | "locked" => self.busy(shown),
            _ => self.dim(shown),
        }
    }
}
