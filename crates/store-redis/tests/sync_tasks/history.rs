//! What is remembered of a pair's tasks, and forgotten.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_store_conformance::world::{EVERYTHING, Plan, World, line};

use crate::SyncTaskHarness;

const NOTHING: Retention = Retention { count: 0, age: Duration::ZERO };

#[tokio::test(flavor = "multi_thread")]
async fn each_source_and_collection_has_its_own_history() {
    let one = SyncTaskHarness::new();
    // Their tasks' ids all begin with `a_x_y_` or `a_x_`.
    let plan = Plan::default().collects("a/x", 1).collects("a/x_y", 1).collects("a_x/y", 1);
    let mut world = World::new(&one, plan).await;
    let mut reader = one.reader();
    let mut expected = [vec![], vec![], vec![]];
    for n in 0..3 {
        for (pair, of_pair) in ["a/x", "a/x_y", "a_x/y"].iter().zip(&mut expected) {
            of_pair.push((world.run_anew(pair).await.to_string(), 1_700_000_000 + n * 10));
        }
        world.run_all().await;
        world.tick(10);
    }
    let [x, x_y, y] = expected;
    assert_eq!(reader.read_history("a", "x"), x);
    assert_eq!(reader.read_history("a", "x_y"), x_y);
    assert_eq!(reader.read_history("a_x", "y"), y);
    assert_eq!(reader.read_history("a_x", "x"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_tasks_leave_no_keys() {
    let one = SyncTaskHarness::new();
    let plan = Plan::default().collects("shop/orders", 5).collects("shop/items", 5);
    let mut world = World::new(&one, plan).await;
    let mut reader = one.reader();
    for _ in 0..3 {
        world.run_anew("shop/orders").await;
        let claimed = world.claim_one().await;
        let line = pointsman_core::store::NewLogLine {
            task: claimed.seq,
            fence: claimed.fence,
            line: line(world.now, "at it"),
        };
        world.store.log(vec![line]).await.unwrap();
        world.succeed(&claimed).await;
        world.tick(10);
    }
    let live = world.run_anew("shop/items").await;
    assert_eq!(reader.read_history("shop", "orders").len(), 3);
    assert_eq!(reader.0.list_keys("sync_tasks#*:logs").len(), 3);
    let pruned = world.prune(EVERYTHING, Retention { count: 1, age: EVERYTHING.age }).await;
    assert_eq!((pruned.tasks, reader.read_history("shop", "orders").len()), (2, 1));
    assert_eq!(reader.0.list_keys("sync_tasks#*:logs").len(), 1);
    world.prune(EVERYTHING, NOTHING).await;
    let mut left = vec![
        "sync_tasks_index:source#shop:collection#items".to_string(),
        "sync_tasks_priority_queue".to_string(),
        "sync_tasks_sequence".to_string(),
        format!("sync_tasks#{live}"),
    ];
    left.sort();
    assert_eq!(reader.0.list_keys("sync_tasks*"), left);
}
