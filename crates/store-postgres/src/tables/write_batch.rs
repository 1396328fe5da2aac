//! Buffers the writes of a transaction, so that they are sent together: one statement per table and kind of write.

use std::collections::{BTreeMap, HashMap, HashSet};

use pointsman_core::chain::OrderKey;
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::store::IdempotencyKey;
use pointsman_core::task::LogLine;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, Columns, EndedOrderColumns, EventColumns,
    IdempotencyRecordColumns, LogLineColumns, ObjectColumns, OrderColumns,
};
use pointsman_store::error::TableResult;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, AttemptRow, ObjectRow, OrderRow, TaskPhase};
use pointsman_store::store_copy::JOURNAL_SPARSE_INDEX_INTERVAL;

use crate::session::{Query, query};
use crate::writer_connection::{BoxedParam, SqlCommand, params};

/// A pending insert of an event, with its number in the journal and with its tasks, which have consecutive numbers.
pub(crate) struct EventInsert {
    pub(crate) event: Event,
    pub(crate) event_number: i64,
    pub(crate) first_task: TaskSeq,
    pub(crate) task_count: usize,
}

/// Lane, concurrency group and key bucket of a task.
type TaskGrouping = (Option<i64>, Option<i64>, Option<i32>);

/// A pending update of the row of an existing task.
#[derive(Clone, Debug)]
enum TaskUpdate {
    PhaseAndRank(TaskPhase, i64),
    /// The task is leased: only phase, attempt, lease and start time change.
    Lock(Box<ActiveTaskRow>),
    /// All columns change that may change while a task is unfinished.
    ChangeableFields(Box<ActiveTaskRow>),
}

/// A pending write of the row of an order.
#[derive(Clone, Debug)]
enum OrderWrite {
    Insert(Order),
    Update(Order),
    Delete,
}

/// Writes of a transaction that have not been sent yet.
#[derive(Default)]
pub(crate) struct WriteBatch {
    events: Vec<EventInsert>,
    /// The number and the id of each event that gets an entry in the sparse index.
    sparse_index_entries: Vec<(i64, i64)>,
    objects: HashMap<(Tenant, String), ObjectRow>,
    idempotency_records: Vec<IdempotencyRecordColumns<'static>>,
    new_tasks: BTreeMap<TaskSeq, ActiveTaskRow>,
    task_updates: BTreeMap<TaskSeq, TaskUpdate>,
    deleted_tasks: HashSet<TaskSeq>,
    /// New groupings of existing tasks.
    task_groupings: BTreeMap<TaskSeq, TaskGrouping>,
    /// New concurrency groups of existing tasks whose lane and bucket stay.
    concurrency_group_updates: BTreeMap<TaskSeq, Option<i64>>,
    /// New scores of existing tasks.
    score_updates: BTreeMap<TaskSeq, i64>,
    /// Archived tasks, each with its archive number.
    archived_tasks: BTreeMap<TaskSeq, (i64, ArchivedTaskRow)>,
    attempts: Vec<AttemptColumns<'static>>,
    log_lines: Vec<(TaskSeq, LogLine)>,
    /// Writes of orders, by order number.
    orders: BTreeMap<i64, OrderWrite>,
    /// Outcomes of ended orders, by key and tenant.
    ended_orders: BTreeMap<(OrderKey, Tenant), EndedOrder>,
    /// Statements that are sent as they are, after those of the buffered rows.
    unmerged_commands: Vec<SqlCommand>,
    /// Total of rows written since the store was opened.
    pub(crate) rows_written: u64,
}

