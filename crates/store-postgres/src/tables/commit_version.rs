//! The counters as of the last commit, and the changes that the latest commits have recorded.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::{
    CommitRecord, CommitVersion, Invalidation, commits_since, decode_invalidations,
};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use super::invalidation::{self, ObjectInvalidation};
use crate::rows::{read_column, read_optional_time};
use crate::writer_connection::{BoxedParam, params};

/// The counters in the last row of `pointsman.commit_version`, updated by this transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitVersionRow {
    pub(crate) version: CommitVersion,
    /// Counts changes of handlers, chains, rules and nodes.
    pub(crate) registry_version: i64,
    pub(crate) counters: Counters,
    /// The number of the last task that was archived.
    pub(crate) last_archive_number: i64,
    /// The number of the last archived task that has expired.
    pub(crate) expired_archive_number: i64,
    /// The number of the last event that has expired.
    pub(crate) expired_event_number: i64,
    /// The upper bounds, exclusive, of the last partitions.
    pub(crate) journal_partitions_end_number: i64,
    pub(crate) history_partitions_end_number: i64,
}

impl CommitVersionRow {
    fn from_row(row: &Row) -> TableResult<Self> {
        Ok(Self {
            version: read_commit_version(row)?,
            registry_version: read_column(row, 1)?,
            counters: Counters {
                last_event: EventId::from_i64(read_column(row, 3)?),
                expired_up_to: EventId::from_i64(read_column(row, 4)?),
                last_task: read_column(row, 5)?,
                last_fence: read_column(row, 6)?,
                last_object: read_column(row, 7)?,
                last_order: read_column(row, 8)?,
                journaled_event_count: read_column(row, 9)?,
                archived_task_count: read_column(row, 10)?,
                next_due: read_optional_time(row, 16)?,
            },
            last_archive_number: read_column(row, 11)?,
            expired_archive_number: read_column(row, 12)?,
            expired_event_number: read_column(row, 13)?,
            journal_partitions_end_number: read_column(row, 14)?,
            history_partitions_end_number: read_column(row, 15)?,
        })
    }

    /// The parameters of the next row of `pointsman.commit_version`.
    pub(crate) fn version_row_params(
        &self,
        changes: Option<Vec<i64>>,
        object_invalidations: Option<Vec<u8>>,
    ) -> Vec<BoxedParam> {
        let counters = &self.counters;
        params![
            self.version.number,
            self.registry_version,
            changes,
            counters.last_event.as_i64(),
            counters.expired_up_to.as_i64(),
            counters.last_task,
            counters.last_fence,
            counters.last_object,
            counters.last_order,
            counters.journaled_event_count,
            counters.archived_task_count,
            self.last_archive_number,
            self.expired_archive_number,
            self.expired_event_number,
            self.journal_partitions_end_number,
            self.history_partitions_end_number,
            counters.next_due.map(Timestamp::micros),
            object_invalidations,
            self.version.nonce,
        ]
    }
}

/// The commits from a cached one on, each with its invalidation record.
#[derive(Debug, Default)]
pub(crate) struct CommitLog(Vec<LoggedCommit>);

/// A commit and its object invalidations, encoded.
type LoggedCommit = (CommitRecord, Option<Vec<u8>>);

impl CommitLog {
    /// Decodes the commits, and the state as of the last one.
    pub(crate) fn from_rows(rows: &[Row]) -> TableResult<(Self, CommitVersionRow)> {
        let last = rows.last().ok_or_else(|| Fault::damaged("pointsman.commit_version has no row"))?;
        let commits = rows.iter().map(|row| {
            let commit =
                CommitRecord { version: read_commit_version(row)?, invalidations: read_column(row, 2)? };
            Ok((commit, read_column(row, 17)?))
        });
        Ok((Self(commits.collect::<TableResult<_>>()?), CommitVersionRow::from_row(last)?))
    }

    /// Returns the queues, limiters and tasks that the commits after this version have changed; none if one commit did
    /// not record them, or if the version does not exist: the server may have lost its last commits.
    pub(crate) fn queue_limiter_task_invalidations_since(
        &self,
        version: CommitVersion,
    ) -> Option<Vec<Invalidation>> {
        decode_invalidations(
            self.commits_since(version)?.iter().map(|(commit, _)| commit.invalidations.as_ref()),
        )
    }

    /// Returns the object invalidations of the commits after this version, in commit order; none if one commit has no
    /// invalidation record.
    pub(crate) fn object_invalidations_since(
        &self,
        version: CommitVersion,
    ) -> Option<Vec<ObjectInvalidation>> {
        let commits = self.commits_since(version)?.iter();
        let invalidations: Option<Vec<_>> =
            commits.map(|(_, record)| invalidation::decode_record(record.as_ref()?)).collect();
        Some(invalidations?.into_iter().flatten().collect())
    }

    fn commits_since(&self, version: CommitVersion) -> Option<&[LoggedCommit]> {
        commits_since(&self.0, version, |(commit, _)| commit.version)
    }
}

fn read_commit_version(row: &Row) -> TableResult<CommitVersion> {
    Ok(CommitVersion { number: read_column(row, 0)?, nonce: read_column(row, 18)? })
}
