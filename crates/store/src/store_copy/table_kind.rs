//! What a store holds, in sections, and the columns of each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of what a store holds. They are moved in this order: what others refer to comes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// One row: how far everything has come, and what numbers are mixed with.
    Counters,
    /// What is kept under a name: routes, shares of tenants, who has registered what.
    #[serde(rename = "texts")]
    NamedTexts,
    Handlers,
    Queues,
    Chains,
    Rules,
    #[serde(rename = "files")]
    FileDigests,
    Nodes,
    Schedules,
    /// Events that are not forgotten, and those that are but unfinished tasks need them.
    Journal,
    Objects,
    /// Unfinished tasks.
    Tasks,
    Orders,
    /// Orders that have ended, as far as they are remembered.
    #[serde(rename = "ended_orders")]
    EndedOrders,
    /// Ended tasks.
    History,
    Attempts,
    Logs,
    /// Answers to idempotency keys.
    #[serde(rename = "answers")]
    IdempotencyRecords,
    /// The ledger of planned times.
    Fires,
    /// Who changed what.
    #[serde(rename = "deeds")]
    AuditEntries,
    /// Of events that were emitted in SQL: which event each receipt stands for, the idempotency keys, and what was
    /// refused. Only a store that speaks SQL to producers has these three.
    #[serde(rename = "receipts")]
    OutboxReceipts,
    #[serde(rename = "keys")]
    OutboxKeys,
    #[serde(rename = "refused")]
    OutboxRefusals,
    /// Rules for tenants that nobody has heard of yet. Only a store in which rules name a tenant by its uuid has them.
    #[serde(rename = "ahead")]
    UnknownTenantRules,
}

impl TableKind {
    pub const ALL: [Self; 24] = [
        Self::Counters,
        Self::NamedTexts,
        Self::Handlers,
        Self::Queues,
        Self::Chains,
        Self::Rules,
        Self::FileDigests,
        Self::Nodes,
        Self::Schedules,
        Self::Journal,
        Self::Objects,
        Self::Tasks,
        Self::Orders,
        Self::EndedOrders,
        Self::History,
        Self::Attempts,
        Self::Logs,
        Self::IdempotencyRecords,
        Self::Fires,
        Self::AuditEntries,
        Self::OutboxReceipts,
        Self::OutboxKeys,
        Self::OutboxRefusals,
        Self::UnknownTenantRules,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::NamedTexts => "texts",
            Self::Handlers => "handlers",
            Self::Queues => "queues",
            Self::Chains => "chains",
            Self::Rules => "rules",
            Self::FileDigests => "files",
            Self::Nodes => "nodes",
            Self::Schedules => "schedules",
            Self::Journal => "journal",
            Self::Objects => "objects",
            Self::Tasks => "tasks",
            Self::Orders => "orders",
            Self::EndedOrders => "ended_orders",
            Self::History => "history",
            Self::Attempts => "attempts",
            Self::Logs => "logs",
            Self::IdempotencyRecords => "answers",
            Self::Fires => "fires",
            Self::AuditEntries => "deeds",
            Self::OutboxReceipts => "receipts",
            Self::OutboxKeys => "keys",
            Self::OutboxRefusals => "refused",
            Self::UnknownTenantRules => "ahead",
        }
    }

    /// The columns of its rows. What a store reckons from the rest (the numbers of events, the order in which tasks
    /// ended, slices) is not among them. A store that names one otherwise translates.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            // `unseen`: how many events came before the first that is not forgotten.
            Self::Counters => &[
                "realm",
                "salt",
                "last_event",
                "forgotten",
                "unseen",
                "journaled",
                "tasks",
                "fences",
                "objects",
                "ended",
                "nodes",
            ],
            Self::NamedTexts => &["name", "text"],
            Self::Handlers => &["id", "name", "def", "defined", "pace", "gaps"],
            Self::Queues => &[
                "id",
                "handler",
                "tenant",
                "collection",
                "ready",
                "waiting",
                "scheduled",
                "running",
                "halted",
                "missing",
            ],
            Self::Chains => &["path", "def", "defined", "state", "pending"],
            Self::Rules => &["kind", "space", "name", "tenant", "by", "reason", "since"],
            Self::FileDigests => &["key", "digest"],
            // `received` is 0 for those that had not left: where they are moved to they are not, and what they held is free
            // at the first sweep.
            Self::Nodes => &["id", "name", "joined", "heard", "gone", "abilities"],
            Self::Schedules => &["name", "expression", "settled", "unmet", "last_event", "named"],
            Self::Journal => &[
                "id",
                "prev",
                "type",
                "key",
                "sub",
                "tenant",
                "value",
                "context",
                "cause_event",
                "cause_task",
                "depth",
                "first_task",
                "tasks",
            ],
            Self::Objects => &["tenant", "key", "number", "last", "sent", "checked"],
            Self::Tasks => &[
                "seq",
                "queue",
                "event",
                "ord",
                "phase",
                "lane",
                "place",
                "crowd",
                "bucket",
                "sync",
                "stage",
                "priority",
                "score",
                "rank",
                "due",
                "attempt",
                "retries",
                "crashes",
                "late",
                "node",
                "fence",
                "until",
                "started",
                "prev_sent",
                "planned",
                "created",
                "reason",
                "error",
            ],
            Self::Orders => &[
                "n",
                "key",
                "chain",
                "node",
                "tenant",
                "value",
                "priority",
                "planned",
                "created",
                "started",
                "suspended",
                "task",
                "origin",
                "depth",
                "stepped",
                "halted_by",
                "took_on_error",
            ],
            Self::EndedOrders => &["key", "tenant", "outcome", "node", "ended"],
            Self::History => &[
                "seq",
                "queue",
                "event",
                "type",
                "key",
                "status",
                "reason",
                "sync",
                "stage",
                "priority",
                "attempt",
                "retries",
                "crashes",
                "late",
                "laned",
                "prev_sent",
                "planned",
                "created",
                "started",
                "finished",
                "error",
                "result",
            ],
            Self::Attempts => &["task", "number", "started", "ended", "how", "error"],
            Self::Logs => &["task", "n", "time", "level", "message"],
            Self::IdempotencyRecords => &["tenant", "key", "digest", "answer", "at"],
            Self::Fires => &["schedule", "planned", "at", "outcome", "event", "task"],
            Self::AuditEntries => &["n", "at", "by", "action", "what", "detail"],
            Self::OutboxReceipts => &["n", "receipt", "event"],
            Self::OutboxKeys => &["tenant", "key", "digest", "receipt", "at"],
            Self::OutboxRefusals => &[
                "n",
                "receipt",
                "type",
                "key",
                "sub",
                "tenant",
                "value",
                "context",
                "due",
                "priority",
                "idempotency_key",
                "digest",
                "at",
                "reason",
                "refused_at",
            ],
            Self::UnknownTenantRules => &["kind", "space", "name", "canvas", "since"],
        }
    }
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
    fn all_sections_are_there_in_their_order() {
        assert!(TableKind::ALL.is_sorted());
        for table in TableKind::ALL {
            let name = serde_json::to_string(&table).unwrap();
            assert_eq!(name, format!("{:?}", table.name()));
        }
    }
}
