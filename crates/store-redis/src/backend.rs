//! The backend that the writer runs its transactions on.

use pointsman_core::store::StoreError;
use pointsman_store::Txn;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::{Backend, CacheState, ReadSet};

use crate::outbox;
use crate::tables::RedisTables;

/// Runs the transactions of the writer on the tables in Redis, and journals the outboxes first.
pub(crate) struct RedisBackend {
    tables: RedisTables,
}

impl RedisBackend {
    pub(crate) fn new(tables: RedisTables) -> Self {
        Self { tables }
    }
}

impl Drop for RedisBackend {
    fn drop(&mut self) {
        self.tables.release_outbox_workers();
    }
}

impl Backend for RedisBackend {
    type Tables = RedisTables;

    fn begin(&mut self, read_set: ReadSet) -> TableResult<CacheState> {
        self.tables.begin(read_set)
    }

    fn extend_read_set(&mut self, read_set: ReadSet) -> TableResult<()> {
        self.tables.prefetch_read_set_of_joining_jobs(&read_set)
    }

    fn drain_outboxes_first(txn: &mut Txn<'_, RedisTables>) -> TableResult<bool> {
        outbox::journal_outboxes(txn)
    }

    fn must_postpone_job(&self, read_set: &ReadSet) -> bool {
        self.tables.has_outbox_backlog(read_set)
    }

    fn tables(&mut self) -> &mut RedisTables {
        &mut self.tables
    }

    fn commit(&mut self) -> TableResult<()> {
        self.tables.commit()
    }

    fn roll_back(&mut self) {
        self.tables.roll_back();
    }

    fn to_store_error(fault: Fault) -> StoreError {
        crate::error::store_error_from_fault(fault)
    }

    fn rows_written(&self) -> u64 {
        self.tables.rows_written()
    }
}
