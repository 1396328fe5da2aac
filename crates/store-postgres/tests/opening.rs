//! Opening a database: what is created, what is rejected, and the error messages.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod older_layout;

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::os::unix::fs::PermissionsExt;

use older_layout::MIGRATIONS_FROM_OLDER_LAYOUT;
use pointsman_core::store::{Journal, Orders, Registry, Store};
use pointsman_core::{ErrorChain, Timestamp};
use pointsman_store_postgres::{OpenError, Postgres, PostgresStore};
use pointsman_testing::{PgBouncer, PostgresAdmin, PostgresSettings, shared_postgres};
use tokio::task::JoinSet;

fn now() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000)
}

async fn open_store(url: &str) -> Result<PostgresStore, OpenError> {
    Postgres::open(url, now()).await
}

async fn open_from_older_layout(url: &str) -> Result<PostgresStore, OpenError> {
    Postgres::open_with_migrations(url, MIGRATIONS_FROM_OLDER_LAYOUT, now()).await
}

/// Returns the error of opening, which must fail.
async fn open_error(url: &str) -> OpenError {
    open_store(url).await.map(|store| store.close()).expect_err("the store was opened")
}

/// Creates a database; returns its server, its name and its URL.
fn create_fresh_database() -> (&'static PostgresAdmin, String, String) {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let database = url.rsplit('/').next().unwrap().to_string();
    (server, database, url)
}

/// Returns the URL for another role.
fn with_role(url: &str, role: &str) -> String {
    let (_, location) = url.split_once('@').unwrap();
    format!("postgres://{role}@{location}")
}

fn query_value(server: &PostgresAdmin, database: &str, sql: &str) -> String {
    server.query(database, sql).unwrap()[0][0].clone().unwrap()
}

#[tokio::test]
async fn the_schema_is_created_once_and_reused() {
    let (server, database, url) = create_fresh_database();
    open_store(&url).await.unwrap().close();
    let migrations_sql =
        "SELECT string_agg(version || name || checksum || at, ',' ORDER BY version) FROM pointsman.migration";
    let store_numbers_sql = "SELECT string_agg(name || text, ',' ORDER BY name) FROM pointsman.meta
                   WHERE name IN ('task_id_namespace', 'salt')";
    let created =
        (query_value(server, &database, migrations_sql), query_value(server, &database, store_numbers_sql));
    open_store(&url).await.unwrap().close();
    assert_eq!(
        (query_value(server, &database, migrations_sql), query_value(server, &database, store_numbers_sql)),
        created
    );
    let namespace =
        query_value(server, &database, "SELECT text FROM pointsman.meta WHERE name = 'task_id_namespace'");
    assert!(namespace.parse::<u64>().unwrap() < 1 << 60);
}

#[tokio::test]
async fn many_nodes_may_start_at_once() {
    let (server, database, url) = create_fresh_database();
    let mut starting = JoinSet::new();
    for _ in 0..12 {
        let url = url.clone();
        starting.spawn(async move { open_store(&url).await });
    }
    let mut stores = Vec::new();
    while let Some(opened) = starting.join_next().await {
        stores.push(opened.unwrap().unwrap());
    }
    for store in &stores {
        store.read_journal_range().await.unwrap();
        store.close();
    }
    let duplicates_sql = "SELECT count(*) - count(DISTINCT version) FROM pointsman.migration";
    assert_eq!(query_value(server, &database, duplicates_sql), "0");
}

#[tokio::test]
async fn the_error_names_an_unreachable_server() {
    let error = open_error("postgres://ann:s3cret@127.0.0.1:1/bus").await;
    assert!(matches!(&error, OpenError::Unreachable { address, .. } if address == "127.0.0.1:1"), "{error}");
    assert!(!ErrorChain(&error).to_string().contains("s3cret"));
}

#[tokio::test]
async fn the_error_names_a_missing_database() {
    let (server, ..) = create_fresh_database();
    let error = open_error(&server.url("no_such_database")).await;
    assert!(
        matches!(&error, OpenError::DatabaseNotFound { database, .. } if database == "no_such_database"),
        "{error}"
    );
    let error = open_error(&server.url("no%20where")).await.to_string();
    assert!(error.ends_with("CREATE DATABASE \"no where\""), "{error}");
}

