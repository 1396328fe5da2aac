use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{read_metric, start_server_with};
use crate::client::TEST_TIMEOUT;
use crate::test_server::TestServer;

const LARGE_EVENTS: usize = 5;
const VALUE_BYTES: usize = 1_000_000;
const MIB: u64 = 1 << 20;

const LIMITS: &str = "limits: {response_memory: 32MiB, response_memory_per_client: 16MiB}";
const PULL_HANDLER: &str = "handlers: {pulled: {run: pull}}\nevent_handlers: {work: [pulled]}\n";

/// Starts a server with an object whose events have 5 MB.
async fn start_server_with_large_object() -> TestServer {
    let test_server = start_server_with(LIMITS, PULL_HANDLER).await;
    for _ in 0..LARGE_EVENTS {
        test_server
            .emit(&format!(r#"{{"type":"a","key":"large","value":"{}"}}"#, "x".repeat(VALUE_BYTES)))
            .await;
    }
    test_server
}

/// Opens a client that reads only the status of its response.
async fn open_slow_reader(test_server: &TestServer, token: &str, path: &str) -> (TcpStream, u16) {
    send_slow_request(test_server, token, ("GET", path), "\r\n").await
}

/// Sends a request with this end, and reads the status of the response.
async fn send_slow_request(
    test_server: &TestServer,
    token: &str,
    (method, path): (&str, &str),
    end: &str,
) -> (TcpStream, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(test_server.address).await.unwrap();
    let bearer = format!("Bearer {token}");
    let head = test_server.request_head(method, path, &[("authorization", &bearer)]);
    stream.write_all(format!("{head}{end}").as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(TEST_TIMEOUT, stream.read_exact(&mut status)).await.expect("a status in time").unwrap();
    (stream, std::str::from_utf8(&status[9..]).unwrap().parse().unwrap())
}

async fn open_slow_readers(
    test_server: &TestServer,
    token: &str,
    path: &str,
    count: usize,
) -> (Vec<TcpStream>, usize) {
    let (mut served, mut refused) = (Vec::new(), 0);
    for _ in 0..count {
        match open_slow_reader(test_server, token, path).await {
            (stream, 200) => served.push(stream),
            (_, 503) => refused += 1,
            (_, status) => panic!("{status}"),
        }
    }
    (served, refused)
}

/// Repeats a request until the response is complete, and returns the number of its events.
async fn read_until_complete(test_server: &TestServer, token: &str, path: &str, member: &str) -> usize {
    let polling = async {
        loop {
            let answer = test_server.call_as(token, "GET", path, "").await;
            if answer.status == 200 {
                return answer.json()[member].as_array().unwrap().len();
            }
            assert_eq!(answer.problem_status(), 503);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, polling).await.expect("memory is given back in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_large_responses_use_no_more_than_their_share() {
    let test_server = start_server_with_large_object().await;
    for (path, member) in
        [("/api/v1/objects/large", "events"), ("/api/v1/events?after=0&key=large", "eventSnapshots")]
    {
        let (held, refused) = open_slow_readers(&test_server, "viewer", path, 40).await;
        assert!(!held.is_empty() && held.len() <= 16, "{} readers of {path} were served", held.len());
        assert_eq!(held.len() + refused, 40);
        let used = read_metric(&test_server, "pointsman_http_response_bytes").await;
        assert!((1..=16 * MIB).contains(&used), "{used} bytes are in use for {path}");
        let answer = test_server.call_as("viewer", "GET", path, "").await;
        assert_eq!(answer.problem_status(), 503);
        assert!(answer.header("retry-after").is_some());
        // Small responses, and large ones of other tokens, are sent.
        assert_eq!(test_server.call_as("viewer", "GET", "/api/v1/handlers", "").await.status, 200);
        assert_eq!(read_until_complete(&test_server, "other-viewer", path, member).await, LARGE_EVENTS);
        drop(held);
        assert_eq!(read_until_complete(&test_server, "viewer", path, member).await, LARGE_EVENTS);
    }
    assert!(read_metric(&test_server, "pointsman_http_refused_total{limit=\"responses\"}").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_streams_use_no_more_than_their_share() {
    let test_server = start_server_with_large_object().await;
    let path = "/api/v1/stream?after=0&key=large";
    let (held, refused) = open_slow_readers(&test_server, "viewer", path, 40).await;
    assert_eq!((held.len(), refused), (40, 0));
    let used = read_metric(&test_server, "pointsman_http_response_bytes").await;
    assert!(used <= 16 * MIB, "{used} bytes are in use");
    let mut frames =
        crate::stream::SseClient::connect(&test_server, path, &[("authorization", "Bearer other-viewer")])
            .await;
    for _ in 0..LARGE_EVENTS {
        assert_eq!(frames.next_frame().await.unwrap().event, "a");
    }
    drop(held);
    let mut frames =
        crate::stream::SseClient::connect(&test_server, path, &[("authorization", "Bearer viewer")]).await;
    for _ in 0..LARGE_EVENTS {
        assert_eq!(frames.next_frame().await.unwrap().event, "a");
    }
}

const CLAIM_BODY: &str = r#"{"handlers":["pulled"],"max":256}"#;

/// Opens a worker that reads only the status of the response to its claim.
async fn send_slow_claim(test_server: &TestServer, token: &str) -> (TcpStream, u16) {
    let length = CLAIM_BODY.len();
    let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{CLAIM_BODY}");
    send_slow_request(test_server, token, ("POST", "/api/v1/worker/claim"), &more).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_response_memory_leases_no_task() {
    let test_server = start_server_with_large_object().await;
    for number in 0..2 * LARGE_EVENTS {
        let value = "x".repeat(VALUE_BYTES);
        test_server.emit(&format!(r#"{{"type":"work","key":"k{number}","value":"{value}"}}"#)).await;
    }
    let (claimed, status) = send_slow_claim(&test_server, "admin").await;
    assert_eq!(status, 200);
    let task = test_server.emit_for_task(r#"{"type":"work"}"#).await;
    let (held, _) = open_slow_readers(&test_server, "admin", "/api/v1/objects/large", 8).await;
    assert_eq!(test_server.post("/api/v1/worker/claim", CLAIM_BODY).await.problem_status(), 503);
    drop((held, claimed));
    read_until_complete(&test_server, "admin", "/api/v1/objects/large", "events").await;
    let claimed = test_server.post("/api/v1/worker/claim", CLAIM_BODY).await.json();
    assert_eq!(claimed["tasks"][0]["id"], task.as_str());
    assert_eq!(claimed["tasks"][0]["attempt"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_use_up_response_memory_do_not_block_claims() {
    let test_server = start_server_with_large_object().await;
    let task = test_server.emit_for_task(r#"{"type":"work"}"#).await;
    let mut held = Vec::new();
    for token in ["viewer", "other-viewer", "admin"] {
        held.push(open_slow_readers(&test_server, token, "/api/v1/objects/large", 8).await);
    }
    assert_eq!(test_server.call_as("viewer", "GET", "/api/v1/objects/large", "").await.problem_status(), 503);
    for token in ["worker", "admin"] {
        let answer = test_server.call_as(token, "POST", "/api/v1/worker/claim", CLAIM_BODY).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        if token == "worker" {
            assert_eq!(answer.json()["tasks"][0]["id"], task.as_str());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_below_the_minimum_rate_is_disconnected() {
    let test_server = start_server_with_large_object().await;
    let (mut stream, status) = open_slow_reader(&test_server, "viewer", "/api/v1/objects/large").await;
    assert_eq!(status, 200);
    assert!(read_metric(&test_server, "pointsman_http_response_bytes").await > 0);
    let reading = async {
        let mut bytes = [0; 64];
        while read_metric(&test_server, "pointsman_http_response_bytes").await > 0 {
            stream.read_exact(&mut bytes).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
    };
    // It makes progress all the time, so that it would keep its memory forever.
    timeout(TEST_TIMEOUT, reading).await.expect("its memory is given back in time");
}
