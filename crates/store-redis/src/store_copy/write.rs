//! Writes pages of rows, each with the progress of the copy in one transaction.

use std::collections::BTreeMap;

use pointsman_core::task::LogLine;
use pointsman_core::{EventId, TaskSeq, Tenant};
use pointsman_store::columns::{
    ActiveTaskColumns, AuditEntryColumns, CounterColumns, EventColumns, FileDigestColumns, HandlerColumns,
    NamedTextColumns, OrderColumns, QueueColumns,
};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{COPY_PROGRESS_TEXT_NAME, CopyRow, TableKind};
use pointsman_store::tables::{
    ActiveTaskTable, ArchivedTaskTable, Counters, OrderTable, RuleTable, ScheduleTable,
};

use super::{CachedCounts, RedisStoreCopy};
use crate::cells::encode_row;
use crate::codec::MemberBuilder;
use crate::connection::args;
use crate::error::commit_refused_fault;
use crate::keys::{Index, Table, active_task_location};
use crate::memory_usage::MemoryUsage;
use crate::overlay::{ALL_MEMBERS, ScanOrder, decode_text_reply};
use crate::rows;
use crate::store_state::StoreState;
use crate::{SALT_TEXT_NAME, TASK_ID_NAMESPACE_TEXT_NAME};

/// Number of a copied event that has expired: it does not count, and gets no sample in the index.
const NO_EVENT_NUMBER: i64 = -1;

