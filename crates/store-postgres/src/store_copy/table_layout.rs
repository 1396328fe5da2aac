//! The PostgreSQL table of each copied table.

use pointsman_store::transfer::Section;

/// A table, the columns that order its rows, the filter of the rows to copy, and the columns that only PostgreSQL has.
pub(super) struct TableLayout {
    pub(super) table: &'static str,
    pub(super) key_columns: &'static [&'static str],
    pub(super) row_filter: &'static str,
    pub(super) extra_columns: &'static [&'static str],
}

/// Expired events are in the table until their partition is dropped.
const NEEDED_EVENTS: &str = "t.id > (SELECT forgotten FROM pointsman.sequencer)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.seq >= t.first_task AND k.seq < t.first_task + t.tasks)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.late AND k.event = t.id)";
/// Likewise attempts and logs of expired tasks.
const ROWS_OF_EXISTING_TASKS: &str = "EXISTS (SELECT FROM pointsman.task k WHERE k.seq = t.task)
    OR EXISTS (SELECT FROM pointsman.history h
               WHERE h.seq = t.task AND h.n > (SELECT hidden FROM pointsman.sequencer))";
/// Texts that belong to this database and are not copied.
const COPIED_TEXTS: &str = "t.name NOT IN ('realm', 'salt', 'slice', 'first_token', 'move')";

impl TableLayout {
    pub(super) fn for_table(section: Section) -> Self {
        let all = |table, key_columns| Self { table, key_columns, row_filter: "true", extra_columns: &[] };
        match section {
            Section::Counters => all("sequencer", &[]),
            Section::Texts => Self { row_filter: COPIED_TEXTS, ..all("meta", &["name"]) },
            Section::Handlers => all("handler", &["id"]),
            Section::Queues => Self { extra_columns: &["canvas_id"], ..all("queue", &["id"]) },
            Section::Chains => all("chain", &["path"]),
            Section::Rules => all("scheduling_rules", &["id"]),
            Section::Files => all("file", &["key"]),
            Section::Nodes => all("node", &["id"]),
            Section::Schedules => all("schedule", &["name"]),
            Section::Journal => {
                Self { row_filter: NEEDED_EVENTS, extra_columns: &["number"], ..all("journal", &["id"]) }
            }
            Section::Objects => all("object", &["tenant", "key"]),
            Section::Tasks => all("task", &["seq"]),
            Section::Orders => all("orders", &["n"]),
            Section::EndedOrders => all("ended_order", &["key", "tenant"]),
            // In the order of their ends.
            Section::History => Self {
                row_filter: "t.n > (SELECT hidden FROM pointsman.sequencer)",
                extra_columns: &["n"],
                ..all("history", &["n"])
            },
            Section::Attempts => Self {
                row_filter: ROWS_OF_EXISTING_TASKS,
                extra_columns: &["era"],
                ..all("attempt", &["task", "number"])
            },
            Section::Logs => Self {
                row_filter: ROWS_OF_EXISTING_TASKS,
                extra_columns: &["era"],
                ..all("log", &["task", "n"])
            },
            // In the order of time: another store may find the oldest one by it.
            Section::Answers => all("idempotency", &["n"]),
            Section::Fires => all("fire", &["at", "schedule", "planned"]),
            Section::Deeds => all("deed", &["n"]),
            Section::Receipts => all("receipt", &["n"]),
            Section::Keys => all("outbox_key", &["tenant", "key"]),
            Section::Refused => all("outbox_refused", &["n"]),
            Section::Ahead => all("scheduling_rules", &["id"]),
        }
    }

    /// The SQL expressions that are read for the columns.
    pub(super) fn select_list(section: Section) -> String {
        let column = |name: &&str| match (section, *name) {
            (Section::Nodes, "heard") => "CASE WHEN t.gone THEN t.heard ELSE 0 END".into(),
            (_, name) => format!("t.{name}"),
        };
        section.columns().iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// The columns that a row is copied into; those that only PostgreSQL has come first.
    pub(super) fn column_list(&self, section: Section) -> String {
        self.extra_columns.iter().chain(section.columns()).copied().collect::<Vec<_>>().join(", ")
    }
}
