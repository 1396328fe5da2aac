//! Of which objects a transaction writes anything, told in few bytes: others who know them look at these again.

use std::cell::RefCell;

use super::lanes::object_of;

/// What would take more bytes is not told.
const MOST: usize = 3_000;

/// Numbers of objects, and of lanes that belong to none.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Nothing, if something was written and nobody knows to which object it belongs.
    numbers: RefCell<Option<Vec<i64>>>,
}

impl Touched {
    pub(crate) fn begin(&self) {
        self.numbers.replace(Some(Vec::new()));
    }

    pub(crate) fn object(&self, number: i64) {
        if let Some(numbers) = &mut *self.numbers.borrow_mut() {
            numbers.push(number);
        }
    }

    pub(crate) fn lane(&self, lane: i64) {
        self.object(object_of(lane).unwrap_or(lane));
    }

    /// A task was written of which it is not known in which lane it stands.
    pub(crate) fn anything(&self) {
        self.numbers.replace(None);
    }

    /// As it is told to others; nothing if that is too much.
    pub(crate) fn told(&self) -> Option<Vec<u8>> {
        let mut numbers = self.numbers.take()?;
        numbers.sort_unstable();
        numbers.dedup();
        let mut bytes = Vec::with_capacity(numbers.len() * 2);
        let mut last = 0;
        for number in numbers {
            put(&mut bytes, number.wrapping_sub(last));
            last = number;
        }
        (bytes.len() <= MOST).then_some(bytes)
    }
}

/// Seven bits a byte, the lowest first. Only the first difference may be below zero, and is then long.
fn put(bytes: &mut Vec<u8>, difference: i64) {
    let mut rest = difference as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// The numbers that were told.
pub(crate) fn read(bytes: &[u8]) -> Vec<i64> {
    let (mut numbers, mut last, mut difference, mut shift) = (Vec::new(), 0_i64, 0_u64, 0);
    for byte in bytes {
        difference |= u64::from(byte & 0x7F).wrapping_shl(shift);
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.wrapping_add(difference as i64);
            numbers.push(last);
            (difference, shift) = (0, 0);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_again() {
        let touched = Touched::default();
        touched.begin();
        let lanes = [i64::MIN + 7, -3, (5 << 20) + 1, (5 << 20) + 2, (70_000 << 20) + 9];
        lanes.into_iter().for_each(|lane| touched.lane(lane));
        touched.object(i64::MAX);
        touched.object(1);
        let told = touched.told().unwrap();
        assert_eq!(read(&told), [i64::MIN + 7, -3, 1, 5, 70_000, i64::MAX]);
        assert!(told.len() < 40, "{} bytes", told.len());
    }

    #[test]
    fn too_much_and_what_nobody_knows_is_not_told() {
        let touched = Touched::default();
        touched.begin();
        (0..2_000).for_each(|object| touched.object(object * 1_000_000));
        assert_eq!(touched.told(), None);
        touched.begin();
        assert_eq!(touched.told(), Some(vec![]));
        touched.begin();
        touched.anything();
        touched.object(1);
        assert_eq!(touched.told(), None);
    }
}
