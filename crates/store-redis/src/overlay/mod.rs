//! The transaction overlay: cached rows, index members and events, merged with the pending writes of the transaction.
//!
//! Redis has no interactive transactions. So the overlay buffers writes, includes them in the results of later reads, and the
//! commit sends them all at once. Rows that were read are cached, because each read costs a round trip.

mod events;
mod fetch;
mod indexes;
mod invalidation;
mod lane_cache;
mod rows;

use std::ops::Bound;
use std::sync::Arc;

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::error::TableResult;
use redis::Value;

use crate::codec::MemberOrField;
use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{BlockingConnection, CommandArgs};
use crate::keys::{Index, Keys, Table, active_task_location};
use events::EventOverlay;
pub(crate) use fetch::{
    CacheFetch, FetchedReplies, decode_integer, decode_journal_entries, decode_list, decode_optional_bytes,
    decode_strings, decode_text_reply,
};
use indexes::IndexOverlay;
use indexes::prefix_bounds;
pub(crate) use indexes::{ScanOrder, end_of_prefix};
pub(crate) use invalidation::InvalidationRecord;
use rows::RowOverlay;

pub(crate) type Bytes = Arc<[u8]>;

/// The bounds of all members of an index.
pub(crate) const ALL_MEMBERS: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Cache and pending writes of a transaction; see the module.
pub(crate) struct TransactionOverlay {
    pub(crate) connection: BlockingConnection,
    pub(crate) keys: Keys,
    contents: OverlayContents,
}

/// Cached data and pending writes.
#[derive(Default)]
struct OverlayContents {
    rows: RowOverlay,
    indexes: IndexOverlay,
    events: EventOverlay,
    /// Commands besides those for rows, indexes and events.
    extra_commands: Vec<CommandArgs>,
}

impl OverlayContents {
    /// Turns the pending writes into cached data, and drops data that is unlikely to be read again.
    fn mark_committed(&mut self) {
        self.rows.mark_committed();
        self.indexes.mark_committed();
        self.events = EventOverlay::default();
        self.extra_commands.clear();
    }
}

impl TransactionOverlay {
    pub(crate) fn new(connection: BlockingConnection, keys: Keys) -> Self {
        Self { connection, keys, contents: OverlayContents::default() }
    }

    /// Drops all cached data and all pending writes.
    pub(crate) fn clear(&mut self) {
        self.contents = OverlayContents::default();
    }

    /// Returns the invalidation record of the pending writes.
    pub(crate) fn invalidation_record(&self) -> InvalidationRecord {
        let mut record = InvalidationRecord::default();
        self.contents.rows.add_to_invalidation_record(&mut record);
        record.lanes = self.contents.indexes.written_lanes();
        record
    }

    /// Drops cached entries that peers have written.
    pub(crate) fn drop_invalidated(&mut self, record: &InvalidationRecord) {
        self.contents.rows.drop_invalidated(record);
        self.contents.indexes.drop_invalidated(record);
    }

    /// Treats the pending writes as committed: turns them into cached data, and drops data that is unlikely to be read
    /// again.
    pub(crate) fn mark_committed(&mut self) {
        self.contents.mark_committed();
    }

    /// Sends a commit. While Redis commits, the pending writes already become cached data: if the commit fails, the caller
    /// clears the overlay.
    pub(crate) fn send_commit(&mut self, commit: &CommandArgsBuffer) -> TableResult<Value> {
        self.connection.execute_buffer_while(commit, &mut || self.contents.mark_committed())
    }

    // --- rows ----------------------------------------------------------------------------------------------------

    pub(crate) fn read_row(&mut self, table: Table, field: impl AsRef<[u8]>) -> TableResult<Option<Bytes>> {
        if let Some(cached) = self.contents.rows.find_cached(&table, field.as_ref()) {
            return Ok(cached.cloned());
        }
        self.fetch_into_cache(vec![CacheFetch::Row(table.clone(), field.as_ref().into())])?;
        Ok(self.contents.rows.find_cached(&table, field.as_ref()).flatten().cloned())
    }

    /// Returns whether a row is cached and exists.
    pub(crate) fn has_cached_row(&self, table: &Table, field: &[u8]) -> bool {
        self.with_cached_row(table, field, |_| ()).is_some()
    }

    /// Applies `decode` to a row if it is cached and exists.
    pub(crate) fn with_cached_row<T>(
        &self,
        table: &Table,
        field: &[u8],
        decode: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        self.contents.rows.find_cached(table, field).flatten().map(|row| decode(row))
    }

    /// Returns all rows of a table with their fields.
    pub(crate) fn read_table(&mut self, table: Table) -> TableResult<Vec<(MemberOrField, Bytes)>> {
        if !self.contents.rows.is_table_cached(&table) {
            self.fetch_into_cache(vec![CacheFetch::Table(table.clone())])?;
        }
        Ok(self.contents.rows.read_cached_table(&table))
    }

    pub(crate) fn write_row(&mut self, table: Table, field: impl AsRef<[u8]>, value: Vec<u8>) {
        self.contents.rows.write_or_delete(table, field.as_ref(), Some(value.into()));
    }

    pub(crate) fn delete_row(&mut self, table: Table, field: impl AsRef<[u8]>) {
        self.contents.rows.write_or_delete(table, field.as_ref(), None);
    }

    // --- indexes -------------------------------------------------------------------------------------------------

    pub(crate) fn add_member(&mut self, index: Index, member: impl Into<MemberOrField>) {
        self.contents.indexes.add_member(index, member.into());
    }

