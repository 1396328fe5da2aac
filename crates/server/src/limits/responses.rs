//! The memory that answers take until clients have read them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::auth::{Caller, TokenId};
use crate::config::ServerLimits;
use crate::metrics::HttpMetrics;
use crate::problem::Problem;

/// The budget is kept in units of this many bytes.
const UNIT: u64 = 1 << 10;

/// One budget for all answers in flight, with a share per token. A client that reads slowly keeps its part of it; what
/// does not fit is refused with 503.
#[derive(Debug)]
pub(crate) struct ResponseBudget {
    total: Arc<Semaphore>,
    units: u32,
    units_per_token: u32,
    tokens: Mutex<HashMap<TokenId, Arc<Semaphore>>>,
    metrics: Arc<HttpMetrics>,
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ResponsePermit {
    _of_token: OwnedSemaphorePermit,
    of_total: OwnedSemaphorePermit,
}

impl ResponseBudget {
    pub(crate) fn new(limits: &ServerLimits, metrics: Arc<HttpMetrics>) -> Self {
        let all = units(limits.response_memory);
        let units_per_token = units(limits.response_memory_per_client).min(all);
        let (total, tokens) = (Arc::new(Semaphore::new(all as usize)), Mutex::default());
        Self { total, units: all, units_per_token, tokens, metrics }
    }

    /// Takes a part of the budget for an answer of this size, or refuses the request.
    pub(crate) fn reserve(&self, caller: &Caller, bytes: usize) -> Result<ResponsePermit, Problem> {
        self.try_reserve(caller, self.wanted(bytes)).ok_or_else(|| self.refuse())
    }

    /// The same for an answer that must be given, as what it reports has been done: takes what is left.
    pub(crate) fn reserve_available(&self, caller: &Caller, bytes: usize) -> Option<ResponsePermit> {
        let left = self.semaphore_of(caller).available_permits().min(self.total.available_permits());
        self.try_reserve(caller, self.wanted(bytes).min(u32::try_from(left).unwrap_or(u32::MAX)))
    }

    /// Waits for a part of the budget.
    pub(crate) async fn reserve_within(
        &self,
        caller: &Caller,
        bytes: usize,
        wait: Duration,
    ) -> Option<ResponsePermit> {
        let units = self.wanted(bytes);
        let of_token = self.semaphore_of(caller);
        let reserving = async {
            let of_token = of_token.acquire_many_owned(units).await.ok()?;
            let of_total = self.total.clone().acquire_many_owned(units).await.ok()?;
            Some(ResponsePermit { _of_token: of_token, of_total })
        };
        timeout(wait, reserving).await.ok().flatten()
    }

    /// Refuses a request whose answer may become this large while there is no room for it. Nothing is reserved.
    pub(crate) fn check_capacity(&self, caller: &Caller, bytes: usize) -> Result<(), Problem> {
        self.reserve(caller, bytes).map(drop)
    }

    /// The bytes that are in use.
    pub(crate) fn used(&self) -> u64 {
        (self.units as u64).saturating_sub(self.total.available_permits() as u64) * UNIT
    }

    fn try_reserve(&self, caller: &Caller, units: u32) -> Option<ResponsePermit> {
        let of_token = self.semaphore_of(caller).try_acquire_many_owned(units).ok()?;
        let of_total = self.total.clone().try_acquire_many_owned(units).ok()?;
        Some(ResponsePermit { _of_token: of_token, of_total })
    }

    /// An answer larger than the share of a token needs all of it.
    fn wanted(&self, bytes: usize) -> u32 {
        units(bytes as u64).min(self.units_per_token)
    }

    fn refuse(&self) -> Problem {
        self.metrics.refused_responses();
        Problem::unavailable(
            "the memory for large responses is used up, by this token or by all; read open responses \
             to their end, or request less at a time (`limit`)",
        )
    }

    /// The share of a token. Shares that nobody uses are dropped when another one is added.
    fn semaphore_of(&self, caller: &Caller) -> Arc<Semaphore> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let id = caller.token_id();
        if let Some(found) = tokens.get(&id) {
            return found.clone();
        }
        tokens.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(Semaphore::new(self.units_per_token as usize));
        tokens.insert(id, share.clone());
        share
    }
}

impl ResponsePermit {
    pub(crate) fn bytes(&self) -> usize {
        self.of_total.num_permits() * UNIT as usize
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{caller, limits};
    use super::*;

    const MIB: usize = 1 << 20;

    fn budget() -> ResponseBudget {
        let limits =
            ServerLimits { response_memory: 3 << 20, response_memory_per_client: 2 << 20, ..limits() };
        ResponseBudget::new(&limits, Arc::default())
    }

    #[test]
    fn a_token_gets_its_share_and_all_together_the_whole() {
        let budget = budget();
        let (one, other) = (caller("one"), caller("other"));
        let held = budget.reserve(&one, 2 * MIB).unwrap();
        assert!(budget.reserve(&one, 1).is_err());
        let more = budget.reserve(&other, MIB).unwrap();
        assert_eq!(budget.used(), 3 << 20);
        assert!(budget.reserve(&other, 1).is_err());
        drop((held, more));
        assert_eq!(budget.used(), 0);
        assert!(budget.reserve(&one, 2 * MIB).is_ok());
    }

    #[test]
    fn an_answer_larger_than_a_share_needs_all_of_it() {
        let budget = budget();
        let held = budget.reserve(&caller("one"), 10 * MIB).unwrap();
        assert!(budget.reserve(&caller("one"), 1).is_err());
        drop(held);
        let _small = budget.reserve(&caller("one"), 1).unwrap();
        assert!(budget.reserve(&caller("one"), 10 * MIB).is_err());
        assert!(budget.reserve_available(&caller("one"), 10 * MIB).is_some());
    }

    #[tokio::test]
    async fn a_wait_for_room_ends() {
        let budget = budget();
        let _held = budget.reserve(&caller("one"), 2 * MIB).unwrap();
        assert!(budget.reserve_within(&caller("one"), 1, Duration::from_millis(5)).await.is_none());
        assert!(budget.reserve_within(&caller("other"), 1, Duration::from_secs(60)).await.is_some());
    }
}
