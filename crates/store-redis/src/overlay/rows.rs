//! Table rows in the overlay: cached rows and pending writes.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};

use super::{Bytes, InvalidationRecord};
use crate::codec::{MemberBuilder, MemberOrField};
use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Keys, Table, active_task_location, object_name_of_field, task_seq_in_bucket};

/// All cached objects are dropped when there are more than this.
const MAX_CACHED_OBJECTS: usize = 200_000;
/// All cached active tasks are dropped when there are more than this.
const MAX_CACHED_TASKS: usize = 20_000;

/// Rows by field; `None` for a row that does not exist.
type RowsByField = HashMap<MemberOrField, Option<Bytes>>;

/// Rows that the transaction has written, and cached ones.
#[derive(Debug, Default)]
pub(super) struct RowOverlay {
    /// Rows as they were when the transaction began.
    cached: HashMap<Table, RowsByField>,
    /// Rows that this transaction has written; a deleted one is `None`.
    written: HashMap<Table, RowsByField>,
    /// Tables of which all rows are cached.
    complete_tables: HashSet<Table>,
}

impl RowOverlay {
    /// Returns a cached row: `None` if unknown, `Some(None)` if it does not exist.
    pub(super) fn find_cached(&self, table: &Table, field: &[u8]) -> Option<Option<&Bytes>> {
        let row = find_row(&self.written, table, field).or_else(|| find_row(&self.cached, table, field));
        row.or_else(|| self.complete_tables.contains(table).then_some(None))
    }

    pub(super) fn is_table_cached(&self, table: &Table) -> bool {
        self.complete_tables.contains(table)
    }

    pub(super) fn read_cached_table(&self, table: &Table) -> Vec<(MemberOrField, Bytes)> {
        let written = self.written.get(table);
        let is_newer = |field: &MemberOrField| written.is_some_and(|written| written.contains_key(field));
        let cached = self.cached.get(table).into_iter().flatten().filter(|(field, _)| !is_newer(field));
        let rows = cached.chain(written.into_iter().flatten());
        rows.filter_map(|(field, value)| Some((field.clone(), value.clone()?))).collect()
    }

    pub(super) fn write_or_delete(&mut self, table: Table, field: &[u8], value: Option<Bytes>) {
        self.written.entry(table).or_default().insert(field.into(), value);
    }

    /// Caches a row as it was when the transaction began.
    pub(super) fn cache_row(&mut self, table: &Table, field: MemberOrField, value: Option<Bytes>) {
        self.cached.entry(table.clone()).or_default().entry(field).or_insert(value);
    }

    pub(super) fn cache_table(&mut self, table: Table, rows: Vec<(MemberOrField, Bytes)>) {
        for (field, value) in rows {
            self.cache_row(&table, field, Some(value));
        }
        self.complete_tables.insert(table);
    }

    /// Adds to a record which rows were written that peers may have cached.
    pub(super) fn add_to_invalidation_record(&self, record: &mut InvalidationRecord) {
        for (table, rows) in &self.written {
            match (CachePolicy::for_table(table), table) {
                (CachePolicy::SmallTable(code), _) => record.small_table_bits |= 1 << code,
                // Last event ids are written together with their objects.
                (CachePolicy::Objects, Table::LastEventIds) | (CachePolicy::Never, _) => {}
                (CachePolicy::Objects, _) => record.objects.extend(rows.keys().cloned()),
                (CachePolicy::ActiveTasks(bucket), _) => {
                    record.tasks.extend(rows.keys().filter_map(|field| task_seq_in_bucket(bucket, field)));
                }
            }
        }
    }

    /// Drops cached entries that peers have written.
    pub(super) fn drop_invalidated(&mut self, record: &InvalidationRecord) {
        let is_stale = |table: &Table| match CachePolicy::for_table(table) {
            CachePolicy::SmallTable(code) => record.small_table_bits >> code & 1 == 1,
            CachePolicy::Objects | CachePolicy::ActiveTasks(_) | CachePolicy::Never => false,
        };
        self.cached.retain(|table, _| !is_stale(table));
        self.complete_tables.retain(|table| !is_stale(table));
        if let Some(objects) = self.cached.get_mut(&Table::Objects) {
            record.objects.iter().for_each(|field| drop(objects.remove(field)));
        }
        if let Some(last_ids) = self.cached.get_mut(&Table::LastEventIds) {
            record.objects.iter().for_each(|field| drop(last_ids.remove(object_name_of_field(field))));
        }
        for (table, field) in record.tasks.iter().map(|seq| active_task_location(*seq)) {
            if let Some(tasks) = self.cached.get_mut(&table) {
                tasks.remove(&field);
            }
        }
    }

