use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_engine::Setup;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::auth::tokens;
use crate::client::Answer;
use crate::house::House;

const PULLED: &str = "
handlers:
  far: {run: pull, retry: {max: 3, delay: 0.001s}}
  near: {run: {command: ['true']}}
event_handlers: {far: [far]}
sources:
  shop: {collections: [{name: orders}]}
  theirs: {tenant: other, collections: [{name: orders}]}
";

async fn claim(house: &House, body: &str) -> Value {
    let answer = house.post("/api/v1/worker/claim", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["tasks"].clone()
}

/// Claims the one task there is.
async fn claim_one(house: &House) -> Value {
    let tasks = claim(house, r#"{"handlers":["far"],"wait":"60s"}"#).await;
    assert_eq!(tasks.as_array().expect("a list").len(), 1, "{tasks}");
    tasks[0].clone()
}

/// Says something about a task with the fence of its claim.
async fn say(house: &House, task: &Value, what: &str, more: &Value) -> Answer {
    let mut body = json!({"fence": task["fence"]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    house
        .post(&format!("/api/v1/worker/{}/{what}", task["id"].as_str().expect("a text")), &body.to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_fetched_kept_and_done_with_what_it_emits() {
    let house = House::with(PULLED, Setup::default()).await;
    let id = house.task_of(r#"{"type":"far.one","key":"k","value":{"n":1},"tenant":"shop"}"#).await;
    let task = claim_one(&house).await;
    for (member, value) in [
        ("id", json!(id)),
        ("attempt", json!(1)),
        ("retries", json!(0)),
        ("handler", json!("far")),
        ("source", json!("far")),
        ("collection", json!("far.one")),
        ("tenant", json!("shop")),
        ("key", json!("k")),
        ("planned_at", json!("")),
        ("prev_sent", json!(null)),
        ("late", json!(false)),
    ] {
        assert_eq!(task[member], value, "{member}");
    }
    assert_eq!((&task["event"]["TYPE"], &task["event"]["value"]), (&json!("far.one"), &json!({"n": 1})));
    let path = format!("/api/v1/tasks/{id}");
    let running = house.get(&path).await.json();
    assert_eq!(running["status"], "RUNNING");
    assert_ne!(running["running"]["lease_until"], "");

    let kept = say(&house, &task, "heartbeat", &json!({"lease": "10m"})).await.json();
    assert!(kept["lease_until"].as_str().unwrap() > task["lease_until"].as_str().unwrap(), "{kept}");
    let lines = json!({"logs": ["plain", {"message": "loud", "level": "error"}]});
    assert_eq!(say(&house, &task, "logs", &lines).await.json(), json!({"logged": 2}));
    for kind in ["Torn", "task"] {
        let refused = say(&house, &task, "done", &json!({"emit": [{"type": "child"}, {"type": kind}]})).await;
        assert_eq!((refused.problem(), &refused.json()["pointer"]), (422, &json!("/emit/1/type")), "{kind}");
    }
    let end = json!({"result": {"ok": true}, "emit": [{"type": "child"}], "log": ["last"]});
    let ended = say(&house, &task, "done", &end).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!((&ended.json()["status"], &ended.json()["id"]), (&json!("SUCCESS"), &json!(id)));

    let child = house.get(&format!("/api/v1/events/{}", ended.json()["events"][0])).await.json();
    assert_eq!((&child["event"]["tenant"], &child["cause"]["task"]), (&json!("shop"), &json!(id)));
    let done = house.get(&path).await.json();
    assert_eq!((&done["result"], &done["attempts"][0]["end"]), (&json!({"ok": true}), &json!("succeeded")));
    let logs = house.get(&format!("/tasks/{id}/logs")).await.json();
    let messages: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|l| l["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["plain", "loud", "last"]);
    for (what, more) in [
        ("heartbeat", json!({})),
        ("logs", json!({"logs": ["x"]})),
        ("done", json!({})),
        ("snooze", json!({})),
    ] {
        assert_eq!(say(&house, &task, what, &more).await.problem(), 409, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_and_a_snooze_costs_nothing() {
    let house = House::with(PULLED, Setup::default()).await;
    let id = house.task_of(r#"{"type":"far"}"#).await;
    let waits = house.get("/api/v1/handlers/far").await.json();
    assert!(waits["oldest_runnable_seconds"].is_number(), "{waits}");
    let task = claim_one(&house).await;
    let held = house.get("/api/v1/handlers/far").await.json();
    assert_eq!((&held["oldest_runnable_seconds"], &held["counts"]["running"]), (&json!(null), &json!(1)));
    let failed = say(&house, &task, "fail", &json!({"error": "no luck"})).await.json();
    assert_eq!((&failed["status"], &failed["state"]), (&json!("SCHEDULED"), &json!("new")));
    let task = claim_one(&house).await;
    assert_eq!((&task["attempt"], &task["retries"]), (&json!(2), &json!(1)));
    let until = "2000-01-01T00:00:00Z";
    assert_eq!(say(&house, &task, "snooze", &json!({"until": until})).await.json()["state"], "new");
    let task = claim_one(&house).await;
    assert_eq!((&task["attempt"], &task["retries"]), (&json!(3), &json!(1)));
    let last = say(&house, &task, "fail", &json!({"error": "never", "retry": false})).await.json();
    assert_eq!((&last["status"], &last["delay_until"]), (&json!("FAILED"), &json!("")));
    assert_eq!(house.get(&format!("/tasks/{id}")).await.json()["error"], "never");

    let id = house.task_of(r#"{"type":"far"}"#).await;
    let task = claim_one(&house).await;
    let snoozed = say(&house, &task, "snooze", &json!({"for": "1h"})).await.json();
    assert!(!snoozed["delay_until"].as_str().unwrap().is_empty(), "{snoozed}");
    assert_eq!(house.get(&format!("/tasks/{id}")).await.json()["status"], "SCHEDULED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_without_a_run_is_pulled() {
    let house = House::with(PULLED, Setup::default()).await;
    let id = house.post("/tasks?source=shop&collection=orders", "").await.json()["task_id"].clone();
    let tasks = claim(&house, r#"{"handlers":["far","shop"],"max":10,"wait":60,"lease":"PT5M"}"#).await;
    assert_eq!((&tasks[0]["id"], &tasks[0]["event"]), (&id, &json!(null)));
    assert_eq!((&tasks[0]["source"], &tasks[0]["collection"]), (&json!("shop"), &json!("orders")));
    let again = house.post("/tasks?source=shop&collection=orders", "").await;
    assert_eq!((again.status, &again.json()["task_id"]), (200, &id));
    let ended = say(&house, &tasks[0], "done", &json!({"emit": [{"type": "synced"}]})).await.json();
    let event = house.get(&format!("/api/v1/events/{}", ended["events"][0])).await.json();
    assert_eq!(event["cause"], json!({"eventId": null, "task": id, "depth": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_too_late_is_told_so() {
    let house = House::with(PULLED, Setup::default()).await;
    let id = house.task_of(r#"{"type":"far"}"#).await;
    let tasks = claim(&house, r#"{"handlers":["far"],"wait":"60s","lease":"1s"}"#).await;
    let lost = &tasks[0];
    // The lease runs out, and the task goes to another; only then the first one comes back.
    let task = claim_one(&house).await;
    assert_eq!((&task["id"], &task["attempt"], &task["retries"]), (&json!(id), &json!(2), &json!(0)));
    let stale = say(&house, lost, "done", &json!({"emit": [{"type": "ghost"}]})).await;
    assert_eq!((stale.problem(), &stale.json()["pointer"]), (409, &json!("/fence")));
    assert_eq!(say(&house, lost, "heartbeat", &json!({})).await.problem(), 409);
    assert_eq!(say(&house, lost, "logs", &json!({"logs": ["x"]})).await.problem(), 409);
    assert_eq!(house.get("/api/v1/events?limit=-1&return=ghost").await.json()["TYPE"], "Empty");
    house.post(&format!("/api/v1/tasks/{id}/cancel"), "").await;
    let canceled = say(&house, &task, "heartbeat", &json!({})).await;
    assert_eq!(canceled.problem(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_renews_for_as_long_as_the_claim_and_a_snooze_is_no_tight_loop() {
    let house = House::with(PULLED, Setup::default()).await;
    house.task_of(r#"{"type":"far"}"#).await;
    let task = claim(&house, r#"{"handlers":["far"],"wait":"60s","lease":"1h"}"#).await[0].clone();
    let kept = say(&house, &task, "heartbeat", &json!({})).await.json();
    assert!(kept["lease_until"].as_str().unwrap() >= task["lease_until"].as_str().unwrap(), "{kept}");
    let at = pointsman_engine::now();
    let snoozed = say(&house, &task, "snooze", &json!({"for": "0s"})).await.json();
    let due = snoozed["delay_until"].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(due >= at.plus(Duration::from_secs(1)), "{snoozed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_while_waiting_gets_nothing() {
    let house = House::with(PULLED, Setup::default()).await;
    let body = r#"{"handlers":["far"],"wait":"300s","lease":"1h"}"#;
    for _ in 0..3 {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        let head = house.head("POST", "/api/v1/worker/claim", &[("content-type", "application/json")]);
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    assert_eq!(claim(&house, r#"{"handlers":["far"]}"#).await, json!([]), "there is nothing yet");
    house.task_of(r#"{"type":"far"}"#).await;
    let task = claim_one(&house).await;
    assert_eq!(say(&house, &task, "done", &json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_checked_by_its_place() {
    let house = House::with(PULLED, Setup::default()).await;
    let many = format!(r#"{{"handlers":{}}}"#, json!(vec!["far"; 257]));
    for (body, status, pointer) in [
        ("", 400, "/handlers"),
        (r#"{"handlers":[]}"#, 400, "/handlers"),
        (&many, 400, "/handlers"),
        (r#"{"handlers":"far"}"#, 400, "/handlers"),
        (r#"{"handlers":["far","a b"]}"#, 400, "/handlers/1"),
        (r#"{"handlers":["far","fra"]}"#, 422, "/handlers/1"),
        (r#"{"handlers":["near"]}"#, 422, "/handlers/0"),
        (r#"{"handlers":["far"],"max":0}"#, 400, "/max"),
        (r#"{"handlers":["far"],"max":257}"#, 400, "/max"),
        (r#"{"handlers":["far"],"max":"1"}"#, 400, "/max"),
        (r#"{"handlers":["far"],"wait":"301s"}"#, 400, "/wait"),
        (r#"{"handlers":["far"],"wait":"1d"}"#, 400, "/wait"),
        (r#"{"handlers":["far"],"wait":-1}"#, 400, "/wait"),
        (r#"{"handlers":["far"],"lease":"0.5"}"#, 400, "/lease"),
        (r#"{"handlers":["far"],"lease":"1h1s"}"#, 400, "/lease"),
        (r#"{"handlers":["far"],"leese":"1h"}"#, 400, "/leese"),
        ("[]", 400, ""),
    ] {
        let answer = house.post("/api/v1/worker/claim", body).await;
        assert_eq!((answer.problem(), &answer.json()["pointer"]), (status, &json!(pointer)), "{body}");
    }
    let answer = house.post("/api/v1/worker/claim", r#"{"handlers":["fra"]}"#).await.json();
    assert!(answer["detail"].as_str().unwrap().contains("did you mean `far`"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_fault_in_it_nothing_is_done() {
    let house = House::with(PULLED, Setup::default()).await;
    let id = house.task_of(r#"{"type":"far"}"#).await;
    let task = claim_one(&house).await;
    let good = json!({"type": "child"});
    for (what, more, status, pointer) in [
        ("done", json!({"emit": [good, {"type": "a..b"}]}), 400, "/emit/1/type"),
        ("done", json!({"emit": [good, {"type": "OrderStarted"}]}), 422, "/emit/1/type"),
        ("done", json!({"emit": [good, {"type": "a", "tenant": "other"}]}), 422, "/emit/1/tenant"),
        ("done", json!({"emit": {}}), 400, "/emit"),
        ("done", json!({"emit": vec![good.clone(); 1001]}), 400, "/emit"),
        ("done", json!({"log": [{"level": "info"}]}), 400, "/log/0/message"),
        ("done", json!({"result": "x".repeat(70_000)}), 400, "/result"),
        ("done", json!({"fence": "1"}), 400, "/fence"),
        ("done", json!({"fence": null}), 400, "/fence"),
        ("done", json!({"done": true}), 400, "/done"),
        ("fail", json!({}), 400, "/error"),
        ("fail", json!({"error": "x", "after": "soon"}), 400, "/after"),
        ("fail", json!({"error": "x", "retry": 1}), 400, "/retry"),
        ("snooze", json!({"for": "1h", "until": "2030-01-01T00:00:00Z"}), 400, "/until"),
        ("snooze", json!({"until": "later"}), 400, "/until"),
        ("heartbeat", json!({"lease": "2h"}), 400, "/lease"),
        ("logs", json!({}), 400, "/logs"),
        ("logs", json!({"logs": [{"message": "x", "level": "loud"}]}), 400, "/logs/0/level"),
    ] {
        let answer = say(&house, &task, what, &more).await;
        let pointed = answer.json()["pointer"].clone();
        assert_eq!((answer.problem(), pointed), (status, json!(pointer)), "{what} {more:.80}");
    }
    assert_eq!(house.get("/api/v1/events?limit=-1&return=child").await.json()["TYPE"], "Empty");
    assert_eq!(house.get(&format!("/tasks/{id}")).await.json()["status"], "RUNNING");
    assert_eq!(say(&house, &json!({"id": "none", "fence": 1}), "done", &json!({})).await.problem(), 404);
    assert_eq!(say(&house, &task, "done", &json!({"emit": [good]})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_worker_touches_only_its_tenants_tasks() {
    let list = [("root", "admin", None), ("ours", "worker", Some("shop")), ("all", "worker", None)];
    let mut house = House::with(&format!("{PULLED}{}", tokens(&list)), Setup::default()).await;
    house.token = "root".into();
    house.emit(r#"[{"type":"far"},{"type":"far","tenant":"shop"}]"#).await;
    house.token = "ours".into();
    let own = claim(&house, r#"{"handlers":["far"],"max":10,"wait":"60s"}"#).await;
    assert_eq!((own.as_array().unwrap().len(), &own[0]["tenant"]), (1, &json!("shop")));
    house.token = "all".into();
    let foreign = claim(&house, r#"{"handlers":["far"],"max":10,"wait":"60s"}"#).await;
    house.token = "ours".into();
    assert_eq!(say(&house, &foreign[0], "done", &json!({})).await.problem(), 404);
    assert_eq!(say(&house, &foreign[0], "heartbeat", &json!({})).await.problem(), 404);
    assert_eq!(house.post("/api/v1/worker/claim", r#"{"handlers":["theirs"]}"#).await.problem(), 422);
    assert_eq!(say(&house, &own[0], "done", &json!({})).await.status, 200);
}
