//! Engine events are stored in the journal like all others, and belong to no object.

use pointsman_core::EventId;
use pointsman_core::engine_event::{EngineEvent, EngineState};
use pointsman_core::handler::AttemptEventPolicy;
use pointsman_core::journal::{EventFilter, Retention};
use pointsman_core::store::{JournalQuery, NewOrder};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>done done")
}

fn scheduler_state_event(state: EngineState) -> EngineEvent {
    EngineEvent::SchedulerStateChanged { state }
}

async fn publish_engine_events(fixture: &StoreFixture<'_>, events: Vec<EngineEvent>) {
    expect_ok(fixture.store.publish_engine_events(events, fixture.now).await);
}

pub async fn published_engine_events_are_journaled(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let since = fixture.read_journal_head().await;
    publish_engine_events(
        &fixture,
        vec![scheduler_state_event(EngineState::Starting), scheduler_state_event(EngineState::Running)],
    )
    .await;
    publish_engine_events(
        &fixture,
        vec![scheduler_state_event(EngineState::Stopping), EngineEvent::SchedulerClosed],
    )
    .await;
    let want = [
        r#"{"TYPE":"SchedulerStateChanged","state":"starting"}"#,
        r#"{"TYPE":"SchedulerStateChanged","state":"running"}"#,
        r#"{"TYPE":"SchedulerStateChanged","state":"stopping"}"#,
        r#"{"TYPE":"SchedulerClosed"}"#,
    ];
    assert_eq!(fixture.read_engine_event_json_after(since).await, want);
    publish_engine_events(&fixture, vec![]).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.read_engine_event_json_after(since).await, want, "engine events survive a restart");
}

/// Engine events and emitted events share one order of ids.
pub async fn engine_events_share_the_journals_id_order(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(fixture.emit(new_event("note")).await.id);
        publish_engine_events(&fixture, vec![EngineEvent::SchedulerClosed]).await;
        ids.push(fixture.read_journal_head().await);
        ids.push(fixture.try_add_order(new_order("/x/y")).await.expect("the request is valid").event);
        fixture.advance_clock(1);
    }
    assert_strictly_ascending(&ids);
    let read: Vec<EventId> = fixture.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(read, ids);
    assert_eq!(fixture.read_journal_head().await, ids[8]);
}

/// Routes of their types, and of `Event`, the parent of all types, do not apply to engine events.
pub async fn engine_events_create_no_tasks_or_orders(harness: &dyn Harness) {
    let types = ["Event", "OrderEvent", "OrderStarted", "OrderFinished", "SchedulerClosed", "FileBasedAdded"];
    let registration = types.into_iter().fold(base_registration(), |registration, key| {
        registration.route(key, &["curious"]).chain_route(key, "/x/y")
    });
    let fixture = StoreFixture::new(harness, registration).await;
    publish_engine_events(&fixture, vec![EngineEvent::SchedulerClosed]).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(ran.len(), 1, "the order's step alone");
    for event in fixture.read_all_events().await {
        let view = expect_ok(fixture.store.read_event(event.id).await).expect("the event has not expired");
        assert!(view.tasks.is_empty() && view.caused_events.is_empty());
        assert_eq!(*view.event, *event);
        assert!(
            event.is_engine_event()
                && event.prev.is_none()
                && event.cause.is_none()
                && event.sub_object.is_none()
        );
    }
    assert!(fixture.list_orders("/").await.is_empty());
}

/// Events of an order do not belong to an object whose key equals the order's.
pub async fn engine_events_do_not_belong_to_an_object(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1")).await;
    fixture.claim_one().await;
    let object = async |fixture: &StoreFixture<'_>| {
        expect_ok(fixture.store.read_object(&Default::default(), &object_key("/x/y,1"), 10).await)
    };
    assert!(object(&fixture).await.is_none());
    let emitted = fixture.emit(new_event("note").with_key("/x/y,1")).await;
    assert_eq!(emitted.prev, None);
    fixture.suspend_order("/x/y,1").await;
    let next = fixture.emit(new_event("note").with_key("/x/y,1")).await;
    assert_eq!(next.prev, Some(emitted.id));
    let view = object(&fixture).await.expect("it has events");
    assert_eq!(view.events.iter().map(|event| event.id).collect::<Vec<_>>(), [next.id, emitted.id]);
}

/// A fixture whose journal contains events of every kind.
async fn fixture_with_mixed_events(harness: &dyn Harness) -> StoreFixture<'_> {
    let registration = base_registration()
        .chain("/x/deep/z", "a=first>done done")
        .observe_attempts("first", pointsman_core::handler::AttemptEventPolicy::All)
        .config_file("JobChain:/x/y", "1")
        .config_file("Job:/first", "1");
    let fixture = StoreFixture::new(harness, registration).await;
    publish_engine_events(&fixture, vec![scheduler_state_event(EngineState::Running)]).await;
    for key in ["/x/y,1", "/x/y,12", "/x/deep/z,1"] {
        fixture.add_order(new_order(key)).await;
    }
    fixture.emit(new_event("note").with_key("/x/y,1")).await;
    fixture.emit(new_event("note").with_key("Order:/x/y,1").for_tenant("shop")).await;
    fixture.run_all_ready_tasks().await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.set_chain_stopped("/x/y", false).await;
    fixture
}

