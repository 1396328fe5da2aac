//! Names of keys. The keys of documents 001 and 002 have the documented names; all others begin with
//! `pointsman:`. All have a common prefix, which contains a hash tag on a Redis Cluster.
//!
//! There are tables (hashes, one row per field), indexes (sorted sets with all scores 0, so that the order of
//! members is that of their bytes), and the journal (a stream whose ids are the events').

use pointsman_core::chain::OrderKey;
use pointsman_core::store::NodeId;
use pointsman_core::{TaskId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{QueueId, TaskPhase};

use crate::codec::{Member, decimal_field};

/// The store state: every store has this key.
pub(crate) const STORE_STATE_KEY: &str = "pointsman:store-state";
/// Number of tasks in one hash.
pub(crate) const TASKS_PER_BUCKET: i64 = 1024;

/// A hash; the variants document its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Table {
    /// Texts by name.
    Texts,
    /// Rows of objects: number, last event, sent events.
    Objects,
    /// `OBJ:last.event.id`: not a hash, but a string for each object.
    LastEventIds,
    Queues,
    QueueCounts,
    Handlers,
    RateLimiters,
    HandlerGaps,
    FileDigests,
    Rules,
    Nodes,
    AuditEntries,
    Chains,
    PendingChainUpdates,
    Orders,
    /// The number of an order, by key and tenant ([`order_field`]).
    OrderNumbers,
    /// How the last order of a key and tenant ended ([`order_field`]).
    EndedOrders,
    Schedules,
    IdempotencyRecords,
    /// Active tasks, by number within the bucket.
    ActiveTasks(i64),
    /// Archived tasks, by number within the bucket.
    ArchivedTasks(i64),
    /// The attempts of a task that ended otherwise than by success.
    Attempts(TaskSeq),
    /// The ledger of a schedule, by planned time.
    Fires(String),
}

/// A sorted set; the variants document its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Index {
    /// Score (greatest first), rank, number, bucket.
    ReadyTasks(QueueId),
    /// Number. For all phases but ready and locked.
    WaitingTasks(QueueId, i64),
    /// Number, for each node: tasks that it has locked.
    LockedTasks(NodeId),
    /// Lane, lane position, number.
    LanePositions,
    /// Concurrency group, whether the task is blocked, number.
    ConcurrencyGroups,
    /// Time, number.
    DueTasks,
    /// Time, number.
    LeaseExpiries,
    /// Event, stage, number.
    GatedTasks,
    /// Event, number: late tasks, unfinished or ended.
    LateTasks,
    /// Number.
    ScheduledTasks,
    /// Number: halted or missing.
    HaltedOrMissingTasks,
    /// Number: ended in error.
    FailedTasks,
    /// Number: ended, without event and without key.
    ArchivedSourceRuns,
    /// Number of an event and its id, for every thousandth event.
    EventNumberSamples,
    /// Id of a cause, id of an event that it caused.
    CausedEvents,
    /// Numbers of the buckets that contain active tasks.
    ActiveTaskBuckets,
    ArchivedTaskBuckets,
    /// Path, zero, number.
    OrdersByChain,
    /// Key and tenant of an order ([`order_field`]).
    OrderKeys,
    /// When an order ended, then its key and tenant ([`order_field`]).
    EndedOrdersByAge,
    /// Planned time, for each schedule.
    FireTimes(String),
    /// Time of the fire, planned time, schedule.
    FiresByAge,
    /// Time of the record, and its key.
    IdempotencyRecordsByAge,
    /// The event at which retention last found an object in use, and its field.
    ObjectsByCheck,
}

