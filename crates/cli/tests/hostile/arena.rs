//! The server under attack, and the judgement on how it bears it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::node::{Node, Place};
use crate::raw::{self, Answer, Exchange};
use crate::request::{Draft, Expected, Request};

/// How long any answer may take before it counts as a hang. The server itself gives up on its clients sooner.
pub(crate) const HANGS: Duration = Duration::from_secs(60);
/// A refusal names the fault and does not send everything back.
const LONGEST_REFUSAL: usize = 32 << 10;
/// How much the process may grow, in kilobytes.
const MOST_GROWTH: usize = 100 << 10;

pub(crate) struct Arena {
    pub(crate) address: String,
    pub(crate) token: String,
    /// The memory of the process before the attack, in kilobytes.
    memory: usize,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    statuses: BTreeMap<u16, usize>,
    closed: usize,
    /// How many events the server has said that it stored.
    stored: usize,
}

impl Arena {
    pub(crate) async fn new(place: &Place, node: &Node) -> Self {
        let (address, token) = (place.address().to_owned(), place.token().to_owned());
        let arena = Self { address, token, memory: 0, tally: Mutex::default() };
        arena.healthy().await;
        Self { memory: memory(node.pid(), "VmRSS"), ..arena }
    }

    /// Sends a request and judges what came of it.
    pub(crate) async fn send(&self, family: &str, request: &Request) {
        let exchange = match request.expected {
            Expected::Broken => raw::exchange_and_close(&self.address, &request.bytes, HANGS).await,
            _ => raw::exchange(&self.address, &request.bytes, HANGS).await,
        };
        let told = || format!("{family}: {:?}: {}", request.expected, request.shown());
        match exchange {
            Exchange::Answered(answer) => self.judge(request, &answer, told),
            Exchange::Closed => {
                assert_eq!(request.expected, Expected::Broken, "closed without a word: {}", told());
                self.tally.lock().unwrap().closed += 1;
            }
            Exchange::Garbled(said) => panic!("no HTTP: {:?} to {}", String::from_utf8_lossy(&said), told()),
            Exchange::Hung(said) => panic!("hangs: {:?} to {}", String::from_utf8_lossy(&said), told()),
        }
    }

    fn judge(&self, request: &Request, answer: &Answer, told: impl Fn() -> String) {
        let status = answer.status;
        assert!((200..500).contains(&status), "{answer:?} to {}", told());
        if request.expected == Expected::Refused {
            assert!(status >= 400, "{answer:?} to {}", told());
        }
        let is_head = request.bytes.starts_with(b"HEAD ");
        if status >= 400 && !is_head {
            assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json"),
                "{answer:?} to {}",
                told()
            );
            answer.problem();
            assert!(
                answer.body.len() < LONGEST_REFUSAL,
                "{} bytes of refusal to {}",
                answer.body.len(),
                told()
            );
        }
        let mut tally = self.tally.lock().unwrap();
        *tally.statuses.entry(status).or_default() += 1;
        if status == 201 {
            tally.stored += answer.json()["events"].as_array().map_or(0, Vec::len);
        }
    }

    /// Sends a request and goes away without waiting for anything.
    pub(crate) async fn abandon(&self, request: &Request) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let _ = stream.write_all(&request.bytes).await;
    }

    async fn get(&self, target: &str) -> Answer {
        let request = Draft::new("GET", target, &self.token).answered();
        let exchange = raw::exchange(&self.address, &request.bytes, HANGS).await;
        exchange.answer().unwrap_or_else(|| panic!("GET {target} is not answered"))
    }

    pub(crate) async fn healthy(&self) {
        assert_eq!(self.get("/healthz").await.status, 200);
    }

    /// Judges the server after the attack.
    pub(crate) async fn check(&self, place: &Place, node: &mut Node) {
        assert!(node.lives(), "the server has died:\n{}", place.log());
        self.healthy().await;
        let log = place.log();
        assert!(!log.contains("panicked"), "{log}");
        let tally = std::mem::take(&mut *self.tally.lock().unwrap());
        let grown = memory(node.pid(), "VmHWM").saturating_sub(self.memory);
        println!("{tally:?}; the process grew by at most {} MB", grown >> 10);
        assert!(grown < MOST_GROWTH, "the process grew by {grown} kB");
        for status in [200, 201, 400, 401, 404, 405, 413, 414, 415, 431] {
            assert!(tally.statuses.contains_key(&status), "the requests are too tame: {tally:?}");
        }
        let journal = self.get("/api/v1/events?after=0").await.json();
        // What the server tells of itself belongs to no tenant.
        let events = journal["eventSnapshots"].as_array().unwrap();
        let events: Vec<&Value> = events.iter().filter(|event| event["tenant"].is_string()).collect();
        assert_eq!(
            events.len(),
            tally.stored,
            "what was refused is not stored, and what was stored was told"
        );
        for event in events {
            self.check_object(event).await;
        }
    }
}

impl Arena {
    /// Whatever key was taken, the object can be asked for.
    async fn check_object(&self, event: &Value) {
        let Some(key) = event["key"].as_str() else { return };
        let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let tenant = event["tenant"].as_str().unwrap();
        let answer = self.get(&format!("/api/v1/objects/{}?tenant={tenant}", escape(key))).await;
        assert_eq!((answer.status, answer.json()["key"].as_str()), (200, Some(key)), "{event}");
    }
}

/// A figure of the process's memory, in kilobytes.
pub(crate) fn memory(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
