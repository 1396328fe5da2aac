//! The rescuer: takes tasks from nodes and workers that have died.
//!
//! In every sweep the node sends a heartbeat to the store, and then frees the tasks of nodes without a heartbeat for a
//! lease. Assumptions on time: the clocks of nodes differ by less than a lease, and a lease is several sweeps.
//!
//! A store that was unavailable received heartbeats from nobody. So after a store failure this node first sends its own
//! heartbeat, and then gives the other nodes a full lease to do the same before it declares one of them dead. A node
//! that was declared dead itself (it was suspended for too long) joins again under a new id and stops
//! its attempts whose tasks were given to other nodes.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{RescueOptions, RescueReport, StoreError};
use pointsman_core::{ErrorChain, Timestamp};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::node::{Node, build_registration};

/// Sends a heartbeat and rescues tasks in every sweep, until stopped.
pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(sweep_repeatedly(node)).await;
}

/// Stops running attempts that no longer own their task, whenever a task may have been cancelled.
pub(crate) async fn run_attempt_checks(node: Arc<Node>, stop: CancellationToken) {
    let checks = async {
        loop {
            node.attempt_check_requested.notified().await;
            if let Err(error) = node.running_attempts.stop_lost_attempts(&*node.store).await {
                node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error),
                    "could not check whether running attempts still own their tasks; those of cancelled tasks keep \
                     running until the next sweep"
                );
            }
        }
    };
    stop.run_until_cancelled(checks).await;
}

async fn sweep_repeatedly(node: Arc<Node>) {
    let mut permission = RescuePermission::new(Instant::now(), node.settings.node_lease_duration);
    loop {
        sleep(node.settings.sweep_interval).await;
        let requested_at = Instant::now();
        match sweep_once(&node, &mut permission, requested_at).await {
            Ok(()) => {}
            Err(error) => {
                node.count_store_error();
                permission.record_store_failure();
                tracing::warn!(
                    error = %ErrorChain(&error),
                    lease = ?node.settings.node_lease_duration,
                    "heartbeat or rescue failed; retrying with the next sweep. If this lasts longer than the lease, other \
                     nodes take over this node's tasks: check the store"
                );
            }
        }
    }
}

async fn sweep_once(
    node: &Arc<Node>,
    permission: &mut RescuePermission,
    requested_at: Instant,
) -> Result<(), StoreError> {
    if !node.store.record_heartbeat(node.id(), node.time_source.now()).await? {
        rejoin_as_new_node(node).await?;
    } else if !node.has_stored_capabilities() {
        node.store_capabilities_or_retry_later().await;
    }
    permission.record_heartbeat_answer(requested_at, Instant::now());
    node.running_attempts.stop_lost_attempts(&*node.store).await?;
    if node.settings.enabled_services.rescuer && permission.may_rescue(Instant::now()) {
        rescue_tasks(node).await?;
    }
    Ok(())
}

/// Joins again after this node was declared dead and its tasks were given to others. The check of running attempts that
/// follows ends those that lost their task; tasks claimed since then still belong to this node.
async fn rejoin_as_new_node(node: &Arc<Node>) -> Result<(), StoreError> {
    tracing::warn!(
        lease = ?node.settings.node_lease_duration,
        "this node sent no heartbeat for longer than the lease and was declared dead; it joins again, and its attempts \
         whose tasks were given to other nodes are cancelled"
    );
    node.set_id(node.store.join_node(&node.settings.node_name, node.time_source.now()).await?);
    register_setup_if_expired(node).await?;
    node.store_capabilities_or_retry_later().await;
    node.wake_signals.notify_work();
    Ok(())
}

/// Registers the setup again if the registration has expired while this node was away. An existing registration is left
/// as it is, because other nodes may have changed it since.
async fn register_setup_if_expired(node: &Arc<Node>) -> Result<(), StoreError> {
    let (store, settings) = (&node.store, &node.settings);
    if settings.bounded_run.is_some()
        || store.list_registration_names().await?.contains(&settings.registration_name)
    {
        return Ok(());
    }
    store
        .register_definitions(
            build_registration(&node.active_setup().setup, settings),
            node.time_source.now(),
        )
        .await
}

