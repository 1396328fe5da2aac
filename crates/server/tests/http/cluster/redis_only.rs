//! Conditions that only Redis has: settings that lose acknowledged data, Redis Cluster and Sentinel, full memory,
//! deleted keys.

use pointsman_core::{EventType, NewEvent};
use pointsman_engine::{Delivery, HandlerOutcome, Setup};
use pointsman_testing::{RedisCluster, RedisSentinelGroup, RedisSettings};
use serde_json::json;

use super::test_databases::{ClusterTestDatabase, RedisDatabase};
use super::{TestCluster, job_handler_setup};
use crate::test_server::{TestServer, in_process_handler_setup};

#[tokio::test(flavor = "multi_thread")]
async fn healthz_warns_of_redis_settings_that_lose_data() {
    let redis = RedisDatabase::start(RedisSettings::with_directives(&[("appendfsync", "everysec")]));
    let mut test_cluster = TestCluster::new(redis.url());
    let server = test_cluster.start_server("server", "", Setup::default()).await;
    let health = server.get("/healthz").await.json();
    assert_eq!(health["status"], "ok", "the server works in spite of the warning");
    let warning =
        "appendfsync is everysec: a machine that crashes loses what was acknowledged in its last second";
    assert_eq!(health["warnings"], json!([warning]));
    assert_eq!(server.get("/readyz").await.json()["warnings"], json!([warning]));
    assert_eq!(server.get("/livez").await.json().get("warnings"), None);

    // Settings are checked once a minute, and on every new connection.
    redis.set_config("appendfsync", "always");
    redis.run_command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    server
        .wait_until_get_returns("/healthz", |health| {
            health.get("warnings").is_none() && health["status"] == "ok"
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_run_on_redis_cluster_and_sentinel() {
    let (cluster, sentinel) =
        (RedisCluster::start().expect("a cluster"), RedisSentinelGroup::start().expect("sentinels"));
    for url in [cluster.url(), sentinel.url()] {
        let mut test_cluster = TestCluster::new(url);
        let back = test_cluster.start_server("back", "", job_handler_setup()).await;
        let front = test_cluster.start_server("front", "", Setup::default()).await;
        let id = front.emit_and_get_task_id(r#"{"type":"job","key":"k"}"#).await;
        back.wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
        assert_eq!(front.get("/healthz").await.json()["store"]["kind"], "redis");
    }
}

/// A handler that succeeds and emits an event of the type `made`.
fn succeed_and_emit_made_event(_: &Delivery) -> HandlerOutcome {
    let made = NewEvent::new(EventType::new("made").expect("a type"));
    HandlerOutcome { emitted_events: vec![made], ..HandlerOutcome::succeeded() }
}

fn read_used_memory(redis: &RedisDatabase) -> u64 {
    let info = redis.run_command(&["INFO", "memory"]).text().expect("figures");
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a figure");
    used.parse().expect("a number")
}

/// Emits until the response has this status.
async fn emit_until_status(server: &TestServer, status: u16) -> crate::raw_http_client::TestResponse {
    loop {
        let response = server.post("/api/v1/events", r#"{"type":"record"}"#).await;
        if response.status == status {
            return response;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_refuses_emits_and_finishes_waiting_tasks() {
    let redis = RedisDatabase::start_own_server();
    redis.run_command(&["SET", "filler", &"x".repeat(20 << 20)]);
    let mut test_cluster = TestCluster::new(redis.url());
    let server = test_cluster
        .start_server("server", "", in_process_handler_setup("job", succeed_and_emit_made_event))
        .await;
    server.put("/api/v1/handlers/job/pause", "{}").await;
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(server.emit_and_get_task_id(r#"{"type":"job"}"#).await);
    }
    redis.set_config("maxmemory", &(read_used_memory(&redis) * 10 / 9).to_string());
    let wait = tokio::time::timeout(crate::raw_http_client::TEST_TIMEOUT, emit_until_status(&server, 503));
    let refused = wait.await.expect("it is refused");
    assert_eq!((refused.checked_problem_status(), refused.header("retry-after")), (503, Some("1")));
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.starts_with("the store is full: Redis uses 2"), "{detail}");
    assert!(detail.contains("raise maxmemory") && detail.ends_with("nothing was changed"), "{detail}");
    let health = server.get("/healthz").await.json();
    assert_eq!((&health["status"], &health["store"]["writable"]), (&json!("ok"), &json!(true)));
    assert!(
        health["warnings"][0].as_str().is_some_and(|warning| warning.starts_with("Redis uses 2")),
        "{health}"
    );
    assert_eq!(server.get("/readyz").await.status, 200);

    // Waiting tasks still run, and their events are stored.
    server.delete("/api/v1/handlers/job/pause").await;
    for id in &tasks {
        server
            .wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS")
            .await;
    }
    let made = server.get("/api/v1/events?after=0&return=made").await.json();
    assert_eq!(made["eventSnapshots"].as_array().map(Vec::len), Some(5), "{made}");
    assert_eq!(server.post("/api/v1/events", r#"{"type":"record"}"#).await.status, 503);

    redis.set_config("maxmemory", "0");
    let wait = tokio::time::timeout(crate::raw_http_client::TEST_TIMEOUT, emit_until_status(&server, 201));
    wait.await.expect("emits are accepted again");
    assert_eq!(server.get("/healthz").await.json().get("warnings"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_redis_is_reported_as_damaged() {
    let redis = RedisDatabase::start_own_server();
    let mut test_cluster = TestCluster::new(redis.url());
    let server = test_cluster
        .start_server("server", "", in_process_handler_setup("job", succeed_and_emit_made_event))
        .await;
    redis.run_command(&["FLUSHALL"]);
    let wait = tokio::time::timeout(crate::raw_http_client::TEST_TIMEOUT, emit_until_status(&server, 500));
    let refused = wait.await.expect("it is refused").json();
    assert!(
        refused["detail"].as_str().is_some_and(|warning| warning.contains("pointsman doctor")),
        "{refused}"
    );
    let ready = server.get("/readyz").await;
    let warning = ready.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(ready.status == 503 && warning.starts_with("the store is damaged"), "{warning}");
}
