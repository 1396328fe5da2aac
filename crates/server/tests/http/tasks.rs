use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_core::store::AttemptResult;
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_core::{EventType, Json, NewEvent, Timestamp};
use pointsman_engine::HandlerOutcome;
use serde_json::json;

use crate::stream::SseClient;
use crate::test_server::{TestServer, in_process_handler_setup};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_shows_its_status_attempts_and_result() {
    let act = |_: &_| HandlerOutcome {
        result: AttemptResult::Succeeded { result: Some(Json::parse(r#"{"done": 1}"#).unwrap()) },
        ..HandlerOutcome::succeeded()
    };
    let server = TestServer::start_with_config("", in_process_handler_setup("job", act)).await;
    let id = server.emit_and_get_task_id(r#"{"type":"job.one","key":"k","priority":7}"#).await;
    let task = server
        .wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS")
        .await;
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
    let list = server.get("/api/v1/tasks?status=SUCCESS&handler=job&key=k&tenant=default").await.json();
    assert_eq!(list["tasks"][0]["id"], id);
    assert!(list["eventId"].is_u64() && list["next"].is_null());
    assert_eq!(server.get("/api/v1/tasks/none").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn emitted_events_name_their_cause() {
    let child = NewEvent::new(EventType::new("child").unwrap());
    let act =
        move |_: &_| HandlerOutcome { emitted_events: vec![child.clone()], ..HandlerOutcome::succeeded() };
    let server = TestServer::start_with_config("", in_process_handler_setup("job", act)).await;
    let id = server.emit_and_get_task_id(r#"{"type":"job"}"#).await;
    let found = server
        .wait_until_get_returns("/api/v1/events?limit=-1&return=child", |seq| seq["TYPE"] == "NonEmpty")
        .await;
    let child = &found["eventSnapshots"][0]["eventId"];
    let cause = server.get(&format!("/api/v1/events/{child}")).await.json()["cause"].clone();
    let parent = server.get("/api/v1/events?limit=-1&return=job").await.json();
    assert_eq!(cause, json!({"eventId": parent["eventSnapshots"][0]["eventId"], "task": id, "depth": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn task_lists_are_paged_newest_first() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    server.emit(&format!("[{}]", vec![r#"{"type":"job"}"#; 25].join(","))).await;
    server
        .wait_until_get_returns("/api/v1/tasks?status=done&limit=1000", |l| {
            l["tasks"].as_array().unwrap().len() == 25
        })
        .await;
    let mut seen = Vec::new();
    let mut path = "/api/v1/tasks?limit=10".to_owned();
    loop {
        let page = server.get(&path).await.json();
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
    let of_event = server.get(&format!("/api/v1/tasks?event={one}&source=job&collection=job")).await.json();
    assert_eq!(of_event["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(of_event["tasks"][0]["event_id"], one);
    for none in ["source=jo", "collection=jo", "collection=job.one", "event=1"] {
        assert_eq!(server.get(&format!("/api/v1/tasks?{none}")).await.json()["tasks"], json!([]), "{none}");
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
        assert_eq!(server.get(&format!("/api/v1/tasks?{bad}")).await.checked_problem_status(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_retries_a_failed_task() {
    let works = Arc::new(AtomicBool::new(false));
    let switch = works.clone();
    let act = move |_: &_| match switch.load(Ordering::SeqCst) {
        true => HandlerOutcome::succeeded(),
        false => HandlerOutcome::failed("not yet"),
    };
    let server = TestServer::start_with_config("", in_process_handler_setup("job", act)).await;
    let id = server.emit_and_get_task_id(r#"{"type":"job"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let task = server.wait_until_get_returns(&path, |task| task["status"] == "FAILED").await;
    assert_eq!(task["error"], "not yet");
    works.store(true, Ordering::SeqCst);
    let response = server.post(&format!("{path}/retry"), "").await;
    assert_eq!(response.status, 200, "{response:?}");
    server.wait_until_get_returns(&path, |task| task["status"] == "SUCCESS").await;
    assert_eq!(server.post(&format!("{path}/retry"), "").await.checked_problem_status(), 409);
    assert_eq!(server.post(&format!("{path}/retry"), r#"{"x":1}"#).await.checked_problem_status(), 400);
    assert_eq!(server.post("/api/v1/tasks/none/retry", "").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_task_is_cancelled() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let id = server.emit_and_get_task_id(r#"{"type":"job","delay":"1h"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let task = server.get(&path).await.json();
    assert_eq!(task["status"], "SCHEDULED");
    assert!(task["delay_until"].as_str().unwrap() > task["created_at"].as_str().unwrap());
    let response = server.post(&format!("{path}/cancel"), "").await;
    assert_eq!((response.status, &response.json()["status"]), (200, &json!("CANCELED")));
    assert_eq!(server.get("/api/v1/tasks?status=CANCELED").await.json()["tasks"][0]["id"], id);
    assert_eq!(server.get("/api/v1/tasks?status=FAILED").await.json()["tasks"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_completely_and_followed() {
    let line = |n: i64| LogLine {
        time: Timestamp::from_millis(n),
        level: LogLevel::Info,
        message: format!("line {n}"),
    };
    let act = move |_: &_| HandlerOutcome {
        log_lines: (0..1200).map(line).collect(),
        ..HandlerOutcome::succeeded()
    };
    let server = TestServer::start_with_config("", in_process_handler_setup("job", act)).await;
    let id = server.emit_and_get_task_id(r#"{"type":"job"}"#).await;
    let mut frames = SseClient::connect(&server, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    let mut followed = Vec::new();
    loop {
        let frame = frames.next_frame().await.expect("a frame");
        if frame.event == "end" {
            assert_eq!(frame.json()["state"], "done");
            break;
        }
        followed.push(frame.json()["message"].as_str().unwrap().to_owned());
    }
    let logs = server.get(&format!("/api/v1/tasks/{id}/logs")).await.json();
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
    assert_eq!(server.get(&some).await.json()["logs"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/api/v1/tasks/none/logs").await.checked_problem_status(), 404);
    assert_eq!(
        server.get(&format!("/api/v1/tasks/{id}/logs?follow=yes")).await.checked_problem_status(),
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_with_long_lines_are_complete() {
    let line = |n: i64| LogLine {
        time: Timestamp::from_millis(n),
        level: LogLevel::Info,
        message: format!("{n} {}", "x".repeat(60_000)),
    };
    let act = move |_: &_| HandlerOutcome {
        log_lines: (0..100).map(line).collect(),
        ..HandlerOutcome::succeeded()
    };
    let server = TestServer::start_with_config("", in_process_handler_setup("job", act)).await;
    let id = server.emit_and_get_task_id(r#"{"type":"job"}"#).await;
    server.wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    let number = |line: &serde_json::Value| {
        let message = line["message"].as_str().expect("a text");
        assert!(message.len() > 60_000);
        message.split(' ').next().and_then(|number| number.parse::<i64>().ok()).expect("a number")
    };
    let logs = server.get(&format!("/api/v1/tasks/{id}/logs")).await.json();
    assert!(logs["logs"].as_array().unwrap().iter().map(number).eq(0..100));
    let mut frames = SseClient::connect(&server, &format!("/api/v1/tasks/{id}/logs?follow=true"), &[]).await;
    for wanted in 0..100 {
        assert_eq!(number(&frames.next_frame().await.expect("a line").json()), wanted);
    }
    assert_eq!(frames.next_frame().await.expect("an end").event, "end");
}
