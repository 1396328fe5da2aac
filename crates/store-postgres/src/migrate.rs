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
];

const KNOWN: i32 = MIGRATIONS.len() as i32;
const OLDEST_SERVER: i32 = 15;

/// What the nodes that look at the layout lock: "pointsma", as a number.
const LOCK: i64 = 0x706f_696e_7473_6d61;

/// Where the list of what was applied lies.
const LEDGER: &str = "CREATE TABLE pointsman.migration (
    version  integer PRIMARY KEY,
    name     text NOT NULL,
    checksum text NOT NULL, -- SHA-256 of the file
    at       timestamptz NOT NULL
)";

/// Makes the schema, or brings it forward; answers whether anything had to be done.
pub(crate) async fn migrate(session: &Session, endpoint: &Endpoint) -> Result<bool, OpenError> {
    let mut migration = Migration { session, endpoint, role: String::new(), owner: None };
    migration.check_server().await?;
    migration.batch("BEGIN").await?;
    let changed = migration.bring_forward().await;
    match changed {
        Ok(_) => migration.batch("COMMIT").await?,
        Err(_) => migration.batch("ROLLBACK").await?,
    }
    changed
}

struct Migration<'a> {
    session: &'a Session,
    endpoint: &'a Endpoint,
    /// As whom we are logged in.
    role: String,
    /// Whose the schema is, if there is one.
    owner: Option<String>,
}

impl Migration<'_> {
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

    async fn bring_forward(&mut self) -> Result<bool, OpenError> {
        let fault = |error: tokio_postgres::Error| self.explain(&error);
        self.session.query(query!("open/lock", INT8), &[&LOCK]).await.map_err(fault)?;
        let applied = self.applied().await?;
        for (index, (name, sql)) in MIGRATIONS.iter().enumerate().skip(applied) {
            let (version, checksum) = (index as i32 + 1, checksum(sql));
            self.batch(sql).await?;
            let note = query!("open/applied", INT4, TEXT, TEXT);
            let noted = self.session.execute(note, &[&version, name, &checksum]).await;
            noted.map_err(|error| self.explain(&error))?;
            tracing::info!(name, database = %self.endpoint, "applied a migration");
        }
        let made = self.make_numbers().await?;
        Ok(applied < MIGRATIONS.len() || made)
    }

    /// How many migrations were applied, after having looked at each.
    async fn applied(&mut self) -> Result<usize, OpenError> {
        let rows = self.session.query(query!("open/schema"), &[]).await.map_err(|e| self.explain(&e))?;
        let Some(row) = rows.first() else {
            self.batch("CREATE SCHEMA pointsman").await?;
            self.batch(LEDGER).await?;
            return Ok(0);
        };
        self.owner = Some(row.get(0));
        match (row.get(1), row.get(2)) {
            (true, _) => {}
            // Somebody has prepared it for a role that may make no schemas itself.
            (false, true) => self.batch(LEDGER).await?,
            (false, false) => return Err(OpenError::NotOurs { database: self.endpoint.database().into() }),
        }
        let rows = self.session.query(query!("open/migrations"), &[]).await.map_err(|e| self.explain(&e))?;
        let found = rows.last().map_or(0, |row| row.get(0));
        if found > KNOWN {
            return Err(OpenError::Newer { found, known: KNOWN });
        }
        for (row, (name, sql)) in rows.iter().zip(MIGRATIONS) {
            if row.get::<_, &str>(2) != checksum(sql) {
                return Err(OpenError::Altered { name: (*name).into() });
            }
        }
        Ok(rows.len())
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
