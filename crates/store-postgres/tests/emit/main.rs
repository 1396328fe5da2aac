//! Emitting in SQL: committed emits become events, rolled back ones leave nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drainer_wakeup;
mod errors;
mod idempotency_keys;
mod languages;
mod manual_rows;
mod privileges;
#[path = "../test_store/mod.rs"]
mod test_store;

use std::time::Duration;

use pointsman_core::route::HandlerBinding;
use pointsman_core::store::{Registration, Registry, TaskFilter, Tasks};
use pointsman_core::task::TaskState;
use pointsman_core::{EventType, HandlerDef, HandlerName, Routes, TaskStatus};
use pointsman_testing::{PostgresServer, PostgresSettings};
use test_store::{TestStore, connect, emit_in_sql, find_event_of_receipt, now};

#[tokio::test]
async fn a_committed_emit_becomes_an_event_with_all_arguments() {
    let store_node = TestStore::new().await;
    let mut routes = Routes::new();
    let index = HandlerName::new("index").unwrap();
    routes.bind(EventType::new("record").unwrap(), HandlerBinding::new_queued(index.clone()));
    let registration =
        Registration { handlers: vec![HandlerDef::new(index)], routes, ..Registration::default() };
    store_node.store.register_definitions(registration, now()).await.unwrap();
    let client = store_node.connect_client().await;
    let emit_time = now();

    let receipt = emit_in_sql(
        &client,
        r#"emit('record.published', 'record:"1"', '{"title": "Hällo", "n": 1.50}', '{"ip": "::1"}', 'shop',
                delay => '1 hour', priority => 9000, sub => 'part')"#,
    )
    .await;

    let event = store_node.wait_for_events(1).await.remove(0);
    assert_eq!(event.event_type.as_str(), "record.published");
    assert_eq!(event.key.as_ref().unwrap().as_str(), "record:\"1\"");
    assert_eq!(event.sub_object.as_ref().unwrap().as_str(), "part");
    assert_eq!(event.value.as_str(), r#"{"n": 1.50, "title": "Hällo"}"#);
    assert_eq!(event.context["ip"], "::1");
    assert_eq!((event.tenant.as_str(), event.prev), ("shop", None));
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(event.id));

    let task = store_node.store.list_tasks(TaskFilter::default(), None, 10).await.unwrap().tasks.remove(0);
    assert_eq!(
        (task.event_id, task.priority.get(), task.lifecycle.state.status()),
        (Some(event.id), 9000, TaskStatus::New)
    );
    let TaskState::New { due } = task.lifecycle.state else {
        panic!("the task does not wait: {:?}", task.lifecycle)
    };
    let hour = Duration::from_secs(3600);
    assert!(due >= emit_time.plus(hour) && due <= now().plus(hour), "{due} is an hour after {emit_time}");
}

#[tokio::test]
async fn an_emit_needs_only_a_type() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    emit_in_sql(&client, "emit('a')").await;
    emit_in_sql(&client, "emit('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)").await;
    for event in store_node.wait_for_events(2).await {
        assert_eq!((event.key.as_ref(), event.sub_object.as_ref(), event.prev), (None, None, None));
        assert_eq!((event.value.as_str(), event.tenant.as_str()), ("null", "default"));
        assert!(event.context.is_empty());
    }
}

#[tokio::test]
async fn a_rolled_back_emit_leaves_nothing() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    client.batch_execute("BEGIN; SELECT pointsman.emit('gone', 'k'); ROLLBACK").await.unwrap();
    client
        .batch_execute(
            "BEGIN; SELECT pointsman.emit('first', 'k'); SAVEPOINT s; SELECT pointsman.emit('gone', 'k');
             ROLLBACK TO s; SELECT pointsman.emit('second', 'k'); COMMIT",
        )
        .await
        .unwrap();
    let events = store_node.wait_for_events(2).await;
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["first", "second"]);
    assert_eq!(events[1].prev, Some(events[0].id));
}

#[tokio::test]
async fn the_events_of_a_transaction_keep_their_order() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    // These are more events than one transaction drains.
    let emit_all_sql = "SELECT count(pointsman.emit('step', 'object:' || i % 7, to_jsonb(i))) FROM generate_series(1, 2500) i";
    client.query_one(emit_all_sql, &[]).await.unwrap();
    let events = store_node.wait_for_events(2500).await;
    let values: Vec<usize> = events.iter().map(|event| event.value.decode().unwrap()).collect();
    assert!(values.iter().copied().eq(1..=2500));
    for (event, before) in events.iter().skip(7).zip(&events) {
        assert_eq!((event.key.as_ref(), event.prev), (before.key.as_ref(), Some(before.id)));
    }
}

