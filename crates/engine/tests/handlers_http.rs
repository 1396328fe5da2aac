//! HTTP handlers, against a real server on loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handler_support;

#[path = "handler_support/test_server.rs"]
mod test_server;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use handler_support::{
    claimed_task_with_all_values, claimed_task_without_optional_values, collection_run_task, event_of_task,
    expect_failure, new_delivery, run_attempt,
};
use pointsman_core::Json;
use pointsman_core::limit::TargetHealth;
use pointsman_core::store::AttemptResult;
use pointsman_core::task::LogLevel;
use pointsman_engine::handlers::http::{
    BadHttpTarget, HttpHandler, HttpTarget, NetworkAccess, WebhookSecret,
};
use pointsman_engine::{HandlerOutcome, Runner};
use test_server::{build_response, http_handler, http_target, start_server};
use tokio::sync::Notify;
use url::Url;

/// The outcome of a delivery to which the target sends this response.
async fn outcome_of_response(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: impl Into<String>,
) -> HandlerOutcome {
    let body = body.into();
    let (url, _) = start_server(move || build_response(status, headers, &body)).await;
    run_attempt(&http_handler(url), claimed_task_with_all_values()).await.0
}

const JSON_CONTENT_TYPE: &[(&str, &str)] = &[("content-type", "application/json; charset=utf-8")];

#[tokio::test]
async fn a_delivery_is_a_cloud_event() {
    let (url, received_requests) = start_server(|| build_response(204, &[], "")).await;
    let target = HttpTarget {
        headers: vec![
            ("authorization".parse().unwrap(), "Bearer x".parse().unwrap()),
            ("ce-id".parse().unwrap(), "forged".parse().unwrap()),
        ],
        ..http_target(url)
    };
    let (outcome, lines) =
        run_attempt(&HttpHandler::new(target).unwrap(), claimed_task_with_all_values()).await;
    assert_eq!(outcome.result, AttemptResult::Succeeded { result: None });
    assert_eq!((lines[0].level, lines[0].message.as_str()), (LogLevel::Info, "HTTP 204 No Content"));

    let (headers, body) = received_requests.take().remove(0);
    assert_eq!(body, event_of_task(&claimed_task_with_all_values()).value.as_str());
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1478257655827001"),
        ("ce-source", "/pointsman/shop"),
        ("ce-type", "record.published"),
        ("ce-subject", "record:%20100%25%20%22%C3%BC%22"),
        ("ce-time", "2016-11-04T11:07:35.827000Z"),
        ("pointsman-prev", "1478257655000000"),
        ("pointsman-prev-sent", "5"),
        ("pointsman-task", claimed_task_with_all_values().id.as_str()),
        ("pointsman-attempt", "2"),
        ("pointsman-fence", "77"),
        ("pointsman-late", "true"),
        ("traceparent", "00-1-2-01"),
        ("authorization", "Bearer x"),
    ] {
        let found: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(found, [value], "{name}");
    }
    assert!(!headers.contains_key("webhook-signature"));
}

#[tokio::test]
async fn absent_values_have_no_header() {
    let (url, received_requests) = start_server(|| build_response(200, &[], "")).await;
    run_attempt(&http_handler(url), claimed_task_without_optional_values()).await;
    let (headers, _) = received_requests.take().remove(0);
    for name in ["ce-subject", "pointsman-prev", "pointsman-prev-sent", "pointsman-late", "traceparent"] {
        assert!(!headers.contains_key(name), "{name}");
    }
    assert_eq!(headers["ce-source"], "/pointsman/default");
}

#[tokio::test]
async fn the_reference_implementation_accepts_the_signatures() {
    let (url, received_requests) = start_server(|| build_response(200, &[], "")).await;
    let texts = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"];
    let secrets: Vec<WebhookSecret> = texts.iter().map(|text| text.parse().unwrap()).collect();
    let handler = HttpHandler::new(HttpTarget { webhook_secrets: secrets, ..http_target(url) }).unwrap();
    run_attempt(&handler, claimed_task_with_all_values()).await;
    run_attempt(&handler, claimed_task_with_all_values()).await;
    let received = received_requests.take();
    for (headers, body) in &received {
        for text in texts {
            standardwebhooks::Webhook::new(text).unwrap().verify(body, headers).unwrap();
        }
        let other_webhook = standardwebhooks::Webhook::new("whsec_c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy").unwrap();
        assert!(other_webhook.verify(body, headers).is_err());
        assert_eq!(
            headers["webhook-id"],
            claimed_task_with_all_values().id.as_str(),
            "the same at every attempt"
        );
    }
    assert_eq!(received.len(), 2);
}

