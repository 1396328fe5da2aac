use std::time::Duration;

use pointsman_engine::HandlerOutcome;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::raw_http_client::TEST_TIMEOUT;
use crate::test_server::{TestServer, in_process_handler_setup};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_listed_with_the_handlers_it_can_run() {
    let server = TestServer::start_with_config(
        "workers: 3\n",
        in_process_handler_setup("job", |_| HandlerOutcome::succeeded()),
    )
    .await;
    let list = server.get("/api/v1/nodes").await.json();
    let node = &list["nodes"][0];
    assert_eq!((&node["alive"], &node["handlers"]), (&json!(true), &json!(["job"])));
    assert_eq!((&node["slots"], &node["running"]), (&json!(3), &json!(0)));
    assert!(list["eventId"].is_u64());
    assert_eq!(server.get("/api/v1/nodes?x=1").await.checked_problem_status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_audited_with_its_token_and_reason() {
    let yaml = "
sources:
  shop: {run: {command: ['true']}, collections: [{name: orders}]}
schedules:
  nightly: {cron: '0 3 * * *', emit: {type: report.due}}
";
    let server = TestServer::start_with_config(
        yaml,
        in_process_handler_setup("job", |_| HandlerOutcome::failed("no")),
    )
    .await;
    server.put("/api/v1/handlers/job/pause", r#"{"reason":"lunch","tenant":"shop"}"#).await;
    server
        .call(
            "DELETE",
            "/api/v1/handlers/job/pause",
            &[("content-type", "application/json")],
            br#"{"tenant":"shop"}"#,
        )
        .await;
    server.delete("/api/v1/handlers/job/pause").await;
    server.put("/api/v1/handlers/shop%2Forders/block", "").await;
    server.put("/api/v1/schedules/nightly/pause", "").await;
    server.post("/api/v1/schedules/nightly/run", "").await;
    server.post("/tasks?source=shop&collection=orders", "").await;
    server.post("/tasks?source=shop&collection=orders", "").await;
    let id = server.emit_and_get_task_id(r#"{"type":"job"}"#).await;
    server.wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "FAILED").await;
    server.post(&format!("/api/v1/tasks/{id}/retry"), "").await;
    server.post("/api/v1/tasks/redrive", r#"{"handler":"job","rate":"1/d"}"#).await;
    server.post("/api/v1/handlers/job/adopt", "").await;
    let waiting = server.emit_and_get_task_id(r#"{"type":"job","delay":"1h"}"#).await;
    server.post(&format!("/api/v1/tasks/{waiting}/cancel"), "").await;
    server.post("/api/v1/tasks/none/cancel", "").await;

    let list = server.get("/api/v1/audit").await.json();
    let entries: Vec<_> = list["entries"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["target"].as_str().unwrap()))
        .collect();
    let (retried, cancelled) = (format!("task {id}"), format!("task {waiting}"));
    let redrive = entries.iter().find(|(action, _)| *action == "redrive").map_or("", |(_, target)| target);
    assert_eq!(
        entries,
        [
            ("pause", "handler job for shop"),
            ("unpause", "handler job for shop"),
            ("block", "collection shop/orders"),
            ("pause", "schedule nightly"),
            ("run", "schedule nightly"),
            ("run", "collection shop/orders"),
            ("retry", &retried),
            ("redrive", redrive),
            ("adopt", "handler job"),
            ("cancel", &cancelled),
        ]
    );
    let first = list["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&first["by"], &first["detail"]), (&json!("first-start"), &json!("lunch")));

    let page = server.get("/api/v1/audit?limit=2").await.json();
    assert_eq!(page["entries"].as_array().unwrap().len(), 2);
    let rest = server.get(&format!("/api/v1/audit?limit=100&before={}", page["next"])).await.json();
    assert_eq!(rest["entries"].as_array().unwrap().len(), entries.len() - 2);
    assert_eq!(rest["next"], json!(null));
    for bad in ["limit=0", "before=x", "x=1"] {
        assert_eq!(server.get(&format!("/api/v1/audit?{bad}")).await.checked_problem_status(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_audited_even_if_their_clients_disconnect() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    for n in 0..200_u64 {
        let body = format!(r#"{{"tenant":"t{n}"}}"#);
        let head =
            server.request_head("PUT", "/api/v1/handlers/job/pause", &[("content-type", "application/json")]);
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        // Each client disconnects a little later than the one before, so that some disconnect during every step of a
        // change.
        tokio::time::sleep(Duration::from_micros(n * 10)).await;
    }
    let count_entries =
        async || server.get("/api/v1/audit?limit=1000").await.json()["entries"].as_array().unwrap().len();
    let count_rules =
        async || server.get("/api/v1/handlers/job").await.json()["rules"].as_array().unwrap().len();
    let agree = async {
        while count_rules().await != count_entries().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, agree).await.expect("as many audit entries as rules");
    assert!(count_rules().await > 0);
}
