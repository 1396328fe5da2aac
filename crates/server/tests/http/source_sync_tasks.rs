use std::collections::BTreeSet;

use pointsman_core::Timestamp;
use pointsman_engine::{HandlerOutcome, Setup};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::auth::tokens_yaml;
use crate::raw_http_client::TEST_TIMEOUT;
use crate::stream::SseClient;
use crate::test_server::{TestServer, in_process_handler_setup, write_config_and_get_inputs};

const ALL_TIME_QUERY: &str = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z";

/// Three sources: one that prints and ends, one that keeps running, one of another tenant.
const SOURCES_CONFIG: &str = "
sources:
  quick:
    run: {command: ['sh', '-c', 'echo one; echo one; echo two >&2']}
    collections: [{name: orders, priority: 200}, {name: customers}]
  slow:
    run: {command: ['sleep', '600']}
    collections: [{name: orders}]
  theirs:
    run: {command: ['true']}
    tenant: other
    collections: [{name: orders}]
";

async fn run_collection_and_get_task_id(server: &TestServer, source: &str, collection: &str) -> String {
    let response = server.post(&format!("/tasks?source={source}&collection={collection}"), "").await;
    assert_eq!(response.status, 201, "{response:?}");
    response.json()["task_id"].as_str().expect("an id").to_owned()
}

