use pointsman_engine::{HandlerOutcome, Setup};
use serde_json::json;
use tokio::time::timeout;

use crate::raw_http_client::TEST_TIMEOUT;
use crate::test_server::{TestServer, in_process_handler_setup, write_config_and_get_inputs};

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_shows_how_it_runs_and_its_waiting_tasks() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    server.emit(r#"{"type":"job.one","delay":"1h"}"#).await;
    let body = server.get("/api/v1/handlers/job").await.json();
    assert_eq!((&body["run"], &body["defined"]), (&json!("in-process"), &json!(true)));
    assert_eq!(body["routes"], json!([{"type": "job", "sync": false}]));
    assert_eq!(body["counts"]["waiting"], 1);
    assert_eq!(body["queues"][0]["tenant"], "default");
    assert!(body["eventId"].is_u64());
    let list = server.get("/api/v1/handlers").await.json();
    assert_eq!(list["handlers"][0]["name"], "job");
    assert_eq!(server.get("/api/v1/handlers/none").await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/handlers/a%20b").await.checked_problem_status(), 400);
}

/// The target leaves out the path of a URL and the arguments of a command: they may contain secrets.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_shows_its_target() {
    let yaml = "handlers:\n  web: {run: {http: 'http://127.0.0.1:9/in?key=1'}}\n\
                \x20 tool: {run: {command: [/bin/sh, -c, 'true']}}\n\
                sources:\n  shop: {run: {command: [sh]}, collections: [orders]}\n\
                event_handlers: {x: [web, tool]}\n";
    let server = TestServer::start_with_config(yaml, Setup::default()).await;
    let handler_facts = async |name: &str| {
        let body = server.get(&format!("/api/v1/handlers/{name}")).await.json();
        (body["target"].clone(), body["order"].clone(), body["on_error"].clone())
    };
    assert_eq!(handler_facts("web").await, (json!("http://127.0.0.1:9"), json!("key"), json!("park")));
    assert_eq!(handler_facts("tool").await, (json!("sh (2 arguments)"), json!("key"), json!("park")));
    assert_eq!(handler_facts("shop").await, (json!("sh"), json!(null), json!(null)), "it has no lanes");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_wait_until_pause_and_block_are_both_lifted() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let put = async |path: &str, body: &str| server.put(path, body).await;
    let paused = put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    assert_eq!(paused.json()["rules"][0]["reason"], "lunch");
    assert_eq!(put("/api/v1/handlers/job/block", "").await.status, 200);

    let id = server.emit(r#"{"type":"job"}"#).await;
    let path = format!("/api/v1/events/{id}");
    assert_eq!(server.call("DELETE", "/api/v1/handlers/job/pause", &[], b"").await.status, 200);
    assert_eq!(server.get(&path).await.json()["tasks"][0]["status"], "SCHEDULED");
    assert_eq!(server.get("/api/v1/handlers/job").await.json()["queues"][0]["held"], true);
    assert_eq!(server.call("DELETE", "/api/v1/handlers/job/block", &[], b"").await.status, 200);
    server.wait_until_get_returns(&path, |event| event["tasks"][0]["status"] == "SUCCESS").await;

    assert_eq!(put("/api/v1/handlers/none/pause", "").await.checked_problem_status(), 404);
    let response = put("/api/v1/handlers/job/pause", r#"{"tenant":"a b"}"#).await;
    assert_eq!((response.checked_problem_status(), &response.json()["pointer"]), (400, &json!("/tenant")));
    assert_eq!(put("/api/v1/handlers/job/pause", r#"{"who":"me"}"#).await.checked_problem_status(), 400);
    assert_eq!(put("/api/v1/handlers/job/pause", "[").await.checked_problem_status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopting_without_missing_tasks_succeeds() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let response = server.post("/api/v1/handlers/job/adopt", "").await;
    assert_eq!(
        (response.status, response.json()),
        (200, json!({"adopted": 0, "replayed": 0, "more": false}))
    );
    assert_eq!(server.post("/api/v1/handlers/none/adopt", "").await.checked_problem_status(), 404);
    for bad in [r#"{"from":"x"}"#, r#"{"from":-1}"#, r#"{"form":1}"#] {
        assert_eq!(
            server.post("/api/v1/handlers/job/adopt", bad).await.checked_problem_status(),
            400,
            "{bad}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn past_events_are_replayed_to_a_handler_once() {
    let folder = tempfile::tempdir().unwrap();
    let base = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";
    let server = TestServer::start_in_folder(folder.path(), base, Setup::default()).await;
    for n in 0..3 {
        server.emit(&format!(r#"{{"type":"job","key":"k:{n}"}}"#)).await;
    }
    let mut reloads = server.inner.subscribe_reload_counts();
    let added = "handlers:\n  added: {run: {command: ['true']}}\nevent_handlers:\n  job: [added]\n";
    write_config_and_get_inputs(folder.path(), &format!("{base}{added}"));
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let first = server.get("/api/v1/events?after=0&limit=1").await.json();
    let from = format!(r#"{{"from":{}}}"#, first["eventSnapshots"][0]["eventId"]);
    let response = server.post("/api/v1/handlers/added/adopt", &from).await.json();
    assert_eq!(response, json!({"adopted": 0, "replayed": 3, "more": false}));
    let are_all_listed = |list: &serde_json::Value| list["tasks"].as_array().unwrap().len() == 3;
    let list =
        server.wait_until_get_returns("/api/v1/tasks?handler=added&status=SUCCESS", are_all_listed).await;
    assert_eq!(list["tasks"][0]["priority"], 1);
    let again = server.post("/api/v1/handlers/added/adopt", &from).await.json();
    assert_eq!(again["replayed"], 0);
}

const SHOP_CONFIG: &str = "
sources:
  shop:
    run: {command: ['sleep', '600']}
    collections: [{name: orders, priority: 200}, {name: customers}]
handlers:
  slow: {run: {command: ['true']}, concurrency: 2, concurrency_per_key: 1, order: none, rate: 100/m, weight: 3}
  far: {run: pull}
";

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_collections_are_shown() {
    let server = TestServer::start_with_config(SHOP_CONFIG, Setup::default()).await;
    let slow = server.get("/api/v1/handlers/slow").await.json();
    let limits = &slow["limits"];
    assert_eq!((&limits["concurrency"], &limits["concurrency_per_key"]), (&json!(2), &json!(1)));
    assert_eq!((&limits["rate"], &limits["weight"]), (&json!("100/m"), &json!(3)));
    let far = server.get("/api/v1/handlers/far").await.json();
    assert_eq!((&far["run"], &far["source"]), (&json!("pull"), &json!(null)));
    let shop = server.get("/api/v1/handlers/shop").await.json();
    assert_eq!(
        shop["source"],
        json!({"tenant": "default", "collections":
            [{"name": "customers", "priority": 100}, {"name": "orders", "priority": 200}]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_paused_without_the_others_of_its_source() {
    let server = TestServer::start_with_config(SHOP_CONFIG, Setup::default()).await;
    let path = "/api/v1/handlers/shop%2Forders/pause";
    let paused = server.put(path, r#"{"reason":"stocktaking"}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let rule = &paused.json()["rules"][0];
    assert_eq!((&rule["space"], &rule["name"]), (&json!("collection"), &json!("shop/orders")));
    let orders = server.post("/tasks?source=shop&collection=orders", "").await;
    let customers = server.post("/tasks?source=shop&collection=customers", "").await;
    assert_eq!((orders.status, customers.status), (201, 201));
    let path_of = |response: &crate::raw_http_client::TestResponse| {
        format!("/tasks/{}", response.json()["task_id"].as_str().unwrap())
    };
    server.wait_until_get_returns(&path_of(&customers), |task| task["status"] == "RUNNING").await;
    assert_eq!(server.get(&path_of(&orders)).await.json()["status"], "SCHEDULED");
    let shop = server.get("/api/v1/handlers/shop").await.json();
    let queue = shop["queues"].as_array().unwrap().iter().find(|q| q["collection"] == "orders").unwrap();
    assert_eq!((&queue["held"], &queue["tenant"]), (&json!(true), &json!("default")));

    assert_eq!(server.delete(path).await.json()["rules"], json!([]));
    server.wait_until_get_returns(&path_of(&orders), |task| task["status"] == "RUNNING").await;
    for (bad, status) in
        [("shop%2Forder", 404), ("sohp", 404), ("sohp%2Forders", 404), ("shop%2F", 400), ("a%2Fb%2Fc", 400)]
    {
        let response = server.put(&format!("/api/v1/handlers/{bad}/pause"), "").await;
        assert_eq!(response.checked_problem_status(), status, "{bad}");
    }
    let response = server.put("/api/v1/handlers/shop%2Forder/pause", "").await.json();
    assert!(response["detail"].as_str().unwrap().contains("orders"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_list_shows_the_busiest_queues() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let one = |n: usize| format!(r#"{{"type":"job","tenant":"t{n}","delay":"1h"}}"#);
    let events: Vec<_> = (0..120).map(one).chain([one(7), one(119)]).collect();
    server.emit(&format!("[{}]", events.join(","))).await;
    let list = server.get("/api/v1/handlers").await.json();
    let job = &list["handlers"][0];
    let shown = job["queues"].as_array().unwrap();
    assert_eq!((shown.len(), &job["more_queues"], &job["counts"]["waiting"]), (100, &json!(20), &json!(122)));
    assert_eq!(shown.iter().filter(|queue| queue["waiting"] == 2).count(), 2);
    let one = server.get("/api/v1/handlers/job").await.json();
    assert_eq!((one["queues"].as_array().unwrap().len(), &one["more_queues"]), (120, &json!(0)));
}
