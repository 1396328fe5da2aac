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
    Harness, causes, claims, idempotency, late, missing, orders, per_key, replay, sync_handlers,
};
use pointsman_store_postgres::Postgres;
use pointsman_testing::shared;

/// Indexes that the stories below do not look into, and who does.
const ELSEWHERE: [(&str, &str); 0] = [];

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

#[test]
fn every_statement_says_what_it_is_for_and_is_used() {
    let code: String = files(&of_crate("src"), ".rs").into_iter().map(|(_, text)| text).collect();
    let code: String = code.split_whitespace().collect();
    for (path, text) in files(&of_crate("sql"), ".sql") {
        let name = path.strip_prefix(of_crate("sql")).unwrap().with_extension("");
        let name = name.to_str().unwrap();
        let about = text.lines().next().unwrap_or_default();
        assert!(about.starts_with("-- ") && about.len() > 10, "{name} does not say what it is for");
        assert!(code.contains(&format!("query!(\"{name}\"")), "{name} is used by nobody");
    }
}

/// Databases, one for each story.
#[derive(Default)]
struct Many {
    made: Mutex<Vec<String>>,
}

#[async_trait]
impl Harness for Many {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let url = shared().unwrap().create_database().unwrap();
        self.made.lock().unwrap().push(url.clone());
        Arc::new(Postgres::open(&url, now).await.unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let url = self.made.lock().unwrap().last().cloned().unwrap();
        Arc::new(Postgres::open(&url, now).await.unwrap())
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

/// The indexes that were not looked into in any of the databases. Those that keep something unique need not be.
fn unused(many: &Many) -> BTreeSet<String> {
    let mut sums: BTreeMap<String, (i64, bool)> = BTreeMap::new();
    for url in many.made.lock().unwrap().iter() {
        for (name, scans, unique) in looked_into(url) {
            let sum = sums.entry(name).or_default();
            *sum = (sum.0 + scans, unique);
        }
    }
    let unused = sums.into_iter().filter(|(_, (scans, unique))| *scans == 0 && !unique);
    unused.map(|(name, _)| name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_index_is_looked_into() {
    let many = Many::default();
    tell_stories(&many).await;
    // A connection tells what it did when it ends, or a second later.
    let explained: BTreeSet<String> = ELSEWHERE.iter().map(|(name, _)| (*name).into()).collect();
    let mut left = unused(&many);
    for _ in 0..100 {
        if left == explained {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = unused(&many);
    }
    assert_eq!(left, explained, "looked into by no statement");
}
