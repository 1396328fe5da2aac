//! Several servers on one database, for each database that servers can share.

mod redis_only;
mod test_databases;

use pointsman_engine::{HandlerOutcome, Setup};
use pointsman_testing::FaultProxy;
use serde_json::json;

use crate::test_server::{TestServer, in_process_handler_setup};
use test_databases::ClusterTestDatabase;

/// Servers on one database, each with its own folder.
struct TestCluster {
    store_url: String,
    folder: tempfile::TempDir,
    token: String,
}

impl TestCluster {
    fn new(store_url: String) -> Self {
        Self { store_url, folder: tempfile::tempdir().expect("a folder"), token: String::new() }
    }

    /// Starts a server with this `name` in its configuration. Only the first server of a cluster knows the first token;
    /// requests to the other servers use the token of the first one.
    async fn start_server(&mut self, name: &str, more_config: &str, setup: Setup) -> TestServer {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let url = &self.store_url;
        let yaml = format!(
            "store: '{url}'\nname: {name}\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n{more_config}"
        );
        let mut server = TestServer::start_in_folder(&folder, &yaml, setup).await;
        match self.token.is_empty() {
            true => self.token = server.token.clone(),
            false => server.token = self.token.clone(),
        }
        server
    }
}

/// Runs each of these tests on every database.
macro_rules! test_on_each_database {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres { $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test::<super::test_databases::PostgresDatabase>().await;
            }
        )+ }
        mod on_redis { $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test::<super::test_databases::RedisDatabase>().await;
            }
        )+ }
    };
}

test_on_each_database! {
    all_servers_accept_the_first_token,
    events_reach_handlers_of_another_server,
    pauses_apply_on_all_servers,
    a_task_cancelled_on_another_server_is_stopped,
    emits_get_503_while_the_database_is_down_and_succeed_afterwards,
    a_store_that_cannot_be_written_is_not_ready,
    metrics_do_not_wait_for_an_unresponsive_database,
}

fn job_handler_setup() -> Setup {
    in_process_handler_setup("job", |_| HandlerOutcome::succeeded())
}

async fn all_servers_accept_the_first_token<D: ClusterTestDatabase>() {
    let mut cluster = TestCluster::new(D::create_database_on_shared_server());
    let first = cluster.start_server("server", "", Setup::default()).await;
    assert!(first.inner.first_token().is_some());
    let second = cluster.start_server("server", "", Setup::default()).await;
    assert_eq!(second.inner.first_token(), None);
    for server in [&first, &second] {
        assert_eq!(server.get("/api/v1/nodes").await.json()["nodes"].as_array().map(Vec::len), Some(2));
        assert_eq!(server.call_with_token("pm_wrong", "GET", "/api/v1/nodes", "").await.status, 401);
        let health = server.get("/healthz").await.json();
        assert_eq!(health["store"], json!({"kind": D::STORE_KIND, "reachable": true, "writable": true}));
    }
}

