//! Retention: deletes expired rows, a limited number per transaction.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::AuditEntryColumns;
use pointsman_store::error::TableResult;
use pointsman_store::row::ArchivedTaskRow;
use pointsman_store::tables::RetentionTables;

use super::RedisTables;
use crate::cells::{LeadingCell, decode_row};
use crate::codec::{MemberBuilder, decode_member_i64, encode_decimal_field};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table, task_bucket_and_field};
use crate::lookup::parse_number;
use crate::overlay::{ALL_MEMBERS, Bytes, CacheFetch, ScanOrder, decode_strings};
use crate::{rows, task_indexes};

/// Maximum number of rows that one transaction deletes, because emits wait for it.
const MAX_ROWS_PER_STEP: usize = 500;

/// Maximum number of buckets of archived tasks that one transaction scans.
const MAX_BUCKETS_PER_STEP: usize = 4;

/// Number of audit entries in the first batch that is read: usually few have expired.
const FIRST_AUDIT_BATCH_SIZE: i64 = 16;

/// Maximum number of keys or members that one command deletes.
const MAX_KEYS_PER_DELETE_COMMAND: usize = 1_000;

impl RetentionTables for RedisTables {
    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let events =
            self.overlay.read_encoded_events(from, expired_up_to, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let continue_after = events.last().filter(|_| events.len() == MAX_ROWS_PER_STEP).map(|(id, _)| *id);
        let mut deleted_count = 0;
        for (id, seqs) in self.decode_and_prefetch_tasks_of_events(&events)? {
            if !self.has_active_tasks(id, seqs)? {
                self.overlay.delete_event(id);
                deleted_count += 1;
            }
        }
        self.delete_expired_event_number_samples(expired_up_to)?;
        if deleted_count > 0 {
            self.delete_expired_caused_event_entries(expired_up_to);
        }
        Ok((deleted_count, continue_after))
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let rows = self.overlay.read_encoded_events(from, up_to, ScanOrder::Ascending, limit)?;
        let next = rows.last().filter(|_| rows.len() >= limit).map(|(id, _)| *id);
        let mut in_use = Vec::with_capacity(rows.len());
        for (id, seqs) in self.decode_and_prefetch_tasks_of_events(&rows)? {
            if self.has_active_tasks(id, seqs)? {
                in_use.push(id);
            }
        }
        Ok((in_use, next))
    }

    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let buckets = self.overlay.read_members(
            &Index::ArchivedTaskBuckets,
            ALL_MEMBERS,
            ScanOrder::Ascending,
            MAX_BUCKETS_PER_STEP,
        )?;
        let (mut expired, mut visited_count, may_have_more_buckets) =
            (ExpiredTaskKeys::default(), 0, buckets.len() == MAX_BUCKETS_PER_STEP);
        for member in buckets {
            for archived in self.overlay.read_archived_tasks_of_bucket(decode_member_i64(&member, 0)?)? {
                // Tasks are visited by number, so the events of later ones were journaled later.
                let journaled = archived.event.map_or(archived.created_at, EventId::timestamp);
                if expired.task_count >= MAX_ROWS_PER_STEP
                    || (expired.task_count >= surplus && journaled >= before)
                {
                    return Ok((
                        self.delete_keys_of_expired_tasks(&expired),
                        expired.task_count >= MAX_ROWS_PER_STEP,
                    ));
                }
                visited_count += 1;
                if visited_count <= surplus || archived.finished_at < before {
                    self.delete_archived_task_and_collect_keys(&archived, &mut expired)?;
                }
            }
        }
        Ok((self.delete_keys_of_expired_tasks(&expired), may_have_more_buckets && expired.task_count > 0))
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        self.delete_expired_rows_by_age(&Table::IdempotencyRecords, &Index::IdempotencyRecordsByAge, before)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        self.delete_expired_rows_by_age(&Table::EndedOrders, &Index::EndedOrdersByAge, before)
    }

    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        let has_more_fires = self.delete_expired_fires(before)?;
        for node in self.overlay.read_all_nodes(false)? {
            if node.has_left_or_died && node.last_heartbeat_at < before {
                self.overlay.delete_row(Table::Nodes, node.id.to_string());
            }
        }
        Ok(self.delete_expired_audit_entries(before)? || has_more_fires)
    }
}

