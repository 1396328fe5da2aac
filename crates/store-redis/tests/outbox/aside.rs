//! What is not an event is set aside as it came, and the object goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_core::store::Store as _;
use pointsman_testing::Reply;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::place::{Hand, Place, left};
use crate::common::until;

/// What was set aside, the oldest first: the line before it, and what came.
fn aside(hand: &mut Hand) -> Vec<(serde_json::Value, Vec<u8>)> {
    let list = hand.ask(&["LRANGE", ":events.set.aside", "0", "-1"]);
    let split = |reply: &Reply| {
        let Reply::Bytes(bytes) = reply else { panic!("{reply:?}") };
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        (serde_json::from_slice(&bytes[..end]).unwrap(), bytes[end + 1..].to_vec())
    };
    list.list().iter().rev().map(split).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_set_aside_and_the_object_goes_on() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let watch = Watch::start(&place);
    let mut hand = place.connect();
    let large = left("a", format!("\"{}\"", "x".repeat(3_000_000)));
    let large_value = left("a", format!("\"{}\"", "x".repeat((1 << 20) + 1)));
    let cases: [(&[u8], &str); 17] = [
        (b"", "EOF"),
        (b"not JSON\r\nat all", "expected"),
        (b"\xff\xfe\x00{", "not UTF-8"),
        (b"[]", "JSON object"),
        (b"7", "JSON object"),
        (b"{}", "/type"),
        (br#"{"value": 1}"#, "/type"),
        (br#"{"type": "a b"}"#, "/type"),
        (br#"{"type": "OrderStarted"}"#, "only the engine itself emits"),
        (br#"{"type": "Torn"}"#, "Torn is the name of a frame of the event stream"),
        (br#"{"type": "task"}"#, "task is the name of a frame of the event stream"),
        (br#"{"type": "a", "id": 7}"#, "unknown field `id`"),
        (br#"{"type": "a", "key": "p"}"#, "/key"),
        (br#"{"type": "a", "tenant": "shop"}"#, "/tenant"),
        (br#"{"type": "a", "value": "\u0000"}"#, "/value"),
        (large.as_bytes(), "it has 3000023 bytes"),
        (large_value.as_bytes(), "/value"),
    ];
    for (n, (bytes, _)) in cases.iter().enumerate() {
        hand.push("o", &[left("a", n).as_bytes(), bytes]);
    }
    hand.push("o", &[left("a", cases.len())]);
    let events = node.events(cases.len() + 1).await;
    assert!(values(&events).iter().map(|value| value.parse::<usize>().unwrap()).eq(0..=cases.len()));
    assert_chained(&events);
    rest(&place).await;
    let aside = aside(&mut hand);
    assert_eq!(aside.len(), cases.len());
    for ((told, kept), (bytes, why)) in aside.iter().zip(cases) {
        let reason = told["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
        assert_eq!((told["object"].as_str(), told["at"].is_string()), (Some("o"), true));
        assert!(kept == bytes, "{reason}: it is kept as it came");
    }
    watch.end();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_a_name_that_no_key_can_have_loses_nothing_and_stops_nobody() {
    let place = Place::shared();
    let mut hand = place.connect();
    let long = "x".repeat(513);
    for object in ["", "a\nb", "\u{7f}", &long] {
        hand.push(object, &[left("a", 1), left("a", 2)]);
    }
    let bytes = b"\xff\xfe".as_slice();
    let events = [hand.prefix.as_bytes(), bytes, b":events"].concat();
    hand.ask(&[b"LPUSH".as_slice(), &events, left("a", 1).as_bytes()]);
    hand.ask(&[b"LPUSH".as_slice(), b":objects.with.events", bytes]);
    hand.push("good", &[left("a", 7)]);
    let node = Node::open(&place).await;
    assert_eq!(values(&node.events(1).await), ["7"]);
    rest(&place).await;
    let aside = aside(&mut hand);
    assert_eq!(aside.len(), 9);
    assert!(aside.iter().all(|(told, _)| told["reason"].as_str().unwrap().contains("name")), "{aside:?}");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_set_aside_by_whoever_emits_directly_too() {
    use pointsman_store_conformance::world::{Draft, event};
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", Some(("first", "5")));
    hand.ask(&["LPUSH", ":o:events", &left("a", 1), "second"]);
    node.emit(event("a").key("o").value("2")).await;
    assert_eq!(values(&node.journal().await), ["1", "2"]);
    let kept: Vec<_> = aside(&mut hand).into_iter().map(|(_, kept)| kept).collect();
    assert_eq!(kept, [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(
        hand.keys("event.worker:other:*"),
        ["event.worker:other:heartbeat", "event.worker:other:object"]
    );
    node.close().await;
}

/// What producers leave again and again does not fill the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_are_kept() {
    let place = Place::shared();
    let mut hand = place.connect();
    let script = "for n = 1, 9999 do redis.call('LPUSH', KEYS[1], '{}\\n' .. n) end";
    hand.ask(&["EVAL", script, "1", ":events.set.aside"]);
    hand.push("o", &["first", "second", "third"]);
    let node = Node::open(&place).await;
    rest(&place).await;
    assert_eq!(hand.number(&["LLEN", ":events.set.aside"]), 10_000);
    let aside = aside(&mut hand);
    assert_eq!((aside[0].1.as_slice(), aside[9_999].1.as_slice()), (b"3".as_slice(), b"third".as_slice()));
    until("it is told", async || {
        let told = node.store.warnings();
        told.iter().any(|told| told.contains("10000 things") && told.contains("oldest are gone"))
    })
    .await;
    node.close().await;
}

/// Counts the log lines about entries that were set aside, and the entries they tell of.
#[derive(Default)]
struct Lines {
    lines: AtomicU64,
    entries: AtomicU64,
}

impl Visit for &Lines {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "entries" {
            self.lines.fetch_add(1, Ordering::Relaxed);
            self.entries.fetch_add(value, Ordering::Relaxed);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

struct Counting(Arc<Lines>);

impl Subscriber for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entries_that_are_set_aside_make_few_log_lines() {
    const ENTRIES: u64 = 3_000;
    let lines = Arc::new(Lines::default());
    tracing::subscriber::set_global_default(Counting(lines.clone())).unwrap();
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    for n in 0..ENTRIES / 100 {
        hand.push(&format!("o{n}"), &vec!["not an event"; 100]);
    }
    hand.push("last", &[left("a", 1)]);
    node.events(1).await;
    rest(&place).await;
    let aside = hand.ask(&["LLEN", ":events.set.aside"]);
    assert_eq!(aside, Reply::Number(ENTRIES as i64));
    let (lines, entries) = (lines.lines.load(Ordering::Relaxed), lines.entries.load(Ordering::Relaxed));
    assert!((1..=30).contains(&lines) && entries <= ENTRIES, "{lines} lines about {entries} entries");
    node.close().await;
}
