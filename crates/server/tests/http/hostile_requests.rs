//! No request causes a 5xx, a panic or a hang, and refused requests store nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::raw_http_client::send_request;
use crate::test_server::TestServer;

const REQUEST_COUNT: usize = 2000;

fn hostile_text_strategy() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("../../etc/passwd".into()),
        Just("a:b#c?d".into()),
        Just("\u{0}".into()),
        Just("a\r\nx: y".into()),
        Just("x".repeat(600)),
        Just("-1".into()),
        Just("9".repeat(40)),
        Just("1e400".into()),
        Just("%ff".into()),
        Just("%".into()),
        "[a-z.]{1,12}",
        any::<String>(),
    ]
}

fn hostile_json_strategy() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1e400".to_owned()),
        Just("-0".to_owned()),
        Just("\"\\u0000\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("[".repeat(10_000)),
        hostile_text_strategy().prop_map(|text| serde_json::Value::from(text).to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>(),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((json_member_name_strategy(), inner), 0..6).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn json_member_name_strategy() -> impl Strategy<Value = String> {
    let known = [
        "type",
        "key",
        "sub",
        "value",
        "context",
        "tenant",
        "delay",
        "at",
        "priority",
        "reason",
        "data",
        "specversion",
        "id",
        "source",
        "subject",
        "data_base64",
        "path",
        "node",
        "state",
        "action",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[a-zA-Z_]{0,6}"]
}

/// The JSON of an event that is nearly valid.
fn hostile_event_json_strategy() -> impl Strategy<Value = String> {
    let good = [
        r#""key":"k""#,
        r#""sub":"s""#,
        r#""value":{"a":[1]}"#,
        r#""context":{"ip":"::1"}"#,
        r#""delay":"1h""#,
        r#""tenant":"shop""#,
        r#""priority":7"#,
        r#""specversion":"1.0","id":"1","source":"/x""#,
    ];
    let good = prop::sample::subsequence(good.to_vec(), 0..5).prop_map(|list| list.join(","));
    let bad = (json_member_name_strategy(), hostile_json_strategy())
        .prop_map(|(name, value)| format!(",\"{name}\":{value}"));
    (good, prop::option::of(bad)).prop_map(|(good, bad)| {
        let comma = if good.is_empty() { "" } else { "," };
        format!("{{\"type\":\"a.b\"{comma}{good}{}}}", bad.unwrap_or_default())
    })
}

/// A method and a request target, which may be invalid.
fn method_and_target_strategy() -> impl Strategy<Value = (&'static str, String)> {
    let calls = [
        ("GET", "/api/v1/events", ""),
        ("GET", "/api/v1/events/", ""),
        ("GET", "/api/v1/objects/", ""),
        ("GET", "/api/v1/stream/", ""),
        ("GET", "/api/v1/tasks", ""),
        ("GET", "/api/v1/tasks/", "/logs"),
        ("POST", "/api/v1/tasks/", "/retry"),
        ("POST", "/api/v1/tasks/", "/cancel"),
        ("PUT", "/api/v1/handlers/", "/pause"),
        ("DELETE", "/api/v1/handlers/", "/block"),
        ("GET", "/api/v1/orders", ""),
        ("POST", "/api/v1/orders", ""),
        ("PUT", "/api/v1/orders/", ",1"),
        ("POST", "/api/v1/orders/", ",1/suspend"),
        ("PUT", "/api/v1/chains/", "/state"),
        ("PUT", "/api/v1/chains/x/nodes/", "/action"),
        ("GET", "/jobscheduler/master/api/order/", ""),
        ("POST", "/jobscheduler/master/api/order", ""),
        ("POST", "/api/v1/handlers/", "/adopt"),
        ("PATCH", "/api/v1/events", ""),
        ("DELETE", "/", ""),
    ];
    let parameters =
        ["return", "after", "timeout", "limit", "path", "key", "tenant", "status", "cursor", "start", "x"];
    let query = (prop::sample::select(parameters.to_vec()), hostile_text_strategy())
        .prop_map(|(name, value)| format!("{name}={}", percent_escape_unsendable_characters(&value)));
    let plain =
        (prop::sample::select(calls.to_vec()), hostile_text_strategy(), prop::collection::vec(query, 0..4));
    let plain = plain.prop_map(|((method, path, action), name, query)| {
        let name =
            if path.ends_with('/') { percent_escape_unsendable_characters(&name) } else { String::new() };
        (method, format!("{path}{name}{action}?{}", query.join("&").replace("timeout=", "timeout=x")))
    });
    prop_oneof![2 => Just(("POST", "/api/v1/events".to_owned())), 3 => plain]
}

/// Percent-encodes the characters that cannot be sent, but not all that should be encoded, as careless clients do.
fn percent_escape_unsendable_characters(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '#' | '?' | ' ');
    text.chars()
        .map(|c| {
            if plain(c) {
                c.to_string()
            } else {
                c.to_string().bytes().map(|b| format!("%{b:02X}")).collect()
            }
        })
        .collect()
}

fn content_type_strategy() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "application/json",
            "application/cloudevents+json",
            "application/cloudevents-batch+json",
            "application/json; charset=latin1",
            "text/plain",
            "",
        ][..],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_cause_no_5xx_and_refused_events_are_not_stored() {
    let test_server = TestServer::start().await;
    let body = prop_oneof![
        hostile_event_json_strategy(),
        hostile_json_strategy(),
        prop::collection::vec(hostile_event_json_strategy(), 0..4).prop_map(|l| format!("[{}]", l.join(",")))
    ];
    let all = (
        method_and_target_strategy(),
        content_type_strategy(),
        body,
        prop::bool::weighted(0.2),
        hostile_text_strategy(),
    );
    let mut runner = TestRunner::default();
    let mut stored = 0;
    let mut status_counts: BTreeMap<u16, usize> = BTreeMap::new();
    for _ in 0..REQUEST_COUNT {
        let ((method, target), media, body, ce, header) = all.new_tree(&mut runner).unwrap().current();
        let mut headers = vec![("content-type", media)];
        let header: String = header.chars().filter(|c| c.is_ascii_graphic()).collect();
        if ce {
            headers.extend([
                ("ce-type", header.as_str()),
                ("idempotency-key", header.as_str()),
                ("last-event-id", &header),
            ]);
        }
        let head = test_server.request_head(method, &target, &headers);
        let request = format!("{head}content-length: {}\r\n\r\n", body.len());
        let response = send_request(test_server.address, &request, body.as_bytes()).await;
        assert!((200..500).contains(&response.status), "{request}{body:.200}\n{response:?}");
        if response.status >= 400 && response.header("content-type").is_some() {
            response.checked_problem_status();
        }
        *status_counts.entry(response.status).or_default() += 1;
        if response.status == 201 {
            stored += response.json()["events"].as_array().unwrap().len();
        }
    }
    for status in [200, 201, 400, 404, 405, 415] {
        assert!(
            status_counts.contains_key(&status),
            "the requests do not cover all statuses: {status_counts:?}"
        );
    }
    let journal = test_server.get("/api/v1/events?after=0").await.json();
    // Events of the engine itself have no tenant.
    let emitted =
        |events: &Vec<serde_json::Value>| events.iter().filter(|event| event["tenant"].is_string()).count();
    let found = journal["eventSnapshots"].as_array().map_or(0, emitted);
    assert_eq!(found, stored, "refused events are not stored");
    test_server.inner.stop().await;
}
