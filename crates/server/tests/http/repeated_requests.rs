//! Requests that are repeated: the id of an ended order is refused, and an idempotency key makes every request that
//! creates something safe to repeat.

use pointsman_engine::{HandlerOutcome, Setup};
use pointsman_testing::{FaultProxy, PostgresServer, PostgresSettings};
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::orders::{CHAINS_CONFIG, claim_step, post_orders, report_step_end};
use crate::raw_http_client::{TEST_TIMEOUT, TestResponse};
use crate::test_server::{TestServer, in_process_handler_setup, write_config_and_get_inputs};

const PAY_CONFIG: &str = "
handlers: {charge: {run: pull, retry: {max: 0}}}
chains:
  /pay:
    nodes:
      - {id: charge, handler: charge, next: done, on_error: lost}
      - {id: done, end: true}
      - {id: lost, end: true}
schedules:
  fixed: {cron: '0 3 * * *', order: {path: '/pay,nightly'}}
  report: {cron: '0 3 * * *', emit: {type: report.due}}
sources:
  shop:
    run: {command: ['true']}
    collections: [{name: orders}]
";

async fn post_with_idempotency_key(server: &TestServer, path: &str, key: &str, body: &Value) -> TestResponse {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.call("POST", path, &headers, body.as_bytes()).await
}

