//! Event ids and `prev`: the guarantees of the sequencer.

use std::sync::Arc;

use pointsman_core::event::Context;
use pointsman_core::{EventId, NewEvent};

use crate::Harness;
use crate::fixture::*;

const HOUR_SECS: u64 = 3600;

pub async fn event_ids_strictly_increase(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut ids = event_ids_of_receipts(&fixture.emit_copies(50, new_event("record")).await);
    for _ in 0..10 {
        ids.push(fixture.emit(new_event("note")).await.id);
        fixture.advance_clock(1);
        ids.push(fixture.emit(new_event("record")).await.id);
    }
    assert_strictly_ascending(&ids);
    assert_eq!(fixture.read_journal_range().await.newest_event_id, ids[ids.len() - 1]);
}

pub async fn an_event_id_encodes_its_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for _ in 0..5 {
        fixture.advance_clock(7);
        assert_eq!(fixture.emit(new_event("record")).await.id.get(), fixture.now.millis() as u64 * 1000);
    }
}

pub async fn event_ids_increase_when_the_clock_steps_back(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut ids = vec![fixture.emit(new_event("record")).await.id];
    fixture.now = START_TIME.minus(secs(HOUR_SECS));
    ids.push(fixture.emit(new_event("record")).await.id);
    let mut fixture = fixture.reopen().await;
    ids.push(fixture.emit(new_event("record")).await.id);
    fixture.now = START_TIME.minus(secs(24 * HOUR_SECS));
    let fixture = fixture.reopen().await;
    ids.push(fixture.emit(new_event("record")).await.id);
    assert_strictly_ascending(&ids);
}

/// A clock that jumps ten years ahead for a while must not move the ids there permanently.
pub async fn event_ids_follow_a_clock_jump_by_at_most_an_hour(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    fixture.advance_clock(10 * 365 * 24 * HOUR_SECS);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(fixture.emit(new_event("record")).await.id);
    }
    let cap = START_TIME.plus(secs(HOUR_SECS + 1));
    assert!(ids.iter().all(|id| id.timestamp() <= cap), "{:?} is beyond {cap}", ids.last());

    fixture.now = START_TIME.plus(secs(1));
    ids.push(fixture.emit(new_event("record")).await.id);
    assert_strictly_ascending(&ids);

    // Three hours later, after several rescues, ids encode the current time again.
    fixture.now = START_TIME.plus(secs(3 * HOUR_SECS));
    for _ in 0..5 {
        fixture.send_heartbeat().await;
        fixture.rescue_tasks().await;
    }
    assert_eq!(fixture.emit(new_event("record")).await.id.timestamp(), fixture.now);
}

pub async fn prev_is_the_preceding_event_of_the_object(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture.emit(new_event("record").with_key("a")).await;
    let other = fixture.emit(new_event("record").with_key("b")).await;
    let foreign = fixture.emit(new_event("record").with_key("a").for_tenant("shop")).await;
    let unrouted = fixture.emit(new_event("note").with_key("a")).await;
    let part = fixture.emit(new_event("record").with_key("a").with_sub_key("part")).await;
    let last = fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!([first.prev, other.prev, foreign.prev], [None; 3]);
    assert_eq!(unrouted.prev, Some(first.id), "whatever its type");
    assert_eq!(part.prev, Some(unrouted.id), "a part belongs to its object");
    assert_eq!(last.prev, Some(part.id));
    assert_eq!(
        fixture.emit(new_event("record").with_key("a").for_tenant("shop")).await.prev,
        Some(foreign.id)
    );
}

pub async fn events_without_an_object_key_have_no_prev(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for event in fixture.emit_copies(3, new_event("record")).await {
        assert_eq!(event.prev, None);
    }
    assert_eq!(fixture.emit(new_event("record")).await.prev, None);
}

