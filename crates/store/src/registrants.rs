//! Registrants: which program has registered what.
//!
//! Several programs may share a store, each with its own handlers. A registration belongs to a registrant (a name), and
//! the effective registration is the union over all registrants. A registrant without a live node is kept for a day,
//! because its nodes may come back; until then its tasks wait.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::Registration;
use serde::{Deserialize, Serialize};

use crate::error::TableResult;
use crate::tables::{MetaTable, Tables};
use crate::writer::Txn;
use crate::writer_state::{read_named_json, write_named_json};

/// A registrant without a live node for this long expires.
const EXPIRE_ABSENT_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How often registrants are checked for live nodes.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Name of the named text in which the registrants are stored.
const REGISTRANTS_TEXT_NAME: &str = "registrants";

/// A program and its registration.
#[derive(Debug, Serialize, Deserialize)]
struct Registrant {
    registration: Registration,
    /// When the registrant last had a live node.
    #[serde(rename = "seen")]
    last_live_at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Registrants {
    /// Ordered by their last change, the oldest first.
    #[serde(rename = "all")]
    registrants: Vec<Registrant>,
    /// When any node last checked which registrants have live nodes.
    #[serde(rename = "looked")]
    checked_at: Option<Timestamp>,
}

impl Registrants {
    fn load(tables: &mut dyn MetaTable) -> TableResult<Self> {
        Ok(read_named_json(tables, REGISTRANTS_TEXT_NAME)?.unwrap_or_default())
    }

    /// Adds or replaces a registrant. An unchanged registration keeps its position, so that a restart changes nothing.
    fn upsert_registrant(&mut self, registration: Registration, now: Timestamp) {
        let registrant = self
            .registrants
            .iter_mut()
            .find(|registrant| registrant.registration.registration_name == registration.registration_name);
        match registrant {
            Some(registrant) if registrant.registration == registration => registrant.last_live_at = now,
            Some(_) | None => {
                self.registrants.retain(|registrant| {
                    registrant.registration.registration_name != registration.registration_name
                });
                self.registrants.push(Registrant { registration, last_live_at: now });
            }
        }
    }

    /// Returns the union of all registrations.
    fn merge_registrations(&self) -> Registration {
        let mut merged = Registration::default();
        self.registrants.iter().for_each(|registrant| merged.merge(registrant.registration.clone()));
        merged
    }

    /// Updates when registrants were last live, and removes those that have been absent too long; returns their names.
    fn expire_absent_registrants(
        &mut self,
        live_registrants: &BTreeSet<String>,
        now: Timestamp,
    ) -> Vec<String> {
        let since_last_check = now.duration_since(self.checked_at.unwrap_or(Timestamp::MIN));
        for registrant in &mut self.registrants {
            match live_registrants.contains(&registrant.registration.registration_name) {
                true => registrant.last_live_at = now,
                // No check took place for a while, because no node was running: absent registrants may be about to come
                // back.
                false if since_last_check > 2 * LIVENESS_CHECK_INTERVAL => {
                    registrant.last_live_at = registrant.last_live_at.plus(since_last_check).min(now);
                }
                false => {}
            }
        }
        self.checked_at = Some(now);
        let (kept, expired): (Vec<_>, Vec<_>) = std::mem::take(&mut self.registrants)
            .into_iter()
            .partition(|registrant| registrant.last_live_at >= now.minus(EXPIRE_ABSENT_AFTER));
        self.registrants = kept;
        expired.into_iter().map(|registrant| registrant.registration.registration_name).collect()
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Stores the registration of a registrant, and applies the union of all registrations.
    pub(crate) fn register_definitions(
        &mut self,
        registration: Registration,
        now: Timestamp,
    ) -> TableResult<()> {
        let mut registrants = Registrants::load(self.tables)?;
        registrants.upsert_registrant(registration, now);
        write_named_json(self.tables, REGISTRANTS_TEXT_NAME, &registrants)?;
        self.apply_registration(&registrants.merge_registrations(), now)
    }

    pub(crate) fn list_registration_names(&mut self) -> TableResult<Vec<String>> {
        let registrants = Registrants::load(self.tables)?;
        Ok(registrants
            .registrants
            .into_iter()
            .map(|registrant| registrant.registration.registration_name)
            .collect())
    }

    /// Expires registrants that have had no live node for a day; returns whether there were any. A sole registrant
    /// never expires.
    pub(crate) fn expire_registrants(&mut self, now: Timestamp) -> TableResult<bool> {
        if now.duration_since(self.state.registrants_checked_at) < LIVENESS_CHECK_INTERVAL {
            return Ok(false);
        }
        self.state.registrants_checked_at = now;
        let mut registrants = Registrants::load(self.tables)?;
        let was_checked_recently = registrants
            .checked_at
            .is_some_and(|checked_at| now.duration_since(checked_at) < LIVENESS_CHECK_INTERVAL);
        if registrants.registrants.len() < 2 || was_checked_recently {
            return Ok(false);
        }
        let nodes = self.tables.list_nodes()?.into_iter().filter(|node| !node.has_left_or_died);
        let live_registrants = nodes.filter_map(|node| node.capabilities.registration_name).collect();
        let expired = registrants.expire_absent_registrants(&live_registrants, now);
        write_named_json(self.tables, REGISTRANTS_TEXT_NAME, &registrants)?;
        if expired.is_empty() {
            return Ok(false);
        }
        tracing::warn!(
            registrants = expired.join(", "),
            "registrants had no live node for a day; their handlers and chains are removed until they register again; \
             start a node of each registrant that is still needed"
        );
        self.apply_registration(&registrants.merge_registrations(), now)?;
        Ok(true)
    }
}
