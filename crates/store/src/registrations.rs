//! The stored registrations: what the programs that share this store have registered.
//!
//! Several programs may share a store, each with its own handlers. Each registration has a name, that of its
//! configuration, and the effective registration is the union of all. A registration without a live node is kept for a
//! day, because its nodes may come back; until then its tasks wait.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::Registration;
use serde::{Deserialize, Serialize};

use crate::error::TableResult;
use crate::tables::{MetaTable, Tables};
use crate::writer::Txn;
use crate::writer_state::{read_named_json, write_named_json};

/// A registration that has had no live node for this long expires.
const EXPIRE_WITHOUT_LIVE_NODE_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Interval between two checks which registrations have live nodes.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Name of the named text in which the registrations are stored.
const REGISTRATIONS_TEXT_NAME: &str = "registrants";

/// A registration, and when it was last in use.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRegistration {
    registration: Registration,
    /// When a node with this registration was last live.
    #[serde(rename = "seen")]
    last_live_at: Timestamp,
}

/// All stored registrations.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredRegistrations {
    /// Ordered by their last change, the oldest first.
    #[serde(rename = "all")]
    registrations: Vec<StoredRegistration>,
    /// When a node of the cluster last checked which registrations have live nodes.
    #[serde(rename = "looked")]
    checked_at: Option<Timestamp>,
}

impl StoredRegistrations {
    fn load(tables: &mut dyn MetaTable) -> TableResult<Self> {
        Ok(read_named_json(tables, REGISTRATIONS_TEXT_NAME)?.unwrap_or_default())
    }

    /// Adds a registration, or replaces that of the same name. An unchanged one keeps its position, so that a restart
    /// changes nothing.
    fn upsert_registration(&mut self, registration: Registration, now: Timestamp) {
        let same_name = self
            .registrations
            .iter_mut()
            .find(|stored| stored.registration.registration_name == registration.registration_name);
        match same_name {
            Some(stored) if stored.registration == registration => stored.last_live_at = now,
            Some(_) | None => {
                self.registrations
                    .retain(|stored| stored.registration.registration_name != registration.registration_name);
                self.registrations.push(StoredRegistration { registration, last_live_at: now });
            }
        }
    }

    /// Returns the union of all registrations.
    fn merge_registrations(&self) -> Registration {
        let mut merged = Registration::default();
        self.registrations.iter().for_each(|stored| merged.merge(stored.registration.clone()));
        merged
    }

    /// Updates when the registrations last had a live node, and removes those without one for too long; returns the
    /// names of the removed ones.
    fn expire_without_live_node(
        &mut self,
        names_of_live_nodes: &BTreeSet<String>,
        now: Timestamp,
    ) -> Vec<String> {
        let since_last_check = now.duration_since(self.checked_at.unwrap_or(Timestamp::MIN));
        for stored in &mut self.registrations {
            match names_of_live_nodes.contains(&stored.registration.registration_name) {
                true => stored.last_live_at = now,
                // No check took place for a while, because no node was running: the nodes of this registration may be
                // about to come back.
                false if since_last_check > 2 * LIVENESS_CHECK_INTERVAL => {
                    stored.last_live_at = stored.last_live_at.plus(since_last_check).min(now);
                }
                false => {}
            }
        }
        self.checked_at = Some(now);
        let (kept, expired): (Vec<_>, Vec<_>) = std::mem::take(&mut self.registrations)
            .into_iter()
            .partition(|stored| stored.last_live_at >= now.minus(EXPIRE_WITHOUT_LIVE_NODE_AFTER));
        self.registrations = kept;
        expired.into_iter().map(|stored| stored.registration.registration_name).collect()
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Stores the registration of a program, and applies the union of all registrations.
    pub(crate) fn register_definitions(
        &mut self,
        registration: Registration,
        now: Timestamp,
    ) -> TableResult<()> {
        let mut stored = StoredRegistrations::load(self.tables)?;
        stored.upsert_registration(registration, now);
        write_named_json(self.tables, REGISTRATIONS_TEXT_NAME, &stored)?;
        self.apply_registration(&stored.merge_registrations(), now)
    }

    pub(crate) fn list_registration_names(&mut self) -> TableResult<Vec<String>> {
        let stored = StoredRegistrations::load(self.tables)?;
        Ok(stored.registrations.into_iter().map(|stored| stored.registration.registration_name).collect())
    }

    /// Expires registrations that have had no live node for a day; returns whether there were any. The only
    /// registration of a store never expires.
    pub(crate) fn expire_registrations(&mut self, now: Timestamp) -> TableResult<bool> {
        if now.duration_since(self.state.registrations_checked_at) < LIVENESS_CHECK_INTERVAL {
            return Ok(false);
        }
        self.state.registrations_checked_at = now;
        let mut stored = StoredRegistrations::load(self.tables)?;
        let was_checked_recently = stored
            .checked_at
            .is_some_and(|checked_at| now.duration_since(checked_at) < LIVENESS_CHECK_INTERVAL);
        if stored.registrations.len() < 2 || was_checked_recently {
            return Ok(false);
        }
        let nodes = self.tables.list_nodes()?.into_iter().filter(|node| !node.has_left_or_died);
        let names_of_live_nodes = nodes.filter_map(|node| node.capabilities.registration_name).collect();
        let expired = stored.expire_without_live_node(&names_of_live_nodes, now);
        write_named_json(self.tables, REGISTRATIONS_TEXT_NAME, &stored)?;
        if expired.is_empty() {
            return Ok(false);
        }
        tracing::warn!(
            registration_names = expired.join(", "),
            "registrations had no live node for a day; their handlers and chains are removed until a node registers \
             them again; start a node with each configuration that is still needed"
        );
        self.apply_registration(&stored.merge_registrations(), now)?;
        Ok(true)
    }
}
