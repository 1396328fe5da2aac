//! The room that keeps work from staying with the dead.
//!
//! Every sweep the node tells the store that it lives, and then frees what nodes hold that have been silent
//! for a lease. Assumptions on time: clocks of nodes may differ by less than a lease, and a lease is several
//! sweeps.
//!
//! A store that did not answer heard from nobody. So after any trouble with it this node first tells that it
//! lives itself, and then gives the others a full lease to do the same before it declares one of them dead.
//! And a node that was given up itself (it was stopped for too long) ends what it ran, whose fences are void,
//! and joins again under a new identity.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::{Rescued, StoreError, Sweep};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::node::{Node, build_registration};

/// Sweeps until told to stop.
pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(sweep_repeatedly(node)).await;
}

/// Looks at running attempts whenever somebody steered a task from outside.
pub(crate) async fn run_attempt_checks(node: Arc<Node>, stop: CancellationToken) {
    let checks = async {
        loop {
            node.attempt_check_requested.notified().await;
            if let Err(error) = node.running_attempts.stop_lost_attempts(&*node.store).await {
                node.count_store_error();
                tracing::debug!(%error, "running attempts could not be checked; the next sweep does it");
            }
        }
    };
    stop.run_until_cancelled(checks).await;
}

async fn sweep_repeatedly(node: Arc<Node>) {
    let mut trust = RescueGuard::new(Instant::now(), node.settings.lease);
    loop {
        sleep(node.settings.sweep_interval).await;
        let asked = Instant::now();
        match sweep_once(&node, &mut trust, asked).await {
            Ok(()) => {}
            Err(error) => {
                node.count_store_error();
                trust.record_failure();
                tracing::debug!(%error, "a sweep failed");
            }
        }
    }
}

async fn sweep_once(node: &Arc<Node>, trust: &mut RescueGuard, asked: Instant) -> Result<(), StoreError> {
    if !node.store.heartbeat(node.id(), node.time.now()).await? {
        rejoin(node).await?;
    } else if !node.is_announced() {
        node.announce_or_retry_later().await;
    }
    trust.record_answer(asked, Instant::now());
    node.running_attempts.stop_lost_attempts(&*node.store).await?;
    if node.settings.services.rescuer && trust.may_rescue(Instant::now()) {
        rescue_tasks(node).await?;
    }
    Ok(())
}

/// This node was given up: what it ran is others' now. The check of running attempts that follows ends those
/// that lost their task; what was claimed since then is still this node's.
async fn rejoin(node: &Arc<Node>) -> Result<(), StoreError> {
    tracing::warn!("this node was silent for too long and was given up; it joins again");
    node.set_id(node.store.join(&node.settings.node_name, node.time.now()).await?);
    register_again(node).await?;
    node.announce_or_retry_later().await;
    node.signals.notify_work();
    Ok(())
}

/// A node that was away for longer than a registration outlives its nodes brings it back. If it is still there, others
/// may have changed it since.
async fn register_again(node: &Arc<Node>) -> Result<(), StoreError> {
    let (store, settings) = (&node.store, &node.settings);
    if settings.bounded_run.is_some() || store.registrants().await?.contains(&settings.registrant) {
        return Ok(());
    }
    store.register(build_registration(&node.active_setup().setup, settings), node.time.now()).await
}

/// Frees what the dead held, and tells of it.
pub(crate) async fn rescue_tasks(node: &Arc<Node>) -> Result<(), StoreError> {
    if !node.time.is_in_service() {
        return Ok(());
    }
    let at = node.time.now();
    // Workers that got their leases before this start may need as long as a lease to be heard again.
    // So may those whose leases a step of the clock has ended.
    let began = node.started_at.max(node.time.restarted_at());
    let heard_of_all = at.since(began) >= node.settings.lease;
    let workers_since = if heard_of_all { Timestamp::MIN } else { began };
    // Which handlers there are is not for a guest to say.
    let missing = node.settings.bounded_run.is_none();
    let sweep = Sweep { silence: node.settings.lease, workers_since, missing };
    let Rescued { tasks, missing } = node.store.rescue(sweep, at).await?;
    if missing > 0 {
        tracing::warn!(tasks = missing, "tasks were parked because their handler is no longer defined");
    }
    if !tasks.is_empty() {
        tracing::warn!(tasks = tasks.len(), "tasks were taken from nodes and workers that are gone");
        node.signals.notify_work();
    }
    if node.task_changes.has_subscribers() {
        for (id, _) in &tasks {
            if let Some((task, _)) = node.store.task(id).await? {
                node.task_changes.notify_task_state(task, at);
            }
        }
    }
    Ok(())
}

/// Whether the silence of others is theirs. It may be the store's, or this node's own.
#[derive(Debug)]
struct RescueGuard {
    lease: Duration,
    last_answer: Instant,
    has_failed: bool,
    rescue_allowed_from: Instant,
}

impl RescueGuard {
    fn new(now: Instant, lease: Duration) -> Self {
        Self { lease, last_answer: now, has_failed: false, rescue_allowed_from: now }
    }

    fn record_failure(&mut self) {
        self.has_failed = true;
    }

    /// The store answered a heartbeat. If it had failed, or half a lease has gone by since it last answered,
    /// others may not have been heard either.
    fn record_answer(&mut self, asked: Instant, now: Instant) {
        let slow = now.duration_since(asked) > self.lease / 2;
        let long_ago = now.duration_since(self.last_answer) > self.lease / 2;
        if std::mem::take(&mut self.has_failed) || slow || long_ago {
            self.rescue_allowed_from = now + self.lease;
        }
        self.last_answer = now;
    }

    fn may_rescue(&self, now: Instant) -> bool {
        now >= self.rescue_allowed_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const SWEEP: Duration = Duration::from_secs(5);

    #[test]
    fn a_store_that_answers_allows_rescues() {
        let start = Instant::now();
        let mut trust = RescueGuard::new(start, LEASE);
        for sweep in 1..10 {
            let now = start + SWEEP * sweep;
            trust.record_answer(now, now);
            assert!(trust.may_rescue(now));
        }
    }

    #[test]
    fn after_a_store_failure_rescues_wait_for_a_full_lease() {
        let start = Instant::now();
        let mut trust = RescueGuard::new(start, LEASE);
        trust.record_failure();
        let back = start + SWEEP;
        trust.record_answer(back, back);
        assert!(!trust.may_rescue(back));
        let later = back + LEASE - SWEEP;
        assert!(!trust.may_rescue(later));
        assert!(trust.may_rescue(back + LEASE));
    }

    #[test]
    fn a_suspended_node_waits_a_lease_before_it_rescues() {
        let start = Instant::now();
        let mut trust = RescueGuard::new(start, LEASE);
        let woken = start + LEASE * 10;
        trust.record_answer(woken, woken);
        assert!(!trust.may_rescue(woken));
    }
}
