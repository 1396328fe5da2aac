//! Chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};
use pointsman_store::row::ChainRow;
use pointsman_store::tables::ChainTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::row::{query_all, query_first, read_text};
use crate::error::{Fault, TableResult};

impl ChainTable for SqliteTables {
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        list_chains(&self.conn)
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        self.conn.execute("UPDATE pointsman_chain SET defined = 0", [])?;
        let sql = "INSERT INTO pointsman_chain (path, def, defined, state) VALUES (?1, ?2, 1, ?3)
                   ON CONFLICT (path) DO UPDATE SET def = ?2, defined = 1";
        let initial_state = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
        for chain in chains {
            let def = serde_json::to_string(chain).map_err(Fault::damaged)?;
            self.conn.prepare_cached(sql)?.execute((chain.path.as_str(), def, &initial_state))?;
        }
        Ok(())
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        let json = serde_json::to_string(state).map_err(Fault::damaged)?;
        let sql = "UPDATE pointsman_chain SET state = ?2 WHERE path = ?1";
        self.conn.prepare_cached(sql)?.execute((path.as_str(), json))?;
        Ok(())
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        let sql =
            "SELECT path, reconciled_up_to FROM pointsman_chain WHERE reconciled_up_to IS NOT NULL LIMIT 1";
        query_first(&self.conn, sql, [], |row| {
            Ok((ChainPath::new(read_text(row, 0)?).map_err(Fault::damaged)?, row.get(1)?))
        })
    }

    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        let sql = "UPDATE pointsman_chain SET reconciled_up_to = ?2 WHERE path = ?1";
        self.conn.prepare_cached(sql)?.execute((path.as_str(), after))?;
        Ok(())
    }
}

pub(crate) fn list_chains(conn: &Connection) -> TableResult<Vec<ChainRow>> {
    query_all(conn, "SELECT def, defined, state FROM pointsman_chain ORDER BY path", [], |row| {
        Ok(ChainRow {
            chain: serde_json::from_str(read_text(row, 0)?).map_err(Fault::damaged)?,
            is_defined: row.get(1)?,
            state: serde_json::from_str(read_text(row, 2)?).map_err(Fault::damaged)?,
        })
    })
}
