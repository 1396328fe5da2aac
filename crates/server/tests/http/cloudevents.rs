use serde_json::{Value, json};

use crate::client::Answer;
use crate::house::House;

async fn post(house: &House, headers: &[(&str, &str)], body: &str) -> Answer {
    house.call("POST", "/api/v1/events", headers, body.as_bytes()).await
}

async fn newest(house: &House) -> Value {
    house.get("/api/v1/events?limit=-1").await.json()["eventSnapshots"][0].clone()
}

const BINARY: [(&str, &str); 4] =
    [("ce-specversion", "1.0"), ("ce-id", "7"), ("ce-source", "/shop"), ("ce-type", "record.published")];

#[tokio::test(flavor = "multi_thread")]
async fn binary() {
    let house = House::new().await;
    let more =
        [("ce-subject", "record%3A1%20%C3%A4"), ("ce-priority", "200"), ("content-type", "application/json")];
    let answer = post(&house, &[&BINARY[..], &more].concat(), r#"{ "n": 1.50 }"#).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(house.get("/api/v1/events?limit=-1").await.text().contains(r#""value":{ "n": 1.50 }"#));
    let event = newest(&house).await;
    assert_eq!((&event["TYPE"], &event["key"]), (&json!("record.published"), &json!("record:1 ä")));
    assert_eq!(event["context"]["source"], "/shop");
    assert_eq!(event["context"]["id"], "7");
    assert!(event["context"].get("priority").is_none());

    let text = [&BINARY[..], &[("content-type", "text/plain")]].concat();
    assert_eq!(post(&house, &text, "hello").await.status, 201);
    assert_eq!(newest(&house).await["value"], "hello");
    assert_eq!(post(&house, &BINARY, "").await.status, 201);
    assert!(newest(&house).await["value"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_attributes_may_stand_in_quotes() {
    let house = House::new().await;
    for (header, key) in [
        (r#""record:1 a""#, "record:1 a"),
        (r#""a \"b\" \\c""#, r#"a "b" \c"#),
        (r#""record%3A1""#, "record:1"),
        (r#"say "hi""#, r#"say "hi""#),
        (r#""a" "b""#, r#""a" "b""#),
        (r#"""#, r#"""#),
    ] {
        let answer = post(&house, &[&BINARY[..], &[("ce-subject", header)]].concat(), "").await;
        assert_eq!(answer.status, 201, "{header}: {answer:?}");
        assert_eq!(newest(&house).await["key"], key, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_faults_name_the_header() {
    let house = House::new().await;
    for (headers, status, parameter) in [
        (&BINARY[..3], 400, "ce-type"),
        (&BINARY[1..], 400, "ce-specversion"),
        (&[&BINARY[..], &[("ce-subject", "%ff")]].concat(), 400, "ce-subject"),
        (&[&BINARY[..], &[("ce-time", "noon")]].concat(), 400, "ce-time"),
        (&[&BINARY[..], &[("ce-priority", "high")]].concat(), 400, "ce-priority"),
        (&[&BINARY[..], &[("ce-under_score", "x")]].concat(), 400, "ce-under_score"),
        (&[&BINARY[..3], &[("ce-type", "Event")]].concat(), 422, "ce-type"),
        (&[&BINARY[..3], &[("ce-type", "Torn")]].concat(), 422, "ce-type"),
    ] {
        let answer = post(&house, headers, "").await;
        assert_eq!(answer.problem(), status, "{headers:?}: {answer:?}");
        assert_eq!(answer.json()["parameter"], parameter, "{headers:?}");
    }
}

const STRUCTURED: [(&str, &str); 1] = [("content-type", "application/cloudevents+json; charset=utf-8")];
const BATCH: [(&str, &str); 1] = [("content-type", "application/cloudevents-batch+json")];

fn event() -> Value {
    json!({"specversion": "1.0", "id": "7", "source": "/shop", "type": "a.b", "subject": "k", "data": {"n": 1},
        "time": "2026-01-31T12:00:00Z", "tenant": "shop", "count": 3, "flag": true, "none": null})
}

#[tokio::test(flavor = "multi_thread")]
async fn structured() {
    let house = House::new().await;
    assert_eq!(post(&house, &STRUCTURED, &event().to_string()).await.status, 201);
    let seen = newest(&house).await;
    assert_eq!(
        (&seen["key"], &seen["tenant"], &seen["value"]),
        (&json!("k"), &json!("shop"), &json!({"n": 1}))
    );
    let context = &seen["context"];
    assert_eq!((&context["count"], &context["flag"]), (&json!("3"), &json!("true")));
    assert_eq!(context["time"], "2026-01-31T12:00:00Z");
    assert!(context.get("none").is_none() && context.get("subject").is_none());

    let mut binary = event();
    binary.as_object_mut().unwrap().remove("data");
    binary["data_base64"] = json!("aGVsbG8=");
    binary["datacontenttype"] = json!("text/plain");
    assert_eq!(post(&house, &STRUCTURED, &binary.to_string()).await.status, 201);
    assert_eq!(newest(&house).await["value"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch() {
    let house = House::new().await;
    let answer = post(&house, &BATCH, &json!([event(), event()]).to_string()).await;
    assert_eq!(answer.status, 201);
    let body = answer.json();
    assert_eq!(body["events"][1]["prev"], body["events"][0]["eventId"]);

    let mut bad = event();
    bad["subject"] = json!("");
    let answer = post(&house, &BATCH, &json!([event(), bad]).to_string()).await;
    assert_eq!(answer.problem(), 400);
    assert_eq!(answer.json()["pointer"], "/1/subject");
    assert_eq!(post(&house, &BATCH, "[]").await.problem(), 400);

    let mut reserved = event();
    reserved["type"] = json!("task");
    let answer = post(&house, &BATCH, &json!([event(), reserved]).to_string()).await;
    assert_eq!((answer.problem(), &answer.json()["pointer"]), (422, &json!("/1/type")));
    assert_eq!(post(&house, &STRUCTURED, &reserved.to_string()).await.problem(), 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_faults_point_at_the_attribute() {
    let house = House::new().await;
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
        let mut event = event();
        event[member] = value;
        let answer = post(&house, &STRUCTURED, &event.to_string()).await;
        assert_eq!(answer.problem(), 400, "{member}: {answer:?}");
        assert_eq!(answer.json()["pointer"], pointer, "{member}");
    }
    let twice = r#"{"specversion":"1.0","specversion":"1.0","id":"1","source":"x","type":"a"}"#;
    assert_eq!(post(&house, &STRUCTURED, twice).await.problem(), 400);
    let other = [("content-type", "application/cloudevents+xml")];
    assert_eq!(post(&house, &other, "<a/>").await.problem(), 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_given_once() {
    let house = House::new().await;
    for member in ["\"data\":1,\"data\":2", "\"data_base64\":\"MQ==\",\"data_base64\":\"Mg==\""] {
        let body = format!(r#"{{"specversion":"1.0","id":"7","source":"/shop","type":"a",{member}}}"#);
        let answer = post(&house, &STRUCTURED, &body).await;
        assert_eq!(answer.problem(), 400, "{member}: {answer:?}");
    }
}
