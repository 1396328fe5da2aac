//! A node that claims tasks directly from a store and finishes them at once, and events that create such tasks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use pointsman_core::store::{
    AttemptResult, ClaimRequest, ClaimResult, Claimant, EmitBatch, FinishedAttempt, NodeId, Registration,
    Store,
};
use pointsman_core::{EventType, HandlerDef, HandlerName, Json, NewEvent, ObjectKey, Tenant};

use crate::fixtures;

/// The number of tasks in a claim: as many as a server has slots by default.
pub(crate) const TASKS_PER_CLAIM: usize = 16;

/// The number of events that are appended in one transaction when a store is filled.
const EVENTS_PER_APPEND: usize = 5_000;

/// Returns the n-th event, with its own object, for the handler of this name.
pub(crate) fn new_event_for_handler(handler: &str, tenant: &Tenant, n: usize) -> anyhow::Result<NewEvent> {
    let mut event = NewEvent::new(EventType::new(handler)?);
    event.tenant = tenant.clone();
    event.key = Some(ObjectKey::new(format!("waiting:{n}"))?);
    event.value = Json::parse(&fixtures::event_payload(n))?;
    Ok(event)
}

pub(crate) async fn append_events(
    store: &dyn Store,
    events: impl IntoIterator<Item = anyhow::Result<NewEvent>>,
) -> anyhow::Result<()> {
    let mut events = events.into_iter();
    loop {
        let events = events.by_ref().take(EVENTS_PER_APPEND).collect::<anyhow::Result<Vec<_>>>()?;
        if events.is_empty() {
            return Ok(());
        }
        let emission = EmitBatch { events, idempotency_key: None };
        for result in store.append(vec![emission], None, pointsman_engine::machine_clock_now()).await?.0 {
            result?;
        }
    }
}

/// The durations of a claim and of finishing its tasks, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClaimTimings {
    pub(crate) claim_seconds: f64,
    pub(crate) finish_seconds: f64,
}

impl ClaimTimings {
    pub(crate) fn add(&mut self, other: Self) {
        self.claim_seconds += other.claim_seconds;
        self.finish_seconds += other.finish_seconds;
    }
}

/// A node that claims tasks from a store and finishes them at once.
pub(crate) struct ClaimingNode {
    store: Arc<dyn Store>,
    node_id: NodeId,
    handler_names: Arc<BTreeSet<HandlerName>>,
}

impl ClaimingNode {
    /// Registers the handlers, and joins the store as a node that can run all of them.
    pub(crate) async fn register_and_join(
        store: Arc<dyn Store>,
        handlers: Vec<HandlerDef>,
    ) -> anyhow::Result<Self> {
        let handler_names = Arc::new(handlers.iter().map(|def| def.name.clone()).collect());
        let routes = fixtures::route_types_to_handlers_of_same_name(&handlers)?;
        let registration = Registration { handlers, routes, ..Registration::default() };
        store.register_definitions(registration, pointsman_engine::machine_clock_now()).await?;
        let node = store.join_node("bench", pointsman_engine::machine_clock_now()).await?;
        Ok(Self { store, node_id: node, handler_names })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Leaves the store and closes it.
    pub(crate) async fn leave_and_close_store(&self) -> anyhow::Result<()> {
        self.store.remove_node(self.node_id, pointsman_engine::machine_clock_now()).await?;
        self.store.close();
        Ok(())
    }

    async fn claim_tasks(&self, max: usize) -> anyhow::Result<ClaimResult> {
        let claim = ClaimRequest {
            claimant: Claimant::Node(self.node_id),
            handlers: self.handler_names.clone(),
            max_tasks: max,
        };
        Ok(self.store.claim_tasks(claim, pointsman_engine::machine_clock_now()).await?)
    }

    async fn finish_tasks(&self, claims: ClaimResult) -> anyhow::Result<()> {
        let attempts = claims.tasks.iter().map(|task| FinishedAttempt {
            task_seq: task.seq,
            fence: task.fence,
            result: AttemptResult::Succeeded { result: None },
            target_health: None,
            emitted_events: vec![],
            log_lines: vec![],
        });
        let (results, _) = self
            .store
            .finish_attempts(attempts.collect(), None, pointsman_engine::machine_clock_now())
            .await?;
        for result in results {
            result?;
        }
        Ok(())
    }

    /// Claims and finishes tasks until none is ready.
    pub(crate) async fn claim_and_finish_all_ready_tasks(&self) -> anyhow::Result<()> {
        loop {
            let claims = self.claim_tasks(1_000).await?;
            if claims.tasks.is_empty() {
                return Ok(());
            }
            self.finish_tasks(claims).await?;
        }
    }

    /// Claims up to `max` tasks and finishes them. Fails unless the claim returns [`TASKS_PER_CLAIM`] tasks, since otherwise
    /// rounds could not be compared.
    pub(crate) async fn time_claim_and_finish(&self, max: usize) -> anyhow::Result<ClaimTimings> {
        let start = Instant::now();
        let claims = self.claim_tasks(max).await?;
        let claimed = start.elapsed();
        ensure!(
            claims.tasks.len() == TASKS_PER_CLAIM,
            "a claim returned {} tasks instead of {TASKS_PER_CLAIM}",
            claims.tasks.len()
        );
        let start = Instant::now();
        self.finish_tasks(claims).await?;
        Ok(ClaimTimings {
            claim_seconds: claimed.as_secs_f64(),
            finish_seconds: start.elapsed().as_secs_f64(),
        })
    }
}
