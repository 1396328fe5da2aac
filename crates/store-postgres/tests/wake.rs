//! Nodes wake each other: over the channel at once, and by looking where that is cut.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::audit::audit;
use common::lent::Lent;
use common::load::{PATIENCE, listening_at, now, rows};
use futures::future::join_all;
use pointsman_core::EventId;
use pointsman_core::store::{
    Claim, Claimant, Claimed, Journal, Listener, NodeId, Queue, Registry, Signal, Store,
};
use pointsman_store_conformance::world::{Plan, emission, ending, event, handler, succeeded};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::Proxy;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How far the journal has grown, and how many times there was work, as far as was told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    head: Option<EventId>,
    work: usize,
}

struct Ear(watch::Sender<Told>);

impl Listener for Ear {
    fn heard(&self, signal: Signal) {
        self.0.send_modify(|told| match signal {
            Signal::Journal(head) => told.head = told.head.max(Some(head)),
            Signal::Work => told.work += 1,
        });
    }
}

/// A node, and what it is told.
struct Node {
    store: PostgresStore,
    id: NodeId,
    told: watch::Receiver<Told>,
}

impl Node {
    async fn open(url: &str) -> Self {
        Self::set_up(url, Plan::simple()).await
    }

    async fn set_up(url: &str, plan: Plan) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        store.register(plan.registration(), now()).await.unwrap();
        let id = store.join("node", now()).await.unwrap();
        let (told, heard) = watch::channel(Told::default());
        store.listen(Arc::new(Ear(told)));
        Self { store, id, told: heard }
    }

    async fn emit(&self) -> EventId {
        let (receipts, _) = self.store.append(vec![emission([event("record")])], None, now()).await.unwrap();
        receipts[0].as_ref().unwrap().events[0].id
    }

    /// Claims all that it may.
    async fn claim(&self) -> Vec<Claimed> {
        let handlers = Arc::new([handler("index")].into());
        let claim = Claim { by: Claimant::Node(self.id), handlers, max: 100 };
        self.store.claim(claim, now()).await.unwrap().tasks
    }

    /// Waits until it is told of this event, and that there is work.
    async fn hears(&mut self, id: EventId, work: usize) {
        let heard = self.told.wait_for(|told| told.head >= Some(id) && told.work > work);
        assert!(timeout(PATIENCE, heard).await.is_ok(), "it is told of {id} and of work after {work}");
    }

    /// Another emits an event, and it is told of that.
    async fn hears_an_emit_of(&mut self, other: &Self) {
        let before = self.so_far();
        let id = other.emit().await;
        self.hears(id, before.work).await;
    }

    /// What it has been told so far.
    fn so_far(&self) -> Told {
        *self.told.borrow()
    }

    fn sent(&self) -> u64 {
        self.store.work().2
    }

    /// Emits until it tells the others of it, which it does as soon as it knows of them.
    async fn knows_others(&self) {
        let knowing = async {
            while self.sent() == 0 {
                self.emit().await;
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, knowing).await.expect("it finds the others");
    }
}

/// A wire to the shared server, and a database as reached over it.
fn over_a_wire(url: &str) -> (Proxy, String) {
    let (login, place) = url.split_once('@').unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let url = format!("{login}@{}/{name}", proxy.address());
    (proxy, url)
}

