//! The tables of a store and their columns.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A table of a store. Tables are copied in this order, so that rows come after the rows they refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// One row: the counters, the namespace of task ids and the salt.
    Counters,
    /// Named texts: routes, weights of tenants, registrants and others.
    NamedTexts,
    /// All handlers ever registered, with their definitions, limiter states and missed event ranges.
    Handlers,
    /// Queues with their task counts.
    Queues,
    /// All chains ever defined, with their operator settings.
    Chains,
    /// Pauses and blocks.
    Rules,
    /// Digests of the objects in the configuration files, by which changes of the files are detected.
    FileDigests,
    /// Nodes of the cluster. Those that had not left are copied with heartbeat 0: they are not live in the target.
    Nodes,
    /// Progress of schedules.
    Schedules,
    /// Events in the journal, and expired events that unfinished tasks need.
    Journal,
    /// Objects: the number, the last event and the last events sent of each.
    Objects,
    /// Unfinished tasks.
    Tasks,
    /// Orders that have not ended.
    Orders,
    /// Recorded outcomes of ended orders.
    EndedOrders,
    /// Archived tasks.
    History,
    /// Ended attempts that did not succeed; a success is recorded in its task.
    Attempts,
    /// Log lines of tasks.
    Logs,
    /// Idempotency records.
    IdempotencyRecords,
    /// The fire ledger: rows of planned times.
    Fires,
    /// Audit entries: who changed what.
    AuditEntries,
    /// Events emitted in SQL: the event of each receipt, the idempotency keys, and refused events. Only stores with an
    /// SQL outbox have these three.
    OutboxReceipts,
    OutboxKeys,
    OutboxRefusals,
    /// Rules for tenants that have no event yet. Only a store in which rules refer to a tenant by its uuid has them.
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
            Self::NamedTexts => "named_texts",
            Self::Handlers => "handlers",
            Self::Queues => "queues",
            Self::Chains => "chains",
            Self::Rules => "rules",
            Self::FileDigests => "file_digests",
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
            Self::IdempotencyRecords => "idempotency_records",
            Self::Fires => "fires",
            Self::AuditEntries => "audit_entries",
            Self::OutboxReceipts => "outbox_receipts",
            Self::OutboxKeys => "outbox_keys",
            Self::OutboxRefusals => "outbox_refusals",
            Self::UnknownTenantRules => "unknown_tenant_rules",
        }
    }

    /// Returns the columns of the rows. Derived columns (numbers of events, the order in which tasks ended, partitions)
    /// are left out. A store with other column names translates.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            // `expired_events`: number of events before the first that has not expired.
            Self::Counters => &[
                "task_id_namespace",
                "salt",
                "last_event",
                "expired_up_to",
                "expired_events",
                "journaled_events",
                "last_task",
                "last_fence",
                "last_object",
                "archived_tasks",
                "last_node",
            ],
            Self::NamedTexts => &["name", "text"],
            Self::Handlers => &["id", "name", "def", "defined", "limiter_state", "gaps"],
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
            Self::Chains => &["path", "def", "defined", "state", "reconciled_up_to"],
            Self::Rules => &["kind", "space", "name", "tenant", "by", "reason", "since"],
            Self::FileDigests => &["key", "digest"],
            // `last_heartbeat` is 0 for nodes that had not left: they do not exist in the target, and the first sweep
            // releases their tasks.
            Self::Nodes => &["id", "name", "joined", "last_heartbeat", "gone", "capabilities"],
            Self::Schedules => {
                &["name", "expression", "resolved_up_to", "next_catch_up", "last_event", "last_registered_at"]
            }
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
            Self::Objects => &["tenant", "key", "number", "last_event", "last_sent", "checked"],
            Self::Tasks => &[
                "seq",
                "queue",
                "event",
                "order_number",
                "phase",
                "lane",
                "lane_position",
                "concurrency_group",
                "key_bucket",
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
                "leased_until",
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
                "step_succeeded",
                "suspended_by_task",
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
                "has_lane",
                "prev_sent",
                "planned",
                "created",
                "started",
                "finished",
                "error",
                "result",
            ],
            Self::Attempts => &["task", "number", "started", "ended", "outcome", "error"],
            Self::Logs => &["task", "n", "time", "level", "message"],
            Self::IdempotencyRecords => &["tenant", "key", "digest", "response", "at"],
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
            Self::UnknownTenantRules => &["kind", "space", "name", "canvas_id", "since"],
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
    fn all_tables_are_listed_in_copy_order() {
        assert!(TableKind::ALL.is_sorted());
        for table in TableKind::ALL {
            let name = serde_json::to_string(&table).unwrap();
            assert_eq!(name, format!("{:?}", table.name()));
        }
    }
}
