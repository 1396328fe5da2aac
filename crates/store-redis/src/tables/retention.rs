//! Retention: deletes expired rows, a limited number per transaction.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::row::ArchivedTaskRow;

use super::RedisTables;
use crate::codec::{MemberBuilder, decimal_field, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table, bucket_and_field};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, ScanOrder, decode_strings};
use crate::{rows, task_indexes};

/// Maximum number of rows per transaction, because emits wait for it.
const MAX_ROWS_PER_STEP: usize = 500;
/// Maximum number of buckets of archived tasks that one transaction scans.
const MAX_BUCKETS_PER_STEP: usize = 4;
/// Number of audit entries that are read first: usually few have expired.
const FIRST_AUDIT_BATCH: i64 = 16;
/// Maximum number of arguments of one command.
const MAX_ARGS_PER_COMMAND: usize = 1_000;

const UNBOUNDED: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

impl RedisTables {
    pub(super) fn expire_events(
        &self,
        after: EventId,
        expired_up_to: EventId,
    ) -> Result<(u64, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let events =
            self.overlay.read_events(from, expired_up_to, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let go_on = events.last().filter(|_| events.len() == MAX_ROWS_PER_STEP).map(|(id, _)| *id);
        let mut found = Vec::with_capacity(events.len());
        for (id, row) in &events {
            found.push(rows::decode_event(*id, row)?);
        }
        let own: Vec<TaskSeq> = found.iter().flat_map(|journaled| journaled.task_seqs()).collect();
        self.overlay.prefetch_active_tasks(&own)?;
        let mut dropped = 0;
        for journaled in found {
            if !self.has_unfinished_tasks(&journaled)? {
                self.overlay.delete_event(journaled.event.id);
                dropped += 1;
            }
        }
        self.delete_expired_number_samples(expired_up_to)?;
        if dropped > 0 {
            self.delete_expired_causes(expired_up_to);
        }
        Ok((dropped, go_on))
    }

    /// Deletes the cause index of expired events.
    fn delete_expired_causes(&self, expired_up_to: EventId) {
        let end = [b"(", &*MemberBuilder::from_i64(expired_up_to.as_i64() + 1).finish()].concat();
        self.overlay.add_command(args![
            "ZREMRANGEBYLEX",
            self.overlay.keys.index_key(&Index::CausedEvents),
            "-",
            end
        ]);
    }

    /// Deletes expired number samples except the last, which has the number of events before it.
    fn delete_expired_number_samples(&self, expired_up_to: EventId) -> Result<()> {
        let samples = self.overlay.read_members(
            &Index::EventNumberSamples,
            UNBOUNDED,
            ScanOrder::Ascending,
            MAX_ROWS_PER_STEP,
        )?;
        let mut old = Vec::new();
        for sample in samples {
            if decode_member_i64(&sample, 1)? > expired_up_to.as_i64() {
                break;
            }
            old.push(sample);
        }
        old.pop();
        old.into_iter().for_each(|sample| self.overlay.remove_member(Index::EventNumberSamples, sample));
        Ok(())
    }

    pub(super) fn expire_archived_tasks(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let buckets = self.overlay.read_members(
            &Index::ArchivedTaskBuckets,
            UNBOUNDED,
            ScanOrder::Ascending,
            MAX_BUCKETS_PER_STEP,
        )?;
        let (mut expired, mut looked_at, many) =
            (ExpiredTaskKeys::default(), 0, buckets.len() == MAX_BUCKETS_PER_STEP);
        for member in buckets {
            for archived in self.overlay.read_archived_bucket(decode_member_i64(&member, 0)?)? {
                // Later tasks were journaled later.
                let journaled = archived.event.map_or(archived.created_at, EventId::timestamp);
                if expired.tasks >= MAX_ROWS_PER_STEP || (expired.tasks >= surplus && journaled >= before) {
                    return Ok((self.delete_collected_keys(&expired), expired.tasks >= MAX_ROWS_PER_STEP));
                }
                looked_at += 1;
                if looked_at <= surplus || archived.finished_at < before {
                    self.expire_archived_task(&archived, &mut expired)?;
                }
            }
        }
        Ok((self.delete_collected_keys(&expired), many && expired.tasks > 0))
    }

    /// Deletes an archived task, and collects the keys of its attempts, log and document 002.
    fn expire_archived_task(&self, archived: &ArchivedTaskRow, expired: &mut ExpiredTaskKeys) -> Result<()> {
        expired.tasks += 1;
        expired.keys.push(self.overlay.keys.table_key(&Table::Attempts(archived.seq)));
        expired.keys.extend(self.read_task_log_key(archived.seq)?);
        if let Some([key, history, id]) = self.sync_task_keys(archived)? {
            expired.keys.push(key);
            expired.histories.entry(history).or_default().push(id);
        }
        let (bucket, field) = bucket_and_field(archived.seq);
        self.overlay.delete_row(Table::ArchivedTasks(bucket), field);
        task_indexes::archived_task_entries(archived)
            .into_iter()
            .for_each(|(index, member)| self.overlay.remove_member(index, member));
        Ok(())
    }

    /// Deletes the collected keys; returns the number of tasks.
    fn delete_collected_keys(&self, expired: &ExpiredTaskKeys) -> u64 {
        for keys in expired.keys.chunks(MAX_ARGS_PER_COMMAND) {
            self.overlay.add_command([&args!["UNLINK"], keys].concat());
        }
        for (history, ids) in &expired.histories {
            for ids in ids.chunks(MAX_ARGS_PER_COMMAND) {
                self.overlay.add_command([&args!["ZREM", history], ids].concat());
            }
        }
        expired.tasks as u64
    }

    pub(super) fn expire_idempotency_records(&self, before: Timestamp) -> Result<bool> {
        self.expire_rows_by_age(&Table::IdempotencyRecords, &Index::IdempotencyRecordsByAge, before)
    }

    pub(super) fn expire_ended_orders(&self, before: Timestamp) -> Result<bool> {
        self.expire_rows_by_age(&Table::EndedOrders, &Index::EndedOrdersByAge, before)
    }

    /// Deletes rows older than `before` by an index of time and field; returns whether there may be more.
    fn expire_rows_by_age(&self, table: &Table, by_age: &Index, before: Timestamp) -> Result<bool> {
        let end = MemberBuilder::from_i64(before.micros()).finish();
        let old = (Bound::Unbounded, Bound::Excluded(&*end));
        let old = self.overlay.read_members(by_age, old, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let more = old.len() == MAX_ROWS_PER_STEP;
        for member in old {
            self.overlay.delete_row(table.clone(), member.get(8..).unwrap_or_default());
            self.overlay.remove_member(by_age.clone(), member);
        }
        Ok(more)
    }

    pub(super) fn expire_records(&self, before: Timestamp) -> Result<bool> {
        let fires = self.expire_fires(before)?;
        for node in self.overlay.read_all_nodes(false)? {
            if node.gone && node.last_heartbeat_at < before {
                self.overlay.delete_row(Table::Nodes, node.id.to_string());
            }
        }
        Ok(self.expire_audit_entries(before)? || fires)
    }

    fn expire_fires(&self, before: Timestamp) -> Result<bool> {
        let end = MemberBuilder::from_i64(before.micros()).finish();
        let old = (Bound::Unbounded, Bound::Excluded(&*end));
        let old =
            self.overlay.read_members(&Index::FiresByAge, old, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let more = old.len() == MAX_ROWS_PER_STEP;
        for member in old {
            let planned = decode_member_i64(&member, 1)?;
            let schedule = rows::decode_text(member.get(16..).unwrap_or_default())?;
            self.overlay.delete_row(Table::Fires(schedule.clone()), planned.to_string());
            self.overlay.remove_member(Index::FireTimes(schedule), MemberBuilder::from_i64(planned).finish());
            self.overlay.remove_member(Index::FiresByAge, member);
        }
        Ok(more)
    }

    /// Audit entries have ascending numbers, so the oldest are first. Missing numbers are skipped.
    fn expire_audit_entries(&self, before: Timestamp) -> Result<bool> {
        let (first, end) = (self.read_first_audit_entry()?, self.store_state.borrow().last_audit_entry + 1);
        let (mut next, mut step, last) =
            (first, FIRST_AUDIT_BATCH, end.min(first + MAX_ROWS_PER_STEP as i64));
        let mut still_there = None;
        while next < last {
            let some = next..last.min(next + step);
            let row = |n: i64| CacheFetch::Row(Table::AuditEntries, decimal_field(n));
            self.overlay.fetch(some.clone().map(row).collect())?;
            for n in some {
                let row = self.overlay.read_row(Table::AuditEntries, n.to_string())?;
                let Some(entry) = row.map(|row| rows::decode_audit_entry(&row)).transpose()? else {
                    continue;
                };
                // The deletion is undone if the commit fails.
                still_there = still_there.or(Some(n));
                if entry.at >= before {
                    self.first_audit_entry.set(still_there);
                    return Ok(false);
                }
                self.overlay.delete_row(Table::AuditEntries, n.to_string());
            }
            (next, step) = (next + step, step * 4);
        }
        self.first_audit_entry.set(still_there.or(Some(last)));
        Ok(last < end)
    }

    /// Reads the number of the first audit entry.
    fn read_first_audit_entry(&self) -> Result<i64> {
        if let Some(known) = self.first_audit_entry.get() {
            return Ok(known);
        }
        let fields = decode_strings(
            self.overlay
                .connection
                .execute(args!["HKEYS", self.overlay.keys.table_key(&Table::AuditEntries)])?,
        )?;
        let numbers: Vec<i64> = fields.iter().map(|field| parse_number(field)).collect::<Result<_>>()?;
        Ok(numbers.into_iter().min().unwrap_or(self.store_state.borrow().last_audit_entry + 1))
    }
}

/// Keys of expired tasks that are not rows of a table.
#[derive(Debug, Default)]
struct ExpiredTaskKeys {
    tasks: usize,
    keys: CommandArgs,
    /// History keys and the members to remove.
    histories: BTreeMap<Vec<u8>, CommandArgs>,
}
