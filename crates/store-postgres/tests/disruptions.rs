//! Disruptions of a store by the network, the server and other sessions at critical moments.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod single_database;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use pointsman_core::journal::Retention;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::fixture::*;
use pointsman_testing::FaultProxy;
use single_database::SingleDatabase;

const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: Duration::from_secs(1) };

/// Returns the SQL of a trigger that sleeps while the table `slow` has a row; `create_trigger` says when it fires.
fn slow_trigger_sql(create_trigger: &str) -> String {
    format!(
        "CREATE TABLE public.slow (seconds int);
         CREATE FUNCTION public.sleep_if_slow() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(seconds) FROM public.slow; RETURN NULL; END';
         {create_trigger} EXECUTE FUNCTION public.sleep_if_slow()"
    )
}

/// The same database through a proxy.
fn through_proxy(database: &SingleDatabase) -> (FaultProxy, SingleDatabase) {
    let (login, location) = database.url.split_once('@').unwrap();
    let (address, name) = location.split_once('/').unwrap();
    let proxy = FaultProxy::start(address.parse().unwrap()).unwrap();
    let url = format!("{login}@{}/{name}", proxy.address());
    (proxy, SingleDatabase { url })
}

fn query_number(database: &SingleDatabase, sql: &str) -> i64 {
    database.query(sql)[0][0].parse().unwrap()
}

fn count_sleeping_statements(database: &SingleDatabase) -> i64 {
    query_number(
        database,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
    )
}

