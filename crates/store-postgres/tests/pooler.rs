//! The store behind PgBouncer in transaction mode, where each transaction may get another connection.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::invariants::check_invariants;
use common::load::{Load, TEST_TIMEOUT, now, query_rows, with_listen_url};
use pointsman_core::Timestamp;
use pointsman_core::journal::Filter;
use pointsman_core::store::{Read, Store};
use pointsman_store_conformance::{self as conformance, Harness};
use pointsman_store_postgres::Postgres;
use pointsman_testing::{PgBouncer, Settings};
use tokio::time::{sleep, timeout};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A server, a pooler in front of it, and one database, which is cleared for each test.
struct PooledStore {
    /// Dropped before the server.
    pooler: PgBouncer,
    _server: pointsman_testing::Postgres,
    /// The direct URL of the database, and the one through the pooler.
    direct: String,
    url: String,
    opened: Mutex<Option<Arc<dyn Store>>>,
}

/// How the store receives notifications.
enum Listening {
    /// Over a direct connection.
    Direct,
    /// Not at all: it polls.
    None,
}

impl PooledStore {
    fn start(listening: Listening) -> Self {
        let server = pointsman_testing::Postgres::start(Settings::default()).unwrap();
        let direct = server.create_database().unwrap();
        let pooler = PgBouncer::start(&server, direct.rsplit('/').next().unwrap()).unwrap();
        // With another application name, because clearing the database terminates sessions of the default name.
        let url = format!("{}?pooler=transaction&application_name=pooled", pooler.url().unwrap());
        let url = match listening {
            Listening::Direct => with_listen_url(&url, &direct),
            Listening::None => url,
        };
        Self { pooler, _server: server, direct, url, opened: Mutex::default() }
    }

    async fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(&self.url, now).await.unwrap());
        self.opened.lock().unwrap().replace(store.clone());
        store
    }

    fn close(&self) {
        self.opened.lock().unwrap().take().into_iter().for_each(|store| store.close());
    }
}

#[async_trait]
impl Harness for PooledStore {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        self.close();
        Postgres::migrate_to(&self.direct, usize::MAX).await.unwrap();
        common::test_database::clear_database(&self.direct).await;
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
            check_invariants(&$harness.direct).await;
        )*)*
        $harness.close();
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_behind_a_pooler() {
    let pooled = PooledStore::start(Listening::Direct);
    run_behaviours! { &pooled;
        audit { deeds_are_read_newest_first_page_by_page }
        causes { what_an_event_caused_is_shown_with_it }
        chains { a_rule_holds_a_chain }
        claims {
            a_claimed_task_is_locked_by_its_node
            priority_decides_then_age
            nothing_is_claimed_before_it_is_due
            due_times_survive_a_restart
            what_is_scheduled_is_claimed_first
            an_append_can_claim_what_it_brings
            a_finish_can_claim_what_it_frees
            racing_nodes_never_get_the_same_task
        }
        concurrency { racing_nodes_keep_the_limit a_limit_holds_after_a_restart lanes_and_limits_both_hold }
        effects { success_keeps_the_result attempts_are_recorded_in_order }
        idempotency { old_keys_are_all_forgotten }
        logs { a_log_is_read_page_by_page lines_keep_their_order_over_attempts_and_ends }
        missing { missing_tasks_are_taken_up_only_on_request }
        order_walk { a_walk_of_orders_agrees_with_its_stream }
        queues { counters_follow_a_task_through_its_life }
        rates { a_rate_is_kept_and_reached_over_time }
        restart { everything_acknowledged_is_there a_fence_outlives_a_restart }
        retention { history_is_pruned_by_count what_has_not_ended_is_never_pruned }
        why { gates_come_in_order its_lane_is_taken }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_with_polling_only() {
    let pooled = PooledStore::start(Listening::None);
    run_behaviours! { &pooled;
        claims { a_claimed_task_is_locked_by_its_node racing_nodes_never_get_the_same_task }
        restart { everything_acknowledged_is_there }
        walk { another_walk_agrees_with_the_model }
    }
}

/// Emits in SQL through the pooler, and waits for the event.
async fn assert_emits_in_sql(listening: Listening) {
    let pooled = PooledStore::start(listening);
    let store = pooled.open(now()).await;
    let (client, connection) = tokio_postgres::connect(&pooled.pooler.url().unwrap(), NoTls).await.unwrap();
    tokio::spawn(connection);
    for n in 1..=5 {
        let answers =
            client.simple_query(&format!("SELECT pointsman.emit('record', 'k', '{n}')")).await.unwrap();
        assert!(answers.iter().any(|answer| matches!(answer, SimpleQueryMessage::Row(_))));
        let poll = async {
            loop {
                let read = Read {
                    after: pointsman_core::EventId::ZERO,
                    until: None,
                    filter: Filter::default(),
                    limit: 10,
                    backwards: false,
                };
                let events = store.read(read).await.unwrap().events;
                if events.len() == n {
                    return assert_eq!(events[n - 1].value.as_str(), n.to_string());
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TEST_TIMEOUT, poll).await.unwrap();
    }
    check_invariants(&pooled.direct).await;
    pooled.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_emits_through_a_pooler_become_events() {
    assert_emits_in_sql(Listening::Direct).await;
    assert_emits_in_sql(Listening::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_behind_a_pooler_share_the_work() {
    let pooled = PooledStore::start(Listening::Direct);
    let (one, other) = (Load::start(&pooled.url, 4).await, Load::start(&pooled.url, 4).await);
    one.wait_for_acknowledged(200).await;
    other.wait_for_acknowledged(200).await;
    // Both nodes survive the end of the pooler's connections.
    for _ in 0..3 {
        query_rows(
            &pooled.direct,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        one.wait_for_acknowledged(50).await;
        other.wait_for_acknowledged(50).await;
    }
    Load::finish_all([one, other], &pooled.direct).await;
}
