//! Begin, commit and rollback of a transaction.

use std::time::{Duration, Instant};

use pointsman_core::Tenant;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::{
    CommitRecord, CommitVersion, Invalidation, PEER_ACTIVE_TRANSACTION_COUNT, commits_since,
    decode_invalidations, encode_invalidations,
};
use pointsman_store::row::HandlerId;
use pointsman_store::tables::{CacheState, PeerChanges, ReadSet};
use redis::Value;

use super::RedisTables;
use crate::codec::encode_decimal_field;
use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{CommandArgs, args};
use crate::error::{commit_refused_fault, is_connection_fault};
use crate::keys::{Table, active_task_location};
use crate::lookup::object_fetches;
use crate::overlay::{
    CacheFetch, FetchedReplies, decode_integer, decode_list, decode_optional_bytes, decode_strings,
    decode_text_reply,
};
use crate::rows;
use crate::store_state::{
    RecentCommits, STORE_MISSING_MESSAGE, StoreState, decode_commit_record, decode_invalidation_record,
    encode_commit_record, encode_commit_version, encode_invalidation_record,
};
use crate::write_lock::{self, CommitRequest};

/// Time for which a commit without a reply is resent.
const COMMIT_RETRY_WINDOW: Duration = Duration::from_secs(5);
const COMMIT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Number of tasks at the head of a lane whose rows are fetched: when one ends, the next may start.
const PREFETCHED_TASKS_PER_LANE: usize = 2;

/// Reply of `begin_transaction.lua`.
enum LockReply {
    Acquired(Box<StoreState>, RecentCommits),
    Busy,
    /// There is no store.
    NoStore,
}

/// State that was read when the write lock was acquired.
struct StateReadWithLock {
    store_state: StoreState,
    recent_commits: RecentCommits,
    /// Rows fetched together with the lock.
    prefetched: FetchedReplies,
    /// Whether an object of the read set has outbox entries.
    has_outbox_entries: bool,
}

