use pointsman_core::EventId;
use pointsman_core::journal::Retention;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::raw_http_client::read_response;
use crate::test_server::TestServer;

fn event_ids(seq: &Value) -> Vec<u64> {
    assert_eq!(seq["TYPE"], "NonEmpty", "{seq}");
    let list = seq["eventSnapshots"].as_array().expect("a list");
    list.iter().map(|event| event["eventId"].as_u64().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_journal_contains_only_engine_events() {
    let server = TestServer::start().await;
    let seq = server.get("/api/v1/events?after=0&tenant=default").await.json();
    assert_eq!((&seq["TYPE"], &seq["lastEventId"]), (&"Empty".into(), &seq["eventId"]));
    assert_eq!(server.get("/api/v1/events?limit=-5&tenant=default").await.json()["TYPE"], "Empty");
    // The journal has only engine events.
    let seq = server.get("/api/v1/events?after=0").await.json();
    let states: Vec<_> =
        seq["eventSnapshots"].as_array().unwrap().iter().map(|event| &event["state"]).collect();
    assert_eq!(states, ["starting", "running"], "{seq}");
    assert!(seq["eventSnapshots"][0].get("key").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_in_both_directions_with_limits_and_filters() {
    let server = TestServer::start().await;
    let mut all = Vec::new();
    for (event_type, key) in [("a.x", "/f/1"), ("b", "/f/g/2"), ("a", "/f/3,1"), ("ab", "k")] {
        all.push(server.emit(&format!(r#"{{"type":"{event_type}","key":"{key}"}}"#)).await);
    }
    let keyless = server.emit(r#"{"type":"a"}"#).await;
    all.push(keyless);
    let head = *all.last().unwrap();
    let get = async |query: &str| server.get(&format!("/api/v1/events?tenant=default&{query}")).await.json();

    let seq = get("after=0").await;
    assert_eq!((event_ids(&seq), &seq["eventId"]), (all.clone(), &Value::from(head)));
    assert!(seq["eventSnapshots"][4].get("key").is_none());
    assert_eq!(event_ids(&get("after=0&limit=2").await), all[..2]);
    assert_eq!(event_ids(&get(&format!("after={}", all[2])).await), all[3..]);
    assert_eq!(event_ids(&get("limit=-2").await), [all[4], all[3]]);
    assert_eq!(event_ids(&get(&format!("limit=-9&after={}", all[2])).await), [all[4], all[3]]);
    assert_eq!(event_ids(&get("after=0&return=a").await), [all[0], all[2], all[4]]);
    assert_eq!(event_ids(&get("after=0&return=b,ab").await), [all[1], all[3]]);
    assert_eq!(event_ids(&get("after=0&return=Event").await), all);
    assert_eq!(event_ids(&get("after=0&key=k").await), [all[3]]);
    assert_eq!(event_ids(&get("after=0&path=/f/").await), all[..3]);
    assert_eq!(event_ids(&get("after=0&path=/f/*").await), [all[0], all[2]]);
    assert_eq!(event_ids(&get("after=0&path=/f/3").await), [all[2]]);
    assert_eq!(event_ids(&get("limit=-1&return=b").await), [all[1]]);

    let empty = get("after=0&return=unknown.type").await;
    assert_eq!((&empty["TYPE"], &empty["lastEventId"]), (&"Empty".into(), &Value::from(head)));
    let torn = get(&format!("after={}", head + 1)).await;
    assert_eq!((&torn["TYPE"], &torn["eventId"]), (&"Torn".into(), &Value::from(head)));
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_after_an_expired_event_gives_torn() {
    let server = TestServer::start().await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(server.emit(r#"{"type":"a"}"#).await);
    }
    let nothing_older = Retention { max_age: std::time::Duration::ZERO, ..Retention::default() };
    let then = EventId::new(all[2]).unwrap().timestamp();
    server
        .inner
        .engine()
        .store()
        .prune_events_tasks_and_objects(nothing_older, Retention::default(), std::time::Duration::MAX, then)
        .await
        .unwrap();
    let left = event_ids(&server.get("/api/v1/events?limit=-100").await.json());
    assert!(left.len() < 5 && left[0] == all[4], "{left:?}");

    let oldest = *left.last().unwrap();
    let before = all[all.iter().position(|id| *id == oldest).unwrap() - 1];
    for (after, kind) in [(0, "Torn"), (all[0] - 1, "Torn"), (before, "NonEmpty"), (oldest, "NonEmpty")] {
        let seq = server.get(&format!("/api/v1/events?after={after}")).await.json();
        assert_eq!(seq["TYPE"], kind, "after {after}: {seq}");
        assert_eq!(seq["eventId"], all[4]);
    }
    assert_eq!(server.get("/api/v1/events?after=0&limit=-1").await.json()["TYPE"], "Torn");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_responses_are_complete() {
    let server = TestServer::start().await;
    let batch = format!("[{}]", vec![r#"{"type":"a","value":"xxxxxxxxxx"}"#; 3000].join(","));
    server.emit(&batch).await;
    server.emit(&batch).await;
    let all = event_ids(&server.get("/api/v1/events?tenant=default&after=0").await.json());
    assert_eq!(all.len(), 6000);
    assert!(all.is_sorted_by(|a, b| a < b));
    let mut down = event_ids(&server.get("/api/v1/events?tenant=default&limit=-100000").await.json());
    down.reverse();
    assert_eq!(down, all);
    let some = event_ids(&server.get("/api/v1/events?tenant=default&after=0&limit=4321").await.json());
    assert_eq!(some, all[..4321]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_waits_for_a_matching_event() {
    let server = TestServer::start().await;
    let head = server.emit(r#"{"type":"a"}"#).await;
    let mut poll = TcpStream::connect(server.address).await.unwrap();
    let request =
        server.request_head("GET", &format!("/api/v1/events?after={head}&return=b&timeout=1h"), &[]);
    poll.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    server.emit(r#"{"type":"a"}"#).await;
    let wanted = server.emit(r#"{"type":"b"}"#).await;
    assert_eq!(event_ids(&read_response(&mut poll).await.json()), [wanted]);

    let started = std::time::Instant::now();
    let seq = server.get(&format!("/api/v1/events?after={wanted}&timeout=0.3")).await.json();
    assert_eq!((&seq["TYPE"], &seq["lastEventId"]), (&"Empty".into(), &Value::from(wanted)));
    assert!(started.elapsed() >= std::time::Duration::from_millis(300), "the poll did not wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_server_ends_long_polls() {
    let server = TestServer::start().await;
    let head = server.emit(r#"{"type":"a"}"#).await;
    let mut poll = TcpStream::connect(server.address).await.unwrap();
    let request =
        server.request_head("GET", &format!("/api/v1/events?after={head}&return=b&timeout=1h"), &[]);
    poll.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    // The poll has been accepted once a later connection has been answered.
    server.get("/healthz").await;
    server.inner.stop().await;
    assert_eq!(read_response(&mut poll).await.json()["TYPE"], "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_are_named_in_the_error() {
    let server = TestServer::start().await;
    for (query, parameter) in [
        ("", "after"),
        ("limit=1", "after"),
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=9007199254740992", "after"),
        ("after=0&after=0", "after"),
        ("after=0&limit=0", "limit"),
        ("after=0&limit=1.5", "limit"),
        ("after=0&timeout=", "timeout"),
        ("after=0&timeout=5%20minutes", "timeout"),
        ("after=0&return=a..b", "return"),
        ("after=0&path=a", "path"),
        ("after=0&key=", "key"),
        ("after=0&tenant=a%20b", "tenant"),
        ("after=0&colour=red", "colour"),
        ("after=0&key=%ff", "key"),
    ] {
        let response = server.get(&format!("/api/v1/events?{query}")).await;
        assert_eq!(response.checked_problem_status(), 400, "{query}");
        assert_eq!(response.json()["parameter"], parameter, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_and_one_object_are_shown() {
    let server = TestServer::start().await;
    let first = server.emit(r#"{"type":"a","key":"x/y z","value":[1]}"#).await;
    let second = server.emit(r#"{"type":"b","key":"x/y z"}"#).await;
    let event = server.get(&format!("/api/v1/events/{first}")).await.json();
    assert_eq!(event["event"]["value"], serde_json::json!([1]));
    assert_eq!(event["eventId"], second);
    assert!(event["cause"].is_null());
    assert_eq!(event["tasks"], serde_json::json!([]));
    assert_eq!(server.get("/api/v1/events/1").await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/events/x").await.checked_problem_status(), 400);

    let object = server.get("/api/v1/objects/x%2Fy%20z").await.json();
    let chain: Vec<_> = object["events"].as_array().unwrap().iter().map(|e| e["eventId"].as_u64()).collect();
    assert_eq!(chain, [Some(second), Some(first)]);
    assert_eq!((&object["last"], &object["key"]), (&Value::from(second), &"x/y z".into()));
    assert_eq!(server.get("/api/v1/objects/none").await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/objects/x%2Fy%20z?tenant=other").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timed_out_backward_search_does_not_skip_unread_events() {
    let server = TestServer::start().await;
    let needle = server.emit(r#"{"type":"needle"}"#).await;
    let hay = format!("[{}]", vec![r#"{"type":"hay"}"#; 10_000].join(","));
    for _ in 0..20 {
        server.emit(&hay).await;
    }
    let seq = server.get("/api/v1/events?limit=-1&return=needle").await.json();
    // A fast machine finds the event before the search times out.
    if seq["TYPE"] == "Empty" {
        assert!(seq["lastEventId"].as_u64().unwrap() < needle, "{seq}");
    } else {
        assert_eq!(seq["eventSnapshots"][0]["eventId"], needle);
    }
}
