//! The tables of a store, and a row of any of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, AuditEntryColumns, CellReader, CellWriter,
    ChainColumns, Column, Columns, CounterColumns, EndedOrderColumns, EventColumns, FileDigestColumns,
    FireColumns, HandlerColumns, IdempotencyRecordColumns, LogLineColumns, NamedTextColumns, NodeColumns,
    ObjectColumns, OrderColumns, OutboxKeyColumns, OutboxReceiptColumns, OutboxRefusalColumns, QueueColumns,
    RuleColumns, ScheduleProgressColumns, UnknownTenantRuleColumns,
};
use crate::error::TableResult;

/// Declares the tables, each with its name and the columns of its rows.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident($columns:ident $(<$life:lifetime>)?) = $name:literal,)*) => {
        /// A table of a store. Tables are copied in this order, so that rows come after the rows they refer to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum TableKind { $($(#[$doc])* $table),* }

        impl TableKind {
            pub const ALL: &[Self] = &[$(Self::$table),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$table => $name),* }
            }

            /// Returns the columns of the rows. Derived columns (numbers of events, the order in which tasks ended,
            /// partitions) are left out.
            pub fn columns(self) -> &'static [Column] {
                match self { $(Self::$table => <$columns $(<$life>)? as Columns>::COLUMNS),* }
            }

            /// Returns the columns of the primary key, which are the first ones.
            pub fn key_columns(self) -> &'static [Column] {
                let key_length = match self { $(Self::$table => <$columns $(<$life>)? as Columns>::KEY_LENGTH),* };
                self.columns().split_at(key_length).0
            }
        }

        /// A row of a table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum CopyRow { $($table($columns $(<$life>)?)),* }

        impl CopyRow {
            pub fn table(&self) -> TableKind {
                match self { $(Self::$table(_) => TableKind::$table),* }
            }

            /// Reads the cells of a row of a table.
            pub fn read_cells<'a, R: CellReader<'a>>(table: TableKind, reader: &mut R) -> TableResult<Self> {
                Ok(match table { $(TableKind::$table => Self::$table($columns::read_cells(reader)?.into_owned())),* })
            }

            /// Writes a cell for each column.
            pub fn write_cells<W: CellWriter>(&self, writer: &mut W) {
                match self { $(Self::$table(columns) => columns.write_cells(writer)),* }
            }
        }

        $(impl From<$columns $(<$life>)?> for CopyRow {
            fn from(columns: $columns $(<$life>)?) -> Self {
                Self::$table(columns)
            }
        })*
    };
}

tables! {
    /// One row: the counters, the namespace of task ids and the salt.
    Counters(CounterColumns) = "counters",
    /// Named texts: routes, weights of tenants, registrations and others.
    NamedTexts(NamedTextColumns<'static>) = "named_texts",
    /// All handlers ever registered, with their definitions, limiter states and missed event ranges.
    Handlers(HandlerColumns<'static>) = "handlers",
    /// Queues with their task counts.
    Queues(QueueColumns<'static>) = "queues",
    /// All chains ever defined, with their operator settings.
    Chains(ChainColumns<'static>) = "chains",
    /// Pauses and blocks.
    Rules(RuleColumns<'static>) = "rules",
    /// Digests of the objects in the configuration files, by which changes of the files are detected.
    FileDigests(FileDigestColumns<'static>) = "file_digests",
    /// Nodes of the cluster. Those that had not left are copied with heartbeat 0: they are not live in the target, and
    /// the first sweep releases their tasks.
    Nodes(NodeColumns<'static>) = "nodes",
    /// Progress of schedules: up to which planned time each was processed.
    #[serde(rename = "schedules")]
    ScheduleProgress(ScheduleProgressColumns<'static>) = "schedules",
    /// Events in the journal, and expired events that unfinished tasks need.
    Journal(EventColumns<'static>) = "journal",
    /// Objects: the number, the last event and the last events sent of each.
    Objects(ObjectColumns<'static>) = "objects",
    /// Unfinished tasks.
    Tasks(ActiveTaskColumns<'static>) = "tasks",
    /// Orders that have not ended.
    Orders(OrderColumns<'static>) = "orders",
    /// Recorded outcomes of ended orders.
    EndedOrders(EndedOrderColumns<'static>) = "ended_orders",
    /// Archived tasks.
    #[serde(rename = "history")]
    ArchivedTasks(ArchivedTaskColumns<'static>) = "history",
    /// Ended attempts that did not succeed; a success is recorded in its task.
    Attempts(AttemptColumns<'static>) = "attempts",
    /// Log lines of tasks.
    Logs(LogLineColumns<'static>) = "logs",
    /// Idempotency records.
    IdempotencyRecords(IdempotencyRecordColumns<'static>) = "idempotency_records",
    /// The fire ledger: rows of planned times.
    Fires(FireColumns<'static>) = "fires",
    /// Audit entries: who changed what.
    AuditEntries(AuditEntryColumns<'static>) = "audit_entries",
    /// Events emitted in SQL: the event of each receipt. Only stores with an SQL outbox have this table and the next two.
    OutboxReceipts(OutboxReceiptColumns<'static>) = "outbox_receipts",
    /// Idempotency keys of events emitted in SQL.
    OutboxKeys(OutboxKeyColumns<'static>) = "outbox_keys",
    /// Events emitted in SQL that were refused.
    OutboxRefusals(OutboxRefusalColumns<'static>) = "outbox_refusals",
    /// Rules for tenants that have no event yet. Only a store in which rules refer to a tenant by its uuid has them.
    UnknownTenantRules(UnknownTenantRuleColumns<'static>) = "unknown_tenant_rules",
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_are_listed_in_copy_order() {
        assert!(TableKind::ALL.is_sorted());
        for table in TableKind::ALL {
            let name = serde_json::to_string(table).unwrap();
            assert_eq!(name, format!("{:?}", table.name()));
        }
    }
}
