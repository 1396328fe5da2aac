//! A real server on its own port, with the real store.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::route::HandlerBinding;
use pointsman_core::{EventType, HandlerDef, HandlerName};
use pointsman_engine::{Delivery, HandlerOutcome, HandlerSpec, Runner, Setup};
use pointsman_server::Server;
use pointsman_server::config::ConfigInputs;
use serde_json::Value;

use crate::raw_http_client::{TEST_TIMEOUT, TestResponse, send_request};

/// A running server, with the token that requests use.
pub(crate) struct TestServer {
    pub(crate) inner: Server,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    _folder: Option<tempfile::TempDir>,
}

const IN_MEMORY_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

impl TestServer {
    /// Starts a server without handlers, in memory.
    pub(crate) async fn start() -> Self {
        Self::start_with_config("", Setup::default()).await
    }

    /// Starts a server in memory with additional configuration, and with the in-process handlers and chains of `setup`.
    pub(crate) async fn start_with_config(more_config: &str, setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut server =
            Self::start_in_folder(folder.path(), &format!("{IN_MEMORY_CONFIG}{more_config}"), setup).await;
        server._folder = Some(folder);
        server
    }

    /// Starts a server whose configuration is `yaml`, written to a file in this folder.
    pub(crate) async fn start_in_folder(folder: &Path, yaml: &str, setup: Setup) -> Self {
        let inputs = write_config_and_get_inputs(folder, yaml);
        let config = inputs.load_config().expect("a configuration without faults");
        let server = Server::start(config, Some(inputs), setup).await.expect("a server");
        let address = server.address().expect("an address");
        let token = server.first_token().unwrap_or_default().to_owned();
        Self { inner: server, address, token, _folder: None }
    }

    pub(crate) fn request_head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
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
    ) -> TestResponse {
        let mut head = self.request_head(method, path, headers);
        if !body.is_empty() || method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        send_request(self.address, &format!("{head}\r\n"), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call("GET", path, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> TestResponse {
        let json = [("content-type", "application/json")];
        self.call("POST", path, &json, body.as_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> TestResponse {
        let json = [("content-type", "application/json")];
        self.call("PUT", path, &json, body.as_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        self.call("DELETE", path, &[], b"").await
    }

    /// Sends a request with another token than that of this server.
    pub(crate) async fn call_with_token(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> TestResponse {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.call(method, path, &headers, body.as_bytes()).await
    }

    /// Emits an event and returns the id of its first task.
    pub(crate) async fn emit_and_get_task_id(&self, body: &str) -> String {
        let response = self.post("/api/v1/events", body).await.json();
        response["events"][0]["tasks"][0].as_str().expect("a task").to_owned()
    }

    /// Emits an event and returns its id.
    pub(crate) async fn emit(&self, body: &str) -> u64 {
        let response = self.post("/api/v1/events", body).await;
        assert_eq!(response.status, 201, "{response:?}");
        response.json()["eventId"].as_u64().expect("an id")
    }

    /// Repeats a GET until its response is as expected.
    pub(crate) async fn wait_until_get_returns(
        &self,
        path: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Value {
        let polling = async {
            loop {
                let response = self.get(path).await.json();
                if is_expected(&response) {
                    return response;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, polling)
            .await
            .unwrap_or_else(|_| panic!("{path} never becomes as expected"))
    }
}

/// Writes a configuration file, and returns the inputs to load it.
pub(crate) fn write_config_and_get_inputs(folder: &Path, yaml: &str) -> ConfigInputs {
    let file = folder.join("pointsman.yml");
    std::fs::write(&file, yaml).expect("a file");
    ConfigInputs { files: vec![file], working_dir: folder.into(), ..ConfigInputs::default() }
}

type HandlerFn = Arc<dyn Fn(&Delivery) -> HandlerOutcome + Send + Sync>;

struct InProcessRunner(HandlerFn);

#[async_trait]
impl Runner for InProcessRunner {
    fn handler_kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        (self.0)(&delivery)
    }
}

/// A setup with an in-process handler, to which the event type of the same name is routed.
pub(crate) fn in_process_handler_setup(
    name: &str,
    act: impl Fn(&Delivery) -> HandlerOutcome + Send + Sync + 'static,
) -> Setup {
    let name = HandlerName::new(name).expect("a name");
    let mut setup = Setup::default();
    let mut def = HandlerDef::new(name.clone());
    def.retry.max_retries = 0;
    let timeout = std::time::Duration::from_secs(30);
    setup.handlers.push(HandlerSpec {
        def,
        attempt_timeout: timeout,
        runner: Some(Arc::new(InProcessRunner(Arc::new(act)))),
    });
    setup.routes.bind(EventType::new(name.as_str()).expect("a type"), HandlerBinding::new_queued(name));
    setup
}
