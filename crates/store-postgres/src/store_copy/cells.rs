//! Converts cells to and from the types of their columns.

use bytes::{BufMut, BytesMut};
use pointsman_store::transfer::{Cell, clean};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// A cell as a statement parameter.
#[derive(Debug)]
pub(super) struct CellParam<'a>(pub(super) &'a Cell);

impl ToSql for CellParam<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        match (self.0, ty) {
            (Cell::Null, _) => return Ok(IsNull::Yes),
            (Cell::Number(number), &Type::INT8) => out.put_i64(*number),
            (Cell::Number(number), &Type::INT4) => out.put_i32((*number).try_into()?),
            (Cell::Number(number), &Type::INT2) => out.put_i16((*number).try_into()?),
            (Cell::Number(number), &Type::BOOL) => out.put_u8(u8::from(*number != 0)),
            (Cell::Text(text), &Type::TEXT) => out.put_slice(clean(text).as_bytes()),
            (Cell::Bytes(bytes), &Type::BYTEA | &Type::UUID) => out.put_slice(bytes),
            (Cell::Number(_) | Cell::Text(_) | Cell::Bytes(_), _) => {
                return Err(format!("{:?} cannot be kept as {ty}", self.0).into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_ty: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The parameter type of a cell of a cursor position.
pub(super) fn cell_parameter_type(cell: &Cell) -> Type {
    match cell {
        Cell::Number(_) | Cell::Null => Type::INT8,
        Cell::Text(_) => Type::TEXT,
        Cell::Bytes(_) => Type::BYTEA,
    }
}

/// A cell as a column of a result.
#[derive(Debug)]
pub(super) struct CellColumn(pub(super) Cell);

impl<'a> FromSql<'a> for CellColumn {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self(match *ty {
            Type::INT8 => Cell::Number(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Number(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Cell::Number(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Cell::Number(bool::from_sql(ty, raw)?.into()),
            Type::TEXT => Cell::Text(String::from_sql(ty, raw)?),
            Type::BYTEA | Type::UUID => Cell::Bytes(raw.into()),
            _ => return Err(format!("a column of the type {ty}").into()),
        }))
    }

    fn from_sql_null(_ty: &Type) -> Result<Self, BoxError> {
        Ok(Self(Cell::Null))
    }

    fn accepts(_ty: &Type) -> bool {
        true
    }
}
