//! The file as something that is moved, or moved to. `rows.rs` reads and writes its rows, `counters.rs` what stands for
//! the numbers that are not kept as such.

mod counters;
mod rows;

use std::path::Path;

use pointsman_core::store;
use pointsman_store::transfer::{Movable, NOTE, NotReady, Page, Place as Key, Row, Section};
use rusqlite::Connection;

use crate::error::{OpenError, Result, explain};
use crate::open::{self, Lock, Place};
use crate::tables::numbers;

/// A file that nobody works with.
#[derive(Debug)]
pub struct SqliteMove {
    conn: Connection,
    _lock: Lock,
}

impl SqliteMove {
    /// A file to be moved. As a server does, it is brought forward if it is of an older layout.
    pub fn source(path: impl AsRef<Path>) -> std::result::Result<Self, NotReady<OpenError>> {
        let path = path.as_ref();
        let none = || NotReady::NoStore(path.display().to_string());
        if !path.exists() {
            return Err(none());
        }
        let place = Place::File(path.into());
        let lock = open::lock(&place)?;
        let explain = |error| OpenError::from_sqlite(path, error);
        let layout = open::reader(path).and_then(|conn| open::version(&conn)).map_err(explain)?;
        if layout == 0 {
            return Err(none());
        }
        Ok(Self { conn: open::writer(&place)?, _lock: lock })
    }

    /// A file to move to, made if there is none.
    pub fn target(path: impl AsRef<Path>) -> std::result::Result<Self, NotReady<OpenError>> {
        let place = Place::File(path.as_ref().into());
        let lock = open::lock(&place)?;
        Ok(Self { conn: open::writer(&place)?, _lock: lock })
    }

    fn write_all(&mut self, section: Section, rows: Vec<Row>, note: &str) -> Result<()> {
        let tx = self.conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        match section {
            Section::Counters => rows.iter().try_for_each(|row| counters::write(&tx, row))?,
            Section::Journal => rows::write_journal(&tx, rows)?,
            _ => rows::write(&tx, section, rows)?,
        }
        numbers::put_meta(&tx, NOTE, note)?;
        Ok(tx.commit()?)
    }

    fn end(&self) -> Result<()> {
        self.conn.execute("DELETE FROM pointsman_meta WHERE name = ?1", [NOTE])?;
        Ok(())
    }
}

impl Movable for SqliteMove {
    fn count(&mut self, section: Section) -> store::Result<Option<u64>> {
        rows::count(&self.conn, section).map_err(|fault| explain(&fault))
    }

    fn read(&mut self, section: Section, after: Option<&Key>) -> store::Result<Page> {
        let page = match section {
            Section::Counters => counters::read(&self.conn).map(|row| Page::single(row, after)),
            _ => rows::read(&self.conn, section, after),
        };
        page.map_err(|fault| explain(&fault))
    }

    /// There is no outbox here.
    fn waiting(&mut self) -> store::Result<u64> {
        Ok(0)
    }

    /// The lock keeps others out.
    fn is_unchanged(&mut self) -> store::Result<bool> {
        Ok(true)
    }

    fn note(&mut self) -> store::Result<Option<String>> {
        numbers::meta(&self.conn, NOTE).map_err(|fault| explain(&fault))
    }

    fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> store::Result<bool> {
        self.write_all(section, rows, note).map(|()| true).map_err(|fault| explain(&fault))
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.end().map(|()| true).map_err(|fault| explain(&fault))
    }
}
