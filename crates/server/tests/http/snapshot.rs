//! A snapshot plus the events after it equals a later snapshot, while orders are changed concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::journal::{EventFilter, Retention};
use pointsman_core::store::{NewOrder, OrderCommand};
use pointsman_core::{EventId, Json, Tenant};
use pointsman_engine::Engine;
use pointsman_testing::Rng;
use serde_json::Value;
use tokio::time::timeout;

use crate::chain_fixture::{StepGate, chain_setup, new_order, two_step_chain};
use crate::raw_http_client::TEST_TIMEOUT;
use crate::stream::SseClient;
use crate::test_server::TestServer;

const ORDERS_URL: &str = "/jobscheduler/master/api/order";
const CHAIN_PATHS: [&str; 3] = ["/a/x", "/a/b/y", "/z"];
/// Number of snapshots that are compared with the state of a reader.
const COMPARED_SNAPSHOT_COUNT: usize = 60;
/// Minimum number of events between two snapshots.
const MIN_EVENTS_BETWEEN_SNAPSHOTS: usize = 40;
/// Number of events that the journal retains.
const RETAINED_EVENT_COUNT: usize = 300;

/// The state of an order as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
struct ObservedOrder {
    node_id: String,
    suspended: bool,
    is_step_running: bool,
}

type ObservedOrders = BTreeMap<String, ObservedOrder>;

fn expect_text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Reads a snapshot: its orders and its event id.
async fn read_snapshot(server: &TestServer, path: &str) -> (ObservedOrders, u64) {
    let response = server.get(&format!("{ORDERS_URL}{path}?return=OrderOverview")).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let response = response.json();
    let observed = |order: &Value| ObservedOrder {
        node_id: expect_text(&order["nodeId"]),
        suspended: order["suspended"] == true,
        is_step_running: order["orderState"] == "inProcess",
    };
    let orders = response["orders"].as_array().expect("orders").iter();
    let orders = orders.map(|order| (expect_text(&order["path"]), observed(order))).collect();
    (orders, response["eventId"].as_u64().expect("an id"))
}

/// Applies an order event to the orders. Panics if the event does not fit their current state.
fn apply_order_event(orders: &mut ObservedOrders, event: &Value) {
    let (event_type, key) = (expect_text(&event["TYPE"]), expect_text(&event["key"]));
    let key = key.strip_prefix("Order:").map_or(key.clone(), str::to_owned);
    match event_type.as_str() {
        "FileBasedAdded" => {
            let observed = ObservedOrder {
                node_id: expect_text(&event["nodeId"]),
                suspended: false,
                is_step_running: false,
            };
            assert_eq!(orders.insert(key, observed), None, "{event}: the order exists already");
            return;
        }
        "FileBasedRemoved" => {
            assert!(orders.remove(&key).is_some(), "{event}: there is no such order");
            return;
        }
        _ => {}
    }
    let observed = orders.get_mut(&key).unwrap_or_else(|| panic!("{event}: there is no such order"));
    match event_type.as_str() {
        "OrderNodeChanged" => {
            let from = std::mem::replace(&mut observed.node_id, expect_text(&event["nodeId"]));
            assert_eq!(from, expect_text(&event["fromNodeId"]), "{event}");
        }
        "OrderStepStarted" => {
            assert_eq!(
                (observed.is_step_running, &observed.node_id),
                (false, &expect_text(&event["nodeId"])),
                "{event}"
            );
            observed.is_step_running = true;
        }
        "OrderStepEnded" => assert!(std::mem::replace(&mut observed.is_step_running, false), "{event}"),
        "OrderSuspended" => assert!(!std::mem::replace(&mut observed.suspended, true), "{event}"),
        "OrderResumed" => assert!(std::mem::replace(&mut observed.suspended, false), "{event}"),
        "OrderStarted" | "OrderFinished" | "OrderSetBack" => {}
        other => panic!("unknown event type {other}"),
    }
}

