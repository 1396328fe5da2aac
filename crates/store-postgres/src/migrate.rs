//! The layout of the schema, and how it is brought forward.
//!
//! Any number of nodes may start at once: an advisory lock lets one look and change at a time, and whoever comes after
//! it finds everything done. A layout is applied whole or not at all.

use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;

use crate::connect::Endpoint;
use crate::error::{OpenError, quoted, reason};
use crate::session::{Session, query};

/// The layouts, oldest first. A schema of layout N is brought forward by everything after N.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_tables.sql", include_str!("../migrations/0001_tables.sql")),
    ("0002_documented.sql", include_str!("../migrations/0002_documented.sql")),
    ("0003_outbox.sql", include_str!("../migrations/0003_outbox.sql")),
    ("0004_causes.sql", include_str!("../migrations/0004_causes.sql")),
];

/// The newest layout.
pub(crate) const KNOWN: usize = MIGRATIONS.len();
pub(crate) const OLDEST_SERVER: i32 = 15;

/// What the nodes that look at the layout lock: "pointsma", as a number.
const LOCK: i64 = 0x706f_696e_7473_6d61;

/// Where the list of what was applied lies.
const LEDGER: &str = "CREATE TABLE pointsman.migration (
    version  integer PRIMARY KEY,
    name     text NOT NULL,
    checksum text NOT NULL, -- SHA-256 of the file
    at       timestamptz NOT NULL
)";

/// How the schema stands to the layouts that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is no such schema.
    Absent,
    /// There is one with nothing in it: somebody has prepared it for a role that may make no schemas itself.
    Empty,
    /// So many layouts were applied, each as this version has it.
    Applied(usize),
}

/// Looks how the schema stands, and changes nothing.
pub(crate) async fn look(session: &Session, endpoint: &Endpoint) -> Result<Standing, OpenError> {
    let mut migration = Migration::new(session, endpoint);
    migration.check_server().await?;
    migration.standing().await
}

/// Makes the schema, or brings it forward up to a layout; answers whether anything had to be done.
pub(crate) async fn migrate(
    session: &Session,
    endpoint: &Endpoint,
    layout: usize,
) -> Result<bool, OpenError> {
    let mut migration = Migration::new(session, endpoint);
    migration.check_server().await?;
    migration.batch(BEGIN).await?;
    let changed = migration.bring_forward(layout).await;
    match changed {
        Ok(_) => migration.batch("COMMIT").await?,
        Err(_) => migration.batch("ROLLBACK").await?,
    }
    changed
}

/// Whoever waits for the first one must see what it has done; and nobody waits for long behind a producer that does not
/// end, because all that come after would wait behind both.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'";

struct Migration<'a> {
    session: &'a Session,
    endpoint: &'a Endpoint,
    /// As whom we are logged in.
    role: String,
    /// Whose the schema is, if there is one.
    owner: Option<String>,
}

impl<'a> Migration<'a> {
    fn new(session: &'a Session, endpoint: &'a Endpoint) -> Self {
        Self { session, endpoint, role: String::new(), owner: None }
    }

    async fn check_server(&mut self) -> Result<(), OpenError> {
        let rows = self.session.query(query!("open/server"), &[]).await.map_err(|e| self.explain(&e))?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (number, encoding): (i32, String) = (row.get(0), row.get(1));
        self.role = row.get(2);
        let found = number / 10_000;
        if found < OLDEST_SERVER {
            return Err(OpenError::TooOld { at: self.endpoint.place(), found });
        }
        if encoding != "UTF8" {
            let database = self.endpoint.database().into();
            return Err(OpenError::NotUtf8 { database, found: encoding });
        }
        Ok(())
    }

    async fn bring_forward(&mut self, layout: usize) -> Result<bool, OpenError> {
        let fault = |error: tokio_postgres::Error| self.explain(&error);
        self.session.query(query!("open/lock", INT8), &[&LOCK]).await.map_err(fault)?;
        let applied = self.applied().await?;
        for (index, (name, sql)) in MIGRATIONS.iter().enumerate().take(layout).skip(applied) {
            let (version, checksum) = (index as i32 + 1, checksum(sql));
            self.batch(sql).await?;
            let note = query!("open/applied", INT4, TEXT, TEXT);
            let noted = self.session.execute(note, &[&version, name, &checksum]).await;
            noted.map_err(|error| self.explain(&error))?;
            tracing::info!(name, database = %self.endpoint, "applied a migration");
        }
        let made = self.make_numbers().await?;
        Ok(applied < layout || made)
    }

    /// How many layouts were applied; without a schema of ours, one is made for them.
    async fn applied(&mut self) -> Result<usize, OpenError> {
        match self.standing().await? {
            Standing::Absent => self.batch("CREATE SCHEMA pointsman").await?,
            Standing::Empty => {}
            Standing::Applied(layouts) => return Ok(layouts),
        }
        self.batch(LEDGER).await?;
        Ok(0)
    }

    /// How the schema stands, after having looked at each layout that was applied.
    async fn standing(&mut self) -> Result<Standing, OpenError> {
        let rows = self.session.query(query!("open/schema"), &[]).await.map_err(|e| self.explain(&e))?;
        let Some(row) = rows.first() else { return Ok(Standing::Absent) };
        self.owner = Some(row.get(0));
        match (row.get(1), row.get(2)) {
            (true, _) => {}
            (false, true) => return Ok(Standing::Empty),
            (false, false) => return Err(OpenError::NotOurs { database: self.endpoint.database().into() }),
        }
        let rows = self.session.query(query!("open/migrations"), &[]).await.map_err(|e| self.explain(&e))?;
        let (found, known) = (rows.last().map_or(0, |row| row.get(0)), KNOWN as i32);
        if found > known {
            return Err(OpenError::Newer { found, known });
        }
        for (row, (name, sql)) in rows.iter().zip(MIGRATIONS) {
            if row.get::<_, &str>(2) != checksum(sql) {
                return Err(OpenError::Altered { name: (*name).into() });
            }
        }
        Ok(Standing::Applied(rows.len()))
    }

    /// The numbers that every store has for itself: made once, at random.
    async fn make_numbers(&self) -> Result<bool, OpenError> {
        let random = || uuid::Uuid::new_v4().as_u64_pair();
        let (realm, _) = random();
        let (_, salt) = random();
        let (realm, salt) = ((realm & ((1 << 60) - 1)).to_string(), (salt as i64).to_string());
        let made = self.session.execute(query!("open/first_meta", TEXT, TEXT), &[&realm, &salt]).await;
        Ok(made.map_err(|error| self.explain(&error))? > 0)
    }

    async fn batch(&self, sql: &str) -> Result<(), OpenError> {
        self.session.batch(sql).await.map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &tokio_postgres::Error) -> OpenError {
        let reason = reason(error);
        if error.code() != Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
            return OpenError::Failed { at: self.endpoint.place(), reason };
        }
        let role = quoted(&self.role);
        let grant = match self.owner.as_ref().filter(|owner| **owner != self.role) {
            Some(owner) => format!("GRANT {} TO {role}", quoted(owner)),
            None => format!("GRANT CREATE ON DATABASE {} TO {role}", quoted(self.endpoint.database())),
        };
        OpenError::NoRight { role: self.role.clone(), reason, grant }
    }
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql).iter().map(|byte| format!("{byte:02x}")).collect()
}
