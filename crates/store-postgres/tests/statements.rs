//! Every query is documented and used, and every index is used by a query.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::expand_sql::expand;
use pointsman_store_conformance::{
    Harness, caused_events, claims, fire_ledger, idempotency, logs, missing_tasks, nodes, object_retention,
    order_lists, orders, out_of_order_tasks, per_key_concurrency, pull_workers, replay, rescue, retention,
    schedules, sources, sync_handlers, tasks,
};
use pointsman_store_postgres::Postgres;
use pointsman_testing::shared_postgres;

/// Indexes that the scenarios below do not use, with the reasons.
const INDEXES_USED_ELSEWHERE: [(&str, &str); 0] = [];

/// Queries of other programs, and of jobs that run once a minute, on the databases of the scenarios.
const EXTERNAL_QUERIES: [&str; 4] = [
    "SET enable_seqscan = off; SET jit = off",
    "SELECT * FROM pointsman.events",
    "SELECT FROM pointsman.outbox_refused WHERE n = 1",
    "SELECT FROM pointsman.outbox_idempotency_key WHERE at < 1 ORDER BY at LIMIT 1",
];

/// Reads all files below a folder whose names end with this extension.
fn read_files_with_extension(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(read_files_with_extension(&path, extension));
        } else if path.to_str().unwrap().ends_with(extension) {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn crate_path(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// The source code without whitespace.
fn read_source_code() -> String {
    let code: String =
        read_files_with_extension(&crate_path("src"), ".rs").into_iter().map(|(_, text)| text).collect();
    code.split_whitespace().collect()
}

/// A named query of a file in `sql/`.
struct NamedQuery {
    /// The file and the name: `task/list_due_tasks`.
    name: String,
    /// The comment on its purpose, and the statement.
    sql: String,
}

/// Reads all named queries.
fn read_named_queries() -> Vec<NamedQuery> {
    let read_queries_of_file = |(path, text): (PathBuf, String)| {
        let file = path.file_stem().unwrap().to_str().unwrap().to_string();
        let to_query = |block: &str| {
            let (name, sql) = block.split_once('\n').unwrap();
            NamedQuery { name: format!("{file}/{name}"), sql: sql.trim().into() }
        };
        text.split("-- name: ").skip(1).map(to_query).collect::<Vec<_>>()
    };
    read_files_with_extension(&crate_path("sql"), ".sql").into_iter().flat_map(read_queries_of_file).collect()
}

/// Replaces the names of codes and of lists of columns as the store does.
fn expand_names(sql: &str) -> String {
    let (bytes, length) = expand::<16_384>(sql);
    std::str::from_utf8(&bytes[..length]).unwrap().into()
}

#[test]
fn every_query_is_documented_and_used_and_has_a_name_of_its_own() {
    let code = read_source_code();
    let mut names = BTreeSet::new();
    for NamedQuery { name, sql } in read_named_queries() {
        let comment = sql.lines().next().unwrap_or_default();
        assert!(comment.starts_with("-- ") && comment.len() > 10, "{name} has no comment on its purpose");
        assert!(code.contains(&format!("query!(\"{name}\"")), "{name} is not used");
        assert!(names.insert(name.clone()), "there are two queries {name}");
    }
    assert!(names.len() > 200, "{} queries", names.len());
}

#[test]
fn no_sql_compares_a_phase_with_a_number() {
    let folders = ["sql", "migrations"].map(crate_path);
    for (path, text) in folders.iter().flat_map(|folder| read_files_with_extension(folder, ".sql")) {
        let statements = text.lines().filter(|line| !line.trim_start().starts_with("--"));
        for line in statements {
            let words: Vec<&str> =
                line.split([' ', '(', ')', ',', ';']).filter(|word| !word.is_empty()).collect();
            let is_bare_code =
                |words: &[&str]| words[0].ends_with("phase") && words[2].starts_with(char::is_numeric);
            assert!(!words.windows(3).any(is_bare_code), "{}: {line}", path.display());
        }
    }
}

/// The databases of the scenarios, and the stores on them.
#[derive(Default)]
struct ScenarioDatabases {
    urls: Mutex<Vec<String>>,
    stores: Mutex<Vec<Arc<dyn Store>>>,
}

impl ScenarioDatabases {
    async fn open_store(&self, url: &str, now: Timestamp) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(url, now).await.unwrap());
        self.stores.lock().unwrap().push(store.clone());
        store
    }

    /// Closes the stores: a connection reports its statistics when it ends, or some seconds later.
    async fn close(&self) {
        let stores = std::mem::take(&mut *self.stores.lock().unwrap());
        let closed = tokio::task::spawn_blocking(move || stores.iter().for_each(|store| store.close()));
        closed.await.unwrap();
    }
}