fn task_ids(list: &Value) -> Vec<String> {
    list["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| task["id"].as_str().expect("a text").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_synchronised_on_request() {
    let server = TestServer::start_with_config(SOURCES_CONFIG, Setup::default()).await;
    let id = run_collection_and_get_task_id(&server, "quick", "orders").await;
    assert!(id.starts_with("quick_orders_"), "{id}");
    let task =
        server.wait_until_get_returns(&format!("/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    for (member, value) in [
        ("id", json!(id)),
        ("source", json!("quick")),
        ("collection", json!("orders")),
        ("priority", json!(200)),
        ("handler", json!("quick")),
        ("tenant", json!("default")),
        ("key", json!(null)),
        ("event_id", json!(null)),
        ("planned_at", json!("")),
        ("attempt", json!(1)),
    ] {
        assert_eq!(task[member], value, "{member}");
    }
    for time in ["created_at", "started_at", "finished_at"] {
        let text = task[time].as_str().unwrap();
        assert!(text.len() == 27 && text.parse::<Timestamp>().is_ok(), "{time} {text}");
    }
    let logs = server.get(&format!("/tasks/{id}/logs")).await.json();
    let lines: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|l| (&l["message"], &l["level"])).collect();
    let (one, two) = ((&json!("one"), &json!("info")), (&json!("two"), &json!("error")));
    assert_eq!(lines.iter().filter(|line| **line == one).count(), 2, "{logs}");
    assert_eq!(lines.iter().filter(|line| **line == two).count(), 1, "{logs}");
    assert_eq!(logs.as_object().unwrap().len(), 1, "nothing but the lines");
    let later = server.get(&format!("/tasks/{id}/logs?start=2100-01-01T00:00:00Z")).await.json();
    assert_eq!(later, json!({"logs": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_clients_create_one_task() {
    let server = TestServer::start_with_config(SOURCES_CONFIG, Setup::default()).await;
    let calls = (0..100).map(|_| server.post("/tasks/?source=slow&collection=orders", ""));
    let responses = futures::future::join_all(calls).await;
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 99);
    let ids: BTreeSet<_> = responses.iter().map(|response| response.json()["task_id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    let list = server.get(&format!("/tasks/?source=slow&{ALL_TIME_QUERY}")).await.json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);

    let id = responses[0].json()["task_id"].as_str().unwrap().to_owned();
    server.wait_until_get_returns(&format!("/tasks/{id}"), |task| task["status"] == "RUNNING").await;
    let again = server.post("/tasks?source=slow&collection=orders", "").await;
    assert_eq!((again.status, &again.json()["task_id"]), (200, &json!(id)), "a running task counts as well");
    assert_eq!(server.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let next = run_collection_and_get_task_id(&server, "slow", "orders").await;
    assert_ne!(next, id);
    let canceled = server.get(&format!("/tasks?source=slow&status=CANCELED&{ALL_TIME_QUERY}")).await.json();
    assert_eq!(canceled["tasks"][0]["id"], id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_while_its_task_runs() {
    let config = "
sources:
  chatty:
    run: {command: ['sh', '-c', 'echo same; echo same; sleep 600']}
    collections: [{name: orders}]
";
    let server = TestServer::start_with_config(config, Setup::default()).await;
    let id = run_collection_and_get_task_id(&server, "chatty", "orders").await;
    let mut frames = SseClient::connect(&server, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    for number in 0..2 {
        let frame = frames.next_frame().await.expect("a line");
        assert_eq!((frame.id, &frame.json()["message"]), (Some(number), &json!("same")));
    }
    assert_eq!(server.get(&format!("/tasks/{id}")).await.json()["status"], "RUNNING");
    assert_eq!(server.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let end = frames.next_frame().await.expect("an end");
    assert_eq!((end.event.as_str(), &end.json()["state"]), ("end", &json!("error")));
    assert!(frames.next_frame().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn source_task_lists_are_newest_first() {
    let server = TestServer::start_with_config(
        SOURCES_CONFIG,
        in_process_handler_setup("job", |_| HandlerOutcome::succeeded()),
    )
    .await;
    server.emit(&format!("[{}]", vec![r#"{"type":"job"}"#; 450].join(","))).await;
    let list = server.get(&format!("/tasks?source=job&{ALL_TIME_QUERY}")).await.json();
    let events: Vec<_> =
        list["tasks"].as_array().unwrap().iter().map(|task| task["event_id"].as_u64().unwrap()).collect();
    assert_eq!(events.len(), 450);
    assert!(events.is_sorted_by(|a, b| a > b));
    assert_eq!(list.as_object().unwrap().len(), 1, "nothing but the tasks");

    let first = run_collection_and_get_task_id(&server, "quick", "orders").await;
    server.wait_until_get_returns(&format!("/tasks/{first}"), |task| task["status"] == "SUCCESS").await;
    let second = run_collection_and_get_task_id(&server, "quick", "customers").await;
    server.wait_until_get_returns(&format!("/tasks/{second}"), |task| task["status"] == "SUCCESS").await;
    let list = async |more: &str| task_ids(&server.get(&format!("/tasks?source=quick&{more}")).await.json());
    assert_eq!(list(ALL_TIME_QUERY).await, [second.clone(), first.clone()]);
    assert_eq!(list(&format!("collection=orders&{ALL_TIME_QUERY}")).await, [first.as_str()]);
    assert_eq!(list(&format!("collection=order&{ALL_TIME_QUERY}")).await, [] as [&str; 0]);
    assert_eq!(list(&format!("status=SUCCESS&{ALL_TIME_QUERY}")).await.len(), 2);
    assert_eq!(list(&format!("status=RUNNING&{ALL_TIME_QUERY}")).await, [] as [&str; 0]);
    let created_at =
        server.get(&format!("/tasks/{second}")).await.json()["created_at"].as_str().unwrap().to_owned();
    assert_eq!(list(&format!("start={created_at}&end=2100-01-01T00:00:00Z")).await, [second]);
    assert_eq!(list(&format!("start=2000-01-01T00:00:00Z&end={created_at}")).await, [first]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_name_the_wrong_parameter_and_create_nothing() {
    let server = TestServer::start_with_config(SOURCES_CONFIG, Setup::default()).await;
    let (start, end) = ("start=2026-01-01T00:00:00Z", "end=2026-01-02T00:00:00Z");
    for (query, status, parameter) in [
        (format!("{start}&{end}"), 400, "source"),
        (format!("source=quick&{end}"), 400, "start"),
        (format!("source=quick&{start}"), 400, "end"),
        (format!("source=quick&{start}&{end}&status=DONE"), 400, "status"),
        (format!("source=quick&{start}&{end}&status=done"), 400, "status"),
        ("source=quick&start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z".into(), 400, "end"),
        (format!("source=quick&start=yesterday&{end}"), 400, "start"),
        (format!("source=quick&start=&{end}"), 400, "start"),
        (format!("source=a%20b&{start}&{end}"), 400, "source"),
        (format!("source=quick&{start}&{end}&x=1"), 400, "x"),
        (format!("source=quikc&{start}&{end}"), 404, "source"),
        (format!("source=qui&{start}&{end}"), 404, "source"),
    ] {
        let response = server.get(&format!("/tasks?{query}")).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["parameter"]),
            (status, &json!(parameter)),
            "{query}"
        );
    }
    for (query, status, parameter) in [
        ("collection=orders", 400, "source"),
        ("source=quick", 400, "collection"),
        ("source=&collection=orders", 400, "source"),
        ("source=quick&collection=a%2Fb", 400, "collection"),
        ("source=quick&collection=orders&status=x", 400, "status"),
        ("source=quikc&collection=orders", 404, "source"),
        ("source=quick&collection=ordres", 404, "collection"),
    ] {
        let response = server.post(&format!("/tasks?{query}"), "").await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["parameter"]),
            (status, &json!(parameter)),
            "{query}"
        );
    }
    let response = server.post("/tasks?source=quick&collection=ordres", "").await.json();
    assert!(response["detail"].as_str().unwrap().contains("did you mean `orders`"), "{response}");
    assert_eq!(
        server.post("/tasks?source=quick&collection=orders", r#"{"x":1}"#).await.checked_problem_status(),
        400
    );
    assert_eq!(server.get("/tasks/none").await.checked_problem_status(), 404);
    assert_eq!(server.get("/tasks/none/logs").await.checked_problem_status(), 404);
    assert_eq!(server.get("/tasks/none/logs?start=x").await.checked_problem_status(), 400);
    assert_eq!(server.delete("/tasks/").await.checked_problem_status(), 405);
    assert_eq!(server.get("/api/v1/tasks").await.json()["tasks"], json!([]), "no task was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_source_is_not_found_however_long_the_history() {
    let list =
        [("root", "admin", None), ("ours", "viewer", Some("default")), ("others", "viewer", Some("other"))];
    let mut server = TestServer::start_with_config(
        &tokens_yaml(&list),
        in_process_handler_setup("job", |_| HandlerOutcome::succeeded()),
    )
    .await;
    server.token = "root".into();
    let many = vec![r#"{"type":"job","delay":"1h"}"#; 10_000].join(",");
    for _ in 0..3 {
        server.emit(&format!("[{many}]")).await;
    }
    for token in ["root", "ours", "others"] {
        server.token = token.into();
        assert_eq!(
            server.get(&format!("/tasks?source=nosuch&{ALL_TIME_QUERY}")).await.checked_problem_status(),
            404,
            "{token}"
        );
        let period = "start=2000-01-01T00:00:00Z&end=2000-01-02T00:00:00Z";
        assert_eq!(server.get(&format!("/tasks?source=job&{period}")).await.status, 200, "{token}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_source_is_found_while_its_tasks_remain() {
    let folder = tempfile::tempdir().unwrap();
    let list = [("root", "admin", None), ("others", "viewer", Some("other"))];
    let base = format!(
        "store: 'sqlite::memory:'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n{}",
        tokens_yaml(&list)
    );
    let mut server =
        TestServer::start_in_folder(folder.path(), &format!("{base}{SOURCES_CONFIG}"), Setup::default())
            .await;
    server.token = "root".into();
    let id = run_collection_and_get_task_id(&server, "quick", "orders").await;
    server.wait_until_get_returns(&format!("/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    let mut reloads = server.inner.subscribe_reload_counts();
    write_config_and_get_inputs(folder.path(), &base);
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    assert_eq!(task_ids(&server.get(&format!("/tasks?source=quick&{ALL_TIME_QUERY}")).await.json()), [id]);
    assert_eq!(
        server.get(&format!("/tasks?source=slow&{ALL_TIME_QUERY}")).await.checked_problem_status(),
        404,
        "it never ran"
    );
    server.token = "others".into();
    assert_eq!(
        server.get(&format!("/tasks?source=quick&{ALL_TIME_QUERY}")).await.checked_problem_status(),
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_sees_only_the_sources_of_the_tenant() {
    let list = [("root", "admin", None), ("ours", "operator", Some("default")), ("viewer", "viewer", None)];
    let mut server =
        TestServer::start_with_config(&format!("{SOURCES_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "root".into();
    let theirs = run_collection_and_get_task_id(&server, "theirs", "orders").await;
    server.token = "ours".into();
    run_collection_and_get_task_id(&server, "quick", "orders").await;
    assert_eq!(server.post("/tasks?source=theirs&collection=orders", "").await.checked_problem_status(), 404);
    assert_eq!(
        server.get(&format!("/tasks?source=theirs&{ALL_TIME_QUERY}")).await.checked_problem_status(),
        404
    );
    assert_eq!(server.get(&format!("/tasks/{theirs}")).await.checked_problem_status(), 404);
    assert_eq!(server.get(&format!("/tasks/{theirs}/logs")).await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/handlers/theirs").await.checked_problem_status(), 404);
    assert_eq!(server.put("/api/v1/handlers/theirs%2Forders/pause", "").await.checked_problem_status(), 404);

    let admin = format!(
        "GET /tasks/{theirs} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-admin-token: root\r\n\r\n"
    );
    assert_eq!(crate::raw_http_client::send_request(server.address, &admin, b"").await.status, 200);
    assert_eq!(
        server
            .call_with_token("viewer", "POST", "/tasks?source=quick&collection=orders", "")
            .await
            .checked_problem_status(),
        403
    );
}
