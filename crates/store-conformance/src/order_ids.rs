//! An order id is used once: it is kept after the order has ended, and a repeated request returns its first receipt.

use std::sync::Arc;

use pointsman_core::fire::{FireOutcome, OverlapPolicy};
use pointsman_core::order::{EndedOrder, OrderOutcome};
use pointsman_core::store::{
    AddedOrder, CollectionRunError, CollectionRunReceipt, EmittedEventReceipt, IdempotencyError,
    NewCollectionRun, OrderBatch, OrderBatchError, OrderBatchReceipt, OrderError,
};
use pointsman_core::{Json, Timestamp};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .chain("/pay", "a=first>done!lost done lost")
        .chain("/long", "a=first>b!repair b=second>done repair=third>done done")
        .collection("shop/orders", 100)
}

fn ended_order_refusal(key: &str, outcome: OrderOutcome, node: &str, at: Timestamp) -> OrderError {
    let (key, tenant, node) = (order_key(key), tenant("default"), chain_node_id(node));
    OrderError::IdOfEndedOrder(Box::new(EndedOrder { key, tenant, outcome, node, ended_at: at }))
}

pub async fn the_id_of_a_finished_order_is_refused(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/pay,7")).await;
    fixture.advance_clock(5);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
    let refused = ended_order_refusal("/pay,7", OrderOutcome::Finished, "done", fixture.now);
    let since = fixture.read_journal_head().await;
    for _ in 0..3 {
        fixture.advance_clock(1);
        assert_eq!(fixture.try_add_order(new_order("/pay,7")).await, Err(refused.clone()));
    }
    assert_eq!(
        fixture.try_add_orders(vec![new_order("/pay,8"), new_order("/pay,7")]).await,
        Err((1, refused.clone()))
    );
    assert!(fixture.summarize_engine_events_after(since).await.is_empty(), "nothing has happened");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.try_add_order(new_order("/pay,7")).await, Err(refused));
    assert!(fixture.run_all_ready_tasks().await.is_empty());
    fixture.add_order(new_order("/pay,7").for_tenant("shop")).await;
    fixture.add_order(new_order("/long,7")).await;
}

pub async fn a_refused_order_id_names_how_the_order_ended(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    for key in ["/pay,failed", "/pay,removed", "/pay,at-end"] {
        let at_end = key.ends_with("at-end");
        fixture
            .add_order(if at_end { new_order(key).starting_at_chain_node("done") } else { new_order(key) })
            .await;
    }
    let at_end = ended_order_refusal("/pay,at-end", OrderOutcome::Finished, "done", fixture.now);
    fixture.advance_clock(1);
    fixture.remove_order("/pay,removed").await;
    let removed = ended_order_refusal("/pay,removed", OrderOutcome::Removed, "a", fixture.now);
    fixture.advance_clock(1);
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    let failed = ended_order_refusal("/pay,failed", OrderOutcome::Failed, "lost", fixture.now);
    fixture.advance_clock(1);
    let fixture = fixture.reopen().await;
    for (key, refused) in [("/pay,failed", failed), ("/pay,removed", removed), ("/pay,at-end", at_end)] {
        assert_eq!(fixture.try_add_order(new_order(key)).await, Err(refused), "{key}");
    }
}

/// An order that followed `on_error` has failed even if later steps succeed or it was suspended in between; moving it
/// to another chain node clears that.
pub async fn an_order_that_followed_on_error_counts_as_failed(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for key in ["/long,1", "/long,2"] {
        fixture.add_order(new_order(key)).await;
        let task = fixture.claim_one().await;
        fixture.fail_permanently(&task).await;
        fixture.suspend_order(key).await;
    }
    fixture.send_order_command("/long,2", move_order_command("b")).await.expect("no step is running");
    let fixture = fixture.reopen().await;
    for key in ["/long,1", "/long,2"] {
        fixture.resume_order(key).await;
    }
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 2);
    for (key, outcome) in [("/long,1", OrderOutcome::Failed), ("/long,2", OrderOutcome::Finished)] {
        assert_eq!(
            fixture.try_add_order(new_order(key)).await,
            Err(ended_order_refusal(key, outcome, "done", fixture.now))
        );
    }
}

pub async fn ids_of_ended_orders_are_kept_for_a_day(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    const ORDER_COUNT: usize = 1_200;
    let name = |n: usize| format!("/pay,{n}");
    fixture
        .add_orders((0..ORDER_COUNT).map(|n| new_order(&name(n)).starting_at_chain_node("done")).collect())
        .await;
    fixture.advance_clock(86_400);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    assert!(fixture.try_add_order(new_order(&name(0))).await.is_err(), "a day has not passed");
    fixture.advance_clock(1);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    for n in [0, ORDER_COUNT / 2, ORDER_COUNT - 1] {
        fixture.add_order(new_order(&name(n))).await;
    }
}

