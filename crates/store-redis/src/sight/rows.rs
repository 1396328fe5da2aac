//! Rows of tables.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};

use super::{Bytes, Touched};
use crate::batch::Batch;
use crate::codec::{Member, Ordered};
use crate::keys::{Index, Keys, Table, name_of_field, seq_in_bucket, task_row};
use crate::link::{Words, words};

/// Beyond so many objects all are forgotten.
const OBJECTS: usize = 200_000;
/// Beyond so many unfinished tasks all are forgotten: those that run should be among the last that were written.
const TASKS: usize = 20_000;

/// Rows by field; nothing where a row is known not to be there.
type Fields = HashMap<Member, Option<Bytes>>;

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// As they were when the transaction began.
    known: HashMap<Table, Fields>,
    /// As this transaction leaves them.
    written: HashMap<Table, Fields>,
    /// Tables of which all rows are known.
    whole: HashSet<Table>,
}

impl Rows {
    /// A row, if it is known; and then whether it is there.
    pub(super) fn find(&self, table: &Table, field: &[u8]) -> Option<Option<&Bytes>> {
        let row = find(&self.written, table, field).or_else(|| find(&self.known, table, field));
        row.or_else(|| self.whole.contains(table).then_some(None))
    }

    pub(super) fn is_whole(&self, table: &Table) -> bool {
        self.whole.contains(table)
    }

    pub(super) fn all(&self, table: &Table) -> Vec<(Member, Bytes)> {
        let written = self.written.get(table);
        let is_newer = |field: &Member| written.is_some_and(|written| written.contains_key(field));
        let known = self.known.get(table).into_iter().flatten().filter(|(field, _)| !is_newer(field));
        let rows = known.chain(written.into_iter().flatten());
        rows.filter_map(|(field, value)| Some((field.clone(), value.clone()?))).collect()
    }

    pub(super) fn put(&mut self, table: Table, field: &[u8], value: Option<Bytes>) {
        self.written.entry(table).or_default().insert(field.into(), value);
    }

    /// A row was fetched, as it was when the transaction began.
    pub(super) fn fetched(&mut self, table: &Table, field: Member, value: Option<Bytes>) {
        self.known.entry(table.clone()).or_default().entry(field).or_insert(value);
    }

    pub(super) fn fetched_all(&mut self, table: Table, rows: Vec<(Member, Bytes)>) {
        for (field, value) in rows {
            self.fetched(&table, field, Some(value));
        }
        self.whole.insert(table);
    }

    pub(super) fn touched(&self, touched: &mut Touched) {
        for (table, rows) in &self.written {
            match (Memory::of(table), table) {
                (Memory::Few(code), _) => touched.few |= 1 << code,
                // They are written with their objects.
                (Memory::Objects, Table::LastIds) | (Memory::None, _) => {}
                (Memory::Objects, _) => touched.objects.extend(rows.keys().cloned()),
                (Memory::Tasks(bucket), _) => {
                    touched.tasks.extend(rows.keys().filter_map(|field| seq_in_bucket(bucket, field)));
                }
            }
        }
    }

    /// Forgets what others have written.
    pub(super) fn hear(&mut self, touched: &Touched) {
        let is_old =
            |table: &Table| matches!(Memory::of(table), Memory::Few(code) if touched.few >> code & 1 == 1);
        self.known.retain(|table, _| !is_old(table));
        self.whole.retain(|table| !is_old(table));
        if let Some(objects) = self.known.get_mut(&Table::Objects) {
            touched.objects.iter().for_each(|field| drop(objects.remove(field)));
        }
        if let Some(last_ids) = self.known.get_mut(&Table::LastIds) {
            touched.objects.iter().for_each(|field| drop(last_ids.remove(name_of_field(field))));
        }
        for (table, field) in touched.tasks.iter().map(|seq| task_row(*seq)) {
            if let Some(tasks) = self.known.get_mut(&table) {
                tasks.remove(&field);
            }
        }
    }

    /// What was written is what is there now. What will hardly be looked at again is forgotten.
    pub(super) fn settle(&mut self) {
        self.whole.retain(|table| matches!(Memory::of(table), Memory::Few(_)));
        for (table, written) in self.written.drain() {
            let memory = Memory::of(&table);
            let known = self.known.entry(table).or_default();
            for (field, value) in written {
                match value.is_none() && matches!(memory, Memory::Tasks(_)) {
                    true => known.remove(&field),
                    false => known.insert(field, value),
                };
            }
        }
        let (mut objects, mut tasks) = (0, 0);
        for (table, rows) in &self.known {
            match Memory::of(table) {
                Memory::Objects => objects += rows.len(),
                Memory::Tasks(_) => tasks += rows.len(),
                Memory::Few(_) | Memory::None => {}
            }
        }
        self.known.retain(|table, rows| match Memory::of(table) {
            Memory::Few(_) => true,
            Memory::Objects => objects <= OBJECTS,
            Memory::Tasks(_) => tasks <= TASKS && !rows.is_empty(),
            Memory::None => false,
        });
    }

