//! Limits at work: how a handler has been going, and whether another of its tasks may begin.
//!
//! The core decides ([`Pace::opening`]); here is what it decides on, and what follows: a handler that closes leaves
//! its queues where they are until their turn comes, and one that opens fetches as many back as it has room for.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::limit::{Opening, Pace};

use crate::error::{Fault, Result};
use crate::row::{HandlerId, QueueId};
use crate::tables::Tables;
use crate::writer_state::WriterState;

/// What decides whether another task of a handler may begin.
#[derive(Debug, Default)]
pub(crate) struct HandlerLimiter {
    pub(crate) running: i64,
    pub(crate) scheduled: i64,
    pub(crate) state: Pace,
    /// A limit lets none of its tasks begin.
    pub(crate) is_closed: bool,
    /// How many more might begin when that was last looked at.
    pub(crate) free_slots: u32,
    /// How many of its queues are in the turns.
    pub(crate) queues_in_rotation: u32,
    /// Its queues that wait for room, the least served first.
    pub(crate) parked_queues: BTreeSet<(i64, QueueId)>,
    /// When it opens by itself.
    reopens_at: Option<Timestamp>,
    is_dirty: bool,
}

/// The gauges of all handlers.
#[derive(Debug, Default)]
pub(crate) struct Limiters {
    by_handler: Vec<HandlerLimiter>,
    /// Handlers that open again by themselves, by when.
    reopen_times: BTreeSet<(Timestamp, HandlerId)>,
    /// Those changed in this transaction, to be written before the commit.
    dirty_handlers: Vec<HandlerId>,
    /// What the clock said when it was last looked at.
    last_checked_at: Timestamp,
}

/// A clock that shows so much less than before was put back; less is two clocks that differ.
const CLOCK_SET_BACK_THRESHOLD: Duration = Duration::from_secs(60);

impl WriterState {
    /// Sees to it that as many of a handler's queues are in the turns as it has room for, the least served first.
    pub(crate) fn unpark_queues(&mut self, handler: HandlerId, free_slots: u32) -> Result<()> {
        let limiter = self.limiter(handler)?;
        let missing =
            usize::try_from(free_slots.saturating_sub(limiter.queues_in_rotation)).unwrap_or(usize::MAX);
        let back: Vec<QueueId> = limiter.parked_queues.iter().take(missing).map(|(_, id)| *id).collect();
        for id in back {
            self.unpark_queue(id)?;
            self.has_new_ready = true;
        }
        Ok(())
    }

    pub(crate) fn limiter(&self, handler: HandlerId) -> Result<&HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters.by_handler.get(index).ok_or_else(|| Fault::damaged(format!("no handler {handler}")))
    }

    pub(crate) fn limiter_mut(&mut self, handler: HandlerId) -> Result<&mut HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters.by_handler.get_mut(index).ok_or_else(|| Fault::damaged(format!("no handler {handler}")))
    }

    /// Makes room for the gauges of all handlers; what they have measured stays.
    pub(crate) fn add_missing_limiters(&mut self, paces: Vec<Pace>) {
        let known = self.limiters.by_handler.len();
        for pace in paces.into_iter().skip(known) {
            self.limiters.by_handler.push(HandlerLimiter { state: pace, ..HandlerLimiter::default() });
        }
    }

    /// Whether anything bounds a handler at all. Most are not, and cost nothing.
    pub(crate) fn is_limited(&self, handler: HandlerId) -> Result<bool> {
        let limits = &self.handler(handler)?.def.limits;
        let limiter = self.limiter(handler)?;
        let pace = &limiter.state;
        Ok(limits.concurrency.is_some()
            || limits.rate.is_some()
            || pace.ailing()
            || pace.quiet_until > Timestamp::MIN
            || limiter.is_closed)
    }

    pub(crate) fn check_limits(&self, handler: HandlerId, now: Timestamp) -> Result<Opening> {
        let limiter = self.limiter(handler)?;
        let running = u32::try_from(limiter.running).unwrap_or(0);
        Ok(limiter.state.opening(&self.handler(handler)?.def.limits, running, now))
    }

    /// Changes how a handler has been going; it is written before the commit.
    pub(crate) fn update_limiter_state(
        &mut self,
        handler: HandlerId,
        change: impl FnOnce(&mut Pace),
    ) -> Result<()> {
        let limiter = self.limiter_mut(handler)?;
        let before = limiter.state;
        change(&mut limiter.state);
        if limiter.state != before && !limiter.is_dirty {
            limiter.is_dirty = true;
            self.limiters.dirty_handlers.push(handler);
        }
        Ok(())
    }

    /// Opens or closes a handler by its limits as they stand now.
    pub(crate) fn apply_limits(&mut self, handler: HandlerId, now: Timestamp) -> Result<()> {
        let opening = self.check_limits(handler, now)?;
        let reopens = match opening {
            Opening::Paced(at) | Opening::Quiet(at) => Some(at),
            Opening::Open(_) | Opening::Full => None,
        };
        let limiter = self.limiter_mut(handler)?;
        limiter.free_slots = match opening {
            Opening::Open(free_slots) => free_slots,
            Opening::Full | Opening::Paced(_) | Opening::Quiet(_) => 0,
        };
        let was_closed = std::mem::replace(&mut limiter.is_closed, limiter.free_slots == 0);
        // Where another node had found it closed, its queues are still in the turns here.
        let opened = was_closed && !limiter.is_closed && limiter.queues_in_rotation > 0;
        let before = std::mem::replace(&mut limiter.reopens_at, reopens);
        if before != reopens {
            if let Some(at) = before {
                self.limiters.reopen_times.remove(&(at, handler));
            }
            if let Some(at) = reopens {
                self.limiters.reopen_times.insert((at, handler));
                self.has_earlier_due |= self.counters.next_due.is_none_or(|due| at < due);
            }
        }
        self.has_new_ready |= opened;
        match opening {
            Opening::Open(free_slots) => self.unpark_queues(handler, free_slots),
            Opening::Full | Opening::Paced(_) | Opening::Quiet(_) => Ok(()),
        }
    }

    /// Opens the handlers whose time has come. After the clock was put back all are looked at: what they wait for was
    /// told by a clock that ran ahead.
    pub(crate) fn reopen_due_handlers(&mut self, now: Timestamp) -> Result<()> {
        if now.plus(CLOCK_SET_BACK_THRESHOLD) < std::mem::replace(&mut self.limiters.last_checked_at, now) {
            for handler in 1..=self.limiters.by_handler.len() as HandlerId {
                self.apply_limits(handler, now)?;
            }
        }
        while let Some((at, handler)) =
            self.limiters.reopen_times.first().copied().filter(|(at, _)| *at <= now)
        {
            self.limiters.reopen_times.remove(&(at, handler));
            self.limiter_mut(handler)?.reopens_at = None;
            self.apply_limits(handler, now)?;
        }
        Ok(())
    }

    /// When something that waits by itself will be able to run.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let reopening = self.limiters.reopen_times.first().map(|(at, _)| *at);
        self.counters.next_due.into_iter().chain(reopening).min()
    }

    /// Writes what changed.
    pub(crate) fn flush_limiter_states(&mut self, tables: &dyn Tables) -> Result<()> {
        for handler in std::mem::take(&mut self.limiters.dirty_handlers) {
            let limiter = self.limiter_mut(handler)?;
            limiter.is_dirty = false;
            tables.write_limiter_state(handler, &limiter.state)?;
        }
        Ok(())
    }
}
