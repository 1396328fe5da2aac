//! Colours on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use crate::args::ColorChoice;

/// Adds colour codes to text, or leaves it plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    enabled: bool,
}

impl Paint {
    /// Colours for standard output.
    pub(crate) fn for_stdout(color: ColorChoice) -> Self {
        Self::from_choice(color, io::stdout().is_terminal())
    }

    /// Colours for standard error: the log, errors and notes.
    pub(crate) fn for_stderr(color: ColorChoice) -> Self {
        Self::from_choice(color, io::stderr().is_terminal())
    }

    fn from_choice(color: ColorChoice, is_terminal: bool) -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let is_opted_out = !variable("NO_COLOR").is_empty() || variable("TERM") == "dumb";
        let enabled = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_opted_out,
        };
        Self { enabled }
    }

    pub(crate) fn is_enabled(self) -> bool {
        self.enabled
    }

    fn apply_color_code<'a>(self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.enabled && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m").into()
        } else {
            text.into()
        }
    }

    pub(crate) fn dim(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("1", text)
    }

    pub(crate) fn green(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("32", text)
    }

    pub(crate) fn red(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> Cow<'_, str> {
        self.apply_color_code("36", text)
    }

    /// Colours a text by a task status: a public status, a state of the task lifecycle, or `HALTED`.
    pub(crate) fn color_by_status<'a>(self, status: &str, text: &'a str) -> Cow<'a, str> {
        match status {
            "SUCCESS" | "done" => self.green(text),
            "FAILED" | "HALTED" | "error" | "missing" => self.red(text),
            "RUNNING" | "locked" => self.yellow(text),
            _ => self.dim(text),
        }
    }
}