async fn assert_and_count_filtered_events(fixture: &StoreFixture<'_>, filter: EventFilter) -> usize {
    let found =
        fixture.read_events_after(fixture.read_journal_range().await.last_expired_event_id, &filter).await;
    let all = fixture.read_all_events().await;
    let want: Vec<_> = all.into_iter().filter(|event| filter.matches(event)).collect();
    assert_eq!(found, want, "{filter:?}");
    found.len()
}

pub async fn engine_events_are_filtered_by_type_and_parent_type(harness: &dyn Harness) {
    let fixture = fixture_with_mixed_events(harness).await;
    let type_filter = |names: &[&str]| EventFilter {
        event_types: names.iter().map(|name| event_type(name)).collect(),
        ..EventFilter::default()
    };
    for (names, count) in [
        (&["OrderEvent"][..], 3 * 5),
        (&["OrderStarted"], 3),
        (&["OrderFinished", "OrderStarted"], 6),
        (&["TaskEvent"], 3 * 3),
        (&["TaskClosed"], 3),
        (&["FileBasedEvent"], 2 * 2 + 3 * 2),
        (&["FileBasedRemoved"], 3),
        (&["JobChainEvent"], 2),
        (&["SchedulerEvent"], 1),
        (&["SchedulerEvent", "JobChainEvent", "note"], 5),
        (&["OrderSuspended"], 0),
        (&["Event"], 15 + 9 + 10 + 2 + 1 + 2),
    ] {
        assert_eq!(assert_and_count_filtered_events(&fixture, type_filter(names)).await, count, "{names:?}");
    }
}

pub async fn engine_events_are_filtered_by_path_and_key(harness: &dyn Harness) {
    let fixture = fixture_with_mixed_events(harness).await;
    let orders = || vec![event_type("OrderEvent")];
    for (text, count) in [("/x/", 15), ("/x/*", 10), ("/x/y", 10), ("/x/y,1", 5), ("/x/deep/", 5), ("/y/", 0)]
    {
        let filter = EventFilter { event_types: orders(), path: path_filter(text), ..EventFilter::default() };
        assert_eq!(assert_and_count_filtered_events(&fixture, filter).await, count, "{text}");
    }
    for text in ["/x/", "/x/*", "/x/y", "/x/y,1", "/x/deep/", "/first", "/y/"] {
        assert_and_count_filtered_events(
            &fixture,
            EventFilter { path: path_filter(text), ..EventFilter::default() },
        )
        .await;
    }
    for (text, count) in [("/x/y,1", 6), ("/x/y", 2), ("Order:/x/y,12", 2), ("Job:/first", 2)] {
        let filter = EventFilter { key: Some(object_key(text)), ..EventFilter::default() };
        assert_eq!(assert_and_count_filtered_events(&fixture, filter).await, count, "{text}");
    }
}

/// A tenant's reader sees the engine events of its orders and tasks, and no others.
pub async fn a_tenant_sees_engine_events_of_its_orders_and_tasks(harness: &dyn Harness) {
    let registration = base_registration().observe_attempts("first", AttemptEventPolicy::All);
    let fixture = StoreFixture::new(harness, registration).await;
    publish_engine_events(&fixture, vec![EngineEvent::SchedulerClosed]).await;
    let shop = tenant("shop");
    fixture.add_order(NewOrder { tenant: shop.clone(), ..new_order("/x/y,1") }).await;
    fixture.add_order(new_order("/x/y,2")).await;
    fixture.run_all_ready_tasks().await;
    assert_eq!(
        expect_ok(fixture.store.set_chain_stopped(&chain_path("/x/y"), true, fixture.now).await),
        Ok(())
    );
    for (own_tenant, own_key) in [(shop, "/x/y,1"), (tenant("default"), "/x/y,2")] {
        let filter = EventFilter { tenant: Some(own_tenant), ..EventFilter::default() };
        let seen = fixture.read_events_after(EventId::ZERO, &filter).await;
        let keys: Vec<_> =
            seen.iter().map(|event| event.key.as_ref().map_or("", |key| key.as_str())).collect();
        assert!(keys.iter().all(|key| key.ends_with(own_key) || key.starts_with("{\"jobPath\"")), "{keys:?}");
        let kinds: Vec<_> = seen.iter().map(|event| event.event_type.as_str()).collect();
        for kind in [
            "FileBasedAdded",
            "TaskStarted",
            "OrderStarted",
            "OrderFinished",
            "TaskClosed",
            "FileBasedRemoved",
        ] {
            assert_eq!(kinds.iter().filter(|k| **k == kind).count(), 1, "{kind} in {kinds:?}");
        }
    }
}

