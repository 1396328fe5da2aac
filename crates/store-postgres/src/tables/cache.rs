//! The cache of a transaction: rows that were prefetched. Objects and the first tasks of their lanes stay cached for
//! the next transaction, except those that peers have written in between.

use std::collections::{HashMap, HashSet};

use pointsman_core::{Event, EventId, Tenant};
use pointsman_store::columns::IdempotencyRecordColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{HandlerId, LaneHead, ObjectNumber, ObjectRow, OrderRow, WaitingTask};
use pointsman_store::tables::ReadSet;
use pointsman_store::{LANES_PER_OBJECT, lane_number};
use tokio_postgres::Row;

use super::invalidation::{ObjectChange, ObjectInvalidation};
use super::lane_cache::{LaneCache, MAX_CACHED_TASKS_PER_LANE};
use crate::rows::{
    read_column, read_columns, read_event_id, read_key_bucket, read_phase, read_task_seq, read_time,
};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// The digest of a request, and its stored response.
pub(crate) type IdempotencyRecord = ([u8; 32], String);

/// The cache is dropped after a transaction that leaves more objects or more lanes in it.
const MAX_CACHED_ENTRIES: usize = 20_000;
/// Number of tasks that are fetched per lane together with the lane's object: the first one and its successor.
const TASKS_PER_PREFETCHED_LANE: usize = 2;

/// Rows that a transaction has read or written.
#[derive(Default)]
pub(crate) struct TransactionCache {
    /// Object numbers by tenant and key.
    numbers_by_key: HashMap<(Tenant, String), ObjectNumber>,
    /// Objects by number; none if a peer has written the object since.
    objects: HashMap<ObjectNumber, Option<ObjectRow>>,
    /// Tenants and keys of objects that do not exist.
    absent_objects: HashSet<(Tenant, String)>,
    /// Idempotency records by tenant and key; none if the key was not used.
    pub(crate) idempotency_records: HashMap<(Tenant, String), Option<IdempotencyRecord>>,
    pub(crate) lanes: LaneCache,
    pub(crate) events: HashMap<EventId, Event>,
    pub(crate) orders: HashMap<i64, OrderRow>,
}

impl TransactionCache {
    /// Returns the queries that fetch a read set; [`TransactionCache::insert_prefetched`] takes their results.
    pub(crate) fn prefetch_commands(read_set: &ReadSet) -> Vec<SqlCommand> {
        let mut commands = Vec::new();
        let ReadSet { objects, lanes, idempotency_keys: keys_to_fetch, .. } = read_set;
        if !objects.is_empty() {
            let tenants: Vec<String> = objects.iter().map(|(tenant, ..)| tenant.to_string()).collect();
            let keys: Vec<String> = objects.iter().map(|(_, key, _)| key.clone()).collect();
            // The lane of object 0: the lanes of the other objects follow in steps of LANES_PER_OBJECT.
            let first_lanes: Vec<Option<i64>> = objects
                .iter()
                .map(|(.., handler)| (*handler > 0).then(|| lane_number(0, *handler)))
                .collect();
            let query =
                query!("object/prefetch_objects_with_lane_heads", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8);
            commands.push(SqlCommand::Query(query, params![tenants, keys, first_lanes, LANES_PER_OBJECT]));
        }
        if !lanes.is_empty() {
            let query = query!("task/list_lane_heads", INT8_ARRAY, INT8);
            commands.push(SqlCommand::Query(query, params![lanes.clone(), MAX_CACHED_TASKS_PER_LANE as i64]));
        }
        if !keys_to_fetch.is_empty() {
            let tenants: Vec<String> = keys_to_fetch.iter().map(|(tenant, _)| tenant.to_string()).collect();
            let keys: Vec<String> = keys_to_fetch.iter().map(|(_, key)| key.clone()).collect();
            let query = query!("idempotency/list_idempotency_records", TEXT_ARRAY, TEXT_ARRAY);
            commands.push(SqlCommand::Query(query, params![tenants, keys]));
        }
        commands
    }

    /// True if the cache is small enough to be kept for another transaction.
    pub(crate) fn is_within_limit(&self) -> bool {
        self.numbers_by_key.len() <= MAX_CACHED_ENTRIES && self.lanes.len() <= MAX_CACHED_ENTRIES
    }

    /// Splits a read set into the part that must be fetched and the part that is cached.
    pub(crate) fn split_read_set(&self, read_set: ReadSet) -> (ReadSet, ReadSet) {
        let (cached, missing) =
            read_set.lanes.into_iter().partition(|lane| self.lanes.is_successor_cached(*lane));
        let mut missing =
            ReadSet { lanes: missing, idempotency_keys: read_set.idempotency_keys, ..ReadSet::default() };
        let mut cached = ReadSet { lanes: cached, ..ReadSet::default() };
        for (tenant, key, handler) in read_set.objects {
            let tenant_and_key = (tenant, key);
            let part = if self.is_object_and_lane_head_cached(&tenant_and_key, handler) {
                &mut cached
            } else {
                &mut missing
            };
            part.objects.push((tenant_and_key.0, tenant_and_key.1, handler));
        }
        (missing, cached)
    }

