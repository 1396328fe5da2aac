//! Append-only tables are partitioned, and expired partitions are dropped.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::journal::Retention;
use pointsman_core::store::{FinishedAttempt, Store};
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::fixture::*;
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::PostgresAdmin;

/// A database with partitions so small that a test fills several.
struct SmallPartitionDatabase {
    server: &'static PostgresAdmin,
    open_store: Mutex<Option<(String, PostgresStore)>>,
}

const ROWS_PER_PARTITION: u64 = 100;
const DAY_SECONDS: u64 = 86_400;
const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: std::time::Duration::from_secs(1) };

impl SmallPartitionDatabase {
    fn new() -> Self {
        Self { server: pointsman_testing::shared_postgres().expect("a server"), open_store: Mutex::default() }
    }

    fn database_name(&self) -> String {
        let opened = self.open_store.lock().expect("nobody has panicked");
        let (url, _) = opened.as_ref().expect("a store is open");
        url.rsplit('/').next().expect("a name").into()
    }

    fn query_number(&self, sql: &str) -> u64 {
        let rows = self.server.query(&self.database_name(), sql).expect("the query succeeds");
        rows[0][0].as_deref().expect("a number").parse().expect("a number")
    }

    fn count_partitions(&self, table: &str) -> u64 {
        self.query_number(&format!(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'pointsman.{table}'::regclass"
        ))
    }

    async fn drop_expired_partitions(&self) -> u64 {
        let store =
            self.open_store.lock().expect("nobody has panicked").as_ref().map(|(_, store)| store.clone());
        store
            .expect("a store is open")
            .database()
            .drop_expired_partitions()
            .await
            .expect("partitions can be dropped")
    }
}

impl Drop for SmallPartitionDatabase {
    fn drop(&mut self) {
        if self.open_store.lock().expect("nobody has panicked").is_some() {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database_name());
            let _ = self.server.query("postgres", &drop);
        }
    }
}

#[async_trait]
impl Harness for SmallPartitionDatabase {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        let url = self.server.create_database().expect("a database");
        let store = Postgres::open(&url, now).await.expect("it opens");
        store.close();
        *self.open_store.lock().expect("nobody has panicked") = Some((url.clone(), store));
        let setting = format!("INSERT INTO pointsman.meta VALUES ('partition_rows', '{ROWS_PER_PARTITION}')");
        self.server.query(&self.database_name(), &setting).expect("the setting is written");
        let store = Postgres::open(&url, now).await.expect("it opens");
        *self.open_store.lock().expect("nobody has panicked") = Some((url, store.clone()));
        Arc::new(store)
    }

    async fn reopen(&self, store: Arc<dyn Store>, _now: Timestamp) -> Arc<dyn Store> {
        store
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_added_as_rows_arrive() {
    let database = SmallPartitionDatabase::new();
    let fixture = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    for _ in 0..10 {
        fixture.emit_copies(100, new_event("record").with_key("a")).await;
        fixture.emit_copies(1, new_event("record")).await;
    }
    fixture.run_all_ready_tasks().await;
    assert!(
        (11..=13).contains(&database.count_partitions("journal")),
        "{} partitions",
        database.count_partitions("journal")
    );
    assert!(
        (11..=13).contains(&database.count_partitions("history")),
        "{} partitions",
        database.count_partitions("history")
    );
    assert_eq!(fixture.read_all_events().await.len(), 1010);
    assert_eq!(database.drop_expired_partitions().await, 0, "no partition has expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_partitions_are_dropped_and_rows_of_unfinished_tasks_stay() {
    let database = SmallPartitionDatabase::new();
    let mut fixture = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    let value = "{\"text\":\"kept\"}";
    let kept = fixture.emit(new_event("record").with_key("kept").with_value(value)).await;
    let task = fixture.claim_one().await;
    let logs = vec![info_log_line(fixture.now, "a log line of an unfinished task")];
    fixture
        .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(&task, retryable_failure()) })
        .await
        .expect("ours");
    for _ in 0..10 {
        fixture.emit_copies(100, new_event("record").with_key("expiring")).await;
    }
    fixture.advance_clock(1);
    for _ in 0..1000 {
        let task = fixture.claim_one().await;
        assert_eq!(task.event().key.as_ref().map(|key| key.as_str()), Some("expiring"));
        fixture.succeed(&task).await;
        fixture.now = fixture.now.minus(std::time::Duration::from_micros(1));
    }
    let before = [
        database.count_partitions("journal"),
        database.count_partitions("history"),
        database.count_partitions("log"),
    ];
    fixture.advance_clock(2 * DAY_SECONDS);
    fixture.send_heartbeat().await;
    let pruned = fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    assert_eq!((pruned.deleted_event_count, pruned.deleted_task_count), (1001, 1000));
    assert!(database.drop_expired_partitions().await >= 9 + 9 + 9);
    let after = [
        database.count_partitions("journal"),
        database.count_partitions("history"),
        database.count_partitions("log"),
    ];
    assert!(before.iter().zip(&after).all(|(before, after)| *after + 8 <= *before), "{before:?} {after:?}");
    assert_eq!(database.query_number("SELECT count(*) FROM pointsman.journal_retained"), 1);

    assert_eq!(
        expect_ok(fixture.store.read_logs(&kept.tasks[0], 0, 10).await).expect("a log").lines.len(),
        1
    );
    assert_eq!(fixture.read_task(&kept.tasks[0]).await.attempts.len(), 1);
    let task = fixture.claim_one().await;
    assert_eq!((task.id.clone(), task.event().value.as_str()), (kept.tasks[0].clone(), value));
    fixture.succeed(&task).await;
    fixture.emit_copies(1, new_event("record")).await;
    fixture.advance_clock(2 * DAY_SECONDS);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    database.drop_expired_partitions().await;
    assert_eq!(
        database.query_number("SELECT count(*) FROM pointsman.journal_retained"),
        0,
        "the retained event is deleted once its task has ended"
    );
    assert_eq!(database.query_number("SELECT count(*) FROM pointsman.log_retained"), 0);
}
