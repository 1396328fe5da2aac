//! Rows as bytes: the cells of their columns in sequence.
//!
//! The bytes leave out the cells of the row's key, which are in the Redis key and the hash field or stream id under which
//! the row is stored.

use std::borrow::Cow;
use std::ops::Range;
use std::slice::Iter;

use pointsman_store::columns::{CellReader, CellType, CellWriter, Columns};
use pointsman_store::error::{Fault, TableResult};

use crate::codec::{RowDecoder, push_varint};

/// Capacity with which the bytes of a row begin: few rows without large texts need more.
const ROW_CAPACITY: usize = 256;
/// Capacity that is reserved after each text for the cells that follow it.
const CAPACITY_AFTER_TEXT: usize = 64;

/// A cell that precedes those in the bytes of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeadingCell<'c> {
    Null,
    Number(i64),
    Text(&'c str),
}

/// Encodes the columns of a row except its key.
pub(crate) fn encode_row<'a, C: Columns<'a>>(columns: &C) -> Vec<u8> {
    encode_columns(columns, C::KEY_LENGTH..C::COLUMNS.len())
}

/// Encodes the columns of a row with these indexes.
pub(crate) fn encode_columns<'a, C: Columns<'a>>(columns: &C, column_range: Range<usize>) -> Vec<u8> {
    encode_cells(columns, CellEncoder { column_range, ..CellEncoder::new() })
}

/// Encodes the columns of a row except its key. The first of them, which scripts read, becomes a number of eight bytes,
/// 0 for null.
pub(crate) fn encode_row_for_scripts<'a, C: Columns<'a>>(columns: &C) -> Vec<u8> {
    let column_range = C::KEY_LENGTH..C::COLUMNS.len();
    encode_cells(
        columns,
        CellEncoder { column_range, fixed_column: Some(C::KEY_LENGTH), ..CellEncoder::new() },
    )
}

fn encode_cells<'a>(columns: &impl Columns<'a>, mut encoder: CellEncoder) -> Vec<u8> {
    columns.write_cells(&mut encoder);
    encoder.bytes
}

