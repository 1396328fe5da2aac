//! The tables as one transaction of the writer sees them.
//!
//! Every query costs a round trip, so a transaction prefetches its read set when it begins (`cache.rs`), and buffers
//! its writes until the next query or the commit (`write_batch.rs`). A query that must read a table sends the buffered
//! writes along with it.

mod active_tasks;
mod archived_tasks;
mod audit;
mod cache;
mod chains;
mod commit_version;
mod config_digests;
mod events;
mod handlers;
mod idempotency;
mod invalidation;
mod lane_cache;
mod lanes;
mod meta;
mod nodes;
mod objects;
mod orders;
mod queues;
mod retention;
mod rules;
mod schedules;
mod write_batch;

use std::sync::Arc;

use pointsman_core::task::TaskIdNamespace;
use pointsman_store::caller_time_source::CallerTimeSource;
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::{
    CommitVersion, Invalidation, PEER_ACTIVE_TRANSACTION_COUNT, encode_invalidations,
};
use pointsman_store::tables::{CacheState, MetaTable, PeerChanges, QueueTable, ReadSet};
use tokio_postgres::Row;

use crate::error::is_connection_lost;
use crate::pool::SessionPool;
use crate::session::{Query, query};
use crate::writer_connection::{BoxedParam, SqlCommand, WriterConnection, params};
use cache::TransactionCache;
use commit_version::{CommitLog, CommitVersionRow};
use invalidation::InvalidationBuilder;
use write_batch::WriteBatch;

/// Number of rows in a partition, unless the text `partition_rows` in `pointsman.meta` overrides it.
pub(crate) const DEFAULT_ROWS_PER_PARTITION: i64 = 250_000;

/// The writer's transaction on the database: connection, cache and write batch.
pub struct PgTables {
    connection: WriterConnection,
    write_batch: WriteBatch,
    cache: TransactionCache,
    caller_time: Arc<CallerTimeSource>,
    /// The cache reflects all writes of this node: its last transaction committed, and none is open.
    is_cache_current: bool,
    /// Counts down from [`PEER_ACTIVE_TRANSACTION_COUNT`] after a peer has written; above zero, commits publish
    /// invalidation records.
    peer_active_countdown: u32,
    invalidation_builder: InvalidationBuilder,
    commit_version_row: CommitVersionRow,
    /// Changes that peers must apply to their in-memory state.
    pending_invalidations: Vec<Invalidation>,
    /// Handlers, chains, rules or nodes have changed in this transaction.
    is_registry_changed: bool,
    /// The commit that the in-memory state reflects, and its registry version; none if it reflects no commit.
    cached_version: Option<(CommitVersion, i64)>,
    task_id_namespace: Option<TaskIdNamespace>,
    rows_per_partition: i64,
    /// The end of the last journal partition when this was read, and the first event (number, id) of each partition.
    journal_partition_starts: (i64, Vec<(i64, i64)>),
}

