//! Chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};
use pointsman_store::columns::ChainColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ChainRow;
use pointsman_store::tables::ChainTable;
use serde::Serialize;

use super::RedisTables;
use crate::cells::encode_row;
use crate::keys::Table;
use crate::rows::decode_row_at;

impl ChainTable for RedisTables {
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>> {
        self.overlay.read_chains()
    }

    /// Stores these chains as defined, and all others as not defined any more; states are kept.
    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()> {
        for (path, row) in self.overlay.read_table(Table::Chains)? {
            let stored: ChainColumns<'_> = decode_row_at(&path, &row)?;
            self.write_chain(&ChainColumns { defined: false, ..stored });
        }
        for chain in chains {
            let row = self.overlay.read_row(Table::Chains, chain.path.as_str())?;
            let stored = match &row {
                Some(row) => decode_row_at(chain.path.as_str().as_bytes(), row)?,
                None => ChainColumns {
                    path: chain.path.as_str().into(),
                    def: "".into(),
                    defined: false,
                    state: encode_json_text(&ChainState::default())?.into(),
                    reconciled_up_to: None,
                },
            };
            self.write_chain(&ChainColumns { def: encode_json_text(chain)?.into(), defined: true, ..stored });
        }
        self.mark_registry_changed();
        Ok(())
    }

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        let state = encode_json_text(state)?;
        self.update_chain(path, |chain| chain.state = state.into())?;
        self.mark_registry_changed();
        Ok(())
    }

    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>> {
        let mut first: Option<(ChainPath, i64)> = None;
        for (path, row) in self.overlay.read_table(Table::Chains)? {
            let chain: ChainColumns<'_> = decode_row_at(&path, &row)?;
            if let Some(after) = chain.reconciled_up_to
                && first.as_ref().is_none_or(|(first, _)| *chain.path < *first.as_str())
            {
                first = Some((ChainPath::new(chain.path).map_err(Fault::damaged)?, after));
            }
        }
        Ok(first)
    }

    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        self.update_chain(path, |chain| chain.reconciled_up_to = after)
    }
}

impl RedisTables {
    pub(crate) fn write_chain(&mut self, chain: &ChainColumns<'_>) {
        self.overlay.write_row(Table::Chains, chain.path.as_bytes(), encode_row(chain));
    }

    /// Changes a stored chain.
    fn update_chain(
        &mut self,
        path: &ChainPath,
        change: impl FnOnce(&mut ChainColumns<'_>),
    ) -> TableResult<()> {
        let Some(row) = self.overlay.read_row(Table::Chains, path.as_str())? else { return Ok(()) };
        let mut chain = decode_row_at(path.as_str().as_bytes(), &row)?;
        change(&mut chain);
        self.write_chain(&chain);
        Ok(())
    }
}

fn encode_json_text(value: &impl Serialize) -> TableResult<String> {
    serde_json::to_string(value).map_err(Fault::damaged)
}