#[tokio::test]
async fn a_receipt_has_no_event_before_the_commit() {
    let store_node = TestStore::new().await;
    let mut client = store_node.connect_client().await;
    let transaction = client.transaction().await.unwrap();
    let row = transaction.query_one("SELECT pointsman.emit('a')", &[]).await.unwrap();
    let receipt: uuid::Uuid = row.get(0);
    let row = transaction.query_one("SELECT pointsman.event_of($1)", &[&receipt]).await.unwrap();
    assert_eq!(row.get::<_, Option<i64>>(0), None);
    transaction.commit().await.unwrap();
    let event = store_node.wait_for_events(1).await.remove(0);
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(event.id));
    let unknown = client.query_one("SELECT pointsman.event_of(gen_random_uuid())", &[]).await.unwrap_err();
    assert_eq!(unknown.code().unwrap().code(), "P0002");
}

#[tokio::test]
async fn emits_wait_while_no_node_runs() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let url = store_node.close().await;
    let receipt = emit_in_sql(&client, "emit('a')").await;
    assert_eq!(find_event_of_receipt(&client, receipt).await, None);
    let store_node = TestStore::open(&url).await;
    let event = store_node.wait_for_events(1).await.remove(0);
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(event.id));
}

#[tokio::test]
async fn large_values_are_drained_in_several_transactions() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let emit_all_sql = "SELECT count(pointsman.emit('a', value => to_jsonb(repeat('x', 1000000)))) FROM generate_series(1, 20)";
    client.query_one(emit_all_sql, &[]).await.unwrap();
    let events = store_node.wait_for_events(20).await;
    assert!(events.iter().all(|event| event.value.as_str().len() == 1_000_002));
}

#[tokio::test]
async fn an_invalid_row_is_set_aside_and_the_outbox_continues() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    client
        .batch_execute(
            "BEGIN;
             SELECT pointsman.emit('before');
             INSERT INTO pointsman.outbox (type) VALUES ('OrderStarted');
             INSERT INTO pointsman.outbox (type, value) VALUES ('a', '{');
             INSERT INTO pointsman.outbox (type) VALUES ('task');
             INSERT INTO pointsman.outbox (type, value) VALUES ('written.by.hand', '[1,  2]');
             SELECT pointsman.emit('after');
             COMMIT",
        )
        .await
        .unwrap();
    let events = store_node.wait_for_events(3).await;
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["before", "written.by.hand", "after"]);
    assert_eq!(events[1].value.as_str(), "[1,  2]");
    let refused_rows_sql = "SELECT type, value, reason FROM pointsman.outbox_refused ORDER BY n";
    let refused: Vec<(String, String, String)> = client
        .query(refused_rows_sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2)))
        .collect();
    assert_eq!(refused.len(), 3);
    assert!(
        refused[2].2.starts_with("/type: task is the name of a frame of the event stream"),
        "{}",
        refused[2].2
    );
    assert_eq!(refused[0].2, "/type: only the engine itself emits OrderStarted");
    assert_eq!((refused[1].1.as_str(), refused[1].2.starts_with("/value: not JSON")), ("{", true));
}

#[tokio::test]
async fn a_prepared_transaction_emits_when_it_is_committed() {
    let extra_settings = vec![("max_prepared_transactions".into(), "4".into())];
    let server =
        PostgresServer::start(PostgresSettings { extra_settings, ..PostgresSettings::default() }).unwrap();
    let store_node = TestStore::open(&server.create_database().unwrap()).await;
    let client = connect(&store_node.url).await;
    client
        .batch_execute(
            "BEGIN; SET LOCAL pointsman.notify = off; SELECT pointsman.emit('prepared', 'k');
             PREPARE TRANSACTION 'later'",
        )
        .await
        .unwrap();
    emit_in_sql(&client, "emit('meanwhile', 'k')").await;
    store_node.wait_for_events(1).await;
    client.batch_execute("COMMIT PREPARED 'later'").await.unwrap();
    let events = store_node.wait_for_events(2).await;
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["meanwhile", "prepared"]);
    assert_eq!(events[1].prev, Some(events[0].id));
}
