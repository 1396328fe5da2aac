//! Changes of the configuration, as published in the journal.

use pointsman_engine::Setup;
use tokio::time::timeout;

use crate::raw_http_client::TEST_TIMEOUT;
use crate::test_server::{TestServer, write_config_and_get_inputs};

fn config_yaml(folder: &std::path::Path, more: &str) -> String {
    let store = folder.join("pointsman.db");
    format!("store: 'sqlite:{}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n{more}", store.display())
}

const INITIAL_CONFIG: &str = r#"
handlers:
  render: {run: {command: ['true']}}
  index: {run: pull, retry: {delay: 60s}}
sources:
  shop: {schedule: '@daily', collections: [orders]}
schedules:
  nightly: {cron: '0 3 * * *', order: {path: /publish/article}}
chains:
  /publish/article: {nodes: [{id: render, handler: render, next: done}, {id: done, end: true}]}
"#;

/// Reads the FileBased events after an event, each as `CHANGE KEY`, sorted by key. `Activated` is left out.
async fn read_file_based_event_summaries(test_server: &TestServer, after: u64) -> Vec<String> {
    let journal =
        test_server.get(&format!("/api/v1/events?return=FileBasedEvent&after={after}")).await.json();
    let summary = |event: &serde_json::Value| {
        let text = |member: &str| event[member].as_str().map(str::to_owned).unwrap_or_default();
        (text("key"), text("TYPE").replace("FileBased", ""))
    };
    let events = journal["eventSnapshots"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut summaries: Vec<(String, String)> = events.iter().map(summary).collect();
    summaries.sort();
    summaries.dedup();
    let summaries = summaries.into_iter().filter(|(_, change)| change != "Activated");
    summaries.map(|(key, change)| format!("{change} {key}")).collect()
}

async fn read_newest_event_id(test_server: &TestServer) -> u64 {
    test_server.get("/api/v1/handlers").await.json()["eventId"].as_u64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_changes_are_published_and_a_restart_without_changes_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let test_server = TestServer::start_in_folder(
        folder.path(),
        &config_yaml(folder.path(), INITIAL_CONFIG),
        Setup::default(),
    )
    .await;
    assert_eq!(
        read_file_based_event_summaries(&test_server, 0).await,
        [
            "Added Job:/index",
            "Added Job:/render",
            "Added Job:/shop",
            "Added JobChain:/publish/article",
            "Added Schedule:/nightly",
        ]
    );

    let start = read_newest_event_id(&test_server).await;
    let changed = INITIAL_CONFIG
        .replace("delay: 60s", "delay: 1m")
        .replace("['true']", "['false']")
        .replace("'@daily'", "'@hourly'")
        .replace("nightly:", "weekly:")
        .replace("{id: render, handler: render,", "{handler: render, id: render, on_error: done,");
    let mut reloads = test_server.inner.subscribe_reload_counts();
    write_config_and_get_inputs(folder.path(), &config_yaml(folder.path(), &changed));
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let expected = [
        "Replaced Job:/render",
        "Replaced Job:/shop",
        "Replaced JobChain:/publish/article",
        "Removed Schedule:/nightly",
        "Added Schedule:/weekly",
    ];
    assert_eq!(
        read_file_based_event_summaries(&test_server, start).await,
        expected,
        "writing a minute differently is no change"
    );

    let end = read_newest_event_id(&test_server).await;
    test_server.inner.stop().await;
    let again =
        TestServer::start_in_folder(folder.path(), &config_yaml(folder.path(), &changed), Setup::default())
            .await;
    assert_eq!(read_file_based_event_summaries(&again, end).await, [""; 0]);
    again.inner.stop().await;
}