    /// Turns the committed writes into cached rows, and drops rows that are unlikely to be read again.
    pub(super) fn mark_committed(&mut self) {
        self.complete_tables
            .retain(|table| matches!(CachePolicy::for_table(table), CachePolicy::SmallTable(_)));
        for (table, written) in self.written.drain() {
            let policy = CachePolicy::for_table(&table);
            let cached = self.cached.entry(table).or_default();
            for (field, value) in written {
                match value.is_none() && matches!(policy, CachePolicy::ActiveTasks(_)) {
                    true => cached.remove(&field),
                    false => cached.insert(field, value),
                };
            }
        }
        let (mut objects, mut tasks) = (0, 0);
        for (table, rows) in &self.cached {
            match CachePolicy::for_table(table) {
                CachePolicy::Objects => objects += rows.len(),
                CachePolicy::ActiveTasks(_) => tasks += rows.len(),
                CachePolicy::SmallTable(_) | CachePolicy::Never => {}
            }
        }
        self.cached.retain(|table, rows| match CachePolicy::for_table(table) {
            CachePolicy::SmallTable(_) => true,
            CachePolicy::Objects => objects <= MAX_CACHED_OBJECTS,
            CachePolicy::ActiveTasks(_) => tasks <= MAX_CACHED_TASKS && !rows.is_empty(),
            CachePolicy::Never => false,
        });
    }

    /// Adds the commands for the pending writes.
    pub(super) fn push_write_commands(&self, keys: &Keys, writes: &mut CommandArgsBuffer) {
        let mut buckets = BTreeSet::new();
        for (table, rows) in &self.written {
            let (mut puts, mut deleted): (Vec<&[u8]>, Vec<&[u8]>) = (vec![], vec![]);
            for (field, value) in rows {
                match value {
                    Some(value) => puts.extend([&**field, &**value]),
                    None => deleted.push(field),
                }
            }
            if let Table::LastEventIds = table {
                push_last_event_id_writes(keys, &puts, &deleted, writes);
                continue;
            }
            let key = keys.table_key(table);
            writes.push_chunked_command_for_script(&[b"HSET", &key], 2, &puts);
            writes.push_chunked_command_for_script(&[b"HDEL", &key], 1, &deleted);
            buckets.extend(bucket_index_entry(table).filter(|_| !puts.is_empty()));
        }
        for (index, member) in buckets {
            writes.push_command_for_script(&args!["ZADD", keys.index_key(&index), "0", member]);
        }
    }

    /// Adds commands that remove empty buckets from their index.
    pub(super) fn push_bucket_index_prune_commands(&self, keys: &Keys, writes: &mut CommandArgsBuffer) {
        for (table, rows) in &self.written {
            let deleted = rows.values().any(Option::is_none);
            if let Some((index, member)) = bucket_index_entry(table).filter(|_| deleted) {
                writes.push_command_for_script(&args![
                    "prune",
                    keys.table_key(table),
                    keys.index_key(&index),
                    member
                ]);
            }
        }
    }
}

fn find_row<'r>(
    tables: &'r HashMap<Table, RowsByField>,
    table: &Table,
    field: &[u8],
) -> Option<Option<&'r Bytes>> {
    tables.get(table)?.get(field).map(Option::as_ref)
}

/// Adds commands that write or delete the keys `OBJ:last.event.id`: one string for each object, not a hash.
fn push_last_event_id_writes(keys: &Keys, puts: &[&[u8]], deleted: &[&[u8]], writes: &mut CommandArgsBuffer) {
    let mut args: CommandArgs = Vec::with_capacity(puts.len());
    let (pairs, _) = puts.as_chunks::<2>();
    for [object, id] in pairs {
        args.extend([keys.last_event_id_key(object), id.to_vec()]);
    }
    writes.push_chunked_command_for_script(&[b"MSET"], 2, &args);
    let deleted: CommandArgs = deleted.iter().map(|object| keys.last_event_id_key(object)).collect();
    writes.push_chunked_command_for_script(&[b"UNLINK"], 1, &deleted);
}

