//! A lane runs one task at a time, in journal order, whatever fails around it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use common::*;
use pointsman_core::EventId;
use pointsman_engine::{Delivery, HandlerOutcome};

const KEY_COUNT: usize = 12;
const EVENTS_PER_KEY: usize = 25;

#[derive(Default)]
struct LaneRecord {
    is_running: bool,
    /// The events of this lane's attempts, in the order in which the attempts started.
    run_events: Vec<EventId>,
    overlap_count: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_keep_their_order_under_failures() {
    let lanes: Arc<Mutex<HashMap<String, LaneRecord>>> = Arc::default();
    let handler = {
        let lanes = lanes.clone();
        move |d: Delivery| {
            let lanes = lanes.clone();
            async move {
                let event = d.task.subject.event().unwrap();
                let key = event.key.as_ref().unwrap().to_string();
                {
                    let mut lanes = lanes.lock().unwrap();
                    let lane = lanes.entry(key.clone()).or_default();
                    lane.overlap_count += usize::from(std::mem::replace(&mut lane.is_running, true));
                    lane.run_events.push(event.id);
                }
                for _ in 0..event.id.get() % 7 {
                    tokio::task::yield_now().await;
                }
                lanes.lock().unwrap().get_mut(&key).unwrap().is_running = false;
                // About a third of the first and second attempts fail, chosen by a hash of the event id.
                let random_bits = event.id.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
                if d.task.attempt <= 2 && random_bits < 5 {
                    HandlerOutcome::failed("a simulated failure")
                } else {
                    HandlerOutcome::succeeded()
                }
            }
        }
    };
    let store = in_memory_store();
    let engine =
        TestEngineBuilder::default().slots(16).handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    let mut ended = 0;
    for _ in 0..EVENTS_PER_KEY {
        let events = (0..KEY_COUNT).map(|k| keyed_event("a", &format!("k{k}"))).collect();
        emit(&engine, events).await;
        ended += watcher.wait_for_ended_tasks(KEY_COUNT / 2).await.len();
    }
    watcher.wait_for_ended_tasks(KEY_COUNT * EVENTS_PER_KEY - ended).await;
    engine.stop(TEST_TIMEOUT).await;
    let lanes = lanes.lock().unwrap();
    assert_eq!(lanes.len(), KEY_COUNT);
    for (key, lane) in lanes.iter() {
        assert_eq!(lane.overlap_count, 0, "{key}");
        assert!(lane.run_events.is_sorted(), "{key}: {:?}", lane.run_events);
        let mut distinct = lane.run_events.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), EVENTS_PER_KEY, "{key}");
    }
    assert!(
        lanes.values().map(|lane| lane.run_events.len()).sum::<usize>() > KEY_COUNT * EVENTS_PER_KEY,
        "some tasks were retried"
    );
}
