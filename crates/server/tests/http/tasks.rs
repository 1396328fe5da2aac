use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_core::store::Ended;
use pointsman_core::task::{Level, LogLine};
use pointsman_core::{HandlingKey, Json, NewEvent, Timestamp};
use pointsman_engine::Outcome;
use serde_json::json;

use crate::house::{House, handler};
use crate::stream::Frames;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_from_its_event_to_its_result() {
    let act = |_: &_| Outcome {
        ended: Ended::Succeeded { result: Some(Json::parse(r#"{"done": 1}"#).unwrap()) },
        ..Outcome::done()
    };
    let house = House::with("", handler("job", act)).await;
    let id = house.task_of(r#"{"type":"job.one","key":"k","priority":7}"#).await;
    let task = house.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    assert_eq!(task["result"], json!({"done": 1}));
    assert_eq!(task["attempts"][0]["end"], "succeeded");
    for (member, value) in [
        ("id", json!(id)),
        ("source", json!("job")),
        ("collection", json!("job.one")),
        ("handler", json!("job")),
        ("priority", json!(7)),
        ("state", json!("done")),
        ("tenant", json!("default")),
        ("key", json!("k")),
        ("retries", json!(0)),
        ("attempt", json!(1)),
        ("delay_until", json!("")),
        ("planned_at", json!("")),
    ] {
        assert_eq!(task[member], value, "{member}");
    }
    for time in ["created_at", "started_at", "finished_at"] {
        let text = task[time].as_str().unwrap();
        assert!(
            text.len() == 27 && text.ends_with('Z') && text.parse::<Timestamp>().is_ok(),
            "{time} {text}"
        );
    }
    let list = house.get("/api/v1/tasks?status=SUCCESS&handler=job&key=k&tenant=default").await.json();
    assert_eq!(list["tasks"][0]["id"], id);
    assert!(list["eventId"].is_u64() && list["next"].is_null());
    assert_eq!(house.get("/api/v1/tasks/none").await.problem(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_emits_names_its_cause() {
    let child = NewEvent::of(HandlingKey::new("child").unwrap());
    let act = move |_: &_| Outcome { emits: vec![child.clone()], ..Outcome::done() };
    let house = House::with("", handler("job", act)).await;
    let id = house.task_of(r#"{"type":"job"}"#).await;
    let found = house.until("/api/v1/events?limit=-1&return=child", |seq| seq["TYPE"] == "NonEmpty").await;
    let child = &found["eventSnapshots"][0]["eventId"];
    let cause = house.get(&format!("/api/v1/events/{child}")).await.json()["cause"].clone();
    let parent = house.get("/api/v1/events?limit=-1&return=job").await.json();
    assert_eq!(cause, json!({"eventId": parent["eventSnapshots"][0]["eventId"], "task": id, "depth": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_newest_first() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    house.emit(&format!("[{}]", vec![r#"{"type":"job"}"#; 25].join(","))).await;
    house.until("/api/v1/tasks?status=done&limit=1000", |l| l["tasks"].as_array().unwrap().len() == 25).await;
    let mut seen = Vec::new();
    let mut path = "/api/v1/tasks?limit=10".to_owned();
    loop {
        let page = house.get(&path).await.json();
        let ids = page["tasks"].as_array().unwrap().iter().map(|t| t["event_id"].as_u64().unwrap());
        seen.extend(ids);
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/tasks?limit=10&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 25);
    assert!(seen.is_sorted_by(|a, b| a > b), "{seen:?}");
    let one = seen[0];
    let of_event = house.get(&format!("/api/v1/tasks?event={one}&source=job&collection=job")).await.json();
    assert_eq!(of_event["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(of_event["tasks"][0]["event_id"], one);
    for none in ["source=jo", "collection=jo", "collection=job.one", "event=1"] {
        assert_eq!(house.get(&format!("/api/v1/tasks?{none}")).await.json()["tasks"], json!([]), "{none}");
    }
    for bad in [
        "limit=0",
        "limit=1001",
        "status=x",
        "cursor=x",
        "start=now",
        "handler=a%20b",
        "source=a&handler=b",
        "event=x",
        "start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z",
        "x=1",
    ] {
        assert_eq!(house.get(&format!("/api/v1/tasks?{bad}")).await.problem(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_retried_by_a_person() {
    let works = Arc::new(AtomicBool::new(false));
    let switch = works.clone();
    let act = move |_: &_| match switch.load(Ordering::SeqCst) {
        true => Outcome::done(),
        false => Outcome::failed("not yet"),
    };
    let house = House::with("", handler("job", act)).await;
    let id = house.task_of(r#"{"type":"job"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let task = house.until(&path, |task| task["status"] == "FAILED").await;
    assert_eq!(task["error"], "not yet");
    works.store(true, Ordering::SeqCst);
    let answer = house.post(&format!("{path}/retry"), "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    house.until(&path, |task| task["status"] == "SUCCESS").await;
    assert_eq!(house.post(&format!("{path}/retry"), "").await.problem(), 409);
    assert_eq!(house.post(&format!("{path}/retry"), r#"{"x":1}"#).await.problem(), 400);
    assert_eq!(house.post("/api/v1/tasks/none/retry", "").await.problem(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_task_is_cancelled() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    let id = house.task_of(r#"{"type":"job","delay":"1h"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let task = house.get(&path).await.json();
    assert_eq!(task["status"], "SCHEDULED");
    assert!(task["delay_until"].as_str().unwrap() > task["created_at"].as_str().unwrap());
    let answer = house.post(&format!("{path}/cancel"), "").await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("CANCELED")));
    assert_eq!(house.get("/api/v1/tasks?status=CANCELED").await.json()["tasks"][0]["id"], id);
    assert_eq!(house.get("/api/v1/tasks?status=FAILED").await.json()["tasks"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_whole_and_followed() {
    let line = |n: i64| LogLine {
        time: Timestamp::from_millis(n),
        level: Level::Info,
        message: format!("line {n}"),
    };
    let act = move |_: &_| Outcome { logs: (0..1200).map(line).collect(), ..Outcome::done() };
    let house = House::with("", handler("job", act)).await;
    let id = house.task_of(r#"{"type":"job"}"#).await;
    let mut frames = Frames::open(&house, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    let mut followed = Vec::new();
    loop {
        let frame = frames.next().await.expect("a frame");
        if frame.event == "end" {
            assert_eq!(frame.json()["state"], "done");
            break;
        }
        followed.push(frame.json()["message"].as_str().unwrap().to_owned());
    }
    let logs = house.get(&format!("/api/v1/tasks/{id}/logs")).await.json();
    let messages: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|l| l["message"].as_str().unwrap()).collect();
    let wanted: Vec<_> = (0..1200).map(|n| format!("line {n}")).collect();
    assert_eq!(messages, wanted);
    assert_eq!(followed, wanted);
    assert_eq!(
        logs["logs"][0],
        json!({"time": "1970-01-01T00:00:00.000000Z", "message": "line 0", "level": "info"})
    );
    assert!(logs["eventId"].as_u64().unwrap() > 0, "every list is a snapshot");
    let some = format!("/api/v1/tasks/{id}/logs?start=1970-01-01T00:00:01Z&end=1970-01-01T00:00:01.002Z");
    assert_eq!(house.get(&some).await.json()["logs"].as_array().unwrap().len(), 2);
    assert_eq!(house.get("/api/v1/tasks/none/logs").await.problem(), 404);
    assert_eq!(house.get(&format!("/api/v1/tasks/{id}/logs?follow=yes")).await.problem(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_long_lines_are_whole() {
    let line = |n: i64| LogLine {
        time: Timestamp::from_millis(n),
        level: Level::Info,
        message: format!("{n} {}", "x".repeat(60_000)),
    };
    let act = move |_: &_| Outcome { logs: (0..100).map(line).collect(), ..Outcome::done() };
    let house = House::with("", handler("job", act)).await;
    let id = house.task_of(r#"{"type":"job"}"#).await;
    house.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    let number = |line: &serde_json::Value| {
        let message = line["message"].as_str().expect("a text");
        assert!(message.len() > 60_000);
        message.split(' ').next().and_then(|number| number.parse::<i64>().ok()).expect("a number")
    };
    let logs = house.get(&format!("/api/v1/tasks/{id}/logs")).await.json();
    assert!(logs["logs"].as_array().unwrap().iter().map(number).eq(0..100));
    let mut frames = Frames::open(&house, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    for wanted in 0..100 {
        assert_eq!(number(&frames.next().await.expect("a line").json()), wanted);
    }
    assert_eq!(frames.next().await.expect("an end").event, "end");
}
