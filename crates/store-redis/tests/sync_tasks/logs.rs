//! Log lines of tasks.

use pointsman_core::store::AttemptLogLine;
use pointsman_core::store::FinishedAttempt;
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_store_conformance::fixture::{
    RegistrationBuilder, StoreFixture, finished_attempt, info_log_line, success,
};

use crate::SyncTaskHarness;

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_keep_order_and_duplicates() {
    let harness = SyncTaskHarness::new();
    let mut fixture =
        StoreFixture::new(&harness, RegistrationBuilder::default().collection("shop/orders", 5)).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    let claimed = fixture.claim_one().await;
    let started = fixture.now;
    let new_line = |line: LogLine| AttemptLogLine { task_seq: claimed.seq, fence: claimed.fence, line };
    let first_lines = vec![
        new_line(info_log_line(started, "same")),
        new_line(info_log_line(started, "same")),
        new_line(info_log_line(started, "other")),
    ];
    assert_eq!(fixture.store.append_log_lines(first_lines).await.unwrap(), 3);
    fixture.advance_clock(2);
    let error = LogLine { level: LogLevel::Error, ..info_log_line(fixture.now, "a \"quoted\"\nline") };
    assert_eq!(
        fixture
            .store
            .append_log_lines(vec![new_line(error), new_line(info_log_line(started, "same"))])
            .await
            .unwrap(),
        2
    );
    let last = FinishedAttempt {
        log_lines: vec![info_log_line(fixture.now, "done")],
        ..finished_attempt(&claimed, success())
    };
    fixture.finish_attempt(last).await.unwrap();

    let members = harness.reader().0.query_texts(&[
        "ZRANGE",
        &format!(":sync_tasks#{id}:logs"),
        "0",
        "-1",
        "WITHSCORES",
    ]);
    let lines: Vec<(serde_json::Value, f64)> = members
        .chunks(2)
        .map(|pair| (serde_json::from_str(&pair[0]).unwrap(), pair[1].parse().unwrap()))
        .collect();
    let messages: Vec<_> = lines.iter().map(|(line, _)| line["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["same", "same", "other", "a \"quoted\"\nline", "same", "done"]);
    let levels: Vec<_> = lines.iter().map(|(line, _)| line["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["info", "info", "info", "error", "info", "info"]);
    let times: Vec<_> = lines.iter().map(|(line, _)| line["time"].as_str().unwrap()).collect();
    assert_eq!((times[0], times[3]), ("2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:22.000000Z"));
    let scores: Vec<_> = lines.iter().map(|(_, score)| *score).collect();
    // A line with an earlier time keeps its position, with the score of the line before it.
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
