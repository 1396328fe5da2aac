use std::collections::BTreeSet;

use pointsman_core::Timestamp;
use pointsman_engine::{Outcome, Setup};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::auth::tokens;
use crate::client::HANGS;
use crate::house::{House, handler, sources};
use crate::stream::Frames;

const EVER: &str = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z";

/// Three sources: one that prints and ends, one that goes on, one of another tenant.
const SOURCES: &str = "
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

async fn run(house: &House, source: &str, collection: &str) -> String {
    let answer = house.post(&format!("/tasks?source={source}&collection={collection}"), "").await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["task_id"].as_str().expect("an id").to_owned()
}

fn ids(list: &Value) -> Vec<String> {
    list["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| task["id"].as_str().expect("a text").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_synchronised_on_request() {
    let house = House::with(SOURCES, Setup::default()).await;
    let id = run(&house, "quick", "orders").await;
    assert!(id.starts_with("quick_orders_"), "{id}");
    let task = house.until(&format!("/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
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
    let logs = house.get(&format!("/tasks/{id}/logs")).await.json();
    let lines: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|l| (&l["message"], &l["level"])).collect();
    let (one, two) = ((&json!("one"), &json!("info")), (&json!("two"), &json!("error")));
    assert_eq!(lines.iter().filter(|line| **line == one).count(), 2, "{logs}");
    assert_eq!(lines.iter().filter(|line| **line == two).count(), 1, "{logs}");
    assert_eq!(logs.as_object().unwrap().len(), 1, "nothing but the lines");
    let later = house.get(&format!("/tasks/{id}/logs?start=2100-01-01T00:00:00Z")).await.json();
    assert_eq!(later, json!({"logs": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_clients_make_one_task() {
    let house = House::with(SOURCES, Setup::default()).await;
    let calls = (0..100).map(|_| house.post("/tasks/?source=slow&collection=orders", ""));
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 99);
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer.json()["task_id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    let list = house.get(&format!("/tasks/?source=slow&{EVER}")).await.json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);

    let id = answers[0].json()["task_id"].as_str().unwrap().to_owned();
    house.until(&format!("/tasks/{id}"), |task| task["status"] == "RUNNING").await;
    let again = house.post("/tasks?source=slow&collection=orders", "").await;
    assert_eq!((again.status, &again.json()["task_id"]), (200, &json!(id)), "one that runs is as good");
    assert_eq!(house.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let next = run(&house, "slow", "orders").await;
    assert_ne!(next, id);
    let canceled = house.get(&format!("/tasks?source=slow&status=CANCELED&{EVER}")).await.json();
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
    let house = House::with(config, Setup::default()).await;
    let id = run(&house, "chatty", "orders").await;
    let mut frames = Frames::open(&house, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    for number in 0..2 {
        let frame = frames.next().await.expect("a line");
        assert_eq!((frame.id, &frame.json()["message"]), (Some(number), &json!("same")));
    }
    assert_eq!(house.get(&format!("/tasks/{id}")).await.json()["status"], "RUNNING");
    assert_eq!(house.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let end = frames.next().await.expect("an end");
    assert_eq!((end.event.as_str(), &end.json()["state"]), ("end", &json!("error")));
    assert!(frames.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_whole_and_the_newest_come_first() {
    let house = House::with(SOURCES, handler("job", |_| Outcome::done())).await;
    house.emit(&format!("[{}]", vec![r#"{"type":"job"}"#; 450].join(","))).await;
    let list = house.get(&format!("/tasks?source=job&{EVER}")).await.json();
    let events: Vec<_> =
        list["tasks"].as_array().unwrap().iter().map(|task| task["event_id"].as_u64().unwrap()).collect();
    assert_eq!(events.len(), 450);
    assert!(events.is_sorted_by(|a, b| a > b));
    assert_eq!(list.as_object().unwrap().len(), 1, "nothing but the tasks");

    let first = run(&house, "quick", "orders").await;
    house.until(&format!("/tasks/{first}"), |task| task["status"] == "SUCCESS").await;
    let second = run(&house, "quick", "customers").await;
    house.until(&format!("/tasks/{second}"), |task| task["status"] == "SUCCESS").await;
    let list = async |more: &str| ids(&house.get(&format!("/tasks?source=quick&{more}")).await.json());
    assert_eq!(list(EVER).await, [second.clone(), first.clone()]);
    assert_eq!(list(&format!("collection=orders&{EVER}")).await, [first.as_str()]);
    assert_eq!(list(&format!("collection=order&{EVER}")).await, [] as [&str; 0]);
    assert_eq!(list(&format!("status=SUCCESS&{EVER}")).await.len(), 2);
    assert_eq!(list(&format!("status=RUNNING&{EVER}")).await, [] as [&str; 0]);
    let made = house.get(&format!("/tasks/{second}")).await.json()["created_at"].as_str().unwrap().to_owned();
    assert_eq!(list(&format!("start={made}&end=2100-01-01T00:00:00Z")).await, [second]);
    assert_eq!(list(&format!("start=2000-01-01T00:00:00Z&end={made}")).await, [first]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_told_what_is_wrong_and_make_nothing() {
    let house = House::with(SOURCES, Setup::default()).await;
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
        let answer = house.get(&format!("/tasks?{query}")).await;
        assert_eq!((answer.problem(), &answer.json()["parameter"]), (status, &json!(parameter)), "{query}");
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
        let answer = house.post(&format!("/tasks?{query}"), "").await;
        assert_eq!((answer.problem(), &answer.json()["parameter"]), (status, &json!(parameter)), "{query}");
    }
    let answer = house.post("/tasks?source=quick&collection=ordres", "").await.json();
    assert!(answer["detail"].as_str().unwrap().contains("did you mean `orders`"), "{answer}");
    assert_eq!(house.post("/tasks?source=quick&collection=orders", r#"{"x":1}"#).await.problem(), 400);
    assert_eq!(house.get("/tasks/none").await.problem(), 404);
    assert_eq!(house.get("/tasks/none/logs").await.problem(), 404);
    assert_eq!(house.get("/tasks/none/logs?start=x").await.problem(), 400);
    assert_eq!(house.delete("/tasks/").await.problem(), 405);
    assert_eq!(house.get("/api/v1/tasks").await.json()["tasks"], json!([]), "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_source_is_not_found_however_long_the_history() {
    let list =
        [("root", "admin", None), ("ours", "viewer", Some("default")), ("others", "viewer", Some("other"))];
    let mut house = House::with(&tokens(&list), handler("job", |_| Outcome::done())).await;
    house.token = "root".into();
    let many = vec![r#"{"type":"job","delay":"1h"}"#; 10_000].join(",");
    for _ in 0..3 {
        house.emit(&format!("[{many}]")).await;
    }
    for token in ["root", "ours", "others"] {
        house.token = token.into();
        assert_eq!(house.get(&format!("/tasks?source=nosuch&{EVER}")).await.problem(), 404, "{token}");
        let period = "start=2000-01-01T00:00:00Z&end=2000-01-02T00:00:00Z";
        assert_eq!(house.get(&format!("/tasks?source=job&{period}")).await.status, 200, "{token}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_gone_is_known_by_its_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let list = [("root", "admin", None), ("others", "viewer", Some("other"))];
    let base =
        format!("store: 'sqlite::memory:'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n{}", tokens(&list));
    let mut house = House::at(folder.path(), &format!("{base}{SOURCES}"), Setup::default()).await;
    house.token = "root".into();
    let id = run(&house, "quick", "orders").await;
    house.until(&format!("/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    let mut reloads = house.server.reloads();
    sources(folder.path(), &base);
    timeout(HANGS, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    assert_eq!(ids(&house.get(&format!("/tasks?source=quick&{EVER}")).await.json()), [id]);
    assert_eq!(house.get(&format!("/tasks?source=slow&{EVER}")).await.problem(), 404, "it never ran");
    house.token = "others".into();
    assert_eq!(house.get(&format!("/tasks?source=quick&{EVER}")).await.problem(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_has_its_own_sources_alone() {
    let list = [("root", "admin", None), ("ours", "operator", Some("default")), ("look", "viewer", None)];
    let mut house = House::with(&format!("{SOURCES}{}", tokens(&list)), Setup::default()).await;
    house.token = "root".into();
    let theirs = run(&house, "theirs", "orders").await;
    house.token = "ours".into();
    run(&house, "quick", "orders").await;
    assert_eq!(house.post("/tasks?source=theirs&collection=orders", "").await.problem(), 404);
    assert_eq!(house.get(&format!("/tasks?source=theirs&{EVER}")).await.problem(), 404);
    assert_eq!(house.get(&format!("/tasks/{theirs}")).await.problem(), 404);
    assert_eq!(house.get(&format!("/tasks/{theirs}/logs")).await.problem(), 404);
    assert_eq!(house.get("/api/v1/handlers/theirs").await.problem(), 404);
    assert_eq!(house.put("/api/v1/handlers/theirs%2Forders/pause", "").await.problem(), 404);

    let admin = format!(
        "GET /tasks/{theirs} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-admin-token: root\r\n\r\n"
    );
    assert_eq!(crate::client::send(house.address, &admin, b"").await.status, 200);
    assert_eq!(
        house.call_as("look", "POST", "/tasks?source=quick&collection=orders", "").await.problem(),
        403
    );
}
