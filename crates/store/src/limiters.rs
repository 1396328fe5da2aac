//! Limits at runtime: the limiter state of each handler, and whether another of its tasks may start.
//!
//! The core decides ([`LimiterAndBreakerState::admission`]); this module provides the input and applies the result. When a
//! handler reaches a limit, its queues stay in the fair queue until they are selected, and then wait at its limiter.
//! When it has free slots again, as many of them return to the fair queue.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::limit::{Admission, LimiterAndBreakerState};

use crate::error::{Fault, TableResult};
use crate::row::{HandlerId, QueueId};
use crate::tables::HandlerTable;
use crate::writer_state::WriterState;

/// Limiter of a handler: decides whether another of its tasks may start.
#[derive(Debug, Default)]
pub(crate) struct HandlerLimiter {
    pub(crate) running_count: i64,
    pub(crate) scheduled_count: i64,
    pub(crate) state: LimiterAndBreakerState,
    /// Whether a limit leaves no free slot, so that none of the handler's tasks may start.
    pub(crate) is_exhausted: bool,
    /// Tasks that could still start when the limits were last checked.
    pub(crate) free_slots: u32,
    /// Number of the handler's queues in the fair queue.
    pub(crate) queues_in_fair_queue_count: u32,
    /// The handler's queues that wait for a free slot, by virtual time.
    pub(crate) waiting_queues: BTreeSet<(i64, QueueId)>,
    /// When the rate limit or the circuit breaker lets tasks start again; `None` if that does not depend on time.
    available_at: Option<Timestamp>,
    /// Whether the state has changed since it was last written.
    is_dirty: bool,
}

/// Limiters of all handlers.
#[derive(Debug, Default)]
pub(crate) struct Limiters {
    by_handler: Vec<HandlerLimiter>,
    /// Handlers without a free slot, by the time at which their limits let tasks start again.
    handlers_by_available_time: BTreeSet<(Timestamp, HandlerId)>,
    /// Handlers whose limiter state has changed in this transaction; it is written before the commit.
    dirty_handlers: Vec<HandlerId>,
    /// When due limiters were last refreshed.
    last_refreshed_at: Timestamp,
}

/// A time that is earlier by more than this means that the clock was set back; a smaller difference is normal between
/// the clocks of two nodes.
const CLOCK_SET_BACK_THRESHOLD: Duration = Duration::from_secs(60);

impl WriterState {
    /// Returns queues that wait at a handler's limiter to the fair queue, lowest virtual time first, until it contains
    /// one for each free slot.
    pub(crate) fn admit_waiting_queues(&mut self, handler: HandlerId, free_slots: u32) -> TableResult<()> {
        let limiter = self.limiter(handler)?;
        let free_count = usize::try_from(free_slots.saturating_sub(limiter.queues_in_fair_queue_count))
            .unwrap_or(usize::MAX);
        let returning_queues: Vec<QueueId> =
            limiter.waiting_queues.iter().take(free_count).map(|(_, id)| *id).collect();
        for id in returning_queues {
            self.admit_waiting_queue(id)?;
            self.has_new_ready_tasks = true;
        }
        Ok(())
    }

