//! Connects the writer to the tables.

use pointsman_core::store::StoreError;
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::{Backend, Foreseen, Memory};

use crate::tables::PgTables;

pub(crate) struct PgBackend {
    tables: PgTables,
}

impl PgBackend {
    pub(crate) fn new(tables: PgTables) -> Self {
        Self { tables }
    }
}

impl Backend for PgBackend {
    type Tables = PgTables;

    fn begin(&mut self, foreseen: Foreseen) -> Result<Memory> {
        self.tables.begin(foreseen)
    }

    fn foresee(&mut self, foreseen: Foreseen) -> Result<()> {
        self.tables.prefetch(foreseen)
    }

    fn tables(&self) -> &PgTables {
        &self.tables
    }

    fn commit(&mut self) -> Result<()> {
        self.tables.commit()
    }

    fn roll_back(&mut self) {
        self.tables.roll_back();
    }

    fn explain(fault: &Fault) -> StoreError {
        crate::error::to_store_error(fault)
    }

    fn rows(&self) -> u64 {
        self.tables.rows_written()
    }
}
