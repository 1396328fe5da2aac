//! Writes rows as arrays, one for each column: the parameters of `unnest(:task_arrays)`.

use bytes::{BufMut, BytesMut};
use pointsman_store::columns::{CellType, CellWriter, Column};
use pointsman_store::error::BoxError;
use pointsman_store::store_copy::replace_nul;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::writer_connection::BoxedParam;

/// The cells of rows, collected in arrays. Columns for which a query has no parameter are left out.
pub(crate) struct ColumnArrays {
    /// In the order of the parameters.
    arrays: Vec<ColumnArray>,
    /// For each column of a row, the index of its array.
    array_indexes: Vec<Option<usize>>,
    /// The column of the next cell.
    next_column: usize,
}

impl ColumnArrays {
    pub(crate) fn new(row_columns: &[Column], array_columns: &[Column]) -> Self {
        debug_assert!(
            array_columns.iter().all(|column| row_columns.contains(column)),
            "the query has parameters for columns that these rows do not have"
        );
        let find_array = |column: &Column| array_columns.iter().position(|other| other.name == column.name);
        Self {
            arrays: array_columns.iter().map(|column| ColumnArray::new(column.cell_type)).collect(),
            array_indexes: row_columns.iter().map(find_array).collect(),
            next_column: 0,
        }
    }

    pub(crate) fn into_params(self) -> impl Iterator<Item = BoxedParam> {
        self.arrays.into_iter().map(|array| Box::new(array) as BoxedParam)
    }

    /// Writes the next cell to the array of its column, if there is one.
    fn write_next(&mut self, write_cell: impl FnOnce(&mut ColumnArray)) {
        let array_index = self.array_indexes.get(self.next_column).copied().flatten();
        self.next_column = (self.next_column + 1) % self.array_indexes.len();
        if let Some(array) = array_index.and_then(|index| self.arrays.get_mut(index)) {
            write_cell(array);
        }
    }
}

impl CellWriter for ColumnArrays {
    fn write_null(&mut self) {
        self.write_next(|array| array.trailing_null_count += 1);
    }

    fn write_number(&mut self, number: i64) {
        self.write_next(|array| {
            let cell_type = array.cell_type;
            put_number(array.add_element(), cell_type, number);
        });
    }

    fn write_flag(&mut self, flag: bool) {
        self.write_next(|array| put_cell(array.add_element(), &[flag.into()]));
    }

    fn write_text(&mut self, text: &str) {
        self.write_next(|array| put_text(array.add_element(), text));
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_next(|array| put_cell(array.add_element(), bytes));
    }
}

/// The cells of a column, as an array. NULLs at its end are left out: `unnest` pads shorter arrays with NULLs, and
/// often all cells of a column are NULL.
#[derive(Debug)]
struct ColumnArray {
    cell_type: CellType,
    /// In the binary format of array elements.
    elements: BytesMut,
    element_count: i32,
    /// Number of NULLs after the elements.
    trailing_null_count: i32,
}

impl ColumnArray {
    fn new(cell_type: CellType) -> Self {
        Self { cell_type, elements: BytesMut::new(), element_count: 0, trailing_null_count: 0 }
    }

    /// Counts another element, after the pending NULLs, and returns the buffer that it is to be put in.
    fn add_element(&mut self) -> &mut BytesMut {
        for _ in 0..self.trailing_null_count {
            put_null(&mut self.elements);
        }
        self.element_count += self.trailing_null_count + 1;
        self.trailing_null_count = 0;
        &mut self.elements
    }
}

impl ToSql for ColumnArray {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        let Kind::Array(element_type) = ty.kind() else { return Err(format!("{ty} is not an array").into()) };
        const DIMENSION_COUNT: i32 = 1;
        const NULLS_FLAG: i32 = 1;
        const LOWER_BOUND: i32 = 1;
        out.put_i32(DIMENSION_COUNT);
        out.put_i32(NULLS_FLAG);
        out.put_u32(element_type.oid());
        out.put_i32(self.element_count);
        out.put_i32(LOWER_BOUND);
        out.put_slice(&self.elements);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Array(_))
    }

    to_sql_checked!();
}

