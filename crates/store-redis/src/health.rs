//! How the server fares: by which of its settings it could lose what it has acknowledged, and whether there is room for
//! more. It is looked at beside the writer and kept here, so that whoever asks waits for nobody.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use pointsman_core::outage::Outage;
use pointsman_store::news::LOOK;
use redis::aio::MultiplexedConnection;
use tokio::time::sleep;

use crate::connect::{Endpoint, line};
use crate::keys::Keys;
use crate::memory::Memory;
use crate::settings::Settings;
use crate::tables::outbox::KEPT_ASIDE;

/// Memory is looked at each time, the settings once in so many looks, which is once a minute, and on each new connection.
const SETTINGS: u64 = 120;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the last look has found.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By what acknowledged writes could be lost.
    losing: Vec<String>,
    /// Why nothing is taken in.
    full: Option<String>,
    /// How many things were left for objects that are no events.
    aside: u64,
}

impl Health {
    pub(crate) fn warnings(&self) -> Vec<String> {
        let known = self.known();
        let aside = match known.aside {
            0 => None,
            1 => Some("1 thing that was left in an outbox is no event, and was set aside; `pointsman doctor` shows it".into()),
            many => {
                let gone = if many >= KEPT_ASIDE { ", and of more than these the oldest are gone" } else { "" };
                Some(format!(
                    "{many} things that were left in outboxes are no events, and were set aside{gone}; `pointsman doctor` \
                     shows the newest"
                ))
            }
        };
        known.losing.iter().chain(&known.full).cloned().chain(aside).collect()
    }

    pub(crate) fn full(&self) -> Option<String> {
        self.known().full.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Says what was not so at the last look.
    fn may_lose(&self, losing: Vec<String>) {
        let before = std::mem::replace(&mut self.known().losing, losing.clone());
        if losing.is_empty() && !before.is_empty() {
            tracing::info!("Redis is no longer set so that it could lose what it has acknowledged");
        }
        for reason in losing.iter().filter(|reason| !before.contains(reason)) {
            tracing::warn!("Redis can lose what it has acknowledged: {reason}");
        }
    }
}

/// Whoever looks, with a connection.
#[derive(Debug)]
pub(crate) struct Lookout {
    endpoint: Arc<Endpoint>,
    connection: Option<MultiplexedConnection>,
    health: Arc<Health>,
    refusing: Outage,
}

impl Lookout {
    /// Looks for the first time. If that fails, whoever opens the store has been told why, or will be.
    pub(crate) async fn begin(endpoint: Arc<Endpoint>) -> Self {
        let mut lookout =
            Self { endpoint, connection: None, health: Arc::default(), refusing: Outage::default() };
        lookout.look_or_wait(true).await;
        lookout
    }

    pub(crate) fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Looks again and again, as long as the store is open.
    pub(crate) async fn go_on(mut self) {
        for looks in 1_u64.. {
            sleep(LOOK).await;
            self.look_or_wait(looks % SETTINGS == 0).await;
        }
    }

    async fn look_or_wait(&mut self, whole: bool) {
        if let Err(error) = self.look(whole).await {
            self.connection = None;
            tracing::debug!(%error, "how Redis fares is not known for a moment");
        }
    }

    async fn look(&mut self, whole: bool) -> Result<(), BoxError> {
        let whole = whole || self.connection.is_none();
        let connection = match &mut self.connection {
            Some(open) => open,
            None => self.connection.insert(self.endpoint.connect().await?),
        };
        let (figures, losing) = match whole {
            true => {
                let settings = Settings::read(connection, self.endpoint.fails_over()).await?;
                (settings.figures().to_owned(), Some(settings.durability()))
            }
            false => {
                let asked = ["memory", "replication"];
                (redis::cmd("INFO").arg(&asked).query_async::<String>(connection).await?, None)
            }
        };
        // One that was a master tells its figures all the same when another has taken its place.
        if line(&figures, "role") != Some("master") {
            return Err("it is no master any more".into());
        }
        if let Some(losing) = losing {
            self.health.may_lose(losing);
        }
        let key = Keys::new(self.endpoint.prefix()).named("events.set.aside");
        // Somebody may have made something else of it, which `doctor` tells.
        let aside = redis::cmd("LLEN").arg(key).query_async(connection).await;
        self.health.known().aside = aside.unwrap_or(0);
        self.note(Memory::of(&figures).full());
        Ok(())
    }

    fn note(&mut self, full: Option<String>) {
        let now = Instant::now();
        match &full {
            Some(reason) if self.refusing.failed(now).is_some() => {
                tracing::warn!("events and orders are refused: {reason}");
            }
            None if self.refusing.works(now).is_some() => {
                tracing::info!("events and orders are taken in again")
            }
            Some(_) | None => {}
        }
        self.health.known().full = full;
    }
}
