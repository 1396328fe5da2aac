//! Rows in the form in which they are copied, and the checksum by which two tables are compared.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A value of a row. Booleans are 1 and 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyValue {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row: its values in the order of [`TableKind::columns`](super::TableKind::columns).
pub type CopyRow = Vec<CopyValue>;

/// Position up to which a table was read: the key of the last row. The store that is read chooses the key and its
/// order.
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

    /// Returns the approximate number of bytes that the value takes in memory.
    fn memory_size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null | Self::Number(_) => 0,
                Self::Text(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
            }
    }
}

/// A page of rows of a table, and the cursor after them. An empty page means that there are no more.
#[derive(Debug, Default)]
pub struct CopyPage {
    pub rows: Vec<CopyRow>,
    pub next_cursor: CopyCursor,
    memory_size: usize,
}

/// Most rows in one page, which is written in one transaction.
const MAX_COPY_PAGE_ROWS: usize = 5_000;
/// A page with this many bytes takes no further row. The page may exceed it by one row, which may have a megabyte.
const MAX_COPY_PAGE_BYTES: usize = 16 << 20;

impl CopyPage {
    /// Builds the page of a table with a single row; empty if `after` is set.
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
        self.rows.len() >= MAX_COPY_PAGE_ROWS || self.memory_size >= MAX_COPY_PAGE_BYTES
    }
}

/// Checksum of a table: the number of its rows and the sum of their hashes, which does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableChecksum {
    pub row_count: u64,
    hash_sum: u64,
}

impl TableChecksum {
    pub fn add_row(&mut self, row: &CopyRow) {
        self.row_count += 1;
        self.hash_sum = self.hash_sum.wrapping_add(hash_row(row));
    }

    pub fn format_checksum(&self) -> String {
        format!("{:016x}", self.hash_sum)
    }
}

impl fmt::Display for TableChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.row_count, self.format_checksum())
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

/// Replaces NUL, which some stores cannot keep in a text, by U+FFFD. Handler output may contain it.
pub fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_rows(rows: &[CopyRow]) -> TableChecksum {
        let mut checksum = TableChecksum::default();
        rows.iter().for_each(|row| checksum.add_row(row));
        checksum
    }

    fn text_value(text: &str) -> CopyValue {
        CopyValue::Text(text.into())
    }

    #[test]
    fn checksum_does_not_depend_on_row_order() {
        let (first, second) =
            (vec![CopyValue::Number(1), CopyValue::Null], vec![CopyValue::Number(2), text_value("x")]);
        assert_eq!(checksum_rows(&[first.clone(), second.clone()]), checksum_rows(&[second, first]));
    }

    #[test]
    fn any_difference_in_a_row_changes_the_checksum() {
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
            for other in rows.iter().skip(index + 1) {
                assert_ne!(
                    checksum_rows(std::slice::from_ref(row)),
                    checksum_rows(std::slice::from_ref(other))
                );
            }
        }
        let row = &rows[..1];
        assert_ne!(checksum_rows(&[row, row].concat()), checksum_rows(row), "a duplicate row counts twice");
    }

    #[test]
    fn checksum_ignores_nul_replacement() {
        assert_eq!(
            checksum_rows(&[vec![text_value("a\0b")]]),
            checksum_rows(&[vec![text_value("a\u{FFFD}b")]])
        );
    }

    #[test]
    fn a_page_is_bounded_in_rows_and_in_bytes() {
        let mut page = CopyPage::default();
        for number in 0..MAX_COPY_PAGE_ROWS as i64 {
            assert!(!page.is_full());
            page.push_row(vec![CopyValue::Number(number)], vec![CopyValue::Number(number)]);
        }
        assert!(page.is_full());
        let mut page = CopyPage::default();
        page.push_row(vec![], vec![text_value(&"x".repeat(MAX_COPY_PAGE_BYTES))]);
        assert!(page.is_full());
    }
}
