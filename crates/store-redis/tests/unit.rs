//! A program's own commands and its events in one step, as a unit of work has them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::node::{Node, values};
use common::place::Place;
use common::wire::{Fate, Wire};
use pointsman_core::{Cause, EventId, NewEvent, ObjectKey, TaskSeq};
use pointsman_store::sql::{Sql, TransactError, Value};
use pointsman_store_conformance::world::{Draft, event};
use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

fn told(key: &str, value: &str) -> NewEvent {
    event("work.changed").key(key).value(value)
}

/// Adds one to a counter, and tells of it twice.
fn count(
    place: &Place,
) -> impl FnOnce(&mut dyn Sql) -> Result<Vec<NewEvent>, Box<dyn std::error::Error + Send + Sync>> + Send + use<>
{
    let counter = format!("{}mine:counter", place.prefix);
    move |sql| {
        sql.execute("INCR", &[Value::from(counter)])?;
        Ok(vec![told("a", "1"), told("b", "2"), told("a", "3")])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_done_and_events_emitted_in_their_order() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    node.store.transact(count(&place)).await.unwrap();
    let events = node.events(3).await;
    let of = |key: &str| -> Vec<_> {
        let key = ObjectKey::new(key).unwrap();
        events.iter().filter(|event| event.key.as_ref() == Some(&key)).cloned().collect()
    };
    assert_eq!((values(&of("a")), values(&of("b"))), (vec!["1", "3"], vec!["2"]));
    assert_eq!(place.connect().text(&["GET", ":mine:counter"]).unwrap(), "1");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_leaves_nothing() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let key = format!("{}mine:text", place.prefix);
    let first = key.clone();
    let failed = node.store.transact(move |sql| {
        sql.execute("SET", &[Value::from(first), Value::from("x")])?;
        Err("changed my mind".into())
    });
    assert!(matches!(failed.await, Err(TransactError::Work(_))));
    let panicked = node.store.transact(|_| panic!("oh"));
    assert!(panicked.await.unwrap_err().to_string().contains("oh"));
    assert_eq!(place.connect().text(&["GET", ":mine:text"]), None);
    for (statement, why) in
        [("EXEC", "transaction"), ("", "no command"), ("SET pointsman:point", "own tables")]
    {
        let statement = statement.replace("pointsman:", &format!("{}pointsman:", place.prefix));
        let refused = node.store.transact(move |sql| Ok(sql.execute(&statement, &[]).map(|_| vec![])?));
        let said = refused.await.unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    let read = node.store.transact(|sql| Ok(sql.query("GET x", &[]).map(|_| vec![])?)).await;
    assert!(read.unwrap_err().to_string().contains("writes only"));
    let keyless = node.store.transact(|_| Ok(vec![event("work.changed")])).await;
    assert!(keyless.unwrap_err().to_string().contains("needs a key"));
    assert!(node.journal().await.is_empty());
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_redis_refuses_emits_nothing() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    place.connect().ask(&["LPUSH", ":mine:list", "x"]);
    let key = format!("{}mine:list", place.prefix);
    let refused = node.store.transact(move |sql| {
        sql.execute("INCR", &[Value::from(key)])?;
        Ok(vec![told("a", "1")])
    });
    let said = refused.await.unwrap_err().to_string();
    assert!(said.contains("command 1, INCR: WRONGTYPE") && said.contains("nothing was done"), "{said}");
    assert!(node.journal().await.is_empty());
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_caused_an_event_is_kept() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let cause = Cause { event: Some(EventId::from_i64(5)), task: TaskSeq(7), depth: 3 };
    node.store.transact(move |_| Ok(vec![NewEvent { cause: Some(cause), ..told("a", "1") }])).await.unwrap();
    assert_eq!(node.events(1).await[0].cause, Some(cause));
    node.close().await;
}

/// Its answer is lost, and it is sent again: Redis has done it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_unit_whose_answer_was_lost_is_done_once() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let place = Place::whole(&server);
    let wire = Wire::start(server.address());
    let node = Node::at(&format!("redis://{}", wire.address())).await;
    let script = include_str!("../src/lua/unit_of_work.lua");
    let hash = place.connect().text(&["SCRIPT", "LOAD", script]).unwrap();
    for round in 1..=3 {
        let set = wire.set(&hash, Fate::AnswerLost);
        let (store, work) = (node.store.clone(), count(&place));
        let unit = tokio::spawn(async move { store.transact(work).await });
        block_in_place(|| set.sprung());
        set.release();
        unit.await.unwrap().unwrap();
        node.events(3 * round).await;
        assert_eq!(place.connect().text(&["GET", ":mine:counter"]), Some(round.to_string()));
    }
    node.close().await;
}
