//! Units of work: commands of an application and its events in one step.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::command_proxy::{CommandFault, CommandProxy};
use common::redis_location::RedisLocation;
use common::test_node::{TestNode, event_values};
use pointsman_core::{Cause, ErrorChain, EventId, NewEvent, ObjectKey, TaskSeq};
use pointsman_store::sql::{SqlTransaction, SqlValue, TransactError};
use pointsman_store_conformance::fixture::{NewEventExt, new_event};
use pointsman_testing::{RedisServer, RedisSettings};
use tokio::task::block_in_place;

fn work_event(key: &str, value: &str) -> NewEvent {
    new_event("work.changed").with_key(key).with_value(value)
}

/// Increments a counter, and emits three events.
fn work_that_increments_a_counter(
    location: &RedisLocation,
) -> impl FnOnce(&mut dyn SqlTransaction) -> Result<Vec<NewEvent>, Box<dyn std::error::Error + Send + Sync>>
+ Send
+ use<> {
    let counter = format!("{}mine:counter", location.prefix);
    move |sql| {
        sql.execute("INCR", &[SqlValue::from(counter)])?;
        Ok(vec![work_event("a", "1"), work_event("b", "2"), work_event("a", "3")])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_and_events_are_emitted_in_order() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    node.store.database().transact(work_that_increments_a_counter(&location)).await.unwrap();
    let events = node.wait_for_events(3).await;
    let events_of = |key: &str| -> Vec<_> {
        let key = ObjectKey::new(key).unwrap();
        events.iter().filter(|event| event.key.as_ref() == Some(&key)).cloned().collect()
    };
    assert_eq!((event_values(&events_of("a")), event_values(&events_of("b"))), (vec!["1", "3"], vec!["2"]));
    assert_eq!(location.connect().query_text(&["GET", ":mine:counter"]).unwrap(), "1");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_work_leaves_nothing_behind() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let key = format!("{}mine:text", location.prefix);
    let first = key.clone();
    let failed = node.store.database().transact(move |sql| {
        sql.execute("SET", &[SqlValue::from(first), SqlValue::from("x")])?;
        Err("the work fails".into())
    });
    assert!(matches!(failed.await, Err(TransactError::WorkFailed(_))));
    let panicked = node.store.database().transact(|_| panic!("the work panics"));
    assert!(ErrorChain(&panicked.await.unwrap_err()).to_string().contains("the work panics"));
    assert_eq!(location.connect().query_text(&["GET", ":mine:text"]), None);
    for (statement, expected) in
        [("EXEC", "transaction"), ("", "no command"), ("SET pointsman:store-state", "own tables")]
    {
        let statement = statement.replace("pointsman:", &format!("{}pointsman:", location.prefix));
        let refused =
            node.store.database().transact(move |sql| Ok(sql.execute(&statement, &[]).map(|_| vec![])?));
        let message = ErrorChain(&refused.await.unwrap_err()).to_string();
        assert!(message.contains(expected), "{message}");
    }
    let read = node.store.database().transact(|sql| Ok(sql.query("GET x", &[]).map(|_| vec![])?)).await;
    assert!(ErrorChain(&read.unwrap_err()).to_string().contains("writes only"));
    let keyless = node.store.database().transact(|_| Ok(vec![new_event("work.changed")])).await;
    assert!(ErrorChain(&keyless.unwrap_err()).to_string().contains("needs a key"));
    assert!(node.read_journal().await.is_empty());
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn command_refused_by_redis_emits_no_event() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    location.connect().run_command(&["LPUSH", ":mine:list", "x"]);
    let key = format!("{}mine:list", location.prefix);
    let refused = node.store.database().transact(move |sql| {
        sql.execute("INCR", &[SqlValue::from(key)])?;
        Ok(vec![work_event("a", "1")])
    });
    let message = ErrorChain(&refused.await.unwrap_err()).to_string();
    assert!(
        message.contains("command 1, INCR: WRONGTYPE") && message.contains("nothing was done"),
        "{message}"
    );
    assert!(node.read_journal().await.is_empty());
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn event_cause_is_kept() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let cause = Cause { event: Some(EventId::from_i64(5)), task: TaskSeq(7), depth: 3 };
    node.store
        .database()
        .transact(move |_| Ok(vec![NewEvent { cause: Some(cause), ..work_event("a", "1") }]))
        .await
        .unwrap();
    assert_eq!(node.wait_for_events(1).await[0].cause, Some(cause));
    node.close().await;
}

/// The unit of work is resent after the reply was lost, and runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unit_of_work_with_lost_reply_runs_once() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let location = RedisLocation::on_server_without_prefix(&server);
    let proxy = CommandProxy::start(server.address());
    let node = TestNode::open_url(&format!("redis://{}", proxy.address())).await;
    let script = include_str!("../src/lua/unit_of_work.lua");
    let hash = location.connect().query_text(&["SCRIPT", "LOAD", script]).unwrap();
    for round in 1..=3 {
        let fault = proxy.arm(&hash, CommandFault::LoseReply);
        let (store, work) = (node.store.clone(), work_that_increments_a_counter(&location));
        let unit = tokio::spawn(async move { store.database().transact(work).await });
        block_in_place(|| fault.wait_until_triggered());
        fault.release();
        unit.await.unwrap().unwrap();
        node.wait_for_events(3 * round).await;
        assert_eq!(location.connect().query_text(&["GET", ":mine:counter"]), Some(round.to_string()));
    }
    node.close().await;
}
