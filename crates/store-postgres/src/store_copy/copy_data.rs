//! Writes rows in the format of a binary COPY.

use bytes::{BufMut, Bytes, BytesMut};
use pointsman_store::columns::{CellWriter, Column};
use pointsman_store::store_copy::CopyRow;

use crate::column_arrays::{put_cell, put_null, put_number, put_text};

/// The header of a binary COPY: the signature, no flags, and no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Ends a binary COPY: it follows the last row, where another row would have its number of fields.
const TRAILER: i16 = -1;

/// Rows to be sent to the database.
pub(super) struct CopyData(BytesMut);

impl CopyData {
    pub(super) fn new() -> Self {
        Self(HEADER.into())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a row, after the cell of the column that only PostgreSQL has.
    pub(super) fn add_row(&mut self, postgres_cell: Option<&[u8]>, row: &CopyRow) {
        let columns = row.table().columns();
        self.0.put_i16(columns.len() as i16 + i16::from(postgres_cell.is_some()));
        if let Some(cell) = postgres_cell {
            put_cell(&mut self.0, cell);
        }
        row.write_cells(&mut CopyFieldWriter { data: &mut self.0, columns: columns.iter() });
    }

    /// Takes the rows added so far.
    pub(super) fn take(&mut self) -> Bytes {
        self.0.split().freeze()
    }

    /// Adds the trailer; returns what was not taken before.
    pub(super) fn finish(mut self) -> Bytes {
        self.0.put_i16(TRAILER);
        self.0.freeze()
    }
}

/// Writes the cells of a row as fields of a binary COPY.
struct CopyFieldWriter<'a> {
    data: &'a mut BytesMut,
    /// The columns of the next cells.
    columns: std::slice::Iter<'static, Column>,
}

impl CellWriter for CopyFieldWriter<'_> {
    fn write_null(&mut self) {
        self.columns.next();
        put_null(self.data);
    }

    fn write_number(&mut self, number: i64) {
        if let Some(column) = self.columns.next() {
            put_number(self.data, column.cell_type, number);
        }
    }

    fn write_flag(&mut self, flag: bool) {
        self.columns.next();
        put_cell(self.data, &[flag.into()]);
    }

    fn write_text(&mut self, text: &str) {
        self.columns.next();
        put_text(self.data, text);
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.columns.next();
        put_cell(self.data, bytes);
    }
}
