//! A real server on a port of its own, with the real store.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::route::Binding;
use pointsman_core::{HandlerDef, HandlerName, HandlingKey};
use pointsman_engine::{Delivery, HandlerSpec, Outcome, Runner, Setup};
use pointsman_server::Server;
use pointsman_server::config::Sources;
use serde_json::Value;

use crate::client::{Answer, HANGS, send};

pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    _folder: Option<tempfile::TempDir>,
}

const MEMORY: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

impl House {
    /// A server without handlers, in memory.
    pub(crate) async fn new() -> Self {
        Self::with("", Setup::default()).await
    }

    /// A server in memory with more configuration and handlers of the program.
    pub(crate) async fn with(more: &str, program: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = Self::at(folder.path(), &format!("{MEMORY}{more}"), program).await;
        house._folder = Some(folder);
        house
    }

    /// A server with its configuration in this folder.
    pub(crate) async fn at(folder: &Path, yaml: &str, program: Setup) -> Self {
        let sources = sources(folder, yaml);
        let config = sources.load().expect("a configuration without faults");
        let server = Server::start(config, Some(sources), program).await.expect("a server");
        let address = server.address().expect("an address");
        let token = server.first_token().unwrap_or_default().to_owned();
        Self { server, address, token, _folder: None }
    }

    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            head.push_str(&format!("authorization: Bearer {}\r\n", self.token));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = self.head(method, path, headers);
        if !body.is_empty() || method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        send(self.address, &format!("{head}\r\n"), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let json = [("content-type", "application/json")];
        self.call("POST", path, &json, body.as_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Answer {
        let json = [("content-type", "application/json")];
        self.call("PUT", path, &json, body.as_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], b"").await
    }

    /// The same house, entered with another token.
    pub(crate) async fn call_as(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.call(method, path, &headers, body.as_bytes()).await
    }

    /// Emits an event and answers with the id of its first task.
    pub(crate) async fn task_of(&self, body: &str) -> String {
        let answer = self.post("/api/v1/events", body).await.json();
        answer["events"][0]["tasks"][0].as_str().expect("a task").to_owned()
    }

    /// Emits an event and answers with its id.
    pub(crate) async fn emit(&self, body: &str) -> u64 {
        let answer = self.post("/api/v1/events", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["eventId"].as_u64().expect("an id")
    }

    /// Asks again and again until the answer is as wished.
    pub(crate) async fn until(&self, path: &str, wished: impl Fn(&Value) -> bool) -> Value {
        let asking = async {
            loop {
                let answer = self.get(path).await.json();
                if wished(&answer) {
                    return answer;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANGS, asking).await.unwrap_or_else(|_| panic!("{path} is never as wished"))
    }
}

/// Writes a configuration and says where it is.
pub(crate) fn sources(folder: &Path, yaml: &str) -> Sources {
    let file = folder.join("pointsman.yml");
    std::fs::write(&file, yaml).expect("a file");
    Sources { files: vec![file], working: folder.into(), ..Sources::default() }
}

type Act = Arc<dyn Fn(&Delivery) -> Outcome + Send + Sync>;

struct InProcess(Act);

#[async_trait]
impl Runner for InProcess {
    fn kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> Outcome {
        (self.0)(&delivery)
    }
}

/// A handler of the program, bound to a type of its own name.
pub(crate) fn handler(name: &str, act: impl Fn(&Delivery) -> Outcome + Send + Sync + 'static) -> Setup {
    let name = HandlerName::new(name).expect("a name");
    let mut setup = Setup::default();
    let mut def = HandlerDef::new(name.clone());
    def.retry.max = 0;
    let timeout = std::time::Duration::from_secs(30);
    setup.handlers.push(HandlerSpec { def, timeout, runner: Some(Arc::new(InProcess(Arc::new(act)))) });
    setup.routes.bind(HandlingKey::new(name.as_str()).expect("a type"), Binding::queued(name));
    setup
}