#[async_trait]
impl Harness for ScenarioDatabases {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        let url = shared_postgres().unwrap().create_database().unwrap();
        self.urls.lock().unwrap().push(url.clone());
        self.open_store(&url, now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        let url = self.urls.lock().unwrap().last().cloned().unwrap();
        self.open_store(&url, now).await
    }
}

/// Runs scenarios that use every feature of a store.
async fn run_scenarios(databases: &ScenarioDatabases) {
    claims::prefetched_tasks_are_claimed_first(databases).await;
    claims::claims_report_the_due_times_of_retries_and_snoozes(databases).await;
    idempotency::old_idempotency_keys_expire_after_a_day(databases).await;
    out_of_order_tasks::out_of_order_tasks_run_one_at_a_time_in_the_order_they_were_retried(databases).await;
    missing_tasks::waiting_tasks_of_an_undefined_handler_become_missing(databases).await;
    orders::an_order_runs_its_chain_step_by_step(databases).await;
    per_key_concurrency::all_tasks_of_limited_keys_run_eventually(databases).await;
    replay::a_finished_replayed_task_is_found_by_its_event(databases).await;
    sync_handlers::synchronous_tasks_run_in_route_order_before_queued_ones(databases).await;
    caused_events::an_event_view_includes_all_events_it_caused(databases).await;
    tasks::tasks_are_filtered_by_handler_tenant_key_status_and_time(databases).await;
    tasks::tasks_are_filtered_by_error_reason(databases).await;
    sources::runs_are_found_by_source_and_collection(databases).await;
    logs::logs_are_read_in_pages(databases).await;
    fire_ledger::fires_expire_with_the_task_history(databases).await;
    nodes::running_tasks_are_counted_per_node(databases).await;
    missing_tasks::adopting_missing_tasks_affects_only_the_given_handler(databases).await;
    rescue::a_node_without_heartbeats_loses_its_tasks(databases).await;
    pull_workers::an_expired_lease_counts_as_a_crash(databases).await;
    retention::task_history_is_pruned_by_age_with_its_logs(databases).await;
    object_retention::an_unused_object_is_deleted_and_its_prev_links_restart(databases).await;
    order_lists::chains_count_their_orders_by_chain_node(databases).await;
    schedules::a_fire_emits_its_event(databases).await;
}

/// Runs the external queries on a database.
fn run_external_queries(url: &str) {
    shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), &EXTERNAL_QUERIES.join(";\n")).unwrap();
}

/// Reads how often each index was used, and whether it is unique. Indexes of partitions count for the whole table.
fn read_index_usage(url: &str) -> Vec<(String, i64, bool)> {
    let sql = "SELECT c.relname, sum(s.idx_scan), bool_or(i.indisunique)
               FROM pg_stat_user_indexes s
               JOIN pg_index i USING (indexrelid)
               JOIN pg_class c ON c.oid = coalesce(pg_partition_root(s.indexrelid), s.indexrelid)
               WHERE s.schemaname = 'pointsman'
               GROUP BY c.relname";
    let rows = shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), sql).unwrap();
    let decode = |row: Vec<Option<String>>| {
        let [name, scans, unique] = <[_; 3]>::try_from(row).unwrap().map(Option::unwrap);
        (name, scans.parse().unwrap(), unique == "t")
    };
    rows.into_iter().map(decode).collect()
}

