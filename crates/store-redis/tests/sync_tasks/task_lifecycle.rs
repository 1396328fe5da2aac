//! A task from its beginning to its end.

use pointsman_core::RuleKind;
use pointsman_store_conformance::fixture::{RegistrationBuilder, START_TIME, StoreFixture, rule_target};

use crate::SyncTaskHarness;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .collection("shop/orders", 5)
        .collection("shop/items", 9000)
        .collection("other/a", 1)
}

const CREATED: &str = "2023-11-14T22:13:20.000000Z";
const STARTED: &str = "2023-11-14T22:13:27.000000Z";
const FINISHED: &str = "2023-11-14T22:13:30.000000Z";

fn queue_score(priority: i64) -> i64 {
    priority * 1_000_000_000_000 - 1_700_000_000
}

#[tokio::test(flavor = "multi_thread")]
async fn succeeding_task_is_documented_in_every_state() {
    let one = SyncTaskHarness::new();
    let mut world = StoreFixture::new(&one, plan()).await;
    let mut reader = one.reader();
    assert_eq!(START_TIME.micros(), 1_700_000_000_000_000);
    let id = world.request_new_run("shop/orders").await;
    let fields = [
        ("collection", "orders"),
        ("created_at", CREATED),
        ("finished_at", ""),
        ("id", id.as_str()),
        ("priority", "5"),
        ("source", "shop"),
        ("started_at", ""),
        ("status", "SCHEDULED"),
    ];
    let told = reader.read_task(&id);
    assert!(told.iter().map(|(name, value)| (&**name, &**value)).eq(fields), "{told:?}");
    assert!(id.as_str().starts_with("shop_orders_"));
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);

    world.schedule_ahead(5).await;
    assert_eq!(reader.read_status(&id), ["SCHEDULED", "", ""]);
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);
    world.advance_clock(7);
    let claimed = world.claim_one().await;
    assert_eq!(reader.read_status(&id), ["RUNNING", STARTED, ""]);
    assert_eq!(reader.read_queue(), []);
    world.advance_clock(3);
    world.succeed(&claimed).await;
    assert_eq!(reader.read_status(&id), ["SUCCESS", STARTED, FINISHED]);
    assert_eq!(reader.read_queue(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_and_canceled_tasks_are_documented() {
    let one = SyncTaskHarness::new();
    let mut world = StoreFixture::new(&one, plan()).await;
    let mut reader = one.reader();
    let failing = world.request_new_run("shop/orders").await;
    world.advance_clock(7);
    let claimed = world.claim_one().await;
    world.advance_clock(3);
    world.fail(&claimed).await;
    assert_eq!(reader.read_status(&failing)[0], "SCHEDULED", "it is tried again");
    assert_eq!(reader.read_queue(), [(failing.to_string(), queue_score(5))]);
    world.advance_clock(60);
    world.fail_permanently(&world.claim_one().await).await;
    assert_eq!(reader.read_status(&failing)[0], "FAILED");
    assert_eq!(reader.read_queue(), []);
    world.retry_task(&failing).await.unwrap();
    assert_eq!(
        (reader.read_status(&failing)[0].as_str(), &*reader.read_status(&failing)[2]),
        ("SCHEDULED", "")
    );
    assert_eq!(reader.read_queue(), [(failing.to_string(), queue_score(5))]);
    world.cancel_task(&failing).await.unwrap();
    assert_eq!(reader.read_status(&failing)[0], "CANCELED");
    assert_eq!(reader.read_queue(), []);

    let running = world.request_new_run("other/a").await;
    world.claim_one().await;
    world.cancel_task(&running).await.unwrap();
    assert_eq!(reader.read_status(&running)[0], "CANCELED");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_orders_by_score_and_includes_paused_tasks() {
    let one = SyncTaskHarness::new();
    let mut world = StoreFixture::new(&one, plan()).await;
    let mut reader = one.reader();
    world.pause("shop/orders").await;
    let held = world.request_new_run("shop/orders").await;
    world.advance_clock(100);
    let (low, high) = (world.request_new_run("other/a").await, world.request_new_run("shop/items").await);
    let expected = [
        (low.to_string(), queue_score(1) - 100),
        (held.to_string(), queue_score(5)),
        (high.to_string(), queue_score(9000) - 100),
    ];
    assert_eq!(reader.read_queue(), expected, "the next one is the last");
    assert_eq!(reader.read_status(&held), ["SCHEDULED", "", ""]);
    assert_eq!(world.run_all_ready().await.len(), 2);
    assert_eq!(reader.read_queue(), [(held.to_string(), queue_score(5))]);
    assert!(world.store.lift_rule(RuleKind::Pause, &rule_target("shop/orders"), None).await.unwrap());
    assert_eq!(world.run_all_ready().await.len(), 1);
    assert_eq!(reader.read_queue(), []);
}

/// Tasks of events and orders are none of the document's.
#[tokio::test(flavor = "multi_thread")]
async fn event_tasks_are_not_documented() {
    use pointsman_store_conformance::fixture::new_event;
    let one = SyncTaskHarness::new();
    let world = StoreFixture::new(&one, plan().route("record", &["index"])).await;
    let mut reader = one.reader();
    world.emit(new_event("record")).await;
    world.run_all_ready().await;
    assert_eq!((reader.read_queue().len(), reader.0.list_keys("sync_tasks*")), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_dead_node_are_scheduled_again() {
    let one = SyncTaskHarness::new();
    let mut world = StoreFixture::new(&one, plan()).await;
    let mut reader = one.reader();
    let id = world.request_new_run("shop/orders").await;
    world.claim_one().await;
    assert_eq!(reader.read_status(&id)[0], "RUNNING");
    world.advance_clock(3600);
    let next = world.store.join_node("next", world.now).await.unwrap();
    world.store.heartbeat(next, world.now).await.unwrap();
    // By the server's clock only a moment has gone by.
    world.store.leave_node(world.node, world.now).await.unwrap();
    assert_eq!(reader.read_status(&id)[0], "SCHEDULED");
    assert_eq!(reader.read_queue(), [(id.to_string(), queue_score(5))]);
}

/// Somebody has made something else of the keys: what cannot be told there is left out, and the tasks go their way.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_type_keys_do_not_stop_tasks() {
    let one = SyncTaskHarness::new();
    let mut client = one.0.connect();
    for key in [":sync_tasks_sequence", ":sync_tasks_priority_queue"] {
        client.command(&["SET", key, "no sorted set"]);
    }
    client.command(&["SET", ":sync_tasks_index:source#shop:collection#orders", "no sorted set"]);
    let world = StoreFixture::new(&one, plan()).await;
    let first = world.request_new_run("shop/orders").await;
    let task = world.claim_one().await;
    world.succeed(&task).await;
    assert_eq!(one.reader().read_status(&first)[0], "SUCCESS");
    let second = world.request_new_run("shop/orders").await;
    assert_ne!(first, second);
}
