//! Migrates the schema to the newest layout.
//!
//! Any number of nodes may start at once: an advisory lock lets one check and migrate at a time, and the next ones find
//! everything done. A migration is applied completely or not at all.

use pointsman_store::expand_sql;
use pointsman_store::finding::format_age;
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;

use crate::connect::Endpoint;
use crate::error::{DriverError, OpenError, format_driver_error, quote_identifier};
use crate::privileges::RolePrivileges;
use crate::schema_objects::{ExistingSchemaObjects, list_never_empty_tables, list_schema_object_names};
use crate::session::{Session, query};

/// The file name of a migration, and its SQL.
pub type Migration = (&'static str, &'static str);

/// The migrations, oldest first. A schema of layout N needs all migrations after N.
pub const MIGRATIONS: &[Migration] = &[(
    "0001_initial",
    expand_sql!(concat!(
        include_str!("../migrations/0001_initial/tables.sql"),
        include_str!("../migrations/0001_initial/documented_tables.sql"),
        include_str!("../migrations/0001_initial/outbox.sql"),
    )),
)];

/// The oldest supported major version of PostgreSQL.
pub(crate) const MIN_SERVER_VERSION: i32 = 15;

/// The key of the advisory lock: "pointsma", as a number.
const MIGRATION_LOCK_KEY: i64 = 0x706f_696e_7473_6d61;

/// Creates the table of applied migrations.
const CREATE_MIGRATION_TABLE_SQL: &str = "CREATE TABLE pointsman.migration (
    version  integer PRIMARY KEY,
    name     text NOT NULL,
    checksum text NOT NULL, -- SHA-256 of the file
    at       timestamptz NOT NULL
)";

/// How far the schema has been migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// There is no schema `pointsman`.
    Absent,
    /// The schema exists and is empty: prepared for a role that may not create schemas itself.
    Empty,
    /// This many migrations were applied, each identical to the one of this version.
    Applied(usize),
}

/// Reads the state of the schema without changing anything.
pub(crate) async fn read_schema_state(
    session: &Session,
    endpoint: &Endpoint,
    migrations: &[Migration],
) -> Result<SchemaState, OpenError> {
    let mut migrator = Migrator::new(session, endpoint, migrations);
    migrator.check_server_and_read_privileges().await?;
    migrator.verify_schema_state().await
}

/// Lists the missing objects of the newest layout, by kind and name; if all exist, the single-row tables without their
/// row.
pub(crate) async fn list_missing_schema_objects(
    session: &Session,
) -> Result<Vec<String>, tokio_postgres::Error> {
    let missing = ExistingSchemaObjects::from_rows(
        &session.query(query!("migration/list_schema_objects"), &[]).await?,
    )?
    .list_missing();
    if !missing.is_empty() {
        return Ok(missing);
    }
    let mut missing_rows = Vec::new();
    for table in list_never_empty_tables() {
        let any_row_sql = format!("SELECT FROM pointsman.{} LIMIT 1", quote_identifier(&table));
        if session.query_unprepared(&any_row_sql, &[]).await?.is_empty() {
            missing_rows.push(format!("the row of {table}"));
        }
    }
    Ok(missing_rows)
}

/// Rejects a schema of the newest layout with missing objects: a store would start on it, and fail later.
pub(crate) async fn check_schema_complete(session: &Session, endpoint: &Endpoint) -> Result<(), OpenError> {
    let migrator = Migrator::new(session, endpoint, MIGRATIONS);
    let mut missing =
        list_missing_schema_objects(session).await.map_err(|error| migrator.to_open_error(error))?;
    // The store also works without an index, and an index that was recreated under another name is as good.
    missing.retain(|object| !object.starts_with("index "));
    match missing.is_empty() {
        true => Ok(()),
        false => Err(OpenError::SchemaIncomplete { problem: format!("{} is missing", missing.join(", ")) }),
    }
}

/// Creates the schema, or migrates it; returns whether anything was changed.
pub(crate) async fn migrate(
    session: &Session,
    endpoint: &Endpoint,
    migrations: &[Migration],
) -> Result<bool, OpenError> {
    let mut migrator = Migrator::new(session, endpoint, migrations);
    migrator.check_server_and_read_privileges().await?;
    migrator.execute_batch(BEGIN_MIGRATION).await?;
    let changed = migrator.apply_migrations().await;
    match changed {
        Ok(_) => migrator.execute_batch("COMMIT").await?,
        Err(_) => migrator.execute_batch("ROLLBACK").await?,
    }
    match changed {
        Err(OpenError::SchemaLocked { .. }) => Err(migrator.schema_locked_error().await?),
        changed => changed,
    }
}