    pub(super) fn write(&self, keys: &Keys, writes: &mut Batch) {
        let mut buckets = BTreeSet::new();
        for (table, rows) in &self.written {
            let (mut put, mut gone): (Vec<&[u8]>, Vec<&[u8]>) = (vec![], vec![]);
            for (field, value) in rows {
                match value {
                    Some(value) => put.extend([&**field, &**value]),
                    None => gone.push(field),
                }
            }
            if let Table::LastIds = table {
                write_last_ids(keys, &put, &gone, writes);
                continue;
            }
            let key = keys.table(table);
            writes.write_many(&[b"HSET", &key], 2, &put);
            writes.write_many(&[b"HDEL", &key], 1, &gone);
            buckets.extend(bucket_of(table).filter(|_| !put.is_empty()));
        }
        for (index, member) in buckets {
            writes.write(&words!["ZADD", keys.index(&index), "0", member]);
        }
    }

    /// Takes buckets out of their index in which nothing is left.
    pub(super) fn prune(&self, keys: &Keys, writes: &mut Batch) {
        for (table, rows) in &self.written {
            let gone = rows.values().any(Option::is_none);
            if let Some((index, member)) = bucket_of(table).filter(|_| gone) {
                writes.write(&words!["prune", keys.table(table), keys.index(&index), member]);
            }
        }
    }
}

fn find<'r>(tables: &'r HashMap<Table, Fields>, table: &Table, field: &[u8]) -> Option<Option<&'r Bytes>> {
    tables.get(table)?.get(field).map(Option::as_ref)
}

/// `OBJ:last.event.id` of each object.
fn write_last_ids(keys: &Keys, put: &[&[u8]], gone: &[&[u8]], writes: &mut Batch) {
    let mut words: Words = Vec::with_capacity(put.len());
    let (pairs, _) = put.as_chunks::<2>();
    for [object, id] in pairs {
        words.extend([keys.last_id(object), id.to_vec()]);
    }
    writes.write_many(&[b"MSET"], 2, &words);
    let gone: Words = gone.iter().map(|object| keys.last_id(object)).collect();
    writes.write_many(&[b"UNLINK"], 1, &gone);
}

/// Where it is told that there is such a bucket of tasks.
fn bucket_of(table: &Table) -> Option<(Index, Member)> {
    match table {
        Table::Tasks(bucket) => Some((Index::TaskBuckets, Ordered::of(*bucket).done())),
        Table::Ended(bucket) => Some((Index::EndedBuckets, Ordered::of(*bucket).done())),
        _ => None,
    }
}

/// What of a table is remembered from one transaction to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// Its rows are few, and may all be. It is told of by this number, which other versions of nodes know it by.
    Few(u8),
    Objects,
    /// Those of a bucket.
    Tasks(i64),
    None,
}

impl Memory {
    fn of(table: &Table) -> Self {
        match table {
            Table::Texts => Self::Few(0),
            Table::Queues => Self::Few(1),
            Table::Counts => Self::Few(2),
            Table::Handlers => Self::Few(3),
            Table::Paces => Self::Few(4),
            Table::Gaps => Self::Few(5),
            Table::Files => Self::Few(6),
            Table::Rules => Self::Few(7),
            Table::Nodes => Self::Few(8),
            Table::Chains => Self::Few(9),
            Table::Pending => Self::Few(10),
            Table::Schedules => Self::Few(11),
            Table::Objects | Table::LastIds => Self::Objects,
            Table::Tasks(bucket) => Self::Tasks(*bucket),
            Table::Deeds
            | Table::Orders
            | Table::OrderNames
            | Table::EndedOrders
            | Table::Answers
            | Table::Ended(_)
            | Table::Attempts(_)
            | Table::Fires(_) => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::TaskSeq;

    use super::*;

    fn row(bytes: &[u8]) -> Option<Bytes> {
        Some(bytes.into())
    }

    /// One node writes a part of what another knows.
    #[test]
    fn what_another_has_written_is_forgotten_and_the_rest_is_known() {
        let (written, kept) = (TaskSeq(7), TaskSeq(8));
        let of = |seq| {
            let (table, field) = task_row(seq);
            (table, field.to_vec())
        };
        let rows: Vec<(Table, Vec<u8>, bool)> = vec![
            (Table::Objects, b"/a".into(), true),
            (Table::LastIds, b"a".into(), true),
            (Table::Queues, b"1".into(), true),
            (of(written).0, of(written).1, true),
            (Table::Objects, b"shop/a".into(), false),
            (Table::LastIds, b"shop/a".into(), false),
            (Table::Nodes, b"1".into(), false),
            (of(kept).0, of(kept).1, false),
        ];
        let (mut one, mut other) = (Rows::default(), Rows::default());
        for (table, field, touched) in &rows {
            other.fetched(table, Member::from_slice(field), row(b"old"));
            if *touched {
                one.put(table.clone(), field, row(b"new"));
            }
        }
        let mut touched = Touched::default();
        one.touched(&mut touched);
        other.hear(&touched);
        for (table, field, touched) in &rows {
            assert_eq!(other.find(table, field).is_none(), *touched, "{table:?} {field:?}");
        }
    }

    #[test]
    fn a_table_of_few_rows_is_told_of_by_a_number_of_its_own() {
        let few = [
            Table::Texts,
            Table::Queues,
            Table::Counts,
            Table::Handlers,
            Table::Paces,
            Table::Gaps,
            Table::Files,
            Table::Rules,
            Table::Nodes,
            Table::Chains,
            Table::Pending,
            Table::Schedules,
        ];
        let codes = few.iter().map(|table| match Memory::of(table) {
            Memory::Few(code) => code,
            Memory::Objects | Memory::Tasks(_) | Memory::None => panic!("{table:?}"),
        });
        assert!(codes.eq(0..few.len() as u8), "nodes of other versions know them by these");
    }
}
