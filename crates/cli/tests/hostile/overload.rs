//! Many clients that use up connections, streams and memory. Other clients are still served, and refused ones get an
//! error response.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::attack_target::{RESPONSE_TIMEOUT, read_process_memory_kb};
use crate::raw_http::{self, RawResponse};
use crate::request::RequestDraft;
use crate::start_server;
use crate::test_server::{ServerFixture, wait_until};

/// The number of connections without a token that stay idle, and of streams of one token: both above the default limits.
const IDLE_CONNECTION_COUNT: usize = 1_100;
const STREAM_COUNT: usize = 2_000;
/// How many clients connect concurrently.
const CONCURRENT_CONNECTS: usize = 64;
/// The number of clients that request a large response and do not read it, the number of events in that response, and
/// the size of each event's value.
const SLOW_READER_COUNT: usize = 600;
const LARGE_EVENT_COUNT: usize = 9;
const LARGE_VALUE_BYTES: usize = 1_000_000;
/// The default response memory of one token, and the further growth that is allowed for responses under construction and
/// the allocator, in kilobytes.
const TOKEN_RESPONSE_MEMORY_KB: usize = 64 << 10;
const MEMORY_GROWTH_MARGIN_KB: usize = 256 << 10;

/// Raises the limit of open files to one connection per client.
fn raise_open_file_limit() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(8_192)), hard).unwrap();
}

async fn send_request(pointsman: &ServerFixture, draft: RequestDraft) -> RawResponse {
    let request = draft.build_expecting_response();
    raw_http::send_raw(pointsman.address(), &request.bytes, RESPONSE_TIMEOUT)
        .await
        .into_response()
        .expect("a response")
}

async fn assert_serves_health_checks_and_producers(pointsman: &ServerFixture) {
    assert_eq!(
        send_request(pointsman, RequestDraft::new("GET", "/livez", "").without_token()).await.status,
        200
    );
    let event = json!({"type": "routed"}).to_string();
    assert_eq!(send_request(pointsman, RequestDraft::new_emit(pointsman.token(), event)).await.status, 201);
}

/// Sends a GET on a new connection and reads only the status of the response.
async fn open_stalled_client(pointsman: &ServerFixture, target: &str) -> (TcpStream, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(pointsman.address().parse().unwrap()).await.unwrap();
    let token = pointsman.token();
    let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(RESPONSE_TIMEOUT, stream.read_exact(&mut status))
        .await
        .expect("a response in time")
        .expect("a response");
    let status = std::str::from_utf8(&status).unwrap();
    (stream, status.strip_prefix("HTTP/1.1 ").unwrap().parse().unwrap())
}

/// Opens many clients, and counts the statuses that they got.
async fn open_stalled_clients(
    pointsman: &ServerFixture,
    target: &str,
    clients: usize,
) -> (Vec<TcpStream>, BTreeMap<u16, usize>) {
    let mut opening = stream::iter(0..clients)
        .map(|_| open_stalled_client(pointsman, target))
        .buffer_unordered(CONCURRENT_CONNECTS);
    let (mut open, mut statuses) = (Vec::new(), BTreeMap::<u16, usize>::new());
    while let Some((stream, status)) = opening.next().await {
        *statuses.entry(status).or_default() += 1;
        if status == 200 {
            open.push(stream);
        }
    }
    (open, statuses)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_and_streams_do_not_lock_out_other_clients() {
    raise_open_file_limit();
    let (pointsman, mut node) = start_server();
    let mut idle_connections = Vec::new();
    for _ in 0..IDLE_CONNECTION_COUNT {
        idle_connections.push(TcpStream::connect(pointsman.address()).await.unwrap());
    }
    assert_serves_health_checks_and_producers(&pointsman).await;
    let (streams, statuses) = open_stalled_clients(&pointsman, "/api/v1/stream", STREAM_COUNT).await;
    assert_eq!(statuses, BTreeMap::from([(200, 256), (503, STREAM_COUNT - 256)]));
    assert_serves_health_checks_and_producers(&pointsman).await;
    drop((idle_connections, streams));
    assert!(node.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_large_responses_do_not_take_all_memory() {
    raise_open_file_limit();
    let (pointsman, mut node) = start_server();
    let value = "x".repeat(LARGE_VALUE_BYTES);
    for _ in 0..LARGE_EVENT_COUNT {
        let event = json!({"type": "large", "key": "large", "value": value}).to_string();
        assert_eq!(
            send_request(&pointsman, RequestDraft::new_emit(pointsman.token(), event)).await.status,
            201
        );
    }
    let response =
        send_request(&pointsman, RequestDraft::new("GET", "/api/v1/objects/large", pointsman.token())).await;
    assert!(
        response.body.len() > LARGE_EVENT_COUNT * LARGE_VALUE_BYTES * 8 / 9,
        "{} bytes",
        response.body.len()
    );
    let before = read_process_memory_kb(node.pid(), "VmRSS");

    for target in ["/api/v1/objects/large", "/api/v1/events?after=0&key=large"] {
        let (open, statuses) = open_stalled_clients(&pointsman, target, SLOW_READER_COUNT).await;
        assert!(open.len() >= 4, "{target}: {statuses:?}");
        assert_eq!(statuses.get(&503), Some(&(SLOW_READER_COUNT - open.len())), "{target}: {statuses:?}");
        assert_serves_health_checks_and_producers(&pointsman).await;
        let grown = read_process_memory_kb(node.pid(), "VmHWM").saturating_sub(before);
        println!("{target}: {statuses:?}; the process grew by at most {} MB", grown >> 10);
        assert!(
            grown < TOKEN_RESPONSE_MEMORY_KB + MEMORY_GROWTH_MARGIN_KB,
            "{target}: the process grew by {grown} kB"
        );
        drop(open);
    }
    assert!(node.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_tokens_are_logged_with_the_client_address_and_their_number() {
    let (pointsman, mut node) = start_server();
    for number in 0..50 {
        let draft = RequestDraft::new("GET", "/api/v1/me", &format!("guess-{number}"));
        assert_eq!(send_request(&pointsman, draft).await.assert_problem(), 401);
    }
    let logged = |log: &str| {
        let lines = log.lines().filter(|line| line.contains("unknown tokens") && line.contains("127.0.0.1"));
        let counts =
            lines.filter_map(|line| line.split("refused_requests=").nth(1)?.split(' ').next()?.parse().ok());
        counts.collect::<Vec<u64>>()
    };
    tokio::task::block_in_place(|| {
        wait_until("all of them are logged", || {
            logged(&pointsman.read_server_log()).iter().sum::<u64>() == 50
        });
    });
    assert!(logged(&pointsman.read_server_log()).len() <= 10, "they are logged together");
    assert!(node.is_running());
}
