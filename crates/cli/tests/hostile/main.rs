//! Nothing that a client sends makes a 5xx, a panic, a hang or unbounded memory, and nothing of what is refused
//! is stored.
//!
//! Thousands of requests are thrown at a running server, in families: each family is a function that makes a
//! request out of random numbers and says what may come of it. `POINTSMAN_TEST_REQUESTS` asks for more of them.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

mod addresses;
mod arena;
mod atoms;
mod bodies;
mod framing;
mod overload;
mod request;
mod slow;

#[path = "../common/node.rs"]
mod node;
#[path = "../common/raw.rs"]
mod raw;
#[path = "../common/seed.rs"]
mod seed;

use std::sync::Arc;

use futures::future::join_all;
use pointsman_api::EventSeq;
use pointsman_api::client::{Client, ClientError, EventQuery};
use serde_json::json;
use tokio::task::JoinSet;

use arena::Arena;
use node::{Node, Place};
use pointsman_testing::Chance;
use request::Request;

/// The variable that says how many requests are sent.
const REQUESTS: &str = "POINTSMAN_TEST_REQUESTS";
const DEFAULT_REQUESTS: u64 = 12_000;
const ATTACKERS: usize = 6;

type Family = fn(&mut Chance, &str) -> Request;

/// All families but the dearest, which has an attacker of its own.
const FAMILIES: &[(&str, Family)] = &[
    ("wrong events", bodies::wrong_events),
    ("doubtful events", bodies::doubtful_events),
    ("doubtful events", bodies::doubtful_events),
    ("media types", bodies::media_types),
    ("CloudEvents", bodies::cloud_events),
    ("actions", bodies::actions),
    ("methods", addresses::methods),
    ("names", addresses::names),
    ("queries", addresses::queries),
    ("queries", addresses::queries),
    ("wrong queries", addresses::wrong_queries),
    ("tokens", addresses::tokens),
    ("headers", addresses::headers),
    ("long addresses", addresses::long_addresses),
    ("heads", framing::heads),
    ("frames", framing::frames),
    ("mutations", framing::mutations),
    ("mutations", framing::mutations),
    ("cut short", framing::cut_short),
    ("pipelines", framing::pipelines),
];

const CONFIG: &str = r#"
handlers:
  known: {run: {command: ["true"]}}
event_handlers:
  routed: [known]
"#;

fn start() -> (Place, Node) {
    let mut place = Place::new(CONFIG);
    let node = tokio::task::block_in_place(|| place.serve_elsewhere());
    (place, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused_and_leave_nothing_behind() {
    let mut chance = Chance::new(seed::seed());
    let count = seed::number(REQUESTS).unwrap_or(DEFAULT_REQUESTS) as usize;
    let (place, mut node) = start();
    let arena = Arc::new(Arena::new(&place, &node).await);

    let mut attackers = JoinSet::new();
    for _ in 0..ATTACKERS {
        attackers.spawn(attack(arena.clone(), chance.fork(), count / ATTACKERS));
    }
    attackers.spawn(overfeed(arena.clone(), chance.fork(), 16 + count / 200));
    attackers.spawn(dawdle(arena.clone()));
    while let Some(ended) = attackers.join_next().await {
        ended.unwrap();
    }
    arena.check(&place, &mut node).await;
}

async fn attack(arena: Arc<Arena>, mut chance: Chance, count: usize) {
    for number in 0..count {
        let (name, family) = FAMILIES[chance.below(FAMILIES.len())];
        let request = family(&mut chance, &arena.token);
        arena.send(name, &request).await;
        if number % 20 == 0 {
            arena.abandon(&addresses::waits(&mut chance, &arena.token)).await;
        }
        if number % 100 == 0 {
            arena.healthy().await;
        }
    }
}

/// Sends what is too large, one at a time: how much memory many of them may take together is another matter.
async fn overfeed(arena: Arc<Arena>, mut chance: Chance, count: usize) {
    for _ in 0..count {
        let request = bodies::too_large(&mut chance, &arena.token);
        arena.send("too large", &request).await;
    }
}

/// Plays slow clients beside all the others.
async fn dawdle(arena: Arc<Arena>) {
    let clients = slow::clients(&arena.token);
    let ends = join_all(clients.iter().map(|client| client.play(&arena.address))).await;
    for (client, said) in clients.iter().zip(ends) {
        if client.answered {
            assert!(said.starts_with("HTTP/1.1 408 "), "a client that {} was told {said:?}", client.name);
        } else {
            assert!(!said.starts_with("HTTP/1.1 5"), "a client that {} was told {said:?}", client.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_well_behaved_client_carries_odd_names_unharmed() {
    let (place, _node) = start();
    let client = Client::new(&format!("http://{}", place.address()), Some(place.token())).unwrap();
    for key in ["a/b", "../x", "a:b#c?d=e&f", "100%", "%2e%2e", "ünï 🚂", "a\u{202e}b", " ", "+", "'\"<>"]
    {
        let event = json!({"type": "routed", "key": key});
        let id = client.emit(&event, None).await.unwrap().event_id;
        let object = client.object(key, None).await.unwrap();
        assert_eq!((object.key.as_str(), object.last), (key, id));
    }
    for name in ["a\u{1}b", "\0", "\u{7f}", &"x".repeat(600)] {
        assert_eq!(client.object(name, None).await.unwrap_err().status(), Some(400), "{name:?}");
        assert_eq!(client.handler(name).await.unwrap_err().status(), Some(400), "{name:?}");
        assert_eq!(client.task(name).await.unwrap_err().status(), Some(404), "{name:?}");
    }
    // An address cannot carry these: they are refused before anything is sent.
    for name in ["a\r\nx: y", "a\tb", ".", "..", ""] {
        assert!(matches!(client.object(name, None).await, Err(ClientError::Address(_))), "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_timeouts_are_waited_for_or_refused() {
    let (place, _node) = start();
    let client = Client::new(&format!("http://{}", place.address()), Some(place.token())).unwrap();
    for timeout in ["1000000000", "99999999999999", "18446744073709551615", "9999999h", "P99999999D"] {
        let before = client.emit(&json!({"type": "before"}), None).await.unwrap().event_id;
        let query =
            EventQuery { after: Some(before), timeout: Some(timeout.into()), ..EventQuery::default() };
        let asking = client.clone();
        let asked = tokio::spawn(async move { asking.events(&query).await });
        let emitted = client.emit(&json!({"type": "after"}), None).await.unwrap();
        match tokio::time::timeout(node::PATIENCE, asked).await.expect("an answer").unwrap() {
            Ok(EventSeq::NonEmpty { event_id, .. }) => assert_eq!(event_id, emitted.event_id),
            Ok(other) => panic!("{timeout}: {other:?}"),
            Err(error) => assert_eq!(error.status(), Some(400), "{timeout}: {error}"),
        }
    }
}
