//! Rows of tables.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};

use super::Bytes;
use crate::batch::Batch;
use crate::codec::{Member, Ordered};
use crate::keys::{Index, Keys, Table};
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

    /// What was written is what is there now. What will hardly be looked at again is forgotten.
    pub(super) fn settle(&mut self) {
        self.whole.retain(|table| Memory::of(table) == Memory::Few);
        for (table, written) in self.written.drain() {
            let memory = Memory::of(&table);
            let known = self.known.entry(table).or_default();
            for (field, value) in written {
                match value.is_none() && memory == Memory::Tasks {
                    true => known.remove(&field),
                    false => known.insert(field, value),
                };
            }
        }
        let count = |memory| {
            let rows = self.known.iter().filter(|(table, _)| Memory::of(table) == memory);
            rows.map(|(_, rows)| rows.len()).sum::<usize>()
        };
        let (objects, tasks) = (count(Memory::Objects), count(Memory::Tasks));
        self.known.retain(|table, rows| match Memory::of(table) {
            Memory::Few => true,
            Memory::Objects => objects <= OBJECTS,
            Memory::Tasks => tasks <= TASKS && !rows.is_empty(),
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
                write_last_ids(keys, &put, writes);
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

/// `OBJ:last.event.id` of each object, which is never removed.
fn write_last_ids(keys: &Keys, put: &[&[u8]], writes: &mut Batch) {
    let mut words: Words = Vec::with_capacity(put.len());
    let (pairs, _) = put.as_chunks::<2>();
    for [object, id] in pairs {
        words.extend([keys.last_id(object), id.to_vec()]);
    }
    writes.write_many(&[b"MSET"], 2, &words);
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
    /// Its rows are few, and may all be.
    Few,
    Objects,
    Tasks,
    None,
}

impl Memory {
    fn of(table: &Table) -> Self {
        match table {
            Table::Texts
            | Table::Queues
            | Table::Counts
            | Table::Handlers
            | Table::Paces
            | Table::Gaps
            | Table::Files
            | Table::Rules
            | Table::Nodes
            | Table::Chains
            | Table::Pending
            | Table::Schedules => Self::Few,
            Table::Objects | Table::LastIds => Self::Objects,
            Table::Tasks(_) => Self::Tasks,
            Table::Deeds
            | Table::Orders
            | Table::OrderNames
            | Table::Answers
            | Table::Ended(_)
            | Table::Attempts(_)
            | Table::Fires(_) => Self::None,
        }
    }
}
