//! Buffers the writes of a transaction, so that they are sent together: one statement per table and kind of write.

use std::collections::{BTreeMap, HashMap, HashSet};

use pointsman_core::order::Order;
use pointsman_core::task::LogLine;
use pointsman_core::{Event, TaskSeq, Tenant, Timestamp};
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, AttemptRow, ObjectRow, OrderRow, TaskPhase};

use super::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, EventColumns, EventInsert, LockColumns,
    LogLineColumns, OrderColumns, OrderWrite, TaskGrouping, TaskUpdate,
};
use super::ended_orders::EndedOrderBatch;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// Writes of a transaction that have not been sent yet.
#[derive(Default)]
pub(crate) struct WriteBatch {
    events: Vec<EventInsert>,
    /// Number and id of an event each.
    sparse_index_entries: Vec<(i64, i64)>,
    objects: HashMap<(Tenant, String), ObjectRow>,
    /// Tenant, key, request digest, response and time.
    idempotency_records: Vec<(Tenant, String, [u8; 32], String, i64)>,
    new_tasks: BTreeMap<TaskSeq, ActiveTaskRow>,
    task_updates: BTreeMap<TaskSeq, TaskUpdate>,
    deleted_tasks: HashSet<TaskSeq>,
    /// New groupings of existing tasks.
    task_groupings: BTreeMap<TaskSeq, TaskGrouping>,
    /// New concurrency groups of existing tasks whose lane and bucket stay.
    concurrency_group_updates: BTreeMap<TaskSeq, Option<i64>>,
    /// New scores of existing tasks.
    score_updates: BTreeMap<TaskSeq, i64>,
    /// Each with its archive number.
    archived_tasks: BTreeMap<TaskSeq, (i64, ArchivedTaskRow)>,
    attempts: AttemptColumns,
    log_lines: LogLineColumns,
    /// By order number.
    orders: BTreeMap<i64, OrderWrite>,
    pub(crate) ended_orders: EndedOrderBatch,
    /// Statements for tables that change rarely.
    other_commands: Vec<SqlCommand>,
    /// Total of rows written since the store was opened.
    pub(crate) rows_written: u64,
}

/// Each event whose number is a multiple of this gets an entry in `pointsman.journal_sparse_index`.
const SPARSE_INDEX_INTERVAL: i64 = 1000;