/// Read committed, so that a node that waited for the migration lock sees the finished migration. The lock timeout is
/// short: while a migration waits for a producer's open transaction, all other sessions queue up behind the migration.
const BEGIN_MIGRATION: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'";

/// Checks and migrates the schema on a connection.
struct Migrator<'a> {
    session: &'a Session,
    endpoint: &'a Endpoint,
    migrations: &'a [Migration],
    /// None until [`Migrator::check_server_and_read_privileges`] has read them.
    privileges: Option<RolePrivileges>,
}

impl<'a> Migrator<'a> {
    fn new(session: &'a Session, endpoint: &'a Endpoint, migrations: &'a [Migration]) -> Self {
        Self { session, endpoint, migrations, privileges: None }
    }

    /// Checks version and encoding of the server, and reads the privileges of the role.
    async fn check_server_and_read_privileges(&mut self) -> Result<(), OpenError> {
        let rows = self
            .session
            .query(query!("server/read_version"), &[])
            .await
            .map_err(|e| self.to_open_error(e))?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (number, encoding): (i32, String) = (row.get(0), row.get(1));
        let found = number / 10_000;
        if found < MIN_SERVER_VERSION {
            return Err(OpenError::ServerTooOld { address: self.endpoint.address(), found });
        }
        if encoding != "UTF8" {
            let database = self.endpoint.database().into();
            return Err(OpenError::NotUtf8 { database, found: encoding });
        }
        let rows = self
            .session
            .query(query!("server/read_privileges", TEXT_ARRAY), &[&list_schema_object_names()])
            .await
            .map_err(|e| self.to_open_error(e))?;
        let privileges = rows.first().map(RolePrivileges::from_row).transpose();
        self.privileges = privileges.map_err(|error| self.to_open_error(error))?;
        Ok(())
    }

    /// Rejects a role without the required privileges: one that does not own the tables would fail later, when it adds
    /// the next partition.
    fn check_privileges(&self) -> Result<(), OpenError> {
        let missing = self
            .privileges
            .as_ref()
            .and_then(|privileges| Some((privileges, privileges.describe_missing()?)));
        missing.map_or(Ok(()), |(privileges, reason)| Err(self.missing_privilege_error(privileges, reason)))
    }

    fn missing_privilege_error(&self, privileges: &RolePrivileges, reason: String) -> OpenError {
        let grant = privileges.grant_statement(self.endpoint.database());
        OpenError::MissingPrivilege { role: privileges.role.clone(), reason, grant }
    }

    /// Returns an error that names the sessions that lock the schema.
    async fn schema_locked_error(&self) -> Result<OpenError, OpenError> {
        let (high, low) = (MIGRATION_LOCK_KEY >> 32, MIGRATION_LOCK_KEY & 0xffff_ffff);
        let found =
            self.session.query(query!("migration/list_lock_holders", INT8, INT8), &[&high, &low]).await;
        let rows = found.map_err(|error| self.to_open_error(error))?;
        let descriptions = rows.iter().map(|row| {
            let (pid, role, program): (i32, &str, &str) = (row.get(0), row.get(1), row.get(2));
            format!("{program} of {role}, pid {pid}, for {}", format_age(row.get(3)))
        });
        let holders = descriptions.collect::<Vec<_>>().join(", and ");
        Ok(match rows.first() {
            Some(row) => OpenError::SchemaLocked { holders, pid: row.get(0) },
            None => OpenError::OpenFailed {
                address: self.endpoint.address(),
                source: "other sessions locked the schema for too long; start again".into(),
            },
        })
    }