#[tokio::test]
async fn a_reply_may_carry_effects() {
    let body = r#"{"emit":[{"type":"record.indexed","key":"r","delay":"1m"}],"log":["x"],"result":[1.50]}"#;
    let outcome = outcome_of_response(200, JSON_CONTENT_TYPE, body).await;
    assert_eq!(outcome.result, AttemptResult::Succeeded { result: Some(Json::parse("[1.50]").unwrap()) });
    assert_eq!(outcome.emitted_events.len(), 1);
    assert_eq!(outcome.emitted_events[0].tenant.as_str(), "shop");
    assert!(outcome.emitted_events[0].due.is_some());
    assert_eq!(outcome.log_lines[0].message, "x");
    assert!(matches!(
        outcome_of_response(200, JSON_CONTENT_TYPE, r#"{"snooze":"5m"}"#).await.result,
        AttemptResult::Snoozed { .. }
    ));
}

#[tokio::test]
async fn replies_without_effects_are_ignored() {
    for (headers, body) in [
        (JSON_CONTENT_TYPE, r#"{"ok":true}"#),
        (JSON_CONTENT_TYPE, "[1,2]"),
        (JSON_CONTENT_TYPE, "{ broken"),
        (&[("content-type", "text/plain")], r#"{"emit":"nonsense"}"#),
        (&[], r#"{"emit":"nonsense"}"#),
    ] {
        let outcome = outcome_of_response(200, headers, body).await;
        assert_eq!(outcome.result, AttemptResult::Succeeded { result: None }, "{body}");
        assert!(outcome.log_lines.is_empty() && outcome.emitted_events.is_empty());
    }
    let ambiguous = outcome_of_response(200, JSON_CONTENT_TYPE, r#"{"result":"ok","id":5}"#).await;
    assert_eq!(ambiguous.result, AttemptResult::Succeeded { result: None });
    assert!(ambiguous.log_lines[0].message.contains("\"id\""), "{ambiguous:?}");
}

#[tokio::test]
async fn invalid_effects_fail_for_good() {
    let large = format!(r#"{{"result":"{}"}}"#, "x".repeat(4 << 20));
    for (body, expected) in [
        (r#"{"emit":[{"type":"a"},{"type":"TaskEnded"}]}"#.to_owned(), "/emit/1/type"),
        (
            r#"{"emit":[{"type":"a"},{"type":"Torn"}]}"#.to_owned(),
            "/emit/1/type: Torn is the name of a frame",
        ),
        (r#"{"emit":[],"lgo":[]}"#.to_owned(), "`lgo`"),
        (r#"{"result":1,"snooze":1}"#.to_owned(), "/snooze"),
        (large, "more than 4194304 bytes"),
    ] {
        let outcome = outcome_of_response(200, JSON_CONTENT_TYPE, body).await;
        let (error, is_permanent) = expect_failure(&outcome);
        assert!(is_permanent && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn failures_quote_the_response() {
    let outcome = outcome_of_response(500, &[], "x".repeat(2000)).await;
    let (error, is_permanent) = expect_failure(&outcome);
    assert_eq!(error, format!("HTTP 500 Internal Server Error: {}…", "x".repeat(500)));
    assert!(!is_permanent);
    let gone = outcome_of_response(410, &[], "").await;
    assert_eq!(expect_failure(&gone), ("the target is gone (HTTP 410); not retrying", true));
    let permanent_failure =
        outcome_of_response(422, JSON_CONTENT_TYPE, r#"{"retry":false,"log":["a last line"]}"#).await;
    assert!(expect_failure(&permanent_failure).1);
    assert_eq!(permanent_failure.log_lines[0].message, "a last line");
    let broken = outcome_of_response(500, JSON_CONTENT_TYPE, r#"{"log":"oops"}"#).await;
    assert!(!expect_failure(&broken).1, "the failure is retried: {broken:?}");
}

#[tokio::test]
async fn redirects_are_failures() {
    let (redirect_target, received_requests) = start_server(|| build_response(200, &[], "")).await;
    let (url, _) =
        start_server(move || build_response(307, &[("location", redirect_target.as_str())], "")).await;
    let outcome = run_attempt(&http_handler(url), claimed_task_with_all_values()).await.0;
    let error = "HTTP 307 Temporary Redirect: redirects are not followed";
    assert_eq!(expect_failure(&outcome), (error, false));
    assert!(received_requests.take().is_empty());
}

#[tokio::test]
async fn a_source_run_is_delivered_like_an_event() {
    let (url, received_requests) = start_server(|| build_response(204, &[], "")).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let handler =
        HttpHandler::new(HttpTarget { webhook_secrets: vec![secret.parse().unwrap()], ..http_target(url) })
            .unwrap();
    run_attempt(&handler, collection_run_task()).await;
    let (headers, body) = received_requests.take().remove(0);
    let id = collection_run_task().id;
    for (name, value) in [
        ("ce-specversion", "1.0"),
        ("ce-id", id.as_str()),
        ("ce-source", "/sources/shop"),
        ("ce-type", "pointsman.run"),
        ("ce-subject", "orders"),
        ("ce-time", "2026-01-31T12:00:00.000000Z"),
        ("pointsman-task", id.as_str()),
        ("pointsman-attempt", "2"),
        ("pointsman-fence", "77"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    let received: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let expected = serde_json::json!({
        "task_id": id.as_str(), "source": "shop", "collection": "orders", "tenant": "north",
        "planned_at": "2026-01-31T12:00:00.000000Z",
    });
    assert_eq!(received, expected);
    standardwebhooks::Webhook::new(secret).unwrap().verify(&body, &headers).unwrap();
}

#[tokio::test]
async fn a_busy_target_snoozes_the_task_without_a_retry() {
    for status in [429, 503] {
        let before = jiff::Timestamp::now().as_microsecond();
        let outcome = outcome_of_response(status, &[("retry-after", "3600")], "busy").await;
        let after = jiff::Timestamp::now().as_microsecond();
        let AttemptResult::Snoozed { until } = outcome.result else { panic!("{outcome:?}") };
        assert!((before..=after).contains(&(until.micros() - 3_600_000_000)));
        assert_eq!(outcome.target_health, Some(TargetHealth::Busy { until }));
    }
    let busy_headers = &[("retry-after", "3600"), ("content-type", "application/json")];
    let refused = outcome_of_response(429, busy_headers, r#"{"retry":false}"#).await;
    assert!(expect_failure(&refused).1, "{refused:?}");
    assert!(matches!(refused.target_health, Some(TargetHealth::Busy { .. })));
}

#[tokio::test]
async fn every_response_reports_the_target_health() {
    for (status, headers) in [(200, &[][..]), (204, &[]), (307, &[]), (404, &[]), (410, &[])] {
        assert_eq!(
            outcome_of_response(status, headers, "").await.target_health,
            Some(TargetHealth::Healthy),
            "{status}"
        );
    }
    assert_eq!(
        outcome_of_response(200, JSON_CONTENT_TYPE, r#"{"emit":1}"#).await.target_health,
        Some(TargetHealth::Healthy),
        "the target works, although its effects are invalid"
    );
    for (status, headers) in [(500, &[("retry-after", "3600")][..]), (502, &[]), (503, &[])] {
        let outcome = outcome_of_response(status, headers, "").await;
        assert_eq!(outcome.target_health, Some(TargetHealth::Failing), "{status}");
        assert!(
            matches!(outcome.result, AttemptResult::Failed { retry_at: None, permanent: false, .. }),
            "{status}"
        );
    }
    let busy = outcome_of_response(429, &[], "").await;
    assert!(
        matches!(busy.result, AttemptResult::Failed { permanent: false, .. }),
        "the response gave no duration: {busy:?}"
    );
    assert!(matches!(busy.target_health, Some(TargetHealth::Busy { .. })));
}

#[tokio::test]
async fn an_unreachable_target_is_reported_with_its_root_cause() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let outcome = run_attempt(
        &http_handler(format!("http://{address}/?token=secret").parse().unwrap()),
        claimed_task_with_all_values(),
    )
    .await
    .0;
    let (error, is_permanent) = expect_failure(&outcome);
    assert!(error.starts_with(&format!("cannot reach http://{address}: Connection refused")), "{error}");
    assert!(!is_permanent && !error.contains("secret"));
    assert_eq!(outcome.target_health, Some(TargetHealth::Failing));
}

#[tokio::test]
async fn https_targets_never_receive_plain_http() {
    let (url, received_requests) = start_server(|| build_response(200, &[], "")).await;
    let secure = url.as_str().replace("http://", "https://").parse().unwrap();
    let outcome = run_attempt(&http_handler(secure), claimed_task_with_all_values()).await.0;
    let (error, is_permanent) = expect_failure(&outcome);
    assert!(error.starts_with("cannot reach https://127.0.0.1:") && !is_permanent, "{error}");
    assert!(received_requests.take().is_empty(), "nothing is sent in the clear");
}

#[tokio::test]
async fn a_truncated_response_is_a_failure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        // Reads to the end of the body, because closing a connection with unread bytes would reset it.
        while !request.ends_with(event_of_task(&claimed_task_with_all_values()).value.as_str().as_bytes()) {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await.unwrap();
    });
    let outcome = run_attempt(&http_handler(url), claimed_task_with_all_values()).await.0;
    let (error, is_permanent) = expect_failure(&outcome);
    assert!(error.contains("broke off") && !is_permanent, "{error}");
    assert_eq!(outcome.target_health, Some(TargetHealth::Failing));
}

#[tokio::test]
async fn cancelling_the_attempt_ends_the_request() {
    let arrived = Arc::new(Notify::new());
    let request_arrived = arrived.clone();
    let app = Router::new().fallback(move || {
        request_arrived.notify_one();
        std::future::pending::<StatusCode>()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (delivery, _lines, cancel) = new_delivery(claimed_task_with_all_values());
    let handler = http_handler(url);
    let running = tokio::spawn(async move { handler.run(delivery).await });
    arrived.notified().await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert!(expect_failure(&outcome).0.contains("cancelled"));
    assert_eq!(outcome.target_health, Some(TargetHealth::Failing), "it may have been cancelled by a timeout");
}

#[tokio::test]
async fn addresses_that_are_not_allowed_are_never_connected_to() {
    let (url, received_requests) = start_server(|| build_response(200, &[], "")).await;
    let port = url.port().unwrap();
    let access = NetworkAccess::default();
    for host in ["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]", "2130706433"] {
        let url = format!("http://{host}:{port}/").parse().unwrap();
        let handler =
            HttpHandler::new(HttpTarget { network_access: access.clone(), ..http_target(url) }).unwrap();
        let outcome = run_attempt(&handler, claimed_task_with_all_values()).await.0;
        let (error, is_permanent) = expect_failure(&outcome);
        assert!(is_permanent, "{host}: {error}");
        assert!(error.contains("127.0.0.1") || error.contains("::1"), "{error}");
        assert!(error.contains("network.allow"), "{error}");
        assert_eq!(outcome.target_health, None, "no request was sent");
    }
    assert!(received_requests.take().is_empty());
}

#[tokio::test]
async fn a_host_name_can_be_allowed() {
    let (url, received_requests) = start_server(|| build_response(200, &[], "")).await;
    let url_with_name: Url = format!("http://localhost:{}/", url.port().unwrap()).parse().unwrap();
    let access =
        NetworkAccess { allows_loopback: false, allowed_destinations: vec!["localhost".parse().unwrap()] };
    let handler =
        HttpHandler::new(HttpTarget { network_access: access, ..http_target(url_with_name) }).unwrap();
    let outcome = run_attempt(&handler, claimed_task_with_all_values()).await.0;
    assert_eq!(outcome.result, AttemptResult::Succeeded { result: None });
    assert_eq!(received_requests.take().len(), 1);
}

#[test]
fn only_http_urls_are_accepted_and_secrets_are_not_printed() {
    let refused = HttpHandler::new(http_target("ftp://example.org/".parse().unwrap())).unwrap_err();
    assert!(matches!(refused, BadHttpTarget::UnsupportedScheme(scheme) if scheme == "ftp"));
    let target = HttpTarget {
        headers: vec![("authorization".parse().unwrap(), "Bearer hidden".parse().unwrap())],
        ..http_target("https://user:hidden@example.org/path?token=hidden".parse().unwrap())
    };
    let printed = format!("{:?}", HttpHandler::new(target).unwrap());
    assert!(!printed.contains("hidden") && printed.contains("https://example.org"), "{printed}");
}