/// Keeps a snapshot up to date by the events after it.
struct SnapshotReader {
    orders: ObservedOrders,
    /// The id up to which events have been read.
    read_up_to_event_id: u64,
    /// Events that were read but are newer than the id up to which events were applied.
    buffered_events: Vec<Value>,
}

/// The error of a reader that cannot continue, because events after its cursor have expired.
struct JournalTornError;

impl SnapshotReader {
    async fn start_from_snapshot(server: &TestServer, path: &str) -> Self {
        let (orders, after) = read_snapshot(server, path).await;
        Self { orders, read_up_to_event_id: after, buffered_events: vec![] }
    }

    /// Reads and applies the events up to an id, in pages of `limit` events or without a limit if it is 0. Returns
    /// their number.
    async fn apply_events_until(
        &mut self,
        server: &TestServer,
        path: &str,
        until: u64,
        limit: usize,
    ) -> Result<usize, JournalTornError> {
        let kinds = "return=OrderEvent,FileBasedAdded,FileBasedRemoved";
        while self.read_up_to_event_id < until {
            let limit = if limit == 0 { String::new() } else { format!("&limit={limit}") };
            let query =
                format!("{ORDERS_URL}{path}?{kinds}&after={}&timeout=1{limit}", self.read_up_to_event_id);
            // A response is aborted when events that it had yet to send expire.
            let response = server.get(&query).await;
            let Ok(seq) = serde_json::from_slice::<Value>(&response.body) else {
                return Err(JournalTornError);
            };
            match seq["TYPE"].as_str() {
                Some("NonEmpty") => {
                    let events = seq["eventSnapshots"].as_array().expect("events");
                    self.buffered_events.extend(events.iter().cloned());
                    self.read_up_to_event_id =
                        events.last().and_then(|event| event["eventId"].as_u64()).expect("an id");
                }
                Some("Empty") => self.read_up_to_event_id = seq["lastEventId"].as_u64().expect("an id"),
                Some("Torn") => return Err(JournalTornError),
                other => panic!("{other:?}: {seq}"),
            }
        }
        let due =
            self.buffered_events.partition_point(|event| event["eventId"].as_u64().expect("an id") <= until);
        for event in self.buffered_events.drain(..due) {
            apply_order_event(&mut self.orders, &event);
        }
        Ok(due)
    }
}

/// Adds orders, sends random commands to them, and stops and starts random chains and chain nodes.
struct RandomOperator {
    engine: Engine,
    rng: Rng,
    /// The keys of the newest added orders. Many of these orders have finished.
    newest_order_keys: Vec<String>,
    last_order_number: u64,
}

impl RandomOperator {
    async fn run_until_stopped(engine: Engine, stop: Arc<AtomicBool>) {
        let mut operator = Self {
            engine,
            rng: Rng::new(0x9e37_79b9_7f4a_7c15),
            newest_order_keys: vec![],
            last_order_number: 0,
        };
        while !stop.load(Ordering::Relaxed) {
            match operator.rng.next_below(16) {
                0..=6 => operator.add_random_orders().await,
                7..=14 => operator.control_random_order().await,
                _ => operator.stop_or_start_random_chain_or_node().await,
            }
            let old = operator.newest_order_keys.len().saturating_sub(100);
            for key in operator.newest_order_keys.drain(..old).collect::<Vec<_>>() {
                operator.send_command(&key, OrderCommand::Resume).await;
            }
        }
    }

    async fn add_random_orders(&mut self) {
        let mut new = Vec::new();
        for _ in 0..=self.rng.next_below(6) {
            self.last_order_number += 1;
            let key =
                format!("{},{}", CHAIN_PATHS[self.rng.next_below(CHAIN_PATHS.len())], self.last_order_number);
            let value = if self.rng.next_below(4) == 0 { "\"fail\"" } else { "null" };
            new.push(NewOrder { value: Json::from_trusted(value), ..new_order(&key) });
            self.newest_order_keys.push(key);
        }
        self.engine.add_orders(new).await.expect("a store").expect("nothing to refuse");
    }