pub async fn prev_links_events_of_one_batch_and_of_one_append(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let a = || new_event("record").with_key("a");
    let answers = fixture
        .append(vec![new_emit_batch([a(), new_event("record").with_key("b"), a()]), new_emit_batch([a()])])
        .await;
    let events: Vec<_> = answers.into_iter().flat_map(|answer| answer.expect("accepted").events).collect();
    let prevs: Vec<_> = events.iter().map(|event| event.prev).collect();
    assert_eq!(prevs, [None, None, Some(events[0].id), Some(events[2].id)]);
}

pub async fn prev_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture.emit(new_event("record").with_key("a")).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.emit(new_event("record").with_key("a")).await.prev, Some(first.id));
}

pub async fn receipts_are_in_the_order_of_the_batches(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let batches: Vec<_> =
        (1..=20).map(|n| new_emit_batch(vec![new_event("record").with_value(&n.to_string()); n])).collect();
    let answers = fixture.append(batches).await;
    assert_eq!(answers.len(), 20);
    let mut all = Vec::new();
    for (n, answer) in (1..=20).zip(answers) {
        let receipt = answer.expect("accepted");
        assert!(!receipt.repeated);
        assert_eq!(receipt.events.len(), n);
        all.extend(receipt.events.iter().map(|event| (event.id, n.to_string())));
    }
    assert_strictly_ascending(&all.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    let stored: Vec<_> =
        fixture.read_all_events().await.iter().map(|e| (e.id, e.value.as_str().to_string())).collect();
    assert_eq!(stored, all);
}

pub async fn an_empty_append_changes_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let head = fixture.read_journal_range().await.newest_event_id;
    assert!(fixture.append(vec![]).await.is_empty());
    assert_eq!(fixture.read_journal_range().await.newest_event_id, head);
}

pub async fn an_event_is_stored_exactly_as_emitted(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let context = Context::from([("ip".into(), "::1".into()), ("Ключ".into(), "a \"b\"".into())]);
    let text = r#"{ "n": 1.50, "big": 12345678901234567890, "s": "é\u00e9\n", "list": [], "none": null }"#;
    let sent = NewEvent {
        context,
        ..new_event("record.published").with_key("../a:#%").with_sub_key("part 1").for_tenant("shop")
    };
    let sent = sent.with_value(text);
    let sequenced = fixture.emit(sent.clone()).await;
    let stored = fixture.read_all_events().await.remove(0);
    assert_eq!(stored.id, sequenced.id);
    assert_eq!(stored.value.as_str(), text, "payloads are never re-encoded");
    assert_eq!(
        (&stored.event_type, &stored.key, &stored.sub_object, &stored.context, &stored.tenant, &stored.cause),
        (&sent.event_type, &sent.key, &sent.sub_object, &sent.context, &sent.tenant, &sent.cause)
    );
    let claimed = fixture.claim_one().await;
    assert_eq!(*claimed.event(), stored, "and reaches the handler so");
}

pub async fn an_event_value_can_be_large(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let text = format!("\"{}\"", "ä".repeat(500_000));
    fixture.emit(new_event("record").with_key("a").with_value(&text)).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.claim_one().await.event().value.as_str(), text);
}

pub async fn prev_links_of_concurrent_emits_do_not_fork(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let emitters: Vec<_> = (0..64)
        .map(|_| {
            let (store, now) = (Arc::clone(&fixture.store), fixture.now);
            tokio::spawn(async move {
                let (answers, _) = expect_ok(
                    store.append(vec![new_emit_batch([new_event("record").with_key("a")])], None, now).await,
                );
                answers.into_iter().next().expect("one answer").expect("accepted").events.remove(0)
            })
        })
        .collect();
    let mut events = Vec::new();
    for emitter in emitters {
        events.push(emitter.await.expect("the emitter succeeded"));
    }
    events.sort_by_key(|event| event.id);
    let mut prev: Option<EventId> = None;
    for event in &events {
        assert_eq!(event.prev, prev, "one chain, without forks");
        prev = Some(event.id);
    }
    let read: Vec<_> = fixture.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(read, event_ids_of_receipts(&events));
}
