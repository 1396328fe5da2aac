//! Rate-limited log of outbox entries that are set aside because they are not events: at intervals, with a count and an
//! example.

use std::time::{Duration, Instant};

/// The least time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Entries that were set aside since the last log line.
#[derive(Debug, Default)]
pub struct SetAsideEntryLog {
    last_logged_at: Option<Instant>,
    entry_count: u64,
    example: String,
}

impl SetAsideEntryLog {
    /// Counts an entry. The first since the last log line is the example.
    pub fn count_entry(&mut self, example: impl FnOnce() -> String) {
        if self.entry_count == 0 {
            self.example = example();
        }
        self.entry_count += 1;
    }

    /// Returns the number of entries and an example if a log line is due; `None` if there are no entries or the last
    /// line was logged less than `LOG_INTERVAL` ago.
    pub fn take_due_summary(&mut self, now: Instant) -> Option<(u64, String)> {
        let is_early =
            self.last_logged_at.is_some_and(|logged| now.saturating_duration_since(logged) < LOG_INTERVAL);
        if is_early || self.entry_count == 0 {
            return None;
        }
        self.last_logged_at = Some(now);
        Some((std::mem::take(&mut self.entry_count), std::mem::take(&mut self.example)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_logged_at_intervals_and_counted() {
        let (mut log, start) = (SetAsideEntryLog::default(), Instant::now());
        assert_eq!(log.take_due_summary(start), None);
        let mut lines = Vec::new();
        for n in 0..20_000_u32 {
            log.count_entry(|| n.to_string());
            lines.extend(log.take_due_summary(start + Duration::from_millis(1) * n));
        }
        let examples: Vec<&str> = lines.iter().map(|(_, example)| example.as_str()).collect();
        assert_eq!(examples, ["0", "1"]);
        lines.extend(log.take_due_summary(start + LOG_INTERVAL * 3));
        assert_eq!(lines.iter().map(|(entries, _)| entries).sum::<u64>(), 20_000);
        assert_eq!((lines.len(), log.take_due_summary(start + LOG_INTERVAL * 9)), (3, None));
    }
}