/// Returns the index entry of a bucket, if the table is a bucket of tasks.
fn bucket_index_entry(table: &Table) -> Option<(Index, MemberOrField)> {
    match table {
        Table::ActiveTasks(bucket) => {
            Some((Index::ActiveTaskBuckets, MemberBuilder::from_i64(*bucket).finish()))
        }
        Table::ArchivedTasks(bucket) => {
            Some((Index::ArchivedTaskBuckets, MemberBuilder::from_i64(*bucket).finish()))
        }
        _ => None,
    }
}

/// Which rows of a table stay cached between transactions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CachePolicy {
    /// All rows: they are few. The code identifies the table in invalidation records, also for nodes of another build that
    /// use the same layout.
    SmallTable(u8),
    /// Objects, until too many are cached: then all are dropped.
    Objects,
    /// Active tasks of a bucket, until too many are cached in all buckets: then all are dropped.
    ActiveTasks(i64),
    Never,
}

impl CachePolicy {
    fn for_table(table: &Table) -> Self {
        match table {
            Table::NamedTexts => Self::SmallTable(0),
            Table::Queues => Self::SmallTable(1),
            Table::QueueCounts => Self::SmallTable(2),
            Table::Handlers => Self::SmallTable(3),
            Table::LimiterStates => Self::SmallTable(4),
            Table::MissedEventRanges => Self::SmallTable(5),
            Table::ConfiguredObjectDigests => Self::SmallTable(6),
            Table::Rules => Self::SmallTable(7),
            Table::Nodes => Self::SmallTable(8),
            Table::Chains => Self::SmallTable(9),
            Table::Schedules => Self::SmallTable(10),
            Table::Objects | Table::LastEventIds => Self::Objects,
            Table::ActiveTasks(bucket) => Self::ActiveTasks(*bucket),
            Table::AuditEntries
            | Table::Orders
            | Table::OrderNumbers
            | Table::EndedOrders
            | Table::IdempotencyRecords
            | Table::ArchivedTasks(_)
            | Table::Attempts(_)
            | Table::Fires(_) => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::TaskSeq;

    use super::*;

    fn some_row(bytes: &[u8]) -> Option<Bytes> {
        Some(bytes.into())
    }

    /// One node writes a part of the rows that another has cached.
    #[test]
    fn invalidation_drops_only_written_rows() {
        let (written, kept) = (TaskSeq(7), TaskSeq(8));
        let location = |seq| {
            let (table, field) = active_task_location(seq);
            (table, field.to_vec())
        };
        let rows: Vec<(Table, Vec<u8>, bool)> = vec![
            (Table::Objects, b"/a".into(), true),
            (Table::LastEventIds, b"a".into(), true),
            (Table::Queues, b"1".into(), true),
            (location(written).0, location(written).1, true),
            (Table::Objects, b"shop/a".into(), false),
            (Table::LastEventIds, b"shop/a".into(), false),
            (Table::Nodes, b"1".into(), false),
            (location(kept).0, location(kept).1, false),
        ];
        let (mut writer, mut peer) = (RowOverlay::default(), RowOverlay::default());
        for (table, field, is_written) in &rows {
            peer.cache_row(table, MemberOrField::from_slice(field), some_row(b"old"));
            if *is_written {
                writer.write_or_delete(table.clone(), field, some_row(b"new"));
            }
        }
        let mut record = InvalidationRecord::default();
        writer.add_to_invalidation_record(&mut record);
        peer.drop_invalidated(&record);
        for (table, field, is_written) in &rows {
            assert_eq!(peer.find_cached(table, field).is_none(), *is_written, "{table:?} {field:?}");
        }
    }

    #[test]
    fn small_tables_have_stable_codes() {
        let small_tables = [
            Table::NamedTexts,
            Table::Queues,
            Table::QueueCounts,
            Table::Handlers,
            Table::LimiterStates,
            Table::MissedEventRanges,
            Table::ConfiguredObjectDigests,
            Table::Rules,
            Table::Nodes,
            Table::Chains,
            Table::Schedules,
        ];
        let codes = small_tables.iter().map(|table| match CachePolicy::for_table(table) {
            CachePolicy::SmallTable(code) => code,
            CachePolicy::Objects | CachePolicy::ActiveTasks(_) | CachePolicy::Never => panic!("{table:?}"),
        });
        assert!(codes.eq(0..small_tables.len() as u8), "nodes of other builds use the same codes");
    }
}
