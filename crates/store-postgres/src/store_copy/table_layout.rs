//! The PostgreSQL table of each copied table.

use pointsman_store::store_copy::TableKind;

/// A table, the columns that order its rows, the filter of the rows to copy, and the columns that only PostgreSQL has.
pub(super) struct TableLayout {
    pub(super) table: &'static str,
    pub(super) key_columns: &'static [&'static str],
    pub(super) row_filter: &'static str,
    pub(super) postgres_only_columns: &'static [&'static str],
}

/// Expired events are in the table until their partition is dropped.
const NEEDED_EVENTS_FILTER: &str = "t.id > (SELECT expired_up_to FROM pointsman.sequencer)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.seq >= t.first_task AND k.seq < t.first_task + t.tasks)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.late AND k.event = t.id)";
/// Likewise attempts and logs of expired tasks.
const EXISTING_TASK_ROWS_FILTER: &str = "EXISTS (SELECT FROM pointsman.task k WHERE k.seq = t.task)
    OR EXISTS (SELECT FROM pointsman.history h
               WHERE h.seq = t.task AND h.n > (SELECT expired_archive_number FROM pointsman.sequencer))";
/// Texts that belong to this database and are not copied.
const COPIED_TEXTS_FILTER: &str =
    "t.name NOT IN ('task_id_namespace', 'salt', 'partition_rows', 'first_token', 'move')";

impl TableLayout {
    pub(super) fn for_table(section: TableKind) -> Self {
        let all =
            |table, key_columns| Self { table, key_columns, row_filter: "true", postgres_only_columns: &[] };
        match section {
            TableKind::Counters => all("sequencer", &[]),
            TableKind::NamedTexts => Self { row_filter: COPIED_TEXTS_FILTER, ..all("meta", &["name"]) },
            TableKind::Handlers => all("handler", &["id"]),
            TableKind::Queues => Self { postgres_only_columns: &["canvas_id"], ..all("queue", &["id"]) },
            TableKind::Chains => all("chain", &["path"]),
            TableKind::Rules => all("scheduling_rules", &["id"]),
            TableKind::FileDigests => all("file_digest", &["key"]),
            TableKind::Nodes => all("node", &["id"]),
            TableKind::Schedules => all("schedule", &["name"]),
            TableKind::Journal => Self {
                row_filter: NEEDED_EVENTS_FILTER,
                postgres_only_columns: &["number"],
                ..all("journal", &["id"])
            },
            TableKind::Objects => all("object", &["tenant", "key"]),
            TableKind::Tasks => all("task", &["seq"]),
            TableKind::Orders => all("orders", &["n"]),
            TableKind::EndedOrders => all("ended_order", &["key", "tenant"]),
            // In the order of their ends.
            TableKind::History => Self {
                row_filter: "t.n > (SELECT expired_archive_number FROM pointsman.sequencer)",
                postgres_only_columns: &["n"],
                ..all("history", &["n"])
            },
            TableKind::Attempts => Self {
                row_filter: EXISTING_TASK_ROWS_FILTER,
                postgres_only_columns: &["partition_key"],
                ..all("attempt", &["task", "number"])
            },
            TableKind::Logs => Self {
                row_filter: EXISTING_TASK_ROWS_FILTER,
                postgres_only_columns: &["partition_key"],
                ..all("log", &["task", "n"])
            },
            // In the order of time: another store may find the oldest one by it.
            TableKind::IdempotencyRecords => all("idempotency_record", &["n"]),
            TableKind::Fires => all("fire", &["at", "schedule", "planned"]),
            TableKind::AuditEntries => all("audit_entry", &["n"]),
            TableKind::OutboxReceipts => all("receipt", &["n"]),
            TableKind::OutboxKeys => all("outbox_idempotency_key", &["tenant", "key"]),
            TableKind::OutboxRefusals => all("outbox_refused", &["n"]),
            TableKind::UnknownTenantRules => all("scheduling_rules", &["id"]),
        }
    }

    /// The SQL expressions that are read for the columns.
    pub(super) fn select_list(section: TableKind) -> String {
        let column = |name: &&str| match (section, *name) {
            (TableKind::Nodes, "last_heartbeat") => {
                "CASE WHEN t.gone THEN t.last_heartbeat ELSE 0 END".into()
            }
            (_, name) => format!("t.{name}"),
        };
        section.columns().iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// The columns that a row is copied into; those that only PostgreSQL has come first.
    pub(super) fn column_list(&self, section: TableKind) -> String {
        self.postgres_only_columns.iter().chain(section.columns()).copied().collect::<Vec<_>>().join(", ")
    }
}
