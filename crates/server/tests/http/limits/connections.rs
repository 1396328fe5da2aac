use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{read_metric, start_server_with_settings, start_server_with_settings_and_config};
use crate::raw_http_client::{TEST_TIMEOUT, TestResponse, read_response};
use crate::test_server::TestServer;

async fn connect(test_server: &TestServer) -> TcpStream {
    TcpStream::connect(test_server.address).await.unwrap()
}

/// Sends a request on a new connection and reads the status of the response.
async fn open_request_and_read_status(test_server: &TestServer, token: &str, path: &str) -> (TcpStream, u16) {
    let mut stream = connect(test_server).await;
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: keep-alive\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(TEST_TIMEOUT, stream.read_exact(&mut status)).await.expect("a status in time").unwrap();
    let status = std::str::from_utf8(&status[9..]).unwrap().parse().unwrap();
    (stream, status)
}

async fn open_streams(test_server: &TestServer, token: &str, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let (stream, status) = open_request_and_read_status(test_server, token, "/api/v1/stream").await;
        assert_eq!(status, 200);
        streams.push(stream);
    }
    streams
}

impl TestServer {
    /// Repeats a request that cannot use the reserve of connections until the request is served.
    async fn wait_until_served(&self, token: &str) {
        let polling = async {
            while self.call_with_token(token, "GET", "/api/v1/handlers", "").await.status != 200 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        timeout(TEST_TIMEOUT, polling).await.expect("a connection in time");
    }

    /// Waits until a metric has this value.
    async fn wait_for_metric(&self, name: &str, value: u64) {
        let polling = async {
            while read_metric(self, name).await != value {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        timeout(TEST_TIMEOUT, polling).await.unwrap_or_else(|_| panic!("{name} never becomes {value}"));
    }
}

fn assert_refused_with_503(response: &TestResponse) {
    assert_eq!(response.checked_problem_status(), 503, "{response:?}");
    assert!(response.header("retry-after").is_some(), "{response:?}");
}

async fn assert_serves_health_checks_and_producers(test_server: &TestServer) {
    for path in ["/livez", "/healthz", "/readyz"] {
        assert_eq!(test_server.call("GET", path, &[("authorization", "")], b"").await.status, 200, "{path}");
    }
    assert_eq!(
        test_server.call_with_token("producer", "POST", "/api/v1/events", r#"{"type":"a"}"#).await.status,
        201
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_without_a_token_do_not_block_other_clients() {
    let test_server = start_server_with_settings("max_connections: 64").await;
    let mut idle = Vec::new();
    for number in 0..200 {
        idle.push(match number % 3 {
            0 => connect(&test_server).await,
            1 => {
                let mut stream = connect(&test_server).await;
                stream.write_all(b"GET /livez HTTP/1.1\r\nhost").await.unwrap();
                stream
            }
            _ => open_request_and_read_status(&test_server, "wrong", "/livez").await.0,
        });
    }
    assert_serves_health_checks_and_producers(&test_server).await;
    assert_eq!(test_server.call_with_token("viewer", "GET", "/api/v1/handlers", "").await.status, 200);
    assert!(read_metric(&test_server, "pointsman_http_connections_evicted_total").await >= 100);
    assert!(read_metric(&test_server, "pointsman_http_connections{kind=\"unauthenticated\"}").await <= 48);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_a_valid_token_are_not_closed_for_unauthenticated_ones() {
    let test_server = start_server_with_settings("max_connections: 64").await;
    let mut streams_with_token = Vec::new();
    for _ in 0..8 {
        streams_with_token
            .push(open_request_and_read_status(&test_server, "viewer", "/api/v1/stream").await.0);
    }
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connect(&test_server).await);
    }
    let id = test_server.emit(r#"{"type":"seen"}"#).await;
    for mut stream in streams_with_token {
        let wanted = format!("id: {id}");
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains(&wanted) {
            let read =
                timeout(TEST_TIMEOUT, stream.read_buf(&mut text)).await.expect("the event in time").unwrap();
            assert!(read > 0, "the stream was closed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_and_producers_have_reserved_connections() {
    let test_server =
        start_server_with_settings("max_connections: 64, limits: {connections_per_client: 48}").await;
    let streams = open_streams(&test_server, "viewer", 48).await;
    let refused =
        join_all((0..50).map(|_| test_server.call_with_token("other-viewer", "GET", "/api/v1/handlers", "")))
            .await;
    refused.iter().for_each(assert_refused_with_503);
    for _ in 0..20 {
        assert_serves_health_checks_and_producers(&test_server).await;
    }
    // The body of an emit is read before the request is refused, so that a large body gets a response too.
    let large = format!(r#"{{"type":"a","value":"{}"}}"#, "x".repeat(1 << 20));
    assert_refused_with_503(
        &test_server.call_with_token("other-viewer", "POST", "/api/v1/events", &large).await,
    );
    drop(streams);
    test_server.wait_until_served("other-viewer").await;
    test_server.wait_for_metric("pointsman_http_streams", 0).await;
    assert!(read_metric(&test_server, "pointsman_http_refused_total{limit=\"connections\"}").await >= 51);
}

/// Opens a connection with a claim that waits for a task, or has been refused.
async fn start_waiting_claim(test_server: &TestServer, token: &str) -> TcpStream {
    let body = r#"{"handlers":["pulled"],"wait":"300s"}"#;
    let mut stream = connect(test_server).await;
    let head = test_server.request_head(
        "POST",
        "/api/v1/worker/claim",
        &[("authorization", &format!("Bearer {token}"))],
    );
    let length = body.len();
    let text = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Starts an emit whose body does not end.
async fn start_endless_emit(test_server: &TestServer, token: &str) -> TcpStream {
    let mut stream = connect(test_server).await;
    let headers = [("authorization", &*format!("Bearer {token}")), ("content-length", "100")];
    let head = test_server.request_head("POST", "/api/v1/events", &headers);
    stream.write_all(format!("{head}content-type: application/json\r\n\r\n{{").as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_its_share_of_connections() {
    let pulled = "handlers: {pulled: {run: pull}}\n";
    let test_server = start_server_with_settings_and_config("max_connections: 64", pulled).await;
    let mut claims = Vec::new();
    for _ in 0..48 {
        claims.push(start_waiting_claim(&test_server, "worker").await);
    }
    test_server.wait_for_metric("pointsman_http_refused_total{limit=\"connections\"}", 24).await;
    let refused = test_server.call_with_token("worker", "GET", "/api/v1/me", "").await;
    assert_refused_with_503(&refused);
    assert!(refused.text().contains("connections_per_client"), "{refused:?}");
    assert_serves_health_checks_and_producers(&test_server).await;
    for _ in 0..20 {
        assert_eq!(test_server.call_with_token("viewer", "GET", "/api/v1/handlers", "").await.status, 200);
    }
    claims.clear();
    test_server.wait_for_metric("pointsman_http_connections{kind=\"authenticated\"}", 1).await;
    assert_eq!(test_server.call_with_token("worker", "GET", "/api/v1/me", "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_emits_leave_the_reserve_to_health_checks() {
    let test_server =
        start_server_with_settings("max_connections: 64, limits: {connections_per_client: 48}").await;
    let _streams = open_streams(&test_server, "viewer", 48).await;
    let mut emits = Vec::new();
    for number in 0..64 {
        emits.push(start_endless_emit(&test_server, ["producer", "admin"][number % 2]).await);
    }
    for _ in 0..20 {
        for path in ["/livez", "/healthz", "/readyz"] {
            assert_eq!(
                test_server.call("GET", path, &[("authorization", "")], b"").await.status,
                200,
                "{path}"
            );
        }
    }
    let emit = test_server.call_with_token("producer", "POST", "/api/v1/events", r#"{"type":"a"}"#).await;
    assert_refused_with_503(&emit);
    drop(emits);
    let emitting = async {
        while test_server
            .call_with_token("producer", "POST", "/api/v1/events", r#"{"type":"a"}"#)
            .await
            .status
            != 201
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, emitting).await.expect("an emit is served in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_its_share_of_streams() {
    let test_server = start_server_with_settings("limits: {streams_per_client: 8}").await;
    let mut streams = Vec::new();
    for path in ["/api/v1/stream", "/api/v1/events?after=0&return=none&timeout=1h"].repeat(4) {
        let mut stream = connect(&test_server).await;
        let head = test_server.request_head("GET", path, &[("authorization", "Bearer viewer")]);
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        streams.push(stream);
    }
    test_server.wait_for_metric("pointsman_http_streams", 8).await;
    for path in ["/api/v1/stream", "/api/v1/events?after=0&return=none&timeout=1h"] {
        assert_refused_with_503(&test_server.call_with_token("viewer", "GET", path, "").await);
    }
    assert_eq!(test_server.call_with_token("viewer", "GET", "/api/v1/events?after=0", "").await.status, 200);
    assert_eq!(open_request_and_read_status(&test_server, "other-viewer", "/api/v1/stream").await.1, 200);
    streams.clear();
    test_server.wait_for_metric("pointsman_http_streams", 0).await;
    assert_eq!(open_request_and_read_status(&test_server, "viewer", "/api/v1/stream").await.1, 200);
    assert_eq!(read_metric(&test_server, "pointsman_http_refused_total{limit=\"streams\"}").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share_of_connections() {
    let test_server = start_server_with_settings("limits: {per_address: 8}").await;
    let streams = open_streams(&test_server, "viewer", 8).await;
    assert_refused_with_503(
        &test_server.call_with_token("other-viewer", "GET", "/api/v1/handlers", "").await,
    );
    assert_serves_health_checks_and_producers(&test_server).await;
    drop(streams);
    test_server.wait_until_served("other-viewer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_max_connections_get_503() {
    let test_server =
        start_server_with_settings("max_connections: 2, limits: {connections_per_client: 2}").await;
    let streams = open_streams(&test_server, "viewer", 2).await;
    for _ in 0..10 {
        let refused = join_all((0..20).map(|_| test_server.get("/healthz"))).await;
        refused.iter().for_each(assert_refused_with_503);
    }
    // A client that reads before it writes gets a response too.
    assert_refused_with_503(&read_response(&mut connect(&test_server).await).await);
    drop(streams);
    test_server.wait_until_served("viewer").await;
    test_server.inner.stop().await;
}
