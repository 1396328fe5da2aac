//! Buffers the writes of a transaction, so that they are sent together: for each table one statement that inserts, one
//! that updates and one that deletes.

use std::collections::{BTreeMap, HashMap, HashSet};

use pointsman_core::order::Order;
use pointsman_core::task::LogLine;
use pointsman_core::{Event, TaskSeq, Tenant, Timestamp};
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, AttemptRow, ObjectRow, OrderRow, TaskPhase};

use super::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, EventColumns, EventInsert, LockColumns,
    LogLineColumns, OrderColumns, OrderWrite,
};
use super::ended_orders::EndedOrderBatch;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// A pending update of the row of an existing task.
#[derive(Clone, Debug)]
pub(crate) enum TaskUpdate {
    PhaseAndRank(TaskPhase, i64),
    /// The task is locked; nothing else changes.
    Lock(Box<ActiveTaskRow>),
    AllFields(Box<ActiveTaskRow>),
}

/// Lane, concurrency group and bucket of a task.
type TaskGrouping = (Option<i64>, Option<i64>, Option<i32>);

#[derive(Default)]
pub(crate) struct WriteBatch {
    events: Vec<EventInsert>,
    sparse_index_entries: Vec<(i64, i64)>,
    objects: HashMap<(Tenant, String), ObjectRow>,
    idempotency_records: Vec<(Tenant, String, [u8; 32], String, i64)>,
    new_tasks: BTreeMap<TaskSeq, ActiveTaskRow>,
    task_updates: BTreeMap<TaskSeq, TaskUpdate>,
    deleted_tasks: HashSet<TaskSeq>,
    /// For existing tasks: lanes, concurrency groups and buckets; concurrency groups alone; and scores.
    task_groupings: BTreeMap<TaskSeq, TaskGrouping>,
    concurrency_group_updates: BTreeMap<TaskSeq, Option<i64>>,
    score_updates: BTreeMap<TaskSeq, i64>,
    archived_tasks: BTreeMap<TaskSeq, (i64, ArchivedTaskRow)>,
    attempts: AttemptColumns,
    log_lines: LogLineColumns,
    orders: BTreeMap<i64, OrderWrite>,
    pub(crate) ended_orders: EndedOrderBatch,
    /// Statements for tables that change rarely.
    other_commands: Vec<SqlCommand>,
    /// Total of rows written since the store was opened.
    pub(crate) rows_written: u64,
}

/// Every event whose number is a multiple of this gets an entry in the sparse index `pointsman.journal_sparse_index`.
const SPARSE_INDEX_INTERVAL: i64 = 1000;