pub async fn a_schedule_reuses_its_order_id_once_the_order_has_ended(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.register_daily_schedule("nightly").await;
    for _ in 0..3 {
        fixture.advance_clock(100);
        let request = FireRequestBuilder::adding_order(new_order("/pay,night"))
            .with_overlap(OverlapPolicy::Skip)
            .build("nightly", fixture.now);
        assert_eq!(fixture.record_fire(request).await.0.outcome, FireOutcome::Fired);
        assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
    }
    let last = ended_order_refusal("/pay,night", OrderOutcome::Finished, "done", fixture.now);
    assert_eq!(fixture.try_add_order(new_order("/pay,night")).await, Err(last), "the last one counts");
    // The record of the last one does not expire with that of the first.
    fixture.advance_clock(86_400 - 100);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    assert!(fixture.try_add_order(new_order("/pay,night")).await.is_err());
    let by_hand = OrderBatch { reuse_ended_ids: true, ..vec![new_order("/pay,night")].into() };
    assert!(fixture.add_order_batch(by_hand.clone()).await.is_ok(), "as when the schedule is run by hand");
    let exists = OrderError::AlreadyExists(chain_path("/pay"), order_key("/pay,night").id);
    assert_eq!(fixture.add_order_batch(by_hand).await, Err(OrderBatchError::OrderRefused(0, exists)));
}

/// Two orders, one with an id and one without, under an idempotency key.
fn idempotent_order_batch(digest_byte: u8) -> OrderBatch {
    let idempotency = Some(idempotency_key("default", "k", digest_byte));
    OrderBatch { idempotency_key: idempotency, ..vec![new_order("/pay,7"), new_order("/pay")].into() }
}

pub async fn a_repeated_order_batch_returns_its_first_receipt(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let first = fixture.add_order_batch(idempotent_order_batch(1)).await.expect("the request is valid");
    assert!(!first.repeated);
    let again = OrderBatchReceipt { repeated: true, ..first };
    assert_eq!(fixture.add_order_batch(idempotent_order_batch(1)).await, Ok(again.clone()));
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 2);
    fixture.advance_clock(60);
    let mut fixture = fixture.reopen().await;
    assert_eq!(
        fixture.add_order_batch(idempotent_order_batch(1)).await,
        Ok(again),
        "though the orders have ended"
    );
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 0);
    let conflict = || IdempotencyError::Conflict("k".into());
    assert_eq!(
        fixture.add_order_batch(idempotent_order_batch(2)).await,
        Err(OrderBatchError::Idempotency(conflict()))
    );
    assert_eq!(
        fixture.append(vec![new_idempotent_emit_batch("default", "k", 2, [new_event("record")])]).await,
        [Err(conflict())]
    );
    fixture.advance_clock(86_401);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    assert!(
        !fixture
            .add_order_batch(idempotent_order_batch(1))
            .await
            .expect("the idempotency record has expired")
            .repeated
    );
}

/// A refused request leaves no record: it may be sent again once the reason is gone.
pub async fn a_refused_order_batch_records_no_idempotency_key(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/pay,7")).await;
    assert!(fixture.add_order_batch(idempotent_order_batch(1)).await.is_err());
    let other = OrderBatch { orders: vec![new_order("/pay,8")], ..idempotent_order_batch(2) };
    assert!(!fixture.add_order_batch(other).await.expect("the key is free").repeated);
}

pub async fn racing_order_batches_with_one_idempotency_key_are_added_once(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let racers: Vec<_> = (0..50)
        .map(|_| {
            let (store, now) = (Arc::clone(&fixture.store), fixture.now);
            tokio::spawn(async move {
                expect_ok(store.add_orders(idempotent_order_batch(1), now).await).expect("never refused")
            })
        })
        .collect();
    let mut receipts = Vec::new();
    for racer in racers {
        receipts.push(racer.await.expect("the racing call succeeded"));
    }
    assert_eq!(receipts.iter().filter(|receipt| !receipt.repeated).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.orders == receipts[0].orders));
    assert_eq!(fixture.list_orders("/").await.len(), 2);
}

pub async fn a_repeated_run_request_returns_its_first_run(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let run = || pointsman_core::store::NewCollectionRun {
        source_collection: source_collection("shop/orders"),
        priority: None,
    };
    let key = |digest_byte| Some(idempotency_key("default", "sync", digest_byte));
    let first = expect_ok(fixture.store.run_collection(run(), key(1), fixture.now).await)
        .expect("the collection is registered");
    assert!(first.created && !first.repeated);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
    fixture.advance_clock(10);
    let fixture = fixture.reopen().await;
    let again = expect_ok(fixture.store.run_collection(run(), key(1), fixture.now).await)
        .expect("the collection is registered");
    assert_eq!((&again.task, again.repeated), (&first.task, true));
    assert!(fixture.run_all_ready_tasks().await.is_empty(), "nothing new was created");
    let conflict = CollectionRunError::Idempotency(IdempotencyError::Conflict("sync".into()));
    assert_eq!(expect_ok(fixture.store.run_collection(run(), key(2), fixture.now).await), Err(conflict));
    assert!(
        expect_ok(fixture.store.run_collection(run(), None, fixture.now).await)
            .expect("the collection is registered")
            .created
    );
}

