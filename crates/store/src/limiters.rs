//! Limits at runtime: the limiter state of each handler, and whether another of its tasks may start.
//!
//! The core decides ([`LimiterState::admission`]); this module provides the input and applies the result. A handler
//! that closes leaves its queues in the fair queue until they are selected; a handler that opens returns as many parked
//! queues as it has free slots.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::limit::{Admission, LimiterState};

use crate::error::{Fault, Result};
use crate::row::{HandlerId, QueueId};
use crate::tables::Tables;
use crate::writer_state::WriterState;

/// Limiter of a handler: decides whether another of its tasks may start.
#[derive(Debug, Default)]
pub(crate) struct HandlerLimiter {
    pub(crate) running_count: i64,
    pub(crate) scheduled_count: i64,
    pub(crate) state: LimiterState,
    /// Whether a limit keeps all of its tasks from starting.
    pub(crate) is_closed: bool,
    /// Tasks that could still start when the limits were last checked.
    pub(crate) free_slots: u32,
    /// Number of its queues in the fair queue.
    pub(crate) queues_in_fair_queue: u32,
    /// Its queues that wait for a free slot, by virtual time.
    pub(crate) parked_queues: BTreeSet<(i64, QueueId)>,
    /// When the limits allow tasks again without further action.
    reopens_at: Option<Timestamp>,
    is_dirty: bool,
}

/// Limiters of all handlers.
#[derive(Debug, Default)]
pub(crate) struct Limiters {
    by_handler: Vec<HandlerLimiter>,
    /// Closed handlers by the time at which they reopen.
    reopen_times: BTreeSet<(Timestamp, HandlerId)>,
    /// Handlers changed in this transaction; written before the commit.
    dirty_handlers: Vec<HandlerId>,
    /// Time of the last check.
    last_checked_at: Timestamp,
}

/// A time that is earlier by more than this means that the clock was set back; a smaller difference is normal between
/// the clocks of two nodes.
const CLOCK_SET_BACK_THRESHOLD: Duration = Duration::from_secs(60);

impl WriterState {
    /// Returns parked queues of a handler to the fair queue, lowest virtual time first, until there is one for each
    /// free slot.
    pub(crate) fn unpark_queues(&mut self, handler: HandlerId, free_slots: u32) -> Result<()> {
        let limiter = self.limiter(handler)?;
        let missing =
            usize::try_from(free_slots.saturating_sub(limiter.queues_in_fair_queue)).unwrap_or(usize::MAX);
        let returning: Vec<QueueId> = limiter.parked_queues.iter().take(missing).map(|(_, id)| *id).collect();
        for id in returning {
            self.unpark_queue(id)?;
            self.has_new_ready_tasks = true;
        }
        Ok(())
    }

