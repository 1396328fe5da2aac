//! Chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};
use pointsman_store::columns::ChainColumns;
use pointsman_store::expand_sql;
use pointsman_store::row::ChainRow;
use pointsman_store::tables::ChainTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::queries::{query_all, query_first, read_columns, read_text, write_columns};
use crate::error::{Fault, TableResult};

impl ChainTable for SqliteTables {
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        list_chains(&self.conn)
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        self.conn.execute("UPDATE pointsman_chain SET defined = 0", [])?;
        let sql = expand_sql!(
            "INSERT INTO pointsman_chain (:chain_columns) VALUES (:chain_parameters)
             ON CONFLICT (path) DO UPDATE SET def = excluded.def, defined = 1"
        );
        let initial_state = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
        for chain in chains {
            let columns = ChainColumns {
                path: chain.path.as_str().into(),
                def: serde_json::to_string(chain).map_err(Fault::damaged)?.into(),
                defined: true,
                state: initial_state.as_str().into(),
                reconciled_up_to: None,
            };
            write_columns(&self.conn, sql, &columns)?;
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
    let sql = expand_sql!("SELECT :chain_columns FROM pointsman_chain ORDER BY path");
    query_all(conn, sql, [], |row| read_columns::<ChainColumns>(row)?.into_row())
}
