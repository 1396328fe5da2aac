//! A file of an older layout is migrated with all of its data.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pointsman_core::chain::{Chain, ChainNode, ChainNodeRole, OrderKey};
use pointsman_core::route::HandlerBinding;
use pointsman_core::store::{
    AttemptResult, ClaimRequest, Claimant, ClaimedTask, EmitBatch, FinishedAttempt, Journal, NewOrder,
    Orders, Registration, Registry, ReplayReport, RescueOptions, Store, TaskFilter, TaskQueue, Tasks,
};
use pointsman_core::{
    EventId, EventType, HandlerDef, HandlerName, NewEvent, ObjectKey, Routes, RuleKind, TaskStatus, Tenant,
    Timestamp,
};
use pointsman_store::expand_sql;
use pointsman_store_sqlite::{MIGRATIONS, Sqlite, SqliteStore};
use rusqlite::Connection;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Returns the migrations of a made-up history: an older layout, which is made from the initial one; two migrations
/// that lead from it to the initial layout; and the migrations after that.
fn migrations_from_older_layout() -> Vec<&'static str> {
    let mut migrations = vec![
        expand_sql!(concat!(
            include_str!("../migrations/0001_initial.sql"),
            include_str!("older_layout/0001_older.sql"),
        )),
        include_str!("older_layout/0002_objects_and_lanes.sql"),
        include_str!("older_layout/0003_orders.sql"),
    ];
    migrations.extend(&MIGRATIONS[1..]);
    migrations
}

fn open_with_migrations_from_older_layout(path: &Path) -> SqliteStore {
    Sqlite::open_with_migrations(path, &migrations_from_older_layout(), NOW).unwrap()
}

/// Creates a file of the older layout with this number: 1 or 2.
fn create_file_of_older_layout(path: &Path, layout: usize) -> Connection {
    let conn = Connection::open(path).unwrap();
    for migration in &migrations_from_older_layout()[..layout] {
        conn.execute_batch(migration).unwrap();
    }
    let numbers = "INSERT INTO pointsman_meta
                   VALUES ('layout', ?1), ('task_id_namespace', 77), ('salt', 5), ('archived_tasks', 1)";
    conn.execute(numbers, [layout as i64]).unwrap();
    conn
}