    pub(crate) fn limiter(&self, handler: HandlerId) -> TableResult<&HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters
            .by_handler
            .get(index)
            .ok_or_else(|| Fault::damaged(format!("handler {handler} does not exist")))
    }

    pub(crate) fn limiter_mut(&mut self, handler: HandlerId) -> TableResult<&mut HandlerLimiter> {
        let index = usize::try_from(handler - 1).unwrap_or(usize::MAX);
        self.limiters
            .by_handler
            .get_mut(index)
            .ok_or_else(|| Fault::damaged(format!("handler {handler} does not exist")))
    }

    /// Adds limiters for new handlers; existing limiters keep their state.
    pub(crate) fn add_missing_limiters(&mut self, limiter_states: Vec<LimiterAndBreakerState>) {
        let existing = self.limiters.by_handler.len();
        for limiter_state in limiter_states.into_iter().skip(existing) {
            self.limiters
                .by_handler
                .push(HandlerLimiter { state: limiter_state, ..HandlerLimiter::default() });
        }
    }

    /// Returns whether any limit applies to a handler. Tasks of the other handlers, which are most, skip all checks.
    pub(crate) fn must_check_handler_limits(&self, handler: HandlerId) -> TableResult<bool> {
        let limits = &self.handler(handler)?.def.limits;
        let limiter = self.limiter(handler)?;
        let limiter_state = &limiter.state;
        Ok(limits.concurrency.is_some()
            || limits.rate.is_some()
            || limiter_state.is_breaker_tripped()
            || limiter_state.breaker_open_until > Timestamp::MIN
            || limiter.is_exhausted)
    }

    pub(crate) fn check_handler_limits(&self, handler: HandlerId, now: Timestamp) -> TableResult<Admission> {
        let limiter = self.limiter(handler)?;
        let running_count = u32::try_from(limiter.running_count).unwrap_or(0);
        Ok(limiter.state.admission(&self.handler(handler)?.def.limits, running_count, now))
    }

    /// Changes the limiter state of a handler; it is written before the commit.
    pub(crate) fn update_limiter_state(
        &mut self,
        handler: HandlerId,
        change: impl FnOnce(&mut LimiterAndBreakerState),
    ) -> TableResult<()> {
        let limiter = self.limiter_mut(handler)?;
        let before = limiter.state;
        change(&mut limiter.state);
        if limiter.state != before && !limiter.is_dirty {
            limiter.is_dirty = true;
            self.limiters.dirty_handlers.push(handler);
        }
        Ok(())
    }

    /// Computes the free slots of a handler at `now`, and returns as many waiting queues to the fair queue.
    pub(crate) fn refresh_handler_free_slots(
        &mut self,
        handler: HandlerId,
        now: Timestamp,
    ) -> TableResult<()> {
        let admission = self.check_handler_limits(handler, now)?;
        let available_at = match admission {
            Admission::RateLimited(at) | Admission::BreakerOpen(at) => Some(at),
            Admission::Admitted(_) | Admission::ConcurrencyFull => None,
        };
        let limiter = self.limiter_mut(handler)?;
        limiter.free_slots = match admission {
            Admission::Admitted(free_slots) => free_slots,
            Admission::ConcurrencyFull | Admission::RateLimited(_) | Admission::BreakerOpen(_) => 0,
        };
        let was_exhausted = std::mem::replace(&mut limiter.is_exhausted, limiter.free_slots == 0);
        // If a peer used up the slots, the handler's queues are still in the fair queue of this node.
        let was_released = was_exhausted && !limiter.is_exhausted && limiter.queues_in_fair_queue_count > 0;
        let before = std::mem::replace(&mut limiter.available_at, available_at);
        if before != available_at {
            if let Some(at) = before {
                self.limiters.handlers_by_available_time.remove(&(at, handler));
            }
            if let Some(at) = available_at {
                self.limiters.handlers_by_available_time.insert((at, handler));
                self.has_earlier_due_time |= self.counters.next_due.is_none_or(|due| at < due);
            }
        }
        self.has_new_ready_tasks |= was_released;
        match admission {
            Admission::Admitted(free_slots) => self.admit_waiting_queues(handler, free_slots),
            Admission::ConcurrencyFull | Admission::RateLimited(_) | Admission::BreakerOpen(_) => Ok(()),
        }
    }

    /// Applies the limits of handlers whose tasks may start again by now. If the clock was set back, does so for all
    /// handlers, because their times come from a clock that was ahead.
    pub(crate) fn refresh_due_limiters(&mut self, now: Timestamp) -> TableResult<()> {
        if now.plus(CLOCK_SET_BACK_THRESHOLD) < std::mem::replace(&mut self.limiters.last_refreshed_at, now) {
            for handler in 1..=self.limiters.by_handler.len() as HandlerId {
                self.refresh_handler_free_slots(handler, now)?;
            }
        }
        while let Some((at, handler)) =
            self.limiters.handlers_by_available_time.first().copied().filter(|(at, _)| *at <= now)
        {
            self.limiters.handlers_by_available_time.remove(&(at, handler));
            self.limiter_mut(handler)?.available_at = None;
            self.refresh_handler_free_slots(handler, now)?;
        }
        Ok(())
    }

    /// Returns the next time at which a task becomes due or a limit lets tasks start again.
    pub(crate) fn next_due_or_available_time(&self) -> Option<Timestamp> {
        let earliest_available = self.limiters.handlers_by_available_time.first().map(|(at, _)| *at);
        self.counters.next_due.into_iter().chain(earliest_available).min()
    }

    /// Writes the limiter states that changed.
    pub(crate) fn flush_limiter_states(&mut self, tables: &mut dyn HandlerTable) -> TableResult<()> {
        for handler in std::mem::take(&mut self.limiters.dirty_handlers) {
            let limiter = self.limiter_mut(handler)?;
            limiter.is_dirty = false;
            tables.write_limiter_state(handler, &limiter.state)?;
        }
        Ok(())
    }
}
