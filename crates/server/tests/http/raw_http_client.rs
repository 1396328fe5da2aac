//! A minimal HTTP client: it sends bytes unchanged, so that tests can send what no real client would.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout for operations that would otherwise hang.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The status of a problem, after checking that its body is a problem document with this status.
    pub(crate) fn checked_problem_status(&self) -> u16 {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{self:?}");
        assert!(body["type"].is_string() && body["title"].is_string() && body["detail"].is_string());
        self.status
    }
}

/// Sends a request on a new connection and reads the whole response.
pub(crate) async fn send_request(address: SocketAddr, head: &str, body: &[u8]) -> TestResponse {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    // A server that refuses a body early may close before all of it was written.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    read_response(&mut stream).await
}

/// Reads one response, to the end of the connection.
pub(crate) async fn read_response(stream: &mut TcpStream) -> TestResponse {
    let mut bytes = Vec::new();
    timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes))
        .await
        .expect("an answer in time")
        .expect("a clean end");
    parse_response(&bytes)
}

pub(crate) fn parse_response(bytes: &[u8]) -> TestResponse {
    let split = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no head in {:?}", String::from_utf8_lossy(bytes));
    });
    let head = std::str::from_utf8(&bytes[..split]).expect("an ASCII head");
    let body = &bytes[split + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let status = status.parse().expect("a status");
    if status == 100 {
        return parse_response(body);
    }
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked { decode_chunks(body) } else { body.to_vec() };
    TestResponse { status, headers, body }
}

/// Decodes a chunked body. A response that was aborted lacks its last chunk, so that it is not valid JSON.
fn decode_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|w| w == b"\r\n") else { return body };
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return body;
        }
        rest = &rest[end + 2..];
        let Some(chunk) = rest.get(..size) else { return body };
        body.extend_from_slice(chunk);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
}
