//! The doctor finds the problems of real databases, and its advice fixes them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod older_layout;
mod test_store;

use std::time::Duration;

use older_layout::MIGRATIONS_FROM_OLDER_LAYOUT;
use pointsman_core::store::{Registry, Store};
use pointsman_store::finding::{Finding, FindingSeverity};
use pointsman_store_postgres::{Postgres as Database, doctor};
use pointsman_testing::{PgBouncer, PostgresServer, PostgresSettings, shared_postgres};
use test_store::{TestStore, connect, now};

const LONG_TRANSACTION_THRESHOLD: Duration = Duration::from_secs(60);

fn start_durable_server() -> PostgresServer {
    PostgresServer::start(PostgresSettings { durable: true, ..PostgresSettings::default() }).unwrap()
}

async fn examine(url: &str) -> Vec<Finding> {
    doctor::examine(url, LONG_TRANSACTION_THRESHOLD, now).await
}

/// Returns the finding of this name, of which there must be one.
fn finding_named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found: Vec<_> = findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {findings:#?}");
    found[0]
}

async fn severity_of_finding(url: &str, name: &str) -> FindingSeverity {
    finding_named(&examine(url).await, name).severity
}

/// Returns the names of all findings that are not ok.
fn problem_names(findings: &[Finding]) -> Vec<&'static str> {
    findings
        .iter()
        .filter(|finding| finding.severity != FindingSeverity::Ok)
        .map(|finding| finding.name)
        .collect()
}

fn advice_text(finding: &Finding) -> &str {
    finding.advice.as_deref().unwrap_or_default()
}

/// The database's name in a URL.
fn database_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// The same URL for another role.
fn url_with_role(url: &str, role: &str) -> String {
    let (_, location) = url.split_once('@').unwrap();
    format!("postgres://{role}@{location}")
}

fn percent_encode(url: &str) -> String {
    url.replace(':', "%3A").replace('/', "%2F").replace('@', "%40")
}

async fn close_store(store: pointsman_store_postgres::PostgresStore) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_database_has_no_problems_before_and_after_its_first_node() {
    let server = start_durable_server();
    let url = server.create_database().unwrap();
    let fresh = examine(&url).await;
    assert_eq!(problem_names(&fresh), [""; 0], "{fresh:#?}");
    assert!(finding_named(&fresh, "layout").observation.contains("no tables yet"));
    let count_schemas_sql = "SELECT count(*) FROM pg_namespace WHERE nspname = 'pointsman'";
    assert_eq!(
        server.query(database_name(&url), count_schemas_sql).unwrap()[0][0].as_deref(),
        Some("0"),
        "the doctor creates nothing"
    );

    let store_node = TestStore::open(&url).await;
    store_node.store.join_node("first", now()).await.unwrap();
    let findings = examine(&url).await;
    assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
    for (name, text) in [
        ("connection", "not encrypted"),
        ("version", "PostgreSQL"),
        ("encoding", "UTF8"),
        ("rights", "all required privileges"),
        ("layout", "the newest"),
        ("pooler", "none"),
        ("listening", "notify each other"),
        ("nodes", "1 live: first"),
        ("outbox", "empty"),
    ] {
        assert!(finding_named(&findings, name).observation.contains(text), "{name}: {findings:#?}");
    }
    store_node.close().await;
}

#[tokio::test]
async fn an_unreachable_database_is_reported_without_the_password() {
    for (url, text) in [
        ("postgres://ann:s3cret@127.0.0.1:1/bus", "127.0.0.1:1"),
        ("postgres://ann:s3cret@127.0.0.1:1/bus?sslmode=perhaps", "sslmode"),
        ("postgres://", "names no host"),
    ] {
        let findings = examine(url).await;
        let finding = finding_named(&findings, "connection");
        assert_eq!((findings.len(), finding.severity), (1, FindingSeverity::Fault), "{finding:?}");
        assert!(
            finding.observation.contains(text) && !format!("{finding:?}").contains("s3cret"),
            "{finding:?}"
        );
    }
}

#[tokio::test]
async fn settings_that_lose_acknowledged_data_are_faults() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    let findings = examine(&url).await;
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        let finding = finding_named(&findings, setting);
        assert_eq!(finding.severity, FindingSeverity::Fault);
        assert!(
            finding.observation.starts_with("off") && advice_text(finding).contains("command line"),
            "{finding:?}"
        );
    }
}

