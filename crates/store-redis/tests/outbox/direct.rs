//! Emitting directly to an object for which something was left: it stands behind that, whoever holds the object.

use std::sync::Arc;

use futures::future::join_all;
use pointsman_core::Event;
use pointsman_core::store::{Claim, Claimant, Ending, Queue, Registry, Schedules};
use pointsman_store_conformance::world::{Draft, Fires, Plan, ending, event, handler, succeeded};
use pointsman_testing::{Redis, RedisSettings};

use crate::common::actor::{act, assert_in_order};
use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::place::{Place, left};
use crate::common::wire::{Fate, Wire};
use crate::common::{now, until};

const BEGIN: &str = include_str!("../../src/lua/begin_transaction.lua");
const COMMIT: &str = include_str!("../../src/lua/commit.lua");

/// The values of an object's events, as numbers.
fn numbers(events: &[Arc<Event>]) -> Vec<usize> {
    values(events).iter().map(|value| value.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stands_behind_what_is_queued_and_in_flight() {
    for (flying, lives) in [(false, true), (true, true), (false, false), (true, false)] {
        let place = Place::shared();
        let node = Node::open(&place).await;
        let mut hand = place.connect();
        let watch = Watch::start(&place);
        if lives {
            hand.lives("other");
        }
        hand.holds("other", "o", flying.then(|| (left("a", 0), "5")).as_ref().map(|(e, id)| (&**e, *id)));
        hand.ask(&["LPUSH", ":o:events", &left("a", 1), &left("a", 2)]);
        let direct = node.emit(event("direct").key("o").value("3")).await;
        let events = node.events(if flying { 4 } else { 3 }).await;
        assert_eq!(numbers(&events), if flying { vec![0, 1, 2, 3] } else { vec![1, 2, 3] });
        assert_chained(&events);
        assert_eq!(events.last().unwrap().id, direct.id);
        if lives {
            assert_eq!(hand.text(&["GET", ":o:event.worker"]).as_deref(), Some("other"), "it is its still");
        }
        watch.end();
        node.close().await;
    }
}

/// The one who held it finds its event gone, and goes on with what came later.
#[tokio::test(flavor = "multi_thread")]
async fn it_stands_behind_more_than_one_transaction_takes() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", Some((&left("a", 0), "5")));
    let watch = Watch::start(&place);
    let count = 3_000;
    let events: Vec<String> = (1..count).map(|n| left("a", n)).collect();
    for piece in events.chunks(500) {
        hand.push("o", piece);
    }
    let large = "x".repeat(900_000);
    for n in 0..8 {
        hand.push("large", &[left("a", format!("[{n},\"{large}\"]"))]);
    }
    node.emit(event("direct").key("o").value(&count.to_string())).await;
    node.emit(event("direct").key("large")).await;
    let events = node.events(count + 1 + 9).await;
    assert_chained(&events);
    let (of_o, of_large): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.key.as_ref().unwrap().as_str() == "o");
    assert!(numbers(&of_o).into_iter().eq(0..=count));
    assert_eq!(of_large.last().unwrap().value.as_str(), "null");
    hand.dies("other");
    hand.ask(&["LPUSH", ":objects.with.events", "o"]);
    rest(&place).await;
    watch.end();
    node.close().await;
}

