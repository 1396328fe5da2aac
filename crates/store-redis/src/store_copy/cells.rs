//! Cells of copied rows: conversion, and reading them in sequence.

use std::vec::IntoIter;

use pointsman_core::{EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyRow, CopyValue, TableKind};

/// Conversion into a cell.
pub(super) trait IntoCell {
    fn into_cell(self) -> CopyValue;
}

/// Builds a row of cells.
macro_rules! copy_row {
    ($($cell:expr),+ $(,)?) => { vec![$($crate::store_copy::cells::IntoCell::into_cell($cell)),+] };
}
pub(super) use copy_row;

impl IntoCell for i64 {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self)
    }
}

impl IntoCell for u32 {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self.into())
    }
}

impl IntoCell for bool {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self.into())
    }
}

impl IntoCell for Timestamp {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self.micros())
    }
}

impl IntoCell for EventId {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self.as_i64())
    }
}

impl IntoCell for TaskSeq {
    fn into_cell(self) -> CopyValue {
        CopyValue::Number(self.0)
    }
}

impl IntoCell for &str {
    fn into_cell(self) -> CopyValue {
        CopyValue::Text(self.into())
    }
}

impl IntoCell for String {
    fn into_cell(self) -> CopyValue {
        CopyValue::Text(self)
    }
}

impl IntoCell for Vec<u8> {
    fn into_cell(self) -> CopyValue {
        CopyValue::Bytes(self)
    }
}

impl<T: IntoCell> IntoCell for Option<T> {
    fn into_cell(self) -> CopyValue {
        self.map_or(CopyValue::Null, IntoCell::into_cell)
    }
}

/// Reads the cells of a row in sequence.
#[derive(Debug)]
pub(super) struct RowCells {
    table_kind: TableKind,
    cells: IntoIter<CopyValue>,
}

impl RowCells {
    pub(super) fn new(table_kind: TableKind, row: CopyRow) -> TableResult<Self> {
        if row.len() != table_kind.columns().len() {
            return Err(Fault::damaged(format!("a row of {table_kind} that has other columns")));
        }
        Ok(Self { table_kind, cells: row.into_iter() })
    }

    fn next_cell(&mut self) -> CopyValue {
        self.cells.next().unwrap_or(CopyValue::Null)
    }

    fn wrong_type_fault(&self) -> Fault {
        Fault::damaged(format!("a row of {} has a value of the wrong type for its column", self.table_kind))
    }

    pub(super) fn optional_number(&mut self) -> TableResult<Option<i64>> {
        match self.next_cell() {
            CopyValue::Number(number) => Ok(Some(number)),
            CopyValue::Null => Ok(None),
            CopyValue::Text(_) | CopyValue::Bytes(_) => Err(self.wrong_type_fault()),
        }
    }

    pub(super) fn number(&mut self) -> TableResult<i64> {
        self.optional_number()?.ok_or_else(|| self.wrong_type_fault())
    }

    /// Reads a number that must fit its type.
    pub(super) fn bounded_number<T: TryFrom<i64>>(&mut self) -> TableResult<T> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.wrong_type_fault())
    }

    pub(super) fn flag(&mut self) -> TableResult<bool> {
        Ok(self.number()? != 0)
    }

    pub(super) fn optional_text(&mut self) -> TableResult<Option<String>> {
        match self.next_cell() {
            CopyValue::Text(text) => Ok(Some(text)),
            CopyValue::Null => Ok(None),
            CopyValue::Number(_) | CopyValue::Bytes(_) => Err(self.wrong_type_fault()),
        }
    }

    pub(super) fn text(&mut self) -> TableResult<String> {
        self.optional_text()?.ok_or_else(|| self.wrong_type_fault())
    }

    pub(super) fn bytes(&mut self) -> TableResult<Vec<u8>> {
        match self.next_cell() {
            CopyValue::Bytes(bytes) => Ok(bytes),
            CopyValue::Null | CopyValue::Number(_) | CopyValue::Text(_) => Err(self.wrong_type_fault()),
        }
    }

    pub(super) fn time(&mut self) -> TableResult<Timestamp> {
        self.number().map(Timestamp::from_micros)
    }

    pub(super) fn optional_time(&mut self) -> TableResult<Option<Timestamp>> {
        Ok(self.optional_number()?.map(Timestamp::from_micros))
    }

    pub(super) fn optional_event_id(&mut self) -> TableResult<Option<EventId>> {
        Ok(self.optional_number()?.map(EventId::from_i64))
    }

    pub(super) fn tenant(&mut self) -> TableResult<Tenant> {
        Tenant::new(self.text()?).map_err(Fault::damaged)
    }
}
