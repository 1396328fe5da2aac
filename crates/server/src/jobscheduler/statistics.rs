//! How many orders stand where, and waiting until that changes.
//!
//! OrderStatisticsChanged does not lie in the stream. Whoever asks for it is told at once if an event after its cursor
//! has changed the numbers, and otherwise as soon as one does; each call is answered by one event at most, stamped with
//! the id at which its numbers are true, so that the next call waits for the next change. Numbers also change as time
//! goes by, when an order's time comes: while there are such orders, they are compared now and then.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use pointsman_core::journal::{Filter, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::StoreError;
use pointsman_core::{Event, EventId, HandlingKey};
use pointsman_engine::now;
use serde::Serialize;
use tokio::time::Instant;

use super::overview::Stamped;
use super::wanted::Wanted;
use crate::app::App;
use crate::auth::Caller;
use crate::events::seq::{self, Found};
use crate::problem::Problem;
use crate::walk::Walk;

/// How often the numbers are compared while time alone may change them.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Between two looks lies so many times what a look takes, so that many orders are counted less often.
const REST: u32 = 20;

/// The events that change the numbers. An order that merely goes from node to node is counted as before.
const CHANGES: [&str; 9] = [
    "FileBasedAdded",
    "FileBasedRemoved",
    "OrderStarted",
    "OrderFinished",
    "OrderStepStarted",
    "OrderStepEnded",
    "OrderSetBack",
    "OrderSuspended",
    "OrderResumed",
];

/// The statistics of some orders.
pub(super) struct Statistics {
    app: App,
    caller: Caller,
    path: PathFilter,
}

/// The numbers and the id at which they are true.
pub(super) type Snapshot = Json<Stamped<OrderStatistics>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    #[serde(rename = "TYPE")]
    kind: &'static str,
    order_statistics: OrderStatistics,
}

/// An EventSeq of the one event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NonEmpty {
    #[serde(rename = "TYPE")]
    kind: &'static str,
    event_id: u64,
    event_snapshots: [Stamped<Changed>; 1],
}

impl Statistics {
    /// The numbers count the orders of all tenants together.
    pub(super) fn of(app: App, caller: Caller, wanted: Wanted) -> Result<Self, Problem> {
        caller.unbound("orders are counted over all tenants")?;
        Ok(Self { app, caller, path: wanted.path })
    }

    async fn read(&self) -> Result<(OrderStatistics, EventId), StoreError> {
        let (numbers, extent) = self.app.store().order_statistics(&self.path, now()).await?;
        Ok((numbers, extent.head))
    }

    pub(super) async fn now(&self) -> Result<Snapshot, Problem> {
        let (value, head) = self.read().await?;
        Ok(Json(Stamped { value, event_id: head.get() }))
    }

    /// Waits until the numbers are other than they were at `after`.
    pub(super) async fn changed(&self, mut after: EventId, timeout: Duration) -> Result<Response, Problem> {
        // A deadline beyond what the clock can count never comes.
        let deadline = Instant::now().checked_add(timeout);
        let began = Instant::now();
        // Read before the events are looked at, so that no change falls between the two.
        let (before, _) = self.read().await?;
        let pause = LOOK_AGAIN.max(began.elapsed() * REST);
        loop {
            let look = time_changes(&before).then(|| Instant::now() + pause);
            let until = [deadline, look].into_iter().flatten().min();
            let head = match self.next_change(after, until).await? {
                Next::Changed => return self.tell().await,
                Next::Torn { head } => return Ok(seq::torn(head)),
                Next::Nothing { head, last } => {
                    after = last;
                    head
                }
            };
            if self.read().await?.0 != before {
                return self.tell().await;
            }
            if self.is_over(deadline) {
                return Ok(seq::nothing(head, after));
            }
        }
    }

    /// The one event, computed now.
    async fn tell(&self) -> Result<Response, Problem> {
        let (order_statistics, head) = self.read().await?;
        let event_id = head.get();
        let changed = Changed { kind: "OrderStatisticsChanged", order_statistics };
        let event_snapshots = [Stamped { value: changed, event_id }];
        Ok(Json(NonEmpty { kind: "NonEmpty", event_id, event_snapshots }).into_response())
    }

    /// Looks for an event that changed the numbers, waiting for it until then.
    async fn next_change(&self, after: EventId, until: Option<Instant>) -> Result<Next, StoreError> {
        let kinds = CHANGES.iter().filter_map(|kind| HandlingKey::new(kind).ok()).collect();
        let filter = Filter { kinds, path: self.path.clone(), engine: true, ..Filter::default() };
        let mut walk = Walk::forwards(self.app.clone(), filter, after);
        loop {
            walk = match seq::first(&self.app, &self.caller, walk, usize::MAX, until).await? {
                Found::Events { events, .. } if events.iter().any(|event| is_of_an_order(event)) => {
                    return Ok(Next::Changed);
                }
                Found::Events { walk, .. } => walk,
                Found::Nothing { head, last } => return Ok(Next::Nothing { head, last }),
                Found::Torn { head } => return Ok(Next::Torn { head }),
            };
        }
    }

    /// Whether nobody waits any longer.
    fn is_over(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| deadline <= Instant::now())
            || self.app.stopping.is_cancelled()
            || !self.app.tokens.borrow().knows(&self.caller)
    }
}

enum Next {
    Changed,
    Nothing { head: EventId, last: EventId },
    Torn { head: EventId },
}

/// Chains, handlers and schedules appear and vanish, too.
fn is_of_an_order(event: &Event) -> bool {
    let key = event.key.as_ref().map_or("", |key| key.as_str());
    event.kind.as_str().starts_with("Order") || key.starts_with("Order:")
}

/// Whether the numbers can change although nothing happens.
fn time_changes(numbers: &OrderStatistics) -> bool {
    numbers.planned > 0 || numbers.setback > 0
}
