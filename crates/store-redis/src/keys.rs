//! What lies where. The keys of documents 001 and 002 have the names that the documents give them; all others begin with
//! `pointsman:`. All of them stand behind one prefix, which on a Redis Cluster is a hash tag.
//!
//! Three kinds of things: tables (hashes, a row a field), indexes (sorted sets whose scores are all 0, so that the order of
//! members is that of their bytes), and the journal (a stream whose ids are the events').

use pointsman_core::chain::OrderKey;
use pointsman_core::store::NodeId;
use pointsman_core::{TaskId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Phase, QueueId};

use crate::codec::{Member, digits};

/// So many tasks share a hash.
pub(crate) const BUCKET: i64 = 1024;

/// A hash, and what its fields are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Table {
    /// Texts by name.
    Texts,
    /// What is remembered of an object beyond its events.
    Objects,
    /// `OBJ:last.event.id`: not a hash, but a string for each object.
    LastIds,
    Queues,
    Counts,
    Handlers,
    Paces,
    Gaps,
    Files,
    Rules,
    Nodes,
    Deeds,
    Chains,
    Pending,
    Orders,
    /// The number of an order, by key and tenant ([`order_field`]).
    OrderNames,
    /// How the last order of a key and tenant ended ([`order_field`]).
    EndedOrders,
    Schedules,
    Answers,
    /// Unfinished tasks, by number within the bucket.
    Tasks(i64),
    /// Ended ones.
    Ended(i64),
    /// The attempts of a task that ended otherwise than by success.
    Attempts(TaskSeq),
    /// The ledger of a schedule, by planned time.
    Fires(String),
}

/// A sorted set, and what its members are made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Index {
    /// Score (greatest first), rank, number, bucket.
    Ready(QueueId),
    /// Number. For all phases but ready and locked.
    Waiting(QueueId, i64),
    /// Number: what a node has locked.
    Held(NodeId),
    /// Lane, place, number.
    Lanes,
    /// Crowd, whether it is blocked, number.
    Crowds,
    /// Time, number.
    Due,
    /// Time, number.
    Leases,
    /// Event, stage, number.
    Gated,
    /// Event, number: late tasks, unfinished or ended.
    Late,
    /// Number.
    Scheduled,
    /// Number: halted or missing.
    Stranded,
    /// Number: ended in error.
    Failed,
    /// Number: ended, without event and without key.
    Runs,
    /// Number of an event, id.
    Marks,
    /// Id of a cause, id of an event that it caused.
    Caused,
    /// Buckets of unfinished tasks that there are.
    TaskBuckets,
    EndedBuckets,
    /// Path, zero, number.
    OrdersOf,
    /// Key and tenant of an order ([`order_field`]).
    OrderKeys,
    /// When an order ended, then its key and tenant ([`order_field`]).
    EndedOrdersByAge,
    /// Planned time, for each schedule.
    FireTimes(String),
    /// When it was settled, planned time, schedule.
    FiresByAge,
    /// When it was given, and its key.
    AnswersByAge,
    /// The event at which retention last found an object in use, and its field.
    ObjectsByCheck,
}

