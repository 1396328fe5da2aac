//! Copies the journal and the counters.

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::error::{Fault, Result};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CopyValue};

use super::RedisStoreCopy;
use super::cells::copy_row;
use super::columns::encode_event_row;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::Index;
use crate::overlay::{Bytes, decode_integer, decode_journal_entries, decode_strings, end_of_prefix};
use crate::read::ChunkSize;
use crate::rows::{self, JournaledEvent};
use crate::{SALT_TEXT, TASK_ID_NAMESPACE_TEXT};

/// Number of expired events that are still stored, and of those that active tasks need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpiredEventCounts {
    stored: u64,
    needed: u64,
}

impl RedisStoreCopy {
    /// Reads the row of counters. The newest event is read from the journal: the last assigned id may have no event.
    pub(super) fn read_counters(&mut self) -> Result<CopyRow> {
        let store_state = self.read_store_state()?;
        let counters = store_state.counters;
        let (all, old) = (self.journal_length()?, self.count_expired_events()?);
        let newest = decode_journal_entries(self.execute(args![
            "XREVRANGE",
            self.keys().journal_key(),
            "+",
            "-",
            "COUNT",
            "1"
        ])?)?;
        let newest = newest.first().map_or(EventId::ZERO, |(id, _)| *id);
        let later_events = i64::try_from(all - old.stored).map_err(Fault::damaged)?;
        Ok(copy_row![
            self.overlay().read_number(TASK_ID_NAMESPACE_TEXT)?.cast_signed(),
            self.overlay().read_number(SALT_TEXT)?.cast_signed(),
            newest.max(counters.expired_up_to),
            counters.expired_up_to,
            counters.journaled_event_count - later_events,
            counters.journaled_event_count,
            counters.last_task,
            counters.last_fence,
            counters.last_object,
            counters.archived_task_count,
            store_state.last_node,
        ])
    }

    pub(super) fn count_events(&mut self) -> Result<u64> {
        let old = self.count_expired_events()?;
        Ok(self.journal_length()? - old.stored + old.needed)
    }

    fn journal_length(&self) -> Result<u64> {
        Ok(decode_integer(self.execute(args!["XLEN", self.keys().journal_key()])?)?.unsigned_abs())
    }

    fn count_expired_events(&mut self) -> Result<ExpiredEventCounts> {
        if let Some(old) = self.cached_counts.expired_events {
            return Ok(old);
        }
        let expired_up_to = self.read_store_state()?.counters.expired_up_to;
        let (mut old, mut after, mut chunk) =
            (ExpiredEventCounts::default(), EventId::ZERO, ChunkSize::for_limit(usize::MAX));
        while after < expired_up_to {
            let found = self.read_events_after(after, expired_up_to, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.next_after(total_bytes(&found));
            old.stored += found.len() as u64;
            old.needed += self.filter_needed_events(found)?.len() as u64;
        }
        self.cached_counts.expired_events = Some(old);
        Ok(old)
    }

    /// Reads events that have not expired, and expired ones that active tasks need.
    pub(super) fn read_journal(&self, after: Option<&CopyCursor>) -> Result<CopyPage> {
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
            let mut events = self.filter_needed_events(found)?;
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
        &self,
        after: EventId,
        last: EventId,
        chunk: ChunkSize,
    ) -> Result<Vec<(EventId, Bytes)>> {
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

    /// Returns the events that active tasks need.
    fn filter_needed_events(&self, events: Vec<(EventId, Bytes)>) -> Result<Vec<JournaledEvent>> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        let mut found = Vec::with_capacity(events.len());
        for (id, bytes) in &events {
            found.push(rows::decode_event(*id, bytes)?);
        }
        let late: Vec<CommandArgs> =
            found.iter().map(|event| self.late_tasks_command(event.event.id)).collect();
        let mut tasks: Vec<Vec<TaskSeq>> = Vec::with_capacity(found.len());
        for (event, late) in found.iter().zip(self.overlay().connection.execute_all(&late)?) {
            let late = decode_strings(late)?;
            let late = late.iter().map(|member| decode_member_i64(member, 1).map(TaskSeq));
            tasks.push(event.task_seqs().map(Ok).chain(late).collect::<Result<_>>()?);
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

    /// Returns the command that reads the late tasks of an event, active or archived.
    fn late_tasks_command(&self, event: EventId) -> CommandArgs {
        let from = MemberBuilder::from_i64(event.as_i64()).finish();
        let to = end_of_prefix(&from).map_or(b"+".to_vec(), |end| [b"(", &*end].concat());
        args!["ZRANGE", self.keys().index_key(&Index::LateTasks), [b"[", &*from].concat(), to, "BYLEX"]
    }
}

fn total_bytes(events: &[(EventId, Bytes)]) -> usize {
    events.iter().map(|(_, bytes)| bytes.len()).sum()
}