impl RedisStoreCopy {
    pub(super) fn write_page(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> TableResult<bool> {
        self.check_memory_usage()?;
        self.run_in_transaction(|store| {
            store.write_rows(table_kind, rows)?;
            store.overlay().write_row(Table::NamedTexts, COPY_PROGRESS_TEXT_NAME, progress.into());
            Ok(())
        })
    }

    /// Finishes the copy: sets derived counters and deletes the progress.
    pub(super) fn finish_copy(&mut self) -> TableResult<bool> {
        self.run_in_transaction(|store| {
            let next_due = store.tables.read_earliest_due_time()?;
            store.tables.update_store_state(|store_state| store_state.counters.next_due = next_due);
            store.overlay().delete_row(Table::NamedTexts, COPY_PROGRESS_TEXT_NAME);
            Ok(())
        })
    }

    /// Runs `write` in a transaction; returns false without writing if a peer has committed.
    fn run_in_transaction(&mut self, write: impl FnOnce(&mut Self) -> TableResult<()>) -> TableResult<bool> {
        if !self.tables.begin_copy_page(self.last_commit_version)? {
            return Ok(false);
        }
        let committed = write(self).and_then(|()| self.tables.commit_copy_page());
        match committed {
            Ok(version) => self.last_commit_version = version,
            Err(fault) => {
                self.tables.roll_back();
                return Err(fault);
            }
        }
        (self.cached_counts, self.collected_pass) = (CachedCounts::default(), None);
        Ok(true)
    }

    /// Refuses to write if memory is nearly full. Redis itself accepts commits then, so that nodes can process stored work.
    fn check_memory_usage(&mut self) -> TableResult<()> {
        let info = decode_text_reply(self.execute(args!["INFO", "memory"])?)?;
        match MemoryUsage::parse(&info).describe_if_nearly_full() {
            Some(reason) => Err(commit_refused_fault(reason)),
            None => Ok(()),
        }
    }

    fn write_rows(&mut self, table_kind: TableKind, rows: Vec<CopyRow>) -> TableResult<()> {
        match table_kind {
            TableKind::Tasks | TableKind::ArchivedTasks => self.prefetch_queue_and_handler_tables()?,
            TableKind::Logs => return self.write_log_lines(rows),
            _ => {}
        }
        rows.into_iter().try_for_each(|row| self.write_row(row))
    }

    fn write_row(&mut self, row: CopyRow) -> TableResult<()> {
        match row {
            CopyRow::Counters(numbers) => self.write_counters(&numbers)?,
            CopyRow::NamedTexts(NamedTextColumns { name, text }) => {
                self.overlay().write_row(Table::NamedTexts, name.as_bytes(), text.into_owned().into_bytes());
            }
            CopyRow::Handlers(handler) => self.write_handler(handler),
            CopyRow::Queues(queue) => self.write_queue(queue)?,
            CopyRow::Chains(chain) => self.tables.write_chain(&chain),
            CopyRow::Rules(rule) => self.tables.write_rule(&rule.into_rule()?)?,
            CopyRow::FileDigests(FileDigestColumns { key, digest }) => {
                self.overlay().write_row(
                    Table::ConfiguredObjectDigests,
                    key.as_bytes(),
                    digest.into_owned().into_bytes(),
                );
            }
            CopyRow::Nodes(node) => self.tables.write_node(&node),
            CopyRow::ScheduleProgress(schedule) => {
                let (name, row) = schedule.into_row();
                self.tables.write_schedule_progress(&name, &row)?;
            }
            CopyRow::Journal(event) => self.write_event(&event),
            CopyRow::Objects(object) => {
                let tenant = Tenant::new(&*object.tenant).map_err(Fault::damaged)?;
                self.tables.insert_object(&tenant, &object);
            }
            CopyRow::Tasks(task) => self.write_task(task)?,
            CopyRow::Orders(order) => self.write_order(order)?,
            CopyRow::EndedOrders(order) => self.tables.write_ended_order(&order.into_ended_order()?)?,
            CopyRow::ArchivedTasks(task) => self.tables.insert_archived_task(&task.into_row()?)?,
            CopyRow::Attempts(attempt) => self.tables.write_attempt_columns(&attempt),
            CopyRow::IdempotencyRecords(record) => self.tables.write_idempotency_record_columns(&record),
            CopyRow::Fires(fire) => self.tables.insert_fire(&fire),
            CopyRow::AuditEntries(entry) => self.write_audit_entry(&entry),
            CopyRow::Logs(_)
            | CopyRow::OutboxReceipts(_)
            | CopyRow::OutboxKeys(_)
            | CopyRow::OutboxRefusals(_)
            | CopyRow::UnknownTenantRules(_) => {
                return Err(Fault::damaged(format!("no table for {}", row.table())));
            }
        }
        Ok(())
    }

    /// Writes the counters. Those of events, queues, orders and audit entries grow as their rows are written.
    fn write_counters(&mut self, numbers: &CounterColumns) -> TableResult<()> {
        let &CounterColumns { expired_events, last_node, .. } = numbers;
        let expired_up_to = EventId::from_i64(numbers.expired_up_to);
        let counters = Counters {
            last_event: EventId::from_i64(numbers.last_event),
            expired_up_to,
            last_task: numbers.last_task,
            last_fence: numbers.last_fence,
            last_object: numbers.last_object,
            last_order: 0,
            journaled_event_count: expired_events,
            archived_task_count: numbers.archived_tasks,
            next_due: None,
        };
        let texts =
            [(TASK_ID_NAMESPACE_TEXT_NAME, numbers.task_id_namespace), (SALT_TEXT_NAME, numbers.salt)];
        for (name, number) in texts {
            let text = number.cast_unsigned().to_string();
            self.overlay().write_row(Table::NamedTexts, name, text.into_bytes());
        }
        self.tables.update_store_state(|store_state| {
            *store_state = StoreState {
                counters,
                last_node_id: last_node,
                last_queue_id: 0,
                last_audit_entry_number: 0,
                ..store_state.clone()
            };
        });
        self.delete_leftover_journal()?;
        if expired_events > 0 {
            self.overlay().add_member(
                Index::EventNumberSamples,
                MemberBuilder::from_i64(expired_events).push_i64(expired_up_to.as_i64()).finish(),
            );
        }
        Ok(())
    }

    /// Deletes the journal of an empty target: expired events may still be stored.
    fn delete_leftover_journal(&mut self) -> TableResult<()> {
        for sample in self.overlay().read_members(
            &Index::EventNumberSamples,
            ALL_MEMBERS,
            ScanOrder::Ascending,
            usize::MAX,
        )? {
            self.overlay().remove_member(Index::EventNumberSamples, sample);
        }
        let delete = args!["DEL", self.keys().journal_key(), self.keys().index_key(&Index::CausedEvents)];
        self.overlay().add_extra_command(delete);
        Ok(())
    }

    fn write_handler(&mut self, handler: HandlerColumns<'static>) {
        let (id, row) = (handler.id.to_string(), rows::encode_handler(&handler));
        self.overlay().write_row(Table::Handlers, &id, row);
        if !handler.limiter_state.is_empty() {
            let state = handler.limiter_state.into_owned();
            self.overlay().write_row(Table::LimiterStates, &id, state.into_bytes());
        }
        self.overlay().write_row(Table::MissedEventRanges, &id, handler.gaps.into_owned().into_bytes());
    }

    fn write_queue(&mut self, queue: QueueColumns<'static>) -> TableResult<()> {
        let (id, row) = (queue.id, rows::encode_queue(&queue));
        self.overlay().write_row(Table::Queues, id.to_string(), row);
        let counts = rows::encode_queue_counts(&queue.into_row()?.counts);
        self.overlay().write_row(Table::QueueCounts, id.to_string(), counts);
        self.tables
            .update_store_state(|store_state| store_state.last_queue_id = store_state.last_queue_id.max(id));
        Ok(())
    }

    fn write_event(&mut self, event: &EventColumns<'_>) {
        let mut number = NO_EVENT_NUMBER;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            if event.id > counters.expired_up_to.as_i64() {
                counters.journaled_event_count += 1;
                number = counters.journaled_event_count;
            }
        });
        self.tables.insert_event_columns(event, number);
    }

    fn write_task(&mut self, task: ActiveTaskColumns<'static>) -> TableResult<()> {
        let active = task.clone().into_row()?;
        self.tables.insert_active_task(&active)?;
        if task.due != active.due_time().micros() {
            // The state of a locked task does not contain its due time.
            let (table, field) = active_task_location(active.seq);
            self.overlay().write_row(table, field, rows::encode_active_task(&task));
        }
        Ok(())
    }

    fn write_order(&mut self, order: OrderColumns<'static>) -> TableResult<()> {
        let row = order.into_row(false)?;
        self.tables.insert_order(row.number, &row.order)?;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            counters.last_order = counters.last_order.max(row.number);
        });
        Ok(())
    }

    /// Writes log lines, which are passed in the order of their tasks and numbers. Their numbers are ignored: they are
    /// the positions in the logs.
    fn write_log_lines(&mut self, rows: Vec<CopyRow>) -> TableResult<()> {
        let mut logs: BTreeMap<TaskSeq, Vec<LogLine>> = BTreeMap::new();
        for row in rows {
            let CopyRow::Logs(line) = row else {
                return Err(Fault::damaged(format!("a row of {} among log lines", row.table())));
            };
            logs.entry(TaskSeq(line.task)).or_default().push(line.into_line());
        }
        let tasks: Vec<TaskSeq> = logs.keys().copied().collect();
        let keys = self.read_log_keys(&tasks)?;
        for (task, lines) in logs {
            let key = keys.get(&task);
            let key = key.ok_or_else(|| Fault::damaged(format!("a log of no task {}", task.0)))?;
            self.tables.append_log_lines_to_key(key, lines)?;
        }
        Ok(())
    }

    fn write_audit_entry(&mut self, entry: &AuditEntryColumns<'_>) {
        self.overlay().write_row(Table::AuditEntries, entry.n.to_string(), encode_row(entry));
        self.tables.update_store_state(|store_state| {
            store_state.last_audit_entry_number = store_state.last_audit_entry_number.max(entry.n)
        });
    }
}
