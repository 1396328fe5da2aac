//! How values lie in Redis: bytes, one number or text after the other, small numbers in few bytes.
//!
//! Members of sorted sets are made so that their order as bytes is the order that is meant ([`Ordered`]).

use pointsman_store::error::{Fault, Result};
use smallvec::SmallVec;

/// A member of a sorted set, or a field of a hash. Most are short, and then lie where they are used.
pub(crate) type Member = SmallVec<[u8; 32]>;

/// Puts values one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packer(Vec<u8>);

impl Packer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Eight bytes that a script finds at a place it knows.
    pub(crate) fn fixed(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Seven bits a byte, the sign in the lowest.
    pub(crate) fn int(mut self, number: i64) -> Self {
        let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self
    }

    pub(crate) fn maybe(self, number: Option<i64>) -> Self {
        match number {
            None => self.flag(false),
            Some(number) => self.flag(true).int(number),
        }
    }

    pub(crate) fn flag(mut self, yes: bool) -> Self {
        self.0.push(yes.into());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.int(bytes.len() as i64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn maybe_text(self, text: Option<&str>) -> Self {
        match text {
            None => self.flag(false),
            Some(text) => self.flag(true).text(text),
        }
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Takes them apart again, in the same order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpacker<'b>(&'b [u8]);

impl<'b> Unpacker<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn fixed(&mut self) -> Result<i64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(i64::from_be_bytes(*number))
    }

    pub(crate) fn int(&mut self) -> Result<i64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            }
        }
        Err(Fault::damaged("a number without an end"))
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.0.split_first().ok_or_else(short)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.byte()? != 0)
    }

    pub(crate) fn maybe(&mut self) -> Result<Option<i64>> {
        if self.flag()? { self.int().map(Some) } else { Ok(None) }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8]> {
        let length = usize::try_from(self.int()?).map_err(Fault::damaged)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'b str> {
        std::str::from_utf8(self.bytes()?).map_err(Fault::damaged)
    }

    pub(crate) fn maybe_text(&mut self) -> Result<Option<&'b str>> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    /// There must be nothing more.
    pub(crate) fn ends(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Fault::damaged("a value goes on behind its end")) }
    }
}

fn short() -> Fault {
    Fault::damaged("a value ends too early")
}

/// A member of a sorted set in the making: numbers and texts whose order as bytes is their own.
#[derive(Debug, Default)]
pub(crate) struct Ordered(Member);

impl Ordered {
    pub(crate) fn of(number: i64) -> Self {
        Self::default().and(number)
    }

    pub(crate) fn and(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&(number.cast_unsigned() ^ 1 << 63).to_be_bytes());
        self
    }

    pub(crate) fn and_bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn done(self) -> Member {
        self.0
    }
}

/// The digits of a number, as a field is named.
pub(crate) fn digits(number: i64) -> Member {
    let mut rest = number.unsigned_abs();
    let mut digits = Member::new();
    while rest > 0 || digits.is_empty() {
        digits.push(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    if number < 0 {
        digits.push(b'-');
    }
    digits.reverse();
    digits
}

/// The number at the place of the `index`th, and what follows it.
pub(crate) fn ordered(member: &[u8], index: usize) -> Result<i64> {
    let bytes = member.get(index * 8..).and_then(|rest| rest.first_chunk::<8>());
    let bytes = bytes.ok_or_else(|| Fault::damaged("a member of an index is too short"))?;
    Ok((u64::from_be_bytes(*bytes) ^ 1 << 63).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back() {
        let numbers = [0, 1, -1, 63, 64, -65, 1 << 40, i64::MAX, i64::MIN];
        let mut packed = Packer::default().fixed(-7).text("é").maybe(None).maybe_text(Some("")).flag(true);
        for number in numbers {
            packed = packed.int(number).maybe(Some(number));
        }
        let bytes = packed.done();
        let mut read = Unpacker::new(&bytes);
        assert_eq!((read.fixed().unwrap(), read.text().unwrap(), read.maybe().unwrap()), (-7, "é", None));
        assert_eq!((read.maybe_text().unwrap(), read.flag().unwrap()), (Some(""), true));
        for number in numbers {
            assert_eq!((read.int().unwrap(), read.maybe().unwrap()), (number, Some(number)));
        }
        assert!(read.byte().is_err(), "nothing is left");
    }

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 7, 10, 1023, -1, -40, i64::MAX, i64::MIN] {
            assert_eq!(digits(number).as_slice(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn what_is_cut_short_is_damaged_and_no_panic() {
        let bytes = Packer::default().fixed(1).int(1 << 50).text("abc").maybe(Some(9)).done();
        for end in 0..bytes.len() {
            let mut read = Unpacker::new(&bytes[..end]);
            let all =
                read.fixed().is_ok() && read.int().is_ok() && read.text().is_ok() && read.maybe().is_ok();
            assert!(!all, "{end}");
        }
        assert!(Unpacker::new(&[0xff; 20]).int().is_err());
    }

    #[test]
    fn members_stand_in_the_order_of_their_numbers() {
        let numbers = [i64::MIN, -5, -1, 0, 1, 1 << 33, i64::MAX];
        let members: Vec<_> = numbers.iter().map(|n| Ordered::of(*n).and(3).done()).collect();
        assert!(members.is_sorted());
        for (member, number) in members.iter().zip(numbers) {
            assert_eq!((ordered(member, 0).unwrap(), ordered(member, 1).unwrap()), (number, 3));
        }
        assert!(ordered(&members[0], 2).is_err());
    }
}
