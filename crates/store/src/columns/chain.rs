//! Chains.

use std::borrow::Cow;

use super::columns;
use crate::error::{Fault, TableResult};
use crate::row::ChainRow;

columns! {
    /// The columns of a chain.
    ChainColumns<'a> key(path) {
        path: Cow<'a, str>,
        /// The definition, as JSON.
        def: Cow<'a, str>,
        defined: bool,
        /// The settings of operators, as JSON.
        state: Cow<'a, str>,
        /// The number of the order up to which a changed chain has been reconciled with its orders.
        reconciled_up_to: Option<i64>,
    }
}

impl ChainColumns<'_> {
    pub fn into_row(self) -> TableResult<ChainRow> {
        Ok(ChainRow {
            chain: serde_json::from_str(&self.def).map_err(Fault::damaged)?,
            is_defined: self.defined,
            state: serde_json::from_str(&self.state).map_err(Fault::damaged)?,
        })
    }
}
