use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::raw_http_client::TestResponse;
use crate::test_server::TestServer;

/// Chains whose steps the test claims, so that the test decides when each step runs and how it ends.
pub(crate) const CHAINS_CONFIG: &str = "
handlers:
  render: {run: pull, retry: {max: 0}}
  deploy: {run: pull}
chains:
  /publish/article:
    nodes:
      - {id: render, handler: render, next: deploy, on_error: failed}
      - {id: deploy, handler: deploy, next: done, setback: {delay: 1h, max: 5}}
      - {id: done, end: true}
      - {id: failed, end: true}
  /publish/old/note:
    nodes:
      - {id: render, handler: render, next: done}
      - {id: done, end: true}
";

const ORDER_URL: &str = "/api/v1/orders/publish/article,117";

pub(crate) async fn post_orders(server: &TestServer, body: &Value) -> TestResponse {
    server.post("/api/v1/orders", &body.to_string()).await
}

/// Claims the next step of a handler.
pub(crate) async fn claim_step(server: &TestServer, handler: &str) -> Value {
    let body = json!({"handlers": [handler], "wait": "60s"});
    let tasks = server.post("/api/v1/worker/claim", &body.to_string()).await.json()["tasks"].clone();
    assert_eq!(tasks.as_array().map(Vec::len), Some(1), "{tasks}");
    tasks[0].clone()
}

/// Reports the end of a claimed step with a call of the worker API, `done` or `fail`.
pub(crate) async fn report_step_end(server: &TestServer, task: &Value, call: &str, members: Value) {
    let mut body = json!({"fence": task["fence"]});
    body.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    let path = format!("/api/v1/worker/{}/{call}", task["id"].as_str().expect("an id"));
    let response = server.post(&path, &body.to_string()).await;
    assert_eq!(response.status, 200, "{response:?}");
}