#[tokio::test]
async fn the_error_names_a_role_without_access() {
    let (_, _, url) = create_fresh_database();
    let error = open_error(&with_role(&url, "nobody_of_that_name")).await;
    assert!(
        matches!(&error, OpenError::LoginRefused { role, .. } if role == "nobody_of_that_name"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_database_in_the_url_the_one_named_like_the_role_is_opened() {
    let (server, database, url) = create_fresh_database();
    let role = format!("lone_{database}");
    server.query(&database, &format!("CREATE ROLE {role} LOGIN")).unwrap();
    let url = with_role(url.rsplit_once('/').unwrap().0, &role);
    let error = open_error(&url).await;
    assert!(
        matches!(&error, OpenError::DefaultDatabaseNotFound { role: tried, .. } if *tried == role),
        "{error}"
    );
    assert!(error.to_string().contains("names no database"), "{error}");
}

#[tokio::test]
async fn a_missing_password_or_user_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let hba_file = folder.path().join("pg_hba.conf");
    std::fs::write(&hba_file, "host locked all all scram-sha-256\nhost all all all trust\n").unwrap();
    let extra_settings = vec![("hba_file".into(), hba_file.display().to_string())];
    let server = pointsman_testing::PostgresServer::start(PostgresSettings {
        extra_settings,
        ..PostgresSettings::default()
    })
    .unwrap();
    let url = server.url("locked");
    let error = open_error(&with_role(&url, "ann")).await.to_string();
    assert!(
        error.contains("denies access to the role ann: it requires a password, and none was given"),
        "{error}"
    );
    assert!(error.contains("PGPASSWORD") && !error.contains("names no user"), "{error}");
    let error = open_error(&with_role(&url, "ann:wrong")).await.to_string();
    assert!(error.contains("check user and password in the URL") && !error.contains("PGPASSWORD"), "{error}");
    let (_, location) = url.split_once('@').unwrap();
    let error = open_error(&format!("postgres://{location}")).await;
    assert!(matches!(&error, OpenError::LoginRefused { role, .. } if !role.is_empty()), "{error}");
    assert!(error.to_string().contains("names no user"), "{error}");
}

/// Starts a server that sends a fixed response to its first client.
fn start_fake_server(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ann@{}/bus", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(response.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    url
}

#[tokio::test]
async fn a_server_that_is_not_postgresql_is_recognized() {
    for response in ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.6\r\n", "-E", "N\0\0\0\0\0"] {
        let error = open_error(&start_fake_server(response)).await;
        assert!(matches!(error, OpenError::NotPostgres { .. }), "{response:?}: {error}");
    }
    for response in ["", "N"] {
        let error = open_error(&start_fake_server(response)).await;
        assert!(matches!(error, OpenError::Unreachable { .. }), "{response:?}: {error}");
    }
}

#[tokio::test]
async fn the_error_for_a_role_that_cannot_create_the_schema_contains_the_grant() {
    let (server, database, url) = create_fresh_database();
    let role = format!("limited_{database}");
    server.query(&database, &format!("CREATE ROLE {role} LOGIN")).unwrap();
    let url = with_role(&url, &role);
    let error = open_error(&url).await;
    let OpenError::MissingPrivilege { grant, .. } = &error else { panic!("{error}") };
    server.query(&database, grant).unwrap();
    open_store(&url).await.unwrap().close();
    let other = format!("other_{database}");
    server.query(&database, &format!("CREATE ROLE {other} LOGIN")).unwrap();
    let error = open_error(&with_role(&url, &other)).await;
    let OpenError::MissingPrivilege { grant, .. } = &error else { panic!("{error}") };
    server.query(&database, grant).unwrap();
    open_store(&with_role(&url, &other)).await.unwrap().close();
}

#[tokio::test]
async fn a_prepared_empty_schema_is_used() {
    let (server, database, url) = create_fresh_database();
    let role = format!("prepared_{database}");
    server
        .query(&database, &format!("CREATE ROLE {role} LOGIN; CREATE SCHEMA pointsman AUTHORIZATION {role}"))
        .unwrap();
    open_store(&with_role(&url, &role)).await.unwrap().close();
}

#[tokio::test]
async fn a_schema_pointsman_of_another_program_is_left_unchanged() {
    let (server, database, url) = create_fresh_database();
    server.query(&database, "CREATE SCHEMA pointsman; CREATE TABLE pointsman.theirs (n integer)").unwrap();
    let error = open_error(&url).await;
    assert!(matches!(error, OpenError::ForeignSchema { .. }), "{error}");
    let tables = "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'pointsman'";
    assert_eq!(query_value(server, &database, tables), "theirs");
}

#[tokio::test]
async fn a_newer_or_altered_layout_is_rejected() {
    let (server, database, url) = create_fresh_database();
    open_store(&url).await.unwrap().close();
    let insert_newer_sql = "INSERT INTO pointsman.migration SELECT max(version) + 1, 'later.sql', '', now()
                 FROM pointsman.migration";
    server.query(&database, insert_newer_sql).unwrap();
    let error = open_error(&url).await;
    assert!(
        matches!(error, OpenError::SchemaTooNew { found, supported } if found == supported + 1),
        "{error}"
    );
    let delete_newer_sql = "DELETE FROM pointsman.migration WHERE name = 'later.sql'";
    server.query(&database, delete_newer_sql).unwrap();
    server.query(&database, "UPDATE pointsman.migration SET checksum = 'another' WHERE version = 1").unwrap();
    let error = open_error(&url).await;
    assert!(matches!(&error, OpenError::MigrationChanged { name } if name == "0001_initial"), "{error}");
}

#[tokio::test]
async fn a_database_without_utf8_is_rejected() {
    let (server, database, _) = create_fresh_database();
    let other = format!("latin_{database}");
    let create_sql = format!("CREATE DATABASE {other} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    server.query("postgres", &create_sql).unwrap();
    let error = open_error(&server.url(&other)).await;
    assert!(matches!(&error, OpenError::NotUtf8 { found, .. } if found == "LATIN1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_opens_through_a_pooler() {
    let server = pointsman_testing::PostgresServer::start(PostgresSettings::default()).unwrap();
    let direct = server.create_database().unwrap();
    let database = direct.rsplit('/').next().unwrap();
    let pooler = PgBouncer::start(&server, database).unwrap();
    let direct = direct.replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
    for parameters in ["pooler=transaction".to_string(), format!("pooler=transaction&listen={direct}")] {
        let store = open_store(&format!("{}?{parameters}", pooler.url().unwrap())).await.unwrap();
        let node = store.join_node("a", now()).await.unwrap();
        let mut reading = JoinSet::new();
        for _ in 0..20 {
            let store = store.clone();
            reading.spawn(async move {
                store.list_chains().await.unwrap();
                store.list_nodes().await.unwrap()
            });
        }
        for nodes in reading.join_all().await {
            assert_eq!(nodes.first().map(|first| first.id), Some(node));
        }
        store.close();
    }
}

/// A role that may read and write all tables but owns none could not add the next partition.
#[tokio::test]
async fn a_role_that_does_not_own_the_tables_is_rejected() {
    let (server, database, url) = create_fresh_database();
    open_store(&url).await.unwrap().close();
    let role = format!("non_owner \"{database}'");
    let quoted_role = role.replace('"', "\"\"");
    server
        .query(
            &database,
            &format!(
                "CREATE ROLE \"{quoted_role}\" LOGIN; GRANT USAGE, CREATE ON SCHEMA pointsman TO \"{quoted_role}\";
                 GRANT ALL ON ALL TABLES IN SCHEMA pointsman TO \"{quoted_role}\";
                 GRANT ALL ON ALL SEQUENCES IN SCHEMA pointsman TO \"{quoted_role}\";
                 GRANT ALL ON ALL FUNCTIONS IN SCHEMA pointsman TO \"{quoted_role}\""
            ),
        )
        .unwrap();
    let url = with_role(&url, &role.replace(' ', "%20").replace('"', "%22"));
    let error = open_error(&url).await;
    let OpenError::MissingPrivilege { grant, reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("tables and functions"), "{error}");
    assert!(!grant.contains("GRANT"), "the owner is a superuser: {grant}");
    server.query(&database, grant).unwrap();
    open_store(&url).await.unwrap().close();
}

#[tokio::test]
async fn an_incomplete_schema_is_rejected() {
    for removed in [
        "DROP TABLE pointsman.journal_sparse_index",
        "DROP TABLE pointsman.meta",
        "DELETE FROM pointsman.outbox_progress",
    ] {
        let (server, database, url) = create_fresh_database();
        open_store(&url).await.unwrap().close();
        server.query(&database, removed).unwrap();
        let error = open_error(&url).await;
        let table = removed.rsplit('.').next().unwrap();
        assert!(
            matches!(&error, OpenError::SchemaIncomplete { problem } if problem.contains(table)),
            "{error}"
        );
        assert!(error.to_string().contains("pointsman doctor"), "{error}");
    }
}

#[tokio::test]
async fn an_undeclared_pooler_is_reported() {
    let server = pointsman_testing::PostgresServer::start(PostgresSettings::default()).unwrap();
    let direct = server.create_database().unwrap();
    let pooler =
        PgBouncer::start_refusing_unknown_parameters(&server, direct.rsplit('/').next().unwrap()).unwrap();
    let error = open_error(&pooler.url().unwrap()).await;
    assert!(matches!(error, OpenError::UndeclaredPooler { .. }), "{error}");
    assert!(error.to_string().contains("pooler=transaction"), "{error}");
}

/// If another session has the migration lock for too long, the error names that session.
#[tokio::test]
async fn the_error_names_the_session_that_has_the_migration_lock() {
    let (server, database, url) = create_fresh_database();
    open_store(&url).await.unwrap().close();
    let (holder, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    holder
        .batch_execute(
            "SET application_name = 'holder'; BEGIN; SELECT pg_advisory_xact_lock(8101810177783852385)",
        )
        .await
        .unwrap();
    let error = open_error(&url).await;
    let OpenError::SchemaLocked { holders, pid } = &error else { panic!("{error}") };
    assert!(holders.starts_with("holder of "), "{holders}");
    server.query(&database, &format!("SELECT pg_terminate_backend({pid})")).unwrap();
    open_store(&url).await.unwrap().close();
}

/// Foreign objects in the schema, and a renamed index, do not prevent opening.
#[tokio::test]
async fn foreign_objects_in_the_schema_are_ignored() {
    let (server, database, url) = create_fresh_database();
    let owner = format!("owner_{database}");
    server
        .query(&database, &format!("CREATE ROLE {owner} LOGIN; ALTER DATABASE {database} OWNER TO {owner}"))
        .unwrap();
    let url = with_role(&url, &owner);
    open_store(&url).await.unwrap().close();
    let foreign_objects = "CREATE VIEW pointsman.report AS SELECT 1; CREATE TABLE pointsman.notes ();
                  CREATE FUNCTION pointsman.help() RETURNS int LANGUAGE sql AS 'SELECT 1';
                  ALTER INDEX pointsman.task_due RENAME TO task_due_anew";
    server.query(&database, foreign_objects).unwrap();
    open_store(&url).await.unwrap().close();
}

/// If a member of the owner role migrates the schema, the owner can still read and migrate it.
#[tokio::test]
async fn a_member_of_the_owner_role_may_migrate_the_schema() {
    let (server, database, url) = create_fresh_database();
    let (owner, member) = (format!("owner_{database}"), format!("member_{database}"));
    let roles = format!(
        "CREATE ROLE {owner} LOGIN; ALTER DATABASE {database} OWNER TO {owner};
         CREATE ROLE {member} LOGIN; GRANT {owner} TO {member}"
    );
    server.query(&database, &roles).unwrap();
    Postgres::migrate(&with_role(&url, &owner), &MIGRATIONS_FROM_OLDER_LAYOUT[..1]).await.unwrap();
    open_from_older_layout(&with_role(&url, &member)).await.unwrap().close();
    for role in [&owner, &member] {
        server.query(&database, &format!("SET ROLE {role}; SELECT * FROM pointsman.events")).unwrap();
    }
    open_from_older_layout(&with_role(&url, &owner)).await.unwrap().close();
}
