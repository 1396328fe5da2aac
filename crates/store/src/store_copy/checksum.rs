//! The checksum by which two tables are compared.

use std::borrow::Cow;
use std::fmt;

use sha2::{Digest, Sha256};

use super::CopyRow;
use crate::columns::CellWriter;

/// Checksum of a table: the number of its rows and the sum of their hashes, which does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableChecksum {
    pub row_count: u64,
    hash_sum: u64,
}

impl TableChecksum {
    pub fn add_row(&mut self, row: &CopyRow) {
        let mut hasher = RowHasher(Sha256::new());
        row.write_cells(&mut hasher);
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hasher.0.finalize().into();
        self.row_count += 1;
        self.hash_sum = self.hash_sum.wrapping_add(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
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

/// Hashes the cells of a row, each with a tag for its type, and texts with their length.
struct RowHasher(Sha256);

impl RowHasher {
    fn hash_bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.0.update([tag]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl CellWriter for RowHasher {
    fn write_null(&mut self) {
        self.0.update([0]);
    }

    fn write_number(&mut self, number: i64) {
        self.0.update([1]);
        self.0.update(number.to_le_bytes());
    }

    fn write_flag(&mut self, flag: bool) {
        self.write_number(flag.into());
    }

    fn write_text(&mut self, text: &str) {
        self.hash_bytes(2, replace_nul(text).as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.hash_bytes(3, bytes);
    }
}

/// Replaces NUL, which some stores cannot keep in a text, by U+FFFD. Handler output may contain it.
pub fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{AttemptColumns, IdempotencyRecordColumns, NamedTextColumns};

    fn checksum_rows(rows: &[CopyRow]) -> TableChecksum {
        let mut checksum = TableChecksum::default();
        rows.iter().for_each(|row| checksum.add_row(row));
        checksum
    }

    fn named_text(name: &'static str, text: &'static str) -> CopyRow {
        NamedTextColumns { name: name.into(), text: text.into() }.into()
    }

    fn attempt(number: u32, error: Option<&'static str>) -> CopyRow {
        let error = error.map(Cow::Borrowed);
        AttemptColumns { task: 1, number, started: 2, ended: 3, outcome: 1, error }.into()
    }

    fn idempotency_record(digest: &'static [u8]) -> CopyRow {
        let (tenant, key, response) = ("default".into(), "key".into(), "".into());
        IdempotencyRecordColumns { tenant, key, digest: digest.into(), response, at: 0 }.into()
    }

    #[test]
    fn checksum_does_not_depend_on_row_order() {
        let (first, second) = (attempt(1, None), attempt(2, Some("x")));
        assert_eq!(checksum_rows(&[first.clone(), second.clone()]), checksum_rows(&[second, first]));
    }

    #[test]
    fn any_difference_in_a_row_changes_the_checksum() {
        let rows = [
            named_text("ab", "c"),
            named_text("a", "bc"),
            named_text("abc", ""),
            named_text("", "abc"),
            attempt(0, Some("")),
            attempt(0, None),
            attempt(1, None),
            attempt(1, Some("c")),
            idempotency_record(b""),
            idempotency_record(b"ab"),
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
            checksum_rows(&[named_text("x", "a\0b")]),
            checksum_rows(&[named_text("x", "a\u{FFFD}b")])
        );
    }
}
