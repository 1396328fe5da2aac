//! Reading the fire ledger.

use pointsman_core::store::FirePage;
use pointsman_core::{ScheduleName, Timestamp};
use rusqlite::Connection;

use crate::error::Result;
use crate::read_journal::extent;
use crate::tables::row::{all, fire, fire_of};

pub(crate) fn fires(
    conn: &Connection,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> Result<FirePage> {
    let extent = extent(conn)?;
    let sql = concat!(
        "SELECT ",
        fire!(),
        " FROM pointsman_fire WHERE schedule = ?1 AND planned < ?2 ORDER BY planned DESC LIMIT ?3"
    );
    let before = before.map_or(i64::MAX, Timestamp::micros);
    Ok(FirePage { fires: all(conn, sql, (schedule.as_str(), before, limit as i64), fire_of)?, extent })
}
