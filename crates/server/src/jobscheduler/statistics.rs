//! How many orders stand where, and waiting until that changes.
//!
//! OrderStatisticsChanged does not lie in the stream, and what the numbers were at a caller's cursor is not kept. So a
//! caller whose orders something has happened to since its cursor is told at once; all others are told when the numbers
//! are no longer those that they were when the wait began. Each call is answered by one event at most, stamped with the
//! id at which its numbers are true, so that the next call waits for the next change. Numbers also change as time goes
//! by, when an order's time comes: while there are such orders, they are compared now and then.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use pointsman_core::journal::Filter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::StoreError;
use pointsman_core::{Event, EventId, HandlingKey, Tenant};
use serde::Serialize;
use tokio::time::Instant;

use super::overview::Stamped;
use super::tally::{Count, Tally, Which};
use super::wanted::Wanted;
use crate::app::App;
use crate::auth::Caller;
use crate::events::seq::{self, Found, within};
use crate::problem::Problem;
use crate::walk::Walk;

/// How often the numbers are compared while time alone may change them.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Between two looks lies so many times what a look takes, so that many orders are counted less often.
const REST: u32 = 20;

/// The events that change the numbers. An order that merely goes from node to node is counted as before.
const CHANGES: [&str; 10] = [
    "FileBasedAdded",
    "FileBasedReplaced",
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
    which: Which,
    tally: Tally,
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
    /// The statistics of a tenant's orders, or of all that match.
    pub(super) fn of(app: App, caller: Caller, tenant: Option<Tenant>, wanted: Wanted) -> Self {
        let which = Which { path: wanted.path, tenant };
        Self { tally: Tally::new(app.clone(), which.clone()), app, caller, which }
    }

    pub(super) async fn now(&self) -> Result<Snapshot, Problem> {
        let Count { numbers, head, .. } = self.tally.now().await?;
        Ok(Json(Stamped { value: numbers, event_id: head.get() }))
    }

    /// Waits until the numbers are other than they were at `after`.
    pub(super) async fn changed(&self, mut after: EventId, timeout: Duration) -> Result<Response, Problem> {
        // A deadline beyond what the clock can count never comes.
        let deadline = Instant::now().checked_add(timeout);
        let give_up = deadline.map(seq::first_look);
        // Read before the events are looked at, so that no change falls between the two.
        let Some(before) = within(give_up, self.tally.at(after)).await.transpose()? else {
            return Ok(seq::nothing(after, after));
        };
        // Up to here nothing has happened that is not in the numbers before.
        let mut known = before.head;
        let pause = LOOK_AGAIN.max(before.took * REST);
        loop {
            let look = time_changes(&before.numbers).then(|| Instant::now() + pause);
            let until = [deadline, look].into_iter().flatten().min();
            let (head, least) = match self.next_change(after, until).await? {
                Next::Happened { first, .. } if first <= known => {
                    return Ok(told(self.tally.at(first).await?));
                }
                Next::Happened { last, .. } => (None, last),
                Next::Torn { head } => return Ok(seq::torn(head)),
                Next::Nothing { head, last } => {
                    after = last;
                    (Some(head), last)
                }
            };
            let Some(count) = within(give_up, self.tally.at(least)).await.transpose()? else {
                return Ok(seq::nothing(head.unwrap_or(after), after));
            };
            if count.numbers != before.numbers {
                return Ok(told(count));
            }
            if head.is_none() {
                // What happened came to nothing.
                (after, known) = (count.head, count.head);
            }
            if self.is_over(deadline) {
                return Ok(seq::nothing(head.unwrap_or(after).max(after), after));
            }
        }
    }

    /// Looks for an event that changed the numbers, waiting for it until then.
    async fn next_change(&self, after: EventId, until: Option<Instant>) -> Result<Next, StoreError> {
        let kinds = CHANGES.iter().filter_map(|kind| HandlingKey::new(kind).ok()).collect();
        let Which { path, tenant } = self.which.clone();
        let filter = Filter { kinds, path, tenant, engine: true, ..Filter::default() };
        let mut walk = Walk::forwards(self.app.clone(), filter, after);
        loop {
            walk = match seq::first(&self.app, &self.caller, walk, usize::MAX, until).await? {
                Found::Events { events, walk } => {
                    let mut ids = events.iter().filter(|event| is_of_an_order(event)).map(|event| event.id);
                    if let Some(first) = ids.next() {
                        return Ok(Next::Happened { first, last: ids.next_back().unwrap_or(first) });
                    }
                    walk
                }
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

/// The one event of these numbers.
fn told(count: Count) -> Response {
    let event_id = count.head.get();
    let changed = Changed { kind: "OrderStatisticsChanged", order_statistics: count.numbers };
    let event_snapshots = [Stamped { value: changed, event_id }];
    Json(NonEmpty { kind: "NonEmpty", event_id, event_snapshots }).into_response()
}

enum Next {
    /// These are the first and the last event that may have changed the numbers, of those that were found.
    Happened {
        first: EventId,
        last: EventId,
    },
    Nothing {
        head: EventId,
        last: EventId,
    },
    Torn {
        head: EventId,
    },
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