async fn wait_until_statement_sleeps(database: &SingleDatabase) {
    while count_sleeping_statements(database) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_claimed_in_a_commit_with_a_lost_reply_is_run() {
    let direct = SingleDatabase::new();
    let (proxy, proxied) = through_proxy(&direct);
    let mut fixture = StoreFixture::new(&proxied, RegistrationBuilder::single_handler()).await;
    let at_commit =
        "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON pointsman.task DEFERRABLE INITIALLY DEFERRED
                     FOR EACH ROW";
    direct.query(&slow_trigger_sql(at_commit));
    let task = fixture.emit(new_event("record").with_key("a")).await.tasks.remove(0);
    direct.query("INSERT INTO slow VALUES (2)");
    let (store, claim, now) = (fixture.store.clone(), fixture.claim_request(1), fixture.now);
    let claiming = tokio::spawn(async move { store.claim_tasks(claim, now).await });
    wait_until_statement_sleeps(&direct).await;
    direct.query("DELETE FROM slow");
    proxy.close_connections();
    assert!(claiming.await.unwrap().is_err(), "the outcome of the claim is unknown");

    // The node sends heartbeats for much longer than a lease.
    let mut claimed = Vec::new();
    for _ in 0..10 {
        fixture.advance_clock(LEASE_SECS / 3);
        fixture.send_heartbeat().await;
        fixture.rescue_tasks().await;
        claimed.extend(fixture.claim(1).await);
    }
    let row = direct.query("SELECT phase, node, fence FROM pointsman.task");
    assert_eq!(claimed.len(), 1, "{task} is locked by a node that does not run it: {row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_expires_after_a_long_range_of_retried_tasks() {
    const TASK_COUNT: usize = 20_500;
    const BATCH_SIZE: usize = 500;
    let database = SingleDatabase::new();
    let mut fixture =
        StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    let mut failures = Vec::new();
    for _ in 0..TASK_COUNT / BATCH_SIZE {
        fixture.emit_copies(BATCH_SIZE, new_event("record")).await;
        let tasks = fixture.claim(BATCH_SIZE).await;
        fixture
            .finish_attempts(tasks.iter().map(|task| finished_attempt(task, permanent_failure())).collect())
            .await;
        failures.extend(tasks.into_iter().map(|task| task.seq));
    }
    for batch in failures.chunks(BATCH_SIZE) {
        assert!(
            expect_ok(fixture.store.retry_tasks(batch.to_vec(), fixture.now).await).iter().all(Result::is_ok)
        );
        let tasks = fixture.claim(BATCH_SIZE).await;
        fixture.finish_attempts(tasks.iter().map(|task| finished_attempt(task, success())).collect()).await;
    }
    assert_eq!(query_number(&database, "SELECT count(*) FROM pointsman.history"), TASK_COUNT as i64);
    fixture.advance_clock(86_400);
    let mut pruned = 0;
    for _ in 0..10 {
        pruned += fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_NOTHING).await.deleted_task_count;
    }
    assert_eq!(
        pruned,
        TASK_COUNT as u64,
        "{:?}",
        database.query(
            "SELECT last_archive_number, expired_archive_number, archived_tasks FROM pointsman.last_commit"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_statement_releases_the_write_lock() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    let other = database.open_empty(fixture.now).await;
    database
        .query(&slow_trigger_sql("CREATE TRIGGER slow AFTER INSERT ON pointsman.journal FOR EACH STATEMENT"));
    database.query("INSERT INTO slow VALUES (50)");
    let timed_out =
        fixture.store.append(vec![new_emit_batch(vec![new_event("record")])], None, fixture.now).await;
    assert!(timed_out.is_err(), "the writer waited longer than its timeout");
    database.query("DELETE FROM slow");
    let next = other.append(vec![new_emit_batch(vec![new_event("record")])], None, fixture.now).await;
    assert!(
        next.is_ok() && count_sleeping_statements(&database) == 0,
        "{} statements still run, and the next emit: {:?}",
        count_sleeping_statements(&database),
        next.err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_serialized_whatever_the_default_isolation() {
    let database = SingleDatabase::new();
    let name = database.url.rsplit('/').next().unwrap().to_string();
    database.query(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"));
    let fixture = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    let others = join_all((0..5).map(|_| database.open_empty(fixture.now))).await;
    let count_failed_emits = |store: Arc<dyn Store>| async move {
        let mut failed = 0;
        for _ in 0..100 {
            let appended =
                store.append(vec![new_emit_batch(vec![new_event("record")])], None, START_TIME).await;
            failed += usize::from(appended.is_err());
        }
        failed
    };
    let nodes = others.into_iter().chain([fixture.store.clone()]);
    let failed = join_all(nodes.map(|store| tokio::spawn(count_failed_emits(store)))).await;
    let failed: Vec<usize> = failed.into_iter().map(Result::unwrap).collect();
    assert_eq!(failed, [0; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_are_dropped_when_the_server_has_lost_commits() {
    const RESTORED_TABLES: [&str; 4] = ["commit_version", "queue", "task", "journal"];
    let database = SingleDatabase::new();
    let fixture =
        StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit_copies(3, new_event("record")).await;
    for table in RESTORED_TABLES {
        database.query(&format!("CREATE TABLE public.{table} AS SELECT * FROM pointsman.{table}"));
    }
    for _ in 0..2 {
        fixture.emit(new_event("record")).await;
    }
    let mut restore_sql = "BEGIN; SELECT FROM pointsman.write_lock FOR UPDATE;".to_string();
    for table in RESTORED_TABLES.iter().rev() {
        restore_sql += &format!("DELETE FROM pointsman.{table};");
    }
    for table in RESTORED_TABLES {
        restore_sql += &format!("INSERT INTO pointsman.{table} SELECT * FROM public.{table};");
    }
    restore_sql += "COMMIT; SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'pointsman'";
    database.query(&restore_sql);
    fixture.emit(new_event("record")).await;
    let ready_count = query_number(&database, "SELECT sum(ready)::bigint FROM pointsman.queue");
    assert_eq!(ready_count, query_number(&database, "SELECT count(*) FROM pointsman.task WHERE phase = 3"));
}

/// Returns the number of pages that a read of `pointsman.last_commit` accesses.
fn count_pages_read_from_last_commit(database: &SingleDatabase) -> i64 {
    let plan = database
        .query("SET enable_seqscan = off; EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM pointsman.last_commit");
    // The pages that planning reads in the catalogs depend on what else the server has just done.
    let lines = plan.iter().flatten().take_while(|line| !line.starts_with("Planning"));
    let hits = lines.filter_map(|line| line.split("shared hit=").nth(1)?.split(' ').next()?.parse().ok());
    hits.max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_snapshot_does_not_slow_commits() {
    let database = SingleDatabase::new();
    let fixture =
        StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    let (snapshot, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    snapshot
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pointsman.task")
        .await
        .unwrap();
    fixture.emit(new_event("record")).await;
    let before = count_pages_read_from_last_commit(&database);
    for _ in 0..1_000 {
        fixture.emit(new_event("record")).await;
    }
    let page_count = query_number(&database, "SELECT pg_relation_size('pointsman.commit_version') / 8192");
    assert!(page_count > 10, "all old versions are kept for the snapshot, in {page_count} pages");
    assert!(
        count_pages_read_from_last_commit(&database) <= before + 3,
        "{before} pages before, {} after",
        count_pages_read_from_last_commit(&database)
    );
    snapshot.batch_execute("COMMIT").await.unwrap();
}
