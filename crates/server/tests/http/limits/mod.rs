//! Limits per client: connections, streams, response memory, failed authentications.

// The whole module is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod authentication;
mod connections;
mod responses;

use pointsman_engine::Setup;

use crate::auth::tokens_yaml;
use crate::test_server::TestServer;

/// Starts a server with these settings under `server`, and with the tokens `viewer`, `other-viewer`, `producer`,
/// `worker` and `admin`. Requests use the token `admin`.
async fn start_server_with_settings(settings: &str) -> TestServer {
    start_server_with_settings_and_config(settings, "").await
}

async fn start_server_with_settings_and_config(settings: &str, more_config: &str) -> TestServer {
    let list = ["viewer", "other-viewer", "producer", "worker", "admin"].map(|name| {
        let role = name.strip_prefix("other-").unwrap_or(name);
        (name, role, None)
    });
    let yaml = format!(
        "store: 'sqlite::memory:'\nserver: {{listen: '127.0.0.1:0', drain: 1s, {settings}}}\n{}{more_config}",
        tokens_yaml(&list)
    );
    let folder = tempfile::tempdir().unwrap();
    let mut test_server = TestServer::start_in_folder(folder.path(), &yaml, Setup::default()).await;
    test_server.token = "admin".into();
    test_server
}

/// Reads the value of a metric, which must exist.
async fn read_metric(test_server: &TestServer, name: &str) -> u64 {
    let text = test_server.get("/metrics").await.text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
}