/// Builds the settings of the writer: `SET` for a connection, `SET LOCAL` for a transaction.
macro_rules! writer_settings {
    ($set:literal, $local:literal) => {
        concat!(
            $set,
            " idle_in_transaction_session_timeout = '10s'; ",
            $set,
            " lock_timeout = '15s'; ",
            $set,
            " client_connection_check_interval = '2s'; ",
            $set,
            " jit = off; ",
            $set,
            " enable_seqscan = off; ",
            $set,
            " enable_bitmapscan = off; ",
            $set,
            " enable_hashjoin = off; ",
            $set,
            " enable_mergejoin = off; ",
            $set,
            " enable_sort = off; ",
            $set,
            " max_parallel_workers_per_gather = 0; ",
            "SELECT set_config('synchronous_commit', 'on', ",
            $local,
            ") WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    };
}

/// Starts a transaction whatever the server's default is: each statement sees what was committed before it, and thus
/// all that peers wrote until the write lock was taken.
macro_rules! begin_write {
    () => {
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    };
}
const BEGIN_WRITE: &str = begin_write!();
/// Behind a pooler the settings are part of each transaction, because other clients share the session: see
/// [`WRITER_SESSION_SETTINGS`].
const BEGIN_WRITE_BEHIND_POOLER: &str = concat!(begin_write!(), "; ", writer_settings!("SET LOCAL", "true"));
/// Timeouts, so that a node that is stopped inside a transaction does not block the others for long; use of indexes,
/// because the tables of tasks and queues fill and empty faster than statistics follow; and durable commits, whatever
/// the server's default is.
const WRITER_SESSION_SETTINGS: &str =
    concat!(writer_settings!("SET", "false"), "; SET plan_cache_mode = force_generic_plan");

impl PgTables {
    pub(crate) fn new(pool: SessionPool, caller_time: Arc<CallerTimeSource>) -> std::io::Result<Self> {
        Ok(Self {
            connection: WriterConnection::new(pool)?,
            write_batch: WriteBatch::default(),
            cache: TransactionCache::default(),
            caller_time,
            is_cache_current: false,
            peer_active_countdown: 0,
            invalidation_builder: InvalidationBuilder::default(),
            commit_version_row: CommitVersionRow::default(),
            pending_invalidations: vec![],
            is_registry_changed: false,
            cached_version: None,
            task_id_namespace: None,
            rows_per_partition: DEFAULT_ROWS_PER_PARTITION,
            journal_partition_starts: (0, vec![]),
        })
    }

    /// Runs a query after the buffered writes.
    pub(crate) fn query_rows(
        &mut self,
        query: &'static Query,
        params: Vec<BoxedParam>,
    ) -> TableResult<Vec<Row>> {
        let mut commands = self.take_batch_commands()?;
        commands.push(SqlCommand::Query(query, params));
        Ok(self.connection.send_commands(&commands)?.pop().unwrap_or_default())
    }

    /// Runs a query after the buffered writes, and decodes its first row, if there is one.
    fn query_and_decode_first<R>(
        &mut self,
        query: &'static Query,
        params: Vec<BoxedParam>,
        decode: impl FnOnce(&Row) -> TableResult<R>,
    ) -> TableResult<Option<R>> {
        self.query_rows(query, params)?.first().map(decode).transpose()
    }

    /// Runs a query after the buffered writes, and decodes all its rows.
    fn query_and_decode_rows<R>(
        &mut self,
        query: &'static Query,
        params: Vec<BoxedParam>,
        decode: impl Fn(&Row) -> TableResult<R>,
    ) -> TableResult<Vec<R>> {
        self.query_rows(query, params)?.iter().map(decode).collect()
    }

    /// Takes the statements of the write batch, after adding the partitions that they need.
    fn take_batch_commands(&mut self) -> TableResult<Vec<SqlCommand>> {
        self.add_missing_partitions(
            self.write_batch.last_event_number(),
            self.write_batch.has_history_writes(),
        )?;
        self.write_batch.take_commands(self.commit_version_row.last_archive_number)
    }

    /// Adds missing partitions: for events up to this number, and for archived tasks, attempts and log lines if there
    /// are any.
    fn add_missing_partitions(
        &mut self,
        last_event_number: Option<i64>,
        has_history_writes: bool,
    ) -> TableResult<()> {
        loop {
            let journal_end = self.commit_version_row.journal_partitions_end_number;
            let history_end = self.commit_version_row.history_partitions_end_number;
            if last_event_number.is_some_and(|last| last >= journal_end) {
                self.add_partition("journal", journal_end)?;
                self.commit_version_row.journal_partitions_end_number += self.rows_per_partition;
            } else if has_history_writes && self.commit_version_row.last_archive_number >= history_end {
                for table in ["history", "attempt", "log"] {
                    self.add_partition(table, history_end)?;
                }
                self.commit_version_row.history_partitions_end_number += self.rows_per_partition;
            } else {
                return Ok(());
            }
        }
    }

    fn add_partition(&mut self, table: &'static str, first_number: i64) -> TableResult<()> {
        let query = query!("partition/add_partition", TEXT, INT8, INT8);
        self.connection
            .send_commands(&[SqlCommand::Query(
                query,
                params![table, first_number, first_number + self.rows_per_partition],
            )])
            .map(drop)
    }

    /// Opens the connection and reads the state of the last commit.
    pub(crate) fn open(&mut self) -> TableResult<()> {
        self.ensure_connected()?;
        let rows = self.query_rows(query!("commit/list_commit_versions", INT8), params![i64::MAX])?;
        self.commit_version_row = CommitLog::from_rows(&rows)?.1;
        if let Some(partition_rows) = self
            .read_named_text("partition_rows")?
            .and_then(|text| text.parse().ok())
            .filter(|rows| *rows > 0)
        {
            self.rows_per_partition = partition_rows;
        }
        Ok(())
    }

    /// Begins a transaction: takes the write lock, applies what peers have committed, and fetches the read set. Returns
    /// whether the in-memory state is fresh.
    pub(crate) fn begin(&mut self, read_set: ReadSet) -> TableResult<CacheState> {
        self.write_batch.clear();
        self.pending_invalidations.clear();
        self.is_registry_changed = false;
        let is_cache_reusable =
            std::mem::replace(&mut self.is_cache_current, false) && self.cache.is_within_limit();
        let (missing, cached) = match is_cache_reusable {
            true => self.cache.split_read_set(read_set),
            false => (read_set, ReadSet::default()),
        };
        let results = match self.begin_with_write_lock(&missing) {
            Ok(results) => results,
            // The connection was closed while idle. Nothing has been done yet, so another one can be used.
            Err(fault) if is_connection_lost(&fault) => {
                self.connection.disconnect();
                self.begin_with_write_lock(&missing)?
            }
            Err(fault) => return Err(fault),
        };
        // The statements that begin the transaction and take the write lock return no rows.
        let mut results = results.into_iter().skip(2);
        let versions = results.next().unwrap_or_default();
        let (commits, commit_state) = CommitLog::from_rows(&versions)?;
        self.commit_version_row = commit_state;
        let highest_object_number = self.commit_version_row.counters.last_object;
        let previous = self.cached_version;
        let cache_state = self.update_cache_state(&commits)?;
        self.peer_active_countdown = match cache_state {
            CacheState::Fresh => self.peer_active_countdown.saturating_sub(1),
            CacheState::Stale(_) | CacheState::Unknown => PEER_ACTIVE_TRANSACTION_COUNT,
        };
        self.invalidation_builder.start_collecting(self.peer_active_countdown > 0);
        let invalidations = previous
            .filter(|_| is_cache_reusable)
            .and_then(|(version, _)| commits.object_invalidations_since(version));
        match invalidations {
            Some(invalidations) => self.cache.apply_invalidations(invalidations),
            None => self.cache = TransactionCache::default(),
        }
        self.cache.prepare_for_transaction(highest_object_number);
        self.cache.insert_prefetched(missing, results)?;
        // Peers may have invalidated entries that were cached.
        self.prefetch(cached)?;
        Ok(cache_state)
    }

    /// Fetches the part of a read set that is not cached. This transaction must not have written any of it.
    pub(crate) fn prefetch(&mut self, read_set: ReadSet) -> TableResult<()> {
        let (missing, _) = self.cache.split_read_set(read_set);
        let commands = TransactionCache::prefetch_commands(&missing);
        if commands.is_empty() {
            return Ok(());
        }
        let results = self.connection.send_commands(&commands)?;
        self.cache.insert_prefetched(missing, results.into_iter())
    }

    fn ensure_connected(&mut self) -> TableResult<()> {
        if !self.connection.ensure_open()? {
            return Ok(());
        }
        // The new connection may be to another server, which has lost commits of the first.
        self.cached_version = None;
        match self.connection.is_behind_pooler() {
            true => Ok(()),
            false => self.connection.send_commands(&[SqlCommand::Batch(WRITER_SESSION_SETTINGS)]).map(drop),
        }
    }

    /// Begins a transaction, takes the write lock and fetches the read set.
    fn begin_with_write_lock(&mut self, read_set: &ReadSet) -> TableResult<Vec<Vec<Row>>> {
        self.ensure_connected()?;
        let begin = if self.connection.is_behind_pooler() { BEGIN_WRITE_BEHIND_POOLER } else { BEGIN_WRITE };
        let version = self.cached_version.map_or(i64::MAX, |(version, _)| version.number);
        let mut commands = vec![
            SqlCommand::Batch(begin),
            SqlCommand::Query(query!("commit/acquire_write_lock"), vec![]),
            SqlCommand::Query(query!("commit/list_commit_versions", INT8), params![version]),
        ];
        commands.extend(TransactionCache::prefetch_commands(read_set));
        self.connection.send_commands(&commands)
    }

    /// Compares the in-memory state with the last commit and reads what peers have changed.
    fn update_cache_state(&mut self, commits: &CommitLog) -> TableResult<CacheState> {
        let CommitVersionRow { version, registry_version, .. } = self.commit_version_row;
        let previous = self.cached_version.replace((version, registry_version));
        let changes = match previous {
            Some((version, previous_registry)) if previous_registry == registry_version => {
                commits.queue_limiter_task_invalidations_since(version)
            }
            Some(_) | None => None,
        };
        match changes {
            Some(_) if previous.is_some_and(|(previous, _)| previous == version) => Ok(CacheState::Fresh),
            Some(changes) => self.read_peer_changes(changes).map(CacheState::Stale),
            None => Ok(CacheState::Unknown),
        }
    }

    /// Reads the queues and limiters that peers have changed.
    fn read_peer_changes(&mut self, changes: Vec<Invalidation>) -> TableResult<PeerChanges> {
        let (mut queues, mut limiters, mut stale_tasks, mut are_all_queues_stale) =
            (vec![], vec![], vec![], false);
        for change in changes {
            match change {
                Invalidation::Queue(id) => queues.push(id),
                Invalidation::Limiter(id) => limiters.push(id),
                Invalidation::Task(seq) => stale_tasks.push(seq),
                Invalidation::AllQueues => are_all_queues_stale = true,
            }
        }
        Ok(PeerChanges {
            counters: self.commit_version_row.counters,
            queue_rows: if are_all_queues_stale {
                self.list_queues()?
            } else {
                self.list_queues_by_id(queues)?
            },
            limiter_states: self.list_limiter_states(limiters)?,
            stale_tasks,
        })
    }

    /// Sends the buffered writes with the next row of `pointsman.commit_version`, and commits.
    pub(crate) fn commit(&mut self) -> TableResult<()> {
        if self.is_registry_changed {
            self.commit_version_row.registry_version += 1;
        }
        let changes = std::mem::take(&mut self.pending_invalidations);
        let object_invalidations = self.invalidation_builder.encode_record(&self.cache);
        let mut commands = self.take_batch_commands()?;
        self.commit_version_row.version = self.commit_version_row.version.next_version();
        commands.push(SqlCommand::Query(
            query!(
                "commit/insert_commit_version",
                INT8,
                INT8,
                INT8_ARRAY,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                BYTEA,
                INT8
            ),
            self.commit_version_row.version_row_params(encode_invalidations(changes), object_invalidations),
        ));
        commands.push(SqlCommand::Batch("COMMIT"));
        self.connection.send_commands(&commands)?;
        self.cached_version =
            Some((self.commit_version_row.version, self.commit_version_row.registry_version));
        self.is_cache_current = true;
        Ok(())
    }

    /// Rolls back by disconnecting, and drops the cached state.
    pub(crate) fn roll_back(&mut self) {
        self.write_batch.clear();
        self.cached_version = None;
        self.connection.disconnect();
    }

    pub(crate) fn rows_written(&self) -> u64 {
        self.write_batch.rows_written
    }

    /// Adds a statement, whose result is not needed, to the write batch.
    fn add_to_batch(&mut self, command: SqlCommand) {
        self.write_batch.add_unmerged_command(command);
    }

    fn record_invalidation(&mut self, change: Invalidation) {
        self.pending_invalidations.push(change);
    }

    fn mark_registry_changed(&mut self) {
        self.is_registry_changed = true;
    }
}

impl std::fmt::Debug for PgTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PgTables")
    }
}
