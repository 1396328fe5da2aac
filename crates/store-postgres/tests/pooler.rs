//! The store behind PgBouncer in transaction mode, where each transaction may get another connection.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::invariants::assert_invariants;
use common::test_load::{TEST_TIMEOUT, TestLoad, now, query_rows, with_listen_url};
use pointsman_core::Timestamp;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{JournalQuery, Store};
use pointsman_store_conformance::{self as conformance, Harness};
use pointsman_store_postgres::{MIGRATIONS, Postgres};
use pointsman_testing::{PgBouncer, PostgresSettings};
use tokio::time::{sleep, timeout};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A server, a pooler in front of it, and one database, which is cleared for each behaviour of the suite.
struct StoreBehindPooler {
    /// Dropped before the server.
    pooler: PgBouncer,
    _server: pointsman_testing::PostgresServer,
    /// The direct URL of the database, and the one through the pooler.
    direct_url: String,
    pooler_url: String,
    open_store: Mutex<Option<Arc<dyn Store>>>,
}

/// How the store receives notifications.
enum ListenMode {
    /// Over a direct connection.
    Direct,
    /// Not at all: it polls.
    PollingOnly,
}

impl StoreBehindPooler {
    fn start(listen_mode: ListenMode) -> Self {
        let server = pointsman_testing::PostgresServer::start(PostgresSettings::default()).unwrap();
        let direct_url = server.create_database().unwrap();
        let pooler = PgBouncer::start(&server, direct_url.rsplit('/').next().unwrap()).unwrap();
        // With another application name, because clearing the database terminates sessions of the default name.
        let url = format!("{}?pooler=transaction&application_name=pooled", pooler.url().unwrap());
        let pooled_url = match listen_mode {
            ListenMode::Direct => with_listen_url(&url, &direct_url),
            ListenMode::PollingOnly => url,
        };
        Self { pooler, _server: server, direct_url, pooler_url: pooled_url, open_store: Mutex::default() }
    }

    async fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(&self.pooler_url, now).await.unwrap());
        self.open_store.lock().unwrap().replace(store.clone());
        store
    }

    fn close(&self) {
        self.open_store.lock().unwrap().take().into_iter().for_each(|store| store.close());
    }
}

#[async_trait]
impl Harness for StoreBehindPooler {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        self.close();
        Postgres::migrate(&self.direct_url, MIGRATIONS).await.unwrap();
        common::test_database::clear_database(&self.direct_url).await;
        self.open(now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.open(now).await
    }
}

/// Runs behaviours of the conformance suite, one after the other.
macro_rules! run_behaviours {
    ($harness:expr; $($topic:ident { $($behaviour:ident)* })*) => {
        $($(
            eprintln!("{}", concat!(stringify!($topic), "::", stringify!($behaviour)));
            conformance::$topic::$behaviour($harness).await;
            assert_invariants(&$harness.direct_url).await;
        )*)*
        $harness.close();
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_behind_a_pooler() {
    let pooled = StoreBehindPooler::start(ListenMode::Direct);
    run_behaviours! { &pooled;
        audit { audit_entries_are_listed_newest_first_in_pages }
        caused_events { an_event_view_includes_all_events_it_caused }
        chain_control { a_rule_blocks_a_chain }
        claims {
            a_claimed_task_is_locked_by_the_claiming_node
            claims_go_by_priority_then_age
            no_task_is_claimed_before_it_is_due
            due_times_survive_a_restart
            prefetched_tasks_are_claimed_first
            an_append_can_claim_the_tasks_it_creates
            finishing_an_attempt_can_claim_the_tasks_it_unblocks
            racing_nodes_never_claim_the_same_task
        }
        concurrency_limits { racing_nodes_respect_the_concurrency_limit concurrency_limit_survives_a_restart lanes_and_concurrency_limits_both_apply }
        attempt_ends { a_successful_task_stores_its_result attempts_are_recorded_in_order }
        idempotency { old_idempotency_keys_expire_after_a_day }
        logs { logs_are_read_in_pages log_lines_keep_their_order_across_attempts }
        missing_tasks { missing_tasks_run_again_only_after_adoption }
        order_random_walk { a_random_order_walk_matches_its_event_stream }
        queue_counters { queue_counters_follow_a_task_through_its_states }
        rate_limits { starts_match_the_rate_limiter_over_time }
        restart { acknowledged_events_and_their_tasks_survive_a_restart a_fence_stays_valid_across_a_restart }
        retention { task_history_is_pruned_by_count unfinished_tasks_are_never_pruned }
        waiting_reasons { closed_gates_are_listed_in_the_order_they_are_passed a_task_in_a_lane_reports_the_task_it_waits_for }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_with_polling_only() {
    let pooled = StoreBehindPooler::start(ListenMode::PollingOnly);
    run_behaviours! { &pooled;
        claims { a_claimed_task_is_locked_by_the_claiming_node racing_nodes_never_claim_the_same_task }
        restart { acknowledged_events_and_their_tasks_survive_a_restart }
        random_walk { a_second_random_walk_matches_the_model }
    }
}

/// Emits in SQL through the pooler, and waits for the event.
async fn assert_sql_emits_become_events(listen_mode: ListenMode) {
    let pooled = StoreBehindPooler::start(listen_mode);
    let store = pooled.open(now()).await;
    let (client, connection) = tokio_postgres::connect(&pooled.pooler.url().unwrap(), NoTls).await.unwrap();
    tokio::spawn(connection);
    for n in 1..=5 {
        let messages =
            client.simple_query(&format!("SELECT pointsman.emit('record', 'k', '{n}')")).await.unwrap();
        assert!(messages.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_))));
        let poll = async {
            loop {
                let query = JournalQuery {
                    after_event_id: pointsman_core::EventId::ZERO,
                    up_to_event_id: None,
                    filter: EventFilter::default(),
                    limit: 10,
                    backwards: false,
                };
                let events = store.read_events(query).await.unwrap().events;
                if events.len() == n {
                    return assert_eq!(events[n - 1].value.as_str(), n.to_string());
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TEST_TIMEOUT, poll).await.unwrap();
    }
    assert_invariants(&pooled.direct_url).await;
    pooled.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_emits_through_a_pooler_become_events() {
    assert_sql_emits_become_events(ListenMode::Direct).await;
    assert_sql_emits_become_events(ListenMode::PollingOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_behind_a_pooler_share_the_work() {
    let pooled = StoreBehindPooler::start(ListenMode::Direct);
    let (one, other) =
        (TestLoad::start(&pooled.pooler_url, 4).await, TestLoad::start(&pooled.pooler_url, 4).await);
    one.wait_for_acknowledged_emits(200).await;
    other.wait_for_acknowledged_emits(200).await;
    // Both nodes survive the end of the pooler's connections.
    for _ in 0..3 {
        query_rows(
            &pooled.direct_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        one.wait_for_acknowledged_emits(50).await;
        other.wait_for_acknowledged_emits(50).await;
    }
    TestLoad::stop_and_check_all([one, other], &pooled.direct_url).await;
}
