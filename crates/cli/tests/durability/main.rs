//! The server killed with SIGKILL at random instants under load, and started again on the same file.
//!
//! ```text
//!  producers ──▶ pointsman serve, killed again and again ──▶ an HTTP target, a command's notes
//!                   │
//!                   └──▶ two readers: server-sent events, long polls
//! ```
//!
//! What everybody outside the server saw is put together in a [`history::History`], which knows the rules.
//! `cargo xtask durability` runs the same for much longer.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

mod disk;
mod final_state;
mod history;
mod idempotency;
mod producer;
mod reader;
mod target;

#[path = "../common/node.rs"]
mod node;
#[path = "../common/raw.rs"]
mod raw;
#[path = "../common/seed.rs"]
mod seed;

use std::sync::Arc;
use std::time::Duration;

use pointsman_api::client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use history::{Emit, Entry, History};
use node::{Node, PATIENCE, Place};
use pointsman_testing::Chance;
use producer::Producers;
use reader::Reader;
use target::Target;

/// The variable that says how often the server is killed.
const CYCLES: &str = "POINTSMAN_TEST_CYCLES";
const DEFAULT_CYCLES: u64 = 20;
const PRODUCERS: usize = 4;
const SLOTS: usize = 8;
/// A server is killed when it has acknowledged up to so many requests.
const MOST_REQUESTS: usize = 120;

fn config(target: &Target) -> String {
    let at = target.address;
    let note = target::NOTE;
    format!(
        r#"
workers: {SLOTS}
journal: {{retain_events: 1000000000}}
history: {{retain_tasks: 1000000000}}
handlers:
  index: {{run: {{http: "http://{at}/index"}}, crashes: 1000000}}
  audit: {{run: {{http: "http://{at}/audit"}}, crashes: 1000000}}
  mirror: {{run: {{http: "http://{at}/mirror"}}, crashes: 1000000}}
  note: {{run: {{command: ["sh", "-c", "{note}"]}}, crashes: 1000000}}
event_handlers:
  record: [index]
  record.published: [{{handler: audit, sync: true}}, mirror]
  record.noted: [note]
"#
    )
}

/// The same routes as the configuration has, worked out by hand.
fn routes() -> [(&'static str, &'static [&'static str]); 3] {
    [
        ("record.moved", &["index"]),
        ("record.published", &["index", "audit", "mirror"]),
        ("record.noted", &["index", "note"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let mut chance = Chance::new(seed::seed());
    let cycles = seed::number(CYCLES).unwrap_or(DEFAULT_CYCLES);
    let target = Target::start().await;
    let mut place = Place::new(&config(&target));
    let (server, told) = watch::channel(None);
    let (end, ending) = watch::channel(None);
    let producers = Producers::new(told.clone());
    let running: Vec<_> =
        (0..PRODUCERS).map(|n| tokio::spawn(producers.clone().run(n, chance.fork()))).collect();
    let readers = Readers::start(&told, &ending);

    let mut kills = 0;
    for _ in 0..cycles {
        let node = up(&mut place, &server);
        acknowledge(&producers, chance.below(MOST_REQUESTS)).await;
        sleep(Duration::from_micros(chance.below(20_000) as u64)).await;
        // Nobody begins anything new with a server that is about to die; what has begun is cut off.
        server.send_replace(None);
        node.kill();
        kills += 1;
        if chance.one_in(4) {
            // Starting means mending what the last one left, which must bear being cut short as well.
            let node = place.start_elsewhere();
            sleep(Duration::from_micros(chance.below(80_000) as u64)).await;
            node.kill();
            kills += 1;
        }
    }

    let _node = up(&mut place, &server);
    acknowledge(&producers, 1).await;
    producers.stop();
    for producer in running {
        timeout(PATIENCE, producer).await.expect("every request is answered").unwrap();
    }
    let client = producer::current(&told).await;
    final_state::settled(&client).await;
    let mut history = History { kills, slots: SLOTS, ..final_state::read(&client).await };
    end.send_replace(Some(history.ids().last().copied().unwrap_or(0)));
    history.readings = vec![readers.stream.end().await, readers.poll.end().await];
    history.routes =
        routes().map(|(kind, list)| (kind.into(), list.iter().map(ToString::to_string).collect())).into();
    history.emits = producers.emits.lock().unwrap().clone();
    let echoing = |entry: &&Entry| entry.event.kind == "record.published";
    let echoes: Vec<Emit> = history.journal.iter().filter(echoing).map(echo_of).collect();
    history.emits.extend(echoes);
    history.deliveries = target.deliveries();
    history.deliveries.extend(target::notes(&place.path("notes")));
    judge(&history, &place);
}

/// What the handling of an event emits, some time after it.
fn echo_of(entry: &Entry) -> Emit {
    Emit { events: vec![target::echo(entry.id)], floor: entry.id, acknowledged: None, effect: true }
}

/// Starts a server and tells everybody.
fn up(place: &mut Place, server: &watch::Sender<Option<Client>>) -> Node {
    let node = tokio::task::block_in_place(|| place.serve_elsewhere());
    let url = format!("http://{}", place.address());
    server.send_replace(Some(Client::new(&url, Some(place.token())).unwrap()));
    node
}

/// Waits until so many more requests have been acknowledged.
async fn acknowledge(producers: &Producers, more: usize) {
    let mut acknowledged = producers.acknowledged.subscribe();
    let wanted = *acknowledged.borrow() + more;
    let reached = acknowledged.wait_for(|count| *count >= wanted);
    timeout(PATIENCE, reached).await.expect("the server acknowledges requests").unwrap();
}

struct Readers {
    stream: Running,
    poll: Running,
}

struct Running {
    reader: Arc<Reader>,
    task: JoinHandle<()>,
}

impl Readers {
    fn start(server: &watch::Receiver<Option<Client>>, end: &watch::Receiver<Option<u64>>) -> Self {
        let reader = |name| Arc::new(Reader::new(name, server.clone(), end.clone()));
        let (stream, poll) = (reader("stream"), reader("poll"));
        let following = stream.clone();
        let polling = poll.clone();
        Self {
            stream: Running {
                reader: stream,
                task: tokio::spawn(async move { following.follow_stream().await }),
            },
            poll: Running { reader: poll, task: tokio::spawn(async move { polling.poll().await }) },
        }
    }
}

impl Running {
    /// What it read. One that does not come to the end is judged by what it has.
    async fn end(self) -> history::Reading {
        if let Ok(ended) = timeout(PATIENCE, self.task).await {
            ended.unwrap();
        }
        self.reader.reading()
    }
}

/// Prints what the run came to, and fails it if any rule was broken.
fn judge(history: &History, place: &Place) {
    let log = place.log();
    let requests = history.emits.iter().filter(|emit| !emit.effect).count();
    let acknowledged = history.emits.iter().filter(|emit| emit.acknowledged.is_some()).count();
    println!(
        "{} kills; {requests} requests, {acknowledged} acknowledged; {} events, {} tasks, {} deliveries",
        history.kills,
        history.journal.len(),
        history.tasks.len(),
        history.deliveries.len()
    );
    let faults = history.faults();
    let tail: Vec<&str> = log.lines().rev().take(40).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    assert!(
        faults.is_empty(),
        "{} faults, first {:#?}\nthe log ends:\n{}",
        faults.len(),
        &faults[..faults.len().min(10)],
        tail.join("\n")
    );
    assert!(!log.contains("panicked"), "{log}");
    assert!(acknowledged > history.kills, "there was hardly any load");
    assert!(requests - acknowledged <= history.kills * PRODUCERS, "requests fail without a reason");
}
