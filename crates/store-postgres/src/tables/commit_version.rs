//! The state of the last commit, and what the latest commits changed.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::commits::{Change, Commit, Point, changed, since};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use super::invalidation::{self, ObjectInvalidation};
use crate::rows::{read_column, read_optional_time};
use crate::writer_connection::{BoxedParam, params};

/// The row of `pointsman.version`: counters as of the last commit, updated by this transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitState {
    pub(crate) version: Point,
    pub(crate) registry_version: i64,
    pub(crate) counters: Counters,
    pub(crate) last_archive_number: i64,
    pub(crate) expired_archive_number: i64,
    pub(crate) expired_event_number: i64,
    pub(crate) journal_end: i64,
    pub(crate) history_end: i64,
}

impl CommitState {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            version: read_commit_version(row)?,
            registry_version: read_column(row, 1)?,
            counters: Counters {
                last_event: EventId::from_i64(read_column(row, 3)?),
                forgotten: EventId::from_i64(read_column(row, 4)?),
                tasks: read_column(row, 5)?,
                fences: read_column(row, 6)?,
                objects: read_column(row, 7)?,
                orders: read_column(row, 8)?,
                journaled: read_column(row, 9)?,
                ended: read_column(row, 10)?,
                next_due: read_optional_time(row, 16)?,
            },
            last_archive_number: read_column(row, 11)?,
            expired_archive_number: read_column(row, 12)?,
            expired_event_number: read_column(row, 13)?,
            journal_end: read_column(row, 14)?,
            history_end: read_column(row, 15)?,
        })
    }

    /// The parameters of the next row of `pointsman.version`.
    pub(crate) fn version_row_params(
        &self,
        changes: Option<Vec<i64>>,
        invalidation: Option<Vec<u8>>,
    ) -> Vec<BoxedParam> {
        let counters = &self.counters;
        params![
            self.version.version,
            self.registry_version,
            changes,
            counters.last_event.as_i64(),
            counters.forgotten.as_i64(),
            counters.tasks,
            counters.fences,
            counters.objects,
            counters.orders,
            counters.journaled,
            counters.ended,
            self.last_archive_number,
            self.expired_archive_number,
            self.expired_event_number,
            self.journal_end,
            self.history_end,
            counters.next_due.map(Timestamp::micros),
            invalidation,
            self.version.mark,
        ]
    }
}

/// The commits since a cached one, each with its invalidation record.
#[derive(Debug, Default)]
pub(crate) struct CommitLog(Vec<CommitRecord>);

type CommitRecord = (Commit, Option<Vec<u8>>);

impl CommitLog {
    /// Reads the commits, and the state as of the last one.
    pub(crate) fn from_rows(rows: &[Row]) -> Result<(Self, CommitState)> {
        let last = rows.last().ok_or_else(|| Fault::damaged("no version is there"))?;
        let commits = rows.iter().map(|row| {
            let commit = Commit { point: read_commit_version(row)?, changes: read_column(row, 2)? };
            Ok((commit, read_column(row, 17)?))
        });
        Ok((Self(commits.collect::<Result<_>>()?), CommitState::from_row(last)?))
    }

    /// The changes of the commits after this version; none if one is not recorded, or if the version does not exist:
    /// the server may have lost its last commits.
    pub(crate) fn changes_since(&self, version: Point) -> Option<Vec<Change>> {
        changed(self.commits_since(version)?.iter().map(|(commit, _)| commit.changes.as_ref()))
    }

    /// The invalidations of the commits after this version, in commit order; none if one has no invalidation record.
    pub(crate) fn invalidations_since(&self, version: Point) -> Option<Vec<ObjectInvalidation>> {
        let commits = self.commits_since(version)?.iter();
        let invalidations: Option<Vec<_>> =
            commits.map(|(_, record)| invalidation::decode(record.as_ref()?)).collect();
        Some(invalidations?.into_iter().flatten().collect())
    }

    fn commits_since(&self, version: Point) -> Option<&[CommitRecord]> {
        since(&self.0, version, |(commit, _)| commit.point)
    }
}

fn read_commit_version(row: &Row) -> Result<Point> {
    Ok(Point { version: read_column(row, 0)?, mark: read_column(row, 18)? })
}
