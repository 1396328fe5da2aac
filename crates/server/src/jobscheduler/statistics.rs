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

use super::order_query::OrderSelection;
use super::overview::WithEventId;
use super::statistics_cache::{CountedStatistics, OrderScope, StatisticsReader};
use crate::app::App;
use crate::auth::Caller;
use crate::events::event_seq::{self, SearchOutcome, run_until};
use crate::journal_reader::JournalReader;
use crate::problem::Problem;

/// How often the numbers are compared while time alone may change them.
const MIN_RECOUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks lies so many times what a look takes, so that many orders are counted less often.
const RECOUNT_COST_FACTOR: u32 = 20;

/// The events that change the numbers. An order that merely goes from node to node is counted as before.
const CHANGING_EVENT_TYPES: [&str; 10] = [
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
pub(super) struct StatisticsQuery {
    app: App,
    caller: Caller,
    scope: OrderScope,
    reader: StatisticsReader,
}

/// The numbers and the id at which they are true.
pub(super) type StatisticsSnapshot = Json<WithEventId<OrderStatistics>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatisticsChangedEvent {
    #[serde(rename = "TYPE")]
    kind: &'static str,
    order_statistics: OrderStatistics,
}

/// An EventSeq of the one event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NonEmptyEventSeq {
    #[serde(rename = "TYPE")]
    kind: &'static str,
    event_id: u64,
    event_snapshots: [WithEventId<StatisticsChangedEvent>; 1],
}

impl StatisticsQuery {
    /// The statistics of a tenant's orders, or of all that match.
    pub(super) fn new(app: App, caller: Caller, tenant: Option<Tenant>, selection: OrderSelection) -> Self {
        let scope = OrderScope { path: selection.path, tenant };
        Self { reader: StatisticsReader::new(app.clone(), scope.clone()), app, caller, scope }
    }

    pub(super) async fn read_current(&self) -> Result<StatisticsSnapshot, Problem> {
        let CountedStatistics { statistics, head, .. } = self.reader.count_now().await?;
        Ok(Json(WithEventId { value: statistics, event_id: head.get() }))
    }

    /// Waits until the numbers are other than they were at `after`.
    pub(super) async fn wait_for_change(
        &self,
        mut after: EventId,
        timeout: Duration,
    ) -> Result<Response, Problem> {
        // A deadline beyond what the clock can count never comes.
        let deadline = Instant::now().checked_add(timeout);
        let give_up = deadline.map(event_seq::first_read_deadline);
        // Read before the events are looked at, so that no change falls between the two.
        let Some(before) = run_until(give_up, self.reader.count_at_least(after)).await.transpose()? else {
            return Ok(event_seq::empty_response(after, after));
        };
        // Up to here nothing has happened that is not in the numbers before.
        let mut counted_until = before.head;
        let pause = MIN_RECOUNT_INTERVAL.max(before.duration * RECOUNT_COST_FACTOR);
        loop {
            let recount_at = can_change_with_time(&before.statistics).then(|| Instant::now() + pause);
            let until = [deadline, recount_at].into_iter().flatten().min();
            let (head, least) = match self.find_change(after, until).await? {
                ChangeSearch::Found { first, .. } if first <= counted_until => {
                    return Ok(change_response(self.reader.count_at_least(first).await?));
                }
                ChangeSearch::Found { last, .. } => (None, last),
                ChangeSearch::Torn { head } => return Ok(event_seq::torn_response(head)),
                ChangeSearch::Empty { head, last } => {
                    after = last;
                    (Some(head), last)
                }
            };
            let Some(count) = run_until(give_up, self.reader.count_at_least(least)).await.transpose()? else {
                return Ok(event_seq::empty_response(head.unwrap_or(after), after));
            };
            if count.statistics != before.statistics {
                return Ok(change_response(count));
            }
            if head.is_none() {
                // What happened came to nothing.
                (after, counted_until) = (count.head, count.head);
            }
            if self.is_finished(deadline) {
                return Ok(event_seq::empty_response(head.unwrap_or(after).max(after), after));
            }
        }
    }

    /// Looks for an event that changed the numbers, waiting for it until then.
    async fn find_change(&self, after: EventId, until: Option<Instant>) -> Result<ChangeSearch, StoreError> {
        let kinds = CHANGING_EVENT_TYPES.iter().filter_map(|kind| HandlingKey::new(kind).ok()).collect();
        let OrderScope { path, tenant } = self.scope.clone();
        let filter = Filter { kinds, path, tenant, engine: true, ..Filter::default() };
        let mut journal = JournalReader::forwards(self.app.clone(), filter, after);
        loop {
            journal = match event_seq::find_first_match(&self.app, &self.caller, journal, usize::MAX, until)
                .await?
            {
                SearchOutcome::Events { events, reader } => {
                    let mut ids = events.iter().filter(|event| is_order_event(event)).map(|event| event.id);
                    if let Some(first) = ids.next() {
                        return Ok(ChangeSearch::Found { first, last: ids.next_back().unwrap_or(first) });
                    }
                    reader
                }
                SearchOutcome::Empty { head, last } => return Ok(ChangeSearch::Empty { head, last }),
                SearchOutcome::Torn { head } => return Ok(ChangeSearch::Torn { head }),
            };
        }
    }

    /// Whether nobody waits any longer.
    fn is_finished(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| deadline <= Instant::now())
            || self.app.stopping.is_cancelled()
            || !self.app.tokens.borrow().knows(&self.caller)
    }
}

/// The one event of these numbers.
fn change_response(count: CountedStatistics) -> Response {
    let event_id = count.head.get();
    let changed =
        StatisticsChangedEvent { kind: "OrderStatisticsChanged", order_statistics: count.statistics };
    let event_snapshots = [WithEventId { value: changed, event_id }];
    Json(NonEmptyEventSeq { kind: "NonEmpty", event_id, event_snapshots }).into_response()
}

enum ChangeSearch {
    /// These are the first and the last event that may have changed the numbers, of those that were found.
    Found {
        first: EventId,
        last: EventId,
    },
    Empty {
        head: EventId,
        last: EventId,
    },
    Torn {
        head: EventId,
    },
}

/// Chains, handlers and schedules appear and vanish, too.
fn is_order_event(event: &Event) -> bool {
    let key = event.key.as_ref().map_or("", |key| key.as_str());
    event.kind.as_str().starts_with("Order") || key.starts_with("Order:")
}

/// Whether the numbers can change although nothing happens.
fn can_change_with_time(statistics: &OrderStatistics) -> bool {
    statistics.planned > 0 || statistics.setback > 0
}
