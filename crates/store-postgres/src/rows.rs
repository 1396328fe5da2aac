//! Reads rows: whole ones, as [`pointsman_store::columns`] describes them, and single columns.

use std::borrow::Cow;

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::{CellReader, CellType, Columns};
use pointsman_store::error::{BoxError, Fault, TableResult};
use pointsman_store::row::TaskPhase;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type, accepts};

/// Reads the columns of a result one after the other.
pub(crate) struct RowReader<'a> {
    row: &'a Row,
    index: usize,
}

impl<'a> RowReader<'a> {
    /// Starts at a column; columns of other tables may precede it.
    pub(crate) fn new(row: &'a Row, index: usize) -> Self {
        Self { row, index }
    }

    /// Reads the next column.
    pub(crate) fn read_next<T: FromSql<'a>>(&mut self) -> TableResult<T> {
        let value = read_column(self.row, self.index)?;
        self.index += 1;
        Ok(value)
    }
}

impl<'a> CellReader<'a> for RowReader<'a> {
    fn skip_null(&mut self) -> TableResult<bool> {
        let is_null = read_column::<Option<AnyCell>>(self.row, self.index)?.is_none();
        self.index += usize::from(is_null);
        Ok(is_null)
    }

    fn read_number(&mut self, cell_type: CellType) -> TableResult<i64> {
        match cell_type {
            CellType::Int2 => self.read_next::<i16>().map(i64::from),
            CellType::Int4 => self.read_next::<i32>().map(i64::from),
            CellType::Int8 | CellType::Bool | CellType::Text | CellType::Bytes => self.read_next(),
        }
    }

    fn read_flag(&mut self) -> TableResult<bool> {
        self.read_next()
    }

    fn read_text(&mut self) -> TableResult<Cow<'a, str>> {
        self.read_next().map(Cow::Borrowed)
    }

    fn read_bytes(&mut self) -> TableResult<Cow<'a, [u8]>> {
        self.read_next().map(|CellBytes(bytes)| Cow::Borrowed(bytes))
    }
}

/// A cell of any type that is not NULL.
struct AnyCell;

impl FromSql<'_> for AnyCell {
    fn from_sql(_ty: &Type, _raw: &[u8]) -> Result<Self, BoxError> {
        Ok(Self)
    }

    fn accepts(_ty: &Type) -> bool {
        true
    }
}

/// The bytes of a cell. A uuid consists of bytes in other stores.
struct CellBytes<'a>(&'a [u8]);

impl<'a> FromSql<'a> for CellBytes<'a> {
    fn from_sql(_ty: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self(raw))
    }

    accepts!(BYTEA, UUID);
}

/// Reads the columns of a stored row from a result, in which its first column is at this index.
pub(crate) fn read_columns<'a, C: Columns<'a>>(row: &'a Row, index: usize) -> TableResult<C> {
    C::read_cells(&mut RowReader::new(row, index))
}

/// Reads a column; a value of an unexpected type means that the database is damaged.
pub(crate) fn read_column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> TableResult<T> {
    row.try_get(index).map_err(Fault::damaged)
}

pub(crate) fn read_time(row: &Row, index: usize) -> TableResult<Timestamp> {
    read_column(row, index).map(Timestamp::from_micros)
}

pub(crate) fn read_optional_time(row: &Row, index: usize) -> TableResult<Option<Timestamp>> {
    Ok(read_column::<Option<i64>>(row, index)?.map(Timestamp::from_micros))
}

pub(crate) fn read_event_id(row: &Row, index: usize) -> TableResult<EventId> {
    read_column(row, index).map(EventId::from_i64)
}

pub(crate) fn read_task_seq(row: &Row, index: usize) -> TableResult<TaskSeq> {
    read_column(row, index).map(TaskSeq)
}

pub(crate) fn read_phase(row: &Row, index: usize) -> TableResult<TaskPhase> {
    decode_phase(read_column(row, index)?)
}

pub(crate) fn decode_phase(code: i16) -> TableResult<TaskPhase> {
    TaskPhase::from_code(code).ok_or_else(|| Fault::damaged("a task has an unknown phase"))
}

/// Reads the bucket of a key in its queue's round robin.
pub(crate) fn read_key_bucket(row: &Row, index: usize) -> TableResult<Option<u16>> {
    read_column::<Option<i32>>(row, index)?.map(u16::try_from).transpose().map_err(Fault::damaged)
}