pub async fn engine_events_can_be_read_backwards(harness: &dyn Harness) {
    let fixture = fixture_with_mixed_events(harness).await;
    let filter = EventFilter { event_types: vec![event_type("JobChainEvent")], ..EventFilter::default() };
    let read = JournalQuery {
        after_event_id: EventId::ZERO,
        up_to_event_id: None,
        filter,
        limit: 1,
        backwards: true,
    };
    let page = expect_ok(fixture.store.read_events(read).await);
    let published: Vec<_> = page.events.iter().map(|event| summarize_event(event)).collect();
    assert_eq!(published, ["JobChainStateChanged state:running"]);
}

pub async fn engine_events_expire_like_any_other(harness: &dyn Harness) {
    let mut fixture = fixture_with_mixed_events(harness).await;
    fixture.add_order(new_order("/x/y,2")).await;
    let head = fixture.read_journal_head().await;
    fixture.advance_clock(1000);
    let nothing = Retention { max_count: 0, max_age: secs(1) };
    assert_eq!(fixture.prune_events_and_tasks(nothing, KEEP_EVERYTHING).await.deleted_event_count, 39 + 1);
    let journal_range = fixture.read_journal_range().await;
    assert_eq!((journal_range.last_expired_event_id, journal_range.newest_event_id), (head, head));
    assert!(
        fixture.read_all_events().await.is_empty()
            && expect_ok(fixture.store.read_event(head).await).is_none()
    );
    fixture.run_all_ready_tasks().await;
    assert!(
        fixture.find_order("/x/y,2").await.is_none(),
        "orders continue although their events have expired"
    );
    let new_events = fixture.read_engine_events_after(head).await;
    assert_eq!((new_events.len(), new_events[0].id > head), (3 + 6, true));
}

/// Only files that changed since the last registration are published.
pub async fn changed_configuration_files_are_published(harness: &dyn Harness) {
    let with_config_files = |registration: RegistrationBuilder| {
        registration
            .config_file("Job:/first", "1")
            .config_file("JobChain:/x/y", "1")
            .config_file("Schedule:/nightly", "1")
    };
    let mut fixture = StoreFixture::new(harness, with_config_files(base_registration())).await;
    let published = async |fixture: &StoreFixture<'_>, since| {
        let mut published = fixture.read_engine_event_json_after(since).await;
        published.sort();
        published
    };
    let line = |key: &str, change: &str| format!(r#"{{"key":"{key}","TYPE":"FileBased{change}"}}"#);
    let all = ["Job:/first", "JobChain:/x/y", "Schedule:/nightly"];
    let mut want: Vec<_> = all.iter().flat_map(|key| [line(key, "Activated"), line(key, "Added")]).collect();
    want.sort();
    assert_eq!(published(&fixture, fixture.read_journal_range().await.last_expired_event_id).await, want);

    let since = fixture.read_journal_head().await;
    fixture.register(with_config_files(base_registration())).await;
    let mut fixture = fixture.reopen().await;
    fixture.register(with_config_files(base_registration())).await;
    assert_eq!(fixture.read_journal_head().await, since, "a start without changes publishes nothing");

    fixture
        .register(
            with_config_files(base_registration())
                .config_file("Job:/first", "2")
                .without_config_file("JobChain:/x/y"),
        )
        .await;
    let mut want = vec![
        line("Job:/first", "Activated"),
        line("Job:/first", "Replaced"),
        line("JobChain:/x/y", "Removed"),
    ];
    want.sort();
    assert_eq!(published(&fixture, since).await, want);

    let since = fixture.read_journal_head().await;
    fixture.register(with_config_files(base_registration()).config_file("Job:/first", "2")).await;
    assert_eq!(
        published(&fixture, since).await,
        [line("JobChain:/x/y", "Activated"), line("JobChain:/x/y", "Added")]
    );
    let read = expect_ok(fixture.store.read_merged_registration().await);
    assert_eq!(
        read.configured_object_digests,
        fixture.registration.build().configured_object_digests,
        "they are read back"
    );
}

/// `FileBasedAdded` or `FileBasedReplaced` is published before `FileBasedActivated`.
pub async fn file_activation_is_published_after_addition_or_replacement(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration().config_file("Job:/first", "1")).await;
    fixture.register(base_registration().config_file("Job:/first", "2")).await;
    let published =
        fixture.summarize_engine_events_after(fixture.read_journal_range().await.last_expired_event_id).await;
    let want = ["FileBasedAdded", "FileBasedActivated", "FileBasedReplaced", "FileBasedActivated"];
    assert_eq!(published, want);
}
