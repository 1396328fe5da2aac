//! Connections that are closed while idle, and transactions that fail halfway.

use std::time::Duration;

use pointsman_core::store::{
    AttemptResult, AuditEntry, FinishedAttempt, Journal, Registry, Store, StoreError,
};
use pointsman_core::{Rule, RuleKind};
use pointsman_store_conformance::cluster::{TestCluster as _, join_nodes};
use pointsman_store_conformance::fixture::*;
use pointsman_store_postgres::{Postgres as Opened, PostgresStore};
use pointsman_testing::shared_postgres;
use tokio::time::sleep;

use crate::common::invariants::assert_invariants;
use crate::common::test_cluster::PgTestCluster;
use crate::common::test_database::PooledTestDatabase;
use crate::common::test_load::now;
use crate::{connect, query_number};

async fn emit(store: &PostgresStore) -> Result<(), StoreError> {
    store.append(vec![new_emit_batch([new_event("record")])], None, now()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_data_does_not_block_other_writers() {
    let database = PooledTestDatabase::acquire().await;
    let store = Opened::open(database.url(), now()).await.unwrap();
    store.register_definitions(RegistrationBuilder::single_handler().build(), now()).await.unwrap();
    let observer = connect(database.url()).await;
    observer.batch_execute("SET lock_timeout = '5s'").await.unwrap();
    let damage_sql = "CREATE TABLE public.kept AS SELECT * FROM pointsman.meta WHERE name = 'routes';
                 UPDATE pointsman.meta SET text = '{' WHERE name = 'routes';
                 UPDATE pointsman.commit_version SET registry_version = registry_version + 1";
    observer.batch_execute(damage_sql).await.unwrap();
    for _ in 0..3 {
        let result = emit(&store).await;
        assert!(matches!(result, Err(StoreError::Damaged(_))), "{result:?}");
        // The failed transaction releases the write lock before the server's timeout.
        observer.batch_execute("SELECT FROM pointsman.write_lock FOR UPDATE").await.unwrap();
    }
    let repair_sql = "UPDATE pointsman.meta m SET text = k.text FROM public.kept k WHERE k.name = m.name;
                DROP TABLE public.kept";
    observer.batch_execute(repair_sql).await.unwrap();
    emit(&store).await.unwrap();
    assert_invariants(database.url()).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_idle_connections_are_replaced_without_errors() {
    let database = PooledTestDatabase::acquire().await;
    let store = Opened::open(database.url(), now()).await.unwrap();
    let observer = connect(database.url()).await;
    for _ in 0..5 {
        let terminate_sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name = 'pointsman'";
        assert!(query_number(&observer, terminate_sql).await > 0);
        emit(&store).await.unwrap();
        store.read_journal_range().await.unwrap();
        emit(&store).await.unwrap();
    }
    assert_invariants(database.url()).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_session_timeouts_cause_no_errors() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let name = url.rsplit('/').next().unwrap();
    server.query(name, &format!("ALTER DATABASE {name} SET idle_session_timeout = '100ms'")).unwrap();
    let store = Opened::open(&url, now()).await.unwrap();
    for _ in 0..4 {
        sleep(Duration::from_millis(400)).await;
        emit(&store).await.unwrap();
        store.read_journal_range().await.unwrap();
    }
    assert_invariants(&url).await;
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_with_nul_characters_are_stored() {
    let cluster = PgTestCluster::new().await;
    let [mut node] = join_nodes(&cluster, RegistrationBuilder::single_handler()).await;
    const TEXT_WITH_NUL: &str = "a\0b";
    for failure in ["retryable", "permanent"] {
        node.emit(new_event("record").with_key("a")).await;
        let task = node.claim_one().await;
        let failed = AttemptResult::Failed {
            error: TEXT_WITH_NUL.into(),
            return_code: 1,
            retry_at: None,
            permanent: failure == "permanent",
        };
        node.finish_attempt(FinishedAttempt {
            log_lines: vec![info_log_line(node.now, TEXT_WITH_NUL)],
            ..finished_attempt(&task, failed)
        })
        .await
        .unwrap();
        node.advance_clock(RETRY_DELAY_SECS);
    }
    node.run_all_ready_tasks().await;
    let rule = Rule {
        set_by: TEXT_WITH_NUL.into(),
        reason: TEXT_WITH_NUL.into(),
        ..node.new_rule(RuleKind::Pause, "index", None)
    };
    expect_ok(node.store.set_rule(rule).await);
    expect_ok(node.store.join_node(TEXT_WITH_NUL, node.now).await);
    let text = || TEXT_WITH_NUL.to_string();
    expect_ok(
        node.store
            .append_audit_entry(AuditEntry {
                at: node.now,
                actor: text(),
                action: text(),
                target: text(),
                detail: text(),
            })
            .await,
    );
    cluster.assert_consistent().await;
}
