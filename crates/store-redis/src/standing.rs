//! How far everything has come: what `pointsman:point` holds, and what each commit tells in `pointsman:told` and
//! `pointsman:touched`.

use pointsman_core::journal::Extent;
use pointsman_store::commits::{Commit, Point, since};
use pointsman_store::error::Result;
use pointsman_store::tables::Counters;

use crate::codec::{Packer, Unpacker};
use crate::rows::{pack_counters, unpack_counters};
use crate::sight::Touched;

/// What is said when Redis has nothing of a store that was open.
pub(crate) const GONE: &str = "Redis holds nothing of it any more, as after FLUSHALL or a start without its file; put a backup \
    back, or start the nodes again, and they begin with an empty store";

/// Version and mark, with which `pointsman:point` and whatever is told of a commit begin.
pub(crate) const POINT: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) point: Point,
    /// Goes on with each change of handlers, chains, rules or nodes.
    pub(crate) registry: i64,
    pub(crate) counters: Counters,
    /// The numbers given out last.
    pub(crate) queues: i64,
    pub(crate) nodes: i64,
    pub(crate) deeds: i64,
}

impl Standing {
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self> {
        let mut row = Unpacker::new(bytes);
        Ok(Self {
            point: unpack_point(&mut row)?,
            registry: row.int()?,
            queues: row.int()?,
            nodes: row.int()?,
            deeds: row.int()?,
            counters: unpack_counters(&mut row)?,
        })
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let packed =
            pack_point(self.point).int(self.registry).int(self.queues).int(self.nodes).int(self.deeds);
        pack_counters(&self.counters, packed).done()
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent { head: self.counters.last_event, forgotten: self.counters.forgotten }
    }
}

fn pack_point(point: Point) -> Packer {
    Packer::with_capacity(64).fixed(point.version).fixed(point.mark)
}

fn unpack_point(row: &mut Unpacker<'_>) -> Result<Point> {
    Ok(Point { version: row.fixed()?, mark: row.fixed()? })
}

/// Version and mark alone.
pub(crate) fn point_bytes(point: Point) -> Vec<u8> {
    pack_point(point).done()
}

pub(crate) fn pack_commit(commit: &Commit) -> Vec<u8> {
    let packed = pack_point(commit.point).maybe(commit.changes.as_ref().map(|codes| codes.len() as i64));
    commit.changes.iter().flatten().fold(packed, |packed, code| packed.int(*code)).done()
}

pub(crate) fn unpack_commit(bytes: &[u8]) -> Result<Commit> {
    let mut row = Unpacker::new(bytes);
    let point = unpack_point(&mut row)?;
    let changes = match row.maybe()? {
        Some(count) => Some((0..count).map(|_| row.int()).collect::<Result<_>>()?),
        None => None,
    };
    Ok(Commit { point, changes })
}

/// What the last commits told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What they changed, the oldest first.
    pub(crate) commits: Vec<Commit>,
    /// What they wrote, of those that told it.
    pub(crate) touched: Vec<(Point, Touched)>,
}

impl Told {
    /// What was written since; nothing if one of the commits did not tell it.
    pub(crate) fn touched_since(&self, known: Point) -> Option<Vec<&Touched>> {
        let of = |commit: &Commit| self.touched.iter().find(|(point, _)| *point == commit.point);
        let later = since(&self.commits, known, |commit| commit.point)?;
        later.iter().map(|commit| of(commit).map(|(_, touched)| touched)).collect()
    }
}

pub(crate) fn pack_touched(point: Point, touched: Vec<u8>) -> Vec<u8> {
    [point_bytes(point), touched].concat()
}

pub(crate) fn unpack_touched(bytes: &[u8]) -> Result<(Point, Touched)> {
    let mut row = Unpacker::new(bytes);
    Ok((unpack_point(&mut row)?, Touched::unpack(row)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_begins_with_its_point() {
        let point = Point { version: 7, mark: -3 };
        let counters = Counters { tasks: 9, fences: 1 << 40, ..Counters::default() };
        let standing = Standing { point, registry: 2, counters, queues: 3, nodes: 4, deeds: 5 };
        let bytes = standing.pack();
        assert_eq!(Standing::unpack(&bytes).unwrap(), standing);
        assert_eq!(bytes[..POINT], point_bytes(point));
    }

    #[test]
    fn what_was_touched_is_known_only_if_all_told_it() {
        let point = |version| Point { version, mark: version * 3 };
        let touched = |version| {
            let packed = pack_touched(point(version), Touched::default().pack().unwrap());
            unpack_touched(&packed).unwrap()
        };
        let count_since = |known| {
            let commit = |version| Commit { point: point(version), changes: None };
            let told =
                Told { commits: (known..8).map(commit).collect(), touched: [7, 6].map(touched).into() };
            told.touched_since(point(known)).map(|touched| touched.len())
        };
        assert_eq!([4, 5, 6, 7].map(count_since), [None, Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn commits_read_back() {
        let point = Point { version: 1, mark: 2 };
        for changes in [None, Some(vec![]), Some(vec![4, 9, 1 << 50])] {
            let commit = Commit { point, changes };
            assert_eq!(unpack_commit(&pack_commit(&commit)).unwrap(), commit);
        }
    }
}
