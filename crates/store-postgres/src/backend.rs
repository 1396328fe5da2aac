//! Connects the writer to the tables.

use pointsman_core::store::StoreError;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::{Backend, CacheState, ReadSet};

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

    fn begin(&mut self, read_set: ReadSet) -> TableResult<CacheState> {
        self.tables.begin(read_set)
    }

    fn extend_read_set(&mut self, read_set: ReadSet) -> TableResult<()> {
        self.tables.prefetch(read_set)
    }

    fn tables(&mut self) -> &mut PgTables {
        &mut self.tables
    }

    fn commit(&mut self) -> TableResult<()> {
        self.tables.commit()
    }

    fn roll_back(&mut self) {
        self.tables.roll_back();
    }

    fn to_store_error(fault: Fault) -> StoreError {
        crate::error::to_store_error(fault)
    }

    fn rows_written(&self) -> u64 {
        self.tables.rows_written()
    }
}
