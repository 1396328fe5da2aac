//! Converts values of copied rows to and from the types of their columns.

use bytes::{BufMut, BytesMut};
use pointsman_store::store_copy::{CopyValue, replace_nul};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// A copied value as a statement parameter.
#[derive(Debug)]
pub(super) struct CopyValueParam<'a>(pub(super) &'a CopyValue);

impl ToSql for CopyValueParam<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        match (self.0, ty) {
            (CopyValue::Null, _) => return Ok(IsNull::Yes),
            (CopyValue::Number(number), &Type::INT8) => out.put_i64(*number),
            (CopyValue::Number(number), &Type::INT4) => out.put_i32((*number).try_into()?),
            (CopyValue::Number(number), &Type::INT2) => out.put_i16((*number).try_into()?),
            (CopyValue::Number(number), &Type::BOOL) => out.put_u8(u8::from(*number != 0)),
            (CopyValue::Text(text), &Type::TEXT) => out.put_slice(replace_nul(text).as_bytes()),
            (CopyValue::Bytes(bytes), &Type::BYTEA | &Type::UUID) => out.put_slice(bytes),
            (CopyValue::Number(_) | CopyValue::Text(_) | CopyValue::Bytes(_), _) => {
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

/// Returns the parameter type of a value in a cursor position.
pub(super) fn copy_value_param_type(value: &CopyValue) -> Type {
    match value {
        CopyValue::Number(_) | CopyValue::Null => Type::INT8,
        CopyValue::Text(_) => Type::TEXT,
        CopyValue::Bytes(_) => Type::BYTEA,
    }
}

/// A copied value, read from a column of a result.
#[derive(Debug)]
pub(super) struct CopyValueColumn(pub(super) CopyValue);

impl<'a> FromSql<'a> for CopyValueColumn {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self(match *ty {
            Type::INT8 => CopyValue::Number(i64::from_sql(ty, raw)?),
            Type::INT4 => CopyValue::Number(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => CopyValue::Number(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => CopyValue::Number(bool::from_sql(ty, raw)?.into()),
            Type::TEXT => CopyValue::Text(String::from_sql(ty, raw)?),
            Type::BYTEA | Type::UUID => CopyValue::Bytes(raw.into()),
            _ => return Err(format!("a column of the type {ty}").into()),
        }))
    }

    fn from_sql_null(_ty: &Type) -> Result<Self, BoxError> {
        Ok(Self(CopyValue::Null))
    }

    fn accepts(_ty: &Type) -> bool {
        true
    }
}
