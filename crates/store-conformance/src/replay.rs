//! A replay gives a new handler the events it would have been sent: once, out of order, at the lowest priority.

use std::collections::BTreeSet;

use pointsman_core::journal::Retention;
use pointsman_core::store::{ReplayReport, TaskFilter};
use pointsman_core::{EventId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

fn registration_without_new_handler() -> RegistrationBuilder {
    RegistrationBuilder::single_handler()
}

fn registration_with_new_handler() -> RegistrationBuilder {
    RegistrationBuilder::single_handler().route("record", &["new-handler"])
}

const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: std::time::Duration::from_secs(1) };

async fn list_handler_tasks(fixture: &StoreFixture<'_>, name: &str) -> Vec<pointsman_core::task::Task> {
    let filter = TaskFilter { handler: Some(handler_name(name)), ..TaskFilter::default() };
    fixture.list_tasks(&filter).await
}

async fn run_new_handler_tasks(fixture: &StoreFixture<'_>) -> Vec<EventId> {
    let mut ran = Vec::new();
    while let Some(task) = fixture.claim_for_handlers(&["new-handler"], 1).await.pop() {
        assert!(task.out_of_order, "{} runs out of order", task.id);
        fixture.succeed(&task).await;
        ran.push(task.event().id);
    }
    ran
}

pub async fn a_replay_creates_tasks_for_the_events_routed_to_a_new_handler(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let mut want = Vec::new();
    for (kind, tenant_name) in
        [("record", "default"), ("note", "default"), ("record.published", "shop"), ("records", "shop")]
    {
        let sequenced = fixture
            .emit(new_event(kind).with_key("a").for_tenant(tenant_name).with_priority(9000).with_value("[1]"))
            .await;
        if kind.split('.').next() == Some("record") {
            want.push((sequenced.id, kind.to_string(), tenant(tenant_name)));
        }
    }
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_with_new_handler()).await;
    fixture.advance_clock(100);
    assert!(fixture.claim(10).await.is_empty(), "registering the handler is not enough");
    let head = fixture.read_journal_range().await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 2);
    assert_eq!(fixture.read_journal_range().await, head, "no event is journaled again");
    let mut created = list_handler_tasks(&fixture, "new-handler").await;
    created.reverse();
    for (task, (event, kind, tenant)) in created.iter().zip(&want) {
        assert_eq!((task.event_id, &*task.subject_name, &task.tenant), (Some(*event), kind.as_str(), tenant));
        assert_eq!(
            (task.priority.get(), task.lifecycle.out_of_order, task.created_at),
            (1, true, fixture.now)
        );
        assert_eq!((&task.key, task.lifecycle.state.status()), (&Some(object_key("a")), TaskStatus::New));
    }
    assert_eq!(created.len(), 2);
    assert_eq!(list_handler_tasks(&fixture, "index").await.len(), 2, "other handlers get no tasks");
    let mut ran = run_new_handler_tasks(&fixture).await;
    ran.sort();
    assert_eq!(ran, want.iter().map(|(event, ..)| *event).collect::<Vec<_>>());
}

pub async fn a_repeated_replay_creates_no_duplicate_tasks(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    fixture.emit_copies(5, new_event("record")).await;
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 5);
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 0, "while they wait");
    run_new_handler_tasks(&fixture).await;
    let mut fixture = fixture.reopen().await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 0, "nor when they have run");
    assert_eq!(list_handler_tasks(&fixture, "new-handler").await.len(), 5);
    fixture.register(registration_without_new_handler()).await;
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(
        fixture.replay_events("new-handler", EventId::ZERO).await,
        0,
        "nor when it was gone in between"
    );
}

pub async fn events_already_sent_to_the_handler_are_not_replayed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let missed = fixture.emit_copies(3, new_event("record")).await;
    fixture.register(registration_with_new_handler()).await;
    let sent = fixture.emit_copies(3, new_event("record")).await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 3);
    let mut events: Vec<_> =
        list_handler_tasks(&fixture, "new-handler").await.iter().filter_map(|task| task.event_id).collect();
    events.sort();
    assert_eq!(events, event_ids_of_receipts(&[missed, sent].concat()), "each once");
}

pub async fn a_replay_covers_the_time_a_handler_was_undefined(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_with_new_handler()).await;
    fixture.emit_copies(2, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_without_new_handler()).await;
    let missed = fixture.emit_copies(2, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_with_new_handler()).await;
    fixture.emit_copies(2, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 2);
    assert_eq!(run_new_handler_tasks(&fixture).await, event_ids_of_receipts(&missed));
}

/// Long replays run in batches. Events emitted in between are sent as usual.
pub async fn a_long_replay_continues_in_batches(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let mut events = Vec::new();
    for _ in 0..8 {
        events.extend(event_ids_of_receipts(&fixture.emit_copies(500, new_event("record")).await));
    }
    fixture.register(registration_with_new_handler()).await;
    let mut created = 0;
    for round in 0.. {
        assert!(round < 10_000, "the replay does not end");
        let ReplayReport { created_task_count: tasks, has_more: more } = expect_ok(
            fixture.store.replay_events(&handler_name("new-handler"), EventId::ZERO, fixture.now).await,
        );
        created += tasks;
        if !more {
            break;
        }
        if round < 5 {
            events.push(fixture.emit(new_event("record")).await.id);
            fixture = fixture.reopen().await;
        }
    }
    assert_eq!(created, 4000);
    let got: Vec<_> =
        list_handler_tasks(&fixture, "new-handler").await.iter().filter_map(|task| task.event_id).collect();
    assert_eq!(got.len(), events.len(), "none twice");
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), events.into_iter().collect(), "and none left out");
}

