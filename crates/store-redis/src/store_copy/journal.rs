//! Copies the journal and the counters.

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CopyValue};

use super::RedisStoreCopy;
use super::cells::copy_row;
use super::row_conversion::encode_event_row;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::Index;
use crate::overlay::{Bytes, decode_integer, decode_journal_entries, decode_strings, end_of_prefix};
use crate::read::ChunkSize;
use crate::rows::{self, JournaledEvent};
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
        Ok(copy_row![
            self.overlay().read_named_number(TASK_ID_NAMESPACE_TEXT_NAME)?.cast_signed(),
            self.overlay().read_named_number(SALT_TEXT_NAME)?.cast_signed(),
            newest.max(counters.expired_up_to),
            counters.expired_up_to,
            counters.journaled_event_count - unexpired_count,
            counters.journaled_event_count,
            counters.last_task,
            counters.last_fence,
            counters.last_object,
            counters.archived_task_count,
            store_state.last_node_id,
        ])
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
        let after = after.and_then(|cursor| cursor.first()).and_then(CopyValue::as_number);
        let mut after = after.map_or(EventId::ZERO, EventId::from_i64);
        let (mut page, mut chunk) = (CopyPage::default(), ChunkSize::for_limit(usize::MAX));
        while !page.is_full() {
            let mut found = self.read_events_after(after, EventId::MAX, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.next_after(total_bytes(&found));
            let unexpired = found.split_off(found.partition_point(|(id, _)| *id <= expired_up_to));
            let mut events = self.filter_events_needed_by_active_tasks(found)?;
            for (id, bytes) in &unexpired {
                events.push(rows::decode_event(*id, bytes)?);
            }
            for event in events {
                page.push_row(copy_row![event.event.id], encode_event_row(event)?);
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
    ) -> TableResult<Vec<JournaledEvent>> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        let mut found = Vec::with_capacity(events.len());
        for (id, bytes) in &events {
            found.push(rows::decode_event(*id, bytes)?);
        }
        let out_of_order: Vec<CommandArgs> =
            found.iter().map(|event| self.out_of_order_tasks_command(event.event.id)).collect();
        let mut tasks: Vec<Vec<TaskSeq>> = Vec::with_capacity(found.len());
        for (event, out_of_order) in found.iter().zip(self.overlay().connection.execute_all(&out_of_order)?) {
            let out_of_order = decode_strings(out_of_order)?;
            let out_of_order = out_of_order.iter().map(|member| decode_member_i64(member, 1).map(TaskSeq));
            tasks.push(event.task_seqs().map(Ok).chain(out_of_order).collect::<TableResult<_>>()?);
        }
        self.overlay().prefetch_active_tasks(&tasks.concat())?;
        let mut needed = Vec::new();
        for (event, tasks) in found.into_iter().zip(tasks) {
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
