//! Nodes notify each other at once, and poll while the listener is disconnected.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::invariants::assert_invariants;
use common::test_database::PooledTestDatabase;
use common::test_load::{TEST_TIMEOUT, now, query_rows, with_listen_url};
use futures::future::join_all;
use pointsman_core::EventId;
use pointsman_core::store::{
    ClaimRequest, Claimant, ClaimedTask, Journal, NodeId, Registry, Store, StoreListener, StoreSignal,
    TaskQueue,
};
use pointsman_store_conformance::fixture::{
    RegistrationBuilder, finished_attempt, handler_name, new_emit_batch, new_event, success,
};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::FaultProxy;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The last event and the number of work signals that a node has received.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ObservedSignals {
    last_event: Option<EventId>,
    work_signal_count: usize,
}

struct SignalRecorder(watch::Sender<ObservedSignals>);

impl StoreListener for SignalRecorder {
    fn on_signal(&self, signal: StoreSignal) {
        self.0.send_modify(|signals| match signal {
            StoreSignal::JournalGrew(last_event) => {
                signals.last_event = signals.last_event.max(Some(last_event))
            }
            StoreSignal::TasksReady => signals.work_signal_count += 1,
        });
    }
}

/// A node with its received signals.
struct TestNode {
    store: PostgresStore,
    id: NodeId,
    signals: watch::Receiver<ObservedSignals>,
}

impl TestNode {
    async fn open(url: &str) -> Self {
        Self::open_with_registration(url, RegistrationBuilder::single_handler()).await
    }

