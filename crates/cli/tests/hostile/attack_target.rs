//! The server under attack, and the checks of its behaviour.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::raw_http::{self, ExchangeOutcome, RawResponse};
use crate::request::{ExpectedOutcome, HostileRequest, RequestDraft};
use crate::test_server::{PointsmanServerProcess, ServerFixture};

/// The time within which every response must arrive. The server's own timeouts are shorter.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of a refusal in bytes. It is small, because a refusal does not repeat the request.
const MAX_REFUSAL_BYTES: usize = 32 << 10;
/// The maximum growth of the process, in kilobytes.
const MAX_MEMORY_GROWTH_KB: usize = 100 << 10;

/// The server under attack, and the numbers of its responses.
pub(crate) struct AttackTarget {
    pub(crate) address: String,
    pub(crate) token: String,
    /// The memory of the process before the attack, in kilobytes.
    initial_memory_kb: usize,
    response_tally: Mutex<ResponseTally>,
}

/// The numbers of responses by kind.
#[derive(Debug, Default)]
struct ResponseTally {
    count_by_status: BTreeMap<u16, usize>,
    closed_count: usize,
    /// The number of events that the server acknowledged.
    acknowledged_event_count: usize,
}

impl AttackTarget {
    pub(crate) async fn new(pointsman: &ServerFixture, node: &PointsmanServerProcess) -> Self {
        let (address, token) = (pointsman.address().to_owned(), pointsman.token().to_owned());
        let target = Self { address, token, initial_memory_kb: 0, response_tally: Mutex::default() };
        target.assert_healthy().await;
        Self { initial_memory_kb: read_process_memory_kb(node.pid(), "VmRSS"), ..target }
    }

    /// Sends a request and checks its outcome.
    pub(crate) async fn send_and_check(&self, family: &str, request: &HostileRequest) {
        let outcome = match request.expected_outcome {
            ExpectedOutcome::ResponseOrClosed => {
                raw_http::send_raw_and_close_sending(&self.address, &request.bytes, RESPONSE_TIMEOUT).await
            }
            _ => raw_http::send_raw(&self.address, &request.bytes, RESPONSE_TIMEOUT).await,
        };
        let description = || format!("{family}: {:?}: {}", request.expected_outcome, request.describe());
        match outcome {
            ExchangeOutcome::Response(response) => self.check_response(request, &response, description),
            ExchangeOutcome::Closed => {
                assert_eq!(
                    request.expected_outcome,
                    ExpectedOutcome::ResponseOrClosed,
                    "closed without a response: {}",
                    description()
                );
                self.response_tally.lock().unwrap().closed_count += 1;
            }
            ExchangeOutcome::Invalid(bytes) => {
                panic!("no HTTP: {:?} to {}", String::from_utf8_lossy(&bytes), description())
            }
            ExchangeOutcome::TimedOut(bytes) => {
                panic!("timed out: {:?} to {}", String::from_utf8_lossy(&bytes), description())
            }
        }
    }

    fn check_response(
        &self,
        request: &HostileRequest,
        response: &RawResponse,
        description: impl Fn() -> String,
    ) {
        let status = response.status;
        assert!((200..500).contains(&status), "{response:?} to {}", description());
        if request.expected_outcome == ExpectedOutcome::Refused {
            assert!(status >= 400, "{response:?} to {}", description());
        }
        let is_head = request.bytes.starts_with(b"HEAD ");
        if status >= 400 && !is_head {
            assert_eq!(
                response.header("content-type"),
                Some("application/problem+json"),
                "{response:?} to {}",
                description()
            );
            response.assert_problem();
            assert!(
                response.body.len() < MAX_REFUSAL_BYTES,
                "{} bytes of refusal to {}",
                response.body.len(),
                description()
            );
        }
        let mut tally = self.response_tally.lock().unwrap();
        *tally.count_by_status.entry(status).or_default() += 1;
        if status == 201 {
            tally.acknowledged_event_count += response.json()["events"].as_array().map_or(0, Vec::len);
        }
    }

    /// Sends a request and closes the connection without waiting.
    pub(crate) async fn send_and_disconnect(&self, request: &HostileRequest) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let _ = stream.write_all(&request.bytes).await;
    }

    async fn get(&self, target: &str) -> RawResponse {
        let request = RequestDraft::new("GET", target, &self.token).build_expecting_response();
        let outcome = raw_http::send_raw(&self.address, &request.bytes, RESPONSE_TIMEOUT).await;
        outcome.into_response().unwrap_or_else(|| panic!("GET {target} got no response"))
    }

    pub(crate) async fn assert_healthy(&self) {
        assert_eq!(self.get("/healthz").await.status, 200);
    }

    /// Checks that the server still runs and is healthy, that it needed little memory, that each expected status
    /// occurred, and that exactly the acknowledged events are stored.
    pub(crate) async fn check_after_attack(
        &self,
        pointsman: &ServerFixture,
        node: &mut PointsmanServerProcess,
    ) {
        assert!(node.is_running(), "the server has exited:\n{}", pointsman.read_server_log());
        self.assert_healthy().await;
        let log = pointsman.read_server_log();
        assert!(!log.contains("panicked"), "{log}");
        let tally = std::mem::take(&mut *self.response_tally.lock().unwrap());
        let grown = read_process_memory_kb(node.pid(), "VmHWM").saturating_sub(self.initial_memory_kb);
        println!("{tally:?}; the process grew by at most {} MB", grown >> 10);
        assert!(grown < MAX_MEMORY_GROWTH_KB, "the process grew by {grown} kB");
        for status in [200, 201, 400, 401, 404, 405, 413, 414, 415, 431] {
            assert!(tally.count_by_status.contains_key(&status), "a status did not occur: {tally:?}");
        }
        let journal = self.get("/api/v1/events?after=0").await.json();
        // Engine events have no tenant.
        let events = journal["eventSnapshots"].as_array().unwrap();
        let events: Vec<&Value> = events.iter().filter(|event| event["tenant"].is_string()).collect();
        assert_eq!(
            events.len(),
            tally.acknowledged_event_count,
            "exactly the acknowledged events are stored"
        );
        for event in events {
            self.check_object_is_readable(event).await;
        }
    }
}

impl AttackTarget {
    /// Checks that the key of a stored event can be read as an object.
    async fn check_object_is_readable(&self, event: &Value) {
        let Some(key) = event["key"].as_str() else { return };
        let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let tenant = event["tenant"].as_str().unwrap();
        let response = self.get(&format!("/api/v1/objects/{}?tenant={tenant}", escape(key))).await;
        assert_eq!((response.status, response.json()["key"].as_str()), (200, Some(key)), "{event}");
    }
}

/// Reads a memory value of a process from /proc, such as `VmRSS`, in kilobytes.
pub(crate) fn read_process_memory_kb(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
