//! Rows as they go from one store to another, and the sum by which two heaps of them are compared.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A value of a row. What is true or false is 1 or 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyValue {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

pub type CopyRow = Vec<CopyValue>;

/// Where a section was read up to: the key of the last row, in the order of the store that was read.
pub type CopyCursor = Vec<CopyValue>;

impl CopyValue {
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Null | Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Number(_) | Self::Bytes(_) => None,
        }
    }

    /// About how much memory it takes.
    fn memory_size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null | Self::Number(_) => 0,
                Self::Text(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
            }
    }
}

/// Some rows of a section, and where to go on behind them. Empty: there are no more.
#[derive(Debug, Default)]
pub struct CopyPage {
    pub rows: Vec<CopyRow>,
    pub next_cursor: CopyCursor,
    memory_size: usize,
}

/// So many rows at most go in one transaction.
const MAX_PAGE_ROWS: usize = 5_000;
/// Beyond so many bytes no further row goes in the same transaction: a row may hold a megabyte.
const MAX_PAGE_BYTES: usize = 16 << 20;

impl CopyPage {
    /// A section of a single row, read from its beginning or from behind that row.
    pub fn single_row(row: CopyRow, after: Option<&CopyCursor>) -> Self {
        let mut page = Self::default();
        if after.is_none() {
            page.push_row(vec![CopyValue::Number(1)], row);
        }
        page
    }

    pub fn push_row(&mut self, cursor: CopyCursor, row: CopyRow) {
        self.memory_size += row.iter().map(CopyValue::memory_size).sum::<usize>();
        self.next_cursor = cursor;
        self.rows.push(row);
    }

    pub fn is_full(&self) -> bool {
        self.rows.len() >= MAX_PAGE_ROWS || self.memory_size >= MAX_PAGE_BYTES
    }
}

/// How many rows there are, and the sum of what they hash to: in any order it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableChecksum {
    pub rows: u64,
    hash_sum: u64,
}

impl TableChecksum {
    pub fn add_row(&mut self, row: &CopyRow) {
        self.rows += 1;
        self.hash_sum = self.hash_sum.wrapping_add(hash_row(row));
    }

    pub fn format_checksum(&self) -> String {
        format!("{:016x}", self.hash_sum)
    }
}

impl fmt::Display for TableChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rows, self.format_checksum())
    }
}

fn hash_row(row: &CopyRow) -> u64 {
    let mut hasher = Sha256::new();
    for cell in row {
        match cell {
            CopyValue::Null => hasher.update([0]),
            CopyValue::Number(number) => {
                hasher.update([1]);
                hasher.update(number.to_le_bytes());
            }
            CopyValue::Text(text) => hash_bytes(&mut hasher, 2, replace_nul(text).as_bytes()),
            CopyValue::Bytes(bytes) => hash_bytes(&mut hasher, 3, bytes),
        }
    }
    let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hasher.finalize().into();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn hash_bytes(hasher: &mut Sha256, tag: u8, bytes: &[u8]) {
    hasher.update([tag]);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// A text as every store can keep it: what a handler said may hold a NUL, and some have no place for that.
pub fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_rows(rows: &[CopyRow]) -> TableChecksum {
        let mut tally = TableChecksum::default();
        rows.iter().for_each(|row| tally.add_row(row));
        tally
    }

    fn text_value(text: &str) -> CopyValue {
        CopyValue::Text(text.into())
    }

    #[test]
    fn rows_may_come_in_any_order() {
        let (source_sums, two) =
            (vec![CopyValue::Number(1), CopyValue::Null], vec![CopyValue::Number(2), text_value("x")]);
        assert_eq!(checksum_rows(&[source_sums.clone(), two.clone()]), checksum_rows(&[two, source_sums]));
    }

    #[test]
    fn whatever_differs_in_a_row_changes_the_sum() {
        let rows = [
            vec![text_value("ab"), text_value("c")],
            vec![text_value("a"), text_value("bc")],
            vec![text_value("abc"), CopyValue::Null],
            vec![CopyValue::Null, text_value("abc")],
            vec![CopyValue::Bytes(b"ab".to_vec()), text_value("c")],
            vec![CopyValue::Number(0), text_value("c")],
            vec![text_value(""), text_value("c")],
        ];
        for (index, row) in rows.iter().enumerate() {
            for target_sums in rows.iter().skip(index + 1) {
                assert_ne!(
                    checksum_rows(std::slice::from_ref(row)),
                    checksum_rows(std::slice::from_ref(target_sums))
                );
            }
        }
        let row = &rows[..1];
        assert_ne!(
            checksum_rows(&[row, row].concat()),
            checksum_rows(row),
            "a row that is there twice counts twice"
        );
    }

    #[test]
    fn what_not_every_store_can_keep_makes_no_difference() {
        assert_eq!(
            checksum_rows(&[vec![text_value("a\0b")]]),
            checksum_rows(&[vec![text_value("a\u{FFFD}b")]])
        );
    }

    #[test]
    fn a_page_is_bounded_in_rows_and_in_bytes() {
        let mut page = CopyPage::default();
        for number in 0..MAX_PAGE_ROWS as i64 {
            assert!(!page.is_full());
            page.push_row(vec![CopyValue::Number(number)], vec![CopyValue::Number(number)]);
        }
        assert!(page.is_full());
        let mut page = CopyPage::default();
        page.push_row(vec![], vec![text_value(&"x".repeat(MAX_PAGE_BYTES))]);
        assert!(page.is_full());
    }
}