async fn events_reach_handlers_of_another_server<D: ClusterTestDatabase>() {
    let mut cluster = TestCluster::new(D::create_database_on_shared_server());
    let back = cluster.start_server("back", "", job_handler_setup()).await;
    let front = cluster.start_server("front", "", Setup::default()).await;
    let id = front.emit_and_get_task_id(r#"{"type":"job","key":"k"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    front.wait_until_get_returns(&path, |task| task["status"] == "SUCCESS").await;
    assert_eq!(back.get(&path).await.json()["attempt"], 1);
    assert_eq!(front.get("/api/v1/handlers/job").await.status, 200, "all servers know the handler");

    // The server with the handler stops, and starts again later.
    back.inner.stop().await;
    let id = front.emit_and_get_task_id(r#"{"type":"job","key":"k"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let why = front.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["summary"]), (&json!("SCHEDULED"), &json!("no live node can run job")));
    assert_eq!(front.get("/api/v1/handlers/job").await.json()["counts"]["missing"], 0);
    let _back = cluster.start_server("back", "", job_handler_setup()).await;
    front.wait_until_get_returns(&path, |task| task["status"] == "SUCCESS").await;
}

async fn pauses_apply_on_all_servers<D: ClusterTestDatabase>() {
    let mut cluster = TestCluster::new(D::create_database_on_shared_server());
    let (one, other) = (
        cluster.start_server("server", "", job_handler_setup()).await,
        cluster.start_server("server", "", job_handler_setup()).await,
    );
    one.put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(other.emit_and_get_task_id(r#"{"type":"job"}"#).await);
    }
    let why = one.get(&format!("/api/v1/tasks/{}/why", ids[0])).await.json();
    assert!(why["summary"].as_str().expect("a word").contains("lunch"), "{why}");
    for id in &ids {
        assert_eq!(other.get(&format!("/api/v1/tasks/{id}")).await.json()["attempt"], 0);
    }
    other.delete("/api/v1/handlers/job/pause").await;
    for id in &ids {
        one.wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    }
}

async fn a_task_cancelled_on_another_server_is_stopped<D: ClusterTestDatabase>() {
    let mut cluster = TestCluster::new(D::create_database_on_shared_server());
    let stay = "
handlers:
  stay: {run: {command: ['sh', '-c', 'echo $$ > pid; mv pid started; exec sleep 600']}}
event_handlers: {stay: [stay]}
";
    let _back = cluster.start_server("back", stay, Setup::default()).await;
    let front = cluster.start_server("front", "", Setup::default()).await;
    let id = front.emit_and_get_task_id(r#"{"type":"stay"}"#).await;
    let started = cluster.folder.path().join("back/started");
    let file_check = async {
        while !started.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::raw_http_client::TEST_TIMEOUT, file_check).await.expect("the command starts");
    let pid = std::fs::read_to_string(&started).expect("a pid");
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    assert_eq!(front.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let file_check = async {
        while process.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::raw_http_client::TEST_TIMEOUT, file_check)
        .await
        .expect("the command is killed");
    assert_eq!(front.get(&format!("/api/v1/tasks/{id}")).await.json()["status"], "CANCELED");
}

async fn emits_get_503_while_the_database_is_down_and_succeed_afterwards<D: ClusterTestDatabase>() {
    let database = D::start_own_server();
    let mut cluster = TestCluster::new(database.url());
    let server = cluster.start_server("server", "", job_handler_setup()).await;
    let first = server.emit(r#"{"type":"job"}"#).await;
    database.kill_server();
    let refused = server.post("/api/v1/events", r#"{"type":"job"}"#).await;
    assert_eq!((refused.checked_problem_status(), refused.header("retry-after")), (503, Some("1")));
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("not known") && detail.contains("idempotency key"), "{detail}");
    assert_eq!(server.get("/readyz").await.checked_problem_status(), 503);
    let health = server.get("/healthz").await;
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("degraded")));
    assert_eq!(health.json()["store"]["reachable"], false);

    database.restart_server();
    server.wait_until_get_returns("/healthz", |health| health["status"] == "ok").await;
    let mut response = server.post("/api/v1/events", r#"{"type":"job"}"#).await;
    while response.status == 503 {
        response = server.post("/api/v1/events", r#"{"type":"job"}"#).await;
    }
    let id = response.json()["events"][0]["tasks"][0].as_str().expect("a task").to_owned();
    server.wait_until_get_returns(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    assert_eq!(
        server.get(&format!("/api/v1/events/{first}")).await.status,
        200,
        "the acknowledged event is stored"
    );
}

async fn a_store_that_cannot_be_written_is_not_ready<D: ClusterTestDatabase>() {
    let database = D::start_own_server();
    let mut cluster = TestCluster::new(database.url());
    let server = cluster.start_server("server", "", job_handler_setup()).await;
    server.emit(r#"{"type":"job"}"#).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    database.start_refusing_writes();
    assert_eq!(server.post("/api/v1/events", r#"{"type":"job"}"#).await.checked_problem_status(), 503);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.checked_problem_status(), 503);
    let detail = ready.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.starts_with("the store cannot be written: commits have failed"), "{detail}");
    let health = server.get("/healthz").await.json();
    assert_eq!(health["store"], json!({"kind": D::STORE_KIND, "reachable": true, "writable": false}));
    // Without any request, the node's heartbeats show that the store accepts writes again.
    database.stop_refusing_writes();
    server.wait_until_get_returns("/healthz", |health| health["status"] == "ok").await;
    assert_eq!(server.get("/readyz").await.status, 200);
}

/// The value of a metric without labels.
fn find_metric_value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
}

async fn metrics_do_not_wait_for_an_unresponsive_database<D: ClusterTestDatabase>() {
    let database = D::start_own_server();
    let proxy = FaultProxy::start(database.server_address()).expect("a proxy");
    let mut cluster = TestCluster::new(database.url_through_proxy(&proxy));
    let server = cluster.start_server("server", "", job_handler_setup()).await;
    server.put("/api/v1/handlers/job/pause", "{}").await;
    server.emit(r#"{"type":"job"}"#).await;
    let text = server.get("/metrics").await.text();
    assert_eq!(find_metric_value(&text, "pointsman_backlog_read").as_deref(), Some("1"));
    assert!(text.contains("pointsman_backlog_tasks{"), "{text}");
    proxy.set_frozen(true);
    // The limit is far below the timeout of a read from the database.
    let scrape = tokio::time::timeout(std::time::Duration::from_secs(10), server.get("/metrics")).await;
    let text = scrape.expect("in time").text();
    proxy.set_frozen(false);
    assert_eq!(find_metric_value(&text, "pointsman_backlog_read").as_deref(), Some("0"));
    assert!(
        !text.contains("pointsman_backlog_tasks{") && find_metric_value(&text, "pointsman_slots").is_some(),
        "{text}"
    );
}
