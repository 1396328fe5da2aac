//! No request causes a 5xx, a panic, a hang or unbounded memory, and refused requests store nothing.
//!
//! Thousands of random requests are sent to a running server. Each generator function creates one kind of request with
//! its expected outcome. `POINTSMAN_TEST_REQUESTS` sets their number.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod attack_target;
mod bodies;
mod framing;
mod headers;
mod inputs;
mod overload;
mod request;
mod request_targets;
mod slow_clients;

#[path = "../common/raw_http.rs"]
mod raw_http;
#[path = "../common/seed.rs"]
mod seed;
#[path = "../common/test_server.rs"]
mod test_server;

use std::sync::Arc;

use futures::future::join_all;
use pointsman_api::EventSeq;
use pointsman_api::client::{Client, ClientError, EventQuery};
use serde_json::json;
use tokio::task::JoinSet;

use attack_target::AttackTarget;
use pointsman_testing::Rng;
use request::HostileRequest;
use test_server::{PointsmanServerProcess, ServerFixture};

/// The variable that sets the number of requests.
const REQUEST_COUNT_VARIABLE: &str = "POINTSMAN_TEST_REQUESTS";
const DEFAULT_REQUEST_COUNT: u64 = 12_000;
const ATTACKER_COUNT: usize = 6;

type RequestGenerator = fn(&mut Rng, &str) -> HostileRequest;

/// The functions that create random requests, with the name of each kind. Those that are listed twice are used twice as
/// often. `generate_too_large_request`, the most expensive one, has its own task.
const REQUEST_GENERATORS: &[(&str, RequestGenerator)] = &[
    ("wrong events", bodies::generate_invalid_event_request),
    ("questionable events", bodies::generate_possibly_invalid_event_request),
    ("questionable events", bodies::generate_possibly_invalid_event_request),
    ("media types", bodies::generate_wrong_media_type_request),
    ("CloudEvents", bodies::generate_invalid_cloud_event_request),
    ("actions", bodies::generate_invalid_action_request),
    ("methods", request_targets::generate_random_method_request),
    ("names", request_targets::generate_unusual_name_request),
    ("queries", request_targets::generate_possibly_invalid_query_request),
    ("queries", request_targets::generate_possibly_invalid_query_request),
    ("wrong queries", request_targets::generate_invalid_query_request),
    ("tokens", headers::generate_invalid_token_request),
    ("headers", headers::generate_invalid_header_request),
    ("long addresses", request_targets::generate_long_path_request),
    ("heads", framing::generate_invalid_head_request),
    ("frames", framing::generate_invalid_framing_request),
    ("mutations", framing::generate_mutated_request),
    ("mutations", framing::generate_mutated_request),
    ("cut short", framing::generate_truncated_request),
    ("pipelines", framing::generate_pipelined_requests),
];

const CONFIG: &str = r#"
handlers:
  known: {run: {command: ["true"]}}
event_handlers:
  routed: [known]
"#;