    /// Applies the missing migrations under the migration lock; returns whether anything was changed.
    async fn apply_migrations(&mut self) -> Result<bool, OpenError> {
        let to_error = |error: tokio_postgres::Error| self.to_open_error(error);
        self.session
            .query(query!("migration/acquire_migration_lock", INT8), &[&MIGRATION_LOCK_KEY])
            .await
            .map_err(to_error)?;
        self.check_privileges()?;
        let applied_count = self.create_schema_or_count_migrations().await?;
        for (index, (name, sql)) in self.migrations.iter().enumerate().skip(applied_count) {
            let (version, checksum) = (index as i32 + 1, compute_migration_checksum(sql));
            self.execute_batch(sql).await?;
            let query = query!("migration/insert_migration", INT4, TEXT, TEXT);
            let recorded = self.session.execute(query, &[&version, name, &checksum]).await;
            recorded.map_err(|error| self.to_open_error(error))?;
            tracing::info!(migration = name, database = %self.endpoint, "applied a schema migration");
        }
        let inserted = self.insert_random_store_numbers().await?;
        Ok(applied_count < self.migrations.len() || inserted)
    }

    /// Returns the number of applied migrations; creates the schema and the table of migrations if they do not exist.
    async fn create_schema_or_count_migrations(&mut self) -> Result<usize, OpenError> {
        match self.verify_schema_state().await? {
            SchemaState::Absent => self.execute_batch("CREATE SCHEMA pointsman").await?,
            SchemaState::Empty => {}
            SchemaState::Applied(count) => return Ok(count),
        }
        self.execute_batch(CREATE_MIGRATION_TABLE_SQL).await?;
        Ok(0)
    }

    /// Reads the state of the schema, and rejects it if an applied migration differs from the one of this version.
    async fn verify_schema_state(&mut self) -> Result<SchemaState, OpenError> {
        let rows = self
            .session
            .query(query!("migration/read_schema_state"), &[])
            .await
            .map_err(|e| self.to_open_error(e))?;
        let Some(row) = rows.first() else { return Ok(SchemaState::Absent) };
        match (row.get(0), row.get(1)) {
            (true, _) => {}
            (false, true) => return Ok(SchemaState::Empty),
            (false, false) => {
                return Err(OpenError::ForeignSchema { database: self.endpoint.database().into() });
            }
        }
        let rows = self
            .session
            .query(query!("migration/list_migrations"), &[])
            .await
            .map_err(|e| self.to_open_error(e))?;
        let (found, supported) = (rows.last().map_or(0, |row| row.get(0)), self.migrations.len() as i32);
        if found > supported {
            return Err(OpenError::SchemaTooNew { found, supported });
        }
        for (row, (name, sql)) in rows.iter().zip(self.migrations) {
            if row.get::<_, &str>(2) != compute_migration_checksum(sql) {
                return Err(OpenError::MigrationChanged { name: (*name).into() });
            }
        }
        Ok(SchemaState::Applied(rows.len()))
    }

    /// Inserts the random numbers of a new store: the namespace of its task ids, and its salt. Returns whether they
    /// were missing.
    async fn insert_random_store_numbers(&self) -> Result<bool, OpenError> {
        let random_u64_pair = || uuid::Uuid::new_v4().as_u64_pair();
        let (task_id_namespace, _) = random_u64_pair();
        let (_, salt) = random_u64_pair();
        let (task_id_namespace, salt) =
            ((task_id_namespace & ((1 << 60) - 1)).to_string(), (salt as i64).to_string());
        let inserted = self
            .session
            .execute(query!("meta/insert_store_numbers", TEXT, TEXT), &[&task_id_namespace, &salt])
            .await;
        Ok(inserted.map_err(|error| self.to_open_error(error))? > 0)
    }

    async fn execute_batch(&self, sql: &str) -> Result<(), OpenError> {
        self.session.execute_batch(sql).await.map_err(|error| self.to_open_error(error))
    }

    fn to_open_error(&self, error: tokio_postgres::Error) -> OpenError {
        let reason = format_driver_error(&error);
        match (error.code(), &self.privileges) {
            (Some(code), _) if *code == SqlState::LOCK_NOT_AVAILABLE => {
                OpenError::SchemaLocked { holders: String::new(), pid: 0 }
            }
            (Some(code), _) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
                OpenError::SchemaIncomplete { problem: reason }
            }
            (Some(code), Some(privileges)) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                self.missing_privilege_error(privileges, reason)
            }
            _ => {
                OpenError::OpenFailed { address: self.endpoint.address(), source: DriverError(error).into() }
            }
        }
    }
}

/// Returns the SHA-256 of a migration, in hex.
fn compute_migration_checksum(sql: &str) -> String {
    Sha256::digest(sql).iter().map(|byte| format!("{byte:02x}")).collect()
}
