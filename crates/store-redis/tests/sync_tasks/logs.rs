//! What a task has said.

use pointsman_core::store::Ending;
use pointsman_core::store::NewLogLine;
use pointsman_core::task::{Level, LogLine};
use pointsman_store_conformance::world::{Plan, World, ending, line, succeeded};

use crate::SyncTaskHarness;

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_keep_order_and_duplicates() {
    let one = SyncTaskHarness::new();
    let mut world = World::new(&one, Plan::default().collects("shop/orders", 5)).await;
    let id = world.run_anew("shop/orders").await;
    let claimed = world.claim_one().await;
    let begun = world.now;
    let say = |line: LogLine| NewLogLine { task: claimed.seq, fence: claimed.fence, line };
    let same = vec![say(line(begun, "same")), say(line(begun, "same")), say(line(begun, "other"))];
    assert_eq!(world.store.log(same).await.unwrap(), 3);
    world.tick(2);
    let error = LogLine { level: Level::Error, ..line(world.now, "a \"quoted\"\nline") };
    assert_eq!(world.store.log(vec![say(error), say(line(begun, "same"))]).await.unwrap(), 2);
    let last = Ending { logs: vec![line(world.now, "done")], ..ending(&claimed, succeeded()) };
    world.end(last).await.unwrap();

    let told =
        one.reader().0.text_replies(&["ZRANGE", &format!(":sync_tasks#{id}:logs"), "0", "-1", "WITHSCORES"]);
    let lines: Vec<(serde_json::Value, f64)> = told
        .chunks(2)
        .map(|pair| (serde_json::from_str(&pair[0]).unwrap(), pair[1].parse().unwrap()))
        .collect();
    let said: Vec<_> = lines.iter().map(|(line, _)| line["message"].as_str().unwrap()).collect();
    assert_eq!(said, ["same", "same", "other", "a \"quoted\"\nline", "same", "done"]);
    let levels: Vec<_> = lines.iter().map(|(line, _)| line["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["info", "info", "info", "error", "info", "info"]);
    let times: Vec<_> = lines.iter().map(|(line, _)| line["time"].as_str().unwrap()).collect();
    assert_eq!((times[0], times[3]), ("2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:22.000000Z"));
    let scores: Vec<_> = lines.iter().map(|(_, score)| *score).collect();
    // SyncTaskHarness that came late stands where it came.
    assert_eq!(
        scores,
        [
            1_700_000_000.0,
            1_700_000_000.0,
            1_700_000_000.0,
            1_700_000_002.0,
            1_700_000_002.0,
            1_700_000_002.0
        ]
    );
}
