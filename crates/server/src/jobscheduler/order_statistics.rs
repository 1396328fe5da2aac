//! Statistics of orders by state, and waiting until they change.
//!
//! OrderStatisticsChanged is not in the journal, and the statistics at a client's cursor are not stored. So if an event
//! that can change them is after the cursor, the response is sent at once; otherwise when the statistics differ from
//! those at the beginning of the wait. A response has at most one event, with the id at which its statistics are
//! consistent, so that the next call waits for the next change. Statistics also change when an order becomes due: while
//! there are such orders, they are recounted periodically.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use pointsman_core::journal::EventFilter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::StoreError;
use pointsman_core::{Event, EventId, EventType, Tenant};
use serde::Serialize;
use tokio::time::Instant;

use super::order_overview::SnapshotBody;
use super::order_query::OrderSelection;
use super::order_statistics_cache::{CountedStatistics, OrderScope, OrderStatisticsReader};
use crate::app_state::App;
use crate::auth::Caller;
use crate::events::event_seq_response::{self, FirstMatchOutcome, run_until_deadline};
use crate::journal_reader::JournalReader;
use crate::problem::Problem;

/// Minimum interval between recounts while time alone may change the statistics.
const MIN_RECOUNT_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between recounts is at least this many times the duration of a count, so that many orders are counted
/// less often.
const RECOUNT_COST_FACTOR: u32 = 20;

/// The types of events that can change the statistics. Moving from node to node does not.
const EVENT_TYPES_CHANGING_STATISTICS: [&str; 10] = [
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

/// A request for the statistics of the selected orders.
pub(super) struct StatisticsQuery {
    app: App,
    caller: Caller,
    scope: OrderScope,
    statistics_reader: OrderStatisticsReader,
}

/// The statistics with the event id at which they are consistent.
pub(super) type StatisticsSnapshot = Json<SnapshotBody<OrderStatistics>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatisticsChangedEvent {
    #[serde(rename = "TYPE")]
    type_tag: &'static str,
    order_statistics: OrderStatistics,
}

/// A NonEmpty EventSeq of one OrderStatisticsChanged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatisticsChangedEventSeq {
    #[serde(rename = "TYPE")]
    type_tag: &'static str,
    event_id: u64,
    event_snapshots: [SnapshotBody<StatisticsChangedEvent>; 1],
}

impl StatisticsQuery {
    /// Selects orders of one tenant, or of all tenants.
    pub(super) fn new(app: App, caller: Caller, tenant: Option<Tenant>, selection: OrderSelection) -> Self {
        let scope = OrderScope { path_filter: selection.path_filter, tenant };
        Self { statistics_reader: OrderStatisticsReader::new(app.clone(), scope.clone()), app, caller, scope }
    }

    pub(super) async fn read_current(&self) -> Result<StatisticsSnapshot, Problem> {
        let CountedStatistics { statistics, journal_head: head, .. } =
            self.statistics_reader.count_now().await?;
        Ok(Json(SnapshotBody { value: statistics, event_id: head.get() }))
    }

    /// Waits until the statistics differ from those at the beginning of the wait, or until the timeout. Returns at once
    /// if an event after `after` may have changed them.
    pub(super) async fn wait_for_change(
        &self,
        mut after: EventId,
        timeout: Duration,
    ) -> Result<Response, Problem> {
        // A deadline that the clock cannot represent never passes.
        let deadline = Instant::now().checked_add(timeout);
        let give_up_at = deadline.map(event_seq_response::first_read_deadline);
        // Counted before events are read, so that no change is missed between the two.
        let Some(before) = run_until_deadline(give_up_at, self.statistics_reader.count_at_or_after(after))
            .await
            .transpose()?
        else {
            return Ok(event_seq_response::empty_event_seq_response(after, after));
        };
        // Events up to this id are included in `before`.
        let mut counted_until = before.journal_head;
        let pause = MIN_RECOUNT_INTERVAL.max(before.count_duration * RECOUNT_COST_FACTOR);
        loop {
            let recount_at = can_change_with_time(&before.statistics).then(|| Instant::now() + pause);
            let until = [deadline, recount_at].into_iter().flatten().min();
            let (head, min_event_id) = match self.find_possible_change(after, until).await? {
                ChangeSearchOutcome::Found { first, .. } if first <= counted_until => {
                    return Ok(statistics_changed_response(
                        self.statistics_reader.count_at_or_after(first).await?,
                    ));
                }
                ChangeSearchOutcome::Found { last, .. } => (None, last),
                ChangeSearchOutcome::GapAfterCursor { head } => {
                    return Ok(event_seq_response::torn_event_seq_response(head));
                }
                ChangeSearchOutcome::NoChangeInTime { head, cursor } => {
                    after = cursor;
                    (Some(head), cursor)
                }
            };
            let Some(count) =
                run_until_deadline(give_up_at, self.statistics_reader.count_at_or_after(min_event_id))
                    .await
                    .transpose()?
            else {
                return Ok(event_seq_response::empty_event_seq_response(head.unwrap_or(after), after));
            };
            if count.statistics != before.statistics {
                return Ok(statistics_changed_response(count));
            }
            if head.is_none() {
                // The events did not change the statistics.
                (after, counted_until) = (count.journal_head, count.journal_head);
            }
            if self.must_end_wait(deadline) {
                return Ok(event_seq_response::empty_event_seq_response(
                    head.unwrap_or(after).max(after),
                    after,
                ));
            }
        }
    }