impl RedisTables {
    /// Decodes which tasks were created with each of these events, and fetches those that are active into the cache.
    fn decode_and_prefetch_tasks_of_events(
        &mut self,
        events: &[(EventId, Bytes)],
    ) -> TableResult<Vec<(EventId, Vec<TaskSeq>)>> {
        let decode = |(id, row): &(EventId, Bytes)| {
            Ok((*id, rows::decode_event(*id, row)?.task_seqs().collect::<Vec<TaskSeq>>()))
        };
        let events: Vec<_> = events.iter().map(decode).collect::<TableResult<_>>()?;
        let seqs: Vec<TaskSeq> = events.iter().flat_map(|(_, seqs)| seqs).copied().collect();
        self.overlay.prefetch_active_tasks(&seqs)?;
        Ok(events)
    }

    /// Returns whether an event has active tasks, of those created with it and those that run out of order.
    fn has_active_tasks(&mut self, event: EventId, created: Vec<TaskSeq>) -> TableResult<bool> {
        if !self.overlay.read_active_tasks(created)?.is_empty() {
            return Ok(true);
        }
        let event = MemberBuilder::from_i64(event.as_i64()).finish();
        let out_of_order =
            self.overlay.read_task_seqs_from_index(&Index::OutOfOrderTasks, &event, 1, usize::MAX)?;
        Ok(!self.overlay.read_active_tasks(out_of_order)?.is_empty())
    }

    /// Deletes the entries of expired events from the index of caused events.
    fn delete_expired_caused_event_entries(&mut self, expired_up_to: EventId) {
        let end = [b"(", &*MemberBuilder::from_i64(expired_up_to.as_i64() + 1).finish()].concat();
        self.overlay.add_extra_command(args![
            "ZREMRANGEBYLEX",
            self.overlay.keys.index_key(&Index::CausedEvents),
            "-",
            end
        ]);
    }

    /// Deletes the event number samples of expired events except the last, which contains how many events have expired.
    fn delete_expired_event_number_samples(&mut self, expired_up_to: EventId) -> TableResult<()> {
        let samples = self.overlay.read_members(
            &Index::EventNumberSamples,
            ALL_MEMBERS,
            ScanOrder::Ascending,
            MAX_ROWS_PER_STEP,
        )?;
        let mut expired_samples = Vec::new();
        for sample in samples {
            if decode_member_i64(&sample, 1)? > expired_up_to.as_i64() {
                break;
            }
            expired_samples.push(sample);
        }
        expired_samples.pop();
        expired_samples
            .into_iter()
            .for_each(|sample| self.overlay.remove_member(Index::EventNumberSamples, sample));
        Ok(())
    }

    /// Deletes an archived task, and collects the keys of its attempts, log and document 002.
    fn delete_archived_task_and_collect_keys(
        &mut self,
        archived: &ArchivedTaskRow,
        expired: &mut ExpiredTaskKeys,
    ) -> TableResult<()> {
        expired.task_count += 1;
        expired.keys.push(self.overlay.keys.table_key(&Table::Attempts(archived.seq)));
        expired.keys.extend(self.read_task_log_key(archived.seq)?);
        if let Some([key, history, id]) = self.keys_of_expired_source_task(archived)? {
            expired.keys.push(key);
            expired.history_members.entry(history).or_default().push(id);
        }
        let (bucket, field) = task_bucket_and_field(archived.seq);
        self.overlay.delete_row(Table::ArchivedTasks(bucket), field);
        task_indexes::archived_task_entries(archived)
            .into_iter()
            .for_each(|(index, member)| self.overlay.remove_member(index, member));
        Ok(())
    }

    /// Deletes the collected keys; returns the number of tasks that they belong to.
    fn delete_keys_of_expired_tasks(&mut self, expired: &ExpiredTaskKeys) -> u64 {
        for keys in expired.keys.chunks(MAX_KEYS_PER_DELETE_COMMAND) {
            self.overlay.add_extra_command([&args!["UNLINK"], keys].concat());
        }
        for (history, ids) in &expired.history_members {
            for ids in ids.chunks(MAX_KEYS_PER_DELETE_COMMAND) {
                self.overlay.add_extra_command([&args!["ZREM", history], ids].concat());
            }
        }
        expired.task_count as u64
    }

