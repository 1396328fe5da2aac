//! Schedules fire once for each planned time, whoever races for it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use pointsman_core::journal::Filter;
use pointsman_core::store::{Emission, Idempotency, Journal};
use pointsman_core::{EventId, Timestamp};
use pointsman_engine::{Engine, Setup};
use pointsman_store_sqlite::SqliteStore;
use sha2::{Digest, Sha256};

const EVERY: Duration = Duration::from_secs(1);

fn house() -> House {
    House::default().schedule("tick", "every 1s", event("tick", "clock"))
}

async fn ticks(engine: &Engine) -> Vec<EventId> {
    let page = engine.observer().page(&Filter::default(), EventId::ZERO, None, 10_000).await.unwrap();
    page.events.iter().map(|event| event.id).collect()
}

async fn wait_for_ticks(engine: &Engine, count: usize) {
    soon("ticks", async {
        let mut head = EventId::ZERO;
        while ticks(engine).await.len() < count {
            engine.observer().grown(head).await;
            head = engine.observer().extent().await.unwrap().head;
        }
    })
    .await;
}

/// The event of a planned time, if it was fired: a repeat of its emission tells.
async fn fired(store: &SqliteStore, planned: Timestamp) -> Option<EventId> {
    let key = format!("\u{1}schedule:tick:{}", planned.micros());
    let digest = Sha256::digest(&key).into();
    let idempotency = Some(Idempotency { tenant: Default::default(), key, digest });
    let emission = Emission { events: vec![event("tick", "clock")], idempotency };
    let (receipts, _) = store.append(vec![emission], None, now()).await.unwrap();
    let receipt = receipts.into_iter().next().unwrap().unwrap();
    receipt.repeated.then(|| receipt.events[0].id)
}

#[tokio::test]
async fn two_clocks_fire_each_planned_time_once() {
    let store = store();
    let begin = now();
    let (one, other) = (house().start(&store).await, house().start(&store).await);
    wait_for_ticks(&one, 2).await;
    one.stop(PATIENCE).await;
    // A third one takes over in the middle of things.
    let third = house().start(&store).await;
    wait_for_ticks(&third, 4).await;
    other.stop(PATIENCE).await;
    third.stop(PATIENCE).await;
    let ticks = ticks(&third).await;

    let every = EVERY.as_micros() as i64;
    let (first, last) = (begin.micros() / every, now().micros() / every);
    let mut by_plan = Vec::new();
    for planned in first..=last {
        by_plan.extend(fired(&store, Timestamp::from_micros(planned * every)).await);
    }
    assert_eq!(by_plan, ticks, "every tick belongs to a planned time, and each to another one");
}

#[tokio::test]
async fn a_schedule_that_is_taken_away_fires_no_more() {
    let store = store();
    let engine = house().start(&store).await;
    wait_for_ticks(&engine, 1).await;
    engine.reconfigure(Setup::default()).await.unwrap();
    let marker = emit(&engine, vec![event("marker", "m")]).await.events[0].id;
    let planned = Timestamp::from_micros((now().micros() / 1_000_000 + 3) * 1_000_000);
    soon("three intervals", async {
        while now() < planned {
            tokio::time::sleep(EVERY / 10).await;
        }
    })
    .await;
    // One may have been under way.
    let after = ticks(&engine).await.into_iter().filter(|id| *id > marker).count();
    assert!(after <= 1, "{after}");
    engine.stop(PATIENCE).await;
}