/// Each wrong setting is reported, and the advice corrects it.
#[tokio::test(flavor = "multi_thread")]
async fn the_advice_for_settings_fixes_them() {
    let server = start_durable_server();
    let url = server.create_database().unwrap();
    let database = database_name(&url);
    server.query(database, "CREATE ROLE ann LOGIN SUPERUSER").unwrap();
    let url = url_with_role(&url, "ann");
    assert_eq!(problem_names(&examine(&url).await), [""; 0]);
    let cases = [
        ("ALTER SYSTEM SET fsync = off", "fsync", FindingSeverity::Fault),
        ("ALTER SYSTEM SET full_page_writes = off", "full_page_writes", FindingSeverity::Fault),
        ("ALTER SYSTEM SET synchronous_commit = off", "synchronous_commit", FindingSeverity::Fault),
        ("ALTER ROLE ann SET synchronous_commit = off", "synchronous_commit", FindingSeverity::Fault),
        (
            "ALTER DATABASE {database} SET synchronous_commit = off",
            "synchronous_commit",
            FindingSeverity::Fault,
        ),
        (
            "ALTER ROLE ann IN DATABASE {database} SET synchronous_commit = off",
            "synchronous_commit",
            FindingSeverity::Fault,
        ),
        ("ALTER SYSTEM SET autovacuum = off", "autovacuum", FindingSeverity::Warning),
        ("ALTER SYSTEM SET track_counts = off", "track_counts", FindingSeverity::Warning),
        ("ALTER ROLE ann SET statement_timeout = '5s'", "statement_timeout", FindingSeverity::Warning),
        (
            "ALTER ROLE ann SET idle_in_transaction_session_timeout = '1s'",
            "idle_in_transaction_session_timeout",
            FindingSeverity::Warning,
        ),
        ("ALTER ROLE ann SET idle_session_timeout = '1h'", "idle_session_timeout", FindingSeverity::Warning),
        ("ALTER ROLE ann SET lock_timeout = '10ms'", "lock_timeout", FindingSeverity::Warning),
    ];
    for (sql, setting, severity) in cases {
        let sql = sql.replace("{database}", database);
        run_statements(&server, database, &format!("{sql}; SELECT pg_reload_conf()"));
        let findings =
            wait_until_findings(&url, |findings| findings.iter().any(|finding| finding.name == setting))
                .await;
        assert_eq!(finding_named(&findings, setting).severity, severity, "{sql}");
        run_statements(&server, database, advice_text(finding_named(&findings, setting)));
        wait_until_findings(&url, |findings| problem_names(findings).is_empty()).await;
    }
}

/// Runs statements one by one: some must not share a transaction.
fn run_statements(server: &PostgresServer, database: &str, statements: &str) {
    for statement in statements.split("; ") {
        server.query(database, statement).unwrap();
    }
}

/// Waits until the findings match: a server takes a moment to reload its configuration.
async fn wait_until_findings(url: &str, condition: impl Fn(&[Finding]) -> bool) -> Vec<Finding> {
    let poll = async {
        loop {
            let findings = examine(url).await;
            if condition(&findings) {
                return findings;
            }
        }
    };
    tokio::time::timeout(test_store::TEST_TIMEOUT, poll)
        .await
        .unwrap_or_else(|_| panic!("the findings did not change in time"))
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_with_asynchronous_commits_are_reported() {
    let server = start_durable_server();
    let url = server.create_database().unwrap();
    server
        .query(
            database_name(&url),
            "CREATE ROLE async_role; ALTER ROLE async_role SET synchronous_commit = off",
        )
        .unwrap();
    let findings = examine(&url).await;
    let roles = finding_named(&findings, "roles");
    assert!(
        roles.severity == FindingSeverity::Warning && roles.observation.contains("\"async_role\""),
        "{roles:?}"
    );
}

#[tokio::test]
async fn a_long_open_transaction_is_reported_with_its_pid() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    let other = connect(&url).await;
    other.batch_execute("BEGIN; SELECT 1").await.unwrap();
    let pid: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    assert_eq!(severity_of_finding(&url, "transactions").await, FindingSeverity::Ok);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let findings = doctor::examine(&url, Duration::from_secs(1), now).await;
    let finding = finding_named(&findings, "transactions");
    assert_eq!(finding.severity, FindingSeverity::Warning);
    assert!(finding.observation.contains(&format!("pid {pid} of postgres")), "{finding:?}");
    assert!(finding.observation.contains("idle in transaction"), "{finding:?}");
    assert!(advice_text(finding).contains(&format!("pg_terminate_backend({pid})")), "{finding:?}");
}

