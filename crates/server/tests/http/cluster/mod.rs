//! Several servers on one database, of each kind that they can share.

mod database;
mod redis;

use pointsman_engine::{Outcome, Setup};
use pointsman_testing::Proxy;
use serde_json::json;

use crate::house::{House, handler};
use database::Database;

/// Servers on one database, each with a folder of its own.
struct Town {
    url: String,
    folder: tempfile::TempDir,
    token: String,
}

impl Town {
    fn on(url: String) -> Self {
        Self { url, folder: tempfile::tempdir().expect("a folder"), token: String::new() }
    }

    /// Starts a server whose configuration has this name. Only the first of all is told the token.
    async fn house(&mut self, name: &str, more: &str, program: Setup) -> House {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let url = &self.url;
        let yaml =
            format!("store: '{url}'\nname: {name}\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n{more}");
        let mut house = House::at(&folder, &yaml, program).await;
        match self.token.is_empty() {
            true => self.token = house.token.clone(),
            false => house.token = self.token.clone(),
        }
        house
    }
}

/// Runs each of these on every kind of database.
macro_rules! on_each {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres { $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test::<super::database::Postgres>().await;
            }
        )+ }
        mod on_redis { $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test::<super::database::Redis>().await;
            }
        )+ }
    };
}

on_each! {
    all_accept_the_token_that_the_first_was_told,
    an_event_reaches_a_handler_that_another_server_has,
    what_one_holds_is_held_on_all,
    a_task_that_is_cancelled_elsewhere_is_stopped_where_it_runs,
    while_the_database_is_away_emits_are_put_off_and_afterwards_they_are_not,
    a_store_that_cannot_be_written_is_not_ready,
    metrics_do_not_wait_for_a_database_that_is_silent,
}

fn job() -> Setup {
    handler("job", |_| Outcome::done())
}

async fn all_accept_the_token_that_the_first_was_told<D: Database>() {
    let mut town = Town::on(D::shared());
    let first = town.house("server", "", Setup::default()).await;
    assert!(first.server.first_token().is_some());
    let second = town.house("server", "", Setup::default()).await;
    assert_eq!(second.server.first_token(), None);
    for house in [&first, &second] {
        assert_eq!(house.get("/api/v1/nodes").await.json()["nodes"].as_array().map(Vec::len), Some(2));
        assert_eq!(house.call_as("pm_wrong", "GET", "/api/v1/nodes", "").await.status, 401);
        let health = house.get("/healthz").await.json();
        assert_eq!(health["store"], json!({"kind": D::KIND, "reachable": true, "writable": true}));
    }
}

async fn an_event_reaches_a_handler_that_another_server_has<D: Database>() {
    let mut town = Town::on(D::shared());
    let back = town.house("back", "", job()).await;
    let front = town.house("front", "", Setup::default()).await;
    let id = front.task_of(r#"{"type":"job","key":"k"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    front.until(&path, |task| task["status"] == "SUCCESS").await;
    assert_eq!(back.get(&path).await.json()["attempt"], 1);
    assert_eq!(front.get("/api/v1/handlers/job").await.status, 200, "all know what there is");

    // The one that has it goes, and comes back later.
    back.server.stop().await;
    let id = front.task_of(r#"{"type":"job","key":"k"}"#).await;
    let path = format!("/api/v1/tasks/{id}");
    let why = front.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["summary"]), (&json!("SCHEDULED"), &json!("no live node can run job")));
    assert_eq!(front.get("/api/v1/handlers/job").await.json()["counts"]["missing"], 0);
    let _back = town.house("back", "", job()).await;
    front.until(&path, |task| task["status"] == "SUCCESS").await;
}

