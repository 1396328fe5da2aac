//! The budget of memory for responses that clients have not read yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection_memory_permits::{ConnectionMemoryPermits, CountedPermit};
use crate::auth::{Caller, TokenHash};
use crate::config::ServerLimits;
use crate::metrics::HttpMetrics;
use crate::problem::Problem;

/// Size in bytes of the units in which the budget is counted.
const BUDGET_UNIT_BYTES: u64 = 1 << 10;

/// The budget divided by this number is for claims only.
const CLAIMS_POOL_DIVISOR: u32 = 4;

/// One budget for all responses in flight, in two parts with a share per token each. A client that reads slowly keeps
/// its part of it; responses that do not fit are refused with 503. Claims can use both parts, other requests only the
/// general one, so that readers do not block workers.
#[derive(Debug)]
pub(crate) struct ResponseMemoryBudget {
    general_pool: MemoryPool,
    claims_pool: MemoryPool,
    metrics: Arc<HttpMetrics>,
}

/// Memory with a share per token.
#[derive(Debug)]
struct MemoryPool {
    total_semaphore: Arc<Semaphore>,
    total_units: u32,
    units_per_token: u32,
    token_semaphores: Mutex<HashMap<TokenHash, Arc<Semaphore>>>,
}

/// A reserved part of the budget, released when the permit is dropped.
#[derive(Debug)]
pub(crate) struct ResponseMemoryPermit {
    _token_permit: OwnedSemaphorePermit,
    total_permit: OwnedSemaphorePermit,
    _connection_memory_permit: Option<CountedPermit>,
}

impl ResponseMemoryBudget {
    pub(crate) fn new(limits: &ServerLimits, metrics: Arc<HttpMetrics>) -> Self {
        let all_units = bytes_to_units(limits.response_memory);
        let claim_units = all_units / CLAIMS_POOL_DIVISOR;
        let general_pool =
            MemoryPool::new(all_units - claim_units, bytes_to_units(limits.response_memory_per_client));
        Self { general_pool, claims_pool: MemoryPool::new(claim_units, claim_units.div_ceil(2)), metrics }
    }

    /// Reserves memory for a response of this size, or refuses the request.
    pub(crate) fn reserve(&self, caller: &Caller, bytes: usize) -> Result<ResponseMemoryPermit, Problem> {
        self.general_pool.try_reserve(caller, bytes).ok_or_else(|| self.count_and_build_refusal())
    }

    /// Reserves as much as is left for a response that must be sent because it reports a change.
    pub(crate) fn reserve_up_to(&self, caller: &Caller, bytes: usize) -> Option<ResponseMemoryPermit> {
        self.general_pool.reserve_up_to(caller, bytes)
    }

    /// Reserves as much as is left for the response to a claim.
    pub(crate) fn reserve_up_to_for_claim(
        &self,
        caller: &Caller,
        bytes: usize,
    ) -> Option<ResponseMemoryPermit> {
        let whole = self.claims_pool.try_reserve(caller, bytes);
        let whole = whole.or_else(|| self.general_pool.try_reserve(caller, bytes));
        whole.or_else(|| self.claims_pool.reserve_up_to(caller, bytes))
    }

    /// Waits until memory is available and reserves it. Returns `None` after the timeout.
    pub(crate) async fn reserve_with_timeout(
        &self,
        caller: &Caller,
        bytes: usize,
        wait: Duration,
    ) -> Option<ResponseMemoryPermit> {
        timeout(wait, self.general_pool.wait_to_reserve(caller, bytes)).await.ok().flatten()
    }

    /// Refuses a claim whose response may become this large while there is no memory for it. Nothing is reserved.
    pub(crate) fn check_claim_capacity(&self, caller: &Caller, bytes: usize) -> Result<(), Problem> {
        let reserved = self.claims_pool.try_reserve(caller, bytes);
        let reserved = reserved.or_else(|| self.general_pool.try_reserve(caller, bytes));
        reserved.map(drop).ok_or_else(|| self.count_and_build_refusal())
    }

    /// The bytes that are in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.general_pool.used_bytes() + self.claims_pool.used_bytes()
    }

    fn count_and_build_refusal(&self) -> Problem {
        self.metrics.count_refused_response();
        Problem::unavailable(
            "the memory for large responses is used up, by this token or by all; read open responses \
             to their end, or request less at a time (`limit`)",
        )
    }
}

impl MemoryPool {
    fn new(total_units: u32, units_per_token: u32) -> Self {
        Self {
            total_semaphore: Arc::new(Semaphore::new(total_units as usize)),
            total_units,
            units_per_token: units_per_token.min(total_units),
            token_semaphores: Mutex::default(),
        }
    }

    fn try_reserve(&self, caller: &Caller, bytes: usize) -> Option<ResponseMemoryPermit> {
        self.try_reserve_units(caller, self.units_capped_at_share(bytes))
    }

    fn reserve_up_to(&self, caller: &Caller, bytes: usize) -> Option<ResponseMemoryPermit> {
        let left =
            self.token_semaphore(caller).available_permits().min(self.total_semaphore.available_permits());
        self.try_reserve_units(
            caller,
            self.units_capped_at_share(bytes).min(u32::try_from(left).unwrap_or(u32::MAX)),
        )
    }

    async fn wait_to_reserve(&self, caller: &Caller, bytes: usize) -> Option<ResponseMemoryPermit> {
        let units = self.units_capped_at_share(bytes);
        let token_permit = self.token_semaphore(caller).acquire_many_owned(units).await.ok()?;
        let total_permit = self.total_semaphore.clone().acquire_many_owned(units).await.ok()?;
        Some(ResponseMemoryPermit::new(token_permit, total_permit))
    }