impl WriteBatch {
    /// Discards everything, because the transaction is rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self { rows_written: self.rows_written, ..Self::default() };
    }

    pub(crate) fn insert_event(&mut self, insert: EventInsert) {
        if insert.number % SPARSE_INDEX_INTERVAL == 0 {
            self.sparse_index_entries.push((insert.number, insert.event.id.as_i64()));
        }
        self.events.push(insert);
    }

    pub(crate) fn find_event(&self, id: pointsman_core::EventId) -> Option<&Event> {
        let index = self.events.binary_search_by_key(&id, |insert| insert.event.id).ok()?;
        self.events.get(index).map(|insert| &insert.event)
    }

    pub(crate) fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) {
        self.objects.insert((tenant.clone(), key.into()), object.clone());
    }

    pub(crate) fn insert_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
        digest: [u8; 32],
        response: &str,
        at: Timestamp,
    ) {
        self.idempotency_records.push((tenant.clone(), key.into(), digest, response.into(), at.micros()));
    }

    /// A task with its pending writes; the outer option is none if the table must be read.
    pub(crate) fn find_task(&self, seq: TaskSeq) -> Option<Option<ActiveTaskRow>> {
        if let Some(live) = self.new_tasks.get(&seq) {
            return Some(Some(live.clone()));
        }
        if self.deleted_tasks.contains(&seq) {
            return Some(None);
        }
        let [is_regrouped, has_new_group, has_new_score] = [
            self.task_groupings.contains_key(&seq),
            self.concurrency_group_updates.contains_key(&seq),
            self.score_updates.contains_key(&seq),
        ];
        if is_regrouped || has_new_group || has_new_score {
            return None;
        }
        match self.task_updates.get(&seq) {
            Some(TaskUpdate::Lock(live) | TaskUpdate::AllFields(live)) => Some(Some((**live).clone())),
            Some(TaskUpdate::PhaseAndRank(..)) | None => None,
        }
    }

    pub(crate) fn insert_task(&mut self, live: &ActiveTaskRow) {
        self.new_tasks.insert(live.seq, live.clone());
    }

    pub(crate) fn delete_task(&mut self, seq: TaskSeq) {
        if self.new_tasks.remove(&seq).is_none() {
            self.task_updates.remove(&seq);
            self.deleted_tasks.insert(seq);
        }
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) {
        if let Some(live) = self.new_tasks.get_mut(&seq) {
            (live.phase, live.rank) = (phase, rank);
            return;
        }
        let update = match self.task_updates.remove(&seq) {
            Some(TaskUpdate::Lock(mut live) | TaskUpdate::AllFields(mut live)) => {
                (live.phase, live.rank) = (phase, rank);
                TaskUpdate::AllFields(live)
            }
            Some(TaskUpdate::PhaseAndRank(..)) | None => TaskUpdate::PhaseAndRank(phase, rank),
        };
        self.task_updates.insert(seq, update);
    }

    pub(crate) fn lock_task(&mut self, live: &ActiveTaskRow) {
        match self.new_tasks.contains_key(&live.seq) || self.task_updates.contains_key(&live.seq) {
            true => self.rewrite_task(live),
            false => drop(self.task_updates.insert(live.seq, TaskUpdate::Lock(Box::new(live.clone())))),
        }
    }

    pub(crate) fn rewrite_task(&mut self, live: &ActiveTaskRow) {
        match self.new_tasks.get_mut(&live.seq) {
            Some(task) => *task = live.clone(),
            None => {
                self.task_updates.insert(live.seq, TaskUpdate::AllFields(Box::new(live.clone())));
            }
        }
    }

    pub(crate) fn set_task_grouping(&mut self, row: &ActiveTaskRow) {
        let (lane, group, bucket) = (row.lane, row.concurrency_group, row.key_bucket);
        match self.new_tasks.get_mut(&row.seq) {
            Some(task) => (task.lane, task.concurrency_group, task.key_bucket) = (lane, group, bucket),
            None => drop(self.task_groupings.insert(row.seq, (lane, group, bucket.map(i32::from)))),
        }
    }

    pub(crate) fn set_concurrency_group(&mut self, seq: TaskSeq, group: Option<i64>) {
        match self.new_tasks.get_mut(&seq) {
            Some(task) => task.concurrency_group = group,
            None => {
                self.concurrency_group_updates.insert(seq, group);
            }
        }
    }

    pub(crate) fn set_score(&mut self, seq: TaskSeq, score: i64) {
        match self.new_tasks.get_mut(&seq) {
            Some(task) => task.score = score,
            None => {
                self.score_updates.insert(seq, score);
            }
        }
    }

    pub(crate) fn find_archived_task(&self, seq: TaskSeq) -> Option<&ArchivedTaskRow> {
        self.archived_tasks.get(&seq).map(|(_, archived)| archived)
    }

    pub(crate) fn insert_archived_task(&mut self, n: i64, archived: &ArchivedTaskRow) {
        self.archived_tasks.insert(archived.seq, (n, archived.clone()));
    }

    /// Returns true if the insert was still buffered, so that no statement is needed.
    pub(crate) fn delete_archived_task(&mut self, seq: TaskSeq) -> bool {
        self.archived_tasks.remove(&seq).is_some()
    }

    pub(crate) fn insert_attempt(&mut self, attempt: &AttemptRow<'_>) {
        self.attempts.push(attempt);
    }

    pub(crate) fn add_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        self.log_lines.push(task, lines);
    }

    pub(crate) fn find_order(&self, n: i64) -> Option<Option<OrderRow>> {
        self.orders.get(&n).map(|write| match write {
            OrderWrite::Insert(order) | OrderWrite::Update(order) => {
                let task = order.task.map_or(Some(None), |task| self.find_task(task));
                let running = match task {
                    Some(live) => live.is_some_and(|live| live.phase == TaskPhase::Locked),
                    None => order.step_running,
                };
                Some(OrderRow { number: n, order: Order { step_running: running, ..order.clone() } })
            }
            OrderWrite::Delete => None,
        })
    }

    pub(crate) fn insert_order(&mut self, n: i64, order: &Order) {
        self.orders.insert(n, OrderWrite::Insert(order.clone()));
    }

    pub(crate) fn update_order(&mut self, n: i64, order: &Order) {
        let write = match self.orders.get(&n) {
            Some(OrderWrite::Insert(_)) => OrderWrite::Insert(order.clone()),
            Some(OrderWrite::Update(_) | OrderWrite::Delete) | None => OrderWrite::Update(order.clone()),
        };
        self.orders.insert(n, write);
    }

    pub(crate) fn delete_order(&mut self, n: i64) {
        match self.orders.get(&n) {
            Some(OrderWrite::Insert(_)) => drop(self.orders.remove(&n)),
            Some(OrderWrite::Update(_) | OrderWrite::Delete) | None => {
                self.orders.insert(n, OrderWrite::Delete);
            }
        }
    }

    pub(crate) fn add_command(&mut self, command: SqlCommand) {
        self.other_commands.push(command);
    }

    /// The greatest number of a buffered event.
    pub(crate) fn last_event_number(&self) -> Option<i64> {
        self.events.last().map(|insert| insert.number)
    }

    /// True if archived tasks, attempts or log lines are buffered.
    pub(crate) fn has_history_writes(&self) -> bool {
        !self.archived_tasks.is_empty() || !self.attempts.is_empty() || !self.log_lines.is_empty()
    }

    /// Takes the statements of all buffered writes. `archive_number` is the number of the last archived task.
    pub(crate) fn take_commands(&mut self, archive_number: i64) -> Vec<SqlCommand> {
        let mut commands = Vec::new();
        self.add_journal_commands(&mut commands);
        self.add_task_commands(&mut commands);
        self.add_grouping_commands(&mut commands);
        self.add_order_commands(&mut commands);
        self.rows_written += self.ended_orders.take_commands(&mut commands);
        if let Some(attempts) = std::mem::take(&mut self.attempts).into_params(archive_number) {
            self.rows_written += 1;
            commands.push(SqlCommand::Query(
                query!(
                    "write/upsert_attempts",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY,
                    INT8
                ),
                attempts,
            ));
        }
        if let Some(lines) = std::mem::take(&mut self.log_lines).into_params(archive_number) {
            self.rows_written += 1;
            commands.push(SqlCommand::Query(
                query!(
                    "write/append_log_lines",
                    INT8,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY
                ),
                lines,
            ));
        }
        self.rows_written += self.other_commands.len() as u64;
        commands.append(&mut self.other_commands);
        commands
    }

    fn add_journal_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        if !self.events.is_empty() {
            self.rows_written += self.events.len() as u64;
            commands.push(SqlCommand::Query(
                query!(
                    "write/insert_events",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY
                ),
                EventColumns::from_events(std::mem::take(&mut self.events)).into_params(),
            ));
        }
        if !self.sparse_index_entries.is_empty() {
            let (numbers, ids): (Vec<i64>, Vec<i64>) =
                std::mem::take(&mut self.sparse_index_entries).into_iter().unzip();
            commands.push(SqlCommand::Query(
                query!("write/insert_sparse_index", INT8_ARRAY, INT8_ARRAY),
                params![numbers, ids],
            ));
        }
        if !self.objects.is_empty() {
            self.rows_written += self.objects.len() as u64;
            let (mut tenants, mut keys, mut numbers, mut last, mut sent) =
                (vec![], vec![], vec![], vec![], vec![]);
            for ((tenant, key), object) in self.objects.drain() {
                tenants.push(tenant.to_string());
                keys.push(key);
                numbers.push(object.number);
                last.push(object.last_event.as_i64());
                sent.push(object.encode_last_sent());
            }
            commands.push(SqlCommand::Query(
                query!("write/upsert_objects", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY),
                params![tenants, keys, numbers, last, sent],
            ));
        }
        if !self.idempotency_records.is_empty() {
            self.rows_written += self.idempotency_records.len() as u64;
            let (mut tenants, mut keys, mut digests, mut responses, mut times) =
                (vec![], vec![], vec![], vec![], vec![]);
            for (tenant, key, digest, response, recorded_at) in self.idempotency_records.drain(..) {
                tenants.push(tenant.to_string());
                keys.push(key);
                digests.push(digest.to_vec());
                responses.push(response);
                times.push(recorded_at);
            }
            commands.push(SqlCommand::Query(
                query!(
                    "write/insert_idempotency_records",
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    BYTEA_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY
                ),
                params![tenants, keys, digests, responses, times],
            ));
        }
    }

    fn add_task_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        if !self.deleted_tasks.is_empty() {
            self.rows_written += self.deleted_tasks.len() as u64;
            let mut seqs: Vec<i64> = self.deleted_tasks.drain().map(|seq| seq.0).collect();
            seqs.sort_unstable();
            commands.push(SqlCommand::Query(query!("write/delete_tasks", INT8_ARRAY), params![seqs]));
        }
        if !self.new_tasks.is_empty() {
            self.rows_written += self.new_tasks.len() as u64;
            let tasks = std::mem::take(&mut self.new_tasks);
            commands.push(SqlCommand::Query(
                query!(
                    "write/insert_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY
                ),
                ActiveTaskColumns::from_tasks(tasks.into_values()).all_params(),
            ));
        }
        self.add_task_update_commands(commands);
        if !self.archived_tasks.is_empty() {
            self.rows_written += self.archived_tasks.len() as u64;
            let archived = std::mem::take(&mut self.archived_tasks);
            commands.push(SqlCommand::Query(
                query!(
                    "write/insert_archived_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT2_ARRAY,
                    INT2_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY
                ),
                ArchivedTaskColumns::from_tasks(archived.into_values()).into_params(),
            ));
        }
    }

    fn add_task_update_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        let (mut seqs, mut phases, mut ranks) = (vec![], vec![], vec![]);
        let (mut locked, mut rewritten) = (vec![], vec![]);
        self.rows_written += self.task_updates.len() as u64;
        for (seq, update) in std::mem::take(&mut self.task_updates) {
            match update {
                TaskUpdate::Lock(live) => locked.push(*live),
                TaskUpdate::AllFields(live) => rewritten.push(*live),
                TaskUpdate::PhaseAndRank(phase, rank) => {
                    seqs.push(seq.0);
                    phases.push(phase.code() as i16);
                    ranks.push(rank);
                }
            }
        }
        if !locked.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "write/lock_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                LockColumns::from_tasks(&locked).into_params(),
            ));
        }
        if !rewritten.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "write/update_tasks",
                    INT8_ARRAY,
                    INT2_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY
                ),
                ActiveTaskColumns::from_tasks(rewritten.into_iter()).changeable_params(),
            ));
        }
        if !seqs.is_empty() {
            commands.push(SqlCommand::Query(
                query!("write/set_phases", INT8_ARRAY, INT2_ARRAY, INT8_ARRAY),
                params![seqs, phases, ranks],
            ));
        }
    }

    fn add_grouping_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        if !self.task_groupings.is_empty() {
            let (mut seqs, mut lanes, mut groups, mut buckets) = (vec![], vec![], vec![], vec![]);
            for (seq, (lane, group, bucket)) in std::mem::take(&mut self.task_groupings) {
                seqs.push(seq.0);
                lanes.push(lane);
                groups.push(group);
                buckets.push(bucket);
            }
            self.rows_written += seqs.len() as u64;
            commands.push(SqlCommand::Query(
                query!("write/set_task_groupings", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY),
                params![seqs, lanes, groups, buckets],
            ));
        }
        if !self.concurrency_group_updates.is_empty() {
            let groups = std::mem::take(&mut self.concurrency_group_updates)
                .into_iter()
                .map(|(seq, group)| (seq.0, group));
            let (seqs, groups): (Vec<i64>, Vec<Option<i64>>) = groups.unzip();
            self.rows_written += seqs.len() as u64;
            let query = query!("write/set_concurrency_groups", INT8_ARRAY, INT8_ARRAY);
            commands.push(SqlCommand::Query(query, params![seqs, groups]));
        }
        if !self.score_updates.is_empty() {
            let scores =
                std::mem::take(&mut self.score_updates).into_iter().map(|(seq, score)| (seq.0, score));
            let (seqs, scores): (Vec<i64>, Vec<i64>) = scores.unzip();
            self.rows_written += seqs.len() as u64;
            let query = query!("write/set_scores", INT8_ARRAY, INT8_ARRAY);
            commands.push(SqlCommand::Query(query, params![seqs, scores]));
        }
    }

    fn add_order_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        let (mut inserted, mut updated, mut deleted) = (vec![], vec![], vec![]);
        self.rows_written += self.orders.len() as u64;
        for (n, write) in std::mem::take(&mut self.orders) {
            match write {
                OrderWrite::Insert(order) => inserted.push((n, order)),
                OrderWrite::Update(order) => updated.push((n, order)),
                OrderWrite::Delete => deleted.push(n),
            }
        }
        if !deleted.is_empty() {
            commands.push(SqlCommand::Query(query!("write/delete_orders", INT8_ARRAY), params![deleted]));
        }
        if !inserted.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "write/insert_orders",
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY
                ),
                OrderColumns::from_orders(inserted).all_params(),
            ));
        }
        if !updated.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "write/update_orders",
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY
                ),
                OrderColumns::from_orders(updated).changeable_params(),
            ));
        }
    }
}
