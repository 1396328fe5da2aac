//! How far long work has come.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often it is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// A bar on standard error, if that is a terminal; nothing otherwise. Gone when dropped, whatever came of the work.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of work that has so many steps.
    pub(crate) fn of(steps: u64) -> Self {
        Self::styled(
            ProgressBar::new(steps),
            "{spinner} [{elapsed}] {bar:20} {human_pos}/{human_len} {wide_msg}",
        )
    }

    /// Of work whose end is not known.
    pub(crate) fn endless() -> Self {
        Self::styled(ProgressBar::new_spinner(), "{spinner} [{elapsed}] {wide_msg}")
    }

    fn styled(bar: ProgressBar, template: &str) -> Self {
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// It has so many steps, and so many are done.
    pub(crate) fn is_at(&self, done: u64, steps: u64) {
        self.0.set_length(steps);
        self.0.set_position(done);
    }

    pub(crate) fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    pub(crate) fn doing(&self, what: impl Display) {
        self.0.set_message(what.to_string());
    }

    /// Says something without spoiling the bar.
    pub(crate) fn say(&self, text: &str) {
        self.0.suspend(|| super::say(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
