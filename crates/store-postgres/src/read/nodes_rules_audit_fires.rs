//! Reads nodes, rules, audit entries and the fire ledger.

use futures::future::try_join;
use pointsman_core::store::{AuditEntry, FirePage, NodeCapabilities, NodeView};
use pointsman_core::{Rule, ScheduleName, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use tokio_postgres::Row;

use super::journal::read_journal_range;
use super::to_sql_limit;
use crate::documented_tables::decode_rules;
use crate::rows::{decode_fire, read_column, read_time};
use crate::session::{Session, query};

/// Limit of listed nodes.
const MAX_LISTED_NODES: i64 = 100;

/// Reads the clock of the server.
pub(crate) async fn read_clock(session: &Session) -> TableResult<Timestamp> {
    let rows = session.query(query!("server/read_clock"), &[]).await?;
    rows.first().map_or_else(|| Err(Fault::damaged("the server returned no time")), |row| read_time(row, 0))
}

pub(crate) async fn list_nodes(session: &Session) -> TableResult<Vec<NodeView>> {
    session
        .query(query!("node/list_nodes", INT8), &[&MAX_LISTED_NODES])
        .await?
        .iter()
        .map(decode_node)
        .collect()
}

fn decode_node(row: &Row) -> TableResult<NodeView> {
    let capabilities = match read_column(row, 5)? {
        "" => NodeCapabilities::default(),
        json => serde_json::from_str(json).map_err(Fault::damaged)?,
    };
    Ok(NodeView {
        id: read_column(row, 0)?,
        name: read_column(row, 1)?,
        joined_at: read_time(row, 2)?,
        last_heartbeat_at: read_time(row, 3)?,
        has_left_or_died: read_column(row, 4)?,
        capabilities,
        running_task_count: read_column::<i64>(row, 6)? as u64,
    })
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
        let entry = AuditEntry {
            at: read_time(row, 1)?,
            actor: read_column(row, 2)?,
            action: read_column(row, 3)?,
            target: read_column(row, 4)?,
            detail: read_column(row, 5)?,
        };
        Ok((read_column(row, 0)?, entry))
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
    Ok(FirePage { fires: rows.iter().map(decode_fire).collect::<TableResult<_>>()?, journal_range })
}