/// However much was left: it waits for all of that, and those who emit to other objects do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_stands_behind_very_much_and_holds_up_nobody_else() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", None);
    // A dozen transactions: the second one beside may be late for some of them.
    let count = 48_000;
    let events: Vec<String> = (0..count).map(|n| left("a", n)).collect();
    for piece in events.chunks(1_000) {
        hand.ask(
            &[&["LPUSH", ":o:events"], &piece.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat(),
        );
    }
    let direct = node.emit(event("direct").key("o").value(&count.to_string()));
    let beside = async {
        let mut ids = vec![];
        for _ in 0..2 {
            ids.push(node.emit(event("beside").key("p").value("0")).await.id);
        }
        ids
    };
    let (direct, beside) = tokio::join!(direct, beside);
    assert!(beside.iter().all(|id| *id < direct.id), "{beside:?} {}", direct.id);
    let events = node.events(count + 3).await;
    assert_chained(&events);
    let of_o: Vec<_> =
        events.into_iter().filter(|event| event.key.as_ref().unwrap().as_str() == "o").collect();
    assert!(numbers(&of_o).into_iter().eq(0..=count));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_schedule_makes_stands_behind_it_too() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", Some((&left("a", 1), "5")));
    hand.ask(&["LPUSH", ":o:events", &left("a", 2)]);
    let firing = Fires::event(event("a").key("o").value("3")).at("nightly", now());
    let fire = node.store.settle(vec![firing], now()).await.unwrap().remove(0).0;
    let events = node.events(3).await;
    assert_eq!(numbers(&events), [1, 2, 3]);
    assert_chained(&events);
    assert_eq!(fire.event, Some(events[2].id));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_emits_stands_behind_it_too() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    node.store.register(Plan::simple().registration(), now()).await.unwrap();
    let id = node.store.join("one", now()).await.unwrap();
    node.emit(event("record").key("other")).await;
    let claim = Claim { by: Claimant::Node(id), handlers: Arc::new([handler("index")].into()), max: 1 };
    let task = node.store.claim(claim, now()).await.unwrap().tasks.remove(0);
    let mut hand = place.connect();
    hand.lives("other");
    hand.holds("other", "o", Some((&left("a", 1), "5")));
    hand.ask(&["LPUSH", ":o:events", &left("a", 2)]);
    let emits = vec![event("a").key("o").value("3")];
    let ended = Ending { emits, ..ending(&task, succeeded()) };
    node.store.finish(vec![ended], None, now()).await.unwrap().0.remove(0).unwrap();
    let events = node.events(4).await;
    assert_eq!(numbers(&events[1..]), [1, 2, 3]);
    assert_chained(&events);
    node.close().await;
}

/// What is done one after the other comes so, on nodes that contend.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_pushes_and_emits_in_turns_sees_one_order() {
    let place = Place::shared();
    let nodes = [Node::open(&place).await, Node::open(&place).await];
    let watch = Watch::start(&place);
    let (place, nodes_) = (&place, &nodes);
    join_all((0..6).map(|n| async move {
        act(place, &nodes_[n % 2], &format!("o:{n}"), 250, n as u64 + 7).await;
    }))
    .await;
    let events = nodes[0].events(6 * 250).await;
    assert_chained(&events);
    (0..6).for_each(|n| assert_in_order(&events, &format!("o:{n}"), 250));
    rest(place).await;
    watch.end();
    for node in nodes {
        node.close().await;
    }
}

/// A node whose wire can be held up, one beside it, and the hashes of two scripts.
struct Two {
    place: Place,
    wire: Wire,
    slow: Arc<Node>,
    other: Node,
    begin: String,
    commit: String,
    _server: Redis,
}

impl Two {
    async fn start() -> Self {
        let server = Redis::start(RedisSettings::default()).unwrap();
        let place = Place::whole(&server);
        let wire = Wire::start(server.address());
        let slow = Arc::new(Node::at(&format!("redis://{}", wire.address())).await);
        let other = Node::open(&place).await;
        let mut hand = place.connect();
        let mut hash = |source: &str| hand.text(&["SCRIPT", "LOAD", source]).unwrap();
        let (begin, commit) = (hash(BEGIN), hash(COMMIT));
        Self { place, wire, slow, other, begin, commit, _server: server }
    }
}

