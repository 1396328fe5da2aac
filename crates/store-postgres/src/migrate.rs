//! The layout of the schema, and how it is brought forward.
//!
//! Any number of nodes may start at once: an advisory lock lets one look and change at a time, and whoever comes after
//! it finds everything done. A layout is applied whole or not at all.

use pointsman_store::finding::age;
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;

use crate::connect::Endpoint;
use crate::error::{OpenError, quoted, reason};
use crate::inventory::{Inventory, names, never_empty};
use crate::rights::Rights;
use crate::session::{Session, query};

/// The layouts, oldest first. A schema of layout N is brought forward by everything after N.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_tables.sql", include_str!("../migrations/0001_tables.sql")),
    ("0002_documented.sql", include_str!("../migrations/0002_documented.sql")),
    ("0003_outbox.sql", include_str!("../migrations/0003_outbox.sql")),
    ("0004_causes.sql", include_str!("../migrations/0004_causes.sql")),
    ("0005_versions.sql", include_str!("../migrations/0005_versions.sql")),
    ("0006_orders.sql", include_str!("../migrations/0006_orders.sql")),
    ("0007_objects.sql", include_str!("../migrations/0007_objects.sql")),
    ("0008_frame_types.sql", include_str!("../migrations/0008_frame_types.sql")),
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

/// What is missing of the newest layout, by kind and name.
pub(crate) async fn missing(session: &Session) -> Result<Vec<String>, tokio_postgres::Error> {
    let things = Inventory::read(&session.query(query!("open/things"), &[]).await?)?.missing();
    if !things.is_empty() {
        return Ok(things);
    }
    let mut rows = Vec::new();
    for table in never_empty() {
        let any = format!("SELECT FROM pointsman.{} LIMIT 1", quoted(&table));
        if session.query_whole(&any, &[]).await?.is_empty() {
            rows.push(format!("the row of {table}"));
        }
    }
    Ok(rows)
}

/// Refuses a schema of the newest layout of which something is missing: a store would start on it, and then fail at whatever
/// needs that.
pub(crate) async fn check(session: &Session, endpoint: &Endpoint) -> Result<(), OpenError> {
    let migration = Migration::new(session, endpoint);
    let mut missing = missing(session).await.map_err(|error| migration.explain(&error))?;
    // Without an index it works, and one that was made anew under another name is as good.
    missing.retain(|thing| !thing.starts_with("index "));
    match missing.is_empty() {
        true => Ok(()),
        false => Err(OpenError::Incomplete { what: format!("{} is missing", missing.join(", ")) }),
    }
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
    match changed {
        Err(OpenError::Held { .. }) => Err(migration.holders().await?),
        changed => changed,
    }
}

/// Whoever waits for the first one must see what it has done; and nobody waits for long behind a producer that does not
/// end, because all that come after would wait behind both.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'";

struct Migration<'a> {
    session: &'a Session,
    endpoint: &'a Endpoint,
    rights: Option<Rights>,
}

impl<'a> Migration<'a> {
    fn new(session: &'a Session, endpoint: &'a Endpoint) -> Self {
        Self { session, endpoint, rights: None }
    }

    async fn check_server(&mut self) -> Result<(), OpenError> {
        let rows = self.session.query(query!("open/server"), &[]).await.map_err(|e| self.explain(&e))?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (number, encoding): (i32, String) = (row.get(0), row.get(1));
        let found = number / 10_000;
        if found < OLDEST_SERVER {
            return Err(OpenError::TooOld { at: self.endpoint.place(), found });
        }
        if encoding != "UTF8" {
            let database = self.endpoint.database().into();
            return Err(OpenError::NotUtf8 { database, found: encoding });
        }
        let rows = self
            .session
            .query(query!("open/rights", TEXT_ARRAY), &[&names()])
            .await
            .map_err(|e| self.explain(&e))?;
        let rights = rows.first().map(Rights::read).transpose();
        self.rights = rights.map_err(|error| self.explain(&error))?;
        Ok(())
    }

    /// A role that does not own what it works with would come to a stop with the next slice.
    fn check_rights(&self) -> Result<(), OpenError> {
        let lacking = self.rights.as_ref().and_then(|rights| Some((rights, rights.lacking()?)));
        lacking.map_or(Ok(()), |(rights, reason)| Err(self.no_right(rights, reason)))
    }

    fn no_right(&self, rights: &Rights, reason: String) -> OpenError {
        let grant = rights.remedy(self.endpoint.database());
        OpenError::NoRight { role: rights.role.clone(), reason, grant }
    }

    /// Who keeps us from the layout.
    async fn holders(&self) -> Result<OpenError, OpenError> {
        let (high, low) = (LOCK >> 32, LOCK & 0xffff_ffff);
        let asked = self.session.query(query!("open/holders", INT8, INT8), &[&high, &low]).await;
        let rows = asked.map_err(|error| self.explain(&error))?;
        let told = rows.iter().map(|row| {
            let (pid, role, program): (i32, &str, &str) = (row.get(0), row.get(1), row.get(2));
            format!("{program} of {role}, pid {pid}, for {}", age(row.get(3)))
        });
        let by = told.collect::<Vec<_>>().join(", and ");
        Ok(match rows.first() {
            Some(row) => OpenError::Held { by, pid: row.get(0) },
            None => OpenError::Failed {
                at: self.endpoint.place(),
                reason: "others used the schema for too long; start it again".into(),
            },
        })
    }

    async fn bring_forward(&mut self, layout: usize) -> Result<bool, OpenError> {
        let fault = |error: tokio_postgres::Error| self.explain(&error);
        self.session.query(query!("open/lock", INT8), &[&LOCK]).await.map_err(fault)?;
        self.check_rights()?;
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
        match (row.get(0), row.get(1)) {
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
        match (error.code(), &self.rights) {
            (Some(code), _) if *code == SqlState::LOCK_NOT_AVAILABLE => {
                OpenError::Held { by: String::new(), pid: 0 }
            }
            (Some(code), _) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
                OpenError::Incomplete { what: reason }
            }
            (Some(code), Some(rights)) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                self.no_right(rights, reason)
            }
            _ => OpenError::Failed { at: self.endpoint.place(), reason },
        }
    }
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql).iter().map(|byte| format!("{byte:02x}")).collect()
}
