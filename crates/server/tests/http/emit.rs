use crate::house::{House, handler};
use pointsman_engine::Outcome;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn one_event_is_journaled_with_its_tasks() {
    let house = House::with("", handler("record", |_| Outcome::done())).await;
    let answer =
        house.post("/api/v1/events", r#"{"type":"record.published","key":"record:1","value":{"n":1}}"#).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["eventId"], body["events"][0]["eventId"]);
    assert!(body["events"][0]["prev"].is_null());
    assert_eq!(body["events"][0]["tasks"].as_array().unwrap().len(), 1);
    let first = &body["eventId"];

    let second = house.post("/api/v1/events", r#"{"type":"record.published","key":"record:1"}"#).await.json();
    assert_eq!(second["events"][0]["prev"], *first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_is_all_or_nothing() {
    let house = House::new().await;
    let answer = house.post("/api/v1/events", r#"[{"type":"a","key":"k"},{"type":"b","key":"k"}]"#).await;
    let body = answer.json();
    assert_eq!(answer.status, 201);
    assert_eq!(body["events"][1]["prev"], body["events"][0]["eventId"]);
    assert_eq!(body["eventId"], body["events"][1]["eventId"]);

    let answer = house.post("/api/v1/events", r#"[{"type":"a"},{"type":"b","key":7}]"#).await;
    assert_eq!(answer.problem(), 400);
    assert_eq!(answer.json()["pointer"], "/1/key");
    let journal = house.get("/api/v1/events?tenant=default&after=0").await.json();
    assert_eq!(journal["eventSnapshots"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_hold_1_to_10000() {
    let house = House::new().await;
    assert_eq!(house.post("/api/v1/events", "[]").await.problem(), 400);
    let many = |count| format!("[{}]", vec![r#"{"type":"a"}"#; count].join(","));
    assert_eq!(house.post("/api/v1/events", &many(10_001)).await.problem(), 400);
    let answer = house.post("/api/v1/events", &many(10_000)).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json()["events"].as_array().unwrap().len(), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_idempotency_keys_of_its_own() {
    let house = House::new().await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let send = |body: &'static [u8]| house.call("POST", "/api/v1/events", &headers, body);
    assert_eq!(send(br#"{"type":"a","tenant":"one"}"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a","tenant":"two"}"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a"}"#).await.status, 201);
    assert_eq!(send(br#"[{"type":"a","tenant":"three"},{"type":"a"}]"#).await.status, 201);
    assert_eq!(send(br#"{"type":"a","tenant":"one"}"#).await.status, 200);
    assert_eq!(send(br#"{"type":"b","tenant":"one"}"#).await.problem(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_gives_the_same_answer() {
    let house = House::new().await;
    let post = async |key: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        house.call("POST", "/api/v1/events", &headers, body.as_bytes()).await
    };
    let first = post("one", r#"{"type":"a"}"#).await;
    let again = post("one", r#"{"type":"a"}"#).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json(), again.json());
    let other = post("one", r#"{"type":"b"}"#).await;
    assert_eq!(other.problem(), 409);
    assert_eq!(other.json()["parameter"], "Idempotency-Key");
    let journal = house.get("/api/v1/events?tenant=default&after=0").await.json();
    assert_eq!(journal["eventSnapshots"].as_array().unwrap().len(), 1);
    for bad in ["", &"x".repeat(256), "a\u{e9}"] {
        assert_eq!(post(bad, r#"{"type":"a"}"#).await.problem(), 400, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_types_are_refused() {
    let house = House::new().await;
    for kind in pointsman_core::names::RESERVED_TYPES {
        for kind in [kind.to_string(), format!("{kind}.mine")] {
            let answer = house.post("/api/v1/events", &format!(r#"{{"type":"{kind}"}}"#)).await;
            assert_eq!((answer.problem(), &answer.json()["pointer"]), (422, &json!("/type")), "{kind}");
        }
    }
    for kind in ["Torn", "task"] {
        let answer = house.post("/api/v1/events", &format!(r#"[{{"type":"a"}},{{"type":"{kind}"}}]"#)).await;
        assert_eq!((answer.problem(), &answer.json()["pointer"]), (422, &json!("/1/type")), "{kind}");
        let said = format!("{kind} is the name of a frame of the event stream");
        assert!(answer.json()["detail"].as_str().unwrap().starts_with(&said), "{answer:?}");
    }
    assert_eq!(house.get("/api/v1/events?tenant=default&after=0").await.json()["TYPE"], "Empty");
    for kind in
        ["Events", "order.started", "OrderStartedLate", "my.OrderStarted", "task.done", "Torn.page", "Task"]
    {
        house.emit(&format!(r#"{{"type":"{kind}"}}"#)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_named() {
    let house = House::new().await;
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
        let answer = house.post("/api/v1/events", body).await;
        assert_eq!(answer.problem(), status, "{body:.60}: {answer:?}");
        if let Some(pointer) = pointer {
            assert_eq!(answer.json()["pointer"], pointer, "{body:.60}");
        }
    }
    let large = format!(r#"{{"type":"a","value":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(house.post("/api/v1/events", &large).await.problem(), 413);
    let garbled = house
        .call("POST", "/api/v1/events", &[("content-type", "application/json")], b"{\"type\":\"\xff\"}")
        .await;
    assert_eq!(garbled.problem(), 400);
    assert_eq!(house.get("/api/v1/events?tenant=default&after=0").await.json()["TYPE"], "Empty");
}
