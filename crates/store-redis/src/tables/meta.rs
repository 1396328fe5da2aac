//! Counters and named texts.

use pointsman_core::task::TaskIdNamespace;
use pointsman_store::error::TableResult;
use pointsman_store::tables::{Counters, MetaTable, REGISTRATION_TEXT_NAMES};

use super::RedisTables;
use crate::SALT_TEXT_NAME;
use crate::keys::Table;

impl MetaTable for RedisTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        Ok(self.store_state.counters)
    }

    fn write_counters(&mut self, counters: &Counters) -> TableResult<()> {
        self.store_state.counters = *counters;
        Ok(())
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        self.overlay.read_task_id_namespace()
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        self.overlay.read_named_number(SALT_TEXT_NAME)
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        self.overlay.read_named_text(name)
    }

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()> {
        if REGISTRATION_TEXT_NAMES.contains(&name) {
            self.mark_registry_changed();
        }
        self.overlay.write_row(Table::NamedTexts, name, text.into());
        Ok(())
    }
}