impl WriteBatch {
    /// Discards all pending writes, as a transaction begins or is rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self { rows_written: self.rows_written, ..Self::default() };
    }

    pub(crate) fn insert_event(&mut self, insert: EventInsert) {
        if insert.event_number % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
            self.sparse_index_entries.push((insert.event_number, insert.event.id.as_i64()));
        }
        self.events.push(insert);
    }

    pub(crate) fn find_event(&self, id: EventId) -> Option<&Event> {
        let index = self.events.binary_search_by_key(&id, |insert| insert.event.id).ok()?;
        self.events.get(index).map(|insert| &insert.event)
    }

    pub(crate) fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) {
        self.objects.insert((tenant.clone(), key.into()), object.clone());
    }

    pub(crate) fn insert_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        response: &str,
        at: Timestamp,
    ) {
        let record = IdempotencyRecordColumns::from_record(idempotency, response, at);
        self.idempotency_records.push(record.into_owned());
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
        self.attempts.push(AttemptColumns::from_row(attempt).into_owned());
    }

    pub(crate) fn add_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        self.log_lines.extend(lines.into_iter().map(|line| (task, line)));
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

    pub(crate) fn find_ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Option<&EndedOrder> {
        self.ended_orders.get(&(key.clone(), tenant.clone()))
    }

    pub(crate) fn insert_ended_order(&mut self, ended: &EndedOrder) {
        self.ended_orders.insert((ended.key.clone(), ended.tenant.clone()), ended.clone());
    }

    /// Adds a statement that is sent as it is, after those of the buffered rows.
    pub(crate) fn add_unmerged_command(&mut self, command: SqlCommand) {
        self.unmerged_commands.push(command);
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
    pub(crate) fn take_commands(&mut self, archive_number: i64) -> TableResult<Vec<SqlCommand>> {
        let mut list = CommandList::default();
        self.add_journal_and_object_commands(&mut list)?;
        self.add_task_commands(&mut list);
        self.add_grouping_commands(&mut list);
        self.add_order_commands(&mut list);
        self.add_attempt_and_log_commands(&mut list, archive_number);
        self.rows_written += list.rows_written + self.unmerged_commands.len() as u64;
        list.commands.append(&mut self.unmerged_commands);
        Ok(list.commands)
    }

    fn add_journal_and_object_commands(&mut self, commands: &mut CommandList) -> TableResult<()> {
        let events = std::mem::take(&mut self.events);
        let numbers: Vec<i64> = events.iter().map(|insert| insert.event_number).collect();
        let rows = events
            .iter()
            .map(|insert| EventColumns::from_event(&insert.event, insert.first_task, insert.task_count))
            .collect::<TableResult<Vec<_>>>()?;
        commands.add_rows(
            query!("journal/insert_events", INT8_ARRAY, ..EventColumns),
            params![numbers],
            rows.into_iter(),
        );
        let (numbers, ids): (Vec<i64>, Vec<i64>) = self.sparse_index_entries.drain(..).unzip();
        commands.add_query(
            query!("journal/insert_sparse_index_entries", INT8_ARRAY, INT8_ARRAY),
            numbers.len(),
            params![numbers, ids],
        );
        // A new object counts as checked at its first event.
        let objects = std::mem::take(&mut self.objects);
        let rows = objects
            .iter()
            .map(|((tenant, key), object)| ObjectColumns::from_row(tenant, key, object, object.last_event));
        commands.add_rows(query!("object/upsert_objects", ..ObjectColumns), vec![], rows);
        commands.add_rows(
            query!("idempotency/insert_idempotency_records", ..IdempotencyRecordColumns),
            vec![],
            self.idempotency_records.drain(..),
        );
        Ok(())
    }

    fn add_task_commands(&mut self, commands: &mut CommandList) {
        let mut deleted: Vec<i64> = self.deleted_tasks.drain().map(|seq| seq.0).collect();
        deleted.sort_unstable();
        commands.add_query(query!("task/delete_tasks", INT8_ARRAY), deleted.len(), params![deleted]);
        let tasks = std::mem::take(&mut self.new_tasks);
        commands.add_rows(
            query!("task/insert_tasks", ..ActiveTaskColumns),
            vec![],
            tasks.values().map(ActiveTaskColumns::from_row),
        );
        self.add_task_update_commands(commands);
        let archived = std::mem::take(&mut self.archived_tasks);
        let archive_numbers: Vec<i64> = archived.values().map(|(number, _)| *number).collect();
        commands.add_rows(
            query!("history/insert_archived_tasks", INT8_ARRAY, ..ArchivedTaskColumns),
            params![archive_numbers],
            archived.values().map(|(_, archived_row)| ArchivedTaskColumns::from_row(archived_row)),
        );
    }

    fn add_task_update_commands(&mut self, commands: &mut CommandList) {
        let (mut phases, mut locked_rows, mut updated_rows) = (vec![], vec![], vec![]);
        for (seq, update) in std::mem::take(&mut self.task_updates) {
            match update {
                TaskUpdate::Lock(task_row) => locked_rows.push(*task_row),
                TaskUpdate::ChangeableFields(task_row) => updated_rows.push(*task_row),
                TaskUpdate::PhaseAndRank(phase, rank) => phases.push((seq.0, phase.code(), rank)),
            }
        }
        commands.add_rows(
            query!(
                "task/lock_tasks",
                ..ActiveTaskColumns[seq, attempt, node, fence, leased_until, started]
            ),
            vec![],
            locked_rows.iter().map(ActiveTaskColumns::from_row),
        );
        commands.add_rows(
            query!(
                "task/update_tasks",
                ..ActiveTaskColumns[
                    seq, phase, lane_position, rank, due, attempt, retries, crashes, late, node, fence,
                    leased_until, started, reason, error,
                ]
            ),
            vec![],
            updated_rows.iter().map(ActiveTaskColumns::from_row),
        );
        let (seqs, phases, ranks): (Vec<i64>, Vec<i16>, Vec<i64>) = phases.into_iter().collect();
        commands.add_query(
            query!("task/update_phases", INT8_ARRAY, INT2_ARRAY, INT8_ARRAY),
            seqs.len(),
            params![seqs, phases, ranks],
        );
    }

    fn add_grouping_commands(&mut self, commands: &mut CommandList) {
        let groupings = std::mem::take(&mut self.task_groupings)
            .into_iter()
            .map(|(seq, (lane, group, bucket))| (seq.0, lane, group, bucket));
        let (seqs, lanes, groups, buckets): (Vec<_>, Vec<_>, Vec<_>, Vec<_>) = groupings.collect();
        commands.add_query(
            query!("task/update_groupings", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY),
            seqs.len(),
            params![seqs, lanes, groups, buckets],
        );
        let groups = std::mem::take(&mut self.concurrency_group_updates)
            .into_iter()
            .map(|(seq, group)| (seq.0, group));
        let (seqs, groups): (Vec<i64>, Vec<Option<i64>>) = groups.unzip();
        commands.add_query(
            query!("task/update_concurrency_groups", INT8_ARRAY, INT8_ARRAY),
            seqs.len(),
            params![seqs, groups],
        );
        let scores = std::mem::take(&mut self.score_updates).into_iter().map(|(seq, score)| (seq.0, score));
        let (seqs, scores): (Vec<i64>, Vec<i64>) = scores.unzip();
        commands.add_query(
            query!("task/update_scores", INT8_ARRAY, INT8_ARRAY),
            seqs.len(),
            params![seqs, scores],
        );
    }

    fn add_order_commands(&mut self, commands: &mut CommandList) {
        let (mut inserted, mut updated, mut deleted) = (vec![], vec![], vec![]);
        for (number, write) in std::mem::take(&mut self.orders) {
            match write {
                OrderWrite::Insert(order) => inserted.push((number, order)),
                OrderWrite::Update(order) => updated.push((number, order)),
                OrderWrite::Delete => deleted.push(number),
            }
        }
        commands.add_query(query!("orders/delete_orders", INT8_ARRAY), deleted.len(), params![deleted]);
        commands.add_rows(
            query!("orders/insert_orders", ..OrderColumns),
            vec![],
            inserted.iter().map(|(number, order)| OrderColumns::from_order(*number, order)),
        );
        commands.add_rows(
            query!(
                "orders/update_orders",
                ..OrderColumns[
                    n, node, value, planned, started, suspended, task, step_succeeded, suspended_by_task,
                    took_on_error,
                ]
            ),
            vec![],
            updated.iter().map(|(number, order)| OrderColumns::from_order(*number, order)),
        );
        let ended_orders = std::mem::take(&mut self.ended_orders);
        commands.add_rows(
            query!("ended_order/upsert_ended_orders", ..EndedOrderColumns),
            vec![],
            ended_orders.values().map(EndedOrderColumns::from_ended_order),
        );
    }

    fn add_attempt_and_log_commands(&mut self, commands: &mut CommandList, archive_number: i64) {
        commands.add_rows(
            query!("attempt/upsert_attempts", INT8, ..AttemptColumns),
            params![archive_number],
            self.attempts.drain(..),
        );
        // The new lines of a task are counted from 1.
        let mut line_counts: HashMap<TaskSeq, i64> = HashMap::new();
        let lines = std::mem::take(&mut self.log_lines);
        let rows = lines.iter().map(|(task, line)| {
            let number = line_counts.entry(*task).or_default();
            *number += 1;
            LogLineColumns::from_line(*task, *number, line)
        });
        commands.add_rows(
            query!("log/append_log_lines", INT8, ..LogLineColumns),
            params![archive_number],
            rows,
        );
    }
}

/// Statements, and the number of rows that they write.
#[derive(Default)]
struct CommandList {
    commands: Vec<SqlCommand>,
    rows_written: u64,
}

impl CommandList {
    /// Adds a query, unless it writes no rows.
    fn add_query(&mut self, query: &'static Query, row_count: usize, params: Vec<BoxedParam>) {
        if row_count > 0 {
            self.commands.push(SqlCommand::Query(query, params));
            self.rows_written += row_count as u64;
        }
    }

    /// Adds a query whose last parameters are the arrays of the columns of these rows, if there are any.
    fn add_rows<'a, C: Columns<'a>>(
        &mut self,
        query: &'static Query,
        params: Vec<BoxedParam>,
        rows: impl ExactSizeIterator<Item = C>,
    ) {
        if rows.len() > 0 {
            self.rows_written += rows.len() as u64;
            self.commands.push(SqlCommand::query_with_rows(query, params, rows));
        }
    }
}