/// Rows of the first layout: a handler, three events of one object (the task of the first is running on a node, the
/// tasks of the others wait behind it), an event without a key whose task is ready, an archived task, and a rule.
const INSERT_FIRST_LAYOUT_ROWS_SQL: &str = "
    INSERT INTO pointsman_handler VALUES (1, 'index', '{\"name\":\"index\",\"order\":\"key\",\"on_error\":\"park\",
        \"retry\":{\"max\":2,\"backoff\":\"exponential\",\"delay\":{\"secs\":1,\"nanos\":0},
                   \"max_delay\":{\"secs\":300,\"nanos\":0}},\"crashes\":3}', 1);
    INSERT INTO pointsman_node (id, name, joined, last_heartbeat, gone) VALUES (3, 'old', 1, 1, 0);
    INSERT INTO pointsman_queue VALUES (1, 1, 'default', '', 1, 2, 0, 1, 0, 0);
    INSERT INTO pointsman_rule VALUES ('block', 'handler', 'other', '', 'ops', 'why', 5);
    INSERT INTO pointsman_journal (id, prev, type, key, tenant, value, depth, first_task, tasks) VALUES
        (1000, NULL, 'record', 'a', 'default', '1', 0, 2, 1), (2000, 1000, 'record', 'a', 'default', '2', 0, 3, 1),
        (3000, 2000, 'record', 'a', 'default', '3', 0, 4, 1), (4000, NULL, 'record', NULL, 'default', '4', 0, 5, 1);
    INSERT INTO pointsman_object VALUES ('default', 'a', 3000, x'01000000b80b000000000000'),
        ('default', 'b', 900, x'010000008403000000000000');
    INSERT INTO pointsman_task (seq, queue, event, phase, lane, sync, stage, priority, score, rank, due, attempt,
                                retries,
                                crashes, late, node, fence, started, created) VALUES
        (2, 1, 1000, 5, 99, 0, 0, 100, 100000000, 0, 0, 1, 0, 0, 0, 3, 8, 1, 1),
        (3, 1, 2000, 0, 99, 0, 0, 100, 100000000, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 1),
        (4, 1, 3000, 0, 99, 0, 0, 100, 100000000, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 1),
        (5, 1, 4000, 3, NULL, 0, 0, 100, 100000000, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 1);
    INSERT INTO pointsman_history (seq, queue, event, type, key, status, reason, sync, stage, priority, attempt,
                                   retries,
                                   crashes, late, has_lane, created, finished, error) VALUES
        (1, 1, 900, 'record', 'b', 1, 0, 0, 0, 100, 3, 2, 0, 0, 1, 1, 2, 'boom');
";

fn create_file_of_first_layout(path: &Path) {
    create_file_of_older_layout(path, 1).execute_batch(INSERT_FIRST_LAYOUT_ROWS_SQL).unwrap();
}

fn claim_request_for_node(node: i64) -> ClaimRequest {
    let handlers = Arc::new(BTreeSet::from([HandlerName::new("index").unwrap()]));
    ClaimRequest { claimant: Claimant::Node(node), handlers, max_tasks: 10 }
}

fn successful_attempt(task: &ClaimedTask) -> FinishedAttempt {
    let result = AttemptResult::Succeeded { result: None };
    FinishedAttempt {
        task_seq: task.seq,
        fence: task.fence,
        result,
        target_health: None,
        emitted_events: vec![],
        log_lines: vec![],
    }
}

#[tokio::test]
async fn waiting_tasks_keep_their_order_after_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    create_file_of_first_layout(&path);
    let store = open_with_migrations_from_older_layout(&path);
    let registration = store.read_merged_registration().await.unwrap();
    assert_eq!(registration.handlers.len(), 1);
    assert_eq!(store.list_rules().await.unwrap()[0].kind, RuleKind::Block);

    let failed = TaskFilter { statuses: vec![TaskStatus::Error], ..TaskFilter::default() };
    let page = store.list_tasks(failed, None, 10).await.unwrap();
    assert_eq!(page.tasks[0].error.as_deref(), Some("boom"));

    let node = store.join_node("new", NOW).await.unwrap();
    assert_eq!(
        store
            .rescue_tasks(RescueOptions::full_sweep(std::time::Duration::from_secs(30)), NOW)
            .await
            .unwrap()
            .freed_tasks_with_status
            .len(),
        1
    );
    let index_handler = HandlerName::new("index").unwrap();
    let mut routes = Routes::new();
    routes.bind(EventType::new("record").unwrap(), HandlerBinding::new_queued(index_handler.clone()));
    let registration =
        Registration { handlers: vec![HandlerDef::new(index_handler)], routes, ..Default::default() };
    store.register_definitions(registration, NOW).await.unwrap();
    let mut new_event = NewEvent::new(EventType::new("record").unwrap());
    new_event.key = Some(ObjectKey::new("a").unwrap());
    let batch = EmitBatch { events: vec![new_event], idempotency_key: None };
    let (receipts, _) = store.append(vec![batch], None, NOW).await.unwrap();
    assert_eq!(receipts[0].as_ref().unwrap().events[0].prev, EventId::new(3000));
    let mut ran_seqs = Vec::new();
    for _ in 0..5 {
        for task in store.claim_tasks(claim_request_for_node(node), NOW).await.unwrap().tasks {
            ran_seqs.push(task.seq.0);
            assert!(
                store.finish_attempts(vec![successful_attempt(&task)], None, NOW).await.unwrap().0[0].is_ok()
            );
        }
    }
    let lane_seqs: Vec<_> = ran_seqs.iter().filter(|seq| **seq != 5).copied().collect();
    assert_eq!((lane_seqs, ran_seqs.len()), (vec![2, 3, 4, 6], 5), "new tasks are behind waiting ones");
    store.close();
}

