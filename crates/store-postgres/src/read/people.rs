//! Reading nodes, rules, what people did, and what became of planned times.

use futures::future::try_join;
use pointsman_core::store::{Abilities, Deed, FirePage, NodeView};
use pointsman_core::{Rule, ScheduleName, Timestamp};
use pointsman_store::error::{Fault, Result};
use tokio_postgres::Row;

use super::journal::extent;
use super::most;
use crate::documented::rules_of;
use crate::rows::{fire_of, get, time};
use crate::session::{Session, query};

/// So many nodes are told of at most.
const NODES: i64 = 100;

/// The clock of the server.
pub(crate) async fn clock(session: &Session) -> Result<Timestamp> {
    let rows = session.query(query!("read/clock"), &[]).await?;
    rows.first().map_or_else(|| Err(Fault::damaged("the server returned no time")), |row| time(row, 0))
}

pub(crate) async fn nodes(session: &Session) -> Result<Vec<NodeView>> {
    session.query(query!("read/nodes", INT8), &[&NODES]).await?.iter().map(node_of).collect()
}

fn node_of(row: &Row) -> Result<NodeView> {
    let abilities = match get(row, 5)? {
        "" => Abilities::default(),
        json => serde_json::from_str(json).map_err(Fault::damaged)?,
    };
    Ok(NodeView {
        id: get(row, 0)?,
        name: get(row, 1)?,
        joined: time(row, 2)?,
        heard: time(row, 3)?,
        gone: get(row, 4)?,
        abilities,
        running: get::<i64>(row, 6)? as u64,
    })
}

pub(super) async fn rules(session: &Session) -> Result<Vec<Rule>> {
    rules_of(&session.query(query!("write/rules"), &[]).await?)
}

pub(super) async fn deeds(session: &Session, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
    let before = before.unwrap_or(i64::MAX);
    let rows = session.query(query!("read/deeds", INT8, INT8), &[&before, &most(limit)]).await?;
    let deed = |row: &Row| {
        let deed = Deed {
            at: time(row, 1)?,
            by: get(row, 2)?,
            action: get(row, 3)?,
            what: get(row, 4)?,
            detail: get(row, 5)?,
        };
        Ok((get(row, 0)?, deed))
    };
    rows.iter().map(deed).collect()
}

pub(super) async fn fires(
    session: &Session,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> Result<FirePage> {
    let (schedule, before) = (schedule.as_str(), before.map_or(i64::MAX, Timestamp::micros));
    let rows = async {
        let query = query!("read/fires", TEXT, INT8, INT8);
        Ok(session.query(query, &[&schedule, &before, &most(limit)]).await?)
    };
    let (extent, rows) = try_join(extent(session), rows).await?;
    Ok(FirePage { fires: rows.iter().map(fire_of).collect::<Result<_>>()?, extent })
}
