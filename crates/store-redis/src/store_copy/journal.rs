//! Copies the journal and the counters.

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::columns::{Columns as _, CounterColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CursorValue};

use super::RedisStoreCopy;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::Index;
use crate::overlay::{Bytes, decode_integer, decode_journal_entries, decode_strings, end_of_prefix};
use crate::read::ChunkSize;
use crate::rows;
use crate::{SALT_TEXT_NAME, TASK_ID_NAMESPACE_TEXT_NAME};

/// Number of expired events that are still stored, and how many of them active tasks need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpiredEventCounts {
    stored: u64,
    needed_by_active_tasks: u64,
}

impl RedisStoreCopy {
    /// Reads the row of counters. The newest event is read from the journal: the last assigned id may have no event.
    pub(super) fn read_counters(&mut self) -> TableResult<CopyRow> {
        let store_state = self.read_store_state()?;
        let counters = store_state.counters;
        let (journal_length, expired) = (self.journal_length()?, self.count_expired_events()?);
        let newest = decode_journal_entries(self.execute(args![
            "XREVRANGE",
            self.keys().journal_key(),
            "+",
            "-",
            "COUNT",
            "1"
        ])?)?;
        let newest = newest.first().map_or(EventId::ZERO, |(id, _)| *id);
        let unexpired_count = i64::try_from(journal_length - expired.stored).map_err(Fault::damaged)?;
        Ok(CopyRow::Counters(CounterColumns {
            task_id_namespace: self.overlay().read_named_number(TASK_ID_NAMESPACE_TEXT_NAME)?.cast_signed(),
            salt: self.overlay().read_named_number(SALT_TEXT_NAME)?.cast_signed(),
            last_event: newest.max(counters.expired_up_to).as_i64(),
            expired_up_to: counters.expired_up_to.as_i64(),
            expired_events: counters.journaled_event_count - unexpired_count,
            journaled_events: counters.journaled_event_count,
            last_task: counters.last_task,
            last_fence: counters.last_fence,
            last_object: counters.last_object,
            archived_tasks: counters.archived_task_count,
            last_node: store_state.last_node_id,
        }))
    }

    pub(super) fn count_events(&mut self) -> TableResult<u64> {
        let expired = self.count_expired_events()?;
        Ok(self.journal_length()? - expired.stored + expired.needed_by_active_tasks)
    }

    fn journal_length(&mut self) -> TableResult<u64> {
        Ok(decode_integer(self.execute(args!["XLEN", self.keys().journal_key()])?)?.unsigned_abs())
    }

    fn count_expired_events(&mut self) -> TableResult<ExpiredEventCounts> {
        if let Some(expired) = self.cached_counts.expired_events {
            return Ok(expired);
        }
        let expired_up_to = self.read_store_state()?.counters.expired_up_to;
        let (mut expired, mut after, mut chunk) =
            (ExpiredEventCounts::default(), EventId::ZERO, ChunkSize::for_limit(usize::MAX));
        while after < expired_up_to {
            let found = self.read_events_after(after, expired_up_to, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.next_after(total_bytes(&found));
            expired.stored += found.len() as u64;
            expired.needed_by_active_tasks += self.filter_events_needed_by_active_tasks(found)?.len() as u64;
        }
        self.cached_counts.expired_events = Some(expired);
        Ok(expired)
    }

    /// Reads events that have not expired, and expired ones that active tasks need.
    pub(super) fn read_page_of_events(&mut self, after: Option<&CopyCursor>) -> TableResult<CopyPage> {
        let expired_up_to = self.read_store_state()?.counters.expired_up_to;
        let after = after.and_then(|cursor| cursor.first()).and_then(CursorValue::as_number);
        let mut after = after.map_or(EventId::ZERO, EventId::from_i64);
        let (mut page, mut chunk) = (CopyPage::default(), ChunkSize::for_limit(usize::MAX));
        while !page.is_full() {
            let mut found = self.read_events_after(after, EventId::MAX, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.next_after(total_bytes(&found));
            let unexpired = found.split_off(found.partition_point(|(id, _)| *id <= expired_up_to));
            let mut events = self.filter_events_needed_by_active_tasks(found)?;
            events.extend(unexpired);
            for (id, row) in events {
                let event = rows::decode_event(id, &row)?.into_owned();
                page.push_row(vec![CursorValue::Number(event.id)], event.into());
            }
        }
        Ok(page)
    }

    fn read_events_after(
        &mut self,
        after: EventId,
        last: EventId,
        chunk: ChunkSize,
    ) -> TableResult<Vec<(EventId, Bytes)>> {
        let (from, to) = (format!("({after}-0"), format!("{last}-0"));
        decode_journal_entries(self.execute(args![
            "XRANGE",
            self.keys().journal_key(),
            from,
            to,
            "COUNT",
            chunk.rows().to_string()
        ])?)
    }

    /// Returns those of these events that active tasks need.
    fn filter_events_needed_by_active_tasks(
        &mut self,
        events: Vec<(EventId, Bytes)>,
    ) -> TableResult<Vec<(EventId, Bytes)>> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        let out_of_order: Vec<CommandArgs> =
            events.iter().map(|(id, _)| self.out_of_order_tasks_command(*id)).collect();
        let mut tasks: Vec<Vec<TaskSeq>> = Vec::with_capacity(events.len());
        for ((id, row), out_of_order) in
            events.iter().zip(self.overlay().connection.execute_all(&out_of_order)?)
        {
            let out_of_order = decode_strings(out_of_order)?;
            let out_of_order = out_of_order.iter().map(|member| decode_member_i64(member, 1).map(TaskSeq));
            let created = rows::decode_event(*id, row)?.task_seqs().map(Ok);
            tasks.push(created.chain(out_of_order).collect::<TableResult<_>>()?);
        }
        self.overlay().prefetch_active_tasks(&tasks.concat())?;
        let mut needed = Vec::new();
        for (event, tasks) in events.into_iter().zip(tasks) {
            if !self.overlay().read_active_tasks(tasks)?.is_empty() {
                needed.push(event);
            }
        }
        self.overlay().mark_committed();
        Ok(needed)
    }

    /// Returns the command that reads the out-of-order tasks of an event, active or archived.
    fn out_of_order_tasks_command(&self, event: EventId) -> CommandArgs {
        let from = MemberBuilder::from_i64(event.as_i64()).finish();
        let to = end_of_prefix(&from).map_or(b"+".to_vec(), |end| [b"(", &*end].concat());
        args!["ZRANGE", self.keys().index_key(&Index::OutOfOrderTasks), [b"[", &*from].concat(), to, "BYLEX"]
    }
}

fn total_bytes(events: &[(EventId, Bytes)]) -> usize {
    events.iter().map(|(_, bytes)| bytes.len()).sum()
}
