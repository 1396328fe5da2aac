//! The table of chains.

use pointsman_core::chain::{Chain, ChainPath, ChainState};

use crate::error::TableResult;
use crate::row::ChainRow;

/// Chains with their states.
pub trait ChainTable {
    /// Lists all chains ever defined, by path.
    fn list_chains(&mut self) -> TableResult<Vec<ChainRow>>;

    /// Makes these the defined chains; all others become undefined. Operator settings stay.
    fn set_defined_chains(&mut self, chains: &[Chain]) -> TableResult<()>;

    fn write_chain_state(&mut self, path: &ChainPath, state: &ChainState) -> TableResult<()>;

    /// Returns a chain whose orders have yet to be re-evaluated, and the number of the order after which to continue.
    fn find_reevaluation_cursor(&mut self) -> TableResult<Option<(ChainPath, i64)>>;

    /// Records that the orders of a chain after this number have yet to be re-evaluated; `None`: no orders have.
    fn write_reevaluation_cursor(&mut self, path: &ChainPath, after: Option<i64>) -> TableResult<()>;
}