    /// Finds the next events that may change the statistics, waiting for them until `until`.
    async fn find_possible_change(
        &self,
        after: EventId,
        until: Option<Instant>,
    ) -> Result<ChangeSearchOutcome, StoreError> {
        let event_types =
            EVENT_TYPES_CHANGING_STATISTICS.iter().filter_map(|name| EventType::new(name).ok()).collect();
        let OrderScope { path_filter: path, tenant } = self.scope.clone();
        let filter =
            EventFilter { event_types, path, tenant, engine_events_only: true, ..EventFilter::default() };
        let mut journal = JournalReader::new_forwards(self.app.clone(), filter, after);
        loop {
            journal = match event_seq_response::find_first_match(
                &self.app,
                &self.caller,
                journal,
                usize::MAX,
                until,
            )
            .await?
            {
                FirstMatchOutcome::Found { events, reader } => {
                    let mut ids = events.iter().filter(|event| is_order_event(event)).map(|event| event.id);
                    if let Some(first) = ids.next() {
                        return Ok(ChangeSearchOutcome::Found {
                            first,
                            last: ids.next_back().unwrap_or(first),
                        });
                    }
                    reader
                }
                FirstMatchOutcome::NoMatchInTime { head, cursor } => {
                    return Ok(ChangeSearchOutcome::NoChangeInTime { head, cursor });
                }
                FirstMatchOutcome::GapAfterCursor { head } => {
                    return Ok(ChangeSearchOutcome::GapAfterCursor { head });
                }
            };
        }
    }

    /// Whether the wait has to end: timeout, server stop, or revoked token.
    fn must_end_wait(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| deadline <= Instant::now())
            || self.app.stop_signal.is_cancelled()
            || !self.app.accepted_tokens.borrow().is_token_still_accepted(&self.caller)
    }
}

/// The response with one OrderStatisticsChanged.
fn statistics_changed_response(count: CountedStatistics) -> Response {
    let event_id = count.journal_head.get();
    let changed =
        StatisticsChangedEvent { type_tag: "OrderStatisticsChanged", order_statistics: count.statistics };
    let event_snapshots = [SnapshotBody { value: changed, event_id }];
    Json(StatisticsChangedEventSeq { type_tag: "NonEmpty", event_id, event_snapshots }).into_response()
}

enum ChangeSearchOutcome {
    /// The first and the last event found that may have changed the statistics.
    Found { first: EventId, last: EventId },
    /// No event that may have changed the statistics was found until the deadline; a later search continues at the
    /// cursor.
    NoChangeInTime { head: EventId, cursor: EventId },
    /// Events after the cursor have expired, or the cursor is above the newest event.
    GapAfterCursor { head: EventId },
}

/// Whether an event is about an order, and not a FileBased event of a chain, handler or schedule.
fn is_order_event(event: &Event) -> bool {
    let key = event.key.as_ref().map_or("", |key| key.as_str());
    event.event_type.as_str().starts_with("Order") || key.starts_with("Order:")
}

/// Whether the statistics can change without an event.
fn can_change_with_time(statistics: &OrderStatistics) -> bool {
    statistics.planned > 0 || statistics.setback > 0
}
