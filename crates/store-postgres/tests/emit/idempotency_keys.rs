//! An idempotency key creates one event, however often it is used, in SQL and over HTTP.

use std::time::Duration;

use futures::future::join_all;
use pointsman_core::journal::Retention;
use pointsman_core::store::{
    EmitBatch, IdempotencyError, IdempotencyKey, Journal, NewCollectionRun, OrderBatch, Orders, Registry,
    Store, TaskQueue,
};
use pointsman_core::{EventId, EventType, Json, NewEvent, ObjectKey, Tenant};
use pointsman_store_conformance::fixture::{RegistrationBuilder, new_order, source_collection};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::test_store::{TEST_TIMEOUT, TestStore, emit_in_sql, find_event_of_receipt, now};

const EMIT_WITH_KEY: &str = "emit('paid', 'order:1', '{\"sum\": 7}', idempotency_key => 'once')";

#[tokio::test]
async fn a_repeat_returns_the_first_receipt_and_emits_nothing() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let first = emit_in_sql(&client, EMIT_WITH_KEY).await;
    store_node.wait_for_events(1).await;
    // The repeat may follow the sequencing of the first emit, or be in the same transaction.
    assert_eq!(emit_in_sql(&client, EMIT_WITH_KEY).await, first);
    client.batch_execute("BEGIN").await.unwrap();
    let other = emit_in_sql(&client, "emit('paid', idempotency_key => 'another')").await;
    assert_eq!(emit_in_sql(&client, "emit('paid', idempotency_key => 'another')").await, other);
    client.batch_execute("COMMIT").await.unwrap();
    // The same key of another tenant is another key.
    let third = emit_in_sql(&client, "emit('paid', tenant => 'shop', idempotency_key => 'once')").await;
    assert!(third != first && other != first);
    store_node.wait_for_events(3).await;
}

#[tokio::test]
async fn reuse_with_other_content_is_rejected() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    emit_in_sql(&client, EMIT_WITH_KEY).await;
    for call in [
        "emit('sent', 'order:1', '{\"sum\": 7}', idempotency_key => 'once')",
        "emit('paid', 'order:2', '{\"sum\": 7}', idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 8}', idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 7}', '{\"ip\": \"::1\"}', idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 7}', delay => '1s', idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 7}', priority => 101, idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 7}', sub => 's', idempotency_key => 'once')",
    ] {
        let error = client.query_one(&format!("SELECT pointsman.{call}"), &[]).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "23505", "{call}");
        let message = r#"idempotency_key: the idempotency key "once" was used before with other content"#;
        assert_eq!(error.message(), message);
    }
    store_node.wait_for_events(1).await;
}

#[tokio::test]
async fn only_one_of_many_concurrent_emits_creates_an_event() {
    let store_node = TestStore::new().await;
    let clients = join_all((0..16).map(|_| store_node.connect_client())).await;
    let receipts = join_all(clients.iter().map(|client| emit_in_sql(client, EMIT_WITH_KEY))).await;
    assert!(receipts.iter().all(|receipt| *receipt == receipts[0]));
    store_node.wait_for_events(1).await;
}

/// Waits until a connection is blocked by another transaction.
async fn wait_until_blocked(watcher: &Client, pid: i32) {
    let waiting = async {
        let sql = "SELECT cardinality(pg_blocking_pids($1)) > 0";
        while !watcher.query_one(sql, &[&pid]).await.unwrap().get::<_, bool>(0) {}
    };
    tokio::time::timeout(TEST_TIMEOUT, waiting).await.unwrap();
}

/// Emits with one key in two transactions at a time, and ends the first, for which the second waits, with `end_sql`.
/// Returns the receipt of the first, and the receipt or the error code of the second.
async fn emit_after_first_ends(
    store_node: &TestStore,
    end_sql: &str,
    call: &str,
) -> (Uuid, Result<Uuid, String>) {
    let (first, second, watcher) = (
        store_node.connect_client().await,
        store_node.connect_client().await,
        store_node.connect_client().await,
    );
    first.batch_execute("BEGIN").await.unwrap();
    let receipt = emit_in_sql(&first, EMIT_WITH_KEY).await;
    let pid = second.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let call = format!("SELECT pointsman.{call}");
    let second_emit = tokio::spawn(async move { second.query_one(&call, &[]).await.map(|row| row.get(0)) });
    wait_until_blocked(&watcher, pid).await;
    first.batch_execute(end_sql).await.unwrap();
    let second_result = second_emit.await.unwrap();
    (receipt, second_result.map_err(|error| error.code().unwrap().code().to_string()))
}

