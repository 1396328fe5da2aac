//! Pages of rows, in which a table is copied.

use serde::{Deserialize, Serialize};

use super::CopyRow;
use crate::columns::CellWriter;

/// A value of a cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CursorValue {
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Position up to which a table was read: the key of the last row. The store that is read chooses the key and its
/// order.
pub type CopyCursor = Vec<CursorValue>;

impl CursorValue {
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Bytes(_) => None,
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
            page.push_row(vec![CursorValue::Number(1)], row);
        }
        page
    }

    pub fn push_row(&mut self, cursor: CopyCursor, row: CopyRow) {
        self.memory_size += estimate_memory_size(&row);
        self.next_cursor = cursor;
        self.rows.push(row);
    }

    pub fn is_full(&self) -> bool {
        self.rows.len() >= MAX_COPY_PAGE_ROWS || self.memory_size >= MAX_COPY_PAGE_BYTES
    }
}

/// Returns the approximate number of bytes that a row takes in memory.
fn estimate_memory_size(row: &CopyRow) -> usize {
    let mut text_size = TextSizeCounter(0);
    row.write_cells(&mut text_size);
    size_of::<CopyRow>() + text_size.0
}

/// Adds up the sizes of the texts and the bytes of a row.
struct TextSizeCounter(usize);

impl CellWriter for TextSizeCounter {
    fn write_null(&mut self) {}

    fn write_number(&mut self, _number: i64) {}

    fn write_flag(&mut self, _flag: bool) {}

    fn write_text(&mut self, text: &str) {
        self.0 += text.len();
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NamedTextColumns;

    fn row_with_text(text: String) -> CopyRow {
        NamedTextColumns { name: "name".into(), text: text.into() }.into()
    }

    #[test]
    fn a_page_is_bounded_in_rows_and_in_bytes() {
        let mut page = CopyPage::default();
        for number in 0..MAX_COPY_PAGE_ROWS as i64 {
            assert!(!page.is_full());
            page.push_row(vec![CursorValue::Number(number)], row_with_text(number.to_string()));
        }
        assert!(page.is_full());
        let mut page = CopyPage::default();
        page.push_row(vec![], row_with_text("x".repeat(MAX_COPY_PAGE_BYTES)));
        assert!(page.is_full());
    }
}