#[tokio::test]
async fn the_advice_contains_the_grant_to_see_transactions_of_other_roles() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let role = format!("unprivileged_{}", database_name(&url));
    server.query(database_name(&url), &format!("CREATE ROLE {role} LOGIN")).unwrap();
    let findings = examine(&url_with_role(&url, &role)).await;
    let finding = finding_named(&findings, "transactions");
    assert!(
        finding.severity == FindingSeverity::Ok && finding.observation.contains("cannot be seen"),
        "{finding:?}"
    );
    server.query(database_name(&url), advice_text(finding).strip_prefix("To see them: ").unwrap()).unwrap();
    let findings = examine(&url_with_role(&url, &role)).await;
    assert!(finding_named(&findings, "transactions").observation.starts_with("none is open"));
}

#[tokio::test]
async fn older_newer_altered_and_foreign_layouts_are_distinguished() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let examine_older = async |url: &str| {
        doctor::examine_with_migrations(url, MIGRATIONS_FROM_OLDER_LAYOUT, LONG_TRANSACTION_THRESHOLD, now)
            .await
    };
    let newest = MIGRATIONS_FROM_OLDER_LAYOUT.len();
    Database::migrate(&url, &MIGRATIONS_FROM_OLDER_LAYOUT[..1]).await.unwrap();
    let findings = examine_older(&url).await;
    let older = finding_named(&findings, "layout");
    assert_eq!(older.severity, FindingSeverity::Ok);
    assert!(
        older.observation.starts_with("1;") && older.observation.contains(&format!("to {newest}")),
        "{older:?}"
    );

    Database::migrate(&url, MIGRATIONS_FROM_OLDER_LAYOUT).await.unwrap();
    let later = "INSERT INTO pointsman.migration
                 SELECT max(version) + 1, 'later.sql', '', now() FROM pointsman.migration";
    server.query(database_name(&url), later).unwrap();
    let findings = examine_older(&url).await;
    let newer = finding_named(&findings, "layout");
    assert!(
        newer.severity == FindingSeverity::Fault && newer.observation.contains("newer version"),
        "{newer:?}"
    );

    let altered = "DELETE FROM pointsman.migration WHERE name = 'later.sql';
                   UPDATE pointsman.migration SET checksum = 'another' WHERE version = 2";
    server.query(database_name(&url), altered).unwrap();
    let findings = examine_older(&url).await;
    let altered = finding_named(&findings, "layout");
    assert!(
        altered.severity == FindingSeverity::Fault && altered.observation.contains("0002_commit_versions"),
        "{altered:?}"
    );

    let url = server.create_database().unwrap();
    server
        .query(database_name(&url), "CREATE SCHEMA pointsman; CREATE TABLE pointsman.theirs (n integer)")
        .unwrap();
    let findings = examine(&url).await;
    let foreign = finding_named(&findings, "layout");
    assert!(
        foreign.severity == FindingSeverity::Fault && foreign.observation.contains("not Pointsman's"),
        "{foreign:?}"
    );
}