impl WriteBatch {
    /// Discards all pending writes, as a transaction begins or is rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self { rows_written: self.rows_written, ..Self::default() };
    }

    pub(crate) fn insert_event(&mut self, insert: EventInsert) {
        if insert.event_number % SPARSE_INDEX_INTERVAL == 0 {
            self.sparse_index_entries.push((insert.event_number, insert.event.id.as_i64()));
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

    /// Returns a task with its pending writes: `Some(None)` if its deletion is pending, none if the table must be read.
    pub(crate) fn find_task(&self, seq: TaskSeq) -> Option<Option<ActiveTaskRow>> {
        if let Some(task_row) = self.new_tasks.get(&seq) {
            return Some(Some(task_row.clone()));
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
            Some(TaskUpdate::Lock(row) | TaskUpdate::ChangeableFields(row)) => Some(Some((**row).clone())),
            Some(TaskUpdate::PhaseAndRank(..)) | None => None,
        }
    }

    pub(crate) fn insert_task(&mut self, task_row: &ActiveTaskRow) {
        self.new_tasks.insert(task_row.seq, task_row.clone());
    }

    pub(crate) fn delete_task(&mut self, seq: TaskSeq) {
        if self.new_tasks.remove(&seq).is_none() {
            self.task_updates.remove(&seq);
            self.deleted_tasks.insert(seq);
        }
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) {
        if let Some(task_row) = self.new_tasks.get_mut(&seq) {
            (task_row.phase, task_row.rank) = (phase, rank);
            return;
        }
        let update = match self.task_updates.remove(&seq) {
            Some(TaskUpdate::Lock(mut task_row) | TaskUpdate::ChangeableFields(mut task_row)) => {
                (task_row.phase, task_row.rank) = (phase, rank);
                TaskUpdate::ChangeableFields(task_row)
            }
            Some(TaskUpdate::PhaseAndRank(..)) | None => TaskUpdate::PhaseAndRank(phase, rank),
        };
        self.task_updates.insert(seq, update);
    }

    pub(crate) fn lock_task(&mut self, task_row: &ActiveTaskRow) {
        match self.new_tasks.contains_key(&task_row.seq) || self.task_updates.contains_key(&task_row.seq) {
            true => self.update_task(task_row),
            false => {
                drop(self.task_updates.insert(task_row.seq, TaskUpdate::Lock(Box::new(task_row.clone()))))
            }
        }
    }

    pub(crate) fn update_task(&mut self, task_row: &ActiveTaskRow) {
        match self.new_tasks.get_mut(&task_row.seq) {
            Some(task) => *task = task_row.clone(),
            None => {
                let update = TaskUpdate::ChangeableFields(Box::new(task_row.clone()));
                self.task_updates.insert(task_row.seq, update);
            }
        }
    }

    pub(crate) fn set_task_grouping(&mut self, task_row: &ActiveTaskRow) {
        let (lane, group, bucket) = (task_row.lane, task_row.concurrency_group, task_row.key_bucket);
        match self.new_tasks.get_mut(&task_row.seq) {
            Some(task) => (task.lane, task.concurrency_group, task.key_bucket) = (lane, group, bucket),
            None => drop(self.task_groupings.insert(task_row.seq, (lane, group, bucket.map(i32::from)))),
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
        self.archived_tasks.get(&seq).map(|(_, archived_row)| archived_row)
    }

    pub(crate) fn insert_archived_task(&mut self, archive_number: i64, archived_row: &ArchivedTaskRow) {
        self.archived_tasks.insert(archived_row.seq, (archive_number, archived_row.clone()));
    }

    /// Removes an archived task from the batch; returns false if it is not in there, but in the table.
    pub(crate) fn delete_archived_task(&mut self, seq: TaskSeq) -> bool {
        self.archived_tasks.remove(&seq).is_some()
    }

    pub(crate) fn insert_attempt(&mut self, attempt: &AttemptRow<'_>) {
        self.attempts.push(attempt);
    }

    pub(crate) fn add_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        self.log_lines.push(task, lines);
    }

    /// Returns an order with its pending writes, as [`WriteBatch::find_task`] does.
    pub(crate) fn find_order(&self, number: i64) -> Option<Option<OrderRow>> {
        self.orders.get(&number).map(|write| match write {
            OrderWrite::Insert(order) | OrderWrite::Update(order) => {
                let task = order.task_seq.map_or(Some(None), |task| self.find_task(task));
                let is_running = match task {
                    Some(task_row) => task_row.is_some_and(|task_row| task_row.phase == TaskPhase::Locked),
                    None => order.step_running,
                };
                Some(OrderRow { number, order: Order { step_running: is_running, ..order.clone() } })
            }
            OrderWrite::Delete => None,
        })
    }

    pub(crate) fn insert_order(&mut self, number: i64, order: &Order) {
        self.orders.insert(number, OrderWrite::Insert(order.clone()));
    }

    pub(crate) fn update_order(&mut self, number: i64, order: &Order) {
        let write = match self.orders.get(&number) {
            Some(OrderWrite::Insert(_)) => OrderWrite::Insert(order.clone()),
            Some(OrderWrite::Update(_) | OrderWrite::Delete) | None => OrderWrite::Update(order.clone()),
        };
        self.orders.insert(number, write);
    }

    pub(crate) fn delete_order(&mut self, number: i64) {
        match self.orders.get(&number) {
            Some(OrderWrite::Insert(_)) => drop(self.orders.remove(&number)),
            Some(OrderWrite::Update(_) | OrderWrite::Delete) | None => {
                self.orders.insert(number, OrderWrite::Delete);
            }
        }
    }

    /// Adds a statement for a table that changes rarely.
    pub(crate) fn add_command(&mut self, command: SqlCommand) {
        self.other_commands.push(command);
    }

    /// Returns the greatest number of a buffered event.
    pub(crate) fn last_event_number(&self) -> Option<i64> {
        self.events.last().map(|insert| insert.event_number)
    }

    /// True if archived tasks, attempts or log lines are buffered, which need a partition of the history.
    pub(crate) fn has_history_writes(&self) -> bool {
        !self.archived_tasks.is_empty() || !self.attempts.is_empty() || !self.log_lines.is_empty()
    }

    /// Takes all buffered writes, as statements. `archive_number`, the number of the last archived task, is the
    /// partition key of attempts and log lines.
    pub(crate) fn take_commands(&mut self, archive_number: i64) -> Vec<SqlCommand> {
        let mut commands = Vec::new();
        self.add_journal_and_object_commands(&mut commands);
        self.add_task_commands(&mut commands);
        self.add_grouping_commands(&mut commands);
        self.add_order_commands(&mut commands);
        self.rows_written += self.ended_orders.take_commands(&mut commands);
        if let Some(attempts) = std::mem::take(&mut self.attempts).into_params(archive_number) {
            self.rows_written += 1;
            commands.push(SqlCommand::Query(
                query!(
                    "attempt/upsert_attempts",
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
                    "log/append_log_lines",
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

    fn add_journal_and_object_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        if !self.events.is_empty() {
            self.rows_written += self.events.len() as u64;
            commands.push(SqlCommand::Query(
                query!(
                    "journal/insert_events",
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
                query!("journal/insert_sparse_index_entries", INT8_ARRAY, INT8_ARRAY),
                params![numbers, ids],
            ));
        }
        if !self.objects.is_empty() {
            self.rows_written += self.objects.len() as u64;
            let (mut tenants, mut keys, mut numbers, mut last_events, mut last_sent_events) =
                (vec![], vec![], vec![], vec![], vec![]);
            for ((tenant, key), object) in self.objects.drain() {
                tenants.push(tenant.to_string());
                keys.push(key);
                numbers.push(object.number);
                last_events.push(object.last_event.as_i64());
                last_sent_events.push(object.encode_last_sent_events());
            }
            commands.push(SqlCommand::Query(
                query!("object/upsert_objects", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY),
                params![tenants, keys, numbers, last_events, last_sent_events],
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
                    "idempotency/insert_idempotency_records",
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
            commands.push(SqlCommand::Query(query!("task/delete_tasks", INT8_ARRAY), params![seqs]));
        }
        if !self.new_tasks.is_empty() {
            self.rows_written += self.new_tasks.len() as u64;
            let tasks = std::mem::take(&mut self.new_tasks);
            commands.push(SqlCommand::Query(
                query!(
                    "task/insert_tasks",
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
                    "history/insert_archived_tasks",
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
        let (mut locked_rows, mut updated_rows) = (vec![], vec![]);
        self.rows_written += self.task_updates.len() as u64;
        for (seq, update) in std::mem::take(&mut self.task_updates) {
            match update {
                TaskUpdate::Lock(task_row) => locked_rows.push(*task_row),
                TaskUpdate::ChangeableFields(task_row) => updated_rows.push(*task_row),
                TaskUpdate::PhaseAndRank(phase, rank) => {
                    seqs.push(seq.0);
                    phases.push(phase.code() as i16);
                    ranks.push(rank);
                }
            }
        }
        if !locked_rows.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "task/lock_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                LockColumns::from_tasks(&locked_rows).into_params(),
            ));
        }
        if !updated_rows.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "task/update_tasks",
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
                ActiveTaskColumns::from_tasks(updated_rows.into_iter()).changeable_params(),
            ));
        }
        if !seqs.is_empty() {
            commands.push(SqlCommand::Query(
                query!("task/update_phases", INT8_ARRAY, INT2_ARRAY, INT8_ARRAY),
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
                query!("task/update_groupings", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY),
                params![seqs, lanes, groups, buckets],
            ));
        }
        if !self.concurrency_group_updates.is_empty() {
            let groups = std::mem::take(&mut self.concurrency_group_updates)
                .into_iter()
                .map(|(seq, group)| (seq.0, group));
            let (seqs, groups): (Vec<i64>, Vec<Option<i64>>) = groups.unzip();
            self.rows_written += seqs.len() as u64;
            let query = query!("task/update_concurrency_groups", INT8_ARRAY, INT8_ARRAY);
            commands.push(SqlCommand::Query(query, params![seqs, groups]));
        }
        if !self.score_updates.is_empty() {
            let scores =
                std::mem::take(&mut self.score_updates).into_iter().map(|(seq, score)| (seq.0, score));
            let (seqs, scores): (Vec<i64>, Vec<i64>) = scores.unzip();
            self.rows_written += seqs.len() as u64;
            let query = query!("task/update_scores", INT8_ARRAY, INT8_ARRAY);
            commands.push(SqlCommand::Query(query, params![seqs, scores]));
        }
    }

    fn add_order_commands(&mut self, commands: &mut Vec<SqlCommand>) {
        let (mut inserted, mut updated, mut deleted) = (vec![], vec![], vec![]);
        self.rows_written += self.orders.len() as u64;
        for (number, write) in std::mem::take(&mut self.orders) {
            match write {
                OrderWrite::Insert(order) => inserted.push((number, order)),
                OrderWrite::Update(order) => updated.push((number, order)),
                OrderWrite::Delete => deleted.push(number),
            }
        }
        if !deleted.is_empty() {
            commands.push(SqlCommand::Query(query!("orders/delete_orders", INT8_ARRAY), params![deleted]));
        }
        if !inserted.is_empty() {
            commands.push(SqlCommand::Query(
                query!(
                    "orders/insert_orders",
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
                    "orders/update_orders",
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