    pub(crate) fn limiter(&self, handler: HandlerId) -> Result<&HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters
            .by_handler
            .get(index)
            .ok_or_else(|| Fault::damaged(format!("handler {handler} does not exist")))
    }

    pub(crate) fn limiter_mut(&mut self, handler: HandlerId) -> Result<&mut HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters
            .by_handler
            .get_mut(index)
            .ok_or_else(|| Fault::damaged(format!("handler {handler} does not exist")))
    }

    /// Adds limiters for new handlers; existing limiters keep their state.
    pub(crate) fn add_missing_limiters(&mut self, limiter_states: Vec<LimiterState>) {
        let existing = self.limiters.by_handler.len();
        for limiter_state in limiter_states.into_iter().skip(existing) {
            self.limiters
                .by_handler
                .push(HandlerLimiter { state: limiter_state, ..HandlerLimiter::default() });
        }
    }

    /// Returns whether any limit applies to a handler. Most handlers have none and skip all checks.
    pub(crate) fn is_handler_limited(&self, handler: HandlerId) -> Result<bool> {
        let limits = &self.handler(handler)?.def.limits;
        let limiter = self.limiter(handler)?;
        let limiter_state = &limiter.state;
        Ok(limits.concurrency.is_some()
            || limits.rate.is_some()
            || limiter_state.is_breaker_tripped()
            || limiter_state.breaker_open_until > Timestamp::MIN
            || limiter.is_closed)
    }

    pub(crate) fn check_handler_limits(&self, handler: HandlerId, now: Timestamp) -> Result<Admission> {
        let limiter = self.limiter(handler)?;
        let running = u32::try_from(limiter.running_count).unwrap_or(0);
        Ok(limiter.state.admission(&self.handler(handler)?.def.limits, running, now))
    }

    /// Changes the limiter state of a handler; it is written before the commit.
    pub(crate) fn update_limiter_state(
        &mut self,
        handler: HandlerId,
        change: impl FnOnce(&mut LimiterState),
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

    /// Opens or closes a handler according to its limits at `now`.
    pub(crate) fn apply_handler_limits(&mut self, handler: HandlerId, now: Timestamp) -> Result<()> {
        let opening = self.check_handler_limits(handler, now)?;
        let reopens = match opening {
            Admission::RateLimited(at) | Admission::BreakerOpen(at) => Some(at),
            Admission::Admitted(_) | Admission::ConcurrencyFull => None,
        };
        let limiter = self.limiter_mut(handler)?;
        limiter.free_slots = match opening {
            Admission::Admitted(free_slots) => free_slots,
            Admission::ConcurrencyFull | Admission::RateLimited(_) | Admission::BreakerOpen(_) => 0,
        };
        let was_closed = std::mem::replace(&mut limiter.is_closed, limiter.free_slots == 0);
        // If another node had closed the handler, its queues are still in the fair queue here.
        let opened = was_closed && !limiter.is_closed && limiter.queues_in_fair_queue > 0;
        let before = std::mem::replace(&mut limiter.reopens_at, reopens);
        if before != reopens {
            if let Some(at) = before {
                self.limiters.reopen_times.remove(&(at, handler));
            }
            if let Some(at) = reopens {
                self.limiters.reopen_times.insert((at, handler));
                self.has_earlier_due_time |= self.counters.next_due.is_none_or(|due| at < due);
            }
        }
        self.has_new_ready_tasks |= opened;
        match opening {
            Admission::Admitted(free_slots) => self.unpark_queues(handler, free_slots),
            Admission::ConcurrencyFull | Admission::RateLimited(_) | Admission::BreakerOpen(_) => Ok(()),
        }
    }

    /// Reopens the handlers whose reopening time has come. If the clock was set back, checks all handlers, because
    /// their reopening times come from a clock that was ahead.
    pub(crate) fn reopen_due_handlers(&mut self, now: Timestamp) -> Result<()> {
        if now.plus(CLOCK_SET_BACK_THRESHOLD) < std::mem::replace(&mut self.limiters.last_checked_at, now) {
            for handler in 1..=self.limiters.by_handler.len() as HandlerId {
                self.apply_handler_limits(handler, now)?;
            }
        }
        while let Some((at, handler)) =
            self.limiters.reopen_times.first().copied().filter(|(at, _)| *at <= now)
        {
            self.limiters.reopen_times.remove(&(at, handler));
            self.limiter_mut(handler)?.reopens_at = None;
            self.apply_handler_limits(handler, now)?;
        }
        Ok(())
    }

    /// Returns the next time at which a task can run without further action.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let reopening = self.limiters.reopen_times.first().map(|(at, _)| *at);
        self.counters.next_due.into_iter().chain(reopening).min()
    }

    /// Writes the limiter states that changed.
    pub(crate) fn flush_limiter_states(&mut self, tables: &dyn Tables) -> Result<()> {
        for handler in std::mem::take(&mut self.limiters.dirty_handlers) {
            let limiter = self.limiter_mut(handler)?;
            limiter.is_dirty = false;
            tables.write_limiter_state(handler, &limiter.state)?;
        }
        Ok(())
    }
}
