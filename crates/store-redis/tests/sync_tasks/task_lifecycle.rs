//! The documented keys of a task in each of its states.

use pointsman_core::RuleKind;
use pointsman_store_conformance::fixture::{RegistrationBuilder, START_TIME, StoreFixture, rule_scope};

use crate::SyncTaskHarness;

fn three_collection_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .collection("shop/orders", 5)
        .collection("shop/items", 9000)
        .collection("other/a", 1)
}

const CREATED_AT: &str = "2023-11-14T22:13:20.000000Z";
const STARTED_AT: &str = "2023-11-14T22:13:27.000000Z";
const FINISHED_AT: &str = "2023-11-14T22:13:30.000000Z";

fn queue_score(priority: i64) -> i64 {
    priority * 1_000_000_000_000 - 1_700_000_000
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_succeeding_task_follow_document_002() {
    let harness = SyncTaskHarness::new();
    let mut fixture = StoreFixture::new(&harness, three_collection_registration()).await;
    let mut reader = harness.reader();
    assert_eq!(START_TIME.micros(), 1_700_000_000_000_000);
    let id = fixture.request_new_collection_run("shop/orders").await;
    let fields = [
        ("collection", "orders"),
        ("created_at", CREATED_AT),
        ("finished_at", ""),
        ("id", id.as_str()),
        ("priority", "5"),
        ("source", "shop"),
        ("started_at", ""),
        ("status", "SCHEDULED"),
    ];
    let documented = reader.read_task(&id);
    assert!(documented.iter().map(|(name, value)| (&**name, &**value)).eq(fields), "{documented:?}");
    assert!(id.as_str().starts_with("shop_orders_"));
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);

    fixture.schedule_tasks(5).await;
    assert_eq!(reader.read_status_and_times(&id), ["SCHEDULED", "", ""]);
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);
    fixture.advance_clock(7);
    let claimed = fixture.claim_one().await;
    assert_eq!(reader.read_status_and_times(&id), ["RUNNING", STARTED_AT, ""]);
    assert_eq!(reader.read_queue(), []);
    fixture.advance_clock(3);
    fixture.succeed(&claimed).await;
    assert_eq!(reader.read_status_and_times(&id), ["SUCCESS", STARTED_AT, FINISHED_AT]);
    assert_eq!(reader.read_queue(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_failed_and_canceled_tasks_follow_document_002() {
    let harness = SyncTaskHarness::new();
    let mut fixture = StoreFixture::new(&harness, three_collection_registration()).await;
    let mut reader = harness.reader();
    let failing = fixture.request_new_collection_run("shop/orders").await;
    fixture.advance_clock(7);
    let claimed = fixture.claim_one().await;
    fixture.advance_clock(3);
    fixture.fail(&claimed).await;
    assert_eq!(reader.read_status_and_times(&failing)[0], "SCHEDULED", "the task is retried");
    assert_eq!(reader.read_queue(), [(failing.to_string(), queue_score(5))]);
    fixture.advance_clock(60);
    fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!(reader.read_status_and_times(&failing)[0], "FAILED");
    assert_eq!(reader.read_queue(), []);
    fixture.retry_task(&failing).await.unwrap();
    assert_eq!(
        (reader.read_status_and_times(&failing)[0].as_str(), &*reader.read_status_and_times(&failing)[2]),
        ("SCHEDULED", "")
    );
    assert_eq!(reader.read_queue(), [(failing.to_string(), queue_score(5))]);
    fixture.cancel_task(&failing).await.unwrap();
    assert_eq!(reader.read_status_and_times(&failing)[0], "CANCELED");
    assert_eq!(reader.read_queue(), []);

    let running = fixture.request_new_collection_run("other/a").await;
    fixture.claim_one().await;
    fixture.cancel_task(&running).await.unwrap();
    assert_eq!(reader.read_status_and_times(&running)[0], "CANCELED");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_orders_by_score_and_includes_paused_tasks() {
    let harness = SyncTaskHarness::new();
    let mut fixture = StoreFixture::new(&harness, three_collection_registration()).await;
    let mut reader = harness.reader();
    fixture.set_pause_rule("shop/orders").await;
    let paused = fixture.request_new_collection_run("shop/orders").await;
    fixture.advance_clock(100);
    let (low, high) = (
        fixture.request_new_collection_run("other/a").await,
        fixture.request_new_collection_run("shop/items").await,
    );
    let expected = [
        (low.to_string(), queue_score(1) - 100),
        (paused.to_string(), queue_score(5)),
        (high.to_string(), queue_score(9000) - 100),
    ];
    assert_eq!(reader.read_queue(), expected, "the next task is the last");
    assert_eq!(reader.read_status_and_times(&paused), ["SCHEDULED", "", ""]);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 2);
    assert_eq!(reader.read_queue(), [(paused.to_string(), queue_score(5))]);
    assert!(fixture.store.lift_rule(RuleKind::Pause, &rule_scope("shop/orders"), None).await.unwrap());
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
    assert_eq!(reader.read_queue(), []);
}

/// Document 002 does not cover tasks of events and orders.
#[tokio::test(flavor = "multi_thread")]
async fn event_tasks_have_no_document_002_keys() {
    use pointsman_store_conformance::fixture::new_event;
    let harness = SyncTaskHarness::new();
    let fixture =
        StoreFixture::new(&harness, three_collection_registration().route("record", &["index"])).await;
    let mut reader = harness.reader();
    fixture.emit(new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    assert_eq!((reader.read_queue().len(), reader.0.list_keys("sync_tasks*")), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_dead_node_are_scheduled_again() {
    let harness = SyncTaskHarness::new();
    let mut fixture = StoreFixture::new(&harness, three_collection_registration()).await;
    let mut reader = harness.reader();
    let id = fixture.request_new_collection_run("shop/orders").await;
    fixture.claim_one().await;
    assert_eq!(reader.read_status_and_times(&id)[0], "RUNNING");
    fixture.advance_clock(3600);
    let next = fixture.store.join_node("next", fixture.now).await.unwrap();
    fixture.store.record_heartbeat(next, fixture.now).await.unwrap();
    // Little time has passed by the clock of the server, so the node leaves explicitly.
    fixture.store.remove_node(fixture.node_id, fixture.now).await.unwrap();
    assert_eq!(reader.read_status_and_times(&id)[0], "SCHEDULED");
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);
}

/// Writes to documented keys of the wrong type are skipped, and the tasks run.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_type_keys_do_not_stop_tasks() {
    let harness = SyncTaskHarness::new();
    let mut client = harness.0.connect();
    for key in [":sync_tasks_sequence", ":sync_tasks_priority_queue"] {
        client.run_command(&["SET", key, "not a sorted set"]);
    }
    client.run_command(&["SET", ":sync_tasks_index:source#shop:collection#orders", "not a sorted set"]);
    let fixture = StoreFixture::new(&harness, three_collection_registration()).await;
    let first = fixture.request_new_collection_run("shop/orders").await;
    let task = fixture.claim_one().await;
    fixture.succeed(&task).await;
    assert_eq!(harness.reader().read_status_and_times(&first)[0], "SUCCESS");
    let second = fixture.request_new_collection_run("shop/orders").await;
    assert_ne!(first, second);
}
