//! The cache of a transaction: rows that were prefetched. Objects and the first tasks of their lanes stay cached for
//! the next transaction, except those that peers have written in between.

use std::collections::{HashMap, HashSet};

use pointsman_core::{Event, EventId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::lane_number;
use pointsman_store::row::{HandlerId, LaneHead, ObjectNumber, ObjectRow, OrderRow, WaitingTask};
use pointsman_store::tables::ReadSet;
use tokio_postgres::Row;

use super::invalidation::{ObjectChange, ObjectInvalidation};
use super::lane_cache::{LaneCache, MAX_CACHED_HEADS};
use crate::rows::{read_column, read_key_bucket, read_optional_task_seq, read_phase, read_time};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// The digest of a request, and its stored response.
pub(crate) type IdempotencyRecord = ([u8; 32], String);

/// Limit of cached objects, and of cached lanes.
const MAX_CACHED_ENTRIES: usize = 20_000;
/// Number of tasks fetched per lane of an object: the first one and its successor.
const HEADS_PER_PREFETCHED_LANE: usize = 2;

#[derive(Default)]
pub(crate) struct TransactionCache {
    numbers_by_key: HashMap<(Tenant, String), ObjectNumber>,
    /// Objects by number; none if a peer has written the object since.
    objects: HashMap<ObjectNumber, Option<ObjectRow>>,
    /// Names of objects that do not exist.
    absent_keys: HashSet<(Tenant, String)>,
    pub(crate) idempotency_records: HashMap<(Tenant, String), Option<IdempotencyRecord>>,
    pub(crate) lanes: LaneCache,
    pub(crate) events: HashMap<EventId, Event>,
    pub(crate) orders: HashMap<i64, OrderRow>,
}

impl TransactionCache {
    /// The queries whose results [`TransactionCache::insert_prefetched`] takes.
    pub(crate) fn prefetch_commands(read_set: &ReadSet) -> Vec<SqlCommand> {
        let mut commands = Vec::new();
        let ReadSet { objects, lanes, idempotency_keys: answers, .. } = read_set;
        if !objects.is_empty() {
            let tenants: Vec<String> = objects.iter().map(|(tenant, ..)| tenant.to_string()).collect();
            let keys: Vec<String> = objects.iter().map(|(_, key, _)| key.clone()).collect();
            let handlers: Vec<HandlerId> = objects.iter().map(|(.., handler)| *handler).collect();
            let query = query!("write/prefetch_objects", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
            commands.push(SqlCommand::Query(query, params![tenants, keys, handlers]));
        }
        if !lanes.is_empty() {
            let query = query!("write/prefetch_lanes", INT8_ARRAY, INT8);
            commands.push(SqlCommand::Query(query, params![lanes.clone(), MAX_CACHED_HEADS as i64]));
        }
        if !answers.is_empty() {
            let tenants: Vec<String> = answers.iter().map(|(tenant, _)| tenant.to_string()).collect();
            let keys: Vec<String> = answers.iter().map(|(_, key)| key.clone()).collect();
            let query = query!("write/prefetch_idempotency_records", TEXT_ARRAY, TEXT_ARRAY);
            commands.push(SqlCommand::Query(query, params![tenants, keys]));
        }
        commands
    }

    /// True if the cache is small enough to be kept for another transaction.
    pub(crate) fn is_within_limit(&self) -> bool {
        self.numbers_by_key.len() <= MAX_CACHED_ENTRIES && self.lanes.len() <= MAX_CACHED_ENTRIES
    }

    /// Splits a read set into what must be fetched and what is cached.
    pub(crate) fn split_read_set(&self, read_set: ReadSet) -> (ReadSet, ReadSet) {
        let (cached, missing) =
            read_set.lanes.into_iter().partition(|lane| self.lanes.is_successor_cached(*lane));
        let mut missing =
            ReadSet { lanes: missing, idempotency_keys: read_set.idempotency_keys, ..ReadSet::default() };
        let mut cached = ReadSet { lanes: cached, ..ReadSet::default() };
        for (tenant, key, handler) in read_set.objects {
            let name = (tenant, key);
            let target = if self.is_object_cached(&name, handler) { &mut cached } else { &mut missing };
            target.objects.push((name.0, name.1, handler));
        }
        (missing, cached)
    }

    fn is_object_cached(&self, name: &(Tenant, String), handler: HandlerId) -> bool {
        self.find_object(name).flatten().is_some_and(|object| {
            handler <= 0 || self.lanes.is_head_cached(lane_number(object.number, handler))
        })
    }

    /// The outer option is none if it is not cached whether the object exists.
    pub(crate) fn find_object(&self, name: &(Tenant, String)) -> Option<Option<&ObjectRow>> {
        match self.numbers_by_key.get(name).and_then(|number| self.find_object_by_number(*number)) {
            Some(object) => Some(Some(object)),
            None => self.absent_keys.contains(name).then_some(None),
        }
    }

    /// Finds a cached object by its number.
    pub(crate) fn find_object_by_number(&self, number: ObjectNumber) -> Option<&ObjectRow> {
        self.objects.get(&number)?.as_ref()
    }

    /// Caches the state of an object, or that it does not exist.
    pub(crate) fn insert_object(&mut self, name: (Tenant, String), object: Option<ObjectRow>) {
        match object {
            // Several objects may have this number, and the next event gives each its own.
            Some(ObjectRow { number: 0, .. }) => drop(self.absent_keys.remove(&name)),
            Some(object) => {
                let number = object.number;
                self.objects.insert(number, Some(object));
                // An object that was deleted and emitted again has another number.
                if let Some(before) =
                    self.numbers_by_key.insert(name, number).filter(|before| *before != number)
                {
                    self.objects.remove(&before);
                }
            }
            None => drop(self.absent_keys.insert(name)),
        }
    }

    /// Drops the cache entries of an object that this transaction has deleted.
    pub(crate) fn drop_cached_object(&mut self, name: (Tenant, String)) {
        if let Some(number) = self.numbers_by_key.remove(&name) {
            self.objects.remove(&number);
            self.lanes.drop_cached_lanes_of_object(number);
        }
        self.absent_keys.insert(name);
    }

    /// Applies the invalidations of peers: keeps the state that they published and drops everything else about these
    /// objects and lanes.
    pub(crate) fn apply_invalidations(&mut self, invalidations: Vec<ObjectInvalidation>) {
        for ObjectInvalidation { object_number: number, object_change: object, empty_lanes } in invalidations
        {
            self.lanes.drop_cached_lanes_of_object(number);
            let Some(cached) = self.objects.get_mut(&number) else { continue };
            match object {
                ObjectChange::Unchanged => {}
                ObjectChange::Written(object) => *cached = Some(object),
                ObjectChange::Unknown => *cached = None,
            }
            empty_lanes.into_iter().for_each(|handler| {
                self.lanes.insert_lane(lane_number(number, handler), vec![], MAX_CACHED_HEADS)
            });
        }
    }

    /// Begins a transaction: drops the entries that are valid for one transaction only. `object_count` is the highest
    /// object number.
    pub(crate) fn begin_transaction(&mut self, object_count: i64) {
        self.lanes.set_highest_object_number(object_count);
        self.absent_keys.clear();
        self.idempotency_records.clear();
        self.events.clear();
        self.orders.clear();
    }

    /// Caches fetched rows. This transaction must not have written any of them.
    pub(crate) fn insert_prefetched(
        &mut self,
        read_set: ReadSet,
        mut results: impl Iterator<Item = Vec<Row>>,
    ) -> Result<()> {
        if !read_set.objects.is_empty() {
            self.insert_objects(&read_set.objects, &results.next().unwrap_or_default())?;
        }
        if !read_set.lanes.is_empty() {
            self.insert_lanes(&read_set.lanes, &results.next().unwrap_or_default())?;
        }
        if !read_set.idempotency_keys.is_empty() {
            self.insert_idempotency_records(read_set.idempotency_keys, &results.next().unwrap_or_default())?;
        }
        Ok(())
    }

    fn insert_objects(&mut self, requested: &[(Tenant, String, HandlerId)], rows: &[Row]) -> Result<()> {
        for (tenant, key, _) in requested {
            self.absent_keys.insert((tenant.clone(), key.clone()));
        }
        let mut lanes: HashMap<i64, Vec<LaneHead>> = HashMap::new();
        for row in rows {
            let index = usize::try_from(read_column::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
            let Some((tenant, key, handler)) = requested.get(index) else { continue };
            let object = decode_object(row, 1)?;
            if *handler > 0 {
                let lane = lanes.entry(lane_number(object.number, *handler)).or_default();
                lane.extend(decode_optional_head(row, 4)?);
            }
            self.insert_object((tenant.clone(), key.clone()), Some(object));
        }
        lanes.into_iter().for_each(|(lane, heads)| {
            self.lanes.insert_lane(lane, dedup_heads(heads), HEADS_PER_PREFETCHED_LANE)
        });
        Ok(())
    }

    fn insert_lanes(&mut self, requested: &[i64], rows: &[Row]) -> Result<()> {
        let mut lanes: HashMap<i64, Vec<LaneHead>> =
            requested.iter().map(|lane| (*lane, Vec::new())).collect();
        for row in rows {
            lanes.entry(read_column(row, 0)?).or_default().extend(decode_optional_head(row, 1)?);
        }
        lanes
            .into_iter()
            .for_each(|(lane, heads)| self.lanes.insert_lane(lane, dedup_heads(heads), MAX_CACHED_HEADS));
        Ok(())
    }

    fn insert_idempotency_records(&mut self, requested: Vec<(Tenant, String)>, rows: &[Row]) -> Result<()> {
        self.idempotency_records.extend(requested.into_iter().map(|name| (name, None)));
        for row in rows {
            let tenant = Tenant::new(read_column::<&str>(row, 0)?).map_err(Fault::damaged)?;
            self.idempotency_records
                .insert((tenant, read_column(row, 1)?), Some(decode_idempotency_record(row, 2)?));
        }
        Ok(())
    }
}

/// Sorts heads and removes duplicates: the same lane may have been requested more than once.
fn dedup_heads(mut heads: Vec<LaneHead>) -> Vec<LaneHead> {
    heads.sort_by_key(|head| head.lane_position);
    heads.dedup_by_key(|head| head.lane_position);
    heads
}

/// Columns: number, last, sent.
pub(crate) fn decode_object(row: &Row, at: usize) -> Result<ObjectRow> {
    Ok(ObjectRow {
        number: read_column(row, at)?,
        last_event: EventId::from_i64(read_column(row, at + 1)?),
        last_sent_events: ObjectRow::decode_last_sent(read_column(row, at + 2)?),
    })
}

/// Columns: digest, answer.
pub(crate) fn decode_idempotency_record(row: &Row, at: usize) -> Result<IdempotencyRecord> {
    let digest: &[u8] = read_column(row, at)?;
    let digest = digest.try_into().map_err(Fault::damaged)?;
    Ok((digest, read_column(row, at + 1)?))
}

/// Columns: seq, queue, key_bucket, concurrency_group, score, due.
pub(crate) fn decode_waiting_task(row: &Row, at: usize) -> Result<WaitingTask> {
    Ok(WaitingTask {
        seq: TaskSeq(read_column(row, at)?),
        queue: read_column(row, at + 1)?,
        key_bucket: read_key_bucket(row, at + 2)?,
        concurrency_group: read_column(row, at + 3)?,
        score: read_column(row, at + 4)?,
        due: read_time(row, at + 5)?,
    })
}

/// Columns: seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase; none if there is no task.
pub(crate) fn decode_optional_head(row: &Row, at: usize) -> Result<Option<LaneHead>> {
    if read_optional_task_seq(row, at)?.is_none() {
        return Ok(None);
    }
    Ok(Some(LaneHead {
        lane_position: read_column(row, at + 6)?,
        phase: read_phase(row, at + 7)?,
        task: decode_waiting_task(row, at)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object_row(number: i64, last: i64) -> ObjectRow {
        ObjectRow { number, last_event: EventId::from_i64(last), last_sent_events: vec![] }
    }

    #[test]
    fn invalidations_replace_written_objects_and_drop_the_rest() {
        let mut cache = TransactionCache::default();
        let name = |number: i64| (Tenant::default(), number.to_string());
        for number in 1..=4 {
            cache.insert_object(name(number), Some(object_row(number, 1)));
            cache.lanes.insert_lane(lane_number(number, 7), vec![], MAX_CACHED_HEADS);
        }
        cache.apply_invalidations(vec![
            ObjectInvalidation {
                object_number: 1,
                object_change: ObjectChange::Written(object_row(1, 2)),
                empty_lanes: vec![7],
            },
            ObjectInvalidation {
                object_number: 2,
                object_change: ObjectChange::Unknown,
                empty_lanes: vec![],
            },
            ObjectInvalidation {
                object_number: 3,
                object_change: ObjectChange::Unchanged,
                empty_lanes: vec![],
            },
            ObjectInvalidation {
                object_number: 9,
                object_change: ObjectChange::Written(object_row(9, 2)),
                empty_lanes: vec![7],
            },
        ]);
        let last =
            |number: i64| cache.find_object(&name(number)).flatten().map(|object| object.last_event.as_i64());
        assert_eq!([1, 2, 3, 4].map(last), [Some(2), None, Some(1), Some(1)]);
        let is_cached = |number: i64| cache.is_object_cached(&name(number), 7);
        assert_eq!([1, 2, 3, 4].map(is_cached), [true, false, false, true]);
        assert!(
            cache.find_object_by_number(9).is_none() && !cache.lanes.is_head_cached(lane_number(9, 7)),
            "nobody here knows it"
        );
    }
}