#[tokio::test]
async fn missing_privileges_are_reported_with_the_grant() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let database = database_name(&url);
    let [creator, guest] = ["creator", "guest"].map(|role| format!("{role}_{database}"));
    for role in [&creator, &guest] {
        server.query(database, &format!("CREATE ROLE {role} LOGIN")).unwrap();
    }
    for role in [&creator, &guest] {
        let url = url_with_role(&url, role);
        let findings = examine(&url).await;
        let rights = finding_named(&findings, "rights");
        assert_eq!(rights.severity, FindingSeverity::Fault, "{rights:?}");
        server.query(database, advice_text(rights).strip_prefix("Run as an owner: ").unwrap()).unwrap();
        assert_eq!(severity_of_finding(&url, "rights").await, FindingSeverity::Ok);
        close_store(Database::open(&url, now()).await.unwrap()).await;
        assert_eq!(severity_of_finding(&url, "rights").await, FindingSeverity::Ok);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undeclared_pooler_is_a_fault() {
    let server = start_durable_server();
    let direct = server.create_database().unwrap();
    close_store(Database::open(&direct, now()).await.unwrap()).await;
    let pooler = PgBouncer::start(&server, database_name(&direct)).unwrap();
    let url = pooler.url().unwrap();
    let findings = examine(&url).await;
    let finding = finding_named(&findings, "pooler");
    assert_eq!(
        (problem_names(&findings), finding.severity),
        (vec!["pooler"], FindingSeverity::Fault),
        "{findings:#?}"
    );
    assert!(advice_text(finding).contains("pooler=transaction") && advice_text(finding).contains("listen="));

    let findings = examine(&format!("{url}?pooler=transaction")).await;
    assert_eq!(problem_names(&findings), ["listening"], "{findings:#?}");
    assert!(finding_named(&findings, "pooler").observation.contains("as declared in the URL"));

    let findings = examine(&format!("{url}?pooler=transaction&listen={}", percent_encode(&direct))).await;
    assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");

    let other_database = percent_encode(&server.create_database().unwrap());
    let findings = examine(&format!("{url}?pooler=transaction&listen={other_database}")).await;
    assert_eq!(finding_named(&findings, "listening").severity, FindingSeverity::Fault, "{findings:#?}");

    let findings = examine(&format!("{direct}?pooler=transaction")).await;
    assert!(finding_named(&findings, "pooler").observation.contains("none was detected"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_transactions_replication_slots_and_dead_rows_are_reported() {
    let extra = [("max_prepared_transactions", "5"), ("autovacuum", "off")];
    let extra = extra.map(|(name, value)| (name.into(), value.into())).to_vec();
    let server =
        PostgresServer::start(PostgresSettings { durable: true, max_connections: 12, extra_settings: extra })
            .unwrap();
    let url = server.create_database().unwrap();
    close_store(Database::open(&url, now()).await.unwrap()).await;
    let before = examine(&url).await;
    assert_eq!(problem_names(&before), ["autovacuum", "connections"], "{before:#?}");

    let database = database_name(&url);
    server.query(database, "BEGIN; CREATE TABLE theirs (); PREPARE TRANSACTION 'left over'").unwrap();
    server.query(database, "SELECT pg_create_physical_replication_slot('forgotten', true)").unwrap();
    let insert_objects_sql =
        "INSERT INTO pointsman.object SELECT 'default', i, i, i, '' FROM generate_series(1, 30000) i";
    server.query(database, insert_objects_sql).unwrap();
    server.query(database, "DELETE FROM pointsman.object").unwrap();
    let findings = doctor::examine(&url, Duration::ZERO, now).await;
    for (name, text) in
        [("prepared transactions", "left over"), ("replication slots", "forgotten"), ("tables", "object")]
    {
        let finding = finding_named(&findings, name);
        assert!(
            finding.severity == FindingSeverity::Warning && finding.observation.contains(text),
            "{finding:?}"
        );
    }
    for remedy in [
        "ROLLBACK PREPARED 'left over'",
        "SELECT pg_drop_replication_slot('forgotten')",
        "VACUUM pointsman.object",
    ] {
        server.query(database, remedy).unwrap();
    }
    assert_eq!(problem_names(&examine(&url).await), ["autovacuum", "connections"]);
}

#[tokio::test]
async fn the_outbox_and_the_nodes_are_checked() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let database = database_name(&url);
    let store = Database::open(&url, now()).await.unwrap();
    store.join_node("lost", now()).await.unwrap();
    close_store(store).await;
    let age_heartbeats_sql = "UPDATE pointsman.node SET last_heartbeat = last_heartbeat - 3600000000";
    server.query(database, age_heartbeats_sql).unwrap();
    server.query(database, "SELECT pointsman.emit('a') FROM generate_series(1, 3)").unwrap();
    assert_eq!(severity_of_finding(&url, "outbox").await, FindingSeverity::Ok);
    server.query(database, "UPDATE pointsman.outbox SET at = at - 3600000000").unwrap();
    let refused =
        "INSERT INTO pointsman.outbox_refused (n, type, tenant, value, priority, at, reason, refused_at)
                   VALUES (1, 'no type', 'default', 'null', 100, 0, 'it has a blank', 0)";
    server.query(database, refused).unwrap();
    let findings = examine(&url).await;
    for (name, text) in [
        ("nodes", "lost for 60 min"),
        ("outbox", "3 events waiting, the first for 60 min"),
        ("refused", "it has a blank"),
    ] {
        let finding = finding_named(&findings, name);
        assert!(
            finding.severity == FindingSeverity::Warning && finding.observation.contains(text),
            "{finding:?}"
        );
    }
    assert_eq!(advice_text(finding_named(&findings, "outbox")), "Start a node: it drains them.");
    server.query(database, "UPDATE pointsman.node SET last_heartbeat = 0").unwrap();
    let findings = examine(&url).await;
    let nodes = finding_named(&findings, "nodes");
    assert_eq!(nodes.severity, FindingSeverity::Ok, "{nodes:?}");
    assert!(
        nodes.observation.contains("still running when their store was copied here: lost ("),
        "{nodes:?}"
    );
}

/// Statements that remove an object, and its name in the finding.
const SCHEMA_OBJECT_REMOVALS: [(&str, &str); 7] = [
    ("DROP TABLE pointsman.journal_sparse_index", "table journal_sparse_index"),
    ("DROP VIEW pointsman.events", "view events"),
    ("DROP FUNCTION pointsman.event_of", "function event_of"),
    ("DROP INDEX pointsman.fire_recorded_at", "index fire_recorded_at"),
    ("ALTER TABLE pointsman.audit_entry DROP COLUMN detail", "column audit_entry.detail"),
    ("ALTER TABLE pointsman.receipt DROP CONSTRAINT receipt_pkey", "index receipt_pkey"),
    ("DELETE FROM pointsman.outbox_progress", "the row of outbox_progress"),
];

#[tokio::test]
async fn removed_schema_objects_are_reported_by_name() {
    let server = shared_postgres().unwrap();
    for (removed, named) in SCHEMA_OBJECT_REMOVALS {
        let url = server.create_database().unwrap();
        close_store(Database::open(&url, now()).await.unwrap()).await;
        assert_eq!(severity_of_finding(&url, "missing").await, FindingSeverity::Ok);
        server.query(database_name(&url), removed).unwrap();
        let findings = examine(&url).await;
        let missing = finding_named(&findings, "missing");
        assert_eq!(missing.severity, FindingSeverity::Fault, "{missing:?}");
        assert_eq!(missing.observation, format!("{named} of the schema pointsman"));
    }
}

#[tokio::test]
async fn an_unfinished_store_copy_is_a_fault() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    close_store(Database::open(&url, now()).await.unwrap()).await;
    server
        .query(database_name(&url), "INSERT INTO pointsman.meta (name, text) VALUES ('move', '{}')")
        .unwrap();
    let findings = examine(&url).await;
    let moved = finding_named(&findings, "move");
    assert!(
        moved.severity == FindingSeverity::Fault && advice_text(moved).contains("pointsman move"),
        "{moved:?}"
    );
}

/// The advice never grants membership of a superuser, nor of an owner that does not own everything.
#[tokio::test]
async fn the_advice_never_grants_a_superuser_role() {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let database = database_name(&url);
    let non_owner = format!("non_owner_{database}");
    server.query(database, &format!("CREATE ROLE {non_owner} LOGIN")).unwrap();
    close_store(Database::open(&url, now()).await.unwrap()).await;
    for sql in ["SELECT 1", "ALTER SCHEMA pointsman OWNER TO non_owner"] {
        server.query(database, &sql.replace("non_owner", &non_owner)).unwrap();
        let findings = examine(&url_with_role(&url, &non_owner)).await;
        let rights = finding_named(&findings, "rights");
        assert!(
            rights.severity == FindingSeverity::Fault && !advice_text(rights).contains("GRANT"),
            "{rights:?}"
        );
    }
    let findings = examine(&url_with_role(&url, &non_owner)).await;
    let remedy = advice_text(finding_named(&findings, "rights")).strip_prefix("Run as an owner: ").unwrap();
    server.query(database, remedy).unwrap();
    let url = url_with_role(&url, &non_owner);
    assert_eq!(severity_of_finding(&url, "rights").await, FindingSeverity::Ok);
    close_store(Database::open(&url, now()).await.unwrap()).await;
}
