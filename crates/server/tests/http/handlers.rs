use pointsman_engine::Outcome;
use serde_json::json;

use crate::house::{House, handler};

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_shows_how_it_runs_and_what_waits() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    house.emit(r#"{"type":"job.one","delay":"1h"}"#).await;
    let body = house.get("/api/v1/handlers/job").await.json();
    assert_eq!((&body["run"], &body["defined"]), (&json!("in-process"), &json!(true)));
    assert_eq!(body["routes"], json!([{"type": "job", "sync": false}]));
    assert_eq!(body["counts"]["waiting"], 1);
    assert_eq!(body["queues"][0]["tenant"], "default");
    assert!(body["eventId"].is_u64());
    let list = house.get("/api/v1/handlers").await.json();
    assert_eq!(list["handlers"][0]["name"], "job");
    assert_eq!(house.get("/api/v1/handlers/none").await.problem(), 404);
    assert_eq!(house.get("/api/v1/handlers/a%20b").await.problem(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_and_block_hold_until_both_are_lifted() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    let put = async |path: &str, body: &str| {
        house.call("PUT", path, &[("content-type", "application/json")], body.as_bytes()).await
    };
    let paused = put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    assert_eq!(paused.json()["rules"][0]["reason"], "lunch");
    assert_eq!(put("/api/v1/handlers/job/block", "").await.status, 200);

    let id = house.emit(r#"{"type":"job"}"#).await;
    let path = format!("/api/v1/events/{id}");
    assert_eq!(house.call("DELETE", "/api/v1/handlers/job/pause", &[], b"").await.status, 200);
    assert_eq!(house.get(&path).await.json()["tasks"][0]["status"], "SCHEDULED");
    assert_eq!(house.get("/api/v1/handlers/job").await.json()["queues"][0]["held"], true);
    assert_eq!(house.call("DELETE", "/api/v1/handlers/job/block", &[], b"").await.status, 200);
    house.until(&path, |event| event["tasks"][0]["status"] == "SUCCESS").await;

    assert_eq!(put("/api/v1/handlers/none/pause", "").await.problem(), 404);
    let answer = put("/api/v1/handlers/job/pause", r#"{"tenant":"a b"}"#).await;
    assert_eq!((answer.problem(), &answer.json()["pointer"]), (400, &json!("/tenant")));
    assert_eq!(put("/api/v1/handlers/job/pause", r#"{"who":"me"}"#).await.problem(), 400);
    assert_eq!(put("/api/v1/handlers/job/pause", "[").await.problem(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopting_nothing_is_no_fault() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    let answer = house.post("/api/v1/handlers/job/adopt", "").await;
    assert_eq!((answer.status, answer.json()), (200, json!({"adopted": 0})));
    assert_eq!(house.post("/api/v1/handlers/none/adopt", "").await.problem(), 404);
}
