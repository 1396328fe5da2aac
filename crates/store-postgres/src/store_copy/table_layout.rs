//! The PostgreSQL table for each kind of table that a store copy copies.

use pointsman_store::store_copy::TableKind;

/// A table, the columns that order its rows, the filter of the rows to copy, and the columns that only PostgreSQL has.
pub(super) struct TableLayout {
    pub(super) table_name: &'static str,
    pub(super) key_columns: &'static [&'static str],
    pub(super) row_filter: &'static str,
    pub(super) postgres_only_columns: &'static [&'static str],
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
        let copy_all_rows = |table, key_columns| Self {
            table_name: table,
            key_columns,
            row_filter: "true",
            postgres_only_columns: &[],
        };
        match table_kind {
            TableKind::Counters => copy_all_rows("last_commit", &[]),
            TableKind::NamedTexts => {
                Self { row_filter: COPIED_TEXTS_FILTER, ..copy_all_rows("meta", &["name"]) }
            }
            TableKind::Handlers => copy_all_rows("handler", &["id"]),
            TableKind::Queues => {
                Self { postgres_only_columns: &["canvas_id"], ..copy_all_rows("queue", &["id"]) }
            }
            TableKind::Chains => copy_all_rows("chain", &["path"]),
            TableKind::Rules => copy_all_rows("scheduling_rules", &["id"]),
            TableKind::FileDigests => copy_all_rows("file_digest", &["key"]),
            TableKind::Nodes => copy_all_rows("node", &["id"]),
            TableKind::Schedules => copy_all_rows("schedule", &["name"]),
            TableKind::Journal => Self {
                row_filter: NEEDED_EVENTS_FILTER,
                postgres_only_columns: &["number"],
                ..copy_all_rows("journal", &["id"])
            },
            TableKind::Objects => copy_all_rows("object", &["tenant", "key"]),
            TableKind::Tasks => copy_all_rows("task", &["seq"]),
            TableKind::Orders => copy_all_rows("orders", &["n"]),
            TableKind::EndedOrders => copy_all_rows("ended_order", &["key", "tenant"]),
            // Ordered by when the tasks ended.
            TableKind::History => Self {
                row_filter: "t.n > (SELECT expired_archive_number FROM pointsman.last_commit)",
                postgres_only_columns: &["n"],
                ..copy_all_rows("history", &["n"])
            },
            TableKind::Attempts => Self {
                row_filter: ROWS_OF_UNEXPIRED_TASKS_FILTER,
                postgres_only_columns: &["partition_key"],
                ..copy_all_rows("attempt", &["task", "number"])
            },
            TableKind::Logs => Self {
                row_filter: ROWS_OF_UNEXPIRED_TASKS_FILTER,
                postgres_only_columns: &["partition_key"],
                ..copy_all_rows("log", &["task", "n"])
            },
            // Ordered by time, because another store may find the oldest records by their position.
            TableKind::IdempotencyRecords => copy_all_rows("idempotency_record", &["n"]),
            TableKind::Fires => copy_all_rows("fire", &["at", "schedule", "planned"]),
            TableKind::AuditEntries => copy_all_rows("audit_entry", &["n"]),
            TableKind::OutboxReceipts => copy_all_rows("receipt", &["n"]),
            TableKind::OutboxKeys => copy_all_rows("outbox_idempotency_key", &["tenant", "key"]),
            TableKind::OutboxRefusals => copy_all_rows("outbox_refused", &["n"]),
            TableKind::UnknownTenantRules => copy_all_rows("scheduling_rules", &["id"]),
        }
    }

    /// Returns the SQL expressions that are read for the copied columns.
    pub(super) fn select_list(table_kind: TableKind) -> String {
        let column = |name: &&str| match (table_kind, *name) {
            (TableKind::Nodes, "last_heartbeat") => {
                "CASE WHEN t.gone THEN t.last_heartbeat ELSE 0 END".into()
            }
            (_, name) => format!("t.{name}"),
        };
        table_kind.columns().iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// Returns the columns that a row is written to: first those that only PostgreSQL has.
    pub(super) fn column_list(&self, table_kind: TableKind) -> String {
        self.postgres_only_columns.iter().chain(table_kind.columns()).copied().collect::<Vec<_>>().join(", ")
    }
}
