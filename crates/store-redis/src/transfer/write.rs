//! Writing rows: a page and its note in one transaction.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::fire::Fire;
use pointsman_core::store::{Deed, Idempotency};
use pointsman_core::task::{LogLine, QueueOf};
use pointsman_core::{EventId, TaskId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{AttemptRow, Counts, Object, ScheduleRow, end_of};
use pointsman_store::tables::{Counters, Tables};
use pointsman_store::transfer::{NOTE, Row, Section};
use serde_json::value::RawValue;

use super::cells::Cells;
use super::columns::{ended_order_of, event_of, line_of, live_of, order_of, past_of, rule_of};
use super::read::{RawChain, RawHandler};
use super::{RedisMove, Seen};
use crate::codec::MemberBuilder;
use crate::connection::args;
use crate::error::refused;
use crate::keys::{Index, Table, bucket_and_field};
use crate::memory_usage::MemoryUsage;
use crate::overlay::{Way, decode_text_reply};
use crate::rows::{self, JournaledEvent, NodeRow};
use crate::store_state::StoreState;
use crate::tables::schedules::StoredSchedule;

const UNBOUNDED: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
/// The number of an event that is forgotten, though it lies there still.
const UNNUMBERED: i64 = -1;

impl RedisMove {
    pub(super) fn write_page(&mut self, section: Section, rows: Vec<Row>, note: &str) -> Result<bool> {
        self.has_room()?;
        self.in_transaction(|store| {
            store.put_rows(section, rows)?;
            store.overlay().write_row(Table::Texts, NOTE, note.into());
            Ok(())
        })
    }

    /// All is there: what hangs on all of it is set, and the note goes.
    pub(super) fn end(&mut self) -> Result<bool> {
        self.in_transaction(|store| {
            let next_due = store.tables.earliest_due()?;
            store.tables.update_store_state(|store_state| store_state.counters.next_due = next_due);
            store.overlay().delete_row(Table::Texts, NOTE);
            Ok(())
        })
    }

    /// False if somebody else has written since: then nothing is.
    fn in_transaction(&mut self, write: impl FnOnce(&Self) -> Result<()>) -> Result<bool> {
        if !self.tables.begin_page(self.point)? {
            return Ok(false);
        }
        let committed = write(self).and_then(|()| self.tables.commit_page());
        match committed {
            Ok(point) => self.point = point,
            Err(fault) => {
                self.tables.roll_back();
                return Err(fault);
            }
        }
        (self.seen, self.shelf) = (Seen::default(), None);
        Ok(true)
    }

    /// A commit is taken however full the server is, so that nodes can work off what there is. A move would fill it.
    fn has_room(&self) -> Result<()> {
        let info = decode_text_reply(self.execute(args!["INFO", "memory"])?)?;
        match MemoryUsage::parse(&info).describe_full() {
            Some(reason) => Err(refused(reason)),
            None => Ok(()),
        }
    }

    fn put_rows(&self, section: Section, rows: Vec<Row>) -> Result<()> {
        let mut cells = rows.into_iter().map(|row| Cells::of(section, row));
        match section {
            Section::Counters => cells.try_for_each(|row| self.put_counters(row?)),
            Section::Texts => cells.try_for_each(|row| self.put_text(Table::Texts, row?)),
            Section::Handlers => cells.try_for_each(|row| self.put_handler(row?)),
            Section::Queues => cells.try_for_each(|row| self.put_queue(row?)),
            Section::Chains => cells.try_for_each(|row| self.put_chain(row?)),
            Section::Rules => cells.try_for_each(|row| self.tables.put_rule(&rule_of(row?)?)),
            Section::Files => cells.try_for_each(|row| self.put_text(Table::FileDigests, row?)),
            Section::Nodes => cells.try_for_each(|row| self.put_node(row?)),
            Section::Schedules => cells.try_for_each(|row| self.put_schedule(row?)),
            Section::Journal => cells.try_for_each(|row| self.put_event(row?)),
            Section::Objects => cells.try_for_each(|row| self.put_object(row?)),
            Section::Tasks => {
                self.know_names()?;
                cells.try_for_each(|row| self.put_task(row?))
            }
            Section::Orders => cells.try_for_each(|row| self.put_order(row?)),
            Section::EndedOrders => {
                cells.try_for_each(|row| self.tables.put_ended_order(&ended_order_of(row?)?))
            }
            Section::History => {
                self.know_names()?;
                cells.try_for_each(|row| self.tables.insert_ended(&past_of(row?)?))
            }
            Section::Attempts => cells.try_for_each(|row| self.put_attempt(row?)),
            Section::Logs => self.put_lines(cells),
            Section::Answers => cells.try_for_each(|row| self.put_answer(row?)),
            Section::Fires => cells.try_for_each(|row| self.put_fire(row?)),
            Section::Deeds => cells.try_for_each(|row| self.put_deed(row?)),
            Section::Receipts | Section::Keys | Section::Refused | Section::Ahead => {
                Err(Fault::damaged(format!("no place for {section}")))
            }
        }
    }

    /// Events are counted as they come, and so are the numbers of what else is numbered here.
    fn put_counters(&self, mut row: Cells) -> Result<()> {
        let (realm, salt) = (row.number()?.cast_unsigned(), row.number()?.cast_unsigned());
        let (last, forgotten) = (EventId::from_i64(row.number()?), EventId::from_i64(row.number()?));
        let (unseen, _journaled) = (row.number()?, row.number()?);
        let counters = Counters {
            last_event: last,
            forgotten,
            tasks: row.number()?,
            fences: row.number()?,
            objects: row.number()?,
            orders: 0,
            journaled: unseen,
            ended: row.number()?,
            next_due: None,
        };
        let nodes = row.number()?;
        for (name, number) in [("realm", realm), ("salt", salt)] {
            self.overlay().write_row(Table::Texts, name, number.to_string().into_bytes());
        }
        self.tables.update_store_state(|store_state| {
            *store_state = StoreState {
                counters,
                last_node: nodes,
                last_queue: 0,
                last_audit_entry: 0,
                ..store_state.clone()
            };
        });
        self.clear()?;
        if unseen > 0 {
            self.overlay().add_member(
                Index::EventNumberSamples,
                MemberBuilder::from_i64(unseen).push_i64(forgotten.as_i64()).finish(),
            );
        }
        Ok(())
    }

    /// Where nothing is remembered, forgotten events may lie all the same.
    fn clear(&self) -> Result<()> {
        for mark in self.overlay().read_members(&Index::EventNumberSamples, UNBOUNDED, Way::Up, usize::MAX)? {
            self.overlay().remove_member(Index::EventNumberSamples, mark);
        }
        self.overlay().add_command(args![
            "DEL",
            self.keys().journal_key(),
            self.keys().index_key(&Index::CausedEvents)
        ]);
        Ok(())
    }

    fn put_text(&self, table: Table, mut row: Cells) -> Result<()> {
        self.overlay().write_row(table, row.text()?, row.text()?.into_bytes());
        Ok(())
    }

    fn put_handler(&self, mut row: Cells) -> Result<()> {
        let (id, _name, def, defined) = (row.number()?.to_string(), row.text()?, row.text()?, row.flag()?);
        let (pace, gaps) = (row.text()?, row.text()?);
        self.overlay().write_row(
            Table::Handlers,
            &id,
            rows::encode_json(&RawHandler { def: raw(def)?, defined })?,
        );
        if !pace.is_empty() {
            self.overlay().write_row(Table::RateLimiters, &id, pace.into_bytes());
        }
        self.overlay().write_row(Table::HandlerGaps, &id, gaps.into_bytes());
        Ok(())
    }

    fn put_queue(&self, mut row: Cells) -> Result<()> {
        let (id, handler, tenant) = (row.number()?, row.number()?, row.tenant()?);
        let of = QueueOf::read(&row.text()?).map_err(Fault::damaged)?;
        let counts = Counts {
            ready: row.number()?,
            waiting: row.number()?,
            scheduled: row.number()?,
            running: row.number()?,
            halted: row.number()?,
            missing: row.number()?,
        };
        self.overlay().write_row(Table::Queues, id.to_string(), rows::encode_queue(handler, &tenant, &of));
        self.overlay().write_row(Table::QueueCounts, id.to_string(), rows::encode_counts(&counts));
        self.tables.update_store_state(|store_state| store_state.last_queue = store_state.last_queue.max(id));
        Ok(())
    }

    fn put_chain(&self, mut row: Cells) -> Result<()> {
        let (path, chain, defined, state) = (row.text()?, row.text()?, row.flag()?, row.text()?);
        let entry = RawChain { chain: raw(chain)?, defined, state: raw(state)? };
        self.overlay().write_row(Table::Chains, &path, rows::encode_json(&entry)?);
        if let Some(after) = row.optional_number()? {
            self.overlay().write_row(Table::PendingChainUpdates, &path, after.to_string().into_bytes());
        }
        Ok(())
    }

    fn put_node(&self, mut row: Cells) -> Result<()> {
        let (id, name, joined) = (row.number()?, row.text()?, row.number()?);
        let (heard, gone, abilities) = (row.number()?, row.flag()?, row.text()?);
        let packed = NodeRow { name: &name, joined, heard, gone, abilities: &abilities }.encode();
        self.overlay().write_row(Table::Nodes, id.to_string(), packed);
        Ok(())
    }

    fn put_schedule(&self, mut row: Cells) -> Result<()> {
        let (name, expression, settled) = (row.text()?, row.text()?, row.time()?);
        let (unmet, last_event, named) = (row.optional_time()?, row.optional_event()?, row.time()?);
        let entry = StoredSchedule { row: ScheduleRow { expression, settled, unmet, named }, last_event };
        self.overlay().write_row(Table::Schedules, name, entry.encode());
        Ok(())
    }

    fn put_event(&self, row: Cells) -> Result<()> {
        let JournaledEvent { event, first_task, tasks } = event_of(row)?;
        let mut number = UNNUMBERED;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            if event.id > counters.forgotten {
                counters.journaled += 1;
                number = counters.journaled;
            }
        });
        let tasks = usize::try_from(tasks).map_err(Fault::damaged)?;
        self.tables.insert_event(&event, number, first_task, tasks)
    }

    fn put_object(&self, mut row: Cells) -> Result<()> {
        let (tenant, key, number) = (row.tenant()?, row.text()?, row.number()?);
        let (last, sent) = (EventId::from_i64(row.number()?), Object::decode_sent(&row.bytes()?));
        let checked = EventId::from_i64(row.number()?);
        self.tables.insert_object(&tenant, &key, &Object { number, last, sent }, checked);
        Ok(())
    }

    fn put_task(&self, row: Cells) -> Result<()> {
        let (live, due) = live_of(row)?;
        self.tables.insert_task(&live)?;
        if due != live.due() {
            let (bucket, field) = bucket_and_field(live.seq);
            self.overlay().write_row(
                Table::ActiveTasks(bucket),
                field,
                rows::encode_active_task_with_due(&live, due),
            );
        }
        Ok(())
    }

    fn put_order(&self, row: Cells) -> Result<()> {
        let numbered = order_of(row)?;
        self.tables.insert_order(numbered.n, &numbered.order)?;
        self.tables.update_store_state(|StoreState { counters, .. }| {
            counters.orders = counters.orders.max(numbered.n);
        });
        Ok(())
    }

    fn put_attempt(&self, mut row: Cells) -> Result<()> {
        let (task, number) = (TaskSeq(row.number()?), row.small()?);
        let (started, ended, end) = (row.time()?, row.time()?, end_of(row.number()?)?);
        let error = row.optional_text()?;
        self.tables.put_attempt(&AttemptRow { task, number, started, ended, end, error: error.as_deref() })
    }

    /// Lines come in the order of their tasks, and of their numbers.
    fn put_lines(&self, rows: impl Iterator<Item = Result<Cells>>) -> Result<()> {
        let mut logs: BTreeMap<TaskSeq, Vec<LogLine>> = BTreeMap::new();
        for row in rows {
            let (task, line) = line_of(row?)?;
            logs.entry(task).or_default().push(line);
        }
        let tasks: Vec<TaskSeq> = logs.keys().copied().collect();
        let keys = self.log_keys(&tasks)?;
        for (task, lines) in logs {
            let key = keys.get(&task);
            let key = key.ok_or_else(|| Fault::damaged(format!("a log of no task {}", task.0)))?;
            self.tables.write_log_lines(key, lines)?;
        }
        Ok(())
    }

    fn put_answer(&self, mut row: Cells) -> Result<()> {
        let (tenant, key, digest) = (row.tenant()?, row.text()?, row.bytes()?);
        let digest = digest.try_into().map_err(|_| Fault::damaged("the digest of an answer"))?;
        let (answer, at) = (row.text()?, row.time()?);
        self.tables.put_answer(&Idempotency { tenant, key, digest }, &answer, at)
    }

    fn put_fire(&self, mut row: Cells) -> Result<()> {
        let (schedule, planned, at) = (row.text()?, row.time()?, row.time()?);
        let outcome = serde_json::from_str(&row.text()?).map_err(Fault::damaged)?;
        let (event, task) = (row.optional_event()?, row.optional_text()?);
        let task = task.map(|task| TaskId::from_text(&task));
        self.tables.write_fire_row(&schedule, &Fire { planned, at, outcome, event, task })
    }

    fn put_deed(&self, mut row: Cells) -> Result<()> {
        let (n, at): (i64, Timestamp) = (row.number()?, row.time()?);
        let (by, action, what, detail) = (row.text()?, row.text()?, row.text()?, row.text()?);
        self.overlay().write_row(
            Table::AuditEntries,
            n.to_string(),
            rows::encode_audit_entry(&Deed { at, by, action, what, detail }),
        );
        self.tables.update_store_state(|store_state| {
            store_state.last_audit_entry = store_state.last_audit_entry.max(n)
        });
        Ok(())
    }
}

/// JSON as it was written.
fn raw(json: String) -> Result<Box<RawValue>> {
    RawValue::from_string(json).map_err(Fault::damaged)
}
