//! A producer that repeats a request gets the receipt of the first one.

use std::sync::Arc;

use pointsman_core::store::{EmitReceipt, IdempotencyError};

use crate::Harness;
use crate::fixture::*;

fn idempotency_conflict(key: &str) -> Result<EmitReceipt, IdempotencyError> {
    Err(IdempotencyError::Conflict(key.into()))
}

pub async fn a_repeated_idempotency_key_returns_the_first_receipt(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let batch = || {
        new_idempotent_emit_batch(
            "default",
            "k",
            1,
            [new_event("record").with_key("a"), new_event("record").with_key("a")],
        )
    };
    let first = fixture.append(vec![batch()]).await.remove(0).expect("accepted");
    assert!(!first.repeated);
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock(60);
    fixture.emit(new_event("record").with_key("a")).await;
    let head = fixture.read_journal_range().await.newest_event_id;
    let again = fixture.append(vec![batch()]).await.remove(0).expect("the same request");
    assert_eq!(again, EmitReceipt { repeated: true, ..first });
    assert_eq!(fixture.read_journal_range().await.newest_event_id, head, "nothing new was journaled");
    assert_eq!(fixture.read_all_events().await.len(), 3);
}

pub async fn an_idempotency_key_with_different_content_is_refused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture
        .append(vec![new_idempotent_emit_batch("default", "k", 1, [new_event("record")])])
        .await
        .remove(0);
    assert!(first.is_ok());
    let answer = fixture
        .append(vec![new_idempotent_emit_batch(
            "default",
            "k",
            2,
            [new_event("record"), new_event("record")],
        )])
        .await;
    assert_eq!(answer, [idempotency_conflict("k")]);
    assert_eq!(fixture.read_all_events().await.len(), 1, "nothing of it was stored");
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// A refused batch does not affect the other batches of its append.
pub async fn idempotency_keys_apply_within_one_append(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let answers = fixture
        .append(vec![
            new_idempotent_emit_batch("default", "k", 1, [new_event("record").with_key("a")]),
            new_idempotent_emit_batch("default", "k", 1, [new_event("record").with_key("a")]),
            new_idempotent_emit_batch("default", "k", 2, [new_event("record").with_key("a")]),
            new_emit_batch([new_event("record").with_key("a")]),
        ])
        .await;
    let first = answers[0].clone().expect("accepted");
    assert_eq!(answers[1], Ok(EmitReceipt { repeated: true, ..first.clone() }));
    assert_eq!(answers[2], idempotency_conflict("k"));
    let last = answers[3].clone().expect("accepted");
    assert_eq!(last.events[0].prev, Some(first.events[0].id));
    assert_eq!(fixture.read_all_events().await.len(), 2);
}

pub async fn idempotency_keys_are_scoped_to_a_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for tenant in ["default", "shop"] {
        let answer = fixture
            .append(vec![new_idempotent_emit_batch(tenant, "k", 1, [new_event("record").for_tenant(tenant)])])
            .await
            .remove(0);
        assert!(!answer.expect("accepted").repeated, "{tenant}");
    }
    let answer = fixture
        .append(vec![new_idempotent_emit_batch("depot", "k", 2, [new_event("record").for_tenant("depot")])])
        .await
        .remove(0);
    assert!(answer.is_ok(), "another tenant's content is no conflict");
}

pub async fn idempotency_keys_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let batch = || new_idempotent_emit_batch("default", "k", 1, [new_event("record").with_key("a")]);
    let first = fixture.append(vec![batch()]).await.remove(0).expect("accepted");
    let fixture = fixture.reopen().await;
    let again = fixture.append(vec![batch()]).await.remove(0);
    assert_eq!(again, Ok(EmitReceipt { repeated: true, ..first }));
    assert_eq!(
        fixture.append(vec![new_idempotent_emit_batch("default", "k", 9, [new_event("record")])]).await,
        [idempotency_conflict("k")]
    );
    assert_eq!(fixture.read_all_events().await.len(), 1);
}

pub async fn racing_emits_with_one_idempotency_key_create_one_event(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let racers: Vec<_> = (0..100)
        .map(|_| {
            let (store, now) = (Arc::clone(&fixture.store), fixture.now);
            tokio::spawn(async move {
                let batches =
                    vec![new_idempotent_emit_batch("default", "k", 1, [new_event("record").with_key("a")])];
                expect_ok(store.append(batches, None, now).await).0.remove(0).expect("never refused")
            })
        })
        .collect();
    let mut receipts = Vec::new();
    for racer in racers {
        receipts.push(racer.await.expect("the racing call succeeded"));
    }
    assert_eq!(receipts.iter().filter(|receipt| !receipt.repeated).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.events == receipts[0].events));
    assert_eq!(fixture.read_all_events().await.len(), 1);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// A key is kept for a day; any number of old keys is deleted.
pub async fn old_idempotency_keys_expire_after_a_day(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let name = |n: usize| format!("k{n}");
    fixture
        .append(
            (0..12_000)
                .map(|n| new_idempotent_emit_batch("default", &name(n), 1, [new_event("note")]))
                .collect(),
        )
        .await;
    fixture.advance_clock(2 * 86_400);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    for n in [0, 11_999] {
        let again = fixture
            .append(vec![new_idempotent_emit_batch("default", &name(n), 2, [new_event("note")])])
            .await
            .remove(0);
        assert!(again.is_ok_and(|receipt| !receipt.repeated), "{n}");
    }
}