/// Sends the same request three times with an idempotency key. Expects `first_status` for the first request, and 200
/// with the same body for the repeats. Returns the body.
async fn post_three_times_and_expect_one_response(
    server: &TestServer,
    path: &str,
    key: &str,
    body: &Value,
    first_status: u16,
) -> Value {
    let created = post_with_idempotency_key(server, path, key, body).await;
    assert_eq!(created.status, first_status, "{path}: {created:?}");
    for _ in 0..2 {
        let again = post_with_idempotency_key(server, path, key, body).await;
        assert_eq!((again.status, again.json()), (200, created.json()), "{path}");
        assert_eq!(again.header("location"), created.header("location"), "{path}");
    }
    created.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_an_ended_order_is_refused() {
    let server = TestServer::start_with_config(PAY_CONFIG, Setup::default()).await;
    let invoice = json!({"path": "/pay,invoice-7"});
    assert_eq!(post_orders(&server, &invoice).await.status, 201);
    let task = claim_step(&server, "charge").await;
    report_step_end(&server, &task, "done", json!({})).await;
    for _ in 0..3 {
        let refused = post_orders(&server, &invoice).await;
        assert_eq!((refused.checked_problem_status(), &refused.json()["pointer"]), (409, &json!("/path")));
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("/pay,invoice-7 has ended: finished at the node done, 20"), "{detail}");
    }
    let both = post_orders(&server, &json!([{"path": "/pay,invoice-8"}, invoice])).await;
    assert_eq!((both.checked_problem_status(), &both.json()["pointer"]), (409, &json!("/1/path")));
    assert_eq!(server.get("/api/v1/orders").await.json()["orders"], json!([]), "all or nothing");

    assert_eq!(post_orders(&server, &json!({"path": "/pay,invoice-8"})).await.status, 201);
    let task = claim_step(&server, "charge").await;
    report_step_end(&server, &task, "fail", json!({"error": "no luck"})).await;
    let refused = post_orders(&server, &json!({"path": "/pay,invoice-8"})).await.json();
    assert!(refused["detail"].as_str().unwrap().contains("failed at the node lost"), "{refused}");

    assert_eq!(post_orders(&server, &json!({"path": "/pay,invoice-9"})).await.status, 201);
    assert_eq!(server.delete("/api/v1/orders/pay,invoice-9").await.status, 200);
    let refused = post_orders(&server, &json!({"path": "/pay,invoice-9"})).await.json();
    assert!(refused["detail"].as_str().unwrap().contains("removed at the node charge"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_adding_orders_safe_to_repeat() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let body = json!({"path": "/publish/article", "delay": "1h"});
    let added = post_three_times_and_expect_one_response(&server, "/api/v1/orders", "k1", &body, 201).await;
    let several = json!([{"path": "/publish/article,1"}, {"path": "/publish/article"}]);
    post_three_times_and_expect_one_response(&server, "/api/v1/orders", "k2", &several, 201).await;
    let list = server.get("/api/v1/orders").await.json();
    assert_eq!(list["orders"].as_array().map(Vec::len), Some(3), "{list}");

    let path = added["orders"][0]["path"].as_str().unwrap();
    assert_eq!(server.delete(&format!("/api/v1/orders{path}")).await.status, 200);
    assert_eq!(
        post_with_idempotency_key(&server, "/api/v1/orders", "k1", &body).await.json(),
        added,
        "although the order was removed"
    );

    let other = post_with_idempotency_key(&server, "/api/v1/orders", "k1", &several).await;
    assert_eq!(
        (other.checked_problem_status(), &other.json()["parameter"]),
        (409, &json!("Idempotency-Key"))
    );
    let shop = post_with_idempotency_key(&server, "/api/v1/orders?tenant=shop", "k1", &body).await;
    assert_eq!(shop.status, 201, "keys are a tenant's own: {shop:?}");
    let event = post_with_idempotency_key(&server, "/api/v1/events", "k1", &json!({"type": "a"})).await;
    assert_eq!(event.checked_problem_status(), 409, "one key is not used for an order and for an event");
    let refused =
        post_with_idempotency_key(&server, "/api/v1/orders", "k3", &json!({"path": "/none,1"})).await;
    assert_eq!(refused.checked_problem_status(), 404);
    let body = json!({"path": "/publish/article,3"});
    assert_eq!(
        post_with_idempotency_key(&server, "/api/v1/orders", "k3", &body).await.status,
        201,
        "a refusal uses up no key"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_repeats_add_one_order() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let body = json!({"path": "/publish/article"});
    let calls = (0..20).map(|_| post_with_idempotency_key(&server, "/api/v1/orders", "k", &body));
    let responses = futures::future::join_all(calls).await;
    let created = responses.iter().filter(|response| response.status == 201).count();
    assert_eq!((created, responses.iter().filter(|response| response.status == 200).count()), (1, 19));
    assert!(responses.iter().all(|response| response.json() == responses[0].json()));
    let list = server.get("/api/v1/orders").await.json();
    assert_eq!(list["orders"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_runs_of_sources_and_schedules_safe_to_repeat() {
    let server = TestServer::start_with_config(PAY_CONFIG, Setup::default()).await;
    let sync = "/tasks?source=shop&collection=orders";
    let first = post_three_times_and_expect_one_response(&server, sync, "k1", &Value::Null, 201).await;
    let address = format!("/api/v1/tasks/{}", first["task_id"].as_str().unwrap());
    server.wait_until_get_returns(&address, |task| task["status"] == "SUCCESS").await;
    let again = post_with_idempotency_key(&server, sync, "k1", &Value::Null).await;
    assert_eq!((again.status, again.json()), (200, first.clone()), "although the task has ended");
    let anew = post_with_idempotency_key(&server, sync, "k2", &Value::Null).await;
    assert_eq!(anew.status, 201);
    assert_ne!(anew.json(), first);
    assert_eq!(
        post_with_idempotency_key(&server, "/api/v1/schedules/report/run", "k1", &Value::Null)
            .await
            .checked_problem_status(),
        409
    );

    let event = post_three_times_and_expect_one_response(
        &server,
        "/api/v1/schedules/report/run",
        "k3",
        &Value::Null,
        201,
    )
    .await;
    assert_eq!(event["created"], true, "{event}");
    let events = server.get("/api/v1/events?return=report&after=0").await.json();
    assert_eq!(events["eventSnapshots"].as_array().map(Vec::len), Some(1), "{events}");
}

/// The order id that a schedule fixes can be used again once the schedule's last order has ended, whether it was
/// planned or run by hand.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_with_a_fixed_id_runs_again_when_its_order_has_ended() {
    let server = TestServer::start_with_config(PAY_CONFIG, Setup::default()).await;
    let run = "/api/v1/schedules/fixed/run";
    for _ in 0..2 {
        assert_eq!(server.post(run, "").await.status, 201);
        assert_eq!(server.post(run, "").await.checked_problem_status(), 409, "its order is running");
        let task = claim_step(&server, "charge").await;
        report_step_end(&server, &task, "done", json!({})).await;
    }
    let added = post_three_times_and_expect_one_response(&server, run, "k", &Value::Null, 201).await;
    assert_eq!(added["order"], "/pay,nightly");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_redrive_and_adopt_safe_to_repeat() {
    let server = TestServer::start_with_config(
        "",
        in_process_handler_setup("job", |_| HandlerOutcome::failed("no luck")),
    )
    .await;
    server.emit(r#"{"type":"job"}"#).await;
    let failed = |list: &Value| list["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
    server.wait_until_get_returns("/api/v1/tasks?status=FAILED", failed).await;
    let filter = json!({"handler": "job"});
    let started =
        post_three_times_and_expect_one_response(&server, "/api/v1/tasks/redrive", "k1", &filter, 202).await;
    server
        .wait_until_get_returns(&format!("/api/v1/redrives/{}", started["id"].as_str().unwrap()), |job| {
            job["state"] == "done"
        })
        .await;
    let again = post_with_idempotency_key(&server, "/api/v1/tasks/redrive", "k1", &filter).await;
    assert_eq!((again.status, again.json()), (200, started), "although the redrive has ended");
    assert_eq!(server.get("/api/v1/redrives").await.json()["redrives"].as_array().map(Vec::len), Some(1));
    let other =
        post_with_idempotency_key(&server, "/api/v1/tasks/redrive", "k1", &json!({"all": true})).await;
    assert_eq!(
        (other.checked_problem_status(), &other.json()["parameter"]),
        (409, &json!("Idempotency-Key"))
    );

    post_three_times_and_expect_one_response(&server, "/api/v1/handlers/job/adopt", "k2", &Value::Null, 200)
        .await;
    let other =
        post_with_idempotency_key(&server, "/api/v1/handlers/job/adopt", "k2", &json!({"from": 1})).await;
    assert_eq!(other.checked_problem_status(), 409);
}

const BASE_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

/// A configuration that keeps only the schedule `report`, which now creates an order instead of an event.
const CHANGED_CONFIG: &str = "
handlers: {other: {run: pull}}
chains: {/pay: {nodes: [{id: other, handler: other, next: done}, {id: done, end: true}]}}
schedules: {report: {cron: '0 3 * * *', order: {path: /pay}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_its_response_after_a_configuration_change() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        TestServer::start_in_folder(folder.path(), &format!("{BASE_CONFIG}{PAY_CONFIG}"), Setup::default())
            .await;
    let requests = [
        ("/tasks?source=shop&collection=orders", Value::Null),
        ("/api/v1/schedules/report/run", Value::Null),
        ("/api/v1/schedules/fixed/run", Value::Null),
        ("/api/v1/handlers/charge/adopt", Value::Null),
        ("/api/v1/tasks/redrive", json!({"source": "shop"})),
    ];
    let mut first = Vec::new();
    for (path, body) in &requests {
        let response = post_with_idempotency_key(&server, path, path, body).await;
        assert!(response.status < 300, "{path}: {response:?}");
        first.push(response.json());
    }
    let task = format!("/api/v1/tasks/{}", first[0]["task_id"].as_str().unwrap());
    server.wait_until_get_returns(&task, |task| task["status"] == "SUCCESS").await;
    let mut reloads = server.inner.subscribe_reload_counts();
    write_config_and_get_inputs(folder.path(), &format!("{BASE_CONFIG}{CHANGED_CONFIG}"));
    tokio::time::timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    for ((path, body), first) in requests.iter().zip(first) {
        let again = post_with_idempotency_key(&server, path, path, body).await;
        assert_eq!((again.status, again.json()), (200, first), "{path}");
    }
    assert_eq!(
        post_with_idempotency_key(&server, requests[0].0, "new", &Value::Null).await.checked_problem_status(),
        404
    );
    let run =
        post_with_idempotency_key(&server, "/api/v1/schedules/report/run", "new", &Value::Null).await.json();
    assert!(run["order"].is_string(), "another key runs the schedule as it is now: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_its_response_when_the_schedule_is_blocked() {
    let list =
        [("admin", "admin", None), ("operator", "operator", None), ("bound", "operator", Some("default"))];
    let mut server =
        TestServer::start_with_config(&format!("{}{PAY_CONFIG}", tokens_yaml(&list)), Setup::default()).await;
    server.token = "operator".into();
    let run = "/api/v1/schedules/report/run";
    let first = post_with_idempotency_key(&server, run, "k", &Value::Null).await;
    assert_eq!(first.status, 201, "{first:?}");
    let block = server.call_with_token("admin", "PUT", "/api/v1/schedules/report/block", "").await;
    assert!(block.status < 300, "{block:?}");
    let again = post_with_idempotency_key(&server, run, "k", &Value::Null).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    assert_eq!(
        post_with_idempotency_key(&server, run, "new", &Value::Null).await.checked_problem_status(),
        409
    );
    // Both tokens use the idempotency keys of the tenant `default`, but this one may not read the stored response.
    server.token = "bound".into();
    assert_eq!(
        post_with_idempotency_key(&server, run, "k", &Value::Null).await.checked_problem_status(),
        409
    );
}

/// Makes every commit of an idempotency record take a second.
const SLOW_COMMIT_SQL: &str = "
    CREATE FUNCTION delay_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER delay_commit AFTER INSERT ON pointsman.idempotency_record DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION delay_commit()";
const IS_COMMIT_ASLEEP_SQL: &str = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_starts_although_the_commit_of_its_response_was_not_confirmed() {
    let postgres = PostgresServer::start(PostgresSettings::default()).unwrap();
    let url = postgres.create_database().unwrap();
    let database = url.rsplit('/').next().unwrap();
    let proxy = FaultProxy::start(postgres.address()).unwrap();
    let store = postgres.url_through_proxy(&proxy, database).unwrap();
    let yaml = format!("store: '{store}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n");
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_in_folder(
        folder.path(),
        &yaml,
        in_process_handler_setup("job", |_| HandlerOutcome::failed("no luck")),
    )
    .await;
    server.emit(r#"{"type":"job"}"#).await;
    let failed = |list: &Value| list["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
    server.wait_until_get_returns("/api/v1/tasks?status=FAILED", failed).await;

    postgres.query(database, SLOW_COMMIT_SQL).unwrap();
    let filter = json!({"handler": "job"});
    let cut = async {
        while postgres.query(database, IS_COMMIT_ASLEEP_SQL).unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        proxy.close_connections();
    };
    let (lost, ()) =
        tokio::join!(post_with_idempotency_key(&server, "/api/v1/tasks/redrive", "k", &filter), cut);
    assert_eq!(lost.checked_problem_status(), 503);
    let started = |list: &Value| list["redrives"][0]["state"] == "done";
    let list = server.wait_until_get_returns("/api/v1/redrives", started).await;
    assert_eq!(list["redrives"][0]["retried"], 1, "{list}");
    let again = post_with_idempotency_key(&server, "/api/v1/tasks/redrive", "k", &filter).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &list["redrives"][0]["id"]));
    assert_eq!(server.get("/api/v1/redrives").await.json()["redrives"].as_array().map(Vec::len), Some(1));
}