/// Decodes a row from the cells of its key and its bytes.
pub(crate) fn decode_row<'b, C: Columns<'b>>(key: &[LeadingCell<'b>], bytes: &'b [u8]) -> TableResult<C> {
    C::read_cells(&mut RowReader::new(key, bytes))
}

/// Decodes a row that [`encode_row_for_scripts`] has encoded.
pub(crate) fn decode_row_for_scripts<'b, C: Columns<'b>>(key: i64, bytes: &'b [u8]) -> TableResult<C> {
    let (first, rest) = split_first_number(bytes)?;
    let first = first.map_or(LeadingCell::Null, LeadingCell::Number);
    decode_row(&[LeadingCell::Number(key), first], rest)
}

/// Splits the bytes of a row that [`encode_row_for_scripts`] has encoded into its first number and the rest.
pub(crate) fn split_first_number(bytes: &[u8]) -> TableResult<(Option<i64>, &[u8])> {
    let mut row = RowDecoder::new(bytes);
    let first = row.read_fixed_i64()?;
    Ok((Some(first).filter(|first| *first != 0), row.remaining_bytes()))
}

/// Encodes the cells of the columns in a range, and skips the others.
struct CellEncoder {
    bytes: Vec<u8>,
    /// The index of the next column.
    position: usize,
    /// The indexes of the columns that are encoded.
    column_range: Range<usize>,
    /// The column that is encoded as a number of eight bytes.
    fixed_column: Option<usize>,
}

impl CellEncoder {
    fn new() -> Self {
        Self { bytes: Vec::with_capacity(ROW_CAPACITY), position: 0, column_range: 0..0, fixed_column: None }
    }

    fn is_next_fixed(&self) -> bool {
        self.fixed_column == Some(self.position)
    }

    fn write_fixed(&mut self, number: i64) {
        self.position += 1;
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    /// Advances to the next column; returns whether the cell of the current one is encoded.
    fn advance(&mut self) -> bool {
        self.position += 1;
        self.column_range.contains(&(self.position - 1))
    }
}

impl CellWriter for CellEncoder {
    fn write_null(&mut self) {
        match self.is_next_fixed() {
            true => self.write_fixed(0),
            false => self.write_flag(false),
        }
    }

    fn announce_non_null(&mut self) {
        if self.column_range.contains(&self.position) && !self.is_next_fixed() {
            self.bytes.push(1);
        }
    }

    fn write_number(&mut self, number: i64) {
        if self.is_next_fixed() {
            self.write_fixed(number);
        } else if self.advance() {
            push_varint(&mut self.bytes, number);
        }
    }

    fn write_flag(&mut self, flag: bool) {
        if self.advance() {
            self.bytes.push(flag.into());
        }
    }

    fn write_text(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        if self.advance() {
            push_varint(&mut self.bytes, bytes.len() as i64);
            self.bytes.reserve(bytes.len() + CAPACITY_AFTER_TEXT);
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// Reads the cells of a row: the leading ones, those in its bytes, and those in the bytes that follow, if any.
pub(crate) struct RowReader<'k, 'b> {
    leading_cells: Iter<'k, LeadingCell<'b>>,
    row_bytes: RowDecoder<'b>,
    following_bytes: RowDecoder<'b>,
}

impl<'k, 'b> RowReader<'k, 'b> {
    pub(crate) fn new(leading_cells: &'k [LeadingCell<'b>], bytes: &'b [u8]) -> Self {
        Self {
            leading_cells: leading_cells.iter(),
            row_bytes: RowDecoder::new(bytes),
            following_bytes: RowDecoder::new(&[]),
        }
    }

    /// Reads the cells after those of the row from these bytes.
    pub(crate) fn followed_by(self, bytes: &'b [u8]) -> Self {
        Self { following_bytes: RowDecoder::new(bytes), ..self }
    }

    /// Returns the decoder of the bytes that contain the next cell.
    fn decoder_of_next_cell(&mut self) -> &mut RowDecoder<'b> {
        if self.row_bytes.remaining_bytes().is_empty() {
            &mut self.following_bytes
        } else {
            &mut self.row_bytes
        }
    }
}

impl<'b> CellReader<'b> for RowReader<'_, 'b> {
    fn skip_null(&mut self) -> TableResult<bool> {
        match self.leading_cells.as_slice().first() {
            Some(LeadingCell::Null) => Ok(self.leading_cells.next().is_some()),
            Some(LeadingCell::Number(_) | LeadingCell::Text(_)) => Ok(false),
            None => Ok(!self.decoder_of_next_cell().read_flag()?),
        }
    }

    fn read_number(&mut self, _cell_type: CellType) -> TableResult<i64> {
        match self.leading_cells.next() {
            Some(LeadingCell::Number(number)) => Ok(*number),
            Some(LeadingCell::Null | LeadingCell::Text(_)) => Err(wrong_key_fault()),
            None => self.decoder_of_next_cell().read_varint(),
        }
    }

    fn read_flag(&mut self) -> TableResult<bool> {
        match self.leading_cells.next() {
            Some(_) => Err(wrong_key_fault()),
            None => self.decoder_of_next_cell().read_flag(),
        }
    }

    fn read_text(&mut self) -> TableResult<Cow<'b, str>> {
        match self.leading_cells.next() {
            Some(LeadingCell::Text(text)) => Ok(Cow::Borrowed(text)),
            Some(LeadingCell::Null | LeadingCell::Number(_)) => Err(wrong_key_fault()),
            None => self.decoder_of_next_cell().read_text().map(Cow::Borrowed),
        }
    }

    fn read_bytes(&mut self) -> TableResult<Cow<'b, [u8]>> {
        match self.leading_cells.next() {
            Some(_) => Err(wrong_key_fault()),
            None => self.decoder_of_next_cell().read_bytes().map(Cow::Borrowed),
        }
    }
}

fn wrong_key_fault() -> Fault {
    Fault::damaged("the key of a row has a value of another type than its column")
}

#[cfg(test)]
mod tests {
    use pointsman_store::columns::{AttemptColumns, EventColumns, OrderColumns};

    use super::*;

    fn order() -> OrderColumns<'static> {
        OrderColumns {
            n: 7,
            key: "/daily,1".into(),
            chain: "/daily".into(),
            node: "load".into(),
            tenant: "default".into(),
            value: format!("\"{}\"", "é".repeat(1_000)).into(),
            priority: -5,
            planned: None,
            created: 1 << 50,
            started: Some(0),
            suspended: true,
            task: Some(-1),
            origin: None,
            depth: 3,
            step_succeeded: false,
            suspended_by_task: Some(i64::MAX),
            took_on_error: true,
        }
    }

    fn event(prev: Option<i64>) -> EventColumns<'static> {
        EventColumns {
            id: 70,
            prev,
            event_type: "record.published".into(),
            key: Some("record:1".into()),
            sub: None,
            tenant: "".into(),
            value: "{}".into(),
            context: Some("".into()),
            cause_event: None,
            cause_task: Some(6),
            depth: 1,
            first_task: 8,
            tasks: 2,
        }
    }

    #[test]
    fn rows_are_read_as_written() {
        let bytes = encode_row(&order());
        assert_eq!(decode_row::<OrderColumns<'_>>(&[LeadingCell::Number(7)], &bytes).unwrap(), order());
        let attempt = AttemptColumns { task: 5, number: 2, started: 1, ended: 3, outcome: 1, error: None };
        let key = [LeadingCell::Number(5), LeadingCell::Number(2)];
        assert_eq!(decode_row::<AttemptColumns<'_>>(&key, &encode_row(&attempt)).unwrap(), attempt);
    }

    #[test]
    fn the_key_is_not_in_the_bytes() {
        let renumbered = OrderColumns { n: 1 << 40, ..order() };
        assert_eq!(encode_row(&renumbered), encode_row(&order()));
    }

    #[test]
    fn rows_for_scripts_begin_with_eight_bytes() {
        for prev in [None, Some(60)] {
            let bytes = encode_row_for_scripts(&event(prev));
            assert_eq!(bytes[..8], prev.unwrap_or(0).to_be_bytes());
            assert_eq!(split_first_number(&bytes).unwrap().0, prev);
            assert_eq!(decode_row_for_scripts::<EventColumns<'_>>(70, &bytes).unwrap(), event(prev));
        }
    }

    #[test]
    fn truncated_rows_and_wrong_keys_are_damage() {
        let bytes = encode_row(&order());
        let key = [LeadingCell::Number(7)];
        for end in 0..bytes.len() {
            assert!(decode_row::<OrderColumns<'_>>(&key, &bytes[..end]).is_err(), "{end}");
        }
        for key in [LeadingCell::Null, LeadingCell::Text("7")] {
            assert!(decode_row::<OrderColumns<'_>>(&[key], &bytes).is_err());
        }
        assert!(decode_row_for_scripts::<EventColumns<'_>>(70, &[0; 7]).is_err());
    }
}
