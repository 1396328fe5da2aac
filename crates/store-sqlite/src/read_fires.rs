//! Reads the fire ledger.

use pointsman_core::store::FirePage;
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::columns::FireColumns;
use pointsman_store::expand_sql;
use rusqlite::Connection;

use crate::error::TableResult;
use crate::read_journal::read_journal_range;
use crate::tables::queries::{query_all, read_columns};

pub(crate) fn list_fires(
    conn: &Connection,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> TableResult<FirePage> {
    let journal_range = read_journal_range(conn)?;
    let sql = expand_sql!(
        "SELECT :fire_columns FROM pointsman_fire
         WHERE schedule = ?1 AND planned < ?2 ORDER BY planned DESC LIMIT ?3"
    );
    let before = before.map_or(i64::MAX, Timestamp::micros);
    let fires = query_all(conn, sql, (schedule.as_str(), before, limit as i64), |row| {
        read_columns::<FireColumns>(row)?.into_fire()
    })?;
    Ok(FirePage { fires, journal_range })
}