/// Frees the tasks of dead nodes and workers, and notifies watchers.
pub(crate) async fn rescue_tasks(node: &Arc<Node>) -> Result<(), StoreError> {
    if !node.time_source.is_in_service() {
        return Ok(());
    }
    let at = node.time_source.now();
    // Pull workers whose leases began before this node started, or expired by a step of the clock, get the time of a
    // full lease to renew them.
    let renewals_possible_since = node.started_at.max(node.time_source.time_reset_at());
    let had_time_to_renew = at.duration_since(renewals_possible_since) >= node.settings.node_lease_duration;
    let leased_since = if had_time_to_renew { Timestamp::MIN } else { renewals_possible_since };
    // A bounded run may not know all handlers, so it marks no tasks missing.
    let mark_missing = node.settings.bounded_run.is_none();
    let sweep = RescueOptions {
        node_timeout: node.settings.node_lease_duration,
        pull_worker_leases_since: leased_since,
        mark_missing,
    };
    let RescueReport { freed_tasks_with_status, marked_missing_count: marked_missing } =
        node.store.rescue_tasks(sweep, at).await?;
    if marked_missing > 0 {
        tracing::warn!(
            task_count = marked_missing,
            "tasks were marked missing because their handler is no longer defined; they do not run until it is defined \
             again and they are adopted. Define the handler and adopt them, or cancel them"
        );
    }
    if !freed_tasks_with_status.is_empty() {
        tracing::warn!(
            task_count = freed_tasks_with_status.len(),
            "tasks of dead nodes or pull workers were freed; they run again"
        );
        node.wake_signals.notify_work();
    }
    if node.task_changes.has_subscribers() {
        for (id, _) in &freed_tasks_with_status {
            if let Some((task, _)) = node.store.read_task(id).await? {
                node.task_changes.notify_task_state(task, at);
            }
        }
    }
    Ok(())
}

/// Decides whether this node may rescue tasks, that is, whether missing heartbeats of other nodes mean that they are
/// dead. The cause may also be a store failure or a suspension of this node.
#[derive(Debug)]
struct RescuePermission {
    lease: Duration,
    last_heartbeat_answered_at: Instant,
    has_store_failed: bool,
    rescue_allowed_from: Instant,
}

impl RescuePermission {
    fn new(now: Instant, lease: Duration) -> Self {
        Self { lease, last_heartbeat_answered_at: now, has_store_failed: false, rescue_allowed_from: now }
    }

    fn record_store_failure(&mut self) {
        self.has_store_failed = true;
    }

    /// Records that the store answered a heartbeat. If the store had failed, or had not answered for half a lease, the
    /// heartbeats of other nodes may be missing too, and this node rescues no tasks for a lease.
    fn record_heartbeat_answer(&mut self, requested_at: Instant, now: Instant) {
        let is_slow = now.duration_since(requested_at) > self.lease / 2;
        let is_overdue = now.duration_since(self.last_heartbeat_answered_at) > self.lease / 2;
        if std::mem::take(&mut self.has_store_failed) || is_slow || is_overdue {
            self.rescue_allowed_from = now + self.lease;
        }
        self.last_heartbeat_answered_at = now;
    }

    fn may_rescue(&self, now: Instant) -> bool {
        now >= self.rescue_allowed_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_LEASE: Duration = Duration::from_secs(30);
    const TEST_SWEEP_INTERVAL: Duration = Duration::from_secs(5);

    #[test]
    fn a_store_that_answers_allows_rescues() {
        let start = Instant::now();
        let mut permission = RescuePermission::new(start, TEST_LEASE);
        for sweep in 1..10 {
            let now = start + TEST_SWEEP_INTERVAL * sweep;
            permission.record_heartbeat_answer(now, now);
            assert!(permission.may_rescue(now));
        }
    }

    #[test]
    fn after_a_store_failure_rescues_wait_for_a_full_lease() {
        let start = Instant::now();
        let mut permission = RescuePermission::new(start, TEST_LEASE);
        permission.record_store_failure();
        let store_back_at = start + TEST_SWEEP_INTERVAL;
        permission.record_heartbeat_answer(store_back_at, store_back_at);
        assert!(!permission.may_rescue(store_back_at));
        let later = store_back_at + TEST_LEASE - TEST_SWEEP_INTERVAL;
        assert!(!permission.may_rescue(later));
        assert!(permission.may_rescue(store_back_at + TEST_LEASE));
    }

    #[test]
    fn a_suspended_node_waits_a_lease_before_it_rescues() {
        let start = Instant::now();
        let mut permission = RescuePermission::new(start, TEST_LEASE);
        let resumed_at = start + TEST_LEASE * 10;
        permission.record_heartbeat_answer(resumed_at, resumed_at);
        assert!(!permission.may_rescue(resumed_at));
    }
}
