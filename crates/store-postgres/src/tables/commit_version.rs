//! How far everything has come, and what the last commits changed.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::commits::{Change, Commit, Point, changed, since};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use super::invalidation::{self, ObjectInvalidation};
use crate::rows::{read_column, read_optional_time};
use crate::writer_connection::{BoxedParam, params};

/// How far everything had come when the transaction began, and how far it will have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitState {
    pub(crate) version: Point,
    pub(crate) registry_version: i64,
    pub(crate) counters: Counters,
    pub(crate) archived: i64,
    pub(crate) hidden: i64,
    pub(crate) dropped: i64,
    pub(crate) journal_to: i64,
    pub(crate) history_to: i64,
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
            archived: read_column(row, 11)?,
            hidden: read_column(row, 12)?,
            dropped: read_column(row, 13)?,
            journal_to: read_column(row, 14)?,
            history_to: read_column(row, 15)?,
        })
    }

    /// The values of the next version's row.
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
            self.archived,
            self.hidden,
            self.dropped,
            self.journal_to,
            self.history_to,
            counters.next_due.map(Timestamp::micros),
            invalidation,
            self.version.mark,
        ]
    }
}

/// The last commits from one that is remembered on, and of which objects each wrote anything.
#[derive(Debug, Default)]
pub(crate) struct CommitLog(Vec<CommitRecord>);

type CommitRecord = (Commit, Option<Vec<u8>>);

impl CommitLog {
    /// Reads what the commits tell, and how far everything has come with the last one.
    pub(crate) fn from_rows(rows: &[Row]) -> Result<(Self, CommitState)> {
        let last = rows.last().ok_or_else(|| Fault::damaged("no version is there"))?;
        let commits = rows.iter().map(|row| {
            let commit = Commit { point: read_commit_version(row)?, changes: read_column(row, 2)? };
            Ok((commit, read_column(row, 17)?))
        });
        Ok((Self(commits.collect::<Result<_>>()?), CommitState::from_row(last)?))
    }

    /// What the commits after this one have changed; nothing if that is not told, or if there is no such: the server may
    /// have lost its last commits.
    pub(crate) fn changes_since(&self, version: Point) -> Option<Vec<Change>> {
        changed(self.commits_since(version)?.iter().map(|(commit, _)| commit.changes.as_ref()))
    }

    /// What the commits after this one tell of the objects, and lanes of none, of which they have written anything, in
    /// their order; nothing if one does not tell.
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