/// Builds key names with the prefix of the store.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Returns a key name with the prefix.
    pub(crate) fn with_prefix(&self, name: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), name.as_bytes()].concat()
    }

    /// Returns a SCAN pattern with the escaped prefix.
    pub(crate) fn scan_pattern(&self, form: &str) -> Vec<u8> {
        let special = |byte: &u8| b"*?[]\\^-".contains(byte);
        let escaped = self.prefix.bytes().flat_map(|b| special(&b).then_some(b'\\').into_iter().chain([b]));
        escaped.chain(form.bytes()).collect()
    }

    pub(crate) fn store_state_key(&self) -> Vec<u8> {
        self.with_prefix(STORE_STATE_KEY)
    }

    /// Returns the name of a key without the prefix.
    pub(crate) fn without_prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(self.prefix.as_bytes())
    }

    pub(crate) fn table_key(&self, table: &Table) -> Vec<u8> {
        let name = match table {
            Table::Texts => "texts",
            Table::Objects => "objects",
            Table::LastEventIds => "last-event-ids",
            Table::Queues => "queues",
            Table::QueueCounts => "queue-counts",
            Table::Handlers => "handlers",
            Table::RateLimiters => "rate-limiters",
            Table::HandlerGaps => "handler-gaps",
            Table::FileDigests => "file-digests",
            Table::Rules => "rules",
            Table::Nodes => "nodes",
            Table::AuditEntries => "audit-entries",
            Table::Chains => "chains",
            Table::PendingChainUpdates => "pending-chain-updates",
            Table::Orders => "orders",
            Table::OrderNumbers => "order-numbers",
            Table::EndedOrders => "ended-orders",
            Table::Schedules => "schedules",
            Table::IdempotencyRecords => "idempotency-records",
            Table::ActiveTasks(bucket) => {
                return self.with_prefix(&format!("pointsman:active-tasks:{bucket}"));
            }
            Table::ArchivedTasks(bucket) => {
                return self.with_prefix(&format!("pointsman:archived-tasks:{bucket}"));
            }
            Table::Attempts(seq) => return self.with_prefix(&format!("pointsman:attempts:{}", seq.0)),
            Table::Fires(schedule) => return self.with_prefix(&format!("pointsman:fires:{schedule}:ledger")),
        };
        self.with_prefix(&format!("pointsman:{name}"))
    }

    pub(crate) fn index_key(&self, index: &Index) -> Vec<u8> {
        let name = match index {
            Index::ReadyTasks(queue) => return self.with_prefix(&format!("pointsman:ready-tasks:{queue}")),
            Index::WaitingTasks(queue, phase) => {
                return self.with_prefix(&format!("pointsman:waiting-tasks:{queue}:{phase}"));
            }
            Index::LockedTasks(node) => return self.with_prefix(&format!("pointsman:locked-tasks:{node}")),
            Index::FireTimes(schedule) => {
                return self.with_prefix(&format!("pointsman:fires:{schedule}:times"));
            }
            Index::LanePositions => "lane-positions",
            Index::ConcurrencyGroups => "concurrency-groups",
            Index::DueTasks => "due-tasks",
            Index::LeaseExpiries => "lease-expiries",
            Index::GatedTasks => "gated-tasks",
            Index::LateTasks => "late-tasks",
            Index::ScheduledTasks => "scheduled-tasks",
            Index::HaltedOrMissingTasks => "halted-or-missing-tasks",
            Index::FailedTasks => "failed-tasks",
            Index::ArchivedSourceRuns => "archived-source-runs",
            Index::EventNumberSamples => "event-number-samples",
            Index::CausedEvents => "caused-events",
            Index::ActiveTaskBuckets => "active-task-buckets",
            Index::ArchivedTaskBuckets => "archived-task-buckets",
            Index::OrdersByChain => "orders-by-chain",
            Index::OrderKeys => "order-keys",
            Index::EndedOrdersByAge => "ended-orders-by-age",
            Index::FiresByAge => "fires-by-age",
            Index::IdempotencyRecordsByAge => "idempotency-records-by-age",
            Index::ObjectsByCheck => "objects-by-check",
        };
        self.with_prefix(&format!("pointsman:{name}"))
    }

    pub(crate) fn journal_key(&self) -> Vec<u8> {
        self.with_prefix("pointsman:journal")
    }

    /// `OBJ:last.event.id` of 001.
    pub(crate) fn last_event_id_key(&self, object: &[u8]) -> Vec<u8> {
        self.object_key(object, "last.event.id")
    }

    /// `sync_tasks#ID:logs` of 002.
    pub(crate) fn task_log_key(&self, task: &TaskId) -> Vec<u8> {
        self.with_prefix(&format!("sync_tasks#{task}:logs"))
    }

    /// Returns a key of document 001 that each object has.
    pub(crate) fn object_key(&self, object: &[u8], what: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), object, b":", what.as_bytes()].concat()
    }
}

impl Index {
    /// Returns the index of tasks that are neither ready nor locked.
    pub(crate) fn waiting_tasks(queue: QueueId, phase: TaskPhase) -> Self {
        Self::WaitingTasks(queue, phase.code())
    }
}

/// Returns the name of an object in the keys of 001.
pub(crate) fn object_name(tenant: &Tenant, key: &str) -> String {
    match tenant.is_default() {
        true => key.into(),
        false => format!("{tenant}/{key}"),
    }
}

/// Returns the hash field of an object. Its name is not unique: with a slash in the key it may belong to another tenant.
pub(crate) fn object_field(tenant: &Tenant, key: &str) -> Member {
    let tenant = if tenant.is_default() { "" } else { tenant.as_str() };
    let mut field = Member::from_slice(tenant.as_bytes());
    field.push(b'/');
    field.extend_from_slice(key.as_bytes());
    field
}

/// Returns the field of an order: its key, a zero byte and its tenant. Neither contains a zero byte, so that
/// fields sort by key, then by tenant.
pub(crate) fn order_field(tenant: &Tenant, key: &OrderKey) -> Member {
    let mut field = Member::from_slice(key.to_string().as_bytes());
    field.push(0);
    field.extend_from_slice(tenant.as_str().as_bytes());
    field
}

/// The key of the order with this field.
pub(crate) fn order_key_of_field(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

/// The name of the object with this field.
pub(crate) fn object_name_of_field(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"/").unwrap_or(field)
}

/// Tenant and key of the object with this field.
pub(crate) fn parse_object_field(field: &[u8]) -> Result<(Tenant, String)> {
    let text = std::str::from_utf8(field).map_err(Fault::damaged)?;
    let (tenant, key) = text.split_once('/').ok_or_else(|| Fault::damaged("an object without a tenant"))?;
    let tenant = if tenant.is_empty() { Ok(Tenant::default()) } else { Tenant::new(tenant) };
    Ok((tenant.map_err(Fault::damaged)?, key.into()))
}

/// The bucket of a task, and its field there.
pub(crate) fn bucket_and_field(seq: TaskSeq) -> (i64, Member) {
    (seq.0.div_euclid(TASKS_PER_BUCKET), decimal_field(seq.0.rem_euclid(TASKS_PER_BUCKET)))
}

/// Returns the task of a bucket and field.
pub(crate) fn task_seq_in_bucket(bucket: i64, field: &[u8]) -> Option<TaskSeq> {
    let offset: i64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(TaskSeq(bucket * TASKS_PER_BUCKET + offset))
}

/// Returns table and field of an active task.
pub(crate) fn active_task_row(seq: TaskSeq) -> (Table, Member) {
    let (bucket, field) = bucket_and_field(seq);
    (Table::ActiveTasks(bucket), field)
}
