//! Claims as a store sees them: what waits, who asks, and how long the answer takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use pointsman_core::store::{Claim, Claimant, Claims, Emission, Ended, Ending, NodeId, Registration, Store};
use pointsman_core::{HandlerDef, HandlerName, HandlingKey, Json, NewEvent, ObjectKey, Tenant};

use crate::rig;

/// As many as a server has slots by default.
pub(crate) const AT_A_TIME: usize = 16;

/// How many events are journaled in one transaction when a store is filled.
const FILLED_AT_ONCE: usize = 5_000;

/// The n-th event of an object of its own, for the handler of this name.
pub(crate) fn event(handler: &str, tenant: &Tenant, n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::of(HandlingKey::new(handler)?);
    event.tenant = tenant.clone();
    event.key = Some(ObjectKey::new(format!("waiting:{n}"))?);
    event.value = Json::parse(&rig::payload(n))?;
    Ok(event)
}

pub(crate) async fn fill(
    store: &dyn Store,
    events: impl IntoIterator<Item = anyhow::Result<NewEvent>>,
) -> anyhow::Result<()> {
    let mut events = events.into_iter();
    loop {
        let events = events.by_ref().take(FILLED_AT_ONCE).collect::<anyhow::Result<Vec<_>>>()?;
        if events.is_empty() {
            return Ok(());
        }
        let emission = Emission { events, idempotency: None };
        for answer in store.append(vec![emission], None, pointsman_engine::now()).await?.0 {
            answer?;
        }
    }
}

/// How long a claim and the ends of what it got took, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(crate) claims: f64,
    pub(crate) ends: f64,
}

impl Took {
    pub(crate) fn add(&mut self, other: Self) {
        self.claims += other.claims;
        self.ends += other.ends;
    }
}

/// A store, and a node that claims from it and ends what it gets at once.
pub(crate) struct Desk {
    store: Arc<dyn Store>,
    node: NodeId,
    handlers: Arc<BTreeSet<HandlerName>>,
}

impl Desk {
    /// The node can run all of these handlers.
    pub(crate) async fn new(store: Arc<dyn Store>, handlers: Vec<HandlerDef>) -> anyhow::Result<Self> {
        let names = Arc::new(handlers.iter().map(|def| def.name.clone()).collect());
        let routes = rig::routes(&handlers)?;
        let registration = Registration { handlers, routes, ..Registration::default() };
        store.register(registration, pointsman_engine::now()).await?;
        let node = store.join("bench", pointsman_engine::now()).await?;
        Ok(Self { store, node, handlers: names })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The node leaves, and the store is closed.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        self.store.leave(self.node, pointsman_engine::now()).await?;
        self.store.close();
        Ok(())
    }

    async fn claim(&self, max: usize) -> anyhow::Result<Claims> {
        let claim = Claim { by: Claimant::Node(self.node), handlers: self.handlers.clone(), max };
        Ok(self.store.claim(claim, pointsman_engine::now()).await?)
    }

    async fn end(&self, claims: Claims) -> anyhow::Result<()> {
        let endings = claims.tasks.iter().map(|task| Ending {
            task: task.seq,
            fence: task.fence,
            ended: Ended::Succeeded { result: None },
            target: None,
            emits: vec![],
            logs: vec![],
        });
        let (ends, _) = self.store.finish(endings.collect(), None, pointsman_engine::now()).await?;
        for end in ends {
            end?;
        }
        Ok(())
    }

    /// Runs whatever can run.
    pub(crate) async fn drain(&self) -> anyhow::Result<()> {
        loop {
            let claims = self.claim(1_000).await?;
            if claims.tasks.is_empty() {
                return Ok(());
            }
            self.end(claims).await?;
        }
    }

    /// One claim for up to `max` tasks, and the end of what it got. It must get [`AT_A_TIME`], or rounds could not
    /// be compared.
    pub(crate) async fn round(&self, max: usize) -> anyhow::Result<Took> {
        let start = Instant::now();
        let claims = self.claim(max).await?;
        let claimed = start.elapsed();
        ensure!(claims.tasks.len() == AT_A_TIME, "a claim got {} tasks", claims.tasks.len());
        let start = Instant::now();
        self.end(claims).await?;
        Ok(Took { claims: claimed.as_secs_f64(), ends: start.elapsed().as_secs_f64() })
    }
}
