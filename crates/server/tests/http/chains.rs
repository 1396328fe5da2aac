use pointsman_engine::Setup;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::auth::tokens_yaml;
use crate::orders::{CHAINS_CONFIG, claim_step, post_orders, report_step_end};
use crate::raw_http_client::TEST_TIMEOUT;
use crate::test_server::{TestServer, write_config_and_get_inputs};

const CHAIN_URL: &str = "/api/v1/chains/publish/article";

/// Claims the tasks of a handler that can run now, and returns their number.
async fn claim_and_count_tasks(server: &TestServer, handler: &str) -> usize {
    let body = json!({"handlers": [handler], "max": 100});
    let response = server.post("/api/v1/worker/claim", &body.to_string()).await;
    response.json()["tasks"].as_array().expect("a list").len()
}

fn find_chain_node<'a>(chain: &'a Value, id: &str) -> &'a Value {
    chain["nodes"].as_array().expect("a list").iter().find(|node| node["id"] == id).expect("a node")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_shows_its_nodes_and_where_its_orders_are() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    for id in 1..=2 {
        post_orders(&server, &json!({"path": format!("/publish/article,{id}")})).await;
    }
    report_step_end(&server, &claim_step(&server, "render").await, "done", json!({})).await;
    let list = server.get("/api/v1/chains").await.json();
    assert!(list["eventId"].is_u64());
    let paths: Vec<_> = list["chains"].as_array().unwrap().iter().map(|chain| &chain["path"]).collect();
    assert_eq!(paths, [&json!("/publish/article"), &json!("/publish/old/note")]);

    let chain = server.get(CHAIN_URL).await.json();
    assert_eq!(
        (&chain["state"], &chain["defined"], &chain["orders"]),
        (&json!("running"), &json!(true), &json!(2))
    );
    assert_eq!(
        find_chain_node(&chain, "render"),
        &json!({"id": "render", "end": false, "handler": "render", "next": "deploy", "on_error": "failed",
            "setback": null, "action": "process", "orders": 1})
    );
    let setback = &find_chain_node(&chain, "deploy")["setback"];
    assert_eq!((&setback["max"], &setback["delay_seconds"]), (&json!(5), &json!(3600.0)), "{setback}");
    assert_eq!(
        (&find_chain_node(&chain, "done")["end"], &find_chain_node(&chain, "done")["handler"]),
        (&json!(true), &json!(null))
    );
    assert_eq!((&chain["stranded"], &chain["rules"]), (&json!([]), &json!([])));

    for (path, status) in [
        ("publish/articel", 404),
        ("publish", 404),
        ("publish//article", 400),
        ("/publish/article", 400),
        ("publish/article,1", 400),
        ("publish/article/", 400),
    ] {
        assert_eq!(
            server.get(&format!("/api/v1/chains/{path}")).await.checked_problem_status(),
            status,
            "{path}"
        );
    }
    let hint = server.get("/api/v1/chains/publish/articel").await.json();
    assert!(hint["detail"].as_str().unwrap().contains("/publish/article"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_chain_begins_no_step_until_it_is_started() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let path = format!("{CHAIN_URL}/state");
    let stopped = server.put(&path, r#"{"state":"stopped"}"#).await;
    assert_eq!((stopped.status, &stopped.json()["state"]), (200, &json!("stopped")), "{stopped:?}");
    post_orders(&server, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claim_and_count_tasks(&server, "render").await, 0);
    assert_eq!(server.put(&path, r#"{"state":"running"}"#).await.json()["state"], "running");
    claim_step(&server, "render").await;
    for (body, pointer) in [
        (r#"{"state":"paused"}"#, "/state"),
        (r#"{"state":1}"#, "/state"),
        (r#"{"stat":"running"}"#, "/stat"),
        ("", "/state"),
        ("[]", ""),
        (r#"["running"]"#, ""),
    ] {
        let response = server.put(&path, body).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (400, &json!(pointer)),
            "{body}"
        );
    }
    assert_eq!(
        server.put("/api/v1/chains/x/state", r#"{"state":"running"}"#).await.checked_problem_status(),
        404
    );
    assert_eq!(server.put(CHAIN_URL, "").await.checked_problem_status(), 404);
    assert_eq!(server.delete(&path).await.checked_problem_status(), 404);
    let audit = server.get("/api/v1/audit").await.json();
    let entries: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(entries, ["start", "add", "stop"]);
    assert_eq!(audit["entries"][0]["target"], "chain /publish/article");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_node_stops_its_orders_or_lets_them_skip_its_step() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let action = |node: &str| format!("{CHAIN_URL}/nodes/{node}/action");
    let stopped = server.put(&action("render"), r#"{"action":"stop"}"#).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(find_chain_node(&stopped.json(), "render")["action"], "stop");
    post_orders(&server, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claim_and_count_tasks(&server, "render").await, 0);
    server.put(&action("render"), r#"{"action":"next_state"}"#).await;
    assert_eq!(server.get("/api/v1/orders/publish/article,1").await.json()["node"], "deploy");
    let back = server.put(&action("render"), r#"{"action":"process"}"#).await.json();
    assert_eq!(find_chain_node(&back, "render")["action"], "process");
    for (node, body, status) in [
        ("rendre", r#"{"action":"stop"}"#, 404),
        ("a%20b", r#"{"action":"stop"}"#, 400),
        ("done", r#"{"action":"stop"}"#, 422),
        ("render", r#"{"action":"skip"}"#, 400),
        ("render", r#"{"action":null}"#, 400),
        ("render", "", 400),
    ] {
        assert_eq!(server.put(&action(node), body).await.checked_problem_status(), status, "{node} {body}");
    }
    let audit = server.get("/api/v1/audit?limit=1").await.json();
    let entry = &audit["entries"][0];
    assert_eq!(
        (&entry["target"], &entry["detail"]),
        (&json!("node render of chain /publish/article"), &json!("process"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_are_paused_and_blocked_like_handlers() {
    let list = [("root", "admin", None), ("ops", "operator", None), ("ours", "operator", Some("shop"))];
    let mut server =
        TestServer::start_with_config(&format!("{CHAINS_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "root".into();
    let (pause, block) = (format!("{CHAIN_URL}/pause"), format!("{CHAIN_URL}/block"));
    let paused = server.put(&pause, r#"{"reason":"lunch"}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let rule = &paused.json()["rules"][0];
    assert_eq!((&rule["space"], &rule["name"]), (&json!("chain"), &json!("/publish/article")));
    post_orders(&server, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claim_and_count_tasks(&server, "render").await, 0);
    assert_eq!(server.call_with_token("ops", "PUT", &block, "").await.checked_problem_status(), 403);
    assert_eq!(server.put(&block, "").await.json()["rules"].as_array().unwrap().len(), 2);
    assert_eq!(server.call_with_token("ops", "DELETE", &block, "").await.checked_problem_status(), 403);
    assert_eq!(server.call_with_token("ops", "DELETE", &pause, "").await.status, 200);
    assert_eq!(claim_and_count_tasks(&server, "render").await, 0, "it is blocked");
    assert_eq!(server.delete(&block).await.json()["rules"], json!([]));
    claim_step(&server, "render").await;

    assert_eq!(server.put("/api/v1/chains/x/pause", "").await.checked_problem_status(), 404);
    let response = server.put(&pause, r#"{"tenant":"a b"}"#).await;
    assert_eq!((response.checked_problem_status(), &response.json()["pointer"]), (400, &json!("/tenant")));

    server.token = "ours".into();
    let own = server.put(&pause, "").await.json();
    assert_eq!((&own["rules"][0]["tenant"], &own["orders"]), (&json!("shop"), &json!(null)));
    assert_eq!(server.put(&pause, r#"{"tenant":"x"}"#).await.checked_problem_status(), 403);
    assert_eq!(
        server.put(&format!("{CHAIN_URL}/state"), r#"{"state":"stopped"}"#).await.checked_problem_status(),
        403
    );
    let action = format!("{CHAIN_URL}/nodes/render/action");
    assert_eq!(server.put(&action, r#"{"action":"stop"}"#).await.checked_problem_status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_wait_at_a_removed_node_as_stranded() {
    const BASE_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_in_folder(
        folder.path(),
        &format!("{BASE_CONFIG}{CHAINS_CONFIG}"),
        Setup::default(),
    )
    .await;
    post_orders(&server, &json!({"path": "/publish/article,1", "node": "deploy"})).await;
    let mut reloads = server.inner.subscribe_reload_counts();
    let renamed = CHAINS_CONFIG.replace("id: deploy", "id: send").replace("next: deploy", "next: send");
    write_config_and_get_inputs(folder.path(), &format!("{BASE_CONFIG}{renamed}"));
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let order = server.get("/api/v1/orders/publish/article,1").await.json();
    assert_eq!(
        (&order["stranded"], &order["node"], &order["task"]),
        (&json!(true), &json!("deploy"), &json!(null))
    );
    let chain = server.get(CHAIN_URL).await.json();
    assert_eq!(
        (&chain["stranded"], &chain["orders"]),
        (&json!([{"node": "deploy", "orders": 1}]), &json!(1))
    );
    let moved = server.put("/api/v1/orders/publish/article,1", r#"{"node":"send"}"#).await.json();
    assert_eq!((&moved["stranded"], &moved["task"]["status"]), (&json!(false), &json!("SCHEDULED")));
    server.inner.stop().await;
}