    async fn open_with_registration(url: &str, registration: RegistrationBuilder) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        store.register_definitions(registration.build(), now()).await.unwrap();
        let id = store.join_node("node", now()).await.unwrap();
        let (sender, signals) = watch::channel(ObservedSignals::default());
        store.add_listener(Arc::new(SignalRecorder(sender)));
        Self { store, id, signals }
    }

    async fn emit(&self) -> EventId {
        let (receipts, _) =
            self.store.append(vec![new_emit_batch([new_event("record")])], None, now()).await.unwrap();
        receipts[0].as_ref().unwrap().events[0].id
    }

    /// Claims all claimable tasks.
    async fn claim(&self) -> Vec<ClaimedTask> {
        let handlers = Arc::new([handler_name("index")].into());
        let claim = ClaimRequest { claimant: Claimant::Node(self.id), handlers, max_tasks: 100 };
        self.store.claim_tasks(claim, now()).await.unwrap().tasks
    }

    /// Waits until the node has received a signal of this event, and more signals of work than `work_signals`.
    async fn wait_for_signals(&mut self, id: EventId, work_signals: usize) {
        let received = self
            .signals
            .wait_for(|signals| signals.last_event >= Some(id) && signals.work_signal_count > work_signals);
        assert!(
            timeout(TEST_TIMEOUT, received).await.is_ok(),
            "no signal of event {id} and of more work than {work_signals} was received"
        );
    }

    /// Emits on another node and waits for the notification.
    async fn emit_on_peer_and_wait_for_signals(&mut self, other: &Self) {
        let before = self.signals_so_far();
        let id = other.emit().await;
        self.wait_for_signals(id, before.work_signal_count).await;
    }

    /// The signals received so far.
    fn signals_so_far(&self) -> ObservedSignals {
        *self.signals.borrow()
    }

    fn sent_notification_count(&self) -> u64 {
        self.store.database().count_commits_rows_and_notifications().2
    }

    /// Emits until the node sends notifications, which it does once it has found its peers.
    async fn emit_until_peers_are_known(&self) {
        let poll = async {
            while self.sent_notification_count() == 0 {
                self.emit().await;
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(TEST_TIMEOUT, poll).await.expect("the node finds its peers");
    }
}

/// Starts a proxy to the shared server; returns the database URL through it.
fn through_proxy(url: &str) -> (FaultProxy, String) {
    let (login, location) = url.split_once('@').unwrap();
    let (address, name) = location.split_once('/').unwrap();
    let proxy = FaultProxy::start(address.parse().unwrap()).unwrap();
    let url = format!("{login}@{}/{name}", proxy.address());
    (proxy, url)
}

/// Waits until this many connections of the database listen.
async fn wait_for_listener_count(url: &str, expected: usize) {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND query = 'LISTEN pointsman' AND state = 'idle'";
    let listening = async {
        while query_rows(url, sql)[0][0].as_deref() != Some(expected.to_string().as_str()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TEST_TIMEOUT, listening).await.unwrap_or_else(|_| panic!("{expected} connections do not listen"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_notified_of_writes_of_its_peers() {
    let database = PooledTestDatabase::acquire().await;
    let (proxy, proxied_url) = through_proxy(database.url());
    let mut receiver = TestNode::open(&with_listen_url(&proxied_url, database.url())).await;
    let sender = TestNode::open(database.url()).await;
    sender.emit_until_peers_are_known().await;
    wait_for_listener_count(database.url(), 2).await;
    // Only the listener still works: the node cannot poll.
    proxy.set_frozen(true);
    for _ in 0..3 {
        receiver.emit_on_peer_and_wait_for_signals(&sender).await;
    }
    proxy.set_frozen(false);
    assert_invariants(database.url()).await;
    receiver.store.close();
    sender.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_listen_polls_and_then_listens_again() {
    let database = PooledTestDatabase::acquire().await;
    let (proxy, proxied_url) = through_proxy(database.url());
    let (listen_proxy, listen_url) = through_proxy(database.url());
    let mut receiver = TestNode::open(&with_listen_url(&proxied_url, &listen_url)).await;
    let sender = TestNode::open(database.url()).await;
    sender.emit_until_peers_are_known().await;
    wait_for_listener_count(database.url(), 2).await;
    for _ in 0..2 {
        listen_proxy.set_refuse_connections(true).unwrap();
        listen_proxy.close_connections();
        wait_for_listener_count(database.url(), 1).await;
        receiver.emit_on_peer_and_wait_for_signals(&sender).await;
        listen_proxy.set_refuse_connections(false).unwrap();
        wait_for_listener_count(database.url(), 2).await;
        // The node cannot poll, and is notified.
        proxy.set_frozen(true);
        receiver.emit_on_peer_and_wait_for_signals(&sender).await;
        proxy.set_frozen(false);
    }
    assert_invariants(database.url()).await;
    receiver.store.close();
    sender.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listening_is_retried_while_the_server_does_not_respond() {
    let database = PooledTestDatabase::acquire().await;
    let silent_server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let listen_url =
        format!("postgres://postgres@{}/postgres?connect_timeout=1", silent_server.local_addr().unwrap());
    let node = TestNode::open(&with_listen_url(database.url(), &listen_url)).await;
    let mut accepted = Vec::new();
    for _ in 0..2 {
        accepted
            .push(timeout(TEST_TIMEOUT, silent_server.accept()).await.expect("the node connects").unwrap());
    }
    node.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_at_a_limit_is_notified_when_a_peer_frees_a_slot() {
    let database = PooledTestDatabase::acquire().await;
    let (proxy, proxied_url) = through_proxy(database.url());
    let registration = RegistrationBuilder::single_handler().unordered("index").concurrency_limit("index", 1);
    let mut receiver = TestNode::open_with_registration(
        &with_listen_url(&proxied_url, database.url()),
        registration.clone(),
    )
    .await;
    let sender = TestNode::open_with_registration(database.url(), registration).await;
    sender.emit_until_peers_are_known().await;
    wait_for_listener_count(database.url(), 2).await;
    for _ in 0..3 {
        sender.emit().await;
        let last = sender.emit().await;
        receiver.wait_for_signals(last, 0).await;
        // At least two tasks are waiting, and one may run.
        let running = receiver.claim().await;
        assert_eq!(running.len(), 1);
        // Only the listener still works: the node cannot poll.
        proxy.set_frozen(true);
        let before = receiver.signals_so_far();
        let ends = sender
            .store
            .finish_attempts(vec![finished_attempt(&running[0], success())], None, now())
            .await
            .unwrap()
            .0;
        assert!(ends[0].is_ok(), "{ends:?}");
        receiver.wait_for_signals(last, before.work_signal_count).await;
        proxy.set_frozen(false);
    }
    assert_invariants(database.url()).await;
    receiver.store.close();
    sender.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_many_commits_share_a_notification() {
    let database = PooledTestDatabase::acquire().await;
    let (one, mut other) = (TestNode::open(database.url()).await, TestNode::open(database.url()).await);
    one.emit_until_peers_are_known().await;
    let (before, begun) = (one.store.database().count_commits_rows_and_notifications(), Instant::now());
    join_all((0..8).map(async |_| {
        for _ in 0..100 {
            one.emit().await;
        }
    }))
    .await;
    let (after, took) = (one.store.database().count_commits_rows_and_notifications(), begun.elapsed());
    let (commits, sent) = (after.0 - before.0, after.2 - before.2);
    // Notifications are spaced, so their maximum depends on the elapsed time.
    assert!(sent <= commits && sent <= took.as_millis() as u64 / 5 + 2, "{sent} for {commits} in {took:?}");
    assert!(sent <= 400, "{sent} for 800 emits");
    let last = one.emit().await;
    other.wait_for_signals(last, 0).await;
    for _ in 0..50 {
        one.emit().await;
    }
    let (commits, _, sent) = one.store.database().count_commits_rows_and_notifications();
    assert!(sent <= commits, "{sent} for {commits}");
    assert_invariants(database.url()).await;
    one.store.close();
    other.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_node_sends_no_notifications() {
    let database = PooledTestDatabase::acquire().await;
    let node = TestNode::open(database.url()).await;
    // Long enough for a poll of the live nodes.
    for _ in 0..50 {
        node.emit().await;
        sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(node.sent_notification_count(), 0);
    assert_invariants(database.url()).await;
    node.store.close();
}