    /// True if an object is cached, and whether its lane for a handler (if above 0) has a task.
    fn is_object_and_lane_head_cached(&self, tenant_and_key: &(Tenant, String), handler: HandlerId) -> bool {
        self.find_object(tenant_and_key).flatten().is_some_and(|object| {
            handler <= 0 || self.lanes.is_head_cached(lane_number(object.number, handler))
        })
    }

    /// Finds a cached object: `Some(None)` if it does not exist, none if it is not cached whether it exists.
    pub(crate) fn find_object(&self, tenant_and_key: &(Tenant, String)) -> Option<Option<&ObjectRow>> {
        match self.numbers_by_key.get(tenant_and_key).and_then(|number| self.find_object_by_number(*number)) {
            Some(object) => Some(Some(object)),
            None => self.absent_objects.contains(tenant_and_key).then_some(None),
        }
    }

    /// Finds a cached object by its number.
    pub(crate) fn find_object_by_number(&self, number: ObjectNumber) -> Option<&ObjectRow> {
        self.objects.get(&number)?.as_ref()
    }

    /// Caches the state of an object, or that it does not exist.
    pub(crate) fn insert_object(&mut self, tenant_and_key: (Tenant, String), object: Option<ObjectRow>) {
        match object {
            // Several objects may have the number 0, so that they cannot be cached by number. The next event of each
            // gives it its own number.
            Some(ObjectRow { number: 0, .. }) => drop(self.absent_objects.remove(&tenant_and_key)),
            Some(object) => {
                let number = object.number;
                self.objects.insert(number, Some(object));
                // An object that was deleted and emitted again has another number.
                if let Some(previous_number) = self
                    .numbers_by_key
                    .insert(tenant_and_key, number)
                    .filter(|previous_number| *previous_number != number)
                {
                    self.objects.remove(&previous_number);
                }
            }
            None => drop(self.absent_objects.insert(tenant_and_key)),
        }
    }

    /// Drops the cache entries of an object that this transaction has deleted.
    pub(crate) fn drop_cached_object(&mut self, tenant_and_key: (Tenant, String)) {
        if let Some(number) = self.numbers_by_key.remove(&tenant_and_key) {
            self.objects.remove(&number);
            self.lanes.drop_cached_lanes_of_object(number);
        }
        self.absent_objects.insert(tenant_and_key);
    }

    /// Applies the invalidations of peers: keeps the state that they published and drops everything else about these
    /// objects and lanes.
    pub(crate) fn apply_invalidations(&mut self, invalidations: Vec<ObjectInvalidation>) {
        for ObjectInvalidation { object_number: number, object_change, handlers_with_empty_lane } in
            invalidations
        {
            self.lanes.drop_cached_lanes_of_object(number);
            let Some(cached) = self.objects.get_mut(&number) else { continue };
            match object_change {
                ObjectChange::Unchanged => {}
                ObjectChange::Written(object) => *cached = Some(object),
                ObjectChange::Unknown => *cached = None,
            }
            handlers_with_empty_lane.into_iter().for_each(|handler| {
                self.lanes.insert_lane(lane_number(number, handler), vec![], MAX_CACHED_TASKS_PER_LANE)
            });
        }
    }

    /// Begins a transaction: drops the entries that are valid for one transaction only. Objects with a number greater
    /// than `highest_object_number` do not exist yet.
    pub(crate) fn prepare_for_transaction(&mut self, highest_object_number: i64) {
        self.lanes.set_highest_object_number(highest_object_number);
        self.absent_objects.clear();
        self.idempotency_records.clear();
        self.events.clear();
        self.orders.clear();
    }