    /// Deletes rows older than `before`, which it finds by an index of time and field; returns whether there may be
    /// more.
    fn delete_expired_rows_by_age(
        &mut self,
        table: &Table,
        age_index: &Index,
        before: Timestamp,
    ) -> TableResult<bool> {
        let end = MemberBuilder::from_i64(before.micros()).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        let members =
            self.overlay.read_members(age_index, bounds, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let may_have_more = members.len() == MAX_ROWS_PER_STEP;
        for member in members {
            self.overlay.delete_row(table.clone(), member.get(8..).unwrap_or_default());
            self.overlay.remove_member(age_index.clone(), member);
        }
        Ok(may_have_more)
    }

    fn delete_expired_fires(&mut self, before: Timestamp) -> TableResult<bool> {
        let end = MemberBuilder::from_i64(before.micros()).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        let members =
            self.overlay.read_members(&Index::FiresByAge, bounds, ScanOrder::Ascending, MAX_ROWS_PER_STEP)?;
        let may_have_more = members.len() == MAX_ROWS_PER_STEP;
        for member in members {
            let planned = decode_member_i64(&member, 1)?;
            let schedule = rows::decode_text(member.get(16..).unwrap_or_default())?;
            self.overlay.delete_row(Table::Fires(schedule.clone()), planned.to_string());
            self.overlay.remove_member(Index::FireTimes(schedule), MemberBuilder::from_i64(planned).finish());
            self.overlay.remove_member(Index::FiresByAge, member);
        }
        Ok(may_have_more)
    }

    /// Deletes expired audit entries; returns whether there may be more. Their numbers ascend with their times, so this stops at
    /// the first one that has not expired.
    fn delete_expired_audit_entries(&mut self, before: Timestamp) -> TableResult<bool> {
        let (first, end) =
            (self.read_first_audit_entry_number()?, self.store_state.last_audit_entry_number + 1);
        let (mut next, mut step, last) =
            (first, FIRST_AUDIT_BATCH_SIZE, end.min(first + MAX_ROWS_PER_STEP as i64));
        let mut first_found = None;
        while next < last {
            let numbers = next..last.min(next + step);
            let fetch = |number: i64| CacheFetch::Row(Table::AuditEntries, encode_decimal_field(number));
            self.overlay.fetch_into_cache(numbers.clone().map(fetch).collect())?;
            for number in numbers {
                let Some(row) = self.overlay.read_row(Table::AuditEntries, number.to_string())? else {
                    continue;
                };
                let entry: AuditEntryColumns<'_> = decode_row(&[LeadingCell::Number(number)], &row)?;
                // This entry is deleted below, and is still stored if the commit fails.
                first_found = first_found.or(Some(number));
                if entry.at >= before.micros() {
                    self.first_audit_entry_number = first_found;
                    return Ok(false);
                }
                self.overlay.delete_row(Table::AuditEntries, number.to_string());
            }
            (next, step) = (next + step, step * 4);
        }
        self.first_audit_entry_number = first_found.or(Some(last));
        Ok(last < end)
    }

    /// Returns the number of the first stored audit entry; reads it unless it is known.
    fn read_first_audit_entry_number(&mut self) -> TableResult<i64> {
        if let Some(number) = self.first_audit_entry_number {
            return Ok(number);
        }
        let fields = decode_strings(
            self.overlay
                .connection
                .execute(args!["HKEYS", self.overlay.keys.table_key(&Table::AuditEntries)])?,
        )?;
        let numbers: Vec<i64> = fields.iter().map(|field| parse_number(field)).collect::<TableResult<_>>()?;
        Ok(numbers.into_iter().min().unwrap_or(self.store_state.last_audit_entry_number + 1))
    }
}

/// Keys of expired tasks that are not rows of a table, and are deleted together.
#[derive(Debug, Default)]
struct ExpiredTaskKeys {
    task_count: usize,
    keys: CommandArgs,
    /// The members to remove from histories of document 002, by key of the history.
    history_members: BTreeMap<Vec<u8>, CommandArgs>,
}
