//! What a task has said.

use pointsman_core::store::FinishedAttempt;
use pointsman_core::store::NewLogLine;
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_store_conformance::fixture::{
    RegistrationBuilder, StoreFixture, attempt_ending, info_line, success,
};

use crate::SyncTaskHarness;

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_keep_order_and_duplicates() {
    let one = SyncTaskHarness::new();
    let mut world =
        StoreFixture::new(&one, RegistrationBuilder::default().collection("shop/orders", 5)).await;
    let id = world.request_new_run("shop/orders").await;
    let claimed = world.claim_one().await;
    let begun = world.now;
    let say = |line: LogLine| NewLogLine { task: claimed.seq, fence: claimed.fence, line };
    let same =
        vec![say(info_line(begun, "same")), say(info_line(begun, "same")), say(info_line(begun, "other"))];
    assert_eq!(world.store.append_log_lines(same).await.unwrap(), 3);
    world.advance_clock(2);
    let error = LogLine { level: LogLevel::Error, ..info_line(world.now, "a \"quoted\"\nline") };
    assert_eq!(
        world.store.append_log_lines(vec![say(error), say(info_line(begun, "same"))]).await.unwrap(),
        2
    );
    let last = FinishedAttempt {
        log_lines: vec![info_line(world.now, "done")],
        ..attempt_ending(&claimed, success())
    };
    world.finish_attempt(last).await.unwrap();

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
