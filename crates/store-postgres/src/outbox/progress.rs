//! The progress of the outbox: up to which row number it is empty and will stay so.
//!
//! Numbers are assigned before their transactions commit, so that a small one may become visible after a large one. But
//! a transaction that has a number has a transaction id by then. So the last number is recorded as a candidate, and
//! then a transaction id is taken: when all transactions before that id have ended, all rows up to that number are
//! visible, or never will be.

/// The progress is written only when this many more numbers have been assigned.
const MIN_PROGRESS_ADVANCE: i64 = 10_000;

/// The progress of the outbox, and the state of the server that decides whether it can advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutboxProgress {
    /// The outbox is and stays empty up to this number.
    pub(crate) empty_up_to: i64,
    /// The candidate: the last number at an earlier time, and the transaction id that was taken after it.
    pub(crate) candidate_number: i64,
    pub(crate) candidate_xact: i64,
    /// All transactions before `oldest_active_xact` had ended; those from `next_xact` on had not started.
    pub(crate) oldest_active_xact: i64,
    pub(crate) next_xact: i64,
    /// The last assigned number.
    pub(crate) last_number: i64,
    /// The number of the first waiting row.
    pub(crate) first_waiting_row_number: Option<i64>,
}

/// The next write to the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressStep {
    /// The progress stays as it is stored.
    NoWrite,
    SetEmptyUpTo(i64),
    /// Records the last number as the candidate, with a new transaction id.
    RecordCandidate,
}

impl OutboxProgress {
    /// Returns the number after which rows may be waiting. That is 0 after the sequence of numbers was reset, as when a
    /// database is copied without it.
    pub(crate) fn scan_after(&self) -> i64 {
        if self.empty_up_to <= self.last_number { self.empty_up_to } else { 0 }
    }

    /// Decides the next write to the progress.
    pub(crate) fn next_step(&self) -> ProgressStep {
        if self.scan_after() != self.empty_up_to {
            return ProgressStep::SetEmptyUpTo(0);
        }
        // A candidate with a transaction id that this server has not assigned yet is from another server, whose
        // database was restored here.
        let has_candidate = self.candidate_number > self.empty_up_to && self.candidate_xact < self.next_xact;
        if !has_candidate {
            return if self.last_number - self.empty_up_to >= MIN_PROGRESS_ADVANCE {
                ProgressStep::RecordCandidate
            } else {
                ProgressStep::NoWrite
            };
        }
        let new_empty_up_to = self
            .first_waiting_row_number
            .map_or(self.candidate_number, |first_waiting| self.candidate_number.min(first_waiting - 1));
        let is_worth_writing = new_empty_up_to == self.candidate_number
            || new_empty_up_to - self.empty_up_to >= MIN_PROGRESS_ADVANCE;
        if self.oldest_active_xact >= self.candidate_xact && is_worth_writing {
            ProgressStep::SetEmptyUpTo(new_empty_up_to)
        } else {
            ProgressStep::NoWrite
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS_WITH_CANDIDATE: OutboxProgress = OutboxProgress {
        empty_up_to: 0,
        candidate_number: MIN_PROGRESS_ADVANCE,
        candidate_xact: 700,
        oldest_active_xact: 700,
        next_xact: 900,
        last_number: 2 * MIN_PROGRESS_ADVANCE,
        first_waiting_row_number: None,
    };

    #[test]
    fn a_candidate_is_recorded_after_enough_new_numbers() {
        let before_min_advance = OutboxProgress {
            last_number: MIN_PROGRESS_ADVANCE - 1,
            next_xact: 9,
            oldest_active_xact: 9,
            ..OutboxProgress::default()
        };
        assert_eq!(before_min_advance.next_step(), ProgressStep::NoWrite);
        assert_eq!(
            OutboxProgress { last_number: MIN_PROGRESS_ADVANCE, ..before_min_advance }.next_step(),
            ProgressStep::RecordCandidate
        );
        assert_eq!(
            OutboxProgress { empty_up_to: MIN_PROGRESS_ADVANCE, ..PROGRESS_WITH_CANDIDATE }.next_step(),
            ProgressStep::RecordCandidate
        );
    }

    #[test]
    fn progress_waits_while_an_older_transaction_is_open() {
        assert_eq!(
            OutboxProgress { oldest_active_xact: 699, ..PROGRESS_WITH_CANDIDATE }.next_step(),
            ProgressStep::NoWrite
        );
        assert_eq!(PROGRESS_WITH_CANDIDATE.next_step(), ProgressStep::SetEmptyUpTo(MIN_PROGRESS_ADVANCE));
    }

    #[test]
    fn progress_stops_before_the_first_waiting_row() {
        assert_eq!(
            OutboxProgress {
                first_waiting_row_number: Some(MIN_PROGRESS_ADVANCE + 1),
                ..PROGRESS_WITH_CANDIDATE
            }
            .next_step(),
            ProgressStep::SetEmptyUpTo(MIN_PROGRESS_ADVANCE)
        );
        assert_eq!(
            OutboxProgress {
                first_waiting_row_number: Some(MIN_PROGRESS_ADVANCE),
                ..PROGRESS_WITH_CANDIDATE
            }
            .next_step(),
            ProgressStep::NoWrite
        );
        let far_ahead = OutboxProgress {
            candidate_number: 5 * MIN_PROGRESS_ADVANCE,
            last_number: 6 * MIN_PROGRESS_ADVANCE,
            first_waiting_row_number: Some(2 * MIN_PROGRESS_ADVANCE),
            ..PROGRESS_WITH_CANDIDATE
        };
        assert_eq!(far_ahead.next_step(), ProgressStep::SetEmptyUpTo(2 * MIN_PROGRESS_ADVANCE - 1));
    }

    #[test]
    fn a_candidate_of_another_server_is_replaced() {
        assert_eq!(
            OutboxProgress { next_xact: 700, oldest_active_xact: 650, ..PROGRESS_WITH_CANDIDATE }.next_step(),
            ProgressStep::RecordCandidate
        );
    }

    #[test]
    fn a_reset_sequence_resets_the_progress() {
        let reset = OutboxProgress {
            empty_up_to: 5 * MIN_PROGRESS_ADVANCE,
            candidate_number: 5 * MIN_PROGRESS_ADVANCE,
            last_number: 3,
            ..PROGRESS_WITH_CANDIDATE
        };
        assert_eq!((reset.scan_after(), reset.next_step()), (0, ProgressStep::SetEmptyUpTo(0)));
        assert_eq!(PROGRESS_WITH_CANDIDATE.scan_after(), 0);
        assert_eq!(
            OutboxProgress { empty_up_to: MIN_PROGRESS_ADVANCE, ..PROGRESS_WITH_CANDIDATE }.scan_after(),
            MIN_PROGRESS_ADVANCE
        );
    }
}
