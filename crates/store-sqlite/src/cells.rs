//! The cells of rows: the columns of a result, and the parameters of a statement.

use std::borrow::Cow;

use pointsman_store::columns::{CellReader, CellType, CellWriter};
use rusqlite::types::{FromSqlResult, Null, ValueRef};
use rusqlite::{Row, Statement, ToSql};

use crate::error::{Fault, TableResult};

/// Reads the cells of a row in order, without copying texts.
pub(crate) struct RowReader<'r> {
    row: &'r Row<'r>,
    next_index: usize,
}

impl<'r> RowReader<'r> {
    pub(crate) fn new(row: &'r Row<'_>) -> Self {
        Self { row, next_index: 0 }
    }

    /// Decodes the next cell.
    pub(crate) fn decode_next<T>(
        &mut self,
        decode: impl FnOnce(ValueRef<'r>) -> FromSqlResult<T>,
    ) -> TableResult<T> {
        let index = self.next_index;
        self.next_index += 1;
        let name_column = |error| {
            let name = self.row.as_ref().column_name(index).unwrap_or("without a name");
            Fault::undecodable(format!("the column {name}"), error)
        };
        decode(self.row.get_ref(index)?).map_err(name_column)
    }
}

impl<'r> CellReader<'r> for RowReader<'r> {
    fn skip_null(&mut self) -> TableResult<bool> {
        let is_null = matches!(self.row.get_ref(self.next_index)?, ValueRef::Null);
        self.next_index += usize::from(is_null);
        Ok(is_null)
    }

    fn read_number(&mut self, _cell_type: CellType) -> TableResult<i64> {
        self.decode_next(|cell| cell.as_i64())
    }

    fn read_flag(&mut self) -> TableResult<bool> {
        Ok(self.decode_next(|cell| cell.as_i64())? != 0)
    }

    fn read_text(&mut self) -> TableResult<Cow<'r, str>> {
        self.decode_next(|cell| cell.as_str().map(Cow::Borrowed))
    }

    fn read_bytes(&mut self) -> TableResult<Cow<'r, [u8]>> {
        self.decode_next(|cell| cell.as_blob().map(Cow::Borrowed))
    }
}

/// Binds cells to the parameters of a statement in order. The first error is returned when the statement is executed.
pub(crate) struct ParameterWriter<'s, 'c> {
    statement: &'s mut Statement<'c>,
    last_index: usize,
    result: rusqlite::Result<()>,
}

impl<'s, 'c> ParameterWriter<'s, 'c> {
    pub(crate) fn new(statement: &'s mut Statement<'c>) -> Self {
        Self { statement, last_index: 0, result: Ok(()) }
    }

    pub(crate) fn execute(self) -> TableResult<()> {
        self.result?;
        self.statement.raw_execute()?;
        Ok(())
    }

    fn bind_next(&mut self, value: impl ToSql) {
        if self.result.is_ok() {
            self.last_index += 1;
            self.result = self.statement.raw_bind_parameter(self.last_index, value);
        }
    }
}

impl CellWriter for ParameterWriter<'_, '_> {
    fn write_null(&mut self) {
        self.bind_next(Null);
    }

    fn write_number(&mut self, number: i64) {
        self.bind_next(number);
    }

    fn write_flag(&mut self, flag: bool) {
        self.bind_next(flag);
    }

    fn write_text(&mut self, text: &str) {
        self.bind_next(text);
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.bind_next(bytes);
    }
}
