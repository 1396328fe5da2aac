use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{read_metric, start_server_with_settings_and_config};
use crate::raw_http_client::TEST_TIMEOUT;
use crate::test_server::TestServer;

const LARGE_EVENT_COUNT: usize = 5;
const LARGE_VALUE_BYTES: usize = 1_000_000;
const MIB: u64 = 1 << 20;

const RESPONSE_MEMORY_LIMITS: &str = "limits: {response_memory: 32MiB, response_memory_per_client: 16MiB}";
const PULL_HANDLER_CONFIG: &str = "handlers: {pulled: {run: pull}}\nevent_handlers: {work: [pulled]}\n";

/// Starts a server with the object `large`, whose events have 5 MB together.
async fn start_server_with_large_object() -> TestServer {
    let test_server =
        start_server_with_settings_and_config(RESPONSE_MEMORY_LIMITS, PULL_HANDLER_CONFIG).await;
    for _ in 0..LARGE_EVENT_COUNT {
        test_server
            .emit(&format!(r#"{{"type":"a","key":"large","value":"{}"}}"#, "x".repeat(LARGE_VALUE_BYTES)))
            .await;
    }
    test_server
}

/// Opens a client that reads only the status of its response.
async fn open_slow_reader(test_server: &TestServer, token: &str, path: &str) -> (TcpStream, u16) {
    send_and_read_only_status(test_server, token, ("GET", path), "\r\n").await
}

/// Sends a request whose last header and body are `end`, and reads only the status of the response.
async fn send_and_read_only_status(
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
async fn retry_until_complete_and_count_events(
    test_server: &TestServer,
    token: &str,
    path: &str,
    member: &str,
) -> usize {
    let polling = async {
        loop {
            let response = test_server.call_with_token(token, "GET", path, "").await;
            if response.status == 200 {
                return response.json()[member].as_array().unwrap().len();
            }
            assert_eq!(response.checked_problem_status(), 503);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, polling).await.expect("the response memory is released in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_large_responses_use_no_more_than_their_share() {
    let test_server = start_server_with_large_object().await;
    for (path, member) in
        [("/api/v1/objects/large", "events"), ("/api/v1/events?after=0&key=large", "eventSnapshots")]
    {
        let (open_readers, refused) = open_slow_readers(&test_server, "viewer", path, 40).await;
        assert!(
            !open_readers.is_empty() && open_readers.len() <= 16,
            "{} readers of {path} were served",
            open_readers.len()
        );
        assert_eq!(open_readers.len() + refused, 40);
        let used = read_metric(&test_server, "pointsman_http_response_bytes").await;
        assert!((1..=16 * MIB).contains(&used), "{used} bytes are in use for {path}");
        let response = test_server.call_with_token("viewer", "GET", path, "").await;
        assert_eq!(response.checked_problem_status(), 503);
        assert!(response.header("retry-after").is_some());
        // Small responses, and large ones of other tokens, are sent.
        assert_eq!(test_server.call_with_token("viewer", "GET", "/api/v1/handlers", "").await.status, 200);
        assert_eq!(
            retry_until_complete_and_count_events(&test_server, "other-viewer", path, member).await,
            LARGE_EVENT_COUNT
        );
        drop(open_readers);
        assert_eq!(
            retry_until_complete_and_count_events(&test_server, "viewer", path, member).await,
            LARGE_EVENT_COUNT
        );
    }
    assert!(read_metric(&test_server, "pointsman_http_refused_total{limit=\"responses\"}").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_streams_use_no_more_than_their_share() {
    let test_server = start_server_with_large_object().await;
    let path = "/api/v1/stream?after=0&key=large";
    let (open_readers, refused) = open_slow_readers(&test_server, "viewer", path, 40).await;
    assert_eq!((open_readers.len(), refused), (40, 0));
    let used = read_metric(&test_server, "pointsman_http_response_bytes").await;
    assert!(used <= 16 * MIB, "{used} bytes are in use");
    let mut frames =
        crate::stream::SseClient::connect(&test_server, path, &[("authorization", "Bearer other-viewer")])
            .await;
    for _ in 0..LARGE_EVENT_COUNT {
        assert_eq!(frames.next_frame().await.unwrap().event, "a");
    }
    drop(open_readers);
    let mut frames =
        crate::stream::SseClient::connect(&test_server, path, &[("authorization", "Bearer viewer")]).await;
    for _ in 0..LARGE_EVENT_COUNT {
        assert_eq!(frames.next_frame().await.unwrap().event, "a");
    }
}

const CLAIM_BODY: &str = r#"{"handlers":["pulled"],"max":256}"#;

/// Opens a worker that reads only the status of the response to its claim.
async fn send_slow_claim(test_server: &TestServer, token: &str) -> (TcpStream, u16) {
    let length = CLAIM_BODY.len();
    let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{CLAIM_BODY}");
    send_and_read_only_status(test_server, token, ("POST", "/api/v1/worker/claim"), &more).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_response_memory_leases_no_task() {
    let test_server = start_server_with_large_object().await;
    for number in 0..2 * LARGE_EVENT_COUNT {
        let value = "x".repeat(LARGE_VALUE_BYTES);
        test_server.emit(&format!(r#"{{"type":"work","key":"k{number}","value":"{value}"}}"#)).await;
    }
    let (claimed, status) = send_slow_claim(&test_server, "admin").await;
    assert_eq!(status, 200);
    let task = test_server.emit_and_get_task_id(r#"{"type":"work"}"#).await;
    let (open_readers, _) = open_slow_readers(&test_server, "admin", "/api/v1/objects/large", 8).await;
    assert_eq!(test_server.post("/api/v1/worker/claim", CLAIM_BODY).await.checked_problem_status(), 503);
    drop((open_readers, claimed));
    retry_until_complete_and_count_events(&test_server, "admin", "/api/v1/objects/large", "events").await;
    let claimed = test_server.post("/api/v1/worker/claim", CLAIM_BODY).await.json();
    assert_eq!(claimed["tasks"][0]["id"], task.as_str());
    assert_eq!(claimed["tasks"][0]["attempt"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_use_up_response_memory_do_not_block_claims() {
    let test_server = start_server_with_large_object().await;
    let task = test_server.emit_and_get_task_id(r#"{"type":"work"}"#).await;
    let mut open_readers = Vec::new();
    for token in ["viewer", "other-viewer", "admin"] {
        open_readers.push(open_slow_readers(&test_server, token, "/api/v1/objects/large", 8).await);
    }
    assert_eq!(
        test_server
            .call_with_token("viewer", "GET", "/api/v1/objects/large", "")
            .await
            .checked_problem_status(),
        503
    );
    for token in ["worker", "admin"] {
        let response = test_server.call_with_token(token, "POST", "/api/v1/worker/claim", CLAIM_BODY).await;
        assert_eq!(response.status, 200, "{response:?}");
        if token == "worker" {
            assert_eq!(response.json()["tasks"][0]["id"], task.as_str());
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
    // The reader makes progress all the time: without a minimum rate it would keep its memory forever.
    timeout(TEST_TIMEOUT, reading).await.expect("the response memory is released in time");
}
