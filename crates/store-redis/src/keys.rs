//! Names of keys. The keys of documents 001 and 002 have the documented names; all others begin with
//! `pointsman:`. All have a common prefix, which contains a hash tag on a Redis Cluster.
//!
//! There are tables (hashes, one row per field), indexes (sorted sets with all scores 0, so that the order of
//! members is that of their bytes), and the journal (a stream whose ids are the events').

use pointsman_core::chain::OrderKey;
use pointsman_core::store::NodeId;
use pointsman_core::{TaskId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{QueueId, TaskPhase};

use crate::codec::{MemberOrField, encode_decimal_field};

/// Key of the store state, which every store has.
pub(crate) const STORE_STATE_KEY: &str = "pointsman:store-state";
/// Number of consecutive task numbers in one bucket: each bucket of tasks is a hash.
pub(crate) const TASKS_PER_BUCKET: i64 = 1024;

/// A table: a hash with one row per field. The comment of a variant says what its fields are, unless they are ids or names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Table {
    /// Texts by name.
    NamedTexts,
    /// Objects by tenant and key.
    Objects,
    /// `OBJ:last.event.id`: not a hash, but a string for each object.
    LastEventIds,
    Queues,
    QueueCounts,
    Handlers,
    /// States of the rate limiter and the circuit breaker of a handler, by handler.
    LimiterStates,
    /// Ranges of the journal in which a handler was not defined, by handler.
    MissedEventRanges,
    /// Digests of the objects in the configuration, by key of the object.
    ConfiguredObjectDigests,
    /// Rules by kind, kind of scope, name and tenant.
    Rules,
    Nodes,
    AuditEntries,
    Chains,
    Orders,
    /// Numbers of orders, by key and tenant of the order ([`order_field`]).
    OrderNumbers,
    /// How the last order of each key and tenant ended, by key and tenant ([`order_field`]).
    EndedOrders,
    Schedules,
    /// Idempotency records by tenant and key.
    IdempotencyRecords,
    /// The active tasks of a bucket, by task number within the bucket.
    ActiveTasks(i64),
    /// The archived tasks of a bucket, by task number within the bucket.
    ArchivedTasks(i64),
    /// The attempts of a task that did not succeed, by attempt number.
    Attempts(TaskSeq),
    /// The ledger of a schedule, by planned time.
    Fires(String),
}

/// An index: a sorted set. The comment of a variant lists the parts of its members, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Index {
    /// Score (greatest first), rank, task number, key bucket. A set for each queue.
    ReadyTasks(QueueId),
    /// Task number. A set for each queue and phase, except the ready and locked phases.
    TasksInPhase(QueueId, i16),
    /// Task number. A set for each node, with the tasks that it has locked.
    LockedTasks(NodeId),
    /// Lane, lane position, task number.
    LanePositions,
    /// Concurrency group (a handler and an object key), 1 if other tasks block the task or else 0, task number.
    TasksByConcurrencyGroup,
    /// Due time, task number.
    DueTasks,
    /// Time when the lease expires, task number.
    LeaseExpiries,
    /// Event, stage among the synchronous tasks of the event, task number; for tasks that wait for these.
    SyncGatedTasks,
    /// Event, task number, for active and archived tasks that run out of order.
    OutOfOrderTasks,
    /// Task number, for the scheduled tasks of all queues.
    TasksInScheduledPhase,
    /// Task number, for the halted and the missing tasks of all queues.
    HaltedOrMissingTasks,
    /// Task number, for archived tasks that ended in error.
    FailedTasks,
    /// Task number, for archived tasks without event and without key: the runs of collections of a source.
    ArchivedCollectionRuns,
    /// Number of an event in the journal and its id, for every thousandth event.
    EventNumberSamples,
    /// Id of an event, id of an event that it caused.
    CausedEvents,
    /// Numbers of the buckets that contain active tasks.
    ActiveTaskBuckets,
    /// Numbers of the buckets that contain archived tasks.
    ArchivedTaskBuckets,
    /// Path of the chain, a zero byte, order number.
    OrdersByChain,
    /// Key and tenant of an active order ([`order_field`]).
    ActiveOrderKeys,
    /// Time when an order ended, its key and tenant ([`order_field`]).
    EndedOrdersByAge,
    /// Planned time. A set for each schedule.
    FireTimes(String),
    /// Time when the fire was recorded, planned time, name of the schedule.
    FiresByAge,
    /// Time when the record was stored, field of the record.
    IdempotencyRecordsByAge,
    /// Id of the event at which retention last found an object in use, field of the object ([`object_field`]).
    ObjectsByRetentionCheck,
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

    /// Returns a SCAN pattern: the prefix, escaped, followed by a pattern for the rest of the key.
    pub(crate) fn scan_pattern(&self, rest_pattern: &str) -> Vec<u8> {
        let special = |byte: &u8| b"*?[]\\^-".contains(byte);
        let escaped = self.prefix.bytes().flat_map(|b| special(&b).then_some(b'\\').into_iter().chain([b]));
        escaped.chain(rest_pattern.bytes()).collect()
    }

    pub(crate) fn store_state_key(&self) -> Vec<u8> {
        self.with_prefix(STORE_STATE_KEY)
    }

    /// Returns a key without the prefix; `None` if it does not start with it.
    pub(crate) fn without_prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(self.prefix.as_bytes())
    }

    pub(crate) fn table_key(&self, table: &Table) -> Vec<u8> {
        let name = match table {
            Table::NamedTexts => "texts",
            Table::Objects => "objects",
            Table::LastEventIds => "last-event-ids",
            Table::Queues => "queues",
            Table::QueueCounts => "queue-counts",
            Table::Handlers => "handlers",
            Table::LimiterStates => "rate-limiters",
            Table::MissedEventRanges => "handler-gaps",
            Table::ConfiguredObjectDigests => "file-digests",
            Table::Rules => "rules",
            Table::Nodes => "nodes",
            Table::AuditEntries => "audit-entries",
            Table::Chains => "chains",
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
            Index::TasksInPhase(queue, phase) => {
                return self.with_prefix(&format!("pointsman:waiting-tasks:{queue}:{phase}"));
            }
            Index::LockedTasks(node) => return self.with_prefix(&format!("pointsman:locked-tasks:{node}")),
            Index::FireTimes(schedule) => {
                return self.with_prefix(&format!("pointsman:fires:{schedule}:times"));
            }
            Index::LanePositions => "lane-positions",
            Index::TasksByConcurrencyGroup => "concurrency-groups",
            Index::DueTasks => "due-tasks",
            Index::LeaseExpiries => "lease-expiries",
            Index::SyncGatedTasks => "gated-tasks",
            Index::OutOfOrderTasks => "late-tasks",
            Index::TasksInScheduledPhase => "scheduled-tasks",
            Index::HaltedOrMissingTasks => "halted-or-missing-tasks",
            Index::FailedTasks => "failed-tasks",
            Index::ArchivedCollectionRuns => "archived-source-runs",
            Index::EventNumberSamples => "event-number-samples",
            Index::CausedEvents => "caused-events",
            Index::ActiveTaskBuckets => "active-task-buckets",
            Index::ArchivedTaskBuckets => "archived-task-buckets",
            Index::OrdersByChain => "orders-by-chain",
            Index::ActiveOrderKeys => "order-keys",
            Index::EndedOrdersByAge => "ended-orders-by-age",
            Index::FiresByAge => "fires-by-age",
            Index::IdempotencyRecordsByAge => "idempotency-records-by-age",
            Index::ObjectsByRetentionCheck => "objects-by-check",
        };
        self.with_prefix(&format!("pointsman:{name}"))
    }

    pub(crate) fn journal_key(&self) -> Vec<u8> {
        self.with_prefix("pointsman:journal")
    }

    /// Returns the key with the last event id of an object: `OBJ:last.event.id` of document 001.
    pub(crate) fn last_event_id_key(&self, object: &[u8]) -> Vec<u8> {
        self.redis_key_of_object(object, "last.event.id")
    }

    /// Returns the key with the log of a task: `sync_tasks#ID:logs` of document 002.
    pub(crate) fn task_log_key(&self, task: &TaskId) -> Vec<u8> {
        self.with_prefix(&format!("sync_tasks#{task}:logs"))
    }

    /// Returns one of the keys that document 001 gives to each object, such as `OBJ:events`.
    pub(crate) fn redis_key_of_object(&self, object: &[u8], suffix: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), object, b":", suffix.as_bytes()].concat()
    }
}