    fn try_reserve_units(&self, caller: &Caller, units: u32) -> Option<ResponseMemoryPermit> {
        let token_permit = self.token_semaphore(caller).try_acquire_many_owned(units).ok()?;
        let total_permit = self.total_semaphore.clone().try_acquire_many_owned(units).ok()?;
        Some(ResponseMemoryPermit::new(token_permit, total_permit))
    }

    fn used_bytes(&self) -> u64 {
        (self.total_units as u64).saturating_sub(self.total_semaphore.available_permits() as u64)
            * BUDGET_UNIT_BYTES
    }

    /// The number of units that a response needs. A response larger than the share of a token needs the whole share.
    fn units_capped_at_share(&self, bytes: usize) -> u32 {
        bytes_to_units(bytes as u64).min(self.units_per_token)
    }

    /// The semaphore of a token's share. Shares that no permit uses are dropped when the share of another token is
    /// added.
    fn token_semaphore(&self, caller: &Caller) -> Arc<Semaphore> {
        let mut tokens = self.token_semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        let id = caller.token_hash();
        if let Some(found) = tokens.get(&id) {
            return found.clone();
        }
        tokens.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(Semaphore::new(self.units_per_token as usize));
        tokens.insert(id, share.clone());
        share
    }
}

impl ResponseMemoryPermit {
    fn new(token_permit: OwnedSemaphorePermit, total_permit: OwnedSemaphorePermit) -> Self {
        Self {
            _token_permit: token_permit,
            total_permit,
            _connection_memory_permit: ConnectionMemoryPermits::count_permit_of_current_connection(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.total_permit.num_permits() * BUDGET_UNIT_BYTES as usize
    }
}

fn bytes_to_units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BUDGET_UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{test_caller, test_server_limits};
    use super::*;

    const MIB: usize = 1 << 20;

    fn test_budget() -> ResponseMemoryBudget {
        let limits = ServerLimits {
            response_memory: 4 << 20,
            response_memory_per_client: 2 << 20,
            ..test_server_limits()
        };
        ResponseMemoryBudget::new(&limits, Arc::default())
    }

    #[test]
    fn a_token_gets_its_share_and_all_tokens_together_the_whole_budget() {
        let budget = test_budget();
        let (one, other) = (test_caller("one"), test_caller("other"));
        let held = budget.reserve(&one, 2 * MIB).unwrap();
        assert!(budget.reserve(&one, 1).is_err());
        let more = budget.reserve(&other, MIB).unwrap();
        assert_eq!(budget.used_bytes(), 3 << 20);
        assert!(budget.reserve(&other, 1).is_err());
        drop((held, more));
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.reserve(&one, 2 * MIB).is_ok());
    }

    #[test]
    fn a_response_larger_than_a_share_needs_the_whole_share() {
        let budget = test_budget();
        let held = budget.reserve(&test_caller("one"), 10 * MIB).unwrap();
        assert!(budget.reserve(&test_caller("one"), 1).is_err());
        drop(held);
        let _small = budget.reserve(&test_caller("one"), 1).unwrap();
        assert!(budget.reserve(&test_caller("one"), 10 * MIB).is_err());
        assert!(budget.reserve_up_to(&test_caller("one"), 10 * MIB).is_some());
    }

    #[test]
    fn reads_leave_a_part_of_the_budget_to_claims() {
        let budget = test_budget();
        let held = [budget.reserve(&test_caller("one"), 2 * MIB), budget.reserve(&test_caller("other"), MIB)];
        assert!(held.iter().all(Result::is_ok));
        for name in ["one", "other", "third"] {
            assert!(budget.reserve(&test_caller(name), 1).is_err());
            assert!(budget.check_claim_capacity(&test_caller(name), 256 << 10).is_ok());
        }
        let claimed = budget.reserve_up_to_for_claim(&test_caller("one"), 10 * MIB).unwrap();
        assert_eq!(claimed.bytes(), MIB / 2, "a token has its share of the claims' part as well");
        assert!(budget.check_claim_capacity(&test_caller("one"), 1).is_err());
        assert!(budget.check_claim_capacity(&test_caller("other"), 256 << 10).is_ok());
        assert_eq!(budget.used_bytes(), (3 << 20) + (MIB as u64) / 2);
        drop(held);
        assert!(budget.check_claim_capacity(&test_caller("one"), MIB).is_ok(), "claims can use both parts");
    }

    #[tokio::test]
    async fn memory_permits_are_counted_for_their_connection() {
        let (budget, memory) = (test_budget(), ConnectionMemoryPermits::default());
        let held =
            memory.run_and_count_permits(async { budget.reserve(&test_caller("one"), MIB) }).await.unwrap();
        let _other = budget.reserve(&test_caller("one"), 1).unwrap();
        assert!(memory.has_permits());
        drop(held);
        assert!(!memory.has_permits());
    }

    #[tokio::test]
    async fn waiting_for_response_memory_times_out() {
        let budget = test_budget();
        let _held = budget.reserve(&test_caller("one"), 2 * MIB).unwrap();
        assert!(
            budget.reserve_with_timeout(&test_caller("one"), 1, Duration::from_millis(5)).await.is_none()
        );
        assert!(
            budget.reserve_with_timeout(&test_caller("other"), 1, Duration::from_secs(60)).await.is_some()
        );
    }
}
