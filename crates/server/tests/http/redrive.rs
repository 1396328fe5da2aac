use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_engine::{HandlerOutcome, Setup};
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::test_server::{TestServer, in_process_handler_setup};

/// A setup with the handler `job`, which fails until the returned switch is set.
fn failing_handler_setup_with_switch() -> (Setup, Arc<AtomicBool>) {
    let works = Arc::new(AtomicBool::new(false));
    let switch = works.clone();
    let act = move |_: &_| match switch.load(Ordering::SeqCst) {
        true => HandlerOutcome::succeeded(),
        false => HandlerOutcome::failed("not yet"),
    };
    (in_process_handler_setup("job", act), works)
}

fn count_listed_tasks(list: &Value) -> usize {
    list["tasks"].as_array().expect("a list").len()
}

async fn emit_and_fail_tasks(server: &TestServer, count: usize) {
    server.emit(&format!("[{}]", vec![r#"{"type":"job"}"#; count].join(","))).await;
    server
        .wait_until_get_returns("/api/v1/tasks?status=FAILED&limit=1000", |list| {
            count_listed_tasks(list) == count
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_tasks_are_counted_and_then_run_again() {
    let (setup, works) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    emit_and_fail_tasks(&server, 30).await;
    let dry = server.post("/api/v1/tasks/redrive", r#"{"handler":"job","dry_run":true}"#).await;
    let body = dry.json();
    assert_eq!((dry.status, &body["matched"], &body["dry_run"]), (200, &json!(30), &json!(true)));
    assert!(!body["sample"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/api/v1/redrives").await.json(), json!({"redrives": []}));

    works.store(true, Ordering::SeqCst);
    let started =
        server.post("/api/v1/tasks/redrive", r#"{"source":"job","rate":"1000/s","canary":2}"#).await;
    assert_eq!(started.status, 202, "{started:?}");
    let path = format!("/api/v1/redrives/{}", started.json()["id"].as_str().unwrap());
    let job = server.wait_until_get_returns(&path, |job| job["state"] == "done").await;
    assert_eq!((&job["matched"], &job["retried"], &job["refused"]), (&json!(30), &json!(30), &json!(0)));
    server
        .wait_until_get_returns("/api/v1/tasks?status=SUCCESS&limit=1000", |list| {
            count_listed_tasks(list) == 30
        })
        .await;
    assert_eq!(server.get("/api/v1/redrives").await.json()["redrives"][0], job);
    assert_eq!(server.delete(&path).await.json(), job, "stopping one that has ended succeeds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_canary_stops_the_redrive() {
    let (setup, _) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    emit_and_fail_tasks(&server, 10).await;
    let started = server.post("/api/v1/tasks/redrive", r#"{"handler":"job","canary":1}"#).await.json();
    let path = format!("/api/v1/redrives/{}", started["id"].as_str().unwrap());
    let job = server.wait_until_get_returns(&path, |job| job["state"] == "stopped").await;
    assert_eq!(job["retried"], 1);
    assert!(job["stop_reason"].as_str().unwrap().contains("failed again"), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_redrive_can_be_stopped() {
    let (setup, _) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    emit_and_fail_tasks(&server, 5).await;
    let started = server.post("/api/v1/tasks/redrive", r#"{"handler":"job","rate":"1/d"}"#).await.json();
    let path = format!("/api/v1/redrives/{}", started["id"].as_str().unwrap());
    server.wait_until_get_returns(&path, |job| job["retried"] == 1).await;
    assert_eq!(server.delete(&path).await.status, 200);
    let job = server.wait_until_get_returns(&path, |job| job["state"] == "stopped").await;
    assert_eq!(job["retried"], 1);
    assert_ne!(job["ended_at"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_filters_are_rejected_with_a_pointer() {
    let server = TestServer::start().await;
    for (body, status, pointer) in [
        (r#"{"status":"missing"}"#, 422, "/status"),
        (r#"{"status":"RUNNING"}"#, 422, "/status"),
        (r#"{"status":"Failed"}"#, 400, "/status"),
        (r#"{"handler":"a b"}"#, 400, "/handler"),
        (r#"{"handler":"a","source":"b"}"#, 400, "/source"),
        (r#"{"start":"now"}"#, 400, "/start"),
        (r#"{"start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}"#, 400, "/end"),
        (r#"{"rate":"10"}"#, 400, "/rate"),
        (r#"{"rate":10}"#, 400, "/rate"),
        (r#"{"canary":0}"#, 400, "/canary"),
        (r#"{"canary":-1}"#, 400, "/canary"),
        (r#"{"dry_run":"yes"}"#, 400, "/dry_run"),
        (r#"{"filter":{}}"#, 400, "/filter"),
        (r#"{"collection":"a b"}"#, 400, "/collection"),
        (r#"{"collection":""}"#, 400, "/collection"),
        (r#"{"all":"yes"}"#, 400, "/all"),
        (r#"{"all":true,"collection":"a"}"#, 422, "/all"),
        (r#"{"handler":"nosuch"}"#, 404, "/handler"),
        (r#"{"source":"nosuch","dry_run":true}"#, 404, "/source"),
        (r#"[]"#, 400, ""),
    ] {
        let response = server.post("/api/v1/tasks/redrive", body).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (status, &json!(pointer)),
            "{body}"
        );
    }
    let response = server.post("/api/v1/tasks/redrive", r#"{"status":"missing"}"#).await.json();
    assert!(response["detail"].as_str().unwrap().contains("adopt"), "{response}");
    assert_eq!(server.get("/api/v1/redrives/none").await.checked_problem_status(), 404);
    assert_eq!(server.delete("/api/v1/redrives/none").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_without_a_filter_needs_all() {
    let (setup, _) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    emit_and_fail_tasks(&server, 2).await;
    for body in ["", "{}", r#"{"status":"FAILED","rate":"1/d"}"#, r#"{"all":false}"#, r#"{"dry_run":true}"#] {
        let response = server.post("/api/v1/tasks/redrive", body).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (422, &json!("")),
            "{body}"
        );
        assert!(response.json()["detail"].as_str().unwrap().contains("\"all\": true"), "{response:?}");
    }
    assert_eq!(server.get("/api/v1/redrives").await.json(), json!({"redrives": []}));
    let dry = server.post("/api/v1/tasks/redrive", r#"{"all":true,"dry_run":true}"#).await.json();
    assert_eq!(dry["matched"], 2);
    let by_type = server.post("/api/v1/tasks/redrive", r#"{"collection":"job","dry_run":true}"#).await.json();
    assert_eq!(by_type["matched"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_shows_its_filter() {
    let (setup, _) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    emit_and_fail_tasks(&server, 1).await;
    let filter =
        r#"{"source":"job","tenant":"default","start":"2026-01-01T00:00:00Z","rate":"1/d","canary":3}"#;
    let job = server.post("/api/v1/tasks/redrive", filter).await.json();
    assert_eq!(
        job["filter"],
        json!({"handler": "job", "collection": null, "tenant": "default", "key": null, "status": "FAILED",
            "start": "2026-01-01T00:00:00.000000Z", "end": null})
    );
    assert_eq!((&job["rate"], &job["canary"]), (&json!("1/d"), &json!(3)));
    let canceled = r#"{"all":true,"status":"CANCELED"}"#;
    let job = server.post("/api/v1/tasks/redrive", canceled).await.json();
    assert_eq!((&job["filter"]["status"], &job["filter"]["handler"]), (&json!("CANCELED"), &json!(null)));
    assert_eq!((&job["rate"], &job["canary"]), (&json!(null), &json!(null)));

    let response = server.post("/api/v1/tasks/redrive", r#"{"handler":"jbo"}"#).await;
    assert_eq!(response.checked_problem_status(), 404);
    assert!(response.json()["detail"].as_str().unwrap().contains("did you mean `job`"), "{response:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redrives_beyond_the_limit_are_refused() {
    let (setup, _) = failing_handler_setup_with_switch();
    let server = TestServer::start_with_config("", setup).await;
    // Two tasks for each tenant, so that no slow redrive finishes.
    for tenant in 0..12 {
        let one = format!(r#"{{"type":"job","tenant":"t{tenant}"}}"#);
        server.emit(&format!("[{one},{one}]")).await;
    }
    server
        .wait_until_get_returns("/api/v1/tasks?status=FAILED&limit=1000", |list| {
            count_listed_tasks(list) == 24
        })
        .await;
    let slow = |tenant: usize| format!(r#"{{"tenant":"t{tenant}","rate":"1/d"}}"#);
    let mut started = Vec::new();
    let refused = loop {
        let response = server.post("/api/v1/tasks/redrive", &slow(started.len())).await;
        match response.status {
            202 if started.len() < 11 => started.push(response.json()["id"].as_str().unwrap().to_owned()),
            _ => break response,
        }
    };
    assert_eq!(refused.checked_problem_status(), 409);
    assert!(!started.is_empty());
    let again = server.post("/api/v1/tasks/redrive", &slow(0)).await;
    assert_eq!(again.checked_problem_status(), 409);
    assert!(
        again.json()["detail"].as_str().unwrap().contains(&started[0]),
        "the error names the running redrive"
    );
    let audit = server.get("/api/v1/audit").await.json();
    assert_eq!(audit["entries"].as_array().unwrap().len(), started.len(), "refused redrives are not audited");

    let path = format!("/api/v1/redrives/{}", started[0]);
    server.delete(&path).await;
    server.wait_until_get_returns(&path, |job| job["state"] == "stopped").await;
    assert_eq!(server.post("/api/v1/tasks/redrive", &slow(11)).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_redrives_only_the_tasks_of_the_tenant() {
    let list = [("root", "admin", None), ("shop", "operator", Some("shop"))];
    let (setup, _) = failing_handler_setup_with_switch();
    let mut server = TestServer::start_with_config(&tokens_yaml(&list), setup).await;
    server.token = "root".into();
    server.emit(r#"[{"type":"job"},{"type":"job","tenant":"shop"}]"#).await;
    server.wait_until_get_returns("/api/v1/tasks?status=FAILED", |list| count_listed_tasks(list) == 2).await;
    let all = server.post("/api/v1/tasks/redrive", r#"{"all":true,"rate":"1/d"}"#).await.json();
    server.token = "shop".into();
    let dry = server.post("/api/v1/tasks/redrive", r#"{"all":true,"dry_run":true}"#).await.json();
    assert!(dry["matched"].as_u64().unwrap() <= 1, "{dry}");
    assert_eq!(
        server.post("/api/v1/tasks/redrive", r#"{"tenant":"other"}"#).await.checked_problem_status(),
        403
    );
    let path = format!("/api/v1/redrives/{}", all["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/redrives").await.json(), json!({"redrives": []}));
}
