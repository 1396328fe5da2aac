//! How far the outbox is settled: nothing stands at or below that number, or ever will again.
//!
//! Numbers are given out before their transactions commit, so that a small one may come after a large one. But whoever
//! has a number has a transaction id by then. So the last number is noted, and after it a transaction id is taken: when
//! everything before that id has ended, everything up to that number is there to be seen, or never will be.

/// How many numbers are given out before it is worth a write.
const FAR: i64 = 10_000;

/// How a look at the outbox found things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) settled: i64,
    /// The number that was noted, and the transaction id that was taken after it.
    pub(crate) marked: i64,
    pub(crate) xact: i64,
    /// All transactions before this one had ended; those from `newest` on had not.
    pub(crate) oldest: i64,
    pub(crate) newest: i64,
    /// The number that was given out last.
    pub(crate) last: i64,
    /// The first number that stands there.
    pub(crate) first: Option<i64>,
}

/// What is to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    Settle(i64),
    /// The last number is noted, and an id taken.
    Mark,
}

impl Standing {
    /// Behind which number to look. A sequence may have been set back, where a database was copied without it.
    pub(crate) fn from(&self) -> i64 {
        if self.settled <= self.last { self.settled } else { 0 }
    }

    pub(crate) fn step(&self) -> Step {
        if self.from() != self.settled {
            return Step::Settle(0);
        }
        // An id that was not given out yet is another server's, whose contents were restored here.
        let pending = self.marked > self.settled && self.xact < self.newest;
        if !pending {
            return if self.last - self.settled >= FAR { Step::Mark } else { Step::Nothing };
        }
        let free = self.first.map_or(self.marked, |first| self.marked.min(first - 1));
        let worth_it = free == self.marked || free - self.settled >= FAR;
        if self.oldest >= self.xact && worth_it { Step::Settle(free) } else { Step::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKED: Standing =
        Standing { settled: 0, marked: FAR, xact: 700, oldest: 700, newest: 900, last: 2 * FAR, first: None };

    #[test]
    fn a_mark_is_set_when_it_is_worth_it() {
        let quiet = Standing { last: FAR - 1, newest: 9, oldest: 9, ..Standing::default() };
        assert_eq!(quiet.step(), Step::Nothing);
        assert_eq!(Standing { last: FAR, ..quiet }.step(), Step::Mark);
        assert_eq!(Standing { settled: FAR, ..MARKED }.step(), Step::Mark);
    }

    #[test]
    fn nothing_is_settled_while_somebody_may_still_commit() {
        assert_eq!(Standing { oldest: 699, ..MARKED }.step(), Step::Nothing);
        assert_eq!(MARKED.step(), Step::Settle(FAR));
    }

    #[test]
    fn what_still_stands_there_is_not_settled() {
        assert_eq!(Standing { first: Some(FAR + 1), ..MARKED }.step(), Step::Settle(FAR));
        assert_eq!(Standing { first: Some(FAR), ..MARKED }.step(), Step::Nothing);
        let long = Standing { marked: 5 * FAR, last: 6 * FAR, first: Some(2 * FAR), ..MARKED };
        assert_eq!(long.step(), Step::Settle(2 * FAR - 1));
    }

    #[test]
    fn a_mark_of_another_server_is_set_anew() {
        assert_eq!(Standing { newest: 700, oldest: 650, ..MARKED }.step(), Step::Mark);
    }

    #[test]
    fn a_sequence_that_was_set_back_begins_anew() {
        let back = Standing { settled: 5 * FAR, marked: 5 * FAR, last: 3, ..MARKED };
        assert_eq!((back.from(), back.step()), (0, Step::Settle(0)));
        assert_eq!(MARKED.from(), 0);
        assert_eq!(Standing { settled: FAR, ..MARKED }.from(), FAR);
    }
}
