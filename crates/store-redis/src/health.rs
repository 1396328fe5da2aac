//! Health of the server: settings that can lose acknowledged writes, and whether memory is
//! nearly full. It is checked in the background and cached, so that callers do not wait.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use pointsman_core::ErrorChain;
use pointsman_core::outage::OutageTracker;
use pointsman_store::notifier::PEER_COMMIT_POLL_INTERVAL;
use redis::aio::MultiplexedConnection;
use tokio::time::sleep;

use crate::connect::{Endpoint, info_value};
use crate::keys::Keys;
use crate::memory_usage::MemoryUsage;
use crate::server_settings::ServerSettings;
use crate::tables::outbox::MAX_SET_ASIDE_ENTRIES;

/// Each check reads the memory usage. One check in this many (once a minute), and each on a new connection, also reads
/// the settings.
const CHECKS_PER_SETTINGS_READ: u64 = 120;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Result of the last check of the server.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    /// Reasons why acknowledged writes could be lost.
    data_loss_reasons: Vec<String>,
    /// Why emits are refused, if they are.
    emit_refusal_reason: Option<String>,
    /// Number of outbox entries that were set aside because they are not events.
    set_aside_count: u64,
}

impl Health {
    pub(crate) fn warnings(&self) -> Vec<String> {
        let state = self.lock_state();
        let set_aside_warning = match state.set_aside_count {
            0 => None,
            1 => Some("1 outbox entry is not an event and was set aside; `pointsman doctor` shows it".into()),
            count => {
                let deleted = if count >= MAX_SET_ASIDE_ENTRIES { "; older ones were deleted" } else { "" };
                Some(format!(
                    "{count} outbox entries are not events and were set aside{deleted}; `pointsman doctor` shows the newest"
                ))
            }
        };
        state
            .data_loss_reasons
            .iter()
            .chain(&state.emit_refusal_reason)
            .cloned()
            .chain(set_aside_warning)
            .collect()
    }

    pub(crate) fn emit_refusal_reason(&self) -> Option<String> {
        self.lock_state().emit_refusal_reason.clone()
    }

    fn lock_state(&self) -> MutexGuard<'_, HealthState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Replaces the reasons, logs those that are new, and logs when none is left.
    fn update_data_loss_reasons(&self, data_loss_reasons: Vec<String>) {
        let before = std::mem::replace(&mut self.lock_state().data_loss_reasons, data_loss_reasons.clone());
        if data_loss_reasons.is_empty() && !before.is_empty() {
            tracing::info!("the settings of Redis no longer risk losing acknowledged writes");
        }
        for reason in data_loss_reasons.iter().filter(|reason| !before.contains(reason)) {
            tracing::warn!(
                "Redis can lose acknowledged writes: {reason}; run `pointsman doctor` for how to change it"
            );
        }
    }
}

/// Checks the server periodically over its own connection.
#[derive(Debug)]
pub(crate) struct HealthMonitor {
    endpoint: Arc<Endpoint>,
    connection: Option<MultiplexedConnection>,
    health: Arc<Health>,
    emit_refusal_tracker: OutageTracker,
}

impl HealthMonitor {
    /// Runs the first check. Its failure is not reported: opening the store reports the same error.
    pub(crate) async fn start(endpoint: Arc<Endpoint>) -> Self {
        let mut monitor = Self {
            endpoint,
            connection: None,
            health: Arc::default(),
            emit_refusal_tracker: OutageTracker::default(),
        };
        monitor.check_and_log_failure(true).await;
        monitor
    }

    pub(crate) fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Repeats the check as long as the store is open.
    pub(crate) async fn run(mut self) {
        for checks in 1_u64.. {
            sleep(PEER_COMMIT_POLL_INTERVAL).await;
            self.check_and_log_failure(checks % CHECKS_PER_SETTINGS_READ == 0).await;
        }
    }

    async fn check_and_log_failure(&mut self, read_settings: bool) {
        if let Err(error) = self.check(read_settings).await {
            self.connection = None;
            tracing::debug!(
                error = %ErrorChain(&*error),
                "Redis health check failed; retrying, warnings and the refusal of emits stay as they were until then"
            );
        }
    }

    async fn check(&mut self, read_settings: bool) -> Result<(), BoxError> {
        let read_settings = read_settings || self.connection.is_none();
        let connection = match &mut self.connection {
            Some(open) => open,
            None => self.connection.insert(self.endpoint.connect().await?),
        };
        let (info, data_loss_reasons) = match read_settings {
            true => {
                let settings = ServerSettings::read(connection, self.endpoint.has_failover()).await?;
                (settings.info().to_owned(), Some(settings.data_loss_reasons()))
            }
            false => {
                let sections = ["memory", "replication"];
                (redis::cmd("INFO").arg(&sections).query_async::<String>(connection).await?, None)
            }
        };
        // A former master still answers `INFO` after a failover.
        if info_value(&info, "role") != Some("master") {
            return Err("the server is not a master any more".into());
        }
        if let Some(data_loss_reasons) = data_loss_reasons {
            self.health.update_data_loss_reasons(data_loss_reasons);
        }
        let key = Keys::new(self.endpoint.key_prefix()).with_prefix("events.set.aside");
        // The key may have the wrong type, which `pointsman doctor` reports.
        let set_aside_count = redis::cmd("LLEN").arg(key).query_async(connection).await;
        self.health.lock_state().set_aside_count = set_aside_count.unwrap_or(0);
        self.update_emit_refusal(MemoryUsage::parse(&info).describe_if_nearly_full());
        Ok(())
    }

    fn update_emit_refusal(&mut self, reason: Option<String>) {
        let now = Instant::now();
        match &reason {
            Some(reason) if self.emit_refusal_tracker.record_failure(now).is_some() => {
                tracing::warn!("memory of Redis is nearly full; emits and new orders are refused: {reason}");
            }
            None if self.emit_refusal_tracker.record_success(now).is_some() => {
                tracing::info!(
                    "memory of Redis is no longer nearly full; emits and new orders are accepted again"
                )
            }
            Some(_) | None => {}
        }
        self.health.lock_state().emit_refusal_reason = reason;
    }
}
