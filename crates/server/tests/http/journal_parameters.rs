//! Every call that reads the journal refuses bad parameters, and accepts all formats of a timeout.

use serde_json::Value;

use crate::stream::SseClient;
use crate::test_server::TestServer;

const JOBSCHEDULER_EVENTS_URL: &str = "/jobscheduler/master/api/order?return=Event";

#[tokio::test(flavor = "multi_thread")]
async fn every_journal_call_names_bad_cursors_limits_and_timeouts() {
    let server = TestServer::start().await;
    let limits = ["0", "-0", "1.5", "x", "", "%2B1", "1e3", "0x1"].map(|bad| ("limit", bad));
    let cursors = ["", "x", "-1", "1.5", "%2B1", "9007199254740992", "1e3", "0x1"].map(|bad| ("after", bad));
    let timeouts = [
        "5%20minutes",
        ".1",
        "1.",
        "1.5m",
        "",
        "%2B1",
        "-1",
        "1ms",
        "1%20s",
        "1d",
        "PT",
        "P1H",
        "3s1h",
        "1e3",
        "-PT1S",
    ]
    .map(|bad| ("timeout", bad));
    for (name, bad) in limits.iter().chain(&cursors).chain(&timeouts) {
        let rest = if *name == "after" { String::new() } else { "&after=0".into() };
        for url in ["/api/v1/events?return=Event", JOBSCHEDULER_EVENTS_URL] {
            let address = format!("{url}&{name}={bad}{rest}");
            let response = server.get(&address).await;
            assert_eq!(
                (response.checked_problem_status(), &response.json()["parameter"]),
                (400, &Value::from(*name)),
                "{address}"
            );
        }
        let address = format!("/api/v1/stream?{name}={bad}");
        let response = server.get(&address).await;
        assert_eq!(
            (response.checked_problem_status(), &response.json()["parameter"]),
            (400, &Value::from(*name)),
            "{address}"
        );
    }
    for url in ["/api/v1/events?return=Event", JOBSCHEDULER_EVENTS_URL] {
        for rest in ["", "&timeout=1", "&limit=1"] {
            let response = server.get(&format!("{url}{rest}")).await;
            assert_eq!(
                (response.checked_problem_status(), &response.json()["parameter"]),
                (400, &"after".into()),
                "{url}{rest}"
            );
        }
    }
    for path in ["", "a", "a/", "//", "/a//", "/a//b", "//a", "/a%0A"] {
        for url in ["/api/v1/events?after=0", "/api/v1/stream?after=0"] {
            let response = server.get(&format!("{url}&path={path}")).await;
            assert_eq!(
                (response.checked_problem_status(), &response.json()["parameter"]),
                (400, &"path".into()),
                "{url} {path}"
            );
        }
    }
    let resumed = [("last-event-id", "x")];
    let response = server.call("GET", "/api/v1/stream", &resumed, b"").await;
    assert_eq!(
        (response.checked_problem_status(), &response.json()["parameter"]),
        (400, &"Last-Event-ID".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_timeout_format_is_accepted() {
    let server = TestServer::start().await;
    server.emit(r#"{"type":"a"}"#).await;
    for timeout in ["0", "60", "0.5", "60s", "60S", "1.5s", "1h2m3s", "2m", "PT60S", "P1DT2H", "PT1H2M3.5S"] {
        for url in ["/api/v1/events?return=Event", JOBSCHEDULER_EVENTS_URL] {
            // Without a cursor the newest event is returned at once.
            let response = server.get(&format!("{url}&limit=-1&timeout={timeout}")).await;
            assert_eq!(response.status, 200, "{url} {timeout}: {}", response.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_journal_call_reports_a_cursor_above_the_newest_event_as_torn() {
    let server = TestServer::start().await;
    let head = server.emit(r#"{"type":"a"}"#).await;
    for url in ["/api/v1/events?return=Event", JOBSCHEDULER_EVENTS_URL] {
        let seq = server.get(&format!("{url}&after={}&timeout=1h", head + 1)).await.json();
        assert_eq!((&seq["TYPE"], &seq["eventId"]), (&"Torn".into(), &head.into()), "{url}");
    }
    let mut frames = SseClient::connect(&server, &format!("/api/v1/stream?after={}", head + 1), &[]).await;
    assert_eq!(frames.next_frame().await.unwrap().event, "Torn");
}
