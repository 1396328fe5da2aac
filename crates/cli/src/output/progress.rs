//! Progress bars.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The interval at which the bar is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// A progress bar on standard error if that is a terminal, nothing otherwise. Cleared when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for work with this many steps.
    pub(crate) fn with_steps(steps: u64) -> Self {
        Self::with_template(
            ProgressBar::new(steps),
            "{spinner} [{elapsed}] {bar:20} {human_pos}/{human_len} {wide_msg}",
        )
    }

    /// A spinner for work of unknown length.
    pub(crate) fn new_spinner() -> Self {
        Self::with_template(ProgressBar::new_spinner(), "{spinner} [{elapsed}] {wide_msg}")
    }

    fn with_template(bar: ProgressBar, template: &str) -> Self {
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(REDRAW_INTERVAL);
        Self(bar)
    }

    /// Sets the steps done and the total.
    pub(crate) fn set_position_and_total(&self, done: u64, steps: u64) {
        self.0.set_length(steps);
        self.0.set_position(done);
    }

    pub(crate) fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    pub(crate) fn set_message(&self, message: impl Display) {
        self.0.set_message(message.to_string());
    }

    /// Prints a line above the bar.
    pub(crate) fn print_above_bar(&self, text: &str) {
        self.0.suspend(|| super::print_to_stderr(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