async fn what_one_holds_is_held_on_all<D: Database>() {
    let mut town = Town::on(D::shared());
    let (one, other) = (town.house("server", "", job()).await, town.house("server", "", job()).await);
    one.put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(other.task_of(r#"{"type":"job"}"#).await);
    }
    let why = one.get(&format!("/api/v1/tasks/{}/why", ids[0])).await.json();
    assert!(why["summary"].as_str().expect("a word").contains("lunch"), "{why}");
    for id in &ids {
        assert_eq!(other.get(&format!("/api/v1/tasks/{id}")).await.json()["attempt"], 0);
    }
    other.delete("/api/v1/handlers/job/pause").await;
    for id in &ids {
        one.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    }
}

async fn a_task_that_is_cancelled_elsewhere_is_stopped_where_it_runs<D: Database>() {
    let mut town = Town::on(D::shared());
    let stay = "
handlers:
  stay: {run: {command: ['sh', '-c', 'echo $$ > pid; mv pid begun; exec sleep 600']}}
event_handlers: {stay: [stay]}
";
    let _back = town.house("back", stay, Setup::default()).await;
    let front = town.house("front", "", Setup::default()).await;
    let id = front.task_of(r#"{"type":"stay"}"#).await;
    let begun = town.folder.path().join("back/begun");
    let look = async {
        while !begun.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::HANGS, look).await.expect("it begins");
    let pid = std::fs::read_to_string(&begun).expect("a pid");
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    assert_eq!(front.post(&format!("/api/v1/tasks/{id}/cancel"), "").await.status, 200);
    let look = async {
        while process.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::HANGS, look).await.expect("it is stopped");
    assert_eq!(front.get(&format!("/api/v1/tasks/{id}")).await.json()["status"], "CANCELED");
}

async fn while_the_database_is_away_emits_are_put_off_and_afterwards_they_are_not<D: Database>() {
    let database = D::own();
    let mut town = Town::on(database.url());
    let house = town.house("server", "", job()).await;
    let first = house.emit(r#"{"type":"job"}"#).await;
    database.kill();
    let refused = house.post("/api/v1/events", r#"{"type":"job"}"#).await;
    assert_eq!((refused.problem(), refused.header("retry-after")), (503, Some("1")));
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("not known") && detail.contains("idempotency key"), "{detail}");
    assert_eq!(house.get("/readyz").await.problem(), 503);
    let health = house.get("/healthz").await;
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("degraded")));
    assert_eq!(health.json()["store"]["reachable"], false);

    database.start_again();
    house.until("/healthz", |health| health["status"] == "ok").await;
    let mut answer = house.post("/api/v1/events", r#"{"type":"job"}"#).await;
    while answer.status == 503 {
        answer = house.post("/api/v1/events", r#"{"type":"job"}"#).await;
    }
    let id = answer.json()["events"][0]["tasks"][0].as_str().expect("a task").to_owned();
    house.until(&format!("/api/v1/tasks/{id}"), |task| task["status"] == "SUCCESS").await;
    assert_eq!(house.get(&format!("/api/v1/events/{first}")).await.status, 200, "what was answered is there");
}

async fn a_store_that_cannot_be_written_is_not_ready<D: Database>() {
    let database = D::own();
    let mut town = Town::on(database.url());
    let house = town.house("server", "", job()).await;
    house.emit(r#"{"type":"job"}"#).await;
    assert_eq!(house.get("/readyz").await.status, 200);
    database.refuse_writes();
    assert_eq!(house.post("/api/v1/events", r#"{"type":"job"}"#).await.problem(), 503);
    let ready = house.get("/readyz").await;
    assert_eq!(ready.problem(), 503);
    let detail = ready.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.starts_with("the store cannot be written: commits have failed"), "{detail}");
    let health = house.get("/healthz").await.json();
    assert_eq!(health["store"], json!({"kind": D::KIND, "reachable": true, "writable": false}));
    // Without any request, the node's own signs of life show that it can be written again.
    database.take_writes();
    house.until("/healthz", |health| health["status"] == "ok").await;
    assert_eq!(house.get("/readyz").await.status, 200);
}

/// The value of a metric without labels.
fn gauge(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
}

async fn metrics_do_not_wait_for_a_database_that_is_silent<D: Database>() {
    let database = D::own();
    let proxy = Proxy::start(database.address()).expect("a wire");
    let mut town = Town::on(database.url_through(&proxy));
    let house = town.house("server", "", job()).await;
    house.put("/api/v1/handlers/job/pause", "{}").await;
    house.emit(r#"{"type":"job"}"#).await;
    let text = house.get("/metrics").await.text();
    assert_eq!(gauge(&text, "pointsman_backlog_read").as_deref(), Some("1"));
    assert!(text.contains("pointsman_backlog_tasks{"), "{text}");
    proxy.freeze(true);
    // Far less than what a read waits for.
    let scrape = tokio::time::timeout(std::time::Duration::from_secs(10), house.get("/metrics")).await;
    let text = scrape.expect("in time").text();
    proxy.freeze(false);
    assert_eq!(gauge(&text, "pointsman_backlog_read").as_deref(), Some("0"));
    assert!(
        !text.contains("pointsman_backlog_tasks{") && gauge(&text, "pointsman_slots").is_some(),
        "{text}"
    );
}