/// A handler that was not defined during the migration counts as having received all earlier events.
#[tokio::test]
async fn events_before_a_migration_are_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    create_file_of_first_layout(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE pointsman_handler SET defined = 0", []).unwrap();
    drop(conn);
    let store = open_with_migrations_from_older_layout(&path);
    let index_handler = HandlerName::new("index").unwrap();
    let mut routes = Routes::new();
    routes.bind(EventType::new("record").unwrap(), HandlerBinding::new_queued(index_handler.clone()));
    let handlers = vec![HandlerDef::new(index_handler.clone())];
    store
        .register_definitions(Registration { handlers, routes, ..Registration::default() }, NOW)
        .await
        .unwrap();
    assert_eq!(
        store.replay_events(&index_handler, EventId::ZERO, NOW).await.unwrap(),
        ReplayReport::default()
    );
    store.close();
}

/// Orders keep their node, and their ids become unique per tenant.
#[tokio::test]
async fn orders_are_migrated_with_their_tenants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let conn = create_file_of_older_layout(&path, 2);
    conn.execute_batch(
        "INSERT INTO pointsman_order (n, key, chain, node, tenant, value, priority, created, suspended, depth)
         VALUES (4, '/pay,7', '/pay', 'a', 'shop', '[1]', 100, 5, 1, 0)",
    )
    .unwrap();
    drop(conn);
    let store = open_with_migrations_from_older_layout(&path);
    let (shop, key) = (Tenant::new("shop").unwrap(), "/pay,7".parse::<OrderKey>().unwrap());
    let (view, _) = store.read_order(&shop, &key).await.unwrap().unwrap();
    assert_eq!((view.order.value.as_str(), view.order.suspended), ("[1]", true));
    assert!(!view.order.took_on_error);
    let end_node = ChainNode { id: "a".parse().unwrap(), role: ChainNodeRole::End };
    let chains = vec![Chain { path: key.chain.clone(), nodes: vec![end_node] }];
    store.register_definitions(Registration { chains, ..Registration::default() }, NOW).await.unwrap();
    let add_order_succeeds = async |tenant: &Tenant| {
        let order =
            NewOrder { id: Some(key.id.clone()), tenant: tenant.clone(), ..NewOrder::new(key.chain.clone()) };
        store.add_orders(vec![order].into(), NOW).await.unwrap().is_ok()
    };
    assert!(!add_order_succeeds(&shop).await, "the tenant has such an order already");
    assert!(add_order_succeeds(&Tenant::default()).await);
    store.close();
}

/// A file that is migrated from an older layout gets the same tables and indexes as a new file.
#[tokio::test]
async fn new_and_migrated_files_have_equal_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let (migrated, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    create_file_of_first_layout(&migrated);
    for path in [&migrated, &new] {
        open_with_migrations_from_older_layout(path).close();
    }
    assert_eq!(read_schema(&migrated), read_schema(&new));
    let current = folder.path().join("current.db");
    Sqlite::open(&current, NOW).unwrap().close();
    assert_eq!(read_columns(&migrated), read_columns(&current));
}

/// Returns the columns of all tables and indexes, sorted by name.
fn read_columns(path: &Path) -> Vec<(String, String, String, bool, Option<String>, i64)> {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT s.name, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk
               FROM sqlite_schema s, pragma_table_info(s.name) c WHERE s.type = 'table'
               UNION ALL
               SELECT s.name, c.name, c.seqno, i.\"unique\", coalesce(substr(x.sql, instr(x.sql, ' WHERE ')), ''), 0
               FROM sqlite_schema s, pragma_index_list(s.name) i, pragma_index_info(i.name) c
               JOIN sqlite_schema x ON x.name = i.name WHERE s.type = 'table'
               ORDER BY 1, 2, 3, 4, 5, 6";
    let mut statement = conn.prepare(sql).unwrap();
    let decode_row = |r: &rusqlite::Row<'_>| {
        let kind = r.get::<_, rusqlite::types::Value>(2)?;
        Ok((r.get(0)?, r.get(1)?, format!("{kind:?}"), r.get(3)?, r.get(4)?, r.get(5)?))
    };
    statement.query_map([], decode_row).unwrap().collect::<Result<_, _>>().unwrap()
}

fn read_schema(path: &Path) -> Vec<(String, Option<String>)> {
    let conn = Connection::open(path).unwrap();
    let mut statement = conn.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}
