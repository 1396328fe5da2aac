use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_engine::Setup;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::auth::tokens_yaml;
use crate::raw_http_client::TestResponse;
use crate::test_server::TestServer;

const PULL_CONFIG: &str = "
handlers:
  far: {run: pull, retry: {max: 3, delay: 0.001s}}
  near: {run: {command: ['true']}}
event_handlers: {far: [far]}
sources:
  shop: {collections: [{name: orders}]}
  theirs: {tenant: other, collections: [{name: orders}]}
";

async fn claim_tasks(server: &TestServer, body: &str) -> Value {
    let response = server.post("/api/v1/worker/claim", body).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["tasks"].clone()
}

/// Claims a task of `far`, after waiting for one if needed.
async fn claim_one_task(server: &TestServer) -> Value {
    let tasks = claim_tasks(server, r#"{"handlers":["far"],"wait":"60s"}"#).await;
    assert_eq!(tasks.as_array().expect("a list").len(), 1, "{tasks}");
    tasks[0].clone()
}

/// Sends a report about a claimed task, such as `heartbeat` or `done`, with the fence of the claim.
async fn send_task_report(server: &TestServer, task: &Value, call: &str, members: &Value) -> TestResponse {
    let mut body = json!({"fence": task["fence"]});
    body.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    server
        .post(&format!("/api/v1/worker/{}/{call}", task["id"].as_str().expect("a text")), &body.to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_claimed_renewed_and_completed_with_its_emits() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let id =
        server.emit_and_get_task_id(r#"{"type":"far.one","key":"k","value":{"n":1},"tenant":"shop"}"#).await;
    let task = claim_one_task(&server).await;
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
    let running = server.get(&path).await.json();
    assert_eq!(running["status"], "RUNNING");
    assert_ne!(running["running"]["lease_until"], "");

    let renewed = send_task_report(&server, &task, "heartbeat", &json!({"lease": "10m"})).await.json();
    assert!(renewed["lease_until"].as_str().unwrap() > task["lease_until"].as_str().unwrap(), "{renewed}");
    let lines = json!({"logs": ["plain", {"message": "loud", "level": "error"}]});
    assert_eq!(send_task_report(&server, &task, "logs", &lines).await.json(), json!({"logged": 2}));
    for kind in ["Torn", "task"] {
        let refused =
            send_task_report(&server, &task, "done", &json!({"emit": [{"type": "child"}, {"type": kind}]}))
                .await;
        assert_eq!(
            (refused.checked_problem_status(), &refused.json()["pointer"]),
            (422, &json!("/emit/1/type")),
            "{kind}"
        );
    }
    let end = json!({"result": {"ok": true}, "emit": [{"type": "child"}], "log": ["last"]});
    let ended = send_task_report(&server, &task, "done", &end).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!((&ended.json()["status"], &ended.json()["id"]), (&json!("SUCCESS"), &json!(id)));

    let child = server.get(&format!("/api/v1/events/{}", ended.json()["events"][0])).await.json();
    assert_eq!((&child["event"]["tenant"], &child["cause"]["task"]), (&json!("shop"), &json!(id)));
    let done = server.get(&path).await.json();
    assert_eq!((&done["result"], &done["attempts"][0]["end"]), (&json!({"ok": true}), &json!("succeeded")));
    let logs = server.get(&format!("/tasks/{id}/logs")).await.json();
    let messages: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|l| l["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["plain", "loud", "last"]);
    for (what, more) in [
        ("heartbeat", json!({})),
        ("logs", json!({"logs": ["x"]})),
        ("done", json!({})),
        ("snooze", json!({})),
    ] {
        assert_eq!(
            send_task_report(&server, &task, what, &more).await.checked_problem_status(),
            409,
            "{what}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_retried_and_a_snooze_costs_no_retry() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let id = server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let waits = server.get("/api/v1/handlers/far").await.json();
    assert!(waits["oldest_runnable_seconds"].is_number(), "{waits}");
    let task = claim_one_task(&server).await;
    let held = server.get("/api/v1/handlers/far").await.json();
    assert_eq!((&held["oldest_runnable_seconds"], &held["counts"]["running"]), (&json!(null), &json!(1)));
    let failed = send_task_report(&server, &task, "fail", &json!({"error": "no luck"})).await.json();
    assert_eq!((&failed["status"], &failed["state"]), (&json!("SCHEDULED"), &json!("new")));
    let task = claim_one_task(&server).await;
    assert_eq!((&task["attempt"], &task["retries"]), (&json!(2), &json!(1)));
    let until = "2000-01-01T00:00:00Z";
    assert_eq!(
        send_task_report(&server, &task, "snooze", &json!({"until": until})).await.json()["state"],
        "new"
    );
    let task = claim_one_task(&server).await;
    assert_eq!((&task["attempt"], &task["retries"]), (&json!(3), &json!(1)));
    let last =
        send_task_report(&server, &task, "fail", &json!({"error": "never", "retry": false})).await.json();
    assert_eq!((&last["status"], &last["delay_until"]), (&json!("FAILED"), &json!("")));
    assert_eq!(server.get(&format!("/tasks/{id}")).await.json()["error"], "never");

    let id = server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let task = claim_one_task(&server).await;
    let snoozed = send_task_report(&server, &task, "snooze", &json!({"for": "1h"})).await.json();
    assert!(!snoozed["delay_until"].as_str().unwrap().is_empty(), "{snoozed}");
    assert_eq!(server.get(&format!("/tasks/{id}")).await.json()["status"], "SCHEDULED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_without_a_run_is_pulled() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let id = server.post("/tasks?source=shop&collection=orders", "").await.json()["task_id"].clone();
    let tasks =
        claim_tasks(&server, r#"{"handlers":["far","shop"],"max":10,"wait":60,"lease":"PT5M"}"#).await;
    assert_eq!((&tasks[0]["id"], &tasks[0]["event"]), (&id, &json!(null)));
    assert_eq!((&tasks[0]["source"], &tasks[0]["collection"]), (&json!("shop"), &json!("orders")));
    let again = server.post("/tasks?source=shop&collection=orders", "").await;
    assert_eq!((again.status, &again.json()["task_id"]), (200, &id));
    let ended =
        send_task_report(&server, &tasks[0], "done", &json!({"emit": [{"type": "synced"}]})).await.json();
    let event = server.get(&format!("/api/v1/events/{}", ended["events"][0])).await.json();
    assert_eq!(event["cause"], json!({"eventId": null, "task": id, "depth": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_stale_fence_gets_409() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let id = server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let tasks = claim_tasks(&server, r#"{"handlers":["far"],"wait":"60s","lease":"1s"}"#).await;
    let lost = &tasks[0];
    // The lease expires and another worker gets the task; then the first worker reports.
    let task = claim_one_task(&server).await;
    assert_eq!((&task["id"], &task["attempt"], &task["retries"]), (&json!(id), &json!(2), &json!(0)));
    let stale = send_task_report(&server, lost, "done", &json!({"emit": [{"type": "ghost"}]})).await;
    assert_eq!((stale.checked_problem_status(), &stale.json()["pointer"]), (409, &json!("/fence")));
    assert_eq!(send_task_report(&server, lost, "heartbeat", &json!({})).await.checked_problem_status(), 409);
    assert_eq!(
        send_task_report(&server, lost, "logs", &json!({"logs": ["x"]})).await.checked_problem_status(),
        409
    );
    assert_eq!(server.get("/api/v1/events?limit=-1&return=ghost").await.json()["TYPE"], "Empty");
    server.post(&format!("/api/v1/tasks/{id}/cancel"), "").await;
    let canceled = send_task_report(&server, &task, "heartbeat", &json!({})).await;
    assert_eq!(canceled.checked_problem_status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_renews_by_the_claimed_lease_and_a_snooze_lasts_a_second() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let task = claim_tasks(&server, r#"{"handlers":["far"],"wait":"60s","lease":"1h"}"#).await[0].clone();
    let renewed = send_task_report(&server, &task, "heartbeat", &json!({})).await.json();
    assert!(renewed["lease_until"].as_str().unwrap() >= task["lease_until"].as_str().unwrap(), "{renewed}");
    let at = pointsman_engine::machine_clock_now();
    let snoozed = send_task_report(&server, &task, "snooze", &json!({"for": "0s"})).await.json();
    let due = snoozed["delay_until"].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(due >= at.plus(Duration::from_secs(1)), "{snoozed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_claim_leases_nothing() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let body = r#"{"handlers":["far"],"wait":"300s","lease":"1h"}"#;
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head =
            server.request_head("POST", "/api/v1/worker/claim", &[("content-type", "application/json")]);
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    assert_eq!(claim_tasks(&server, r#"{"handlers":["far"]}"#).await, json!([]), "there is nothing yet");
    server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let task = claim_one_task(&server).await;
    assert_eq!(send_task_report(&server, &task, "done", &json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_in_a_claim_have_pointers() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
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
        let response = server.post("/api/v1/worker/claim", body).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (status, &json!(pointer)),
            "{body}"
        );
    }
    let response = server.post("/api/v1/worker/claim", r#"{"handlers":["fra"]}"#).await.json();
    assert!(response["detail"].as_str().unwrap().contains("did you mean `far`"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_report_changes_nothing() {
    let server = TestServer::start_with_config(PULL_CONFIG, Setup::default()).await;
    let id = server.emit_and_get_task_id(r#"{"type":"far"}"#).await;
    let task = claim_one_task(&server).await;
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
        let response = send_task_report(&server, &task, what, &more).await;
        let pointed = response.json()["pointer"].clone();
        assert_eq!(
            (response.checked_problem_status(), pointed),
            (status, json!(pointer)),
            "{what} {more:.80}"
        );
    }
    assert_eq!(server.get("/api/v1/events?limit=-1&return=child").await.json()["TYPE"], "Empty");
    assert_eq!(server.get(&format!("/tasks/{id}")).await.json()["status"], "RUNNING");
    assert_eq!(
        send_task_report(&server, &json!({"id": "none", "fence": 1}), "done", &json!({}))
            .await
            .checked_problem_status(),
        404
    );
    assert_eq!(send_task_report(&server, &task, "done", &json!({"emit": [good]})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_token_bound_to_a_tenant_gets_only_the_tasks_of_the_tenant() {
    let list = [("root", "admin", None), ("ours", "worker", Some("shop")), ("all", "worker", None)];
    let mut server =
        TestServer::start_with_config(&format!("{PULL_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "root".into();
    server.emit(r#"[{"type":"far"},{"type":"far","tenant":"shop"}]"#).await;
    server.token = "ours".into();
    let own = claim_tasks(&server, r#"{"handlers":["far"],"max":10,"wait":"60s"}"#).await;
    assert_eq!((own.as_array().unwrap().len(), &own[0]["tenant"]), (1, &json!("shop")));
    server.token = "all".into();
    let foreign = claim_tasks(&server, r#"{"handlers":["far"],"max":10,"wait":"60s"}"#).await;
    server.token = "ours".into();
    assert_eq!(
        send_task_report(&server, &foreign[0], "done", &json!({})).await.checked_problem_status(),
        404
    );
    assert_eq!(
        send_task_report(&server, &foreign[0], "heartbeat", &json!({})).await.checked_problem_status(),
        404
    );
    assert_eq!(
        server.post("/api/v1/worker/claim", r#"{"handlers":["theirs"]}"#).await.checked_problem_status(),
        422
    );
    assert_eq!(send_task_report(&server, &own[0], "done", &json!({})).await.status, 200);
}
