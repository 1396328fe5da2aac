//! Invalidation records: the cacheable rows that a commit wrote, so that peers drop only those from their caches.

use std::collections::BTreeSet;

use pointsman_core::TaskSeq;
use pointsman_store::error::{Fault, TableResult};

use crate::codec::{MemberOrField, RowDecoder, RowEncoder};

/// Maximum size of a record. A larger one is not published; peers then drop their whole cache.
const MAX_RECORD_BYTES: usize = 64 << 10;

/// Format version at the start of each record.
const RECORD_FORMAT_VERSION: i64 = 1;

/// Cacheable rows that a commit wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InvalidationRecord {
    /// Small tables that were written: one bit for each, at the code of the table.
    pub(super) small_table_bits: i64,
    /// Fields of objects. Their last event ids are written with them.
    pub(super) objects: BTreeSet<MemberOrField>,
    pub(super) tasks: BTreeSet<TaskSeq>,
    pub(super) lanes: BTreeSet<i64>,
}

impl InvalidationRecord {
    /// Encodes the record; `None` if it is too large.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut encoder = RowEncoder::default()
            .push_varint(RECORD_FORMAT_VERSION)
            .push_varint(self.small_table_bits)
            .push_varint(self.objects.len() as i64);
        encoder = self.objects.iter().fold(encoder, |encoder, field| encoder.push_bytes(field));
        encoder = encode_ascending_numbers(self.tasks.iter().map(|seq| seq.0), encoder);
        encoder = encode_ascending_numbers(self.lanes.iter().copied(), encoder);
        Some(encoder.finish()).filter(|bytes| bytes.len() <= MAX_RECORD_BYTES)
    }

    pub(crate) fn decode(mut row: RowDecoder<'_>) -> TableResult<Self> {
        if row.read_varint()? != RECORD_FORMAT_VERSION {
            return Err(Fault::damaged("an invalidation record has an unknown format"));
        }
        let record = Self {
            small_table_bits: row.read_varint()?,
            objects: (0..row.read_varint()?)
                .map(|_| row.read_bytes().map(MemberOrField::from_slice))
                .collect::<TableResult<_>>()?,
            tasks: decode_ascending_numbers(&mut row)?.into_iter().map(TaskSeq).collect(),
            lanes: decode_ascending_numbers(&mut row)?.into_iter().collect(),
        };
        row.expect_end().map(|()| record)
    }
}

/// Appends how many numbers there are, and each as the difference to its predecessor.
fn encode_ascending_numbers(numbers: impl ExactSizeIterator<Item = i64>, encoder: RowEncoder) -> RowEncoder {
    let start = (encoder.push_varint(numbers.len() as i64), 0_i64);
    numbers.fold(start, |(encoder, last), number| (encoder.push_varint(number.wrapping_sub(last)), number)).0
}

fn decode_ascending_numbers(row: &mut RowDecoder<'_>) -> TableResult<Vec<i64>> {
    let (count, mut last) = (row.read_varint()?, 0_i64);
    let next = |_| {
        last = last.wrapping_add(row.read_varint()?);
        Ok(last)
    };
    (0..count).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_record() -> InvalidationRecord {
        let members =
            |names: &[&str]| names.iter().map(|name| MemberOrField::from_slice(name.as_bytes())).collect();
        InvalidationRecord {
            small_table_bits: 5,
            objects: members(&["/order:1", "shop/order:1"]),
            tasks: [3, 1 << 40, i64::MAX].map(TaskSeq).into(),
            lanes: [i64::MIN, -7, (5 << 20) + 1].into(),
        }
    }

    #[test]
    fn records_decode_to_the_same_value() {
        let bytes = sample_record().encode().unwrap();
        assert_eq!(InvalidationRecord::decode(RowDecoder::new(&bytes)).unwrap(), sample_record());
        for length in 0..bytes.len() {
            assert!(
                InvalidationRecord::decode(RowDecoder::new(&bytes[..length])).is_err(),
                "cut off after {length}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        let other = [&[RECORD_FORMAT_VERSION as u8 * 2 + 2], &bytes[1..]].concat();
        assert!(
            [longer, other].iter().all(|bytes| InvalidationRecord::decode(RowDecoder::new(bytes)).is_err())
        );
    }

    #[test]
    fn oversized_records_are_not_encoded() {
        let lanes = |count: i64| InvalidationRecord {
            lanes: (0..count).map(|n| n << 20).collect(),
            ..InvalidationRecord::default()
        };
        assert!(lanes(10_000).encode().is_some_and(|bytes| bytes.len() < 50_000));
        assert_eq!(lanes(30_000).encode(), None);
    }
}
