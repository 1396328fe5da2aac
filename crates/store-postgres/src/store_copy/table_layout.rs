//! Where the rows of each section lie.

use pointsman_store::transfer::Section;

/// A table, what its rows are read in the order of, which of them belong to the section, and what else a row has that the
/// section has not.
pub(super) struct TableLayout {
    pub(super) table: &'static str,
    pub(super) key_columns: &'static [&'static str],
    pub(super) row_filter: &'static str,
    pub(super) extra_columns: &'static [&'static str],
}

/// Events that nobody needs any more lie there until their slice is dropped.
const NEEDED_EVENTS: &str = "t.id > (SELECT forgotten FROM pointsman.sequencer)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.seq >= t.first_task AND k.seq < t.first_task + t.tasks)
    OR EXISTS (SELECT FROM pointsman.task k WHERE k.late AND k.event = t.id)";
/// So do attempts and logs.
const ROWS_OF_EXISTING_TASKS: &str = "EXISTS (SELECT FROM pointsman.task k WHERE k.seq = t.task)
    OR EXISTS (SELECT FROM pointsman.history h
               WHERE h.seq = t.task AND h.n > (SELECT hidden FROM pointsman.sequencer))";
/// What the database keeps for itself.
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
            // In the order in which they ended.
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
            // In the order of time: another store may find the oldest by it.
            Section::Answers => all("idempotency", &["n"]),
            Section::Fires => all("fire", &["at", "schedule", "planned"]),
            Section::Deeds => all("deed", &["n"]),
            Section::Receipts => all("receipt", &["n"]),
            Section::Keys => all("outbox_key", &["tenant", "key"]),
            Section::Refused => all("outbox_refused", &["n"]),
            Section::Ahead => all("scheduling_rules", &["id"]),
        }
    }

    /// What is read for each column of the section.
    pub(super) fn select_list(section: Section) -> String {
        let column = |name: &&str| match (section, *name) {
            (Section::Nodes, "heard") => "CASE WHEN t.gone THEN t.heard ELSE 0 END".into(),
            (_, name) => format!("t.{name}"),
        };
        section.columns().iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// The columns that a row is copied into: what the section has not comes first.
    pub(super) fn column_list(&self, section: Section) -> String {
        self.extra_columns.iter().chain(section.columns()).copied().collect::<Vec<_>>().join(", ")
    }
}