/// While it waits for its turn more is asked of it; that shares its transaction, and looks at the same object.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_come_late_to_a_transaction_journal_nothing_twice() {
    let two = Two::start().await;
    let mut hand = two.place.connect();
    hand.lives("ghost");
    hand.holds("ghost", "o", Some((&left("a", 0), "5")));
    hand.ask(&["LPUSH", ":o:events", &left("a", 1), &left("a", 2), &left("a", 3)]);
    two.slow.emit(event("first").value("0")).await;
    let held = two.wire.set(&two.begin, Fate::Held);
    let emit = |n: usize| {
        let slow = two.slow.clone();
        tokio::spawn(async move { slow.emit(event("direct").key("o").value(&n.to_string())).await })
    };
    let first = emit(4);
    tokio::task::block_in_place(|| held.sprung());
    two.other.emit(event("between").value("0")).await;
    let second = emit(5);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    held.release();
    let ids = [first.await.unwrap().id, second.await.unwrap().id];
    let events = two.other.events(8).await;
    assert_chained(&events);
    let of_o: Vec<_> = events.into_iter().filter(|event| event.key.is_some()).collect();
    assert_eq!(numbers(&of_o), [0, 1, 2, 3, 4, 5]);
    assert_eq!([of_o[4].id, of_o[5].id], ids);
    assert_eq!(hand.number(&["EXISTS", ":o:events", ":event.worker:ghost:event"]), 0);
}

/// The transaction has begun when something is left and then something is emitted, which shares it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_come_late_to_a_transaction_stand_behind_what_was_left_meanwhile() {
    let two = Two::start().await;
    let mut hand = two.place.connect();
    two.slow.emit(event("first").value("0")).await;
    two.other.emit(event("between").value("0")).await;
    let held = two.wire.set(&two.begin, Fate::AnswerHeld);
    let slow = two.slow.clone();
    let first = tokio::spawn(async move { slow.emit(event("direct").key("o").value("1")).await });
    tokio::task::block_in_place(|| held.sprung());
    hand.lives("ghost");
    hand.holds("ghost", "p", Some((&left("a", 2), "5")));
    hand.ask(&["LPUSH", ":p:events", &left("a", 3)]);
    hand.ask(&["LPUSH", ":o:events", &left("a", 4)]);
    let slow = two.slow.clone();
    let late = tokio::spawn(async move {
        slow.emit(event("direct").key("p").value("5")).await;
        slow.emit(event("direct").key("o").value("6")).await;
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    held.release();
    first.await.unwrap();
    late.await.unwrap();
    let events = two.other.events(8).await;
    assert_chained(&events);
    let of = |object: &str| {
        let of_it =
            events.iter().filter(|event| event.key.as_ref().is_some_and(|key| key.as_str() == object));
        numbers(&of_it.cloned().collect::<Vec<_>>())
    };
    assert_eq!((of("p"), of("o")), (vec![2, 3, 5], vec![1, 4, 6]));
}

/// After a transaction that failed everything is read again; the outbox is looked at nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_stands_behind_it_also_after_a_failure() {
    let two = Two::start().await;
    let mut hand = two.place.connect();
    two.slow.emit(event("first").value("0")).await;
    let held = two.wire.set(&two.commit, Fate::Held);
    let slow = two.slow.clone();
    let late = tokio::spawn(async move { slow.try_emit(event("late").value("0")).await });
    tokio::task::block_in_place(|| held.sprung());
    two.other.emit(event("between").value("0")).await;
    hand.lives("ghost");
    hand.holds("ghost", "o", Some((&left("a", 0), "5")));
    hand.ask(&["LPUSH", ":o:events", &left("a", 1)]);
    held.release();
    assert!(late.await.unwrap().is_err(), "another one has written");
    until("it goes on", async || two.slow.try_emit(event("direct").key("o").value("2")).await.is_ok()).await;
    let events = two.other.journal().await;
    assert_chained(&events);
    let of_o: Vec<_> = events.into_iter().filter(|event| event.key.is_some()).collect();
    assert_eq!(numbers(&of_o), [0, 1, 2]);
}
