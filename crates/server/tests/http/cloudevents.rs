use serde_json::{Value, json};

use crate::raw_http_client::TestResponse;
use crate::test_server::TestServer;

async fn post_event(server: &TestServer, headers: &[(&str, &str)], body: &str) -> TestResponse {
    server.call("POST", "/api/v1/events", headers, body.as_bytes()).await
}

async fn read_newest_event(server: &TestServer) -> Value {
    server.get("/api/v1/events?limit=-1").await.json()["eventSnapshots"][0].clone()
}

const BINARY_MODE_HEADERS: [(&str, &str); 4] =
    [("ce-specversion", "1.0"), ("ce-id", "7"), ("ce-source", "/shop"), ("ce-type", "record.published")];

#[tokio::test(flavor = "multi_thread")]
async fn a_cloudevent_in_binary_mode_is_accepted() {
    let server = TestServer::start().await;
    let more =
        [("ce-subject", "record%3A1%20%C3%A4"), ("ce-priority", "200"), ("content-type", "application/json")];
    let response = post_event(&server, &[&BINARY_MODE_HEADERS[..], &more].concat(), r#"{ "n": 1.50 }"#).await;
    assert_eq!(response.status, 201, "{response:?}");
    assert!(server.get("/api/v1/events?limit=-1").await.text().contains(r#""value":{ "n": 1.50 }"#));
    let event = read_newest_event(&server).await;
    assert_eq!((&event["TYPE"], &event["key"]), (&json!("record.published"), &json!("record:1 ä")));
    assert_eq!(event["context"]["source"], "/shop");
    assert_eq!(event["context"]["id"], "7");
    assert!(event["context"].get("priority").is_none());

    let text = [&BINARY_MODE_HEADERS[..], &[("content-type", "text/plain")]].concat();
    assert_eq!(post_event(&server, &text, "hello").await.status, 201);
    assert_eq!(read_newest_event(&server).await["value"], "hello");
    assert_eq!(post_event(&server, &BINARY_MODE_HEADERS, "").await.status, 201);
    assert!(read_newest_event(&server).await["value"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn quoted_binary_attributes_are_accepted() {
    let server = TestServer::start().await;
    for (header, key) in [
        (r#""record:1 a""#, "record:1 a"),
        (r#""a \"b\" \\c""#, r#"a "b" \c"#),
        (r#""record%3A1""#, "record:1"),
        (r#"say "hi""#, r#"say "hi""#),
        (r#""a" "b""#, r#""a" "b""#),
        (r#"""#, r#"""#),
    ] {
        let response =
            post_event(&server, &[&BINARY_MODE_HEADERS[..], &[("ce-subject", header)]].concat(), "").await;
        assert_eq!(response.status, 201, "{header}: {response:?}");
        assert_eq!(read_newest_event(&server).await["key"], key, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_in_binary_mode_name_the_header() {
    let server = TestServer::start().await;
    for (headers, status, parameter) in [
        (&BINARY_MODE_HEADERS[..3], 400, "ce-type"),
        (&BINARY_MODE_HEADERS[1..], 400, "ce-specversion"),
        (&[&BINARY_MODE_HEADERS[..], &[("ce-subject", "%ff")]].concat(), 400, "ce-subject"),
        (&[&BINARY_MODE_HEADERS[..], &[("ce-time", "noon")]].concat(), 400, "ce-time"),
        (&[&BINARY_MODE_HEADERS[..], &[("ce-priority", "high")]].concat(), 400, "ce-priority"),
        (&[&BINARY_MODE_HEADERS[..], &[("ce-under_score", "x")]].concat(), 400, "ce-under_score"),
        (&[&BINARY_MODE_HEADERS[..3], &[("ce-type", "Event")]].concat(), 422, "ce-type"),
        (&[&BINARY_MODE_HEADERS[..3], &[("ce-type", "Torn")]].concat(), 422, "ce-type"),
    ] {
        let response = post_event(&server, headers, "").await;
        assert_eq!(response.checked_problem_status(), status, "{headers:?}: {response:?}");
        assert_eq!(response.json()["parameter"], parameter, "{headers:?}");
    }
}

const STRUCTURED_MODE_HEADERS: [(&str, &str); 1] =
    [("content-type", "application/cloudevents+json; charset=utf-8")];
const BATCH_MODE_HEADERS: [(&str, &str); 1] = [("content-type", "application/cloudevents-batch+json")];

fn structured_cloudevent() -> Value {
    json!({"specversion": "1.0", "id": "7", "source": "/shop", "type": "a.b", "subject": "k", "data": {"n": 1},
        "time": "2026-01-31T12:00:00Z", "tenant": "shop", "count": 3, "flag": true, "none": null})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloudevent_in_structured_mode_is_accepted() {
    let server = TestServer::start().await;
    assert_eq!(
        post_event(&server, &STRUCTURED_MODE_HEADERS, &structured_cloudevent().to_string()).await.status,
        201
    );
    let event = read_newest_event(&server).await;
    assert_eq!(
        (&event["key"], &event["tenant"], &event["value"]),
        (&json!("k"), &json!("shop"), &json!({"n": 1}))
    );
    let context = &event["context"];
    assert_eq!((&context["count"], &context["flag"]), (&json!("3"), &json!("true")));
    assert_eq!(context["time"], "2026-01-31T12:00:00Z");
    assert!(context.get("none").is_none() && context.get("subject").is_none());

    let mut binary = structured_cloudevent();
    binary.as_object_mut().unwrap().remove("data");
    binary["data_base64"] = json!("aGVsbG8=");
    binary["datacontenttype"] = json!("text/plain");
    assert_eq!(post_event(&server, &STRUCTURED_MODE_HEADERS, &binary.to_string()).await.status, 201);
    assert_eq!(read_newest_event(&server).await["value"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_cloudevents_is_accepted() {
    let server = TestServer::start().await;
    let response = post_event(
        &server,
        &BATCH_MODE_HEADERS,
        &json!([structured_cloudevent(), structured_cloudevent()]).to_string(),
    )
    .await;
    assert_eq!(response.status, 201);
    let body = response.json();
    assert_eq!(body["events"][1]["prev"], body["events"][0]["eventId"]);

    let mut bad = structured_cloudevent();
    bad["subject"] = json!("");
    let response =
        post_event(&server, &BATCH_MODE_HEADERS, &json!([structured_cloudevent(), bad]).to_string()).await;
    assert_eq!(response.checked_problem_status(), 400);
    assert_eq!(response.json()["pointer"], "/1/subject");
    assert_eq!(post_event(&server, &BATCH_MODE_HEADERS, "[]").await.checked_problem_status(), 400);

    let mut reserved = structured_cloudevent();
    reserved["type"] = json!("task");
    let response =
        post_event(&server, &BATCH_MODE_HEADERS, &json!([structured_cloudevent(), reserved]).to_string())
            .await;
    assert_eq!((response.checked_problem_status(), &response.json()["pointer"]), (422, &json!("/1/type")));
    assert_eq!(
        post_event(&server, &STRUCTURED_MODE_HEADERS, &reserved.to_string()).await.checked_problem_status(),
        422
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_in_structured_mode_point_at_the_attribute() {
    let server = TestServer::start().await;
    for (member, value, pointer) in [
        ("specversion", json!("0.3"), "/specversion"),
        ("id", json!(""), "/id"),
        ("type", json!("a..b"), "/type"),
        ("tenant", json!("a b"), "/tenant"),
        ("extension", json!({"a": 1}), "/extension"),
        ("Upper", json!("x"), "/Upper"),
        ("data_base64", json!("aGVsbG8="), "/data_base64"),
        ("delay", json!("soon"), "/delay"),
    ] {
        let mut event = structured_cloudevent();
        event[member] = value;
        let response = post_event(&server, &STRUCTURED_MODE_HEADERS, &event.to_string()).await;
        assert_eq!(response.checked_problem_status(), 400, "{member}: {response:?}");
        assert_eq!(response.json()["pointer"], pointer, "{member}");
    }
    let twice = r#"{"specversion":"1.0","specversion":"1.0","id":"1","source":"x","type":"a"}"#;
    assert_eq!(post_event(&server, &STRUCTURED_MODE_HEADERS, twice).await.checked_problem_status(), 400);
    let other = [("content-type", "application/cloudevents+xml")];
    assert_eq!(post_event(&server, &other, "<a/>").await.checked_problem_status(), 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloudevent_with_duplicate_data_is_rejected() {
    let server = TestServer::start().await;
    for member in ["\"data\":1,\"data\":2", "\"data_base64\":\"MQ==\",\"data_base64\":\"Mg==\""] {
        let body = format!(r#"{{"specversion":"1.0","id":"7","source":"/shop","type":"a",{member}}}"#);
        let response = post_event(&server, &STRUCTURED_MODE_HEADERS, &body).await;
        assert_eq!(response.checked_problem_status(), 400, "{member}: {response:?}");
    }
}
