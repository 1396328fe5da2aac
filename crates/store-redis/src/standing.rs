//! How far everything has come: what `pointsman:point` holds, and what each commit tells in `pointsman:told` and
//! `pointsman:touched`.

use pointsman_core::journal::Extent;
use pointsman_store::commits::{Commit, Point, since};
use pointsman_store::error::Result;
use pointsman_store::tables::Counters;

use crate::codec::{RowDecoder, RowEncoder};
use crate::overlay::InvalidationRecord;
use crate::rows::{decode_counters, encode_counters};

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
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut row = RowDecoder::new(bytes);
        Ok(Self {
            point: unpack_point(&mut row)?,
            registry: row.varint()?,
            queues: row.varint()?,
            nodes: row.varint()?,
            deeds: row.varint()?,
            counters: decode_counters(&mut row)?,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let packed = pack_point(self.point)
            .varint(self.registry)
            .varint(self.queues)
            .varint(self.nodes)
            .varint(self.deeds);
        encode_counters(&self.counters, packed).finish()
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent { head: self.counters.last_event, forgotten: self.counters.forgotten }
    }
}

fn pack_point(point: Point) -> RowEncoder {
    RowEncoder::with_capacity(64).fixed_i64(point.version).fixed_i64(point.mark)
}

fn unpack_point(row: &mut RowDecoder<'_>) -> Result<Point> {
    Ok(Point { version: row.fixed_i64()?, mark: row.fixed_i64()? })
}

/// Version and mark alone.
pub(crate) fn point_bytes(point: Point) -> Vec<u8> {
    pack_point(point).finish()
}

pub(crate) fn encode_commit(commit: &Commit) -> Vec<u8> {
    let packed =
        pack_point(commit.point).optional_varint(commit.changes.as_ref().map(|codes| codes.len() as i64));
    commit.changes.iter().flatten().fold(packed, |packed, code| packed.varint(*code)).finish()
}

pub(crate) fn decode_commit(bytes: &[u8]) -> Result<Commit> {
    let mut row = RowDecoder::new(bytes);
    let point = unpack_point(&mut row)?;
    let changes = match row.optional_varint()? {
        Some(count) => Some((0..count).map(|_| row.varint()).collect::<Result<_>>()?),
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
    pub(crate) touched: Vec<(Point, InvalidationRecord)>,
}

impl Told {
    /// What was written since; nothing if one of the commits did not tell it.
    pub(crate) fn touched_since(&self, known: Point) -> Option<Vec<&InvalidationRecord>> {
        let of = |commit: &Commit| self.touched.iter().find(|(point, _)| *point == commit.point);
        let later = since(&self.commits, known, |commit| commit.point)?;
        later.iter().map(|commit| of(commit).map(|(_, touched)| touched)).collect()
    }
}

pub(crate) fn pack_touched(point: Point, touched: Vec<u8>) -> Vec<u8> {
    [point_bytes(point), touched].concat()
}

pub(crate) fn unpack_touched(bytes: &[u8]) -> Result<(Point, InvalidationRecord)> {
    let mut row = RowDecoder::new(bytes);
    Ok((unpack_point(&mut row)?, InvalidationRecord::decode(row)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_begins_with_its_point() {
        let point = Point { version: 7, mark: -3 };
        let counters = Counters { tasks: 9, fences: 1 << 40, ..Counters::default() };
        let standing = Standing { point, registry: 2, counters, queues: 3, nodes: 4, deeds: 5 };
        let bytes = standing.encode();
        assert_eq!(Standing::decode(&bytes).unwrap(), standing);
        assert_eq!(bytes[..POINT], point_bytes(point));
    }

    #[test]
    fn what_was_touched_is_known_only_if_all_told_it() {
        let point = |version| Point { version, mark: version * 3 };
        let touched = |version| {
            let packed = pack_touched(point(version), InvalidationRecord::default().encode().unwrap());
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
            assert_eq!(decode_commit(&encode_commit(&commit)).unwrap(), commit);
        }
    }
}