impl RedisTables {
    /// Loads the store state under the write lock, which is released again; returns `false` if there is no store.
    pub(crate) fn load_store_state_if_exists(&mut self) -> TableResult<bool> {
        match self.acquire_write_lock(&ReadSet::default())? {
            Some(locked) => {
                self.store_state = locked.store_state;
                self.release_write_lock()?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(crate) fn begin(&mut self, read_set: ReadSet) -> TableResult<CacheState> {
        self.overlay.connection.disable_lock_renewal_on_send();
        self.invalidations.clear();
        self.outbox_state.clear();
        self.registry_changed = false;
        let Some(StateReadWithLock { store_state, recent_commits, prefetched, has_outbox_entries }) =
            self.acquire_write_lock(&read_set)?
        else {
            return Err(Fault::damaged(STORE_MISSING_MESSAGE));
        };
        self.store_state = store_state.clone();
        self.store_state_at_begin = store_state;
        let cache_state = self.refresh_caches(&recent_commits, prefetched)?;
        match cache_state {
            CacheState::Fresh => {
                self.peer_activity_countdown = self.peer_activity_countdown.saturating_sub(1);
                self.prefetch_lanes(&read_set)?;
            }
            CacheState::Stale(_) => {
                self.peer_activity_countdown = PEER_ACTIVE_TRANSACTION_COUNT;
                self.prefetch_read_set(&read_set)?;
            }
            CacheState::Unknown => {
                self.peer_activity_countdown = PEER_ACTIVE_TRANSACTION_COUNT;
                // The writer reads everything again, which may take longer than the lease of the lock.
                self.overlay.connection.enable_lock_renewal_on_send(&write_lock::renew_command(
                    &self.overlay.keys,
                    &self.lock_owner_name,
                ));
                self.prefetch_read_set(&read_set)?;
            }
        }
        self.read_outboxes_for(&read_set, has_outbox_entries)?;
        Ok(cache_state)
    }

    /// Acquires the write lock, and fetches the read set with it; `None` if there is no store.
    fn acquire_write_lock(&mut self, read_set: &ReadSet) -> TableResult<Option<StateReadWithLock>> {
        loop {
            let commands_before = vec![
                self.acquire_lock_command(),
                self.last_assigned_id_command(),
                self.outbox_exists_command(read_set),
            ];
            let (replies, prefetched) =
                self.overlay.fetch_without_caching(commands_before, self.plan_read_set_fetches(read_set))?;
            let mut replies = replies.into_iter();
            let mut reply = || replies.next().unwrap_or(Value::Nil);
            match Self::decode_lock_reply(reply())? {
                LockReply::Acquired(store_state, recent_commits) => {
                    let last_assigned_id = decode_list(reply())?.into_iter().next().unwrap_or(Value::Nil);
                    self.outbox_state.set_last_assigned_id_if_plausible(
                        decode_optional_bytes(last_assigned_id)?,
                        self.caller_time.now(),
                    );
                    let has_outbox_entries = decode_integer(reply())? > 0;
                    return Ok(Some(StateReadWithLock {
                        store_state: *store_state,
                        recent_commits,
                        prefetched,
                        has_outbox_entries,
                    }));
                }
                LockReply::NoStore => return Ok(None),
                // A peer is writing, so the fetched rows may be stale.
                LockReply::Busy => drop(
                    self.overlay
                        .connection
                        .execute(write_lock::wait_command(&self.overlay.keys, &self.lock_owner_name))?,
                ),
            }
        }
    }

    fn acquire_lock_command(&self) -> CommandArgs {
        let cached_version = self.cached_versions.map(|(version, _)| version.number);
        write_lock::acquire_command(&self.overlay.keys, &self.lock_owner_name, cached_version)
    }

    fn decode_lock_reply(reply: Value) -> TableResult<LockReply> {
        let mut parts = decode_list(reply)?.into_iter();
        let mut part = || parts.next().unwrap_or(Value::Nil);
        if decode_integer(part())? == 0 {
            return Ok(LockReply::Busy);
        }
        let state = decode_optional_bytes(part())?.filter(|state| !state.is_empty());
        let Some(state) = state else { return Ok(LockReply::NoStore) };
        // An invalidation record that cannot be decoded counts as not published.
        let invalidations = decode_strings(part())?
            .iter()
            .filter_map(|record| decode_invalidation_record(record).ok())
            .collect();
        let mut commits = Vec::new();
        for record in parts {
            commits.extend(
                decode_optional_bytes(record)?.map(|record| decode_commit_record(&record)).transpose()?,
            );
        }
        commits.reverse();
        Ok(LockReply::Acquired(
            Box::new(StoreState::decode(&state)?),
            RecentCommits { commits, invalidation_records: invalidations },
        ))
    }

    /// Drops stale cache entries, caches the fetched rows, and returns the state of the writer's caches.
    fn refresh_caches(
        &mut self,
        recent_commits: &RecentCommits,
        prefetched: FetchedReplies,
    ) -> TableResult<CacheState> {
        let (version, registry) = (self.store_state.commit_version, self.store_state.registry_version);
        let previous = self.cached_versions.replace((version, registry));
        let changes = match previous {
            Some((cached, cached_registry)) if cached_registry == registry => {
                let later = commits_since(&recent_commits.commits, cached, |commit| commit.version);
                later.and_then(|later| {
                    decode_invalidations(later.iter().map(|commit| commit.invalidations.as_ref()))
                })
            }
            Some(_) | None => None,
        };
        let is_fresh = changes.is_some() && previous.is_some_and(|(cached, _)| cached == version);
        if !is_fresh {
            let records = changes
                .as_ref()
                .and(previous)
                .and_then(|(cached, _)| recent_commits.invalidation_records_since(cached));
            match records {
                Some(records) => records.iter().for_each(|record| self.overlay.drop_invalidated(record)),
                None => self.overlay.clear(),
            }
        }
        self.overlay.cache_fetched(prefetched)?;
        if is_fresh {
            return Ok(CacheState::Fresh);
        }
        match changes {
            Some(changes) => self.read_peer_changes(changes).map(CacheState::Stale),
            None => Ok(CacheState::Unknown),
        }
    }

    fn read_peer_changes(&mut self, changes: Vec<Invalidation>) -> TableResult<PeerChanges> {
        let counters = self.store_state.counters;
        let mut peer_changes = PeerChanges { counters, ..PeerChanges::default() };
        let (mut queues, mut all_queues) = (vec![], false);
        for change in changes {
            match change {
                Invalidation::Queue(id) => queues.push(id),
                Invalidation::Limiter(id) => {
                    peer_changes.limiter_states.push((id, self.overlay.read_limiter_state(id)?))
                }
                Invalidation::Task(seq) => peer_changes.stale_tasks.push(seq),
                Invalidation::AllQueues => all_queues = true,
            }
        }
        if all_queues {
            peer_changes.queue_rows = self.overlay.read_queues()?;
            return Ok(peer_changes);
        }
        queues.sort_unstable();
        queues.dedup();
        let fetches = |id: &i64| {
            let field = encode_decimal_field(*id);
            [CacheFetch::Row(Table::Queues, field.clone()), CacheFetch::Row(Table::QueueCounts, field)]
        };
        self.overlay.fetch_into_cache(queues.iter().flat_map(fetches).collect())?;
        for id in queues {
            peer_changes.queue_rows.extend(self.overlay.read_queue(id)?);
        }
        Ok(peer_changes)
    }

    /// Returns the fetches for a read set that do not depend on the result of another one.
    fn plan_read_set_fetches(&self, read_set: &ReadSet) -> Vec<CacheFetch> {
        let mut fetches = Vec::new();
        let is_uncached =
            |(tenant, key, _): &&(Tenant, String, HandlerId)| !self.overlay.is_object_cached(tenant, key);
        for (tenant, key, _) in read_set.objects.iter().filter(is_uncached) {
            fetches.extend(object_fetches(tenant, key));
        }
        fetches.extend(read_set.lanes.iter().copied().map(CacheFetch::Lane));
        let field = |(tenant, key): &(Tenant, String)| rows::encode_key_field(&[tenant.as_str(), key]);
        fetches.extend(read_set.tasks.iter().map(|seq| CacheFetch::from(active_task_location(*seq))));
        fetches.extend(
            read_set
                .idempotency_keys
                .iter()
                .map(|key| CacheFetch::Row(Table::IdempotencyRecords, field(key).into())),
        );
        fetches
    }

    /// Fetches a read set.
    pub(crate) fn prefetch_read_set(&mut self, read_set: &ReadSet) -> TableResult<()> {
        self.overlay.fetch_into_cache(self.plan_read_set_fetches(read_set))?;
        self.prefetch_lanes(read_set)
    }

    /// Fetches the read set of jobs that join the transaction.
    pub(crate) fn prefetch_read_set_of_joining_jobs(&mut self, read_set: &ReadSet) -> TableResult<()> {
        let exists_command = vec![self.outbox_exists_command(read_set)];
        let has_outbox_entries =
            self.overlay.fetch_after_commands(exists_command, self.plan_read_set_fetches(read_set))?.pop();
        self.prefetch_lanes(read_set)?;
        self.read_outboxes_for(read_set, decode_integer(has_outbox_entries.unwrap_or(Value::Nil))? > 0)
    }

    /// Fetches the lanes of the objects in a read set, which need the numbers of the objects, and then the tasks at the heads of
    /// all lanes.
    fn prefetch_lanes(&mut self, read_set: &ReadSet) -> TableResult<()> {
        let mut lanes = Vec::with_capacity(read_set.objects.len());
        for (tenant, key, handler) in read_set.objects.iter().filter(|(_, _, handler)| *handler != 0) {
            if let Some(object) = self.overlay.read_object(tenant, key)? {
                lanes.push(pointsman_store::lane_number(object.number, *handler));
            }
        }
        self.overlay.fetch_into_cache(lanes.iter().copied().map(CacheFetch::Lane).collect())?;
        self.overlay
            .prefetch_first_lane_tasks(read_set.lanes.iter().copied().chain(lanes), PREFETCHED_TASKS_PER_LANE)
    }

    /// Writes the last assigned id to `next.event.id` of document 001, if the transaction assigned any.
    fn write_last_assigned_id(&mut self) {
        let last = self.store_state.counters.last_event;
        if last != self.store_state_at_begin.counters.last_event {
            self.overlay.add_extra_command(args![
                "SET",
                self.overlay.keys.with_prefix("next.event.id"),
                last.to_string()
            ]);
        }
    }

    pub(crate) fn commit(&mut self) -> TableResult<()> {
        self.commit_transaction(false)
    }

    /// Commits, and begins the next transaction without releasing the write lock: reads the outboxes again.
    pub(crate) fn commit_keeping_write_lock(&mut self) -> TableResult<()> {
        self.commit_transaction(true)?;
        self.store_state_at_begin = self.store_state.clone();
        self.registry_changed = false;
        self.outbox_state.clear_journaled();
        self.read_outboxes()
    }

    /// Commits the pending writes, unless there are none. Releases the write lock, or keeps it for the next transaction.
    fn commit_transaction(&mut self, keep_lock: bool) -> TableResult<()> {
        self.write_last_assigned_id();
        let writes = self.overlay.encode_writes();
        if writes.is_empty() && !self.registry_changed && self.store_state == self.store_state_at_begin {
            return self.release_write_lock();
        }
        self.store_state.commit_version = self.store_state.commit_version.next_version();
        self.store_state.registry_version += i64::from(self.registry_changed);
        let new_state = &self.store_state;
        let commit = CommitRecord {
            version: new_state.commit_version,
            invalidations: encode_invalidations(std::mem::take(&mut self.invalidations)),
        };
        let record =
            (self.peer_activity_countdown > 0).then(|| self.overlay.invalidation_record().encode()).flatten();
        let request = CommitRequest {
            expected_version: encode_commit_version(self.store_state_at_begin.commit_version),
            new_state: new_state.encode(),
            commit_record: encode_commit_record(&commit),
            invalidation_record: record
                .map(|record| encode_invalidation_record(new_state.commit_version, record))
                .unwrap_or_default(),
            keep_lock,
            fences: self.outbox_state.fences(),
            writes: Some(&writes),
        };
        self.send_commit_with_retries(&write_lock::commit_command(
            &self.overlay.keys,
            &self.lock_owner_name,
            request,
        ))?;
        self.rows_written += writes.arg_count() as u64 / 2;
        self.cached_versions = Some((self.store_state.commit_version, self.store_state.registry_version));
        Ok(())
    }

    /// Sends a commit, and sends it again if there is no reply: the script recognises a repetition by the nonce.
    fn send_commit_with_retries(&mut self, commit: &CommandArgsBuffer) -> TableResult<()> {
        let begun = Instant::now();
        let reply = loop {
            match self.overlay.send_commit(commit) {
                Err(fault) if is_connection_fault(&fault) && begun.elapsed() < COMMIT_RETRY_WINDOW => {
                    std::thread::sleep(COMMIT_RETRY_DELAY)
                }
                reply => break reply?,
            }
        };
        if let Value::Array(parts) = reply {
            let key = parts.into_iter().nth(1).map(decode_text_reply).transpose()?.unwrap_or_default();
            return Err(Fault::damaged(format!(
                "key {key} has the wrong type; nothing was stored; rename the key, another application wrote it"
            )));
        }
        match decode_text_reply(reply)?.as_str() {
            "committed" => Ok(()),
            "conflict" => Err(commit_refused_fault("a peer committed first; try again")),
            "unknown" => Err(commit_refused_fault(
                "the reply to the commit was lost, and whether it was stored is unknown",
            )),
            _ => Err(commit_refused_fault("another worker took over the outbox events; try again")),
        }
    }

    /// Releases the write lock without writing.
    fn release_write_lock(&mut self) -> TableResult<()> {
        self.overlay
            .connection
            .execute_buffer(&write_lock::release_command(&self.overlay.keys, &self.lock_owner_name))?;
        self.overlay.mark_committed();
        Ok(())
    }

    /// Creates the store unless another node was faster.
    pub(crate) fn create_store(&mut self, texts: &[(&str, String)]) -> TableResult<()> {
        for (name, text) in texts {
            self.overlay.write_row(Table::NamedTexts, name, text.clone().into_bytes());
        }
        let writes = self.overlay.encode_writes();
        let store_state =
            StoreState { commit_version: CommitVersion::default().next_version(), ..StoreState::default() };
        let commit = CommitRecord { version: store_state.commit_version, invalidations: None };
        let (new_state, commit_record) = (store_state.encode(), encode_commit_record(&commit));
        let request =
            CommitRequest { new_state, commit_record, writes: Some(&writes), ..CommitRequest::default() };
        self.overlay.connection.execute_buffer(&write_lock::commit_command(
            &self.overlay.keys,
            &self.lock_owner_name,
            request,
        ))?;
        self.overlay.clear();
        Ok(())
    }

    /// Drops the caches and the pending writes, and releases the write lock, so that peers need not wait for its expiry.
    pub(crate) fn roll_back(&mut self) {
        self.overlay.clear();
        self.cached_versions = None;
        if self.overlay.connection.is_open() && self.release_write_lock().is_err() {
            self.overlay.connection.disconnect();
        }
        self.overlay.clear();
    }
}
