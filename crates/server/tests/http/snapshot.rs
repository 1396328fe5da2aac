//! A snapshot and the events after it make up a later snapshot, whatever goes on meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_core::chain::Action;
use pointsman_core::journal::{Filter, Retention};
use pointsman_core::store::{NewOrder, OrderCommand};
use pointsman_core::{EventId, Json, Tenant};
use pointsman_engine::Engine;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::HANGS;
use crate::house::House;
use crate::stream::Frames;
use crate::track::{Gate, chain, order, setup};

const ORDERS: &str = "/jobscheduler/master/api/order";
const CHAINS: [&str; 3] = ["/a/x", "/a/b/y", "/z"];
/// How many snapshots are compared.
const ROUNDS: usize = 60;
/// How many events lie between two snapshots at least, so that there is something to go wrong.
const STRETCH: usize = 40;
/// How many events are remembered.
const REMEMBERED: usize = 300;

/// What is known of an order: where it stands, whether it is suspended, whether a step runs.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    node: String,
    suspended: bool,
    running: bool,
}

type Orders = BTreeMap<String, Known>;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The orders of a snapshot, and where it lies in the stream.
async fn snapshot(house: &House, path: &str) -> (Orders, u64) {
    let answer = house.get(&format!("{ORDERS}{path}?return=OrderOverview")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let known = |order: &Value| Known {
        node: text(&order["nodeId"]),
        suspended: order["suspended"] == true,
        running: order["orderState"] == "inProcess",
    };
    let orders = answer["orders"].as_array().expect("orders").iter();
    let orders = orders.map(|order| (text(&order["path"]), known(order))).collect();
    (orders, answer["eventId"].as_u64().expect("an id"))
}

/// Brings what is known up to date. Every event must be about something that is there.
fn apply(orders: &mut Orders, event: &Value) {
    let (kind, key) = (text(&event["TYPE"]), text(&event["key"]));
    let key = key.strip_prefix("Order:").map_or(key.clone(), str::to_owned);
    match kind.as_str() {
        "FileBasedAdded" => {
            let known = Known { node: text(&event["nodeId"]), suspended: false, running: false };
            assert_eq!(orders.insert(key, known), None, "{event} is there already");
            return;
        }
        "FileBasedRemoved" => {
            assert!(orders.remove(&key).is_some(), "{event} is not there");
            return;
        }
        _ => {}
    }
    let known = orders.get_mut(&key).unwrap_or_else(|| panic!("{event} is not there"));
    match kind.as_str() {
        "OrderNodeChanged" => {
            let from = std::mem::replace(&mut known.node, text(&event["nodeId"]));
            assert_eq!(from, text(&event["fromNodeId"]), "{event}");
        }
        "OrderStepStarted" => {
            assert_eq!((known.running, &known.node), (false, &text(&event["nodeId"])), "{event}");
            known.running = true;
        }
        "OrderStepEnded" => assert!(std::mem::replace(&mut known.running, false), "{event}"),
        "OrderSuspended" => assert!(!std::mem::replace(&mut known.suspended, true), "{event}"),
        "OrderResumed" => assert!(std::mem::replace(&mut known.suspended, false), "{event}"),
        "OrderStarted" | "OrderFinished" | "OrderSetBack" => {}
        other => panic!("what is {other}?"),
    }
}

/// Somebody who keeps what it read of a snapshot up to date by the events after it.
struct Reader {
    orders: Orders,
    after: u64,
    /// Read, but of a later time than was asked for so far.
    ahead: Vec<Value>,
}

/// Something between has been forgotten.
struct Torn;

impl Reader {
    async fn begin(house: &House, path: &str) -> Self {
        let (orders, after) = snapshot(house, path).await;
        Self { orders, after, ahead: vec![] }
    }

    /// Applies what has happened up to this id; answers how many events that were.
    async fn follow(&mut self, house: &House, path: &str, until: u64, limit: usize) -> Result<usize, Torn> {
        let kinds = "return=OrderEvent,FileBasedAdded,FileBasedRemoved";
        while self.after < until {
            let limit = if limit == 0 { String::new() } else { format!("&limit={limit}") };
            let query = format!("{ORDERS}{path}?{kinds}&after={}&timeout=1{limit}", self.after);
            // An answer breaks off when something is forgotten that it had yet to send.
            let answer = house.get(&query).await;
            let Ok(seq) = serde_json::from_slice::<Value>(&answer.body) else { return Err(Torn) };
            match seq["TYPE"].as_str() {
                Some("NonEmpty") => {
                    let events = seq["eventSnapshots"].as_array().expect("events");
                    self.ahead.extend(events.iter().cloned());
                    self.after = events.last().and_then(|event| event["eventId"].as_u64()).expect("an id");
                }
                Some("Empty") => self.after = seq["lastEventId"].as_u64().expect("an id"),
                Some("Torn") => return Err(Torn),
                other => panic!("{other:?}: {seq}"),
            }
        }
        let due = self.ahead.partition_point(|event| event["eventId"].as_u64().expect("an id") <= until);
        for event in self.ahead.drain(..due) {
            apply(&mut self.orders, &event);
        }
        Ok(due)
    }
}

/// Numbers that are random enough.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// People at work, all at once: they add orders and steer them, and stop chains and nodes and start them again.
struct Bustle {
    engine: Engine,
    dice: Dice,
    /// The youngest orders. Many have arrived, and are not there any more.
    keys: Vec<String>,
    number: u64,
}

impl Bustle {
    async fn go_on(engine: Engine, stop: Arc<AtomicBool>) {
        let mut bustle = Self { engine, dice: Dice(0x9e37_79b9_7f4a_7c15), keys: vec![], number: 0 };
        while !stop.load(Ordering::Relaxed) {
            match bustle.dice.below(16) {
                0..=6 => bustle.add().await,
                7..=14 => bustle.steer().await,
                _ => bustle.set().await,
            }
            let old = bustle.keys.len().saturating_sub(100);
            for key in bustle.keys.drain(..old).collect::<Vec<_>>() {
                bustle.command(&key, OrderCommand::Resume).await;
            }
        }
    }

    async fn add(&mut self) {
        let mut new = Vec::new();
        for _ in 0..=self.dice.below(6) {
            self.number += 1;
            let key = format!("{},{}", CHAINS[self.dice.below(CHAINS.len())], self.number);
            let value = if self.dice.below(4) == 0 { "\"fail\"" } else { "null" };
            new.push(NewOrder { value: Json::trusted(value), ..order(&key) });
            self.keys.push(key);
        }
        self.engine.add_orders(new).await.expect("a store").expect("nothing to refuse");
    }

    async fn steer(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let key = self.keys[self.dice.below(self.keys.len())].clone();
        let node = |id: &str| Some(id.parse().expect("a node"));
        let command = match self.dice.below(8) {
            0 | 1 => OrderCommand::Suspend,
            2..=5 => OrderCommand::Resume,
            6 => OrderCommand::Remove,
            _ => OrderCommand::Change { value: None, node: node(["a", "b"][self.dice.below(2)]), at: None },
        };
        self.command(&key, command).await;
    }

    /// An order that has arrived, or whose step runs, refuses.
    async fn command(&self, key: &str, command: OrderCommand) {
        let key = key.parse().expect("an order");
        let _ = self.engine.steer_order(&Tenant::default(), &key, command).await.expect("a store");
    }

    async fn set(&mut self) {
        let chain = CHAINS[self.dice.below(CHAINS.len())].parse().expect("a chain");
        if self.dice.below(2) == 0 {
            let stopped = self.dice.below(3) == 0;
            self.engine.stop_chain(&chain, stopped).await.expect("a store").expect("a chain");
        } else {
            let action =
                [Action::Process, Action::Process, Action::Stop, Action::NextState][self.dice.below(4)];
            let node = ["a", "b"][self.dice.below(2)].parse().expect("a node");
            self.engine.set_node(&chain, &node, action).await.expect("a store").expect("a node");
        }
    }
}

/// Forgets all but the youngest past, over and over.
async fn forget(engine: Engine, stop: Arc<AtomicBool>, forgotten: Arc<AtomicUsize>) {
    let nothing_older = Retention { age: Duration::ZERO, ..Retention::default() };
    let (all, beginning) = (Filter::default(), EventId::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let young = engine.observer().newest(&all, beginning, REMEMBERED).await.expect("a store").events;
        if young.len() == REMEMBERED
            && let Some(oldest) = young.last()
        {
            let then = oldest.id.timestamp();
            let pruned = engine
                .store()
                .prune(nothing_older, Retention::default(), Duration::MAX, then)
                .await
                .expect("a store");
            forgotten.fetch_add(pruned.events as usize, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

struct Busy {
    house: House,
    stop: Arc<AtomicBool>,
    forgotten: Arc<AtomicUsize>,
    going_on: Vec<tokio::task::JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Busy {
    /// A server on a file, so that readers and the writer have connections of their own.
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("orders.db");
        let yaml =
            format!("store: 'sqlite:{}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n", store.display());
        let house = House::at(folder.path(), &yaml, setup(&Gate::open(), CHAINS.map(chain).into())).await;
        let (stop, forgotten) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let engine = house.server.engine().clone();
        let going_on = vec![
            tokio::spawn(Bustle::go_on(engine.clone(), stop.clone())),
            tokio::spawn(forget(engine, stop.clone(), forgotten.clone())),
        ];
        Self { house, stop, forgotten, going_on, _folder: folder }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for going_on in self.going_on {
            timeout(HANGS, going_on).await.expect("an end").expect("without a panic");
        }
        assert!(self.forgotten.load(Ordering::Relaxed) > 0, "retention was not at work");
        self.house.server.stop().await;
    }
}

/// Waits until enough has been journaled after this id.
async fn stretch(house: &House, after: u64) {
    let (observer, all) = (house.server.engine().observer(), Filter::default());
    let start = EventId::new(after).expect("an id");
    let grown = async {
        let mut seen = 0;
        let mut last = start;
        while seen < STRETCH {
            observer.matched(&all, &mut last).await;
            let page = observer.page(&all, last, None, STRETCH).await.expect("a store");
            (seen, last) = (seen + page.events.len(), page.scanned);
        }
    };
    timeout(HANGS, grown).await.expect("events in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_and_its_events_make_up_a_later_snapshot() {
    let busy = Busy::new().await;
    let house = &busy.house;
    let (mut compared, mut applied, mut torn) = (0, 0, 0);
    for round in 0.. {
        let path = ["", "/a/", "/a/*", "/z"][round % 4];
        let limit = [0, 1, 7, 100][round / 4 % 4];
        let mut reader = Reader::begin(house, path).await;
        // As long as nothing was forgotten, the same reader goes on.
        while compared < ROUNDS {
            stretch(house, reader.after).await;
            let (later, until) = snapshot(house, path).await;
            match reader.follow(house, path, until, limit).await {
                Ok(events) => applied += events,
                Err(Torn) => {
                    torn += 1;
                    break;
                }
            }
            assert_eq!(reader.orders, later, "{path} at {until}");
            compared += 1;
            if compared % 5 == 0 {
                break;
            }
        }
        if compared == ROUNDS {
            break;
        }
        assert!(torn < 50 * ROUNDS, "torn again and again");
    }
    assert!(applied > 4 * ROUNDS, "only {applied} events in {compared} rounds");

    // Who comes back too late is told to begin again.
    let (_, after) = snapshot(house, "").await;
    let late = format!("{ORDERS}?return=Event&after={after}&limit=1");
    house.until(&late, |seq| seq["TYPE"] == "Torn").await;
    busy.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_and_server_sent_events_make_up_a_later_snapshot() {
    let busy = Busy::new().await;
    let house = &busy.house;
    let mut compared = 0;
    while compared < ROUNDS / 4 {
        let (mut orders, after) = snapshot(house, "/a/").await;
        let kinds = "return=OrderEvent,FileBasedAdded,FileBasedRemoved&path=/a/";
        let mut frames = Frames::open(house, &format!("/api/v1/stream?{kinds}&after={after}"), &[]).await;
        stretch(house, after).await;
        let (later, until) = snapshot(house, "/a/").await;
        let mut last = after;
        let whole = loop {
            let frame = frames.next().await.expect("a stream that goes on");
            match frame.id {
                None => break frame.event != "Torn",
                Some(id) if id > until => break true,
                Some(id) => {
                    assert!(id > last, "{id} after {last}");
                    last = id;
                    apply(&mut orders, &frame.json());
                }
            }
        };
        if whole {
            assert_eq!(orders, later, "at {until}");
            compared += 1;
        }
    }
    busy.end().await;
}