#[tokio::test]
async fn a_second_emit_waits_for_the_first() {
    let store_node = TestStore::new().await;
    let (first, second) = emit_after_first_ends(&store_node, "COMMIT", EMIT_WITH_KEY).await;
    assert_eq!(second, Ok(first));
    let event = store_node.wait_for_events(1).await.remove(0);
    assert_eq!(find_event_of_receipt(&store_node.connect_client().await, first).await, Some(event.id));
}

#[tokio::test]
async fn a_second_emit_succeeds_if_the_first_is_rolled_back() {
    let store_node = TestStore::new().await;
    let (first, second) = emit_after_first_ends(&store_node, "ROLLBACK", EMIT_WITH_KEY).await;
    assert!(second.is_ok_and(|second| second != first));
    store_node.wait_for_events(1).await;
}

#[tokio::test]
async fn a_second_emit_with_other_content_is_rejected() {
    let store_node = TestStore::new().await;
    let (_, second) =
        emit_after_first_ends(&store_node, "COMMIT", "emit('sent', idempotency_key => 'once')").await;
    assert_eq!(second, Err("23505".into()));
    store_node.wait_for_events(1).await;
}

fn http_emit_batch() -> EmitBatch {
    let idempotency =
        IdempotencyKey { tenant: Tenant::default(), key: "once".into(), request_digest: [1; 32] };
    let event = NewEvent {
        key: Some(ObjectKey::new("order:1").unwrap()),
        value: Json::parse("{\"sum\":7}").unwrap(),
        ..NewEvent::new(EventType::new("paid").unwrap())
    };
    EmitBatch { events: vec![event], idempotency_key: Some(idempotency) }
}

/// Returns the error of `event_of` for a receipt without an event.
async fn error_of_event_of(client: &Client, receipt: Uuid) -> String {
    let error = client.query_one("SELECT pointsman.event_of($1)", &[&receipt]).await.unwrap_err();
    error.as_db_error().unwrap().message().to_string()
}

/// An emit in SQL uses a key, stays open, and commits after an emit over HTTP has used the key for other content.
#[tokio::test]
async fn an_emit_in_sql_with_other_content_is_set_aside_if_http_has_used_its_key() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    for (n, call) in [
        "emit('paid', 'order:1', '{\"sum\": 8}', idempotency_key => 'once')",
        "emit('paid', 'order:2', '{\"sum\": 7}', idempotency_key => 'once')",
        "emit('sent', 'order:1', '{\"sum\": 7}', idempotency_key => 'once')",
        "emit('paid', 'order:1', '{\"sum\": 7}', '{\"ip\": \"::1\"}', idempotency_key => 'once')",
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("once-{n}");
        client.batch_execute("BEGIN").await.unwrap();
        let receipt = emit_in_sql(&client, &call.replace("once", &key)).await;
        let mut http = http_emit_batch();
        http.idempotency_key.as_mut().unwrap().key = key.clone();
        let (mut receipts, _) = store_node.store.append(vec![http], None, now()).await.unwrap();
        let http_event = receipts.remove(0).unwrap().events.remove(0).id;
        client.batch_execute("COMMIT").await.unwrap();
        emit_in_sql(&client, "emit('after')").await;
        store_node.wait_for_events(n * 2 + 2).await;
        let reason = format!(
            "idempotency_key: the idempotency key \"{key}\" was used before with other content, for event {http_event}"
        );
        assert_eq!(
            error_of_event_of(&client, receipt).await,
            format!("receipt: this was not an event: {reason}")
        );
        let sql = "SELECT reason FROM pointsman.outbox_refused WHERE receipt = $1";
        assert_eq!(client.query_one(sql, &[&receipt]).await.unwrap().get::<_, String>(0), reason);
        let rows = if n == 0 { "1 row of".to_string() } else { format!("{} rows of", n + 1) };
        let warned = async {
            while !store_node.store.health_warnings().iter().any(|warning| warning.starts_with(&rows)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, warned)
            .await
            .expect("a warning counts the rows that were set aside");
    }
}

