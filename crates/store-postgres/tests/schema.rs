//! The schema of the repository (`schema.sql`), of a fresh database, and of every migrated older layout are the same.
//! `REFRESH=1` writes the file again; review the changes before you commit it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod older_layout;

use std::path::Path;
use std::process::Command;

use older_layout::MIGRATIONS_FROM_OLDER_LAYOUT;
use pointsman_core::Timestamp;
use pointsman_core::store::{EmitBatch, Journal, Store};
use pointsman_core::{EventType, NewEvent};
use pointsman_store_postgres::{MIGRATIONS, Postgres, PostgresStore};
use pointsman_testing::shared_postgres;

/// Other versions of PostgreSQL dump the same schema differently.
const DUMP_POSTGRES_VERSION: &str = "15";

const SCHEMA_FILE_HEADER: &str = "\
-- The whole schema as the migrations make it, for reading and for comparing: nobody runs this file. It is what
-- pg_dump writes of a fresh database; `REFRESH=1 cargo test -p pointsman-store-postgres --test schema` renews it.
";

fn now() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000)
}

fn new_database() -> String {
    shared_postgres().unwrap().create_database().unwrap()
}

async fn open_from_older_layout(url: &str) -> PostgresStore {
    Postgres::open_with_migrations(url, MIGRATIONS_FROM_OLDER_LAYOUT, now()).await.unwrap()
}

async fn close_store(store: PostgresStore) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

async fn open_and_close(url: &str) {
    close_store(Postgres::open(url, now()).await.unwrap()).await;
}

fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), sql).unwrap()
}

