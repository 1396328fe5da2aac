//! Who has registered what.
//!
//! Several programs may share a store, each with handlers of its own. So what is registered belongs to a name, and what
//! there is, is the union over all names. A name whose last node is gone stays for a day: its nodes may be about to come
//! back, and until then its tasks wait.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::Registration;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::{read_json_text, write_json_text};

/// Who has had no live node for so long is forgotten.
const EXPIRE_ABSENT_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How often it is looked who has live nodes.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Under which name all of it is kept.
const REGISTRANTS_TEXT: &str = "registrants";

#[derive(Debug, Serialize, Deserialize)]
struct Registrant {
    registration: Registration,
    /// When it was last seen to have a live node.
    #[serde(rename = "seen")]
    last_live_at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Registrants {
    /// Those who changed what they have later stand behind.
    #[serde(rename = "all")]
    registrants: Vec<Registrant>,
    /// When it was last looked who has live nodes.
    #[serde(rename = "looked")]
    checked_at: Option<Timestamp>,
}

impl Registrants {
    fn load(tables: &dyn Tables) -> Result<Self> {
        Ok(read_json_text(tables, REGISTRANTS_TEXT)?.unwrap_or_default())
    }

    /// One that registers the same again keeps its place, so that a restart changes nothing.
    fn upsert(&mut self, registration: Registration, now: Timestamp) {
        let registrants =
            self.registrants.iter_mut().find(|registrants| registrants.registration.by == registration.by);
        match registrants {
            Some(registrants) if registrants.registration == registration => registrants.last_live_at = now,
            Some(_) | None => {
                self.registrants.retain(|registrants| registrants.registration.by != registration.by);
                self.registrants.push(Registrant { registration, last_live_at: now });
            }
        }
    }

    fn merged_registration(&self) -> Registration {
        let mut union = Registration::default();
        self.registrants.iter().for_each(|registrants| union.add(registrants.registration.clone()));
        union
    }

    /// Notes who lives, and takes out those who have not for too long.
    fn expire_absent(&mut self, live_registrants: &BTreeSet<String>, now: Timestamp) -> Vec<String> {
        let unwatched = now.since(self.checked_at.unwrap_or(Timestamp::MIN));
        for registrants in &mut self.registrants {
            match live_registrants.contains(&registrants.registration.by) {
                true => registrants.last_live_at = now,
                // Nobody looked for a while, because nobody was there: whoever is gone may be about to come back.
                false if unwatched > 2 * CHECK_INTERVAL => {
                    registrants.last_live_at = registrants.last_live_at.plus(unwatched).min(now);
                }
                false => {}
            }
        }
        self.checked_at = Some(now);
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.registrants)
            .into_iter()
            .partition(|registrants| registrants.last_live_at >= now.minus(EXPIRE_ABSENT_AFTER));
        self.registrants = kept;
        gone.into_iter().map(|registrants| registrants.registration.by).collect()
    }
}

impl<T: Tables> Txn<'_, T> {
    pub(crate) fn register_definitions(&mut self, registration: Registration, now: Timestamp) -> Result<()> {
        let mut registrants = Registrants::load(self.tables)?;
        registrants.upsert(registration, now);
        write_json_text(self.tables, REGISTRANTS_TEXT, &registrants)?;
        self.apply_registration(&registrants.merged_registration(), now)
    }

    pub(crate) fn list_registrants(&self) -> Result<Vec<String>> {
        let registrants = Registrants::load(self.tables)?;
        Ok(registrants.registrants.into_iter().map(|registrants| registrants.registration.by).collect())
    }

    /// Forgets who has had no live node for a day; answers whether there was one. Where there is but one registrant,
    /// nobody else is there to miss it.
    pub(crate) fn expire_registrants(&mut self, now: Timestamp) -> Result<bool> {
        if now.since(self.state.registrants_checked_at) < CHECK_INTERVAL {
            return Ok(false);
        }
        self.state.registrants_checked_at = now;
        let mut registrants = Registrants::load(self.tables)?;
        let is_recent = registrants.checked_at.is_some_and(|looked| now.since(looked) < CHECK_INTERVAL);
        if registrants.registrants.len() < 2 || is_recent {
            return Ok(false);
        }
        let nodes = self.tables.list_nodes()?.into_iter().filter(|node| !node.gone);
        let live_registrants = nodes.filter_map(|node| node.abilities.registrant).collect();
        let gone = registrants.expire_absent(&live_registrants, now);
        write_json_text(self.tables, REGISTRANTS_TEXT, &registrants)?;
        if gone.is_empty() {
            return Ok(false);
        }
        tracing::warn!(
            registrants = gone.join(", "),
            "had no live node for a day; what they registered is forgotten"
        );
        self.apply_registration(&registrants.merged_registration(), now)?;
        Ok(true)
    }
}
