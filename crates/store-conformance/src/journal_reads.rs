//! Reading the journal: forwards, backwards, filtered; one event; one object.

use std::sync::Arc;

use pointsman_core::journal::{EventFilter, EventPage, PathFilter};
use pointsman_core::store::{EmittedEventReceipt, JournalQuery};
use pointsman_core::{Event, EventId, TaskId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

async fn read_page(fixture: &StoreFixture<'_>, query: JournalQuery) -> EventPage {
    expect_ok(fixture.store.read_events(query).await)
}

fn forward_query_after(after: EventId, limit: usize) -> JournalQuery {
    JournalQuery {
        after_event_id: after,
        up_to_event_id: None,
        filter: EventFilter::default(),
        limit,
        backwards: false,
    }
}

fn event_ids(events: &[Arc<Event>]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

async fn fixture_with_ten_events(harness: &dyn Harness) -> (StoreFixture<'_>, Vec<EmittedEventReceipt>) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(10, new_event("record").with_key("a")).await;
    (fixture, events)
}

pub async fn reading_an_empty_journal_returns_no_events(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let page = read_page(&fixture, forward_query_after(EventId::ZERO, 10)).await;
    assert!(page.events.is_empty());
    assert_eq!(page.journal_range, fixture.read_journal_range().await);
    assert!(!page.journal_range.has_gap_after(page.journal_range.newest_event_id));
    assert!(page.last_scanned_event_id >= page.journal_range.last_expired_event_id);
}

pub async fn reading_continues_from_the_scanned_position(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    let (mut after, mut found) = (EventId::ZERO, Vec::new());
    while after < events[9].id {
        let page = read_page(&fixture, forward_query_after(after, 3)).await;
        assert!(page.events.len() <= 3 && page.last_scanned_event_id > after);
        assert!(page.events.iter().all(|event| event.id > after && event.id <= page.last_scanned_event_id));
        assert_eq!(page.journal_range.newest_event_id, events[9].id);
        found.extend(event_ids(&page.events));
        after = page.last_scanned_event_id;
    }
    assert_eq!(found, event_ids_of_receipts(&events));
    let rest = read_page(&fixture, forward_query_after(after, 3)).await;
    assert!(rest.events.is_empty());
    assert_eq!(rest.last_scanned_event_id, after);
}

pub async fn reading_stops_at_the_up_to_event_id(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    let page = read_page(
        &fixture,
        JournalQuery { up_to_event_id: Some(events[6].id), ..forward_query_after(events[2].id, 100) },
    )
    .await;
    assert_eq!(event_ids(&page.events), event_ids_of_receipts(&events[3..=6]));
    let none = read_page(
        &fixture,
        JournalQuery { up_to_event_id: Some(events[2].id), ..forward_query_after(events[2].id, 100) },
    )
    .await;
    assert!(none.events.is_empty());
}

pub async fn reading_backwards_starts_with_the_newest(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    let newest = |n: usize| event_ids_of_receipts(&events).into_iter().rev().take(n).collect::<Vec<_>>();
    let back = |after, until, limit| JournalQuery {
        up_to_event_id: until,
        backwards: true,
        ..forward_query_after(after, limit)
    };
    let page = read_page(&fixture, back(EventId::ZERO, None, 3)).await;
    assert_eq!(event_ids(&page.events), newest(3));
    let page = read_page(&fixture, back(EventId::ZERO, None, 100)).await;
    assert_eq!(event_ids(&page.events), newest(10));
    let page = read_page(&fixture, back(events[7].id, None, 100)).await;
    assert_eq!(event_ids(&page.events), newest(2));
    let page = read_page(&fixture, back(EventId::ZERO, Some(events[1].id), 100)).await;
    assert_eq!(event_ids(&page.events), [events[1].id, events[0].id]);
}

/// Any filter returns the events that the core's own filter matches.
pub async fn filters_match_the_same_events_as_the_core_filter(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let kinds = ["record", "record.published", "records.published", "note", "OrderStarted", "TaskEnded"];
    let keys =
        [None, Some("record:1"), Some("/a"), Some("/a/b"), Some("/a/b,1"), Some("/a/b/c"), Some("/ab/c")];
    for kind in kinds {
        for (n, key) in keys.iter().enumerate() {
            let draft = new_event(kind).for_tenant(if n % 2 == 0 { "default" } else { "shop" });
            fixture.emit(key.map_or(draft.clone(), |key| draft.clone().with_key(key))).await;
        }
    }
    let all = fixture.read_all_events().await;
    assert_eq!(all.len(), kinds.len() * keys.len());
    let path = |text: &str| text.parse::<PathFilter>().expect("a path");
    let mut filters = vec![EventFilter::default()];
    for names in
        [vec!["record"], vec!["Event"], vec!["OrderEvent"], vec!["TaskEvent", "note"], vec!["nothing"]]
    {
        filters.push(EventFilter {
            event_types: names.into_iter().map(event_type).collect(),
            ..EventFilter::default()
        });
    }
    for text in ["/", "/a/", "/a/*", "/a/b", "/a", "/x/"] {
        filters.push(EventFilter { path: path(text), ..EventFilter::default() });
    }
    filters.push(EventFilter { key: Some(object_key("/a/b")), ..EventFilter::default() });
    filters.push(EventFilter { key: Some(object_key("nobody")), ..EventFilter::default() });
    filters.push(EventFilter { tenant: Some(tenant("shop")), ..EventFilter::default() });
    filters.push(EventFilter { tenant: Some(tenant("nobody")), ..EventFilter::default() });
    filters.push(EventFilter {
        event_types: vec![event_type("record")],
        path: path("/a/"),
        key: Some(object_key("/a/b")),
        tenant: Some(tenant("shop")),
        engine_events_only: false,
    });
    filters.push(EventFilter { engine_events_only: true, ..EventFilter::default() });
    for filter in filters {
        let want: Vec<_> = all.iter().filter(|event| filter.matches(event)).map(|event| event.id).collect();
        assert_eq!(event_ids(&fixture.read_events_after(EventId::ZERO, &filter).await), want, "{filter:?}");
        let newest: Vec<_> = want.iter().rev().take(2).copied().collect();
        let back =
            JournalQuery { filter: filter.clone(), backwards: true, ..forward_query_after(EventId::ZERO, 2) };
        assert_eq!(event_ids(&read_page(&fixture, back).await.events), newest, "backwards: {filter:?}");
    }
}

/// A filter without matches must still advance its cursor, or the cursor expires.
pub async fn the_scanned_position_advances_past_unmatched_events(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    let filter = EventFilter { event_types: vec![event_type("note")], ..EventFilter::default() };
    let page = read_page(&fixture, JournalQuery { filter, ..forward_query_after(EventId::ZERO, 10) }).await;
    assert!(page.events.is_empty());
    assert_eq!(page.last_scanned_event_id, events[9].id);
}

pub async fn a_cursor_beyond_the_head_reports_a_journal_gap(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    let beyond = EventId::from_i64(events[9].id.as_i64() + 1);
    let page = read_page(&fixture, forward_query_after(beyond, 10)).await;
    assert!(page.journal_range.has_gap_after(beyond));
    assert!(page.events.is_empty());
    assert!(
        !page.journal_range.has_gap_after(events[9].id) && !page.journal_range.has_gap_after(events[0].id)
    );
    assert!(!page.journal_range.has_gap_after(EventId::ZERO), "nothing has expired yet");
}

pub async fn an_event_view_includes_its_tasks(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    let sequenced = fixture.emit(new_event("record").with_key("a").with_value("[1]")).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let task = fixture.claim_one_for_handler("notify").await;
    fixture.succeed(&task).await;
    let view = expect_ok(fixture.store.read_event(sequenced.id).await).expect("it exists");
    assert_eq!((view.event.id, view.event.value.as_str()), (sequenced.id, "[1]"));
    let shown: Vec<TaskId> = view.tasks.iter().map(|task| task.id.clone()).collect();
    assert_eq!(shown, sequenced.tasks, "in the order of their routes, ended or not");
    let statuses: Vec<_> = view.tasks.iter().map(|task| task.lifecycle.state.status()).collect();
    assert_eq!(statuses, [TaskStatus::New, TaskStatus::Done]);
    for task in &view.tasks {
        assert_eq!(*task, fixture.read_task(&task.id).await);
    }
    assert_eq!(view.journal_range, fixture.read_journal_range().await);
    let never = EventId::from_i64(sequenced.id.as_i64() - 1);
    assert!(expect_ok(fixture.store.read_event(never).await).is_none());
}

pub async fn an_object_view_includes_its_events(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_ten_events(harness).await;
    fixture.emit(new_event("record").with_key("b")).await;
    fixture.emit(new_event("record").with_key("a").for_tenant("shop")).await;
    let (default_tenant, a) = (tenant("default"), object_key("a"));
    let view = expect_ok(fixture.store.read_object(&default_tenant, &a, 4).await).expect("it exists");
    assert_eq!(view.last_event_id, events[9].id);
    let newest: Vec<_> = event_ids_of_receipts(&events).into_iter().rev().take(4).collect();
    assert_eq!(event_ids(&view.events), newest, "newest first, no more than requested");
    assert_eq!(view.journal_range, fixture.read_journal_range().await);
    let all = expect_ok(fixture.store.read_object(&default_tenant, &a, 100).await).expect("it exists");
    assert_eq!(all.events.len(), 10, "its own, not another tenant's");
    for pair in all.events.windows(2) {
        assert_eq!(pair[0].prev, Some(pair[1].id));
    }
    assert!(expect_ok(fixture.store.read_object(&default_tenant, &object_key("never"), 4).await).is_none());
    assert!(expect_ok(fixture.store.read_object(&tenant("nobody"), &a, 4).await).is_none());
}