    pub(crate) fn remove_member(&mut self, index: Index, member: impl Into<MemberOrField>) {
        self.contents.indexes.remove_member(index, member.into());
    }

    /// Reads at most `limit` members of an index between two bounds, in either order.
    pub(crate) fn read_members(
        &mut self,
        index: &Index,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        scan_order: ScanOrder,
        limit: usize,
    ) -> TableResult<Vec<MemberOrField>> {
        let removed = self.contents.indexes.count_pending_removals_between(index, (lower, upper));
        let fetch_limit = limit.saturating_add(removed);
        let reply = self.connection.execute(indexes::member_range_command(
            self.keys.index_key(index),
            (lower, upper),
            scan_order,
            fetch_limit,
        ))?;
        let found = fetch::decode_members(reply)?;
        Ok(self.contents.indexes.merge_pending(index, (lower, upper), scan_order, limit, found))
    }

    /// Reads at most `limit` members with a prefix, in ascending order.
    pub(crate) fn read_members_with_prefix(
        &mut self,
        index: &Index,
        prefix: &[u8],
        limit: usize,
    ) -> TableResult<Vec<MemberOrField>> {
        let end = end_of_prefix(prefix);
        self.read_members(index, prefix_bounds(prefix, end.as_deref()), ScanOrder::Ascending, limit)
    }

    /// Reads the first position of a lane.
    pub(crate) fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<(i64, TaskSeq)>> {
        self.fetch_into_cache(vec![CacheFetch::Lane(lane)])?;
        Ok(self.contents.indexes.cached_lane_positions(lane).first().copied())
    }

    /// Caches a lane as empty in Redis, unless it is cached: the caller knows that nothing was in it.
    pub(crate) fn assume_lane_was_empty(&mut self, lane: i64) -> TableResult<()> {
        self.contents.indexes.assume_lane_was_empty(lane)
    }

    /// Fetches the task rows of the first positions of cached lanes.
    pub(crate) fn prefetch_first_lane_tasks(
        &mut self,
        lanes: impl Iterator<Item = i64>,
        tasks_per_lane: usize,
    ) -> TableResult<()> {
        let uncached: Vec<CacheFetch> = {
            let OverlayContents { indexes, rows, .. } = &self.contents;
            let positions =
                lanes.flat_map(|lane| indexes.cached_lane_positions(lane).iter().take(tasks_per_lane));
            let locations = positions.map(|(_, seq)| active_task_location(*seq));
            locations
                .filter(|(table, field)| rows.find_cached(table, field).is_none())
                .map(CacheFetch::from)
                .collect()
        };
        self.fetch_into_cache(uncached)
    }

    /// Returns the number of pending removals of an index.
    pub(crate) fn count_pending_removals(&self, index: &Index) -> usize {
        self.contents.indexes.count_pending_removals_between(index, ALL_MEMBERS)
    }

    /// Merges the first members of an index that Redis returned with pending writes.
    pub(crate) fn merge_pending_members(
        &self,
        index: &Index,
        scan_order: ScanOrder,
        limit: usize,
        found: Vec<MemberOrField>,
    ) -> Vec<MemberOrField> {
        self.contents.indexes.merge_pending(index, ALL_MEMBERS, scan_order, limit, found)
    }

    // --- events --------------------------------------------------------------------------------------------------

    /// Appends an event, which is newer than all others.
    pub(crate) fn append_event(&mut self, id: EventId, value: Vec<u8>) {
        self.contents.events.append(id, value.into());
    }

    pub(crate) fn delete_event(&mut self, id: EventId) {
        self.contents.events.delete(id);
    }

    pub(crate) fn read_encoded_event(&mut self, id: EventId) -> TableResult<Option<Bytes>> {
        if let Some(cached) = self.contents.events.find_cached(id) {
            return Ok(cached);
        }
        self.fetch_into_cache(vec![CacheFetch::Event(id)])?;
        Ok(self.contents.events.find_cached(id).flatten())
    }

    /// Reads at most `limit` events between two ids, both included.
    pub(crate) fn read_encoded_events(
        &mut self,
        from: EventId,
        to: EventId,
        scan_order: ScanOrder,
        limit: usize,
    ) -> TableResult<Vec<(EventId, Bytes)>> {
        if from > to {
            return Ok(vec![]);
        }
        let args = events::event_range_command(self.keys.journal_key(), from, to, scan_order, limit);
        let found = fetch::decode_journal_entries(self.connection.execute(args)?)?;
        Ok(self.contents.events.merge_pending(found, from, to, scan_order, limit))
    }

    // --- extra commands, and all writes --------------------------------------------------------------------------

    /// Adds a command that the commit runs after the writes of rows, indexes and events.
    pub(crate) fn add_extra_command(&mut self, args: CommandArgs) {
        self.contents.extra_commands.push(args);
    }

    /// Encodes the commands for all pending writes.
    pub(crate) fn encode_writes(&self) -> CommandArgsBuffer {
        let mut writes = CommandArgsBuffer::default();
        self.contents.events.push_write_commands(&self.keys, &mut writes);
        self.contents.rows.push_write_commands(&self.keys, &mut writes);
        self.contents.indexes.push_write_commands(&self.keys, &mut writes);
        self.contents.rows.push_bucket_index_prune_commands(&self.keys, &mut writes);
        self.contents.extra_commands.iter().for_each(|args| writes.push_command_for_script(args));
        writes
    }
}

impl std::fmt::Debug for TransactionOverlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionOverlay").field("connection", &self.connection).finish()
    }
}