/// Dumps the schema without header, settings and partitions.
fn dump_schema(url: &str) -> String {
    let mut command = Command::new("pg_dump");
    command.args(["--schema-only", "--no-owner", "--no-privileges", "--schema=pointsman", "--dbname", url]);
    for table in ["journal", "history", "attempt", "log"] {
        command.arg(format!("--exclude-table=pointsman.{table}_[0-9]*"));
    }
    let dumped = command.output().unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let mut lines: Vec<String> = vec![];
    for line in String::from_utf8(dumped.stdout).unwrap().lines() {
        let skipped_prefixes = ["--", "\\", "SET ", "SELECT pg_catalog.set_config"];
        let is_repeated_empty_line = line.is_empty() && lines.last().is_none_or(String::is_empty);
        if !is_repeated_empty_line && !skipped_prefixes.iter().any(|prefix| line.starts_with(prefix)) {
            lines.push(line.trim_end().into());
        }
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// Asserts that two schemas are the same, and reports the first line that differs.
fn assert_same_schema(found: &str, expected: &str, description: &str) {
    let difference = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert_eq!(difference, None, "{description}");
    assert_eq!(found.lines().count(), expected.lines().count(), "{description}");
}

#[tokio::test]
async fn the_schema_of_a_new_database_matches_schema_sql() {
    let url = new_database();
    // Not opened, because opening checks the objects that the file lists.
    Postgres::migrate(&url, MIGRATIONS).await.unwrap();
    let found = format!("{SCHEMA_FILE_HEADER}\n{}", dump_schema(&url));
    let version = query(&url, "SHOW server_version")[0][0].clone().unwrap();
    if version.split('.').next() != Some(DUMP_POSTGRES_VERSION) {
        eprintln!("not compared: the file is of PostgreSQL {DUMP_POSTGRES_VERSION}, and this is {version}");
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.sql");
    if std::env::var_os("REFRESH").is_some_and(|value| value == "1") {
        std::fs::write(&file, &found).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap();
    assert_same_schema(&found, &stored, "schema.sql; REFRESH=1 renews it");
}

#[tokio::test]
async fn every_migrated_layout_matches_a_fresh_one() {
    let fresh = new_database();
    open_and_close(&fresh).await;
    let expected = dump_schema(&fresh);
    let stepwise = new_database();
    for layout in 1..MIGRATIONS_FROM_OLDER_LAYOUT.len() {
        let older = &MIGRATIONS_FROM_OLDER_LAYOUT[..layout];
        Postgres::migrate(&stepwise, older).await.unwrap();
        let applied = "SELECT count(*), max(version) FROM pointsman.migration";
        assert_eq!(query(&stepwise, applied), [[Some(layout.to_string()), Some(layout.to_string())]]);
        let old = new_database();
        Postgres::migrate(&old, older).await.unwrap();
        assert_ne!(dump_schema(&old), expected, "layout {layout} is not older");
        close_store(open_from_older_layout(&old).await).await;
        assert_same_schema(
            &dump_schema(&old),
            &expected,
            &format!("layout {layout}, migrated to the newest"),
        );
    }
    Postgres::migrate(&stepwise, MIGRATIONS_FROM_OLDER_LAYOUT).await.unwrap();
    assert_same_schema(&dump_schema(&stepwise), &expected, "all layouts, migrated one by one");
}

/// Events of an older layout still exist after the migration, and new ones continue their numbers.
#[tokio::test]
async fn data_of_an_older_layout_survives_migration() {
    let url = new_database();
    Postgres::migrate(&url, &MIGRATIONS_FROM_OLDER_LAYOUT[..1]).await.unwrap();
    let old_rows = "
        SELECT pointsman.add_partition('journal', 0, 1000);
        INSERT INTO pointsman.journal (number, id, type, key, tenant, value, depth, first_task, tasks)
            VALUES (1, 5000, 'record', 'a', 'default', '1', 0, 1, 0);
        INSERT INTO pointsman.object VALUES ('default', 'a', 1, 5000, '');
        UPDATE pointsman.counters SET last_event = 5000, journaled_events = 1, last_object = 1, journal_end = 1000";
    query(&url, old_rows);
    let read_namespace = "SELECT text FROM pointsman.meta WHERE name = 'task_id_namespace'";
    let before = query(&url, read_namespace);
    let store = open_from_older_layout(&url).await;
    let event = NewEvent {
        key: Some(pointsman_core::ObjectKey::new("a").unwrap()),
        ..NewEvent::new(EventType::new("record").unwrap())
    };
    let emission = EmitBatch { events: vec![event], idempotency_key: None };
    let (receipts, _) = store.append(vec![emission], None, now()).await.unwrap();
    let sequenced = &receipts[0].as_ref().unwrap().events[0];
    assert_eq!(sequenced.prev.map(|prev| prev.get()), Some(5000));
    assert_eq!(query(&url, read_namespace), before);
    close_store(store).await;
}

/// The columns of a table or view: name, type, and whether it may be NULL.
fn list_columns(url: &str, table: &str) -> Vec<[String; 3]> {
    let sql = format!(
        "SELECT column_name, CASE data_type WHEN 'USER-DEFINED' THEN udt_schema || '.' || udt_name ELSE data_type END,
                is_nullable
         FROM information_schema.columns WHERE table_schema = 'pointsman' AND table_name = '{table}'
         ORDER BY ordinal_position"
    );
    let rows = query(url, &sql).into_iter();
    rows.map(|row| <[_; 3]>::try_from(row).unwrap().map(Option::unwrap)).collect()
}

fn list_enum_labels(url: &str, kind: &str) -> Vec<String> {
    let sql = format!("SELECT unnest(enum_range(NULL::pointsman.{kind}))::text");
    query(url, &sql).into_iter().map(|mut row| row.remove(0).unwrap()).collect()
}

#[tokio::test]
async fn the_documented_tables_match_the_documentation() {
    let url = new_database();
    open_and_close(&url).await;
    assert_eq!(
        list_enum_labels(&url, "queue_status"),
        ["new", "scheduled", "locked", "done", "error", "missing"]
    );
    assert_eq!(list_enum_labels(&url, "scheduling_rule_type"), ["pause", "block"]);
    let view_columns = list_columns(&url, "events");
    let view_columns: Vec<_> =
        view_columns.iter().map(|[name, kind, _]| (name.as_str(), kind.as_str())).collect();
    assert_eq!(
        view_columns,
        [
            ("id", "bigint"),
            ("status", "pointsman.queue_status"),
            ("dequeued_by", "integer"),
            ("canvas_id", "uuid"),
            ("account_id", "uuid"),
            ("space", "text"),
            ("name", "text"),
            ("value", "text"),
            ("retries", "integer"),
            ("delay_until", "timestamp with time zone"),
            ("modifier", "text"),
            ("enqueued_at", "timestamp with time zone"),
            ("last_processed_at", "timestamp with time zone"),
        ]
    );
    let rules = list_columns(&url, "scheduling_rules");
    let rules: Vec<_> = rules.iter().map(|column| column.each_ref().map(String::as_str)).collect();
    assert_eq!(
        rules,
        [
            ["id", "integer", "NO"],
            ["rule_type", "pointsman.scheduling_rule_type", "NO"],
            ["canvas_id", "uuid", "NO"],
            ["handler_name", "text", "NO"],
            ["event_space", "text", "NO"],
            ["created_at", "timestamp with time zone", "NO"],
        ]
    );
    let insert_rule_sql =
        "INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space)
                 VALUES ('pause', gen_random_uuid(), 'a', 'WORKER')
                 RETURNING id > 0 AND created_at BETWEEN now() - interval '1 minute' AND now()";
    assert_eq!(query(&url, insert_rule_sql), [[Some("t".into())]], "the other columns have defaults");
}