    /// Caches the fetched rows of a read set. This transaction must not have written any of them.
    pub(crate) fn insert_prefetched(
        &mut self,
        read_set: ReadSet,
        mut results: impl Iterator<Item = Vec<Row>>,
    ) -> TableResult<()> {
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

    fn insert_objects(&mut self, requested: &[(Tenant, String, HandlerId)], rows: &[Row]) -> TableResult<()> {
        for (tenant, key, _) in requested {
            self.absent_objects.insert((tenant.clone(), key.clone()));
        }
        let mut lanes: HashMap<i64, Vec<LaneHead>> = HashMap::new();
        for row in rows {
            let index = usize::try_from(read_column::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
            let Some((tenant, key, handler)) = requested.get(index) else { continue };
            let object = ObjectRow {
                number: read_column(row, 1)?,
                last_event: read_event_id(row, 2)?,
                last_sent_events: ObjectRow::decode_last_sent_events(read_column(row, 3)?),
            };
            if *handler > 0 {
                let lane = lanes.entry(lane_number(object.number, *handler)).or_default();
                lane.extend(decode_optional_lane_head(row, 4)?);
            }
            self.insert_object((tenant.clone(), key.clone()), Some(object));
        }
        lanes.into_iter().for_each(|(lane, first_tasks)| {
            self.lanes.insert_lane(lane, dedup_first_tasks(first_tasks), TASKS_PER_PREFETCHED_LANE)
        });
        Ok(())
    }

    fn insert_lanes(&mut self, requested: &[i64], rows: &[Row]) -> TableResult<()> {
        let mut lanes: HashMap<i64, Vec<LaneHead>> =
            requested.iter().map(|lane| (*lane, Vec::new())).collect();
        for row in rows {
            lanes.entry(read_column(row, 0)?).or_default().extend(decode_optional_lane_head(row, 1)?);
        }
        lanes.into_iter().for_each(|(lane, first_tasks)| {
            self.lanes.insert_lane(lane, dedup_first_tasks(first_tasks), MAX_CACHED_TASKS_PER_LANE)
        });
        Ok(())
    }

    fn insert_idempotency_records(
        &mut self,
        requested: Vec<(Tenant, String)>,
        rows: &[Row],
    ) -> TableResult<()> {
        self.idempotency_records.extend(requested.into_iter().map(|tenant_and_key| (tenant_and_key, None)));
        for row in rows {
            let columns: IdempotencyRecordColumns<'_> = read_columns(row, 0)?;
            let tenant = Tenant::new(&*columns.tenant).map_err(Fault::damaged)?;
            let tenant_and_key = (tenant, columns.key.to_string());
            self.idempotency_records.insert(tenant_and_key, Some(columns.into_digest_and_response()?));
        }
        Ok(())
    }
}

/// Sorts tasks of a lane by position and removes duplicates: the same lane may have been requested more than once.
fn dedup_first_tasks(mut first_tasks: Vec<LaneHead>) -> Vec<LaneHead> {
    first_tasks.sort_by_key(|head| head.lane_position);
    first_tasks.dedup_by_key(|head| head.lane_position);
    first_tasks
}

/// Decodes a task from the columns seq, queue, key_bucket, concurrency_group, score, due.
pub(crate) fn decode_waiting_task(row: &Row, index: usize) -> TableResult<WaitingTask> {
    Ok(WaitingTask {
        seq: read_task_seq(row, index)?,
        queue: read_column(row, index + 1)?,
        key_bucket: read_key_bucket(row, index + 2)?,
        concurrency_group: read_column(row, index + 3)?,
        score: read_column(row, index + 4)?,
        due: read_time(row, index + 5)?,
    })
}

/// Decodes a task of a lane from the columns seq, queue, key_bucket, concurrency_group, score, due, lane_position,
/// phase; none if seq is NULL: the lane has no task.
pub(crate) fn decode_optional_lane_head(row: &Row, index: usize) -> TableResult<Option<LaneHead>> {
    if read_column::<Option<i64>>(row, index)?.is_none() {
        return Ok(None);
    }
    Ok(Some(LaneHead {
        lane_position: read_column(row, index + 6)?,
        phase: read_phase(row, index + 7)?,
        task: decode_waiting_task(row, index)?,
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
        let tenant_and_key = |number: i64| (Tenant::default(), number.to_string());
        for number in 1..=4 {
            cache.insert_object(tenant_and_key(number), Some(object_row(number, 1)));
            cache.lanes.insert_lane(lane_number(number, 7), vec![], MAX_CACHED_TASKS_PER_LANE);
        }
        cache.apply_invalidations(vec![
            ObjectInvalidation {
                object_number: 1,
                object_change: ObjectChange::Written(object_row(1, 2)),
                handlers_with_empty_lane: vec![7],
            },
            ObjectInvalidation {
                object_number: 2,
                object_change: ObjectChange::Unknown,
                handlers_with_empty_lane: vec![],
            },
            ObjectInvalidation {
                object_number: 3,
                object_change: ObjectChange::Unchanged,
                handlers_with_empty_lane: vec![],
            },
            ObjectInvalidation {
                object_number: 9,
                object_change: ObjectChange::Written(object_row(9, 2)),
                handlers_with_empty_lane: vec![7],
            },
        ]);
        let last = |number: i64| {
            cache.find_object(&tenant_and_key(number)).flatten().map(|object| object.last_event.as_i64())
        };
        assert_eq!([1, 2, 3, 4].map(last), [Some(2), None, Some(1), Some(1)]);
        let is_cached = |number: i64| cache.is_object_and_lane_head_cached(&tenant_and_key(number), 7);
        assert_eq!([1, 2, 3, 4].map(is_cached), [true, false, false, true]);
        assert!(
            cache.find_object_by_number(9).is_none() && !cache.lanes.is_head_cached(lane_number(9, 7)),
            "an object that was not cached stays so"
        );
    }
}
