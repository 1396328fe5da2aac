//! Disruptions by networks, servers and other sessions at the worst moment.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod single_database;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use pointsman_core::journal::Retention;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::fixture::*;
use pointsman_testing::Proxy;
use single_database::SingleDatabase;

const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: Duration::from_secs(1) };

/// SQL of a trigger that sleeps while the table `slow` has a row; `when` says when it fires.
fn slow_trigger_sql(when: &str) -> String {
    format!(
        "CREATE TABLE public.slow (seconds int);
         CREATE FUNCTION public.nap() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(seconds) FROM public.slow; RETURN NULL; END';
         {when} EXECUTE FUNCTION public.nap()"
    )
}

/// The same database through a proxy.
fn through_proxy(database: &SingleDatabase) -> (Proxy, SingleDatabase) {
    let (login, location) = database.url.split_once('@').unwrap();
    let (address, name) = location.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
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
    let (proxy, through) = through_proxy(&direct);
    let mut world = StoreFixture::new(&through, RegistrationBuilder::single_handler()).await;
    let at_commit =
        "CREATE CONSTRAINT TRIGGER nap AFTER UPDATE ON pointsman.task DEFERRABLE INITIALLY DEFERRED
                     FOR EACH ROW";
    direct.query(&slow_trigger_sql(at_commit));
    let task = world.emit(new_event("record").with_key("a")).await.tasks.remove(0);
    direct.query("INSERT INTO slow VALUES (2)");
    let (store, claim, now) = (world.store.clone(), world.claim_request(1), world.now);
    let claiming = tokio::spawn(async move { store.claim_tasks(claim, now).await });
    wait_until_statement_sleeps(&direct).await;
    direct.query("DELETE FROM slow");
    proxy.close_connections();
    assert!(claiming.await.unwrap().is_err(), "nobody knows what became of the claim");

    // The node continues its heartbeats for much longer than a lease.
    let mut got = Vec::new();
    for _ in 0..10 {
        world.advance_clock(LEASE_SECS / 3);
        world.heartbeat().await;
        world.rescue_tasks().await;
        got.extend(world.claim(1).await);
    }
    let row = direct.query("SELECT phase, node, fence FROM pointsman.task");
    assert_eq!(got.len(), 1, "{task} is held by a node that does not know it: {row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_with_a_long_gap_expires() {
    const TASKS: usize = 20_500;
    const BATCH: usize = 500;
    let database = SingleDatabase::new();
    let mut world =
        StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    let mut failures = Vec::new();
    for _ in 0..TASKS / BATCH {
        world.emit_many(BATCH, new_event("record")).await;
        let tasks = world.claim(BATCH).await;
        world
            .finish_attempts(tasks.iter().map(|task| finished_attempt(task, permanent_failure())).collect())
            .await;
        failures.extend(tasks.into_iter().map(|task| task.seq));
    }
    for batch in failures.chunks(BATCH) {
        assert!(
            expect_ok(world.store.retry_tasks(batch.to_vec(), world.now).await).iter().all(Result::is_ok)
        );
        let tasks = world.claim(BATCH).await;
        world.finish_attempts(tasks.iter().map(|task| finished_attempt(task, success())).collect()).await;
    }
    assert_eq!(query_number(&database, "SELECT count(*) FROM pointsman.history"), TASKS as i64);
    world.advance_clock(86_400);
    let mut gone = 0;
    for _ in 0..10 {
        gone += world.prune(KEEP_EVERYTHING, KEEP_NOTHING).await.tasks;
    }
    assert_eq!(
        gone,
        TASKS as u64,
        "{:?}",
        database.query(
            "SELECT last_archive_number, expired_archive_number, archived_tasks FROM pointsman.sequencer"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_statement_releases_the_write_lock() {
    let database = SingleDatabase::new();
    let world = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    let other = database.open_empty(world.now).await;
    database
        .query(&slow_trigger_sql("CREATE TRIGGER nap AFTER INSERT ON pointsman.journal FOR EACH STATEMENT"));
    database.query("INSERT INTO slow VALUES (50)");
    let lost = world.store.append(vec![emit_batch(vec![new_event("record")])], None, world.now).await;
    assert!(lost.is_err(), "it takes longer than a writer waits");
    database.query("DELETE FROM slow");
    let next = other.append(vec![emit_batch(vec![new_event("record")])], None, world.now).await;
    assert!(
        next.is_ok() && count_sleeping_statements(&database) == 0,
        "{} still at it, and the next: {:?}",
        count_sleeping_statements(&database),
        next.err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_serialized_whatever_the_default_isolation() {
    let database = SingleDatabase::new();
    let name = database.url.rsplit('/').next().unwrap().to_string();
    database.query(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"));
    let world = StoreFixture::new(&database, RegistrationBuilder::single_handler()).await;
    let others = join_all((0..5).map(|_| database.open_empty(world.now))).await;
    let many = |store: Arc<dyn Store>| async move {
        let mut failed = 0;
        for _ in 0..100 {
            let appended = store.append(vec![emit_batch(vec![new_event("record")])], None, START_TIME).await;
            failed += usize::from(appended.is_err());
        }
        failed
    };
    let nodes = others.into_iter().chain([world.store.clone()]);
    let failed = join_all(nodes.map(|store| tokio::spawn(many(store)))).await;
    let failed: Vec<usize> = failed.into_iter().map(Result::unwrap).collect();
    assert_eq!(failed, [0; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_are_dropped_when_the_server_has_lost_commits() {
    const TABLES: [&str; 4] = ["commit_version", "queue", "task", "journal"];
    let database = SingleDatabase::new();
    let world = StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    world.emit_many(3, new_event("record")).await;
    for table in TABLES {
        database.query(&format!("CREATE TABLE public.{table} AS SELECT * FROM pointsman.{table}"));
    }
    for _ in 0..2 {
        world.emit(new_event("record")).await;
    }
    let mut back = "BEGIN; SELECT FROM pointsman.write_lock FOR UPDATE;".to_string();
    for table in TABLES.iter().rev() {
        back += &format!("DELETE FROM pointsman.{table};");
    }
    for table in TABLES {
        back += &format!("INSERT INTO pointsman.{table} SELECT * FROM public.{table};");
    }
    back += "COMMIT; SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'pointsman'";
    database.query(&back);
    world.emit(new_event("record")).await;
    let counted = query_number(&database, "SELECT sum(ready)::bigint FROM pointsman.queue");
    assert_eq!(counted, query_number(&database, "SELECT count(*) FROM pointsman.task WHERE phase = 3"));
}

/// The number of pages that reading the sequencer touches.
fn count_sequencer_pages(database: &SingleDatabase) -> i64 {
    let plan = database
        .query("SET enable_seqscan = off; EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM pointsman.sequencer");
    let lines = plan.iter().flatten();
    let hits = lines.filter_map(|line| line.split("shared hit=").nth(1)?.split(' ').next()?.parse().ok());
    hits.max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_snapshot_does_not_slow_commits() {
    let database = SingleDatabase::new();
    let world = StoreFixture::new(&database, RegistrationBuilder::single_handler().unordered("index")).await;
    let (snapshot, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    snapshot
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pointsman.task")
        .await
        .unwrap();
    world.emit(new_event("record")).await;
    let before = count_sequencer_pages(&database);
    for _ in 0..1_000 {
        world.emit(new_event("record")).await;
    }
    let dead = query_number(&database, "SELECT pg_relation_size('pointsman.commit_version') / 8192");
    assert!(dead > 10, "all old versions are kept for the snapshot, in {dead} pages");
    assert!(
        count_sequencer_pages(&database) <= before + 3,
        "{before} pages before, {} after",
        count_sequencer_pages(&database)
    );
    snapshot.batch_execute("COMMIT").await.unwrap();
}
