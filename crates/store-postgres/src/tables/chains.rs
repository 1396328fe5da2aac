//! Chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};
use pointsman_store::columns::ChainColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ChainRow;
use pointsman_store::tables::ChainTable;

use super::PgTables;
use crate::rows::{read_column, read_columns};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl ChainTable for PgTables {
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        self.query_and_decode_rows(query!("chain/list_chains"), vec![], |row| {
            read_columns::<ChainColumns<'_>>(row, 0)?.into_row()
        })
    }

    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("chain/mark_chains_undefined"), vec![]));
        let initial_state = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
        for chain in chains {
            let def = serde_json::to_string(chain).map_err(Fault::damaged)?;
            let params = params![chain.path.to_string(), def, initial_state.clone()];
            self.add_to_batch(SqlCommand::Query(query!("chain/upsert_chain", TEXT, TEXT, TEXT), params));
        }
        Ok(())
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        self.mark_registry_changed();
        let json = serde_json::to_string(state).map_err(Fault::damaged)?;
        let params = params![path.to_string(), json];
        self.add_to_batch(SqlCommand::Query(query!("chain/write_chain_state", TEXT, TEXT), params));
        Ok(())
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        let pending =
            self.query_and_decode_first(query!("chain/find_reevaluation_cursor"), vec![], |row| {
                Ok((
                    ChainPath::new(read_column::<&str>(row, 0)?).map_err(Fault::damaged)?,
                    read_column(row, 1)?,
                ))
            })?;
        Ok(pending)
    }

    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        let params = params![path.to_string(), after];
        self.add_to_batch(SqlCommand::Query(query!("chain/write_reevaluation_cursor", TEXT, INT8), params));
        Ok(())
    }
}