fn start_server() -> (ServerFixture, PointsmanServerProcess) {
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = tokio::task::block_in_place(|| pointsman.serve_on_new_port());
    (pointsman, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_cause_no_server_error_and_only_acknowledged_events_are_stored() {
    let mut rng = Rng::new(seed::choose_seed());
    let count = seed::read_env_number(REQUEST_COUNT_VARIABLE).unwrap_or(DEFAULT_REQUEST_COUNT) as usize;
    let (pointsman, mut node) = start_server();
    let target = Arc::new(AttackTarget::new(&pointsman, &node).await);

    let mut attackers = JoinSet::new();
    for _ in 0..ATTACKER_COUNT {
        attackers.spawn(send_random_requests(target.clone(), rng.fork(), count / ATTACKER_COUNT));
    }
    attackers.spawn(send_too_large_requests(target.clone(), rng.fork(), 16 + count / 200));
    attackers.spawn(run_slow_clients(target.clone()));
    while let Some(ended) = attackers.join_next().await {
        ended.unwrap();
    }
    target.check_after_attack(&pointsman, &mut node).await;
}

/// Sends random requests one after the other, and checks each outcome.
async fn send_random_requests(target: Arc<AttackTarget>, mut rng: Rng, count: usize) {
    for number in 0..count {
        let (name, generate) = REQUEST_GENERATORS[rng.next_below(REQUEST_GENERATORS.len())];
        let request = generate(&mut rng, &target.token);
        target.send_and_check(name, &request).await;
        if number % 20 == 0 {
            target
                .send_and_disconnect(&request_targets::generate_long_lasting_request(&mut rng, &target.token))
                .await;
        }
        if number % 100 == 0 {
            target.assert_healthy().await;
        }
    }
}

/// Sends requests that are too large, one at a time: many at once would need more memory than is checked here.
async fn send_too_large_requests(target: Arc<AttackTarget>, mut rng: Rng, count: usize) {
    for _ in 0..count {
        let request = bodies::generate_too_large_request(&mut rng, &target.token);
        target.send_and_check("too large", &request).await;
    }
}

/// Runs all slow clients at the same time, and checks how each was disconnected.
async fn run_slow_clients(target: Arc<AttackTarget>) {
    let clients = slow_clients::all_slow_clients(&target.token);
    let ends = join_all(clients.iter().map(|client| client.run(&target.address))).await;
    for (client, response) in clients.iter().zip(ends) {
        if client.gets_timeout_response {
            assert!(
                response.starts_with("HTTP/1.1 408 "),
                "a client that {} got {response:?}",
                client.behaviour
            );
        } else {
            assert!(
                !response.starts_with("HTTP/1.1 5"),
                "a client that {} got {response:?}",
                client.behaviour
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_client_sends_unusual_names_unchanged_or_refuses_them() {
    let (pointsman, _node) = start_server();
    let client = Client::new(&format!("http://{}", pointsman.address()), Some(pointsman.token())).unwrap();
    for key in ["a/b", "../x", "a:b#c?d=e&f", "100%", "%2e%2e", "ünï 🚂", "a\u{202e}b", " ", "+", "'\"<>"]
    {
        let event = json!({"type": "routed", "key": key});
        let id = client.emit(&event, None).await.unwrap().last_event_id;
        let object = client.read_object(key, None).await.unwrap();
        assert_eq!((object.key.as_str(), object.last_event_id), (key, id));
    }
    for name in ["a\u{1}b", "\0", "\u{7f}", &"x".repeat(600)] {
        assert_eq!(client.read_object(name, None).await.unwrap_err().http_status(), Some(400), "{name:?}");
        assert_eq!(client.read_handler(name).await.unwrap_err().http_status(), Some(400), "{name:?}");
        assert_eq!(client.read_task(name).await.unwrap_err().http_status(), Some(404), "{name:?}");
    }
    // These cannot be encoded in an address: the client refuses them.
    for name in ["a\r\nx: y", "a\tb", ".", "..", ""] {
        assert!(
            matches!(client.read_object(name, None).await, Err(ClientError::InvalidRequest(_))),
            "{name:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_polls_with_very_long_timeouts_return_a_new_event_or_are_refused() {
    let (pointsman, _node) = start_server();
    let client = Client::new(&format!("http://{}", pointsman.address()), Some(pointsman.token())).unwrap();
    for timeout in ["1000000000", "99999999999999", "18446744073709551615", "9999999h", "P99999999D"] {
        let before = client.emit(&json!({"type": "before"}), None).await.unwrap().last_event_id;
        let query =
            EventQuery { after: Some(before), timeout: Some(timeout.into()), ..EventQuery::default() };
        let polling = client.clone();
        let polled = tokio::spawn(async move { polling.list_events(&query).await });
        let emitted = client.emit(&json!({"type": "after"}), None).await.unwrap();
        match tokio::time::timeout(test_server::WAIT_TIMEOUT, polled).await.expect("an answer").unwrap() {
            Ok(EventSeq::NonEmpty { event_id, .. }) => assert_eq!(event_id, emitted.last_event_id),
            Ok(other) => panic!("{timeout}: {other:?}"),
            Err(error) => assert_eq!(error.http_status(), Some(400), "{timeout}: {error}"),
        }
    }
}
