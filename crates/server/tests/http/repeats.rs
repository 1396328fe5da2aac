//! Requests that are repeated: an order id runs once, and an idempotency key makes every request that creates something
//! safe to repeat.

use pointsman_engine::{Outcome, Setup};
use pointsman_testing::{Postgres, Proxy, Settings};
use serde_json::{Value, json};

use crate::auth::tokens;
use crate::client::{Answer, HANGS};
use crate::house::{House, handler, sources};
use crate::orders::{CHAINS, add, claim, end};

const PAY: &str = "
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

async fn post(house: &House, path: &str, key: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    house.call("POST", path, &headers, body.as_bytes()).await
}

/// Sends the same request three times: the first creates, the others get its answer with 200.
async fn three_times(house: &House, path: &str, key: &str, body: &Value, first: u16) -> Value {
    let created = post(house, path, key, body).await;
    assert_eq!(created.status, first, "{path}: {created:?}");
    for _ in 0..2 {
        let again = post(house, path, key, body).await;
        assert_eq!((again.status, again.json()), (200, created.json()), "{path}");
        assert_eq!(again.header("location"), created.header("location"), "{path}");
    }
    created.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_id_runs_once() {
    let house = House::with(PAY, Setup::default()).await;
    let invoice = json!({"path": "/pay,invoice-7"});
    assert_eq!(add(&house, &invoice).await.status, 201);
    let task = claim(&house, "charge").await;
    end(&house, &task, "done", json!({})).await;
    for _ in 0..3 {
        let refused = add(&house, &invoice).await;
        assert_eq!((refused.problem(), &refused.json()["pointer"]), (409, &json!("/path")));
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("/pay,invoice-7 has ended: finished at the node done, 20"), "{detail}");
    }
    let both = add(&house, &json!([{"path": "/pay,invoice-8"}, invoice])).await;
    assert_eq!((both.problem(), &both.json()["pointer"]), (409, &json!("/1/path")));
    assert_eq!(house.get("/api/v1/orders").await.json()["orders"], json!([]), "all or nothing");

    assert_eq!(add(&house, &json!({"path": "/pay,invoice-8"})).await.status, 201);
    let task = claim(&house, "charge").await;
    end(&house, &task, "fail", json!({"error": "no luck"})).await;
    let refused = add(&house, &json!({"path": "/pay,invoice-8"})).await.json();
    assert!(refused["detail"].as_str().unwrap().contains("failed at the node lost"), "{refused}");

    assert_eq!(add(&house, &json!({"path": "/pay,invoice-9"})).await.status, 201);
    assert_eq!(house.delete("/api/v1/orders/pay,invoice-9").await.status, 200);
    let refused = add(&house, &json!({"path": "/pay,invoice-9"})).await.json();
    assert!(refused["detail"].as_str().unwrap().contains("removed at the node charge"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_adding_orders_safe_to_repeat() {
    let house = House::with(CHAINS, Setup::default()).await;
    let body = json!({"path": "/publish/article", "delay": "1h"});
    let added = three_times(&house, "/api/v1/orders", "k1", &body, 201).await;
    let several = json!([{"path": "/publish/article,1"}, {"path": "/publish/article"}]);
    three_times(&house, "/api/v1/orders", "k2", &several, 201).await;
    let list = house.get("/api/v1/orders").await.json();
    assert_eq!(list["orders"].as_array().map(Vec::len), Some(3), "{list}");

    let path = added["orders"][0]["path"].as_str().unwrap();
    assert_eq!(house.delete(&format!("/api/v1/orders{path}")).await.status, 200);
    assert_eq!(post(&house, "/api/v1/orders", "k1", &body).await.json(), added, "though it is gone");

    let other = post(&house, "/api/v1/orders", "k1", &several).await;
    assert_eq!((other.problem(), &other.json()["parameter"]), (409, &json!("Idempotency-Key")));
    let shop = post(&house, "/api/v1/orders?tenant=shop", "k1", &body).await;
    assert_eq!(shop.status, 201, "keys are a tenant's own: {shop:?}");
    let event = post(&house, "/api/v1/events", "k1", &json!({"type": "a"})).await;
    assert_eq!(event.problem(), 409, "one key is not used for an order and for an event");
    let refused = post(&house, "/api/v1/orders", "k3", &json!({"path": "/none,1"})).await;
    assert_eq!(refused.problem(), 404);
    let body = json!({"path": "/publish/article,3"});
    assert_eq!(post(&house, "/api/v1/orders", "k3", &body).await.status, 201, "a refusal uses up no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_repeats_add_one_order() {
    let house = House::with(CHAINS, Setup::default()).await;
    let body = json!({"path": "/publish/article"});
    let calls = (0..20).map(|_| post(&house, "/api/v1/orders", "k", &body));
    let answers = futures::future::join_all(calls).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!((created, answers.iter().filter(|answer| answer.status == 200).count()), (1, 19));
    assert!(answers.iter().all(|answer| answer.json() == answers[0].json()));
    let list = house.get("/api/v1/orders").await.json();
    assert_eq!(list["orders"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_runs_of_sources_and_schedules_safe_to_repeat() {
    let house = House::with(PAY, Setup::default()).await;
    let sync = "/tasks?source=shop&collection=orders";
    let first = three_times(&house, sync, "k1", &Value::Null, 201).await;
    let address = format!("/api/v1/tasks/{}", first["task_id"].as_str().unwrap());
    house.until(&address, |task| task["status"] == "SUCCESS").await;
    let again = post(&house, sync, "k1", &Value::Null).await;
    assert_eq!((again.status, again.json()), (200, first.clone()), "though the task has ended");
    let anew = post(&house, sync, "k2", &Value::Null).await;
    assert_eq!(anew.status, 201);
    assert_ne!(anew.json(), first);
    assert_eq!(post(&house, "/api/v1/schedules/report/run", "k1", &Value::Null).await.problem(), 409);

    let event = three_times(&house, "/api/v1/schedules/report/run", "k3", &Value::Null, 201).await;
    assert_eq!(event["created"], true, "{event}");
    let events = house.get("/api/v1/events?return=report&after=0").await.json();
    assert_eq!(events["eventSnapshots"].as_array().map(Vec::len), Some(1), "{events}");
}

/// A schedule's own id is used again once its last order has ended, planned or by hand.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_with_a_fixed_id_runs_again_when_its_order_has_ended() {
    let house = House::with(PAY, Setup::default()).await;
    let run = "/api/v1/schedules/fixed/run";
    for _ in 0..2 {
        assert_eq!(house.post(run, "").await.status, 201);
        assert_eq!(house.post(run, "").await.problem(), 409, "it is on its way");
        let task = claim(&house, "charge").await;
        end(&house, &task, "done", json!({})).await;
    }
    let added = three_times(&house, run, "k", &Value::Null, 201).await;
    assert_eq!(added["order"], "/pay,nightly");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_redrive_and_adopt_safe_to_repeat() {
    let house = House::with("", handler("job", |_| Outcome::failed("no luck"))).await;
    house.emit(r#"{"type":"job"}"#).await;
    let failed = |list: &Value| list["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
    house.until("/api/v1/tasks?status=FAILED", failed).await;
    let filter = json!({"handler": "job"});
    let begun = three_times(&house, "/api/v1/tasks/redrive", "k1", &filter, 202).await;
    house
        .until(&format!("/api/v1/redrives/{}", begun["id"].as_str().unwrap()), |job| job["state"] == "done")
        .await;
    let again = post(&house, "/api/v1/tasks/redrive", "k1", &filter).await;
    assert_eq!((again.status, again.json()), (200, begun), "though it has ended");
    assert_eq!(house.get("/api/v1/redrives").await.json()["redrives"].as_array().map(Vec::len), Some(1));
    let other = post(&house, "/api/v1/tasks/redrive", "k1", &json!({"all": true})).await;
    assert_eq!((other.problem(), &other.json()["parameter"]), (409, &json!("Idempotency-Key")));

    three_times(&house, "/api/v1/handlers/job/adopt", "k2", &Value::Null, 200).await;
    let other = post(&house, "/api/v1/handlers/job/adopt", "k2", &json!({"from": 1})).await;
    assert_eq!(other.problem(), 409);
}

const BASE: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

/// The configuration in which nothing is left but a schedule, which creates an order and not an event now.
const CHANGED: &str = "
handlers: {other: {run: pull}}
chains: {/pay: {nodes: [{id: other, handler: other, next: done}, {id: done, end: true}]}}
schedules: {report: {cron: '0 3 * * *', order: {path: /pay}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_its_answer_though_the_configuration_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), &format!("{BASE}{PAY}"), Setup::default()).await;
    let requests = [
        ("/tasks?source=shop&collection=orders", Value::Null),
        ("/api/v1/schedules/report/run", Value::Null),
        ("/api/v1/schedules/fixed/run", Value::Null),
        ("/api/v1/handlers/charge/adopt", Value::Null),
        ("/api/v1/tasks/redrive", json!({"source": "shop"})),
    ];
    let mut first = Vec::new();
    for (path, body) in &requests {
        let answer = post(&house, path, path, body).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
        first.push(answer.json());
    }
    let task = format!("/api/v1/tasks/{}", first[0]["task_id"].as_str().unwrap());
    house.until(&task, |task| task["status"] == "SUCCESS").await;
    let mut reloads = house.server.reloads();
    sources(folder.path(), &format!("{BASE}{CHANGED}"));
    tokio::time::timeout(HANGS, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    for ((path, body), first) in requests.iter().zip(first) {
        let again = post(&house, path, path, body).await;
        assert_eq!((again.status, again.json()), (200, first), "{path}");
    }
    assert_eq!(post(&house, requests[0].0, "new", &Value::Null).await.problem(), 404);
    let run = post(&house, "/api/v1/schedules/report/run", "new", &Value::Null).await.json();
    assert!(run["order"].is_string(), "another key runs the schedule as it is now: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_its_answer_though_the_schedule_is_blocked() {
    let list = [("boss", "admin", None), ("op", "operator", None), ("bound", "operator", Some("default"))];
    let mut house = House::with(&format!("{}{PAY}", tokens(&list)), Setup::default()).await;
    house.token = "op".into();
    let run = "/api/v1/schedules/report/run";
    let first = post(&house, run, "k", &Value::Null).await;
    assert_eq!(first.status, 201, "{first:?}");
    let block = house.call_as("boss", "PUT", "/api/v1/schedules/report/block", "").await;
    assert!(block.status < 300, "{block:?}");
    let again = post(&house, run, "k", &Value::Null).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    assert_eq!(post(&house, run, "new", &Value::Null).await.problem(), 409);
    // Its tenant's keys are the same, but not what it may read.
    house.token = "bound".into();
    assert_eq!(post(&house, run, "k", &Value::Null).await.problem(), 409);
}

/// Sleeps in the commit of an idempotency record.
const SLOW_COMMIT: &str = "
    CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER nap AFTER INSERT ON pointsman.idempotency_record DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION nap()";
const IS_ASLEEP: &str = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_whose_record_was_written_without_an_answer_begins() {
    let postgres = Postgres::start(Settings::default()).unwrap();
    let url = postgres.create_database().unwrap();
    let database = url.rsplit('/').next().unwrap();
    let proxy = Proxy::start(postgres.address()).unwrap();
    let store = postgres.url_through(&proxy, database).unwrap();
    let yaml = format!("store: '{store}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n");
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), &yaml, handler("job", |_| Outcome::failed("no luck"))).await;
    house.emit(r#"{"type":"job"}"#).await;
    let failed = |list: &Value| list["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
    house.until("/api/v1/tasks?status=FAILED", failed).await;

    postgres.query(database, SLOW_COMMIT).unwrap();
    let filter = json!({"handler": "job"});
    let cut = async {
        while postgres.query(database, IS_ASLEEP).unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        proxy.cut();
    };
    let (lost, ()) = tokio::join!(post(&house, "/api/v1/tasks/redrive", "k", &filter), cut);
    assert_eq!(lost.problem(), 503);
    let begun = |list: &Value| list["redrives"][0]["state"] == "done";
    let list = house.until("/api/v1/redrives", begun).await;
    assert_eq!(list["redrives"][0]["retried"], 1, "{list}");
    let again = post(&house, "/api/v1/tasks/redrive", "k", &filter).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &list["redrives"][0]["id"]));
    assert_eq!(house.get("/api/v1/redrives").await.json()["redrives"].as_array().map(Vec::len), Some(1));
}