pub async fn a_replay_starts_at_the_given_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let events = fixture.emit_copies(6, new_event("record")).await;
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(fixture.replay_events("new-handler", events[4].id).await, 2);
    assert_eq!(run_new_handler_tasks(&fixture).await, event_ids_of_receipts(&events[4..]));
    assert_eq!(
        fixture.replay_events("new-handler", fixture.read_journal_range().await.newest_event_id).await,
        0
    );
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 4, "a longer one may follow");
    assert_eq!(run_new_handler_tasks(&fixture).await, event_ids_of_receipts(&events[..4]));
}

pub async fn replayed_tasks_keep_lane_order(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let mut events = Vec::new();
    for n in 0..9 {
        events.push(fixture.emit(new_event("record").with_key(["a", "b", "c"][n % 3])).await);
    }
    fixture.register(registration_with_new_handler()).await;
    fixture.replay_events("new-handler", EventId::ZERO).await;
    for round in events.chunks(3) {
        let mut heads = fixture.claim_for_handlers(&["new-handler"], 100).await;
        heads.sort_by_key(|task| task.event().id);
        assert_eq!(event_ids_of_tasks(&heads), event_ids_of_receipts(round), "one of each object at a time");
        for task in &heads {
            fixture.succeed(task).await;
        }
    }
}

pub async fn replayed_tasks_go_behind_waiting_tasks_of_their_lane(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let old = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.register(registration_with_new_handler()).await;
    let new = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.replay_events("new-handler", EventId::ZERO).await;
    let mut ran = Vec::new();
    while let Some(task) = fixture.claim_for_handlers(&["new-handler"], 10).await.pop() {
        ran.push((task.event().id, task.out_of_order));
        fixture.succeed(&task).await;
    }
    assert_eq!(ran, [(new[0].id, false), (new[1].id, false), (old[0].id, true), (old[1].id, true)]);
}

pub async fn replayed_tasks_run_after_all_others_of_their_queue(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    fixture.emit_copies(3, new_event("record").with_priority(9000)).await;
    fixture.register(registration_with_new_handler()).await;
    fixture.replay_events("new-handler", EventId::ZERO).await;
    fixture.advance_clock(1);
    let prompt = fixture.emit(new_event("record").with_priority(2)).await;
    let first = fixture.claim_one_for_handler("new-handler").await;
    assert_eq!((first.event().id, first.out_of_order), (prompt.id, false));
}

pub async fn expired_events_are_not_replayed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    fixture.emit_copies(5, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock(1000);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_EVERYTHING).await;
    let recent = fixture.emit_copies(2, new_event("record")).await;
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 2);
    assert_eq!(run_new_handler_tasks(&fixture).await, event_ids_of_receipts(&recent));
}

pub async fn unfinished_replayed_tasks_keep_their_events(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    fixture.emit(new_event("record").with_value("\"kept\"")).await;
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_with_new_handler()).await;
    fixture.replay_events("new-handler", EventId::ZERO).await;
    fixture.advance_clock(1000);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    let fixture = fixture.reopen().await;
    let task = fixture.claim_one().await;
    assert_eq!(task.event().value.as_str(), "\"kept\"");
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
}

pub async fn a_replayed_task_can_be_retried_and_adopted(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_with_new_handler()).await;
    fixture.replay_events("new-handler", EventId::ZERO).await;
    let task = fixture.claim_one().await;
    fixture.fail(&task).await;
    assert!(fixture.claim(10).await.is_empty(), "its lane waits for it");
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(fixture.claim_one().await.id, task.id);
    assert_eq!(fixture.undefine_handler_and_rescue("new-handler").await, 1);
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("new-handler").await, 1);
}

/// Checked with an unknown handler, one without matching routes, a source, and one that has been sent all events.
pub async fn a_replay_for_a_handler_without_matching_routes_creates_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(
        harness,
        registration_without_new_handler().route("note", &["notify"]).collection("shop/orders", 1),
    )
    .await;
    fixture.emit_copies(3, new_event("record")).await;
    for name in ["unheard-of", "notify", "shop", "index"] {
        assert_eq!(fixture.replay_events(name, EventId::ZERO).await, 0, "{name}");
    }
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 3);
}

/// A synchronous handler's replay blocks no task: the other tasks of the event do not wait for it.
pub async fn a_replayed_synchronous_task_blocks_no_other_task(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let events = fixture.emit_copies(2, new_event("record")).await;
    fixture.register(registration_without_new_handler().route("record", &["new-handler!"])).await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 2);
    let mut waiting = fixture.claim_for_handlers(&["index"], 10).await;
    waiting.sort_by_key(|task| task.event().id);
    assert_eq!(
        event_ids_of_tasks(&waiting),
        event_ids_of_receipts(&events),
        "waiting tasks do not wait for it"
    );
    let mut ran = run_new_handler_tasks(&fixture).await;
    ran.sort();
    assert_eq!(ran, event_ids_of_receipts(&events));
}

pub async fn a_finished_replayed_task_is_found_by_its_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, registration_without_new_handler()).await;
    let old = fixture.emit(new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.register(registration_with_new_handler()).await;
    assert_eq!(fixture.replay_events("new-handler", EventId::ZERO).await, 1);
    let filter = TaskFilter {
        event_id: Some(old.id),
        handler: Some(handler_name("new-handler")),
        ..TaskFilter::default()
    };
    assert_eq!(fixture.list_tasks(&filter).await.len(), 1);
    fixture.run_all_ready_tasks().await;
    assert_eq!(fixture.list_tasks(&filter).await.len(), 1);
}