fn order_paths(list: &Value) -> Vec<&str> {
    let orders = list["orders"].as_array().expect("a list");
    orders.iter().map(|order| order["path"].as_str().expect("a path")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_runs_with_the_values_its_steps_return() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let added = post_orders(&server, &json!({"path": "/publish/article,117", "value": {"n": 1}})).await;
    assert_eq!((added.status, added.header("location")), (201, Some(ORDER_URL)), "{added:?}");
    let order = &added.json()["orders"][0];
    assert_eq!((&order["path"], &order["id"]), (&json!("/publish/article,117"), &json!("117")));
    assert_eq!(added.json()["eventId"], order["eventId"]);

    let order = server.get(ORDER_URL).await.json();
    for (member, value) in [
        ("path", json!("/publish/article,117")),
        ("chain", json!("/publish/article")),
        ("id", json!("117")),
        ("node", json!("render")),
        ("value", json!({"n": 1})),
        ("tenant", json!("default")),
        ("priority", json!(100)),
        ("planned_at", json!("")),
        ("started_at", json!("")),
        ("suspended", json!(false)),
        ("setback_until", json!("")),
        ("stranded", json!(false)),
    ] {
        assert_eq!(order[member], value, "{member}");
    }
    assert_eq!(order["task"]["status"], "SCHEDULED");
    assert!(order["eventId"].as_u64() >= added.json()["eventId"].as_u64());

    let task = claim_step(&server, "render").await;
    assert_eq!((&task["event"], &task["key"]), (&json!(null), &json!("/publish/article,117")));
    assert_eq!((&task["order"]["node"], &task["order"]["value"]), (&json!("render"), &json!({"n": 1})));
    let running = server.get(ORDER_URL).await.json();
    assert_eq!((&running["task"]["status"], &running["task"]["id"]), (&json!("RUNNING"), &task["id"]));
    assert_ne!(running["started_at"], "");
    assert_eq!(
        server.put(ORDER_URL, r#"{"node":"deploy"}"#).await.checked_problem_status(),
        409,
        "a step runs"
    );
    assert_eq!(server.delete(ORDER_URL).await.checked_problem_status(), 409, "a step runs");

    report_step_end(&server, &task, "done", json!({"result": {"n": 2}})).await;
    let order = server.get(ORDER_URL).await.json();
    assert_eq!((&order["node"], &order["value"]), (&json!("deploy"), &json!({"n": 2})));
    report_step_end(&server, &claim_step(&server, "deploy").await, "fail", json!({"error": "no"})).await;
    let order = server.get(ORDER_URL).await.json();
    assert_eq!((&order["node"], order["setback_until"] == ""), (&json!("deploy"), false), "{order}");

    let moved = server.put(ORDER_URL, r#"{"node":"done"}"#).await;
    assert_eq!((moved.status, &moved.json()["node"]), (200, &json!("done")), "{moved:?}");
    assert_eq!(server.get(ORDER_URL).await.checked_problem_status(), 404, "the order has finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_suspended_changed_resumed_and_removed() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    post_orders(&server, &json!({"path": "/publish/article,117"})).await;
    let suspended = server.post(&format!("{ORDER_URL}/suspend"), "").await;
    assert_eq!(suspended.status, 200, "{suspended:?}");
    assert_eq!((&suspended.json()["suspended"], &suspended.json()["task"]), (&json!(true), &json!(null)));
    let at = "2999-01-01T00:00:00.000000Z";
    let changed =
        server.put(ORDER_URL, &json!({"value": [1], "node": "deploy", "at": at}).to_string()).await.json();
    assert_eq!((&changed["value"], &changed["node"]), (&json!([1]), &json!("deploy")));
    assert_eq!((&changed["planned_at"], &changed["suspended"]), (&json!(at), &json!(true)));
    assert_eq!(server.put(ORDER_URL, r#"{"value":null}"#).await.json()["value"], json!(null));
    let resumed = server.post(&format!("{ORDER_URL}/resume"), "{}").await.json();
    assert_eq!((&resumed["suspended"], &resumed["task"]["due"]), (&json!(false), &json!(at)));
    let removed = server.delete(ORDER_URL).await;
    assert_eq!((removed.status, &removed.json()["node"]), (200, &json!("deploy")));
    assert_eq!(server.get(ORDER_URL).await.checked_problem_status(), 404);
    for path in ["suspend", "resume"] {
        assert_eq!(
            server.post(&format!("{ORDER_URL}/{path}"), "").await.checked_problem_status(),
            404,
            "{path}"
        );
    }
    let audit = server.get("/api/v1/audit").await.json();
    let entries: Vec<_> = audit["entries"].as_array().unwrap().iter().rev().collect();
    let words: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(words, ["add", "suspend", "change", "change", "resume", "remove"]);
    assert!(entries.iter().all(|entry| entry["target"] == "order /publish/article,117"), "{audit}");
    assert_eq!(entries[2]["detail"], format!("node deploy, value, at {at}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_order_requests_name_the_fault() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    post_orders(&server, &json!({"path": "/publish/article,1"})).await;
    let long = json!({"path": "/publish/article", "value": "x".repeat(1 << 20)});
    for (body, status, pointer) in [
        (json!({"path": "/publish/article,1"}), 409, "/path"),
        (json!({"path": "/publish/articel,2"}), 404, "/path"),
        (json!({"path": "/publish/article,2", "node": "deplay"}), 422, "/node"),
        (json!({}), 400, "/path"),
        (json!({"path": 1}), 400, "/path"),
        (json!({"path": "publish/article,2"}), 400, "/path"),
        (json!({"path": "/publish//article,2"}), 400, "/path"),
        (json!({"path": "/publish/article,2,3"}), 400, "/path"),
        (json!({"path": "/publish/article,"}), 400, "/path"),
        (json!({"path": "/publish/article,2", "node": "a b"}), 400, "/node"),
        (json!({"path": "/publish/article,2", "at": "tomorrow"}), 400, "/at"),
        (json!({"path": "/publish/article,2", "delay": "5 minutes"}), 400, "/delay"),
        (json!({"path": "/publish/article,2", "delay": 1, "at": "2999-01-01T00:00:00Z"}), 400, "/at"),
        (json!({"path": "/publish/article,2", "priority": 0}), 400, "/priority"),
        (json!({"path": "/publish/article,2", "tenant": "a b"}), 400, "/tenant"),
        (json!({"path": "/publish/article,2", "colour": "red"}), 400, "/colour"),
        (json!("/publish/article,2"), 400, ""),
        (json!([]), 400, ""),
        (json!([["/publish/article,2"]]), 400, "/0"),
        (json!([{"path": "/publish/article"}, {"path": "/x"}]), 404, "/1/path"),
        (json!([{"path": "/publish/article"}, {"path": "x"}]), 400, "/1/path"),
        (json!([{"path": "/publish/article,3"}, {"path": "/publish/article,3"}]), 409, "/1/path"),
        (json!([{"path": "/publish/article,3"}, {"path": "/publish/article,1"}]), 409, "/1/path"),
        (json!([{"path": "/publish/article,3"}, {"path": "/publish/article", "node": "x"}]), 422, "/1/node"),
        (long, 413, "/value"),
    ] {
        let response = post_orders(&server, &body).await;
        let shown: String = body.to_string().chars().take(80).collect();
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (status, &json!(pointer)),
            "{shown}"
        );
    }
    assert_eq!(
        order_paths(&server.get("/api/v1/orders").await.json()),
        ["/publish/article,1"],
        "all or nothing"
    );
    let hint = post_orders(&server, &json!({"path": "/publish/articel"})).await.json();
    assert!(hint["detail"].as_str().unwrap().contains("/publish/article"), "{hint}");
    assert_eq!(server.post("/api/v1/orders", "{").await.checked_problem_status(), 400);
    let keyed = [("content-type", "application/json"), ("idempotency-key", "")];
    let keyed = server.call("POST", "/api/v1/orders", &keyed, br#"{"path":"/publish/article,9"}"#).await;
    assert_eq!(
        (keyed.checked_problem_status(), &keyed.json()["parameter"]),
        (400, &json!("Idempotency-Key"))
    );
    assert_eq!(server.post("/api/v1/orders?x=1", "{}").await.checked_problem_status(), 400);
    let text = server.call("POST", "/api/v1/orders", &[("content-type", "text/plain")], b"x").await;
    assert_eq!(text.checked_problem_status(), 415);

    let one = "/api/v1/orders/publish/article,1";
    for (body, status, pointer) in [
        (r#"{"node":"gone"}"#, 422, "/node"),
        (r#"{"node":1}"#, 400, "/node"),
        (r#"{"at":"soon"}"#, 400, "/at"),
        (r#"{"tenant":"x"}"#, 400, "/tenant"),
        ("{}", 400, ""),
        ("", 400, ""),
        ("[]", 400, ""),
        (r#"[{"x":1},null,null]"#, 400, ""),
    ] {
        let response = server.put(one, body).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (status, &json!(pointer)),
            "{body}"
        );
    }
    for (path, status) in [
        ("/publish/article,1", 400),
        ("publish//article,1", 400),
        ("publish/article,1,2", 400),
        ("publish/article", 400),
        ("publish/article,2", 404),
        ("publish/article,1/suspend", 400),
    ] {
        assert_eq!(
            server.get(&format!("/api/v1/orders/{path}")).await.checked_problem_status(),
            status,
            "{path}"
        );
    }
    assert_eq!(server.post(one, "").await.checked_problem_status(), 404);
    assert_eq!(server.post(&format!("{one}/hold"), "").await.checked_problem_status(), 404);
    assert_eq!(
        server.post("/api/v1/orders/publish/article,1,2/suspend", "").await.checked_problem_status(),
        400
    );
    assert_eq!(server.post(&format!("{one}/suspend"), r#"{"x":1}"#).await.checked_problem_status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_id_given_twice_in_one_request_is_reported_with_both_positions() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let path = "/publish/article,130";
    let twice =
        json!([{"path": "/publish/article"}, {"path": path}, {"path": "/publish/article"}, {"path": path}]);
    let refused = post_orders(&server, &twice).await;
    assert_eq!((refused.checked_problem_status(), &refused.json()["pointer"]), (409, &json!("/3/path")));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        detail,
        "the request names the order /publish/article,130 twice, at /1/path and /3/path; nothing was added"
    );
    assert_eq!(order_paths(&server.get("/api/v1/orders").await.json()), Vec::<&str>::new());
    // Other tenants may have an order with this id.
    let other = json!([{"path": path}, {"path": path, "tenant": "shop"}]);
    assert_eq!(post_orders(&server, &other).await.status, 201);
    // Once the order exists, the error names the stored order instead of the request.
    let again = post_orders(&server, &json!({"path": path})).await;
    assert!(again.json()["detail"].as_str().unwrap().contains("has an order 130 already"), "{again:?}");
}

/// The result of a step becomes the value of its order. A result above the limit of values is refused; the worker can
/// then report a smaller one.
#[tokio::test(flavor = "multi_thread")]
async fn step_results_above_the_size_limit_of_values_are_refused() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    post_orders(&server, &json!({"path": "/publish/article,117"})).await;
    let task = claim_step(&server, "render").await;
    let text = |bytes: usize| json!({"fence": task["fence"], "result": "x".repeat(bytes - 2)}).to_string();
    let path = format!("/api/v1/worker/{}/done", task["id"].as_str().unwrap());
    let refused = server.post(&path, &text((1 << 20) + 1)).await;
    assert_eq!((refused.checked_problem_status(), &refused.json()["pointer"]), (400, &json!("/result")));
    let detail = refused.json()["detail"].clone();
    assert!(detail.as_str().unwrap().contains("at most 1048576 bytes, this one has 1048577"), "{detail}");
    assert_eq!(server.post(&path, &text(200_000)).await.status, 200);
    let order = server.get(ORDER_URL).await.json();
    assert_eq!((&order["node"], order["value"].as_str().map(str::len)), (&json!("deploy"), Some(199_998)));
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_listed_by_path_and_page() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let several: Vec<_> =
        ["/publish/article,1", "/publish/article,2", "/publish/old/note,1", "/publish/article,3"]
            .map(|path| json!({"path": path, "delay": "1h", "priority": 7}))
            .into();
    let added = post_orders(&server, &json!(several)).await;
    assert_eq!((added.status, added.header("location")), (201, None), "{added:?}");
    let ids: Vec<_> =
        added.json()["orders"].as_array().unwrap().iter().map(|o| o["eventId"].as_u64()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b) && ids.last() == Some(&added.json()["eventId"].as_u64()));
    for (path, count) in [
        ("/", 4),
        ("/publish/", 4),
        ("/publish/*", 3),
        ("/publish/article", 3),
        ("/publish/article,2", 1),
        ("/x/", 0),
    ] {
        let list = server.get(&format!("/api/v1/orders?path={path}")).await.json();
        assert_eq!(order_paths(&list).len(), count, "{path}");
        assert!(order_paths(&list).is_sorted() && list["eventId"].is_u64() && list["next"].is_null());
    }
    let first = server.get("/api/v1/orders?limit=2").await.json();
    assert_eq!(
        (order_paths(&first), &first["orders"][0]["priority"]),
        (vec!["/publish/article,1", "/publish/article,2"], &json!(7))
    );
    let next = first["next"].as_str().unwrap();
    let rest = server.get(&format!("/api/v1/orders?limit=2&cursor={next}")).await.json();
    assert_eq!(order_paths(&rest), ["/publish/article,3", "/publish/old/note,1"]);
    assert_eq!(rest["next"], json!(null));
    for (bad, name) in [
        ("path=x", "path"),
        ("path=/a//b", "path"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=x", "cursor"),
        ("tenant=a%20b", "tenant"),
        ("state=x", "state"),
    ] {
        let response = server.get(&format!("/api/v1/orders?{bad}")).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["parameter"]),
            (400, &json!(name)),
            "{bad}"
        );
    }
    let with_new_id = post_orders(&server, &json!({"path": "/publish/article"})).await;
    let path = with_new_id.header("location").unwrap().to_owned();
    assert_eq!(server.get(&path).await.json()["id"], with_new_id.json()["orders"][0]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_sees_only_the_orders_of_the_tenant() {
    let list = [
        ("admin", "admin", None),
        ("shop-operator", "operator", Some("shop")),
        ("shop-viewer", "viewer", Some("shop")),
    ];
    let mut server =
        TestServer::start_with_config(&format!("{CHAINS_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "admin".into();
    let order = |id: usize| {
        let tenant = ["shop", "x"][id % 2];
        json!({"path": format!("/publish/article,{id}"), "tenant": tenant})
    };
    post_orders(&server, &json!((0..10).map(order).collect::<Vec<_>>())).await;
    server.token = "shop-operator".into();
    let own = post_orders(&server, &json!({"path": "/publish/article,own"})).await;
    assert_eq!(own.status, 201);
    assert_eq!(server.get("/api/v1/orders/publish/article,own").await.json()["tenant"], "shop");
    assert_eq!(
        post_orders(&server, &json!({"path": "/publish/article", "tenant": "x"}))
            .await
            .checked_problem_status(),
        403
    );
    assert_eq!(server.get("/api/v1/orders?tenant=x").await.checked_problem_status(), 403);

    let mut seen = Vec::new();
    let mut address = "/api/v1/orders?limit=2".to_owned();
    loop {
        let page = server.get(&address).await.json();
        seen.extend(order_paths(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        address = format!("/api/v1/orders?limit=2&cursor={next}");
    }
    let own = ["0", "2", "4", "6", "8", "own"].map(|id| format!("/publish/article,{id}"));
    assert_eq!(seen, own);
    let theirs = "/api/v1/orders/publish/article,1";
    assert_eq!(server.get(theirs).await.checked_problem_status(), 404);
    assert_eq!(server.put(theirs, r#"{"value":1}"#).await.checked_problem_status(), 404);
    assert_eq!(server.delete(theirs).await.checked_problem_status(), 404);
    assert_eq!(server.post(&format!("{theirs}/suspend"), "").await.checked_problem_status(), 404);
    assert_eq!(
        server.call_with_token("shop-viewer", "POST", "/api/v1/orders", "{}").await.checked_problem_status(),
        403
    );
    assert_eq!(
        server
            .call_with_token("shop-viewer", "DELETE", "/api/v1/orders/publish/article,0", "")
            .await
            .checked_problem_status(),
        403
    );
    assert_eq!(
        server.call_with_token("shop-viewer", "GET", "/api/v1/orders/publish/article,0", "").await.status,
        200
    );
}
