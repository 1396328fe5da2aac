//! Chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ChainRow;
use pointsman_store::tables::ChainTable;

use super::RedisTables;
use crate::keys::Table;
use crate::lookup::{StoredChain, parse_number};
use crate::rows;

impl ChainTable for RedisTables {
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        self.overlay.read_chains()
    }

    /// Stores these chains as defined, and all others as not defined any more; states are kept.
    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        let stored_chains = self.overlay.read_chains()?;
        for ChainRow { chain, state, .. } in &stored_chains {
            if !chains.iter().any(|new| new.path == chain.path) {
                self.write_chain(chain.clone(), false, state.clone())?;
            }
        }
        for chain in chains {
            let stored = stored_chains.iter().find(|stored| stored.chain.path == chain.path);
            let state = stored.map_or_else(ChainState::default, |stored| stored.state.clone());
            self.write_chain(chain.clone(), true, state)?;
        }
        Ok(())
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        let Some(row) = self.overlay.read_row(Table::Chains, path.as_str())? else { return Ok(()) };
        let StoredChain { chain, is_defined, .. } = rows::decode_json(&row)?;
        self.write_chain(chain, is_defined, state.clone())
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        let pending = self.overlay.read_table(Table::PendingChainReevaluations)?;
        let Some((path, after)) = pending.into_iter().min() else { return Ok(None) };
        let path = ChainPath::new(rows::decode_text(&path)?).map_err(Fault::damaged)?;
        Ok(Some((path, parse_number(&after)?)))
    }

    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        match after {
            Some(after) => self.overlay.write_row(
                Table::PendingChainReevaluations,
                path.as_str(),
                after.to_string().into_bytes(),
            ),
            None => self.overlay.delete_row(Table::PendingChainReevaluations, path.as_str()),
        }
        Ok(())
    }
}

impl RedisTables {
    fn write_chain(&mut self, chain: Chain, is_defined: bool, state: ChainState) -> TableResult<()> {
        let path = chain.path.to_string();
        self.overlay.write_row(
            Table::Chains,
            path,
            rows::encode_json(&StoredChain { chain, is_defined, state })?,
        );
        self.mark_registry_changed();
        Ok(())
    }
}
