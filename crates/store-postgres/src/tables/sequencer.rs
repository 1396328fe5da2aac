//! How far everything has come, and what the last commits changed.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::commits::{Change, Commit, Point, changed, since};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use super::touched::{self, Heard};
use crate::link::{Param, params};
use crate::rows::{get, maybe_time};

/// How far everything had come when the transaction began, and how far it will have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequencer {
    pub(crate) point: Point,
    pub(crate) registry: i64,
    pub(crate) counters: Counters,
    pub(crate) archived: i64,
    pub(crate) hidden: i64,
    pub(crate) dropped: i64,
    pub(crate) journal_to: i64,
    pub(crate) history_to: i64,
}

impl Sequencer {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            point: point_of(row)?,
            registry: get(row, 1)?,
            counters: Counters {
                last_event: EventId::from_i64(get(row, 3)?),
                forgotten: EventId::from_i64(get(row, 4)?),
                tasks: get(row, 5)?,
                fences: get(row, 6)?,
                objects: get(row, 7)?,
                orders: get(row, 8)?,
                journaled: get(row, 9)?,
                ended: get(row, 10)?,
                next_due: maybe_time(row, 16)?,
            },
            archived: get(row, 11)?,
            hidden: get(row, 12)?,
            dropped: get(row, 13)?,
            journal_to: get(row, 14)?,
            history_to: get(row, 15)?,
        })
    }

    /// The values of the next version's row.
    pub(crate) fn params(&self, changes: Option<Vec<i64>>, touched: Option<Vec<u8>>) -> Vec<Param> {
        let counters = &self.counters;
        params![
            self.point.version,
            self.registry,
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
            touched,
            self.point.mark,
        ]
    }
}

/// The last commits from one that is remembered on, and of which objects each wrote anything.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<Telling>);

type Telling = (Commit, Option<Vec<u8>>);

impl Told {
    /// Reads what the commits tell, and how far everything has come with the last one.
    pub(crate) fn read(rows: &[Row]) -> Result<(Self, Sequencer)> {
        let last = rows.last().ok_or_else(|| Fault::damaged("no version is there"))?;
        let told = rows.iter().map(|row| {
            let commit = Commit { point: point_of(row)?, changes: get(row, 2)? };
            Ok((commit, get(row, 17)?))
        });
        Ok((Self(told.collect::<Result<_>>()?), Sequencer::read(last)?))
    }

    /// What the commits after this one have changed; nothing if that is not told, or if there is no such: the server may
    /// have lost its last commits.
    pub(crate) fn changed_since(&self, point: Point) -> Option<Vec<Change>> {
        changed(self.since(point)?.iter().map(|(commit, _)| commit.changes.as_ref()))
    }

    /// What the commits after this one tell of the objects, and lanes of none, of which they have written anything, in
    /// their order; nothing if one does not tell.
    pub(crate) fn touched_since(&self, point: Point) -> Option<Vec<Heard>> {
        let commits = self.since(point)?.iter();
        let touched: Option<Vec<_>> = commits.map(|(_, touched)| touched::read(touched.as_ref()?)).collect();
        Some(touched?.into_iter().flatten().collect())
    }

    fn since(&self, point: Point) -> Option<&[Telling]> {
        since(&self.0, point, |(commit, _)| commit.point)
    }
}

fn point_of(row: &Row) -> Result<Point> {
    Ok(Point { version: get(row, 0)?, mark: get(row, 18)? })
}
