//! The database as something that is moved, or moved to.
//!
//! `read.rs` reads rows in one snapshot, `write.rs` copies them in, `wire.rs` is how a cell goes over the wire. The
//! statements that read and copy are made of the columns that each section has in all stores; `lying.rs` says where they
//! lie.

mod lying;
mod read;
mod wire;
mod write;

use std::collections::HashMap;

use pointsman_core::store::{self, StoreError};
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Movable, NOTE, NotReady, Page, Place, Row, Section};
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::connect::Endpoint;
use crate::error::{self, ConnectError, OpenError, describe, is_conflict, is_of_contents};
use crate::migrate::{self, Standing};
use crate::rows::get;
use crate::session::{Query, Session, query};

/// Whoever moves waits for as long as it takes: between two pages for the other store, at the end for a whole table.
const SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SET idle_session_timeout = 0; SET lock_timeout = '15s'; SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// A database on which no node works.
pub struct PgMove {
    hand: Hand,
    runtime: Runtime,
}

/// The connection, and what it is in the middle of.
struct Hand {
    client: Client,
    /// It is in a transaction that reads, all of one moment.
    reading: bool,
    /// The section that is being read, and the place up to which it was.
    cursor: Option<(Section, Place)>,
    /// How many commits there were when it was opened, or when it wrote last.
    version: i64,
    /// The note of a move to here, as it was read or written last.
    note: Option<String>,
    /// The types of the columns that rows of a section are copied into.
    types: HashMap<Section, Vec<Type>>,
}

/// What a database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Source,
    Target,
}

impl PgMove {
    /// A database to be moved, which no node works on. As a server does, it is brought forward if it is of an older
    /// layout.
    pub fn source(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, As::Source)
    }

    /// A database to move to, which no node works on either. The schema is made if there is none.
    pub fn target(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, As::Target)
    }

    fn open(url: &str, part: As) -> std::result::Result<Self, NotReady<OpenError>> {
        let given = Endpoint::parse(url)?;
        let Some(endpoint) = given.for_listening() else {
            return Err(NotReady::Pooled(given.to_string()));
        };
        let failed =
            |error: std::io::Error| OpenError::Failed { at: endpoint.place(), reason: error.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let hand = runtime.block_on(open(endpoint, part))?;
        Ok(Self { hand, runtime })
    }
}

async fn open(endpoint: &Endpoint, part: As) -> std::result::Result<Hand, NotReady<OpenError>> {
    let failed = |fault: Fault| match fault {
        Fault::Database(error) => OpenError::Failed { at: endpoint.place(), reason: describe(&error) },
        Fault::Damaged(what) => OpenError::Damaged(what),
    };
    let unconnected = |error: ConnectError| OpenError::unconnected(endpoint, &error);
    let session = endpoint.connect_in_time().await.map_err(unconnected)?;
    match (migrate::look(&session, endpoint).await?, part) {
        (Standing::Absent | Standing::Empty | Standing::Applied(0), As::Source) => {
            return Err(NotReady::NoStore(endpoint.to_string()));
        }
        (Standing::Absent | Standing::Empty | Standing::Applied(0), As::Target) => {}
        (Standing::Applied(_), _) => {
            let nodes = living(&session).await.map_err(failed)?;
            if !nodes.is_empty() {
                return Err(NotReady::InUse { at: endpoint.to_string(), nodes: nodes.join(", ") });
            }
        }
    }
    migrate::migrate(&session, endpoint, migrate::KNOWN).await?;
    if part == As::Source {
        let events = undrained(&session).await.map_err(failed)?;
        if events > 0 {
            let events = format!("{events} event{}", if events == 1 { "" } else { "s" });
            return Err(NotReady::Undrained { at: endpoint.to_string(), events });
        }
    }
    drop(session);
    let (client, wire) = endpoint.open_in_time().await.map_err(unconnected)?;
    tokio::spawn(wire);
    Ok(Hand::new(client).await.map_err(failed)?)
}

async fn living(session: &Session) -> Result<Vec<String>> {
    let rows = session.query(query!("transfer/living"), &[]).await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

async fn undrained(session: &Session) -> Result<i64> {
    let rows = session.query(query!("transfer/undrained"), &[]).await?;
    rows.first().map_or(Ok(0), |row| get(row, 0))
}

impl Hand {
    async fn new(client: Client) -> Result<Self> {
        client.batch_execute(SETTINGS).await?;
        let (reading, cursor, types) = (false, None, HashMap::new());
        let mut hand = Self { client, reading, cursor, version: 0, note: None, types };
        (hand.version, _) = hand.look().await?;
        Ok(hand)
    }

    async fn ask(
        &self,
        query: &'static Query,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>> {
        let typed: Vec<_> = params.iter().copied().zip(query.types.iter().cloned()).collect();
        Ok(self.client.query_typed(query.sql, &typed).await?)
    }

    /// How many commits there were, and whether the outbox is empty.
    async fn look(&self) -> Result<(i64, bool)> {
        let rows = self.ask(query!("transfer/version"), &[]).await?;
        let row = rows.first().ok_or_else(|| Fault::damaged("the sequencer has no row"))?;
        Ok((get(row, 0)?, get(row, 1)?))
    }

    async fn waiting(&self) -> Result<u64> {
        let rows = self.ask(query!("transfer/undrained"), &[]).await?;
        rows.first().map_or(Ok(0), |row| get(row, 0).map(i64::unsigned_abs))
    }

    async fn is_unchanged(&mut self) -> Result<bool> {
        self.end_reading().await?;
        Ok(self.look().await? == (self.version, true))
    }

    async fn find_note(&mut self) -> Result<Option<String>> {
        let rows = self.ask(query!("write/text", TEXT), &[&NOTE]).await?;
        self.note = rows.first().map(|row| get(row, 0)).transpose()?;
        Ok(self.note.clone())
    }
}

/// What a fault means to whoever moves. What the database refuses it refuses the next time too.
fn explain(fault: &Fault) -> StoreError {
    match error::explain(fault) {
        StoreError::Unavailable(what) if is_conflict(fault) || is_of_contents(fault) => {
            StoreError::Damaged(what)
        }
        other => other,
    }
}

impl Movable for PgMove {
    fn count(&mut self, section: Section) -> store::Result<Option<u64>> {
        self.runtime.block_on(self.hand.count(section)).map(Some).map_err(|fault| explain(&fault))
    }

    fn read(&mut self, section: Section, after: Option<&Place>) -> store::Result<Page> {
        self.runtime.block_on(self.hand.read(section, after)).map_err(|fault| explain(&fault))
    }

    fn waiting(&mut self) -> store::Result<u64> {
        self.runtime.block_on(self.hand.waiting()).map_err(|fault| explain(&fault))
    }

    fn is_unchanged(&mut self) -> store::Result<bool> {
        self.runtime.block_on(self.hand.is_unchanged()).map_err(|fault| explain(&fault))
    }

    fn note(&mut self) -> store::Result<Option<String>> {
        self.runtime.block_on(self.hand.find_note()).map_err(|fault| explain(&fault))
    }

    fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> store::Result<bool> {
        self.runtime.block_on(self.hand.write(section, rows, note)).map_err(|fault| explain(&fault))
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.runtime.block_on(self.hand.finish()).map_err(|fault| explain(&fault))
    }
}

impl std::fmt::Debug for PgMove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PgMove")
    }
}
