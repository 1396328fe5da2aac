//! The store state in `pointsman:store-state`, and the records of commits in `pointsman:commit-records` and
//! `pointsman:invalidation-records`.

use pointsman_core::journal::JournalRange;
use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::{CommitRecord, CommitVersion, commits_since};
use pointsman_store::tables::Counters;

use crate::codec::{RowDecoder, RowEncoder};
use crate::overlay::InvalidationRecord;

/// Message of the fault if the store disappeared while it was open.
pub(crate) const STORE_MISSING_MESSAGE: &str = "the store is gone from Redis, as after FLUSHALL or a start without the append-only file; restore \
    a backup, or start the nodes again with an empty store";

/// Size of an encoded commit version, with which the store state and all commit records start.
pub(crate) const COMMIT_VERSION_BYTES: usize = 16;

/// The state that each commit replaces: its version, the counters, and the last assigned numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreState {
    pub(crate) commit_version: CommitVersion,
    /// Incremented by each change of handlers, chains, rules or nodes.
    pub(crate) registry_version: i64,
    pub(crate) counters: Counters,
    /// The last assigned numbers of queues, nodes and audit entries.
    pub(crate) last_queue_id: i64,
    pub(crate) last_node_id: i64,
    pub(crate) last_audit_entry_number: i64,
}