impl Index {
    /// Returns the index of the tasks of a queue in a phase other than ready and locked.
    pub(crate) fn tasks_in_phase(queue: QueueId, phase: TaskPhase) -> Self {
        Self::TasksInPhase(queue, phase.code())
    }
}

/// Returns the name that an object has in the keys of document 001.
pub(crate) fn object_name(tenant: &Tenant, key: &str) -> String {
    match tenant.is_default() {
        true => key.into(),
        false => format!("{tenant}/{key}"),
    }
}

/// Returns the hash field of an object. Its name would not be unique: a key with a slash can equal the name of another
/// tenant's object.
pub(crate) fn object_field(tenant: &Tenant, key: &str) -> MemberOrField {
    let tenant = if tenant.is_default() { "" } else { tenant.as_str() };
    let mut field = MemberOrField::from_slice(tenant.as_bytes());
    field.push(b'/');
    field.extend_from_slice(key.as_bytes());
    field
}

/// Returns the field of an order: its key, a zero byte and its tenant. Neither contains a zero byte, so that
/// fields sort by key, then by tenant.
pub(crate) fn order_field(tenant: &Tenant, key: &OrderKey) -> MemberOrField {
    let mut field = MemberOrField::from_slice(key.to_string().as_bytes());
    field.push(0);
    field.extend_from_slice(tenant.as_str().as_bytes());
    field
}

/// Returns the key of the order with this field.
pub(crate) fn order_key_of_field(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

/// Returns the name of the object with this field.
pub(crate) fn object_name_of_field(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"/").unwrap_or(field)
}

/// Parses the field of an object into tenant and key.
pub(crate) fn parse_object_field(field: &[u8]) -> TableResult<(Tenant, String)> {
    let text = std::str::from_utf8(field).map_err(Fault::damaged)?;
    let (tenant, key) = text.split_once('/').ok_or_else(|| Fault::damaged("an object without a tenant"))?;
    let tenant = if tenant.is_empty() { Ok(Tenant::default()) } else { Tenant::new(tenant) };
    Ok((tenant.map_err(Fault::damaged)?, key.into()))
}

/// Returns the bucket of a task, and its field there.
pub(crate) fn task_bucket_and_field(seq: TaskSeq) -> (i64, MemberOrField) {
    (seq.0.div_euclid(TASKS_PER_BUCKET), encode_decimal_field(seq.0.rem_euclid(TASKS_PER_BUCKET)))
}

/// Returns the number of the task that has this field in a bucket; `None` if the field is not a number.
pub(crate) fn task_seq_in_bucket(bucket: i64, field: &[u8]) -> Option<TaskSeq> {
    let offset: i64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(TaskSeq(bucket * TASKS_PER_BUCKET + offset))
}

/// Returns the table and the field where an active task is stored.
pub(crate) fn active_task_location(seq: TaskSeq) -> (Table, MemberOrField) {
    let (bucket, field) = task_bucket_and_field(seq);
    (Table::ActiveTasks(bucket), field)
}