/// Waits until so many connections of this database listen.
async fn until_listening(url: &str, wanted: usize) {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND query = 'LISTEN pointsman' AND state = 'idle'";
    let listening = async {
        while rows(url, sql)[0][0].as_deref() != Some(wanted.to_string().as_str()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, listening).await.unwrap_or_else(|_| panic!("{wanted} listen"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_hears_of_the_others_over_the_channel() {
    let database = Lent::any().await;
    let (wire, wired) = over_a_wire(database.url());
    let mut hearer = Node::open(&listening_at(&wired, database.url())).await;
    let teller = Node::open(database.url()).await;
    teller.knows_others().await;
    until_listening(database.url(), 2).await;
    // It cannot look.
    wire.freeze(true);
    for _ in 0..3 {
        hearer.hears_an_emit_of(&teller).await;
    }
    wire.freeze(false);
    audit(database.url()).await;
    hearer.store.close();
    teller.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_listen_looks_and_then_listens_again() {
    let database = Lent::any().await;
    let (wire, wired) = over_a_wire(database.url());
    let (ear, heard) = over_a_wire(database.url());
    let mut hearer = Node::open(&listening_at(&wired, &heard)).await;
    let teller = Node::open(database.url()).await;
    teller.knows_others().await;
    until_listening(database.url(), 2).await;
    for _ in 0..2 {
        ear.refuse(true).unwrap();
        ear.cut();
        until_listening(database.url(), 1).await;
        hearer.hears_an_emit_of(&teller).await;
        ear.refuse(false).unwrap();
        until_listening(database.url(), 2).await;
        // It cannot look any more, and need not.
        wire.freeze(true);
        hearer.hears_an_emit_of(&teller).await;
        wire.freeze(false);
    }
    audit(database.url()).await;
    hearer.store.close();
    teller.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_is_asked_again() {
    let database = Lent::any().await;
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let listen = format!("postgres://postgres@{}/postgres?connect_timeout=1", silent.local_addr().unwrap());
    let node = Node::open(&listening_at(database.url(), &listen)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(timeout(PATIENCE, silent.accept()).await.expect("it connects").unwrap());
    }
    node.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_met_a_limit_hears_when_another_makes_room() {
    let database = Lent::any().await;
    let (wire, wired) = over_a_wire(database.url());
    let plan = Plan::simple().free("index").narrow("index", 1);
    let mut hearer = Node::set_up(&listening_at(&wired, database.url()), plan.clone()).await;
    let teller = Node::set_up(database.url(), plan).await;
    teller.knows_others().await;
    until_listening(database.url(), 2).await;
    for _ in 0..3 {
        teller.emit().await;
        let last = teller.emit().await;
        hearer.hears(last, 0).await;
        // There are two at least, and one may run.
        let running = hearer.claim().await;
        assert_eq!(running.len(), 1);
        // It cannot look.
        wire.freeze(true);
        let before = hearer.so_far();
        let ends = teller.store.finish(vec![ending(&running[0], succeeded())], None, now()).await.unwrap().0;
        assert!(ends[0].is_ok(), "{ends:?}");
        hearer.hears(last, before.work).await;
        wire.freeze(false);
    }
    audit(database.url()).await;
    hearer.store.close();
    teller.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_many_commits_share_a_notification() {
    let database = Lent::any().await;
    let (one, mut other) = (Node::open(database.url()).await, Node::open(database.url()).await);
    one.knows_others().await;
    let (before, begun) = (one.store.work(), Instant::now());
    join_all((0..8).map(async |_| {
        for _ in 0..100 {
            one.emit().await;
        }
    }))
    .await;
    let (after, took) = (one.store.work(), begun.elapsed());
    let (commits, sent) = (after.0 - before.0, after.2 - before.2);
    // Between two there is a pause, so that it depends on how long it took how many there may be.
    assert!(sent <= commits && sent <= took.as_millis() as u64 / 5 + 2, "{sent} for {commits} in {took:?}");
    assert!(sent <= 400, "{sent} for 800 emits");
    let last = one.emit().await;
    other.hears(last, 0).await;
    for _ in 0..50 {
        one.emit().await;
    }
    let (commits, _, sent) = one.store.work();
    assert!(sent <= commits, "{sent} for {commits}");
    audit(database.url()).await;
    one.store.close();
    other.store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_tells_nobody() {
    let database = Lent::any().await;
    let alone = Node::open(database.url()).await;
    // Long enough for it to have looked who else is there.
    for _ in 0..50 {
        alone.emit().await;
        sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(alone.sent(), 0);
    audit(database.url()).await;
    alone.store.close();
}
