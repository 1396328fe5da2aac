//! Writes rows: a page and its progress note in one transaction.

use std::collections::BTreeMap;

use pointsman_core::fire::Fire;
use pointsman_core::store::{AuditEntry, IdempotencyKey};
use pointsman_core::task::{LogLine, QueueSubject};
use pointsman_core::{EventId, TaskId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{AttemptRow, ObjectRow, QueueCounts, ScheduleRow, decode_attempt_outcome};
use pointsman_store::store_copy::{COPY_PROGRESS_TEXT_NAME, CopyRow, TableKind};
use pointsman_store::tables::{
    ActiveTaskTable, ArchivedTaskTable, Counters, EventTable, IdempotencyTable, OrderTable, RuleTable,
    ScheduleTable,
};
use serde_json::value::RawValue;

use super::cells::RowCells;
use super::read::{RawChain, RawHandler};
use super::row_conversion::{
    decode_active_task_row, decode_archived_task_row, decode_ended_order_row, decode_event_row,
    decode_log_line_row, decode_order_row, decode_rule_row,
};
use super::{CachedCounts, RedisStoreCopy};
use crate::codec::MemberBuilder;
use crate::connection::args;
use crate::error::commit_refused_fault;
use crate::keys::{Index, Table, task_bucket_and_field};
use crate::memory_usage::MemoryUsage;
use crate::overlay::{ALL_MEMBERS, ScanOrder, decode_text_reply};
use crate::rows::{self, JournaledEvent, NodeRow};
use crate::store_state::StoreState;
use crate::{SALT_TEXT_NAME, TASK_ID_NAMESPACE_TEXT_NAME};

/// Number of a copied event that has expired: it does not count, and gets no sample in the index.
const NO_EVENT_NUMBER: i64 = -1;

impl RedisStoreCopy {
    pub(super) fn write_page(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        note: &str,
    ) -> TableResult<bool> {
        self.check_memory_usage()?;
        self.run_in_transaction(|store| {
            store.write_rows(table_kind, rows)?;
            store.overlay().write_row(Table::NamedTexts, COPY_PROGRESS_TEXT_NAME, note.into());
            Ok(())
        })
    }

    /// Finishes the copy: sets derived counters and deletes the progress note.
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
        (self.cached_counts, self.collected_partition) = (CachedCounts::default(), None);
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
        let mut cells = rows.into_iter().map(|row| RowCells::new(table_kind, row));
        match table_kind {
            TableKind::Counters => cells.try_for_each(|row| self.write_counters(row?)),
            TableKind::NamedTexts => cells.try_for_each(|row| self.write_text_row(Table::NamedTexts, row?)),
            TableKind::Handlers => cells.try_for_each(|row| self.write_handler(row?)),
            TableKind::Queues => cells.try_for_each(|row| self.write_queue(row?)),
            TableKind::Chains => cells.try_for_each(|row| self.write_chain(row?)),
            TableKind::Rules => cells.try_for_each(|row| self.tables.write_rule(&decode_rule_row(row?)?)),
            TableKind::FileDigests => cells.try_for_each(|row| self.write_text_row(Table::FileDigests, row?)),
            TableKind::Nodes => cells.try_for_each(|row| self.write_node(row?)),
            TableKind::Schedules => cells.try_for_each(|row| self.write_schedule(row?)),
            TableKind::Journal => cells.try_for_each(|row| self.write_event(row?)),
            TableKind::Objects => cells.try_for_each(|row| self.write_object(row?)),
            TableKind::Tasks => {
                self.prefetch_queue_names()?;
                cells.try_for_each(|row| self.write_task(row?))
            }
            TableKind::Orders => cells.try_for_each(|row| self.write_order(row?)),
            TableKind::EndedOrders => {
                cells.try_for_each(|row| self.tables.write_ended_order(&decode_ended_order_row(row?)?))
            }
            TableKind::History => {
                self.prefetch_queue_names()?;
                cells.try_for_each(|row| self.tables.insert_archived_task(&decode_archived_task_row(row?)?))
            }
            TableKind::Attempts => cells.try_for_each(|row| self.write_attempt(row?)),
            TableKind::Logs => self.write_log_lines(cells),
            TableKind::IdempotencyRecords => cells.try_for_each(|row| self.write_idempotency_record(row?)),
            TableKind::Fires => cells.try_for_each(|row| self.write_fire(row?)),
            TableKind::AuditEntries => cells.try_for_each(|row| self.write_audit_entry(row?)),
            TableKind::OutboxReceipts
            | TableKind::OutboxKeys
            | TableKind::OutboxRefusals
            | TableKind::UnknownTenantRules => Err(Fault::damaged(format!("no table for {table_kind}"))),
        }
    }

    /// Writes the counters. Those of events, queues, orders and audit entries grow as their rows are written.
    fn write_counters(&mut self, mut row: RowCells) -> TableResult<()> {
        let (namespace, salt) = (row.number()?.cast_unsigned(), row.number()?.cast_unsigned());
        let (last, expired_up_to) = (EventId::from_i64(row.number()?), EventId::from_i64(row.number()?));
        let (expired_events, _journaled) = (row.number()?, row.number()?);
        let counters = Counters {
            last_event: last,
            expired_up_to,
            last_task: row.number()?,
            last_fence: row.number()?,
            last_object: row.number()?,
            last_order: 0,
            journaled_event_count: expired_events,
            archived_task_count: row.number()?,
            next_due: None,
        };
        let last_node = row.number()?;
        for (name, number) in [(TASK_ID_NAMESPACE_TEXT_NAME, namespace), (SALT_TEXT_NAME, salt)] {
            self.overlay().write_row(Table::NamedTexts, name, number.to_string().into_bytes());
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

    fn write_text_row(&mut self, table: Table, mut row: RowCells) -> TableResult<()> {
        self.overlay().write_row(table, row.text()?, row.text()?.into_bytes());
        Ok(())
    }

    fn write_handler(&mut self, mut row: RowCells) -> TableResult<()> {
        let (id, _name, def, is_defined) = (row.number()?.to_string(), row.text()?, row.text()?, row.flag()?);
        let (rate_limiter, gaps) = (row.text()?, row.text()?);
        self.overlay().write_row(
            Table::Handlers,
            &id,
            rows::encode_json(&RawHandler { def: raw_json(def)?, is_defined })?,
        );
        if !rate_limiter.is_empty() {
            self.overlay().write_row(Table::RateLimiters, &id, rate_limiter.into_bytes());
        }
        self.overlay().write_row(Table::HandlerGaps, &id, gaps.into_bytes());
        Ok(())
    }

    fn write_queue(&mut self, mut row: RowCells) -> TableResult<()> {
        let (id, handler, tenant) = (row.number()?, row.number()?, row.tenant()?);
        let subject = QueueSubject::from_text(&row.text()?).map_err(Fault::damaged)?;
        let counts = QueueCounts {
            ready: row.number()?,
            waiting: row.number()?,
            scheduled: row.number()?,
            running: row.number()?,
            halted: row.number()?,
            missing: row.number()?,
        };
        self.overlay().write_row(
            Table::Queues,
            id.to_string(),
            rows::encode_queue(handler, &tenant, &subject),
        );
        self.overlay().write_row(Table::QueueCounts, id.to_string(), rows::encode_queue_counts(&counts));
        self.tables
            .update_store_state(|store_state| store_state.last_queue_id = store_state.last_queue_id.max(id));
        Ok(())
    }

    fn write_chain(&mut self, mut row: RowCells) -> TableResult<()> {
        let (path, chain, is_defined, state) = (row.text()?, row.text()?, row.flag()?, row.text()?);
        let entry = RawChain { chain: raw_json(chain)?, is_defined, state: raw_json(state)? };
        self.overlay().write_row(Table::Chains, &path, rows::encode_json(&entry)?);
        if let Some(last_order) = row.optional_number()? {
            self.overlay().write_row(
                Table::PendingChainReevaluations,
                &path,
                last_order.to_string().into_bytes(),
            );
        }
        Ok(())
    }

    fn write_node(&mut self, mut row: RowCells) -> TableResult<()> {
        let (id, name, joined_at) = (row.number()?, row.text()?, row.number()?);
        let (last_heartbeat_at, has_left, capabilities) = (row.number()?, row.flag()?, row.text()?);
        let node =
            NodeRow { name: &name, joined_at, last_heartbeat_at, has_left, capabilities_json: &capabilities }
                .encode();
        self.overlay().write_row(Table::Nodes, id.to_string(), node);
        Ok(())
    }

    fn write_schedule(&mut self, mut row: RowCells) -> TableResult<()> {
        let (name, expression, processed_up_to) = (row.text()?, row.text()?, row.time()?);
        let (next_catch_up, last_event, last_registered_at) =
            (row.optional_time()?, row.optional_event_id()?, row.time()?);
        let schedule =
            ScheduleRow { expression, processed_up_to, next_catch_up, last_registered_at, last_event };
        self.tables.write_schedule(&name, &schedule)
    }

    fn write_event(&mut self, row: RowCells) -> TableResult<()> {
        let JournaledEvent { event, first_task, task_count } = decode_event_row(row)?;
        let mut number = NO_EVENT_NUMBER;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            if event.id > counters.expired_up_to {
                counters.journaled_event_count += 1;
                number = counters.journaled_event_count;
            }
        });
        let task_count = usize::try_from(task_count).map_err(Fault::damaged)?;
        self.tables.insert_event(&event, number, first_task, task_count)
    }

    fn write_object(&mut self, mut row: RowCells) -> TableResult<()> {
        let (tenant, key, number) = (row.tenant()?, row.text()?, row.number()?);
        let (last, sent) =
            (EventId::from_i64(row.number()?), ObjectRow::decode_last_sent_events(&row.bytes()?));
        let retention_check = EventId::from_i64(row.number()?);
        self.tables.insert_object(
            &tenant,
            &key,
            &ObjectRow { number, last_event: last, last_sent_events: sent },
            retention_check,
        );
        Ok(())
    }

    fn write_task(&mut self, row: RowCells) -> TableResult<()> {
        let (active, due) = decode_active_task_row(row)?;
        self.tables.insert_active_task(&active)?;
        if due != active.due_time() {
            let (bucket, field) = task_bucket_and_field(active.seq);
            self.overlay().write_row(
                Table::ActiveTasks(bucket),
                field,
                rows::encode_active_task_with_due_time(&active, due),
            );
        }
        Ok(())
    }

    fn write_order(&mut self, row: RowCells) -> TableResult<()> {
        let row = decode_order_row(row)?;
        self.tables.insert_order(row.number, &row.order)?;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            counters.last_order = counters.last_order.max(row.number);
        });
        Ok(())
    }

    fn write_attempt(&mut self, mut row: RowCells) -> TableResult<()> {
        let (task, number) = (TaskSeq(row.number()?), row.bounded_number()?);
        let (started_at, ended_at, outcome) =
            (row.time()?, row.time()?, decode_attempt_outcome(row.number()?)?);
        let error = row.optional_text()?;
        self.tables.write_attempt(&AttemptRow {
            task,
            number,
            started_at,
            ended_at,
            outcome,
            error: error.as_deref(),
        })
    }

    /// Writes log lines, which are passed in the order of their tasks and numbers.
    fn write_log_lines(&mut self, rows: impl Iterator<Item = TableResult<RowCells>>) -> TableResult<()> {
        let mut logs: BTreeMap<TaskSeq, Vec<LogLine>> = BTreeMap::new();
        for row in rows {
            let (task, line) = decode_log_line_row(row?)?;
            logs.entry(task).or_default().push(line);
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

    fn write_idempotency_record(&mut self, mut row: RowCells) -> TableResult<()> {
        let (tenant, key, digest) = (row.tenant()?, row.text()?, row.bytes()?);
        let digest = digest.try_into().map_err(|_| Fault::damaged("the digest of an idempotency record"))?;
        let (reply, at) = (row.text()?, row.time()?);
        self.tables.write_idempotency_record(
            &IdempotencyKey { tenant, key, request_digest: digest },
            &reply,
            at,
        )
    }

    fn write_fire(&mut self, mut row: RowCells) -> TableResult<()> {
        let (schedule, planned, at) = (row.text()?, row.time()?, row.time()?);
        let outcome = serde_json::from_str(&row.text()?).map_err(Fault::damaged)?;
        let (event, task) = (row.optional_event_id()?, row.optional_text()?);
        let task = task.map(|task| TaskId::from_text(&task));
        self.tables.insert_fire(
            &schedule,
            &Fire { planned_at: planned, recorded_at: at, outcome, event_id: event, task },
        )
    }

    fn write_audit_entry(&mut self, mut row: RowCells) -> TableResult<()> {
        let (number, at): (i64, Timestamp) = (row.number()?, row.time()?);
        let (actor, action, target, detail) = (row.text()?, row.text()?, row.text()?, row.text()?);
        self.overlay().write_row(
            Table::AuditEntries,
            number.to_string(),
            rows::encode_audit_entry(&AuditEntry { at, actor, action, target, detail }),
        );
        self.tables.update_store_state(|store_state| {
            store_state.last_audit_entry_number = store_state.last_audit_entry_number.max(number)
        });
        Ok(())
    }
}

/// Wraps JSON without changing it.
fn raw_json(json: String) -> TableResult<Box<RawValue>> {
    RawValue::from_string(json).map_err(Fault::damaged)
}