    async fn control_random_order(&mut self) {
        if self.newest_order_keys.is_empty() {
            return;
        }
        let key = self.newest_order_keys[self.rng.next_below(self.newest_order_keys.len())].clone();
        let node = |id: &str| Some(id.parse().expect("a node"));
        let command = match self.rng.next_below(8) {
            0 | 1 => OrderCommand::Suspend,
            2..=5 => OrderCommand::Resume,
            6 => OrderCommand::Remove,
            _ => OrderCommand::Change {
                value: None,
                node: node(["a", "b"][self.rng.next_below(2)]),
                planned_at: None,
            },
        };
        self.send_command(&key, command).await;
    }

    /// Sends a command. It is refused if the order has finished or its step is running.
    async fn send_command(&self, key: &str, command: OrderCommand) {
        let key = key.parse().expect("an order");
        let _ = self.engine.apply_order_command(&Tenant::default(), &key, command).await.expect("a store");
    }

    async fn stop_or_start_random_chain_or_node(&mut self) {
        let chain = CHAIN_PATHS[self.rng.next_below(CHAIN_PATHS.len())].parse().expect("a chain");
        if self.rng.next_below(2) == 0 {
            let stopped = self.rng.next_below(3) == 0;
            self.engine.set_chain_stopped(&chain, stopped).await.expect("a store").expect("a chain");
        } else {
            let action = [
                ChainNodeAction::Process,
                ChainNodeAction::Process,
                ChainNodeAction::Stop,
                ChainNodeAction::NextState,
            ][self.rng.next_below(4)];
            let node = ["a", "b"][self.rng.next_below(2)].parse().expect("a node");
            self.engine.set_chain_node_action(&chain, &node, action).await.expect("a store").expect("a node");
        }
    }
}

