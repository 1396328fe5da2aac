//! Commits that were done, and whose answers are lost.

use std::sync::Arc;

use pointsman_core::store::{Claim, Claimant, Queue, Registry};
use pointsman_store_conformance::world::{Draft, Plan, ending, event, handler, succeeded};
use pointsman_testing::{Redis, RedisSettings};
use tokio::task::block_in_place;

use crate::common::chains::assert_chained;
use crate::common::invariants::{Watch, rest};
use crate::common::node::{Node, values};
use crate::common::now;
use crate::common::place::{Place, left};
use crate::common::wire::{Fate, Wire};

const COMMIT: &str = include_str!("../../src/lua/commit.lua");
const SERVE: &str = include_str!("../../src/lua/read_outboxes.lua");
const TAKE: &str = include_str!("../../src/lua/claim_objects.lua");

/// A node on a wire that loses answers, and one beside it.
struct Two {
    place: Place,
    wire: Wire,
    node: Arc<Node>,
    other: Node,
    _server: Redis,
}

impl Two {
    async fn start() -> Self {
        let server = Redis::start(RedisSettings::default()).unwrap();
        let place = Place::whole(&server);
        let wire = Wire::start(server.address());
        let node = Arc::new(Node::at(&format!("redis://{}", wire.address())).await);
        let other = Node::open(&place).await;
        Self { place, wire, node, other, _server: server }
    }

    fn hash(&self, script: &str) -> String {
        self.place.connect().text(&["SCRIPT", "LOAD", script]).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_is_lost_is_sent_again_and_counted_once() {
    let two = Two::start().await;
    let commit = two.hash(COMMIT);
    for others in [0, 1, 5, 100] {
        let set = two.wire.set(&commit, Fate::AnswerLost);
        let node = two.node.clone();
        let lost = tokio::spawn(async move { node.try_emit(event("a").key("o").value("1")).await });
        block_in_place(|| set.sprung());
        for n in 0..others {
            two.other.emit(event("a").key(if n % 2 == 0 { "o" } else { "p" }).value("0")).await;
        }
        set.release();
        let emitted = lost.await.unwrap().unwrap();
        let events = two.other.journal().await;
        assert_eq!(events.iter().filter(|event| event.id == emitted.id).count(), 1);
        let mine = events.iter().filter(|event| event.value.as_str() == "1").count();
        assert_eq!(mine, 1 + [0, 1, 5, 100].iter().position(|n| *n == others).unwrap());
        assert_chained(&events);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_whose_begin_and_end_were_not_answered_are_known() {
    let two = Two::start().await;
    let (node, commit) = (two.node.clone(), two.hash(COMMIT));
    node.store.register(Plan::simple().registration(), now()).await.unwrap();
    let id = node.store.join("one", now()).await.unwrap();
    node.emit(event("record")).await;
    let set = two.wire.set(&commit, Fate::AnswerLost);
    let claim = Claim { by: Claimant::Node(id), handlers: Arc::new([handler("index")].into()), max: 1 };
    let asked = {
        let node = node.clone();
        tokio::spawn(async move { node.store.claim(claim, now()).await })
    };
    block_in_place(|| set.sprung());
    two.other.emit(event("other")).await;
    set.release();
    let task = asked.await.unwrap().unwrap().tasks.remove(0);
    let set = two.wire.set(&commit, Fate::AnswerLost);
    let ends = vec![ending(&task, succeeded())];
    let ended = {
        let node = node.clone();
        tokio::spawn(async move { node.store.finish(ends, None, now()).await })
    };
    block_in_place(|| set.sprung());
    two.other.emit(event("other")).await;
    set.release();
    ended.await.unwrap().unwrap().0.remove(0).unwrap();
}

/// What was taken or is in flight when the answer was lost is found again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_that_are_lost_on_the_way_out_of_the_outbox_lose_nothing() {
    let two = Two::start().await;
    let watch = Watch::start(&two.place);
    let mut hand = two.place.connect();
    let Two { place, wire, node, other, .. } = &two;
    let scripts = [COMMIT, SERVE, TAKE].map(|script| two.hash(script));
    let mut count = 0;
    for round in 0..4 {
        for script in &scripts {
            let set = wire.set(script, Fate::AnswerLost);
            hand.push("o", &[left("a", count), left("a", count + 1)]);
            count += 2;
            // The other one may be quicker; the wire gets its part sooner or later.
            let mut springs = false;
            while !springs {
                hand.push("o", &[left("a", count)]);
                count += 1;
                springs = block_in_place(|| set.springs_soon());
            }
            if round % 2 == 0 {
                other.emit(event("other").value("-1")).await;
            }
            set.release();
        }
    }
    rest(place).await;
    let mut events = node.journal().await;
    assert_chained(&events);
    events.retain(|event| event.key.is_some());
    assert!(values(&events).iter().map(|value| value.parse::<usize>().unwrap()).eq(0..count));
    watch.end();
}
