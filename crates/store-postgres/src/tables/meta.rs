//! Counters and named texts.

use pointsman_core::task::TaskIdNamespace;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::{Counters, MetaTable, REGISTRATION_TEXT_NAMES};

use super::PgTables;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl MetaTable for PgTables {
    fn read_counters(&mut self) -> TableResult<Counters> {
        Ok(self.commit_version_row.counters)
    }

    fn write_counters(&mut self, counters: &Counters) -> TableResult<()> {
        self.commit_version_row.counters = *counters;
        Ok(())
    }

    fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        if let Some(task_id_namespace) = self.task_id_namespace {
            return Ok(task_id_namespace);
        }
        let task_id_namespace = TaskIdNamespace(self.read_named_number("task_id_namespace")? as u64);
        self.task_id_namespace = Some(task_id_namespace);
        Ok(task_id_namespace)
    }

    fn read_hash_salt(&mut self) -> TableResult<u64> {
        Ok(self.read_named_number("salt")? as u64)
    }

    fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        self.query_and_decode_first(query!("meta/read_named_text", TEXT), params![name.to_string()], |row| {
            read_column(row, 0)
        })
    }

    fn write_named_text(&mut self, name: &str, text: &str) -> TableResult<()> {
        if REGISTRATION_TEXT_NAMES.contains(&name) {
            self.mark_registry_changed();
        }
        let params = params![name.to_string(), text.to_string()];
        self.add_to_batch(SqlCommand::Query(query!("meta/write_named_text", TEXT, TEXT), params));
        Ok(())
    }
}

impl PgTables {
    fn read_named_number(&mut self, name: &str) -> TableResult<i64> {
        let text =
            self.read_named_text(name)?.ok_or_else(|| Fault::damaged(format!("there is no {name}")))?;
        text.parse().map_err(Fault::damaged)
    }
}
