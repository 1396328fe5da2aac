//! Many clients that use up connections, streams and memory. Other clients are still served, and refused ones get an
//! error response.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::arena::{HANGS, memory};
use crate::node::{Place, until};
use crate::raw::{self, Answer};
use crate::request::Draft;
use crate::start;

/// Strangers that connect and stay, and streams of one token: more than a server has connections by default.
const STRANGERS: usize = 1_100;
const STREAMS: usize = 2_000;
/// How many clients connect at a time.
const AT_A_TIME: usize = 64;
/// Clients that ask for a large answer and do not read it, and the size of the answer.
const SLOW_READERS: usize = 600;
const EVENTS: usize = 9;
const VALUE: usize = 1_000_000;
/// What one token may use by default, and how much more the process may grow: answers that are being built and what
/// the allocator keeps, in kilobytes.
const SHARE: usize = 64 << 10;
const MARGIN: usize = 256 << 10;

/// Lets this process have a connection for each client.
fn allow_many_files() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(8_192)), hard).unwrap();
}

async fn ask(place: &Place, draft: Draft) -> Answer {
    let request = draft.answered();
    raw::exchange(place.address(), &request.bytes, HANGS).await.answer().expect("an answer")
}

async fn assert_serves_health_checks_and_producers(place: &Place) {
    assert_eq!(ask(place, Draft::new("GET", "/livez", "").without_token()).await.status, 200);
    let event = json!({"type": "routed"}).to_string();
    assert_eq!(ask(place, Draft::emit(place.token(), event)).await.status, 201);
}

/// A connection on which this was asked for, and the status of the answer; the rest of it is not read.
async fn begin(place: &Place, target: &str) -> (TcpStream, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(place.address().parse().unwrap()).await.unwrap();
    let token = place.token();
    let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(HANGS, stream.read_exact(&mut status)).await.expect("an answer in time").expect("an answer");
    let status = std::str::from_utf8(&status).unwrap();
    (stream, status.strip_prefix("HTTP/1.1 ").unwrap().parse().unwrap())
}

/// Many clients that ask for this, a few at a time, and how many of them got which status.
async fn open_clients(place: &Place, target: &str, clients: usize) -> (Vec<TcpStream>, BTreeMap<u16, usize>) {
    let mut begun = stream::iter(0..clients).map(|_| begin(place, target)).buffer_unordered(AT_A_TIME);
    let (mut held, mut statuses) = (Vec::new(), BTreeMap::<u16, usize>::new());
    while let Some((stream, status)) = begun.next().await {
        *statuses.entry(status).or_default() += 1;
        if status == 200 {
            held.push(stream);
        }
    }
    (held, statuses)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_and_streams_lock_nobody_out() {
    allow_many_files();
    let (place, mut node) = start();
    let mut strangers = Vec::new();
    for _ in 0..STRANGERS {
        strangers.push(TcpStream::connect(place.address()).await.unwrap());
    }
    assert_serves_health_checks_and_producers(&place).await;
    let (streams, statuses) = open_clients(&place, "/api/v1/stream", STREAMS).await;
    assert_eq!(statuses, BTreeMap::from([(200, 256), (503, STREAMS - 256)]));
    assert_serves_health_checks_and_producers(&place).await;
    drop((strangers, streams));
    assert!(node.lives());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_large_answers_do_not_take_all_memory() {
    allow_many_files();
    let (place, mut node) = start();
    let value = "x".repeat(VALUE);
    for _ in 0..EVENTS {
        let event = json!({"type": "large", "key": "large", "value": value}).to_string();
        assert_eq!(ask(&place, Draft::emit(place.token(), event)).await.status, 201);
    }
    let whole = ask(&place, Draft::new("GET", "/api/v1/objects/large", place.token())).await;
    assert!(whole.body.len() > EVENTS * VALUE * 8 / 9, "{} bytes", whole.body.len());
    let before = memory(node.pid(), "VmRSS");

    for target in ["/api/v1/objects/large", "/api/v1/events?after=0&key=large"] {
        let (held, statuses) = open_clients(&place, target, SLOW_READERS).await;
        assert!(held.len() >= 4, "{target}: {statuses:?}");
        assert_eq!(statuses.get(&503), Some(&(SLOW_READERS - held.len())), "{target}: {statuses:?}");
        assert_serves_health_checks_and_producers(&place).await;
        let grown = memory(node.pid(), "VmHWM").saturating_sub(before);
        println!("{target}: {statuses:?}; the process grew by at most {} MB", grown >> 10);
        assert!(grown < SHARE + MARGIN, "{target}: the process grew by {grown} kB");
        drop(held);
    }
    assert!(node.lives());
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_logged_with_their_address_and_number() {
    let (place, mut node) = start();
    for number in 0..50 {
        let draft = Draft::new("GET", "/api/v1/me", &format!("guess-{number}"));
        assert_eq!(ask(&place, draft).await.problem(), 401);
    }
    let logged = |log: &str| {
        let lines = log.lines().filter(|line| line.contains("unknown tokens") && line.contains("127.0.0.1"));
        let counts = lines.filter_map(|line| line.split("failures=").nth(1)?.split(' ').next()?.parse().ok());
        counts.collect::<Vec<u64>>()
    };
    tokio::task::block_in_place(|| {
        until("all of them are logged", || logged(&place.log()).iter().sum::<u64>() == 50);
    });
    assert!(logged(&place.log()).len() <= 10, "they are logged together");
    assert!(node.lives());
}
