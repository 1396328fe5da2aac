use pointsman_engine::{HandlerOutcome, Setup};
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::test_server::{TestServer, in_process_handler_setup};

fn find_gate<'a>(why: &'a Value, name: &str) -> &'a Value {
    let gates = why["gates"].as_array().expect("a list");
    gates.iter().find(|gate| gate["gate"] == name).unwrap_or_else(|| panic!("no gate {name} in {why}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_task_names_the_gate_that_blocks_it() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let delayed = server.emit_and_get_task_id(r#"{"type":"job","key":"k","delay":"1h"}"#).await;
    server.put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    let next = server.emit_and_get_task_id(r#"{"type":"job","key":"k"}"#).await;

    let why = server.get(&format!("/api/v1/tasks/{delayed}/why")).await.json();
    assert_eq!((&why["task_id"], &why["status"]), (&json!(delayed), &json!("SCHEDULED")));
    assert!(why["eventId"].is_u64());
    let due = find_gate(&why, "due");
    assert_eq!((&due["open"], due["until"].as_str().unwrap().is_empty()), (&json!(false), false));
    let rule = find_gate(&why, "rule");
    assert_eq!((&rule["open"], &rule["rule"]["kind"]), (&json!(false), &json!("pause")));
    assert_eq!((&rule["rule"]["reason"], &rule["rule"]["name"]), (&json!("lunch"), &json!("job")));
    assert_eq!(find_gate(&why, "handler")["open"], true);

    let why = server.get(&format!("/api/v1/tasks/{next}/why")).await.json();
    assert_eq!(find_gate(&why, "lane")["tasks"], json!([delayed]));
    assert_eq!(why["summary"], find_gate(&why, "lane")["detail"], "the detail of the first closed gate");
    assert_eq!(server.get("/api/v1/tasks/none/why").await.checked_problem_status(), 404);
    assert_eq!(server.get(&format!("/api/v1/tasks/{next}/why?x=1")).await.checked_problem_status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_and_ended_tasks_have_a_summary_and_no_gates() {
    let config = "
handlers:
  stay: {run: {command: ['sleep', '600']}}
  fails: {run: {command: ['false']}, retry: {max: 0}}
event_handlers: {stay: [stay], fails: [fails]}
";
    let server = TestServer::start_with_config(config, Setup::default()).await;
    let stay = server.emit_and_get_task_id(r#"{"type":"stay"}"#).await;
    let fails = server.emit_and_get_task_id(r#"{"type":"fails"}"#).await;
    let path = format!("/api/v1/tasks/{stay}");
    let task = server.wait_until_get_returns(&path, |task| task["status"] == "RUNNING").await;
    assert_eq!((&task["running"]["number"], &task["running"]["lease_until"]), (&json!(1), &json!("")));
    assert_eq!((&task["running"]["started_at"], &task["attempts"]), (&task["started_at"], &json!([])));
    let why = server.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["gates"]), (&json!("RUNNING"), &json!([])));
    assert!(why["summary"].as_str().unwrap().contains("attempt 1"), "{why}");

    server.post(&format!("{path}/cancel"), "").await;
    let why = server.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["gates"]), (&json!("CANCELED"), &json!([])));
    assert!(why["summary"].as_str().unwrap().contains("cancelled"), "{why}");
    assert_eq!(server.get(&path).await.json()["running"], json!(null));

    let path = format!("/api/v1/tasks/{fails}/why");
    let why = server.wait_until_get_returns(&path, |why| why["status"] == "FAILED").await;
    assert_eq!(why["gates"], json!([]));
    assert!(why["summary"].as_str().unwrap().contains("failed"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_sees_nothing_of_other_tenants() {
    let config = "
handlers:
  stay: {run: {command: ['sleep', '600']}, concurrency: 1}
event_handlers: {stay: [stay]}
";
    let list = [("rootadmin", "admin", None), ("shop", "viewer", Some("shop"))];
    let mut server =
        TestServer::start_with_config(&format!("{config}{}", tokens_yaml(&list)), Setup::default()).await;
    server.token = "rootadmin".into();
    let theirs = server.emit_and_get_task_id(r#"{"type":"stay","tenant":"other"}"#).await;
    server
        .wait_until_get_returns(&format!("/api/v1/tasks/{theirs}"), |task| task["status"] == "RUNNING")
        .await;
    let ours = server.emit_and_get_task_id(r#"{"type":"stay","key":"k","tenant":"shop"}"#).await;
    let next = server.emit_and_get_task_id(r#"{"type":"stay","key":"k","tenant":"shop"}"#).await;
    server.put("/api/v1/handlers/stay/pause", r#"{"reason":"lunch"}"#).await;
    let path = format!("/api/v1/tasks/{next}/why");
    let full_response = server.get(&path).await;
    assert_eq!(find_gate(&full_response.json(), "concurrency")["tasks"], json!([theirs]));
    assert!(
        full_response.text().contains("rootadmin") && full_response.text().contains("pointsman-"),
        "{full_response:?}"
    );

    server.token = "shop".into();
    let response = server.get(&path).await;
    for secret in [theirs.as_str(), "rootadmin", "pointsman-"] {
        assert!(!response.text().contains(secret), "{secret} in {}", response.text());
    }
    let why = response.json();
    let concurrency = find_gate(&why, "concurrency");
    assert_eq!((&concurrency["open"], &concurrency["tasks"]), (&json!(false), &json!([])));
    let detail = concurrency["detail"].as_str().unwrap();
    assert!(
        detail.contains("1 of at most 1") && detail.contains("one of the blocking tasks is not shown"),
        "{detail}"
    );
    assert_eq!(find_gate(&why, "lane")["tasks"], json!([ours]), "a task of its own tenant is shown");
    let rule = find_gate(&why, "rule");
    assert_eq!((&rule["rule"]["kind"], &rule["rule"]["by"]), (&json!("pause"), &json!("")));
    assert!(rule["detail"].as_str().unwrap().contains("all tenants"), "{rule}");
    let handler = server.get("/api/v1/handlers/stay").await.json();
    assert_eq!((&handler["rules"][0]["by"], &handler["rules"][0]["reason"]), (&json!(""), &json!("lunch")));
}