/// Lists the indexes that were used in no database, except unique ones and those that are used elsewhere.
fn list_unused_indexes(databases: &ScenarioDatabases) -> BTreeSet<String> {
    let mut sums: BTreeMap<String, (i64, bool)> = BTreeMap::new();
    for url in databases.urls.lock().unwrap().iter() {
        for (name, scans, unique) in read_index_usage(url) {
            let sum = sums.entry(name).or_default();
            *sum = (sum.0 + scans, unique);
        }
    }
    let unused = sums.into_iter().filter(|(_, (scans, unique))| *scans == 0 && !unique);
    let names = unused.map(|(name, _)| name);
    names.filter(|name| !INDEXES_USED_ELSEWHERE.iter().any(|(listed, _)| listed == name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_index_is_used() {
    let databases = ScenarioDatabases::default();
    run_scenarios(&databases).await;
    databases.close().await;
    databases.urls.lock().unwrap().iter().for_each(|url| run_external_queries(url));
    let mut unused = BTreeSet::new();
    for _ in 0..100 {
        unused = list_unused_indexes(&databases);
        if unused.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no statement uses these indexes: {unused:?}");
}

/// The planner settings of the store.
const PLANNER_SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_sort = off; SET plan_cache_mode = force_generic_plan; SET jit = off;";

/// The types of a statement's first parameters, as the source code declares them. The SQL names those of the others.
fn parameter_types(name: &str, code: &str) -> Vec<String> {
    let call = format!("query!(\"{name}\"");
    let rest = code.split(&call).nth(1).unwrap_or_default();
    let words = rest.split([')', '.']).next().unwrap_or_default();
    let to_sql_type = |word: &str| match word.strip_suffix("_ARRAY") {
        Some(element_type) => format!("{element_type}[]"),
        None => word.to_string(),
    };
    words.split(',').filter(|word| !word.is_empty()).map(to_sql_type).collect()
}

/// The greatest number of a statement's parameters.
fn count_parameters(sql: &str) -> usize {
    let parse = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().ok();
    let statement: String = sql.lines().filter(|line| !line.starts_with("--")).collect();
    statement.split('$').skip(1).filter_map(parse).max().unwrap_or(0)
}

/// Explains a statement; children of a plan node are indented further.
fn explain_statement(url: &str, sql: &str, types: &[String]) -> Vec<String> {
    let in_parentheses = |list: &[String]| match list.is_empty() {
        true => String::new(),
        false => format!("({})", list.join(", ")),
    };
    let parameter_types = in_parentheses(types);
    let values = in_parentheses(&vec!["NULL".to_string(); count_parameters(sql)]);
    let explain_sql = format!(
        "{PLANNER_SETTINGS} PREPARE explained {parameter_types} AS {sql}; EXPLAIN (COSTS OFF) EXECUTE explained {values}"
    );
    let rows = shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), &explain_sql).unwrap();
    rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect()
}

/// True if the parameters are scanned again for each row of a table: the inner side of a nested loop is a function
/// scan.
fn rescans_parameters(plan: &[String]) -> bool {
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

/// A statement is planned once, maybe while its tables are empty, and the plan is used when they have grown.
#[tokio::test(flavor = "multi_thread")]
async fn plans_made_on_empty_tables_scan_array_parameters_once() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    Postgres::open(&url, Timestamp::from_micros(1)).await.unwrap().close();
    shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), "VACUUM ANALYZE").unwrap();
    let code = read_source_code();
    let mut checked = 0;
    for NamedQuery { name, sql } in read_named_queries() {
        let sql = expand_names(&sql);
        if !sql.contains("unnest($") {
            continue;
        }
        checked += 1;
        let plan = explain_statement(&url, &sql, &parameter_types(&name, &code));
        assert!(!rescans_parameters(&plan), "{name}:\n{}", plan.join("\n"));
    }
    assert!(checked > 20, "{checked} statements take arrays");
}

/// However many tasks a lane has, the next lane is found by one index lookup.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_an_object_are_found_by_index() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    Postgres::open(&url, Timestamp::from_micros(1)).await.unwrap().close();
    let queries = read_named_queries();
    let NamedQuery { name, sql } =
        queries.iter().find(|query| query.name == "task/list_lanes_of_object").unwrap();
    let plan = explain_statement(&url, &expand_names(sql), &parameter_types(name, &read_source_code()));
    let count_lines = |text: &str| plan.iter().filter(|line| line.contains(text)).count();
    assert_eq!(
        count_lines("using task_lane on task"),
        3,
        "for the first lane, for the next lane, and for the number of tasks:\n{}",
        plan.join("\n")
    );
    assert_eq!(count_lines("Index Cond: ((lane"), 2, "{}", plan.join("\n"));
    assert_eq!(count_lines("Index Cond: (lane ="), 1, "{}", plan.join("\n"));
    assert_eq!(count_lines("Seq Scan"), 0, "{}", plan.join("\n"));
}
