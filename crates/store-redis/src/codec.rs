//! Encoding of rows: numbers and texts in sequence, small numbers in few bytes.
//!
//! Members of sorted sets are encoded so that their byte order is the order of the encoded values ([`MemberBuilder`]).

use pointsman_store::error::{Fault, TableResult};
use smallvec::SmallVec;

/// A member of a sorted set, or a field of a hash. Short members and fields need no allocation.
pub(crate) type MemberOrField = SmallVec<[u8; 32]>;

/// Encodes the values of a row in sequence.
#[derive(Debug, Default)]
pub(crate) struct RowEncoder(Vec<u8>);

impl RowEncoder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Appends a number as eight bytes, so that scripts can read it at a fixed offset.
    pub(crate) fn push_fixed_i64(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Appends a number as [`push_varint`] encodes it.
    pub(crate) fn push_varint(mut self, number: i64) -> Self {
        push_varint(&mut self.0, number);
        self
    }

    pub(crate) fn push_optional_varint(self, number: Option<i64>) -> Self {
        match number {
            None => self.push_flag(false),
            Some(number) => self.push_flag(true).push_varint(number),
        }
    }

    pub(crate) fn push_flag(mut self, yes: bool) -> Self {
        self.0.push(yes.into());
        self
    }

    pub(crate) fn push_bytes(mut self, bytes: &[u8]) -> Self {
        self = self.push_varint(bytes.len() as i64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Appends a number as a zigzag varint: seven bits per byte, the sign in the lowest bit.
pub(crate) fn push_varint(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Decodes the values of a row in the order in which they were encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowDecoder<'b>(&'b [u8]);

impl<'b> RowDecoder<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn read_fixed_i64(&mut self) -> TableResult<i64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(truncated_row_fault)?;
        self.0 = rest;
        Ok(i64::from_be_bytes(*number))
    }

    pub(crate) fn read_varint(&mut self) -> TableResult<i64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            }
        }
        Err(Fault::damaged("a varint without an end"))
    }

    fn read_byte(&mut self) -> TableResult<u8> {
        let (byte, rest) = self.0.split_first().ok_or_else(truncated_row_fault)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub(crate) fn read_flag(&mut self) -> TableResult<bool> {
        Ok(self.read_byte()? != 0)
    }

    pub(crate) fn read_optional_varint(&mut self) -> TableResult<Option<i64>> {
        if self.read_flag()? { self.read_varint().map(Some) } else { Ok(None) }
    }

    pub(crate) fn read_bytes(&mut self) -> TableResult<&'b [u8]> {
        let length = usize::try_from(self.read_varint()?).map_err(Fault::damaged)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(truncated_row_fault)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn read_text(&mut self) -> TableResult<&'b str> {
        std::str::from_utf8(self.read_bytes()?).map_err(Fault::damaged)
    }

    pub(crate) fn remaining_bytes(self) -> &'b [u8] {
        self.0
    }

    /// Fails if bytes of the row remain undecoded.
    pub(crate) fn expect_end(self) -> TableResult<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Fault::damaged("a row is longer than expected")) }
    }
}

fn truncated_row_fault() -> Fault {
    Fault::damaged("a row is truncated")
}

/// Builds a member of a sorted set from numbers and texts; its byte order is their order.
#[derive(Debug, Default)]
pub(crate) struct MemberBuilder(MemberOrField);

impl MemberBuilder {
    pub(crate) fn from_i64(number: i64) -> Self {
        Self::default().push_i64(number)
    }

    pub(crate) fn push_i64(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&(number.cast_unsigned() ^ 1 << 63).to_be_bytes());
        self
    }

    pub(crate) fn push_bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn finish(self) -> MemberOrField {
        self.0
    }
}

/// Returns the decimal digits of a number, as a hash field.
pub(crate) fn encode_decimal_field(number: i64) -> MemberOrField {
    let mut rest = number.unsigned_abs();
    let mut digits = MemberOrField::new();
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

/// Decodes the number at `index` of an index member that consists of numbers of eight bytes.
pub(crate) fn decode_member_i64(member: &[u8], index: usize) -> TableResult<i64> {
    let bytes = member.get(index * 8..).and_then(|rest| rest.first_chunk::<8>());
    let bytes = bytes.ok_or_else(|| Fault::damaged("a member of an index is too short"))?;
    Ok((u64::from_be_bytes(*bytes) ^ 1 << 63).cast_signed())
}

/// Decodes the number at the end of an index member.
pub(crate) fn decode_last_member_i64(member: &[u8]) -> TableResult<i64> {
    decode_member_i64(member.get(member.len().saturating_sub(8)..).unwrap_or_default(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_decode_to_the_same() {
        let numbers = [0, 1, -1, 63, 64, -65, 1 << 40, i64::MAX, i64::MIN];
        let mut encoder = RowEncoder::default()
            .push_fixed_i64(-7)
            .push_bytes("é".as_bytes())
            .push_optional_varint(None)
            .push_bytes(b"")
            .push_flag(true);
        for number in numbers {
            encoder = encoder.push_varint(number).push_optional_varint(Some(number));
        }
        let bytes = encoder.finish();
        let mut decoder = RowDecoder::new(&bytes);
        assert_eq!(
            (
                decoder.read_fixed_i64().unwrap(),
                decoder.read_text().unwrap(),
                decoder.read_optional_varint().unwrap()
            ),
            (-7, "é", None)
        );
        assert_eq!((decoder.read_text().unwrap(), decoder.read_flag().unwrap()), ("", true));
        for number in numbers {
            assert_eq!(
                (decoder.read_varint().unwrap(), decoder.read_optional_varint().unwrap()),
                (number, Some(number))
            );
        }
        assert!(decoder.read_byte().is_err(), "the row is decoded completely");
    }

    #[test]
    fn encoded_decimal_field_matches_to_string() {
        for number in [0, 7, 10, 1023, -1, -40, i64::MAX, i64::MIN] {
            assert_eq!(encode_decimal_field(number).as_slice(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn decoding_a_truncated_row_fails() {
        let bytes = RowEncoder::default()
            .push_fixed_i64(1)
            .push_varint(1 << 50)
            .push_bytes(b"abc")
            .push_optional_varint(Some(9))
            .finish();
        for end in 0..bytes.len() {
            let mut decoder = RowDecoder::new(&bytes[..end]);
            let decoded_all = decoder.read_fixed_i64().is_ok()
                && decoder.read_varint().is_ok()
                && decoder.read_text().is_ok()
                && decoder.read_optional_varint().is_ok();
            assert!(!decoded_all, "{end}");
        }
        assert!(RowDecoder::new(&[0xff; 20]).read_varint().is_err());
    }

    #[test]
    fn members_sort_by_their_numbers() {
        let numbers = [i64::MIN, -5, -1, 0, 1, 1 << 33, i64::MAX];
        let members: Vec<_> =
            numbers.iter().map(|n| MemberBuilder::from_i64(*n).push_i64(3).finish()).collect();
        assert!(members.is_sorted());
        for (member, number) in members.iter().zip(numbers) {
            assert_eq!(
                (decode_member_i64(member, 0).unwrap(), decode_member_i64(member, 1).unwrap()),
                (number, 3)
            );
        }
        assert!(decode_member_i64(&members[0], 2).is_err());
    }
}