pub async fn the_first_recorded_response_of_an_idempotency_key_is_kept(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let key = |digest_byte| idempotency_key("shop", "k", digest_byte);
    assert_eq!(expect_ok(fixture.store.find_idempotent_response(key(1)).await), Ok(None));
    let first =
        expect_ok(fixture.store.record_idempotent_response(key(1), "{\"n\":1}".into(), fixture.now).await)
            .expect("new");
    assert_eq!((first.response.as_str(), first.repeated), ("{\"n\":1}", false));
    let second = expect_ok(fixture.store.record_idempotent_response(key(1), "2".into(), fixture.now).await)
        .expect("the same request");
    assert_eq!((second.response.as_str(), second.repeated), ("{\"n\":1}", true));
    let fixture = fixture.reopen().await;
    assert_eq!(expect_ok(fixture.store.find_idempotent_response(key(1)).await), Ok(Some("{\"n\":1}".into())));
    let conflict = || IdempotencyError::Conflict("k".into());
    assert_eq!(expect_ok(fixture.store.find_idempotent_response(key(2)).await), Err(conflict()));
    assert_eq!(
        expect_ok(fixture.store.record_idempotent_response(key(2), "3".into(), fixture.now).await),
        Err(conflict())
    );
}

/// The key is refused even if the digest is the same: a schedule may create an event today and an order tomorrow, under
/// one key and with one digest.
pub async fn an_idempotency_key_used_for_another_request_kind_is_refused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let key = |name| Some(idempotency_key("default", name, 1));
    let run = |name| {
        fixture.store.run_collection(
            NewCollectionRun { source_collection: source_collection("shop/orders"), priority: None },
            key(name),
            fixture.now,
        )
    };
    let batch = |name| OrderBatch { idempotency_key: key(name), ..vec![new_order("/pay")].into() };
    let emit = |name| new_idempotent_emit_batch("default", name, 1, [new_event("record")]);
    let recorded = |name| idempotency_key("default", name, 1);
    assert!(fixture.append(vec![emit("event")]).await.remove(0).is_ok());
    assert!(fixture.add_order_batch(batch("order")).await.is_ok());
    assert!(expect_ok(run("run").await).is_ok());
    assert!(
        expect_ok(
            fixture.store.record_idempotent_response(recorded("recorded"), "{}".into(), fixture.now).await
        )
        .is_ok()
    );

    let conflict = |name: &str| IdempotencyError::Conflict(name.into());
    for name in ["order", "run", "recorded"] {
        let answers = fixture.append(vec![emit(name), new_emit_batch([new_event("record")])]).await;
        assert_eq!(answers[0], Err(conflict(name)));
        assert!(answers[1].is_ok(), "the other emissions of the append are accepted");
    }
    for name in ["event", "run", "recorded"] {
        assert_eq!(
            fixture.add_order_batch(batch(name)).await,
            Err(OrderBatchError::Idempotency(conflict(name)))
        );
    }
    for name in ["event", "order", "recorded"] {
        assert_eq!(expect_ok(run(name).await), Err(CollectionRunError::Idempotency(conflict(name))));
    }
    for name in ["event", "order", "run"] {
        let recorded =
            fixture.store.record_idempotent_response(recorded(name), "{}".into(), fixture.now).await;
        assert_eq!(expect_ok(recorded), Err(conflict(name)));
    }
}

pub async fn the_idempotency_record_of_any_request_kind_can_be_read(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let key = |name| idempotency_key("default", name, 1);
    let emitted = fixture
        .append(vec![new_idempotent_emit_batch("default", "event", 1, [new_event("record")])])
        .await
        .remove(0);
    let batch = OrderBatch { idempotency_key: Some(key("order")), ..vec![new_order("/pay")].into() };
    let added = fixture.add_order_batch(batch).await.expect("the request is valid");
    let run = NewCollectionRun { source_collection: source_collection("shop/orders"), priority: None };
    let ran = expect_ok(fixture.store.run_collection(run, Some(key("run")), fixture.now).await)
        .expect("the collection is registered");

    let read = async |name| {
        let answer =
            expect_ok(fixture.store.find_idempotent_response(key(name)).await).expect("the same request");
        Json::parse(&answer.expect(name)).expect("JSON")
    };
    let events: Vec<EmittedEventReceipt> = read("event").await.decode().expect("events");
    assert_eq!(events, emitted.expect("accepted").events);
    assert_eq!(read("order").await.decode::<Vec<AddedOrder>>().expect("orders"), added.orders);
    assert_eq!(read("run").await.decode::<CollectionRunReceipt>().expect("a run"), ran);
}