#[tokio::test]
async fn a_key_used_over_http_for_the_same_content_returns_that_event() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let (mut receipts, _) = store_node.store.append(vec![http_emit_batch()], None, now()).await.unwrap();
    let http_event = receipts.remove(0).unwrap().events.remove(0);
    let receipt = emit_in_sql(&client, EMIT_WITH_KEY).await;
    // Rows are drained in order: once this event is journaled, the row before it has been handled.
    emit_in_sql(&client, "emit('after')").await;
    store_node.wait_for_events(2).await;
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(http_event.id));
}

#[tokio::test]
async fn a_key_used_in_sql_conflicts_with_an_emit_over_http() {
    let store_node = TestStore::new().await;
    emit_in_sql(&store_node.connect_client().await, EMIT_WITH_KEY).await;
    store_node.wait_for_events(1).await;
    let (receipts, _) = store_node.store.append(vec![http_emit_batch()], None, now()).await.unwrap();
    assert_eq!(receipts, [Err(IdempotencyError::Conflict("once".into()))]);
    store_node.wait_for_events(1).await;
}

/// The row is set aside and the drain succeeds: a failed drain would stop the outbox and fail all jobs of its commit.
#[tokio::test]
async fn a_key_used_for_an_order_or_a_run_sets_the_emit_aside_and_the_outbox_continues() {
    let store_node = TestStore::new().await;
    let registration =
        RegistrationBuilder::default().chain("/pay", "a=first>done done").collection("shop/orders", 100);
    store_node.store.register_definitions(registration.build(), now()).await.unwrap();
    let key =
        |name: &str| IdempotencyKey { tenant: Tenant::default(), key: name.into(), request_digest: [1; 32] };
    let batch = OrderBatch { idempotency_key: Some(key("order")), ..vec![new_order("/pay")].into() };
    store_node.store.add_orders(batch, now()).await.unwrap().unwrap();
    let run = NewCollectionRun { source_collection: source_collection("shop/orders"), priority: None };
    store_node.store.run_collection(run, Some(key("run")), now()).await.unwrap().unwrap();
    store_node.store.record_idempotent_response(key("redrive"), "{}".into(), now()).await.unwrap().unwrap();
    let before = store_node.store.read_journal_range().await.unwrap().newest_event_id;
    let client = store_node.connect_client().await;
    for name in ["order", "run", "redrive"] {
        let receipt = emit_in_sql(&client, &format!("emit('paid', idempotency_key => '{name}')")).await;
        let after = emit_in_sql(&client, "emit('after')").await;
        let drained = async {
            while find_event_of_receipt(&client, after).await.is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, drained).await.expect("the outbox is drained");
        assert_eq!(
            error_of_event_of(&client, receipt).await,
            format!(
                "receipt: this was not an event: idempotency_key: the idempotency key \"{name}\" was used before \
                 for another request"
            )
        );
        // The store accepts emits as well.
        store_node
            .store
            .append(vec![EmitBatch { idempotency_key: None, ..http_emit_batch() }], None, now())
            .await
            .unwrap()
            .0
            .remove(0)
            .unwrap();
    }
    let event_types: Vec<_> =
        store_node.read_events_after(before).await.iter().map(|event| event.event_type.to_string()).collect();
    assert_eq!(event_types, ["after", "paid"].repeat(3));
}

#[tokio::test]
async fn a_key_whose_event_was_pruned_returns_the_id_of_that_event() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let (mut receipts, _) = store_node.store.append(vec![http_emit_batch()], None, now()).await.unwrap();
    let http_event = receipts.remove(0).unwrap().events.remove(0);
    let nothing = Retention { max_count: 0, max_age: Duration::ZERO };
    let later = now().plus(Duration::from_secs(60));
    while store_node
        .store
        .prune_events_tasks_and_objects(nothing, nothing, Duration::MAX, later)
        .await
        .unwrap()
        .has_more
    {}
    assert!(store_node.read_events_after(EventId::ZERO).await.is_empty(), "the event is pruned");
    let receipt = emit_in_sql(&client, EMIT_WITH_KEY).await;
    let after = emit_in_sql(&client, "emit('after')").await;
    let drained = async {
        while find_event_of_receipt(&client, after).await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, drained).await.expect("the outbox is drained");
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(http_event.id));
}