/// Returns the type of the array of a column.
pub(crate) fn array_type_of_column(column: &Column) -> Type {
    match column.cell_type {
        CellType::Int8 => Type::INT8_ARRAY,
        CellType::Int4 => Type::INT4_ARRAY,
        CellType::Int2 => Type::INT2_ARRAY,
        CellType::Bool => Type::BOOL_ARRAY,
        CellType::Text => Type::TEXT_ARRAY,
        CellType::Bytes => Type::BYTEA_ARRAY,
    }
}

/// Puts NULL as array elements and the fields of a binary COPY represent it.
pub(crate) fn put_null(buffer: &mut BytesMut) {
    buffer.put_i32(-1);
}

/// Puts the length and the bytes of a cell.
pub(crate) fn put_cell(buffer: &mut BytesMut, bytes: &[u8]) {
    buffer.put_i32(bytes.len() as i32);
    buffer.put_slice(bytes);
}

/// Puts a number in the size of its type, for which it is not too large.
pub(crate) fn put_number(buffer: &mut BytesMut, cell_type: CellType, number: i64) {
    match cell_type {
        CellType::Int2 => put_cell(buffer, &(number as i16).to_be_bytes()),
        CellType::Int4 => put_cell(buffer, &(number as i32).to_be_bytes()),
        CellType::Int8 | CellType::Bool | CellType::Text | CellType::Bytes => {
            put_cell(buffer, &number.to_be_bytes())
        }
    }
}

/// Puts a text, with U+FFFD for each NUL character: PostgreSQL does not store NUL, and output of handlers and commands
/// may contain it.
pub(crate) fn put_text(buffer: &mut BytesMut, text: &str) {
    put_cell(buffer, replace_nul(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use pointsman_store::columns::{AttemptColumns, Columns};
    use tokio_postgres::types::FromSql;

    use super::*;

    fn attempt(number: u32, error: Option<&str>) -> AttemptColumns<'_> {
        AttemptColumns { task: 7, number, started: 1, ended: 2, outcome: 3, error: error.map(Into::into) }
    }

    /// Writes attempts to arrays of these columns, and encodes the arrays.
    fn encode_arrays(attempts: &[AttemptColumns<'_>], columns: &[Column]) -> Vec<BytesMut> {
        let mut arrays = ColumnArrays::new(AttemptColumns::COLUMNS, columns);
        attempts.iter().for_each(|attempt| attempt.write_cells(&mut arrays));
        let encode = |(param, column): (BoxedParam, &Column)| {
            let mut encoded = BytesMut::new();
            param.to_sql_checked(&array_type_of_column(column), &mut encoded).unwrap();
            encoded
        };
        arrays.into_params().zip(columns).map(encode).collect()
    }

    #[test]
    fn arrays_have_the_selected_columns_without_the_nulls_at_their_end() {
        let [task, number, _, _, outcome, error] = AttemptColumns::COLUMNS else { panic!("other columns") };
        let attempts = [attempt(1, None), attempt(2, Some("a\0b")), attempt(3, None)];
        let arrays = encode_arrays(&attempts, &[*error, *outcome, *number, *task]);
        let errors = Vec::<Option<&str>>::from_sql(&Type::TEXT_ARRAY, &arrays[0]).unwrap();
        assert_eq!(errors, [None, Some("a\u{FFFD}b")]);
        assert_eq!(Vec::<i16>::from_sql(&Type::INT2_ARRAY, &arrays[1]).unwrap(), [3, 3, 3]);
        assert_eq!(Vec::<i64>::from_sql(&Type::INT8_ARRAY, &arrays[2]).unwrap(), [1, 2, 3]);
        assert_eq!(Vec::<i64>::from_sql(&Type::INT8_ARRAY, &arrays[3]).unwrap(), [7, 7, 7]);
        let arrays = encode_arrays(&[attempt(1, None)], &[*error]);
        assert!(Vec::<Option<&str>>::from_sql(&Type::TEXT_ARRAY, &arrays[0]).unwrap().is_empty());
    }
}