impl StoreState {
    pub(crate) fn decode(bytes: &[u8]) -> TableResult<Self> {
        let mut row = RowDecoder::new(bytes);
        Ok(Self {
            commit_version: decode_commit_version(&mut row)?,
            registry_version: row.read_varint()?,
            last_queue_id: row.read_varint()?,
            last_node_id: row.read_varint()?,
            last_audit_entry_number: row.read_varint()?,
            counters: decode_counters(&mut row)?,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let row = start_row_with_commit_version(self.commit_version)
            .push_varint(self.registry_version)
            .push_varint(self.last_queue_id)
            .push_varint(self.last_node_id)
            .push_varint(self.last_audit_entry_number);
        encode_counters(&self.counters, row).finish()
    }

    pub(crate) fn journal_range(&self) -> JournalRange {
        JournalRange {
            newest_event_id: self.counters.last_event,
            last_expired_event_id: self.counters.expired_up_to,
        }
    }
}

/// Appends the counters of the store to a row.
fn encode_counters(counters: &Counters, encoder: RowEncoder) -> RowEncoder {
    encoder
        .push_varint(counters.last_event.as_i64())
        .push_varint(counters.expired_up_to.as_i64())
        .push_varint(counters.last_task)
        .push_varint(counters.last_fence)
        .push_varint(counters.last_object)
        .push_varint(counters.last_order)
        .push_varint(counters.journaled_event_count)
        .push_varint(counters.archived_task_count)
        .push_optional_varint(counters.next_due.map(Timestamp::micros))
}

fn decode_counters(row: &mut RowDecoder<'_>) -> TableResult<Counters> {
    Ok(Counters {
        last_event: EventId::from_i64(row.read_varint()?),
        expired_up_to: EventId::from_i64(row.read_varint()?),
        last_task: row.read_varint()?,
        last_fence: row.read_varint()?,
        last_object: row.read_varint()?,
        last_order: row.read_varint()?,
        journaled_event_count: row.read_varint()?,
        archived_task_count: row.read_varint()?,
        next_due: row.read_optional_varint()?.map(Timestamp::from_micros),
    })
}

/// Starts a row that begins with a commit version, in bytes that scripts can read.
fn start_row_with_commit_version(commit_version: CommitVersion) -> RowEncoder {
    RowEncoder::with_capacity(64).push_fixed_i64(commit_version.number).push_fixed_i64(commit_version.nonce)
}

fn decode_commit_version(row: &mut RowDecoder<'_>) -> TableResult<CommitVersion> {
    Ok(CommitVersion { number: row.read_fixed_i64()?, nonce: row.read_fixed_i64()? })
}

/// Encodes only a commit version.
pub(crate) fn encode_commit_version(commit_version: CommitVersion) -> Vec<u8> {
    start_row_with_commit_version(commit_version).finish()
}

pub(crate) fn encode_commit_record(commit: &CommitRecord) -> Vec<u8> {
    let row = start_row_with_commit_version(commit.version)
        .push_optional_varint(commit.invalidations.as_ref().map(|codes| codes.len() as i64));
    commit.invalidations.iter().flatten().fold(row, |row, code| row.push_varint(*code)).finish()
}

pub(crate) fn decode_commit_record(bytes: &[u8]) -> TableResult<CommitRecord> {
    let mut row = RowDecoder::new(bytes);
    let commit_version = decode_commit_version(&mut row)?;
    let invalidations = match row.read_optional_varint()? {
        Some(count) => Some((0..count).map(|_| row.read_varint()).collect::<TableResult<_>>()?),
        None => None,
    };
    Ok(CommitRecord { version: commit_version, invalidations })
}

/// Records of the last commits.
#[derive(Debug, Default)]
pub(crate) struct RecentCommits {
    /// Commit records, oldest first.
    pub(crate) commits: Vec<CommitRecord>,
    /// Invalidation records of those commits that published one.
    pub(crate) invalidation_records: Vec<(CommitVersion, InvalidationRecord)>,
}

impl RecentCommits {
    /// Returns the invalidation records of the commits after a version; `None` if one of them is missing.
    pub(crate) fn invalidation_records_since(
        &self,
        cached_version: CommitVersion,
    ) -> Option<Vec<&InvalidationRecord>> {
        let find_record = |commit: &CommitRecord| {
            self.invalidation_records.iter().find(|(commit_version, _)| *commit_version == commit.version)
        };
        let later = commits_since(&self.commits, cached_version, |commit| commit.version)?;
        later.iter().map(|commit| find_record(commit).map(|(_, invalidations)| invalidations)).collect()
    }
}

pub(crate) fn encode_invalidation_record(commit_version: CommitVersion, record: Vec<u8>) -> Vec<u8> {
    [encode_commit_version(commit_version), record].concat()
}

pub(crate) fn decode_invalidation_record(bytes: &[u8]) -> TableResult<(CommitVersion, InvalidationRecord)> {
    let mut row = RowDecoder::new(bytes);
    Ok((decode_commit_version(&mut row)?, InvalidationRecord::decode(row)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_state_starts_with_its_commit_version() {
        let commit_version = CommitVersion { number: 7, nonce: -3 };
        let counters = Counters { last_task: 9, last_fence: 1 << 40, ..Counters::default() };
        let store_state = StoreState {
            commit_version,
            registry_version: 2,
            counters,
            last_queue_id: 3,
            last_node_id: 4,
            last_audit_entry_number: 5,
        };
        let bytes = store_state.encode();
        assert_eq!(StoreState::decode(&bytes).unwrap(), store_state);
        assert_eq!(bytes[..COMMIT_VERSION_BYTES], encode_commit_version(commit_version));
    }

    #[test]
    fn invalidations_need_a_record_of_every_commit() {
        let commit_version = |version| CommitVersion { number: version, nonce: version * 3 };
        let invalidations = |version| {
            let bytes = encode_invalidation_record(
                commit_version(version),
                InvalidationRecord::default().encode().unwrap(),
            );
            decode_invalidation_record(&bytes).unwrap()
        };
        let count_since = |cached_version| {
            let commit = |version| CommitRecord { version: commit_version(version), invalidations: None };
            let recent_commits = RecentCommits {
                commits: (cached_version..8).map(commit).collect(),
                invalidation_records: [7, 6].map(invalidations).into(),
            };
            recent_commits
                .invalidation_records_since(commit_version(cached_version))
                .map(|invalidations| invalidations.len())
        };
        assert_eq!([4, 5, 6, 7].map(count_since), [None, Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn commits_decode_to_the_same_value() {
        let commit_version = CommitVersion { number: 1, nonce: 2 };
        for invalidations in [None, Some(vec![]), Some(vec![4, 9, 1 << 50])] {
            let commit = CommitRecord { version: commit_version, invalidations };
            assert_eq!(decode_commit_record(&encode_commit_record(&commit)).unwrap(), commit);
        }
    }
}
