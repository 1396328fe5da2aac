//! Invalid entries are set aside unchanged, and later events are journaled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_core::store::Store as _;
use pointsman_testing::RedisReply;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::common::invariants::{InvariantMonitor, wait_until_outbox_is_drained};
use crate::common::journal_checks::assert_ids_and_prev_links;
use crate::common::redis_location::{RawClient, RedisLocation, outbox_event_json};
use crate::common::test_node::{TestNode, event_values};
use crate::common::wait_until;

/// Returns the set-aside entries, oldest first: header and entry.
fn read_set_aside_entries(client: &mut RawClient) -> Vec<(serde_json::Value, Vec<u8>)> {
    let list = client.run_command(&["LRANGE", ":events.set.aside", "0", "-1"]);
    let split_header = |reply: &RedisReply| {
        let RedisReply::Bytes(bytes) = reply else { panic!("{reply:?}") };
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        (serde_json::from_slice(&bytes[..end]).unwrap(), bytes[end + 1..].to_vec())
    };
    list.list().iter().rev().map(split_header).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_entries_are_set_aside_and_later_events_journaled() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let monitor = InvariantMonitor::start(&location);
    let mut client = location.connect();
    let large = outbox_event_json("a", format!("\"{}\"", "x".repeat(3_000_000)));
    let large_value = outbox_event_json("a", format!("\"{}\"", "x".repeat((1 << 20) + 1)));
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
        client.push_events("o", &[outbox_event_json("a", n).as_bytes(), bytes]);
    }
    client.push_events("o", &[outbox_event_json("a", cases.len())]);
    let events = node.wait_for_events(cases.len() + 1).await;
    assert!(event_values(&events).iter().map(|value| value.parse::<usize>().unwrap()).eq(0..=cases.len()));
    assert_ids_and_prev_links(&events);
    wait_until_outbox_is_drained(&location).await;
    let aside = read_set_aside_entries(&mut client);
    assert_eq!(aside.len(), cases.len());
    for ((header, entry), (bytes, expected)) in aside.iter().zip(cases) {
        let reason = header["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert_eq!((header["object"].as_str(), header["at"].is_string()), (Some("o"), true));
        assert!(entry == bytes, "{reason}: the entry was changed");
    }
    monitor.stop_and_assert_no_violations();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_invalid_object_names_are_set_aside() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let long = "x".repeat(513);
    for object in ["", "a\nb", "\u{7f}", &long] {
        client.push_events(object, &[outbox_event_json("a", 1), outbox_event_json("a", 2)]);
    }
    let bytes = b"\xff\xfe".as_slice();
    let events = [client.prefix.as_bytes(), bytes, b":events"].concat();
    client.run_command(&[b"LPUSH".as_slice(), &events, outbox_event_json("a", 1).as_bytes()]);
    client.run_command(&[b"LPUSH".as_slice(), b":objects.with.events", bytes]);
    client.push_events("good", &[outbox_event_json("a", 7)]);
    let node = TestNode::open(&location).await;
    assert_eq!(event_values(&node.wait_for_events(1).await), ["7"]);
    wait_until_outbox_is_drained(&location).await;
    let aside = read_set_aside_entries(&mut client);
    assert_eq!(aside.len(), 9);
    assert!(aside.iter().all(|(header, _)| header["reason"].as_str().unwrap().contains("name")), "{aside:?}");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_emits_set_invalid_entries_aside_too() {
    use pointsman_store_conformance::fixture::{NewEventExt, new_event};
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    client.set_worker_heartbeat("other");
    client.set_object_owner("other", "o", Some(("first", "5")));
    client.run_command(&["LPUSH", ":o:events", &outbox_event_json("a", 1), "second"]);
    node.emit(new_event("a").with_key("o").with_value("2")).await;
    assert_eq!(event_values(&node.read_journal().await), ["1", "2"]);
    let entries: Vec<_> = read_set_aside_entries(&mut client).into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(entries, [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(
        client.list_keys("event.worker:other:*"),
        ["event.worker:other:heartbeat", "event.worker:other:object"]
    );
    node.close().await;
}

/// A producer of invalid entries does not fill the server.
#[tokio::test(flavor = "multi_thread")]
async fn set_aside_list_keeps_the_newest_entries() {
    let location = RedisLocation::on_shared_server();
    let mut client = location.connect();
    let script = "for n = 1, 9999 do redis.call('LPUSH', KEYS[1], '{}\\n' .. n) end";
    client.run_command(&["EVAL", script, "1", ":events.set.aside"]);
    client.push_events("o", &["first", "second", "third"]);
    let node = TestNode::open(&location).await;
    wait_until_outbox_is_drained(&location).await;
    assert_eq!(client.query_integer(&["LLEN", ":events.set.aside"]), 10_000);
    let aside = read_set_aside_entries(&mut client);
    assert_eq!((aside[0].1.as_slice(), aside[9_999].1.as_slice()), (b"3".as_slice(), b"third".as_slice()));
    wait_until("a warning reports them", async || {
        let warnings = node.store.health_warnings();
        warnings.iter().any(|warning| {
            warning.contains("10000 outbox entries") && warning.contains("older ones were deleted")
        })
    })
    .await;
    node.close().await;
}

/// Counts the log lines about set-aside entries, and the entries that they report.
#[derive(Default)]
struct SetAsideLogCounts {
    line_count: AtomicU64,
    entry_count: AtomicU64,
}

impl Visit for &SetAsideLogCounts {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "entry_count" {
            self.line_count.fetch_add(1, Ordering::Relaxed);
            self.entry_count.fetch_add(value, Ordering::Relaxed);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

struct CountingSubscriber(Arc<SetAsideLogCounts>);

impl Subscriber for CountingSubscriber {
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
async fn many_set_aside_entries_make_few_log_lines() {
    const ENTRY_COUNT: u64 = 3_000;
    let counts = Arc::new(SetAsideLogCounts::default());
    tracing::subscriber::set_global_default(CountingSubscriber(counts.clone())).unwrap();
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let mut client = location.connect();
    for n in 0..ENTRY_COUNT / 100 {
        client.push_events(&format!("o{n}"), &vec!["not an event"; 100]);
    }
    client.push_events("last", &[outbox_event_json("a", 1)]);
    node.wait_for_events(1).await;
    wait_until_outbox_is_drained(&location).await;
    let aside = client.run_command(&["LLEN", ":events.set.aside"]);
    assert_eq!(aside, RedisReply::Number(ENTRY_COUNT as i64));
    let (lines, entries) =
        (counts.line_count.load(Ordering::Relaxed), counts.entry_count.load(Ordering::Relaxed));
    assert!((1..=30).contains(&lines) && entries <= ENTRY_COUNT, "{lines} lines about {entries} entries");
    node.close().await;
}