/// The names of keys in Redis.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// A key of ours or of one of the documents.
    pub(crate) fn named(&self, name: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), name.as_bytes()].concat()
    }

    /// A pattern that finds all keys whose names have this form.
    pub(crate) fn pattern(&self, form: &str) -> Vec<u8> {
        let special = |byte: &u8| b"*?[]\\^-".contains(byte);
        let escaped = self.prefix.bytes().flat_map(|b| special(&b).then_some(b'\\').into_iter().chain([b]));
        escaped.chain(form.bytes()).collect()
    }

    /// The name of a key, as [`Keys::named`] has it.
    pub(crate) fn name_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(self.prefix.as_bytes())
    }

    pub(crate) fn table(&self, table: &Table) -> Vec<u8> {
        let name = match table {
            Table::Texts => "texts",
            Table::Objects => "objects",
            Table::LastIds => "last-ids",
            Table::Queues => "queues",
            Table::Counts => "counts",
            Table::Handlers => "handlers",
            Table::Paces => "paces",
            Table::Gaps => "gaps",
            Table::Files => "files",
            Table::Rules => "rules",
            Table::Nodes => "nodes",
            Table::Deeds => "deeds",
            Table::Chains => "chains",
            Table::Pending => "pending",
            Table::Orders => "orders",
            Table::OrderNames => "order-names",
            Table::EndedOrders => "ended-orders",
            Table::Schedules => "schedules",
            Table::Answers => "answers",
            Table::Tasks(bucket) => return self.named(&format!("pointsman:tasks:{bucket}")),
            Table::Ended(bucket) => return self.named(&format!("pointsman:ended:{bucket}")),
            Table::Attempts(seq) => return self.named(&format!("pointsman:attempts:{}", seq.0)),
            Table::Fires(schedule) => return self.named(&format!("pointsman:fires:{schedule}:ledger")),
        };
        self.named(&format!("pointsman:{name}"))
    }

    pub(crate) fn index(&self, index: &Index) -> Vec<u8> {
        let name = match index {
            Index::Ready(queue) => return self.named(&format!("pointsman:ready:{queue}")),
            Index::Waiting(queue, phase) => {
                return self.named(&format!("pointsman:waiting:{queue}:{phase}"));
            }
            Index::Held(node) => return self.named(&format!("pointsman:held:{node}")),
            Index::FireTimes(schedule) => return self.named(&format!("pointsman:fires:{schedule}:times")),
            Index::Lanes => "lanes",
            Index::Crowds => "crowds",
            Index::Due => "due",
            Index::Leases => "leases",
            Index::Gated => "gated",
            Index::Late => "late",
            Index::Scheduled => "scheduled",
            Index::Stranded => "stranded",
            Index::Failed => "failed",
            Index::Runs => "runs",
            Index::Marks => "marks",
            Index::Caused => "caused",
            Index::TaskBuckets => "tasks",
            Index::EndedBuckets => "ended",
            Index::OrdersOf => "orders-of",
            Index::OrderKeys => "order-keys",
            Index::EndedOrdersByAge => "ended-orders-by-age",
            Index::FiresByAge => "fires-by-age",
            Index::AnswersByAge => "answers-by-age",
            Index::ObjectsByCheck => "objects-by-check",
        };
        self.named(&format!("pointsman:{name}"))
    }

    pub(crate) fn journal(&self) -> Vec<u8> {
        self.named("pointsman:journal")
    }

    /// `OBJ:last.event.id` of 001.
    pub(crate) fn last_id(&self, object: &[u8]) -> Vec<u8> {
        self.of_object(object, "last.event.id")
    }

    /// `sync_tasks#ID:logs` of 002.
    pub(crate) fn log(&self, task: &TaskId) -> Vec<u8> {
        self.named(&format!("sync_tasks#{task}:logs"))
    }

    /// A key that 001 gives each object.
    pub(crate) fn of_object(&self, object: &[u8], what: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), object, b":", what.as_bytes()].concat()
    }
}

impl Index {
    /// Where a task waits, if it is neither ready nor locked.
    pub(crate) fn waiting(queue: QueueId, phase: Phase) -> Self {
        Self::Waiting(queue, phase.code())
    }
}

/// The name of an object in the keys of 001.
pub(crate) fn object_name(tenant: &Tenant, key: &str) -> String {
    match tenant.is_default() {
        true => key.into(),
        false => format!("{tenant}/{key}"),
    }
}

/// The field of an object in its table. Its name will not do: with a slash in its key it may be that of another tenant's.
pub(crate) fn object_field(tenant: &Tenant, key: &str) -> Member {
    let tenant = if tenant.is_default() { "" } else { tenant.as_str() };
    let mut field = Member::from_slice(tenant.as_bytes());
    field.push(b'/');
    field.extend_from_slice(key.as_bytes());
    field
}

/// The name of an order in its tables and indexes: its key, a zero and its tenant. Neither of them holds a zero, so that
/// these names sort by key, then by tenant.
pub(crate) fn order_field(tenant: &Tenant, key: &OrderKey) -> Member {
    let mut field = Member::from_slice(key.to_string().as_bytes());
    field.push(0);
    field.extend_from_slice(tenant.as_str().as_bytes());
    field
}

/// The key of the order with this field.
pub(crate) fn key_of_order_field(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

/// The name of the object with this field.
pub(crate) fn name_of_field(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"/").unwrap_or(field)
}

/// Tenant and key of the object with this field.
pub(crate) fn name_in_field(field: &[u8]) -> Result<(Tenant, String)> {
    let text = std::str::from_utf8(field).map_err(Fault::damaged)?;
    let (tenant, key) = text.split_once('/').ok_or_else(|| Fault::damaged("an object without a tenant"))?;
    let tenant = if tenant.is_empty() { Ok(Tenant::default()) } else { Tenant::new(tenant) };
    Ok((tenant.map_err(Fault::damaged)?, key.into()))
}

/// The bucket of a task, and its field there.
pub(crate) fn bucket(seq: TaskSeq) -> (i64, Member) {
    (seq.0.div_euclid(BUCKET), digits(seq.0.rem_euclid(BUCKET)))
}

/// The other way round.
pub(crate) fn seq_in_bucket(bucket: i64, field: &[u8]) -> Option<TaskSeq> {
    let place: i64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(TaskSeq(bucket * BUCKET + place))
}

/// Where the row of an unfinished task lies.
pub(crate) fn task_row(seq: TaskSeq) -> (Table, Member) {
    let (bucket, field) = bucket(seq);
    (Table::Tasks(bucket), field)
}
