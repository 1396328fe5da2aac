use pointsman_engine::Setup;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::auth::tokens;
use crate::client::HANGS;
use crate::house::{House, sources};
use crate::orders::{CHAINS, add, claim, end};

const CHAIN: &str = "/api/v1/chains/publish/article";

/// How many tasks of a handler a worker gets that does not wait.
async fn claimable(house: &House, handler: &str) -> usize {
    let body = json!({"handlers": [handler], "max": 100});
    let answer = house.post("/api/v1/worker/claim", &body.to_string()).await;
    answer.json()["tasks"].as_array().expect("a list").len()
}

fn node<'a>(chain: &'a Value, id: &str) -> &'a Value {
    chain["nodes"].as_array().expect("a list").iter().find(|node| node["id"] == id).expect("a node")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_shows_its_nodes_and_where_its_orders_are() {
    let house = House::with(CHAINS, Setup::default()).await;
    for id in 1..=2 {
        add(&house, &json!({"path": format!("/publish/article,{id}")})).await;
    }
    end(&house, &claim(&house, "render").await, "done", json!({})).await;
    let list = house.get("/api/v1/chains").await.json();
    assert!(list["eventId"].is_u64());
    let paths: Vec<_> = list["chains"].as_array().unwrap().iter().map(|chain| &chain["path"]).collect();
    assert_eq!(paths, [&json!("/publish/article"), &json!("/publish/old/note")]);

    let chain = house.get(CHAIN).await.json();
    assert_eq!(
        (&chain["state"], &chain["defined"], &chain["orders"]),
        (&json!("running"), &json!(true), &json!(2))
    );
    assert_eq!(
        node(&chain, "render"),
        &json!({"id": "render", "end": false, "handler": "render", "next": "deploy", "on_error": "failed",
            "setback": null, "action": "process", "orders": 1})
    );
    let setback = &node(&chain, "deploy")["setback"];
    assert_eq!((&setback["max"], &setback["delay_seconds"]), (&json!(5), &json!(3600.0)), "{setback}");
    assert_eq!(
        (&node(&chain, "done")["end"], &node(&chain, "done")["handler"]),
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
        assert_eq!(house.get(&format!("/api/v1/chains/{path}")).await.problem(), status, "{path}");
    }
    let hint = house.get("/api/v1/chains/publish/articel").await.json();
    assert!(hint["detail"].as_str().unwrap().contains("/publish/article"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_chain_begins_no_step_until_it_is_started() {
    let house = House::with(CHAINS, Setup::default()).await;
    let path = format!("{CHAIN}/state");
    let stopped = house.put(&path, r#"{"state":"stopped"}"#).await;
    assert_eq!((stopped.status, &stopped.json()["state"]), (200, &json!("stopped")), "{stopped:?}");
    add(&house, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claimable(&house, "render").await, 0);
    assert_eq!(house.put(&path, r#"{"state":"running"}"#).await.json()["state"], "running");
    claim(&house, "render").await;
    for (body, pointer) in [
        (r#"{"state":"paused"}"#, "/state"),
        (r#"{"state":1}"#, "/state"),
        (r#"{"stat":"running"}"#, "/stat"),
        ("", "/state"),
        ("[]", ""),
        (r#"["running"]"#, ""),
    ] {
        let answer = house.put(&path, body).await;
        assert_eq!((answer.problem(), &answer.json()["pointer"]), (400, &json!(pointer)), "{body}");
    }
    assert_eq!(house.put("/api/v1/chains/x/state", r#"{"state":"running"}"#).await.problem(), 404);
    assert_eq!(house.put(CHAIN, "").await.problem(), 404);
    assert_eq!(house.delete(&path).await.problem(), 404);
    let audit = house.get("/api/v1/audit").await.json();
    let deeds: Vec<_> =
        audit["deeds"].as_array().unwrap().iter().map(|deed| deed["action"].as_str().unwrap()).collect();
    assert_eq!(deeds, ["start", "add", "stop"]);
    assert_eq!(audit["deeds"][0]["what"], "chain /publish/article");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_stop_or_pass_their_orders() {
    let house = House::with(CHAINS, Setup::default()).await;
    let action = |node: &str| format!("{CHAIN}/nodes/{node}/action");
    let stopped = house.put(&action("render"), r#"{"action":"stop"}"#).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(node(&stopped.json(), "render")["action"], "stop");
    add(&house, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claimable(&house, "render").await, 0);
    house.put(&action("render"), r#"{"action":"next_state"}"#).await;
    assert_eq!(house.get("/api/v1/orders/publish/article,1").await.json()["node"], "deploy");
    let back = house.put(&action("render"), r#"{"action":"process"}"#).await.json();
    assert_eq!(node(&back, "render")["action"], "process");
    for (node, body, status) in [
        ("rendre", r#"{"action":"stop"}"#, 404),
        ("a%20b", r#"{"action":"stop"}"#, 400),
        ("done", r#"{"action":"stop"}"#, 422),
        ("render", r#"{"action":"skip"}"#, 400),
        ("render", r#"{"action":null}"#, 400),
        ("render", "", 400),
    ] {
        assert_eq!(house.put(&action(node), body).await.problem(), status, "{node} {body}");
    }
    let audit = house.get("/api/v1/audit?limit=1").await.json();
    let deed = &audit["deeds"][0];
    assert_eq!(
        (&deed["what"], &deed["detail"]),
        (&json!("node render of chain /publish/article"), &json!("process"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_paused_and_blocked_as_handlers_are() {
    let list = [("root", "admin", None), ("ops", "operator", None), ("ours", "operator", Some("shop"))];
    let mut house = House::with(&format!("{CHAINS}{}", tokens(&list)), Setup::default()).await;
    house.token = "root".into();
    let (pause, block) = (format!("{CHAIN}/pause"), format!("{CHAIN}/block"));
    let paused = house.put(&pause, r#"{"reason":"lunch"}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let rule = &paused.json()["rules"][0];
    assert_eq!((&rule["space"], &rule["name"]), (&json!("chain"), &json!("/publish/article")));
    add(&house, &json!({"path": "/publish/article,1"})).await;
    assert_eq!(claimable(&house, "render").await, 0);
    assert_eq!(house.call_as("ops", "PUT", &block, "").await.problem(), 403);
    assert_eq!(house.put(&block, "").await.json()["rules"].as_array().unwrap().len(), 2);
    assert_eq!(house.call_as("ops", "DELETE", &block, "").await.problem(), 403);
    assert_eq!(house.call_as("ops", "DELETE", &pause, "").await.status, 200);
    assert_eq!(claimable(&house, "render").await, 0, "it is blocked");
    assert_eq!(house.delete(&block).await.json()["rules"], json!([]));
    claim(&house, "render").await;

    assert_eq!(house.put("/api/v1/chains/x/pause", "").await.problem(), 404);
    let answer = house.put(&pause, r#"{"tenant":"a b"}"#).await;
    assert_eq!((answer.problem(), &answer.json()["pointer"]), (400, &json!("/tenant")));

    house.token = "ours".into();
    let own = house.put(&pause, "").await.json();
    assert_eq!((&own["rules"][0]["tenant"], &own["orders"]), (&json!("shop"), &json!(null)));
    assert_eq!(house.put(&pause, r#"{"tenant":"x"}"#).await.problem(), 403);
    assert_eq!(house.put(&format!("{CHAIN}/state"), r#"{"state":"stopped"}"#).await.problem(), 403);
    let action = format!("{CHAIN}/nodes/render/action");
    assert_eq!(house.put(&action, r#"{"action":"stop"}"#).await.problem(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_wait_at_a_node_that_is_gone_and_say_so() {
    const BASE: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), &format!("{BASE}{CHAINS}"), Setup::default()).await;
    add(&house, &json!({"path": "/publish/article,1", "node": "deploy"})).await;
    let mut reloads = house.server.reloads();
    let renamed = CHAINS.replace("id: deploy", "id: send").replace("next: deploy", "next: send");
    sources(folder.path(), &format!("{BASE}{renamed}"));
    timeout(HANGS, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let order = house.get("/api/v1/orders/publish/article,1").await.json();
    assert_eq!(
        (&order["stranded"], &order["node"], &order["task"]),
        (&json!(true), &json!("deploy"), &json!(null))
    );
    let chain = house.get(CHAIN).await.json();
    assert_eq!(
        (&chain["stranded"], &chain["orders"]),
        (&json!([{"node": "deploy", "orders": 1}]), &json!(1))
    );
    let moved = house.put("/api/v1/orders/publish/article,1", r#"{"node":"send"}"#).await.json();
    assert_eq!((&moved["stranded"], &moved["task"]["status"]), (&json!(false), &json!("SCHEDULED")));
    house.server.stop().await;
}
