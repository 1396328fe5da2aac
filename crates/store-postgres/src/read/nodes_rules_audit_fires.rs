//! Reads nodes, rules, audit entries and the fire ledger.

use futures::future::try_join;
use pointsman_core::store::{AuditEntry, FirePage, NodeView};
use pointsman_core::{Rule, ScheduleName, Timestamp};
use pointsman_store::columns::{AuditEntryColumns, Columns, FireColumns, NodeColumns};
use pointsman_store::error::{Fault, TableResult};
use tokio_postgres::Row;

use super::journal::read_journal_range;
use super::to_sql_limit;
use crate::documented_tables::decode_rules;
use crate::rows::{RowReader, read_columns, read_time};
use crate::session::{Session, query};

/// Limit of listed nodes.
const MAX_LISTED_NODES: i64 = 100;

/// Reads the clock of the server.
pub(crate) async fn read_clock(session: &Session) -> TableResult<Timestamp> {
    let rows = session.query(query!("server/read_clock"), &[]).await?;
    rows.first().map_or_else(|| Err(Fault::damaged("the server returned no time")), |row| read_time(row, 0))
}

pub(crate) async fn list_nodes(session: &Session) -> TableResult<Vec<NodeView>> {
    let decode_node = |row: &Row| {
        let mut reader = RowReader::new(row, 0);
        let columns = NodeColumns::read_cells(&mut reader)?;
        columns.into_view(reader.read_next::<i64>()?.unsigned_abs())
    };
    session
        .query(query!("node/list_nodes", INT8), &[&MAX_LISTED_NODES])
        .await?
        .iter()
        .map(decode_node)
        .collect()
}

pub(super) async fn list_rules(session: &Session) -> TableResult<Vec<Rule>> {
    decode_rules(&session.query(query!("rule/list_rules"), &[]).await?)
}

pub(super) async fn list_audit_entries(
    session: &Session,
    before: Option<i64>,
    limit: usize,
) -> TableResult<Vec<(i64, AuditEntry)>> {
    let before = before.unwrap_or(i64::MAX);
    let rows = session
        .query(query!("audit/list_audit_entries", INT8, INT8), &[&before, &to_sql_limit(limit)])
        .await?;
    let read_entry = |row: &Row| {
        let columns: AuditEntryColumns<'_> = read_columns(row, 0)?;
        Ok((columns.n, columns.into_entry()))
    };
    rows.iter().map(read_entry).collect()
}

pub(super) async fn list_fires(
    session: &Session,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> TableResult<FirePage> {
    let (schedule, before) = (schedule.as_str(), before.map_or(i64::MAX, Timestamp::micros));
    let rows = async {
        let query = query!("fire/list_fires", TEXT, INT8, INT8);
        Ok(session.query(query, &[&schedule, &before, &to_sql_limit(limit)]).await?)
    };
    let (journal_range, rows) = try_join(read_journal_range(session), rows).await?;
    let fires = rows.iter().map(|row| read_columns::<FireColumns<'_>>(row, 0)?.into_fire());
    Ok(FirePage { fires: fires.collect::<TableResult<_>>()?, journal_range })
}
