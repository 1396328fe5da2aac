//! What a commit wrote of all that others may remember, told to them in few bytes: they forget that much, and not all.

use std::collections::BTreeSet;

use pointsman_core::TaskSeq;
use pointsman_store::error::{Fault, Result};

use crate::codec::{Member, Packer, Unpacker};

/// What takes more bytes is not told.
const MOST: usize = 64 << 10;

/// What is told begins with this, so that it can be told otherwise one day.
const FORMAT: i64 = 1;

/// Whatever may be remembered, as it was told or will be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Tables with few rows, a bit each.
    pub(super) few: i64,
    /// Fields of objects. Their last ids are written with them.
    pub(super) objects: BTreeSet<Member>,
    pub(super) tasks: BTreeSet<TaskSeq>,
    pub(super) lanes: BTreeSet<i64>,
}

impl Touched {
    /// As it is told; nothing if that is too much.
    pub(crate) fn pack(&self) -> Option<Vec<u8>> {
        let mut packed = Packer::default().int(FORMAT).int(self.few).int(self.objects.len() as i64);
        packed = self.objects.iter().fold(packed, |packed, field| packed.bytes(field));
        packed = pack_numbers(self.tasks.iter().map(|seq| seq.0), packed);
        packed = pack_numbers(self.lanes.iter().copied(), packed);
        Some(packed.done()).filter(|bytes| bytes.len() <= MOST)
    }

    pub(crate) fn unpack(mut row: Unpacker<'_>) -> Result<Self> {
        if row.int()? != FORMAT {
            return Err(Fault::damaged("what a commit wrote is told in another format"));
        }
        let touched = Self {
            few: row.int()?,
            objects: (0..row.int()?).map(|_| row.bytes().map(Member::from_slice)).collect::<Result<_>>()?,
            tasks: numbers(&mut row)?.into_iter().map(TaskSeq).collect(),
            lanes: numbers(&mut row)?.into_iter().collect(),
        };
        row.ends().map(|()| touched)
    }
}

/// Numbers that grow, each as how much it is beyond the one before.
fn pack_numbers(numbers: impl ExactSizeIterator<Item = i64>, packed: Packer) -> Packer {
    let begun = (packed.int(numbers.len() as i64), 0_i64);
    numbers.fold(begun, |(packed, last), number| (packed.int(number.wrapping_sub(last)), number)).0
}

fn numbers(row: &mut Unpacker<'_>) -> Result<Vec<i64>> {
    let (count, mut last) = (row.int()?, 0_i64);
    let next = |_| {
        last = last.wrapping_add(row.int()?);
        Ok(last)
    };
    (0..count).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched() -> Touched {
        let members = |names: &[&str]| names.iter().map(|name| Member::from_slice(name.as_bytes())).collect();
        Touched {
            few: 5,
            objects: members(&["/order:1", "shop/order:1"]),
            tasks: [3, 1 << 40, i64::MAX].map(TaskSeq).into(),
            lanes: [i64::MIN, -7, (5 << 20) + 1].into(),
        }
    }

    #[test]
    fn what_is_told_is_read_again() {
        let packed = touched().pack().unwrap();
        assert_eq!(Touched::unpack(Unpacker::new(&packed)).unwrap(), touched());
        for length in 0..packed.len() {
            assert!(Touched::unpack(Unpacker::new(&packed[..length])).is_err(), "cut off after {length}");
        }
        let longer = [&packed[..], &[0]].concat();
        let other = [&[FORMAT as u8 * 2 + 2], &packed[1..]].concat();
        assert!([longer, other].iter().all(|told| Touched::unpack(Unpacker::new(told)).is_err()));
    }

    #[test]
    fn too_much_is_not_told() {
        let lanes =
            |count: i64| Touched { lanes: (0..count).map(|n| n << 20).collect(), ..Touched::default() };
        assert!(lanes(10_000).pack().is_some_and(|packed| packed.len() < 50_000));
        assert_eq!(lanes(30_000).pack(), None);
    }
}
