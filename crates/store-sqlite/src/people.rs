//! Nodes as others see them, and what people did.

use std::collections::HashMap;

use pointsman_core::Timestamp;
use pointsman_core::store::{Abilities, Deed, NodeId, NodeView};
use rusqlite::Connection;

use crate::error::{Fault, Result};
use crate::writer::Txn;

/// So many nodes are told of at most.
const NODES: i64 = 100;

impl Txn<'_> {
    pub(crate) fn announce(&mut self, node: NodeId, abilities: Abilities) -> Result<()> {
        let json = serde_json::to_string(&abilities).map_err(Fault::damaged)?;
        let sql = "UPDATE pointsman_node SET abilities = ?2 WHERE id = ?1";
        self.conn.prepare_cached(sql)?.execute((node, json))?;
        Ok(())
    }

    pub(crate) fn note(&mut self, deed: Deed) -> Result<()> {
        let sql = "INSERT INTO pointsman_deed (at, by, action, what, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (deed.at.micros(), deed.by, deed.action, deed.what, deed.detail);
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

pub(crate) fn nodes(conn: &Connection) -> Result<Vec<NodeView>> {
    let sql = "SELECT node, count(*) FROM pointsman_task WHERE phase = 5 GROUP BY node";
    let running: HashMap<i64, i64> = {
        let mut statement = conn.prepare_cached(sql)?;
        let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let sql =
        "SELECT id, name, joined, heard, gone, abilities FROM pointsman_node ORDER BY gone, id DESC LIMIT ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([NODES])?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        let id: NodeId = row.get(0)?;
        let abilities: String = row.get(5)?;
        let abilities = match abilities.as_str() {
            "" => Abilities::default(),
            json => serde_json::from_str(json).map_err(Fault::damaged)?,
        };
        nodes.push(NodeView {
            id,
            name: row.get(1)?,
            joined: Timestamp::from_micros(row.get(2)?),
            heard: Timestamp::from_micros(row.get(3)?),
            gone: row.get(4)?,
            abilities,
            running: running.get(&id).copied().unwrap_or(0).max(0) as u64,
        });
    }
    Ok(nodes)
}

pub(crate) fn deeds(conn: &Connection, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
    let sql =
        "SELECT n, at, by, action, what, detail FROM pointsman_deed WHERE n < ?1 ORDER BY n DESC LIMIT ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map((before.unwrap_or(i64::MAX), limit as i64), |r| {
        let deed = Deed {
            at: Timestamp::from_micros(r.get(1)?),
            by: r.get(2)?,
            action: r.get(3)?,
            what: r.get(4)?,
            detail: r.get(5)?,
        };
        Ok((r.get(0)?, deed))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
