use crate::test_server::{TestServer, in_process_handler_setup};
use pointsman_engine::HandlerOutcome;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn one_event_is_journaled_with_its_tasks() {
    let server = TestServer::start_with_config(
        "",
        in_process_handler_setup("record", |_| HandlerOutcome::succeeded()),
    )
    .await;
    let response = server
        .post("/api/v1/events", r#"{"type":"record.published","key":"record:1","value":{"n":1}}"#)
        .await;
    assert_eq!(response.status, 201, "{response:?}");
    let body = response.json();
    assert_eq!(body["eventId"], body["events"][0]["eventId"]);
    assert!(body["events"][0]["prev"].is_null());
    assert_eq!(body["events"][0]["tasks"].as_array().unwrap().len(), 1);
    let first = &body["eventId"];

    let second =
        server.post("/api/v1/events", r#"{"type":"record.published","key":"record:1"}"#).await.json();
    assert_eq!(second["events"][0]["prev"], *first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_of_events_is_stored_completely_or_not_at_all() {
    let server = TestServer::start().await;
    let response = server.post("/api/v1/events", r#"[{"type":"a","key":"k"},{"type":"b","key":"k"}]"#).await;
    let body = response.json();
    assert_eq!(response.status, 201);
    assert_eq!(body["events"][1]["prev"], body["events"][0]["eventId"]);
    assert_eq!(body["eventId"], body["events"][1]["eventId"]);

    let response = server.post("/api/v1/events", r#"[{"type":"a"},{"type":"b","key":7}]"#).await;
    assert_eq!(response.checked_problem_status(), 400);
    assert_eq!(response.json()["pointer"], "/1/key");
    let journal = server.get("/api/v1/events?tenant=default&after=0").await.json();
    assert_eq!(journal["eventSnapshots"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_may_have_1_to_10000_events() {
    let server = TestServer::start().await;
    assert_eq!(server.post("/api/v1/events", "[]").await.checked_problem_status(), 400);
    let many = |count| format!("[{}]", vec![r#"{"type":"a"}"#; count].join(","));
    assert_eq!(server.post("/api/v1/events", &many(10_001)).await.checked_problem_status(), 400);
    let response = server.post("/api/v1/events", &many(10_000)).await;
    assert_eq!(response.status, 201);
    assert_eq!(response.json()["events"].as_array().unwrap().len(), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_idempotency_keys_of_its_own() {
    let server = TestServer::start().await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let send = |body: &'static [u8]| server.call("POST", "/api/v1/events", &headers, body);
    assert_eq!(send(br#"{"type":"a","tenant":"one"}"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a","tenant":"two"}"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a"}"#).await.status, 201);
    assert_eq!(send(br#"[{"type":"a","tenant":"three"},{"type":"a"}]"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a","tenant":"one"}"#).await.status, 200);
    assert_eq!(send(br#"{"type":"b","tenant":"one"}"#).await.checked_problem_status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_gives_the_same_response() {
    let server = TestServer::start().await;
    let post = async |key: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        server.call("POST", "/api/v1/events", &headers, body.as_bytes()).await
    };
    let first = post("one", r#"{"type":"a"}"#).await;
    let again = post("one", r#"{"type":"a"}"#).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json(), again.json());
    let other = post("one", r#"{"type":"b"}"#).await;
    assert_eq!(other.checked_problem_status(), 409);
    assert_eq!(other.json()["parameter"], "Idempotency-Key");
    let journal = server.get("/api/v1/events?tenant=default&after=0").await.json();
    assert_eq!(journal["eventSnapshots"].as_array().unwrap().len(), 1);
    for bad in ["", &"x".repeat(256), "a\u{e9}"] {
        assert_eq!(post(bad, r#"{"type":"a"}"#).await.checked_problem_status(), 400, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_event_types_are_refused() {
    let server = TestServer::start().await;
    for event_type in pointsman_core::names::ENGINE_EVENT_TYPES {
        for event_type in [event_type.to_string(), format!("{event_type}.mine")] {
            let response = server.post("/api/v1/events", &format!(r#"{{"type":"{event_type}"}}"#)).await;
            assert_eq!(
                (response.checked_problem_status(), &response.json()["pointer"]),
                (422, &json!("/type")),
                "{event_type}"
            );
        }
    }
    for event_type in ["Torn", "task"] {
        let response =
            server.post("/api/v1/events", &format!(r#"[{{"type":"a"}},{{"type":"{event_type}"}}]"#)).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["pointer"]),
            (422, &json!("/1/type")),
            "{event_type}"
        );
        let expected = format!("{event_type} is the name of a frame of the event stream");
        assert!(response.json()["detail"].as_str().unwrap().starts_with(&expected), "{response:?}");
    }
    assert_eq!(server.get("/api/v1/events?tenant=default&after=0").await.json()["TYPE"], "Empty");
    for event_type in
        ["Events", "order.started", "OrderStartedLate", "my.OrderStarted", "task.done", "Torn.page", "Task"]
    {
        server.emit(&format!(r#"{{"type":"{event_type}"}}"#)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_emits_name_the_member_at_fault() {
    let server = TestServer::start().await;
    let deep = format!(r#"{{"type":"a","value":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for (body, status, pointer) in [
        ("", 400, None),
        ("null", 400, None),
        (r#"[["a",null]]"#, 400, Some("/0")),
        ("{", 400, None),
        (r#"{"type":"a","colour":1}"#, 400, None),
        (r#"{"type":"a","type":"b"}"#, 400, None),
        (r#"{"type":"a","value":"\u0000"}"#, 400, Some("/value")),
        (r#"{"type":"a","value":1e400}"#, 400, Some("/value")),
        (r#"{"type":"a","key":"a\r\nb"}"#, 400, Some("/key")),
        (r#"{"type":"a","context":{"x":1}}"#, 400, Some("/context/x")),
        (r#"{"type":"a","priority":9001}"#, 400, Some("/priority")),
        (r#"{"type":"a","delay":"soon"}"#, 400, Some("/delay")),
        (deep.as_str(), 400, Some("/value")),
    ] {
        let response = server.post("/api/v1/events", body).await;
        assert_eq!(response.checked_problem_status(), status, "{body:.60}: {response:?}");
        if let Some(pointer) = pointer {
            assert_eq!(response.json()["pointer"], pointer, "{body:.60}");
        }
    }
    let large = format!(r#"{{"type":"a","value":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(server.post("/api/v1/events", &large).await.checked_problem_status(), 413);
    let garbled = server
        .call("POST", "/api/v1/events", &[("content-type", "application/json")], b"{\"type\":\"\xff\"}")
        .await;
    assert_eq!(garbled.checked_problem_status(), 400);
    assert_eq!(server.get("/api/v1/events?tenant=default&after=0").await.json()["TYPE"], "Empty");
}
