//! Every statement says what it is for and is used, and every index is there for some statement.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::{
    Harness, causes, claims, idempotency, late, ledger, logs, missing, nodes, object_retention, order_lists,
    orders, per_key, pull, replay, rescue, retention, schedules, sources, sync_handlers, tasks,
};
use pointsman_store_postgres::Postgres;
use pointsman_testing::shared;

/// Indexes that the stories below do not look into, and why they are there.
const ELSEWHERE: [(&str, &str); 0] = [];

/// What is done without a store, and what a store does but once a minute: in databases as stories have left them.
const BESIDE: [&str; 4] = [
    "SET enable_seqscan = off; SET jit = off",
    "SELECT * FROM pointsman.events",
    "SELECT FROM pointsman.outbox_refused WHERE n = 1",
    "SELECT FROM pointsman.outbox_key WHERE at < 1 ORDER BY at LIMIT 1",
];

/// All files below a folder that end so, with their contents.
fn files(folder: &Path, end: &str) -> Vec<(PathBuf, String)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().unwrap().ends_with(end) {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn of_crate(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// The code of the store, without blanks.
fn code() -> String {
    let code: String = files(&of_crate("src"), ".rs").into_iter().map(|(_, text)| text).collect();
    code.split_whitespace().collect()
}

#[test]
fn every_statement_says_what_it_is_for_and_is_used() {
    let code = code();
    for (path, text) in files(&of_crate("sql"), ".sql") {
        let name = path.strip_prefix(of_crate("sql")).unwrap().with_extension("");
        let name = name.to_str().unwrap();
        let about = text.lines().next().unwrap_or_default();
        assert!(about.starts_with("-- ") && about.len() > 10, "{name} does not say what it is for");
        assert!(code.contains(&format!("query!(\"{name}\"")), "{name} is used by nobody");
    }
}

/// Databases, one for each story, and the stores on them.
#[derive(Default)]
struct Many {
    made: Mutex<Vec<String>>,
    stores: Mutex<Vec<Arc<dyn Store>>>,
}

impl Many {
    async fn open(&self, url: &str, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(url, now).await.unwrap());
        self.stores.lock().unwrap().push(store.clone());
        store
    }

    /// A connection tells what it did when it ends, or some seconds later.
    async fn close(&self) {
        let stores = std::mem::take(&mut *self.stores.lock().unwrap());
        let closed = tokio::task::spawn_blocking(move || stores.iter().for_each(|store| store.close()));
        closed.await.unwrap();
    }
}

#[async_trait]
impl Harness for Many {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let url = shared().unwrap().create_database().unwrap();
        self.made.lock().unwrap().push(url.clone());
        self.open(&url, now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        let url = self.made.lock().unwrap().last().cloned().unwrap();
        self.open(&url, now).await
    }
}

/// Stories in which everything is done that a store can do.
async fn tell_stories(many: &Many) {
    claims::what_is_scheduled_is_claimed_first(many).await;
    claims::a_retry_and_a_snooze_are_told_as_next_due(many).await;
    idempotency::old_keys_are_all_forgotten(many).await;
    late::late_tasks_run_one_at_a_time_in_the_order_they_were_retried(many).await;
    missing::every_waiting_task_of_a_lost_handler_is_parked(many).await;
    orders::an_order_travels_node_by_node(many).await;
    per_key::all_of_them_run_in_the_end(many).await;
    replay::a_replay_that_has_ended_is_found_by_its_event(many).await;
    sync_handlers::synchronous_tasks_run_in_list_order_then_the_queued_ones(many).await;
    causes::what_an_event_caused_is_shown_with_it(many).await;
    tasks::tasks_are_found_by_what_they_are(many).await;
    tasks::tasks_are_found_by_why_they_ended(many).await;
    sources::runs_are_found_by_source_and_collection(many).await;
    logs::a_log_is_read_page_by_page(many).await;
    ledger::rows_are_forgotten_with_the_history(many).await;
    nodes::what_a_node_holds_is_counted(many).await;
    missing::adoption_is_by_handler(many).await;
    rescue::a_silent_node_loses_its_tasks(many).await;
    pull::a_lease_that_runs_out_counts_as_a_crash(many).await;
    retention::history_is_pruned_by_age_with_its_logs(many).await;
    object_retention::an_unused_object_is_deleted_and_starts_a_new_chain(many).await;
    order_lists::chains_count_their_orders_by_node(many).await;
    schedules::a_firing_emits_its_event(many).await;
}

/// Looks at a database as others do.
fn look_beside(url: &str) {
    shared().unwrap().query(url.rsplit('/').next().unwrap(), &BESIDE.join(";\n")).unwrap();
}

/// How often each index was looked into, and whether it also keeps something unique. Those of slices count for the whole.
fn looked_into(url: &str) -> Vec<(String, i64, bool)> {
    let sql = "SELECT c.relname, sum(s.idx_scan), bool_or(i.indisunique)
               FROM pg_stat_user_indexes s
               JOIN pg_index i USING (indexrelid)
               JOIN pg_class c ON c.oid = coalesce(pg_partition_root(s.indexrelid), s.indexrelid)
               WHERE s.schemaname = 'pointsman'
               GROUP BY c.relname";
    let rows = shared().unwrap().query(url.rsplit('/').next().unwrap(), sql).unwrap();
    let row = |row: Vec<Option<String>>| {
        let [name, scans, unique] = <[_; 3]>::try_from(row).unwrap().map(Option::unwrap);
        (name, scans.parse().unwrap(), unique == "t")
    };
    rows.into_iter().map(row).collect()
}

/// The indexes that were not looked into in any of the databases. Those that keep something unique need not be, nor those
/// that are there for something else.
fn unused(many: &Many) -> BTreeSet<String> {
    let mut sums: BTreeMap<String, (i64, bool)> = BTreeMap::new();
    for url in many.made.lock().unwrap().iter() {
        for (name, scans, unique) in looked_into(url) {
            let sum = sums.entry(name).or_default();
            *sum = (sum.0 + scans, unique);
        }
    }
    let unused = sums.into_iter().filter(|(_, (scans, unique))| *scans == 0 && !unique);
    let names = unused.map(|(name, _)| name);
    names.filter(|name| !ELSEWHERE.iter().any(|(known, _)| known == name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_index_is_looked_into() {
    let many = Many::default();
    tell_stories(&many).await;
    many.close().await;
    many.made.lock().unwrap().iter().for_each(|url| look_beside(url));
    let mut left = BTreeSet::new();
    for _ in 0..100 {
        left = unused(&many);
        if left.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("looked into by no statement: {left:?}");
}

/// What the store tells the planner.
const TOLD: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_sort = off; SET plan_cache_mode = force_generic_plan; SET jit = off;";

/// The types of a statement's parameters, as the code names them.
fn types_of(name: &str, code: &str) -> Vec<String> {
    let call = format!("query!(\"{name}\"");
    let rest = code.split(&call).nth(1).unwrap_or_default();
    let words = rest.split(')').next().unwrap_or_default();
    let sql = |word: &str| match word.strip_suffix("_ARRAY") {
        Some(kind) => format!("{kind}[]"),
        None => word.to_string(),
    };
    words.split(',').filter(|word| !word.is_empty()).map(sql).collect()
}

/// A plan as text, where what belongs to a node is indented further.
fn plan_of(url: &str, sql: &str, types: &[String]) -> Vec<String> {
    let (kinds, values) = match types.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("({})", types.join(", ")), format!("({})", vec!["NULL"; types.len()].join(", "))),
    };
    let asked = format!("{TOLD} PREPARE asked {kinds} AS {sql}; EXPLAIN (COSTS OFF) EXECUTE asked {values}");
    let rows = shared().unwrap().query(url.rsplit('/').next().unwrap(), &asked).unwrap();
    rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect()
}

/// Whether what was sent is gone through again for each row of a table: the second part of a nested loop is a function.
fn goes_through_again(plan: &[String]) -> bool {
    let indent = |line: &String| line.len() - line.trim_start().len();
    plan.iter().enumerate().filter(|(_, line)| line.contains("Nested Loop")).any(|(at, line)| {
        let below: Vec<&String> =
            plan.iter().skip(at + 1).take_while(|next| indent(next) > indent(line)).collect();
        let parts: Vec<&&String> = below.iter().filter(|next| next.trim_start().starts_with("->")).collect();
        let depth = parts.iter().map(|next| indent(next)).min();
        let second = parts.iter().filter(|next| Some(indent(next)) == depth).nth(1);
        second.is_some_and(|next| next.contains("Function Scan"))
    })
}

/// A plan is made once, maybe while a table is empty, and is used when it has grown.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_on_empty_tables_goes_by_the_indexes_too() {
    let url = shared().unwrap().create_database().unwrap();
    Postgres::open(&url, Timestamp::from_micros(1)).await.unwrap().close();
    shared().unwrap().query(url.rsplit('/').next().unwrap(), "VACUUM ANALYZE").unwrap();
    let code = code();
    let mut looked_at = 0;
    for (path, sql) in files(&of_crate("sql"), ".sql") {
        let name = path.strip_prefix(of_crate("sql")).unwrap().with_extension("");
        if !sql.contains("unnest($") {
            continue;
        }
        looked_at += 1;
        let plan = plan_of(&url, &sql, &types_of(name.to_str().unwrap(), &code));
        assert!(!goes_through_again(&plan), "{}:\n{}", name.display(), plan.join("\n"));
    }
    assert!(looked_at > 20, "{looked_at} statements take arrays");
}

/// However many stand in a lane, the next one is found behind it by a look into the index.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_found_by_their_index_alone() {
    let url = shared().unwrap().create_database().unwrap();
    Postgres::open(&url, Timestamp::from_micros(1)).await.unwrap().close();
    let sql = std::fs::read_to_string(of_crate("sql/read/lanes.sql")).unwrap();
    let plan = plan_of(&url, &sql, &types_of("read/lanes", &code()));
    let looks = |what: &str| plan.iter().filter(|line| line.contains(what)).count();
    assert_eq!(looks("using task_lane on task"), 3, "the first, the next, the count:\n{}", plan.join("\n"));
    assert_eq!(looks("Index Cond: ((lane"), 2, "{}", plan.join("\n"));
    assert_eq!(looks("Index Cond: (lane ="), 1, "{}", plan.join("\n"));
    assert_eq!(looks("Seq Scan"), 0, "{}", plan.join("\n"));
}
