//! What Redis alone has: settings by which it loses what it has acknowledged, and memory that is full.

use pointsman_core::{HandlingKey, NewEvent};
use pointsman_engine::{Delivery, Outcome, Setup};
use pointsman_testing::{RedisCluster, RedisSentinel, RedisSettings};
use serde_json::json;

use super::database::{Database, Redis};
use super::{Town, job};
use crate::house::{House, handler};

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_can_lose_data_says_so() {
    let redis = Redis::start(RedisSettings::with(&[("appendfsync", "everysec")]));
    let mut town = Town::on(redis.url());
    let house = town.house("server", "", Setup::default()).await;
    let health = house.get("/healthz").await.json();
    assert_eq!(health["status"], "ok", "it works");
    let told =
        "appendfsync is everysec: a machine that crashes loses what was acknowledged in its last second";
    assert_eq!(health["warnings"], json!([told]));
    assert_eq!(house.get("/readyz").await.json()["warnings"], json!([told]));
    assert_eq!(house.get("/livez").await.json().get("warnings"), None);

    // Settings are looked at once a minute, and on every new connection.
    redis.set("appendfsync", "always");
    redis.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    house.until("/healthz", |health| health.get("warnings").is_none() && health["status"] == "ok").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_a_cluster_and_a_master_behind_sentinels() {
    let (cluster, sentinel) =
        (RedisCluster::start().expect("a cluster"), RedisSentinel::start().expect("sentinels"));
    for url in [cluster.url(), sentinel.url()] {
        let mut town = Town::on(url);
        let back = town.house("back", "", job()).await;
        let front = town.house("front", "", Setup::default()).await;
        let id = front.task_of(r#"{"type":"job","key":"k"}"#).await;
        back.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
        assert_eq!(front.get("/healthz").await.json()["store"]["kind"], "redis");
    }
}

/// Ends well, and emits.
fn make(_: &Delivery) -> Outcome {
    let made = NewEvent::of(HandlingKey::new("made").expect("a type"));
    Outcome { emits: vec![made], ..Outcome::done() }
}

fn used(redis: &Redis) -> u64 {
    let told = redis.command(&["INFO", "memory"]).text().expect("figures");
    let used = told.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a figure");
    used.parse().expect("a number")
}

/// How an emit is answered once this is so.
async fn answered(house: &House, status: u16) -> crate::client::Answer {
    loop {
        let answer = house.post("/api/v1/events", r#"{"type":"record"}"#).await;
        if answer.status == status {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_takes_nothing_in_and_works_off_what_waits() {
    let redis = Redis::own();
    redis.command(&["SET", "filler", &"x".repeat(20 << 20)]);
    let mut town = Town::on(redis.url());
    let house = town.house("server", "", handler("job", make)).await;
    house.put("/api/v1/handlers/job/pause", "{}").await;
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(house.task_of(r#"{"type":"job"}"#).await);
    }
    redis.set("maxmemory", &(used(&redis) * 10 / 9).to_string());
    let wait = tokio::time::timeout(crate::client::HANGS, answered(&house, 503));
    let refused = wait.await.expect("it is refused");
    assert_eq!((refused.problem(), refused.header("retry-after")), (503, Some("1")));
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.starts_with("the store is full: Redis uses 2"), "{detail}");
    assert!(detail.contains("raise maxmemory") && detail.ends_with("nothing was changed"), "{detail}");
    let health = house.get("/healthz").await.json();
    assert_eq!((&health["status"], &health["store"]["writable"]), (&json!("ok"), &json!(true)));
    assert!(health["warnings"][0].as_str().is_some_and(|told| told.starts_with("Redis uses 2")), "{health}");
    assert_eq!(house.get("/readyz").await.status, 200);

    // What waits is worked off, with all that it emits.
    house.delete("/api/v1/handlers/job/pause").await;
    for id in &tasks {
        house.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    }
    let made = house.get("/api/v1/events?after=0&return=made").await.json();
    assert_eq!(made["eventSnapshots"].as_array().map(Vec::len), Some(5), "{made}");
    assert_eq!(house.post("/api/v1/events", r#"{"type":"record"}"#).await.status, 503);

    redis.set("maxmemory", "0");
    let wait = tokio::time::timeout(crate::client::HANGS, answered(&house, 201));
    wait.await.expect("it is taken in again");
    assert_eq!(house.get("/healthz").await.json().get("warnings"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_emptied_is_called_damaged_and_not_silent() {
    let redis = Redis::own();
    let mut town = Town::on(redis.url());
    let house = town.house("server", "", handler("job", make)).await;
    redis.command(&["FLUSHALL"]);
    let wait = tokio::time::timeout(crate::client::HANGS, answered(&house, 500));
    let refused = wait.await.expect("it is refused").json();
    assert!(refused["detail"].as_str().is_some_and(|told| told.contains("pointsman doctor")), "{refused}");
    let ready = house.get("/readyz").await;
    let told = ready.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(ready.status == 503 && told.starts_with("the store is damaged"), "{told}");
}
