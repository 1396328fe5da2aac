//! The PostgreSQL table for each kind of table that a store copy copies.

use pointsman_store::columns::Column;
use pointsman_store::store_copy::TableKind;

/// Where a copied table is stored in PostgreSQL, and which of its rows and columns are copied.
pub(super) struct TableLayout {
    pub(super) table_name: &'static str,
    /// The columns by which the rows are read in order.
    pub(super) sort_columns: Vec<&'static str>,
    /// The SQL condition that selects the rows to copy.
    pub(super) row_filter: &'static str,
    /// A column that only PostgreSQL has, and that is written.
    pub(super) postgres_only_column: Option<&'static str>,
}

/// Selects unexpired events, and expired ones that unfinished tasks need; other expired events are in the table until
/// their partition is dropped.
const NEEDED_EVENTS_FILTER: &str = "t.id > (SELECT expired_up_to FROM pointsman.last_commit)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.seq >= t.first_task AND k.seq < t.first_task + t.tasks)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.late AND k.event = t.id)";
/// Selects attempts and log lines of tasks that have not expired; others are in the table until their partition is
/// dropped.
const ROWS_OF_UNEXPIRED_TASKS_FILTER: &str = "EXISTS (SELECT FROM pointsman.task k WHERE k.seq = t.task)
    OR EXISTS (SELECT FROM pointsman.history h
               WHERE h.seq = t.task AND h.n > (SELECT expired_archive_number FROM pointsman.last_commit))";
/// Selects all texts except those that belong to one database, or that are copied with the counters.
const COPIED_TEXTS_FILTER: &str =
    "t.name NOT IN ('task_id_namespace', 'salt', 'partition_rows', 'first_token', 'move')";

impl TableLayout {
    pub(super) fn for_table(table_kind: TableKind) -> Self {
        let all_rows = |table_name| Self {
            table_name,
            sort_columns: table_kind.key_columns().iter().map(|column| column.name).collect(),
            row_filter: "true",
            postgres_only_column: None,
        };
        match table_kind {
            TableKind::Counters => all_rows("last_commit"),
            TableKind::NamedTexts => Self { row_filter: COPIED_TEXTS_FILTER, ..all_rows("meta") },
            TableKind::Handlers => all_rows("handler"),
            TableKind::Queues => Self { postgres_only_column: Some("canvas_id"), ..all_rows("queue") },
            TableKind::Chains => all_rows("chain"),
            TableKind::Rules | TableKind::UnknownTenantRules => all_rows("scheduling_rules"),
            TableKind::FileDigests => all_rows("file_digest"),
            TableKind::Nodes => all_rows("node"),
            TableKind::ScheduleProgress => all_rows("schedule"),
            TableKind::Journal => Self {
                row_filter: NEEDED_EVENTS_FILTER,
                postgres_only_column: Some("number"),
                ..all_rows("journal")
            },
            TableKind::Objects => all_rows("object"),
            TableKind::Tasks => all_rows("task"),
            TableKind::Orders => all_rows("orders"),
            TableKind::EndedOrders => all_rows("ended_order"),
            // Ordered by when the tasks ended.
            TableKind::ArchivedTasks => Self {
                sort_columns: vec!["n"],
                row_filter: "t.n > (SELECT expired_archive_number FROM pointsman.last_commit)",
                postgres_only_column: Some("n"),
                ..all_rows("history")
            },
            TableKind::Attempts => Self {
                row_filter: ROWS_OF_UNEXPIRED_TASKS_FILTER,
                postgres_only_column: Some("partition_key"),
                ..all_rows("attempt")
            },
            TableKind::Logs => Self {
                row_filter: ROWS_OF_UNEXPIRED_TASKS_FILTER,
                postgres_only_column: Some("partition_key"),
                ..all_rows("log")
            },
            // Ordered by time, because another store may find the oldest records by their position.
            TableKind::IdempotencyRecords => {
                Self { sort_columns: vec!["n"], ..all_rows("idempotency_record") }
            }
            TableKind::Fires => Self { sort_columns: vec!["at", "schedule", "planned"], ..all_rows("fire") },
            TableKind::AuditEntries => all_rows("audit_entry"),
            TableKind::OutboxReceipts => all_rows("receipt"),
            TableKind::OutboxKeys => all_rows("outbox_idempotency_key"),
            TableKind::OutboxRefusals => all_rows("outbox_refused"),
        }
    }

    /// Returns the SQL expressions that are read for the copied columns.
    pub(super) fn select_list(table_kind: TableKind) -> String {
        let expression = |column: &Column| match (table_kind, column.name) {
            (TableKind::Nodes, "last_heartbeat") => {
                "CASE WHEN t.gone THEN t.last_heartbeat ELSE 0 END".into()
            }
            (_, name) => format!("t.{name}"),
        };
        table_kind.columns().iter().map(expression).collect::<Vec<_>>().join(", ")
    }

    /// Returns the columns that a row is written to: first the one that only PostgreSQL has.
    pub(super) fn column_list(&self, table_kind: TableKind) -> String {
        let names = table_kind.columns().iter().map(|column| column.name);
        self.postgres_only_column.into_iter().chain(names).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::columns::CellType;
    use pointsman_testing::shared_postgres;
    use tokio_postgres::types::Type;

    use super::*;
    use crate::connect::Endpoint;
    use crate::store_copy::{CopyRole, check_and_open_connection};

    #[tokio::test]
    async fn the_columns_of_every_table_have_the_described_types() {
        let url = shared_postgres().unwrap().create_database().unwrap();
        let endpoint = Endpoint::parse(&url).unwrap();
        let connection = check_and_open_connection(&endpoint, CopyRole::Target).await.unwrap();
        for &table_kind in TableKind::ALL {
            if let TableKind::Counters | TableKind::Rules | TableKind::UnknownTenantRules = table_kind {
                continue; // These are not read from the columns of one table.
            }
            let (table, columns) =
                (TableLayout::for_table(table_kind).table_name, TableLayout::select_list(table_kind));
            let sql = format!("SELECT {columns} FROM pointsman.{table} t");
            let statement = connection.client.prepare(&sql).await.unwrap();
            for (column, found) in table_kind.columns().iter().zip(statement.columns()) {
                let allowed: &[Type] = match column.cell_type {
                    CellType::Int8 => &[Type::INT8],
                    CellType::Int4 => &[Type::INT4],
                    CellType::Int2 => &[Type::INT2],
                    CellType::Bool => &[Type::BOOL],
                    CellType::Text => &[Type::TEXT],
                    CellType::Bytes => &[Type::BYTEA, Type::UUID],
                };
                assert!(allowed.contains(found.type_()), "{table}.{}: {}", column.name, found.type_());
            }
        }
    }
}
