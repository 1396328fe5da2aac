//! Connections that end while nobody uses them, and transactions that break off in the middle.

use std::time::Duration;

use pointsman_core::store::{Deed, Ended, Ending, Journal, Registry, Store, StoreError};
use pointsman_core::{Rule, RuleKind};
use pointsman_store_conformance::company::{Cluster as _, nodes};
use pointsman_store_conformance::world::*;
use pointsman_store_postgres::{Postgres as Opened, PostgresStore};
use pointsman_testing::shared;
use tokio::time::sleep;

use crate::common::audit::audit;
use crate::common::cluster::Cluster;
use crate::common::lent::Lent;
use crate::common::load::now;
use crate::{connect, number};

async fn emit(store: &PostgresStore) -> Result<(), StoreError> {
    store.append(vec![emission([event("record")])], None, now()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_understood_keeps_nobody_waiting() {
    let database = Lent::any().await;
    let store = Opened::open(database.url(), now()).await.unwrap();
    store.register(Plan::simple().registration(), now()).await.unwrap();
    let beside = connect(database.url()).await;
    beside.batch_execute("SET lock_timeout = '5s'").await.unwrap();
    let spoil = "CREATE TABLE public.kept AS SELECT * FROM pointsman.meta WHERE name = 'routes';
                 UPDATE pointsman.meta SET text = '{' WHERE name = 'routes';
                 UPDATE pointsman.version SET registry = registry + 1";
    beside.batch_execute(spoil).await.unwrap();
    for _ in 0..3 {
        let answer = emit(&store).await;
        assert!(matches!(answer, Err(StoreError::Damaged(_))), "{answer:?}");
        // It had the right to write when it broke off, and gives it up sooner than the server would take it.
        beside.batch_execute("SELECT FROM pointsman.turn FOR UPDATE").await.unwrap();
    }
    let mend = "UPDATE pointsman.meta m SET text = k.text FROM public.kept k WHERE k.name = m.name;
                DROP TABLE public.kept";
    beside.batch_execute(mend).await.unwrap();
    emit(&store).await.unwrap();
    audit(database.url()).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_end_while_idle_are_replaced_unnoticed() {
    let database = Lent::any().await;
    let store = Opened::open(database.url(), now()).await.unwrap();
    let beside = connect(database.url()).await;
    for _ in 0..5 {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name = 'pointsman'";
        assert!(number(&beside, end).await > 0);
        emit(&store).await.unwrap();
        store.extent().await.unwrap();
        emit(&store).await.unwrap();
    }
    audit(database.url()).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_idle_connections_is_no_trouble() {
    let server = shared().unwrap();
    let url = server.create_database().unwrap();
    let name = url.rsplit('/').next().unwrap();
    server.query(name, &format!("ALTER DATABASE {name} SET idle_session_timeout = '100ms'")).unwrap();
    let store = Opened::open(&url, now()).await.unwrap();
    for _ in 0..4 {
        sleep(Duration::from_millis(400)).await;
        emit(&store).await.unwrap();
        store.extent().await.unwrap();
    }
    audit(&url).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_cannot_be_kept_as_it_is_fails_nobody() {
    let cluster = Cluster::new().await;
    let [mut node] = nodes(&cluster, Plan::simple()).await;
    const ODD: &str = "a\0b";
    for name in ["tried again", "for good"] {
        node.emit(event("record").key("a")).await;
        let task = node.claim_one().await;
        let failed = Ended::Failed { error: ODD.into(), code: 1, after: None, last: name == "for good" };
        node.end(Ending { logs: vec![line(node.now, ODD)], ..ending(&task, failed) }).await.unwrap();
        node.tick(BACKOFF);
    }
    node.run_all().await;
    let rule = Rule { by: ODD.into(), reason: ODD.into(), ..node.rule(RuleKind::Pause, "index", None) };
    must(node.store.hold(rule).await);
    must(node.store.join(ODD, node.now).await);
    let odd = || ODD.to_string();
    must(node.store.note(Deed { at: node.now, by: odd(), action: odd(), what: odd(), detail: odd() }).await);
    cluster.audit().await;
}
