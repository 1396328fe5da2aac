//! Which tasks an event creates, and their ids.

use pointsman_core::TaskStatus;
use pointsman_core::store::{EmittedEventReceipt, TaskFilter};

use crate::Harness;
use crate::fixture::*;

/// The handlers of an event's tasks, in the order of the receipt.
async fn read_task_handlers(fixture: &StoreFixture<'_>, event: &EmittedEventReceipt) -> Vec<String> {
    let mut names = Vec::new();
    for id in &event.tasks {
        let task = fixture.read_task(id).await;
        assert_eq!(task.event_id, Some(event.id));
        names.push(task.handler.to_string());
    }
    names
}

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["audit", "count"])
        .route("record.published", &["index", "notify"])
}

pub async fn parent_routes_come_first_and_route_lists_keep_their_order(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for (kind, want) in [
        ("record", vec!["audit", "count"]),
        ("record.published", vec!["audit", "count", "index", "notify"]),
        ("record.published.again", vec!["audit", "count", "index", "notify"]),
        ("record.dropped", vec!["audit", "count"]),
        ("records.published", vec![]),
    ] {
        let sequenced = fixture.emit(new_event(kind)).await;
        assert_eq!(read_task_handlers(&fixture, &sequenced).await, want, "{kind}");
    }
}

pub async fn synchronous_tasks_come_before_queued_ones(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::default().route("a", &["one"]).route("a.b", &["two!", "three", "four!"]);
    let fixture = StoreFixture::new(harness, registration).await;
    let sequenced = fixture.emit(new_event("a.b")).await;
    assert_eq!(read_task_handlers(&fixture, &sequenced).await, ["two", "four", "one", "three"]);
}

pub async fn a_handler_gets_one_task_however_many_routes_name_it(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default().route("a", &["x", "y"]).route("a.b", &["x", "z", "x"]);
    let fixture = StoreFixture::new(harness, registration).await;
    let sequenced = fixture.emit(new_event("a.b")).await;
    assert_eq!(read_task_handlers(&fixture, &sequenced).await, ["x", "y", "z"]);
}

pub async fn a_task_id_contains_its_handler_and_event_type(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let sequenced =
        fixture.emit(new_event("record.published").with_key("a").for_tenant("shop").with_priority(7)).await;
    let mut seen = Vec::new();
    for id in &sequenced.tasks {
        let task = fixture.read_task(id).await;
        let uuid = id.uuid().expect("the task id ends in a uuid");
        assert_eq!(id.as_str(), format!("{}_record.published_{uuid}", task.handler));
        assert_eq!(uuid.get_version_num(), 8);
        assert_eq!(task.id, *id);
        assert_eq!((&*task.subject_name, task.priority.get()), ("record.published", 7));
        assert_eq!((task.key, task.tenant), (Some(object_key("a")), tenant("shop")));
        assert_eq!(task.created_at, fixture.now);
        assert_eq!((task.started_at, task.finished_at, task.attempts.len()), (None, None, 0));
        seen.push(task.seq);
    }
    assert_strictly_ascending(&seen);
}

pub async fn routes_are_fixed_when_an_event_is_journaled(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let before = fixture.emit(new_event("record.published").with_key("a")).await;
    fixture.register(base_registration().route("record.published", &["late-comer"])).await;
    let after = fixture.emit(new_event("record.published").with_key("a")).await;
    assert_eq!(read_task_handlers(&fixture, &before).await, ["audit", "count", "index", "notify"]);
    assert_eq!(
        read_task_handlers(&fixture, &after).await,
        ["audit", "count", "index", "notify", "late-comer"]
    );
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(ran.len(), 9);
    assert_eq!(ran.iter().filter(|task| task.event().id == before.id).count(), 4);
}

/// A handler without the route that is still registered finishes its existing tasks.
pub async fn removing_a_route_keeps_existing_tasks(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().route("note", &["notify"])).await;
    let old = fixture.emit(new_event("record").with_key("a")).await;
    fixture.register(RegistrationBuilder::default().route("note", &["index", "notify"])).await;
    assert!(fixture.emit(new_event("record").with_key("a")).await.tasks.is_empty());
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 0);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [old.id]);
    assert_eq!(fixture.read_task_status(&old.tasks[0]).await, TaskStatus::Done);
}

pub async fn the_registration_can_be_read_back(harness: &dyn Harness) {
    let registration = base_registration()
        .unordered("audit")
        .halt_on_error("count")
        .route("record", &["index!"])
        .rate_limit("index", "100/m")
        .handler_weight("index", 7)
        .concurrency_limit("notify", 3)
        .pulled_by_workers("notify")
        .tenant_collection("shop", "crm/people", 300)
        .tenant_collection("shop", "crm/firms", 1)
        .tenant_weight("shop", 1000);
    let fixture = StoreFixture::new(harness, registration.clone()).await;
    let fixture = fixture.reopen().await;
    let mut found = expect_ok(fixture.store.read_merged_registration().await);
    found.handlers.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, registration.build());
}

pub async fn routes_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let fixture = fixture.reopen().await;
    let sequenced = fixture.emit(new_event("record.published")).await;
    assert_eq!(read_task_handlers(&fixture, &sequenced).await, ["audit", "count", "index", "notify"]);
}

pub async fn an_event_without_handlers_has_no_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    assert!(fixture.emit(new_event("note").with_key("a")).await.tasks.is_empty());
    assert!(fixture.list_tasks(&TaskFilter::default()).await.is_empty());
    assert_eq!(fixture.read_all_events().await.len(), 1);
}