/// Prunes all but the newest [`RETAINED_EVENT_COUNT`] events, repeatedly.
async fn prune_repeatedly(engine: Engine, stop: Arc<AtomicBool>, pruned_events: Arc<AtomicUsize>) {
    let nothing_older = Retention { max_age: Duration::ZERO, ..Retention::default() };
    let (all, beginning) = (EventFilter::default(), EventId::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let newest = engine
            .observer()
            .read_newest_events(&all, beginning, RETAINED_EVENT_COUNT)
            .await
            .expect("a store")
            .events;
        if newest.len() == RETAINED_EVENT_COUNT
            && let Some(oldest) = newest.last()
        {
            let oldest_time = oldest.id.timestamp();
            let pruned = engine
                .store()
                .prune_events_tasks_and_objects(
                    nothing_older,
                    Retention::default(),
                    Duration::MAX,
                    oldest_time,
                )
                .await
                .expect("a store");
            pruned_events.fetch_add(pruned.deleted_event_count as usize, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A server whose orders are changed and whose journal is pruned all the time.
struct BusyServer {
    server: TestServer,
    stop_requested: Arc<AtomicBool>,
    pruned_event_count: Arc<AtomicUsize>,
    background_jobs: Vec<tokio::task::JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl BusyServer {
    /// Starts a server on a file, so that readers and the writer have separate connections.
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("orders.db");
        let yaml =
            format!("store: 'sqlite:{}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n", store.display());
        let server = TestServer::start_in_folder(
            folder.path(),
            &yaml,
            chain_setup(&StepGate::new_open(), CHAIN_PATHS.map(two_step_chain).into()),
        )
        .await;
        let (stop, pruned_events) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let engine = server.inner.engine().clone();
        let background_jobs = vec![
            tokio::spawn(RandomOperator::run_until_stopped(engine.clone(), stop.clone())),
            tokio::spawn(prune_repeatedly(engine, stop.clone(), pruned_events.clone())),
        ];
        Self {
            server,
            stop_requested: stop,
            pruned_event_count: pruned_events,
            background_jobs,
            _folder: folder,
        }
    }

    async fn stop_and_check_that_events_were_pruned(self) {
        self.stop_requested.store(true, Ordering::Relaxed);
        for job in self.background_jobs {
            timeout(TEST_TIMEOUT, job).await.expect("an end").expect("without a panic");
        }
        assert!(self.pruned_event_count.load(Ordering::Relaxed) > 0, "no event was pruned");
        self.server.inner.stop().await;
    }
}

/// Waits until enough events have been journaled after this id.
async fn wait_for_enough_new_events(server: &TestServer, after: u64) {
    let (observer, all) = (server.inner.engine().observer(), EventFilter::default());
    let start = EventId::new(after).expect("an id");
    let grown = async {
        let mut seen = 0;
        let mut last = start;
        while seen < MIN_EVENTS_BETWEEN_SNAPSHOTS {
            observer.wait_for_matching_event(&all, &mut last).await;
            let page =
                observer.read_page(&all, last, None, MIN_EVENTS_BETWEEN_SNAPSHOTS).await.expect("a store");
            (seen, last) = (seen + page.events.len(), page.last_scanned_event_id);
        }
    };
    timeout(TEST_TIMEOUT, grown).await.expect("events in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_plus_its_events_equals_a_later_snapshot() {
    let busy = BusyServer::start().await;
    let server = &busy.server;
    let (mut compared, mut applied, mut torn) = (0, 0, 0);
    for round in 0.. {
        let path = ["", "/a/", "/a/*", "/z"][round % 4];
        let limit = [0, 1, 7, 100][round / 4 % 4];
        let mut reader = SnapshotReader::start_from_snapshot(server, path).await;
        // The same reader continues as long as no event has expired.
        while compared < COMPARED_SNAPSHOT_COUNT {
            wait_for_enough_new_events(server, reader.read_up_to_event_id).await;
            let (later, until) = read_snapshot(server, path).await;
            match reader.apply_events_until(server, path, until, limit).await {
                Ok(events) => applied += events,
                Err(JournalTornError) => {
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
        if compared == COMPARED_SNAPSHOT_COUNT {
            break;
        }
        assert!(torn < 50 * COMPARED_SNAPSHOT_COUNT, "torn again and again");
    }
    assert!(applied > 4 * COMPARED_SNAPSHOT_COUNT, "only {applied} events in {compared} rounds");

    // A reader that resumes too late gets `Torn` and starts again.
    let (_, after) = read_snapshot(server, "").await;
    let expired_query = format!("{ORDERS_URL}?return=Event&after={after}&limit=1");
    server.wait_until_get_returns(&expired_query, |seq| seq["TYPE"] == "Torn").await;
    busy.stop_and_check_that_events_were_pruned().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_plus_server_sent_events_equals_a_later_snapshot() {
    let busy = BusyServer::start().await;
    let server = &busy.server;
    let mut compared = 0;
    while compared < COMPARED_SNAPSHOT_COUNT / 4 {
        let (mut orders, after) = read_snapshot(server, "/a/").await;
        let kinds = "return=OrderEvent,FileBasedAdded,FileBasedRemoved&path=/a/";
        let mut frames =
            SseClient::connect(server, &format!("/api/v1/stream?{kinds}&after={after}"), &[]).await;
        wait_for_enough_new_events(server, after).await;
        let (later, until) = read_snapshot(server, "/a/").await;
        let mut last = after;
        let whole = loop {
            let frame = frames.next_frame().await.expect("an open stream");
            match frame.id {
                None => break frame.event != "Torn",
                Some(id) if id > until => break true,
                Some(id) => {
                    assert!(id > last, "{id} after {last}");
                    last = id;
                    apply_order_event(&mut orders, &frame.json());
                }
            }
        };
        if whole {
            assert_eq!(orders, later, "at {until}");
            compared += 1;
        }
    }
    busy.stop_and_check_that_events_were_pruned().await;
}
