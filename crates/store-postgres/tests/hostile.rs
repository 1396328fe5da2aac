//! What a wire, a server and a neighbour can do to a store at the worst moment.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod one;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use one::One;
use pointsman_core::journal::Retention;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_conformance::world::*;
use pointsman_testing::Proxy;

const NOTHING: Retention = Retention { count: 0, age: Duration::from_secs(1) };

/// A trigger that sleeps while the table `slow` has a row, at the moment that `when` says.
fn slow(when: &str) -> String {
    format!(
        "CREATE TABLE public.slow (seconds int);
         CREATE FUNCTION public.nap() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(seconds) FROM public.slow; RETURN NULL; END';
         {when} EXECUTE FUNCTION public.nap()"
    )
}

/// The same database through a wire that can be cut.
fn through(one: &One) -> (Proxy, One) {
    let (login, place) = one.url.split_once('@').unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let url = format!("{login}@{}/{name}", proxy.address());
    (proxy, One { url })
}

fn number(one: &One, sql: &str) -> i64 {
    one.ask(sql)[0][0].parse().unwrap()
}

fn sleepers(one: &One) -> i64 {
    number(
        one,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
    )
}

async fn until_one_sleeps(one: &One) {
    while sleepers(one) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_claimed_in_a_commit_whose_answer_was_lost_is_run_by_somebody() {
    let direct = One::new();
    let (proxy, wired) = through(&direct);
    let mut world = World::new(&wired, Plan::simple()).await;
    let at_commit =
        "CREATE CONSTRAINT TRIGGER nap AFTER UPDATE ON pointsman.task DEFERRABLE INITIALLY DEFERRED
                     FOR EACH ROW";
    direct.ask(&slow(at_commit));
    let task = world.emit(event("record").key("a")).await.tasks.remove(0);
    direct.ask("INSERT INTO slow VALUES (2)");
    let (store, claim, now) = (world.store.clone(), world.asking(1), world.now);
    let claiming = tokio::spawn(async move { store.claim(claim, now).await });
    until_one_sleeps(&direct).await;
    direct.ask("DELETE FROM slow");
    proxy.cut();
    assert!(claiming.await.unwrap().is_err(), "nobody knows what became of the claim");

    // The node lives on, and says so, for much longer than a lease.
    let mut got = Vec::new();
    for _ in 0..10 {
        world.tick(LEASE / 3);
        world.heartbeat().await;
        world.rescue().await;
        got.extend(world.claim(1).await);
    }
    let row = direct.ask("SELECT phase, node, fence FROM pointsman.task");
    assert_eq!(got.len(), 1, "{task} is held by a node that does not know it: {row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_with_a_long_hole_is_forgotten_all_the_same() {
    const MANY: usize = 20_500;
    const PIECE: usize = 500;
    let one = One::new();
    let mut world = World::new(&one, Plan::simple().free("index")).await;
    let mut failures = Vec::new();
    for _ in 0..MANY / PIECE {
        world.emit_many(PIECE, event("record")).await;
        let tasks = world.claim(PIECE).await;
        world.end_all(tasks.iter().map(|task| ending(task, failed_for_good())).collect()).await;
        failures.extend(tasks.into_iter().map(|task| task.seq));
    }
    for piece in failures.chunks(PIECE) {
        assert!(must(world.store.retry(piece.to_vec(), world.now).await).iter().all(Result::is_ok));
        let tasks = world.claim(PIECE).await;
        world.end_all(tasks.iter().map(|task| ending(task, succeeded())).collect()).await;
    }
    assert_eq!(number(&one, "SELECT count(*) FROM pointsman.history"), MANY as i64);
    world.tick(86_400);
    let mut gone = 0;
    for _ in 0..10 {
        gone += world.prune(EVERYTHING, NOTHING).await.tasks;
    }
    assert_eq!(gone, MANY as u64, "{:?}", one.ask("SELECT archived, hidden, ended FROM pointsman.sequencer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_waits_for_any_more_does_not_keep_the_right_to_write() {
    let one = One::new();
    let world = World::new(&one, Plan::simple()).await;
    let other = one.fresh(world.now).await;
    one.ask(&slow("CREATE TRIGGER nap AFTER INSERT ON pointsman.journal FOR EACH STATEMENT"));
    one.ask("INSERT INTO slow VALUES (50)");
    let lost = world.store.append(vec![emission(vec![event("record")])], None, world.now).await;
    assert!(lost.is_err(), "it takes longer than a writer waits");
    one.ask("DELETE FROM slow");
    let next = other.append(vec![emission(vec![event("record")])], None, world.now).await;
    assert!(
        next.is_ok() && sleepers(&one) == 0,
        "{} still at it, and the next: {:?}",
        sleepers(&one),
        next.err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_one_after_the_other_whatever_isolation_the_database_prefers() {
    let one = One::new();
    let name = one.url.rsplit('/').next().unwrap().to_string();
    one.ask(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"));
    let world = World::new(&one, Plan::simple()).await;
    let others = join_all((0..5).map(|_| one.fresh(world.now))).await;
    let many = |store: Arc<dyn Store>| async move {
        let mut failed = 0;
        for _ in 0..100 {
            let appended = store.append(vec![emission(vec![event("record")])], None, BEGINNING).await;
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
async fn a_server_that_has_lost_its_last_commits_is_not_taken_for_the_one_that_was_known() {
    const TABLES: [&str; 4] = ["version", "queue", "task", "journal"];
    let one = One::new();
    let world = World::new(&one, Plan::simple().free("index")).await;
    world.emit_many(3, event("record")).await;
    for table in TABLES {
        one.ask(&format!("CREATE TABLE public.{table} AS SELECT * FROM pointsman.{table}"));
    }
    for _ in 0..2 {
        world.emit(event("record")).await;
    }
    let mut back = "BEGIN; SELECT FROM pointsman.turn FOR UPDATE;".to_string();
    for table in TABLES.iter().rev() {
        back += &format!("DELETE FROM pointsman.{table};");
    }
    for table in TABLES {
        back += &format!("INSERT INTO pointsman.{table} SELECT * FROM public.{table};");
    }
    back += "COMMIT; SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'pointsman'";
    one.ask(&back);
    world.emit(event("record")).await;
    let counted = number(&one, "SELECT sum(ready)::bigint FROM pointsman.queue");
    assert_eq!(counted, number(&one, "SELECT count(*) FROM pointsman.task WHERE phase = 3"));
}

/// How many pages somebody passes over to learn how far everything has come.
fn pages(one: &One) -> i64 {
    let plan =
        one.ask("SET enable_seqscan = off; EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM pointsman.sequencer");
    let lines = plan.iter().flatten();
    let hits = lines.filter_map(|line| line.split("shared hit=").nth(1)?.split(' ').next()?.parse().ok());
    hits.max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_cost_no_more_while_somebody_holds_an_old_snapshot() {
    let one = One::new();
    let world = World::new(&one, Plan::simple().free("index")).await;
    let (snapshot, connection) = tokio_postgres::connect(&one.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    snapshot
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pointsman.task")
        .await
        .unwrap();
    world.emit(event("record")).await;
    let before = pages(&one);
    for _ in 0..1_000 {
        world.emit(event("record")).await;
    }
    let dead = number(&one, "SELECT pg_relation_size('pointsman.version') / 8192");
    assert!(dead > 10, "all old versions are kept for the snapshot, in {dead} pages");
    assert!(pages(&one) <= before + 3, "{before} pages before, {} after", pages(&one));
    snapshot.batch_execute("COMMIT").await.unwrap();
}
