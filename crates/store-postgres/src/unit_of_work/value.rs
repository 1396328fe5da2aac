//! Converts values of a unit of work to statement parameters and from rows.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use pointsman_store::sql::{SqlError, SqlValue};
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Column, Row};

use crate::error::DriverError;

/// A statement parameter. All values but bytes are sent as text, so that the database converts them to the type that it
/// expects: a number, a time, a uuid, JSON.
#[derive(Debug)]
pub(super) struct BoundValue<'a>(pub(super) &'a SqlValue);

/// The unspecified type: the database infers it.
pub(super) fn unspecified_type() -> Type {
    Type::new("unspecified".into(), 0, Kind::Simple, "pg_catalog".into())
}

impl ToSql for BoundValue<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            SqlValue::Null => return Ok(IsNull::Yes),
            SqlValue::Integer(number) => out.put_slice(number.to_string().as_bytes()),
            SqlValue::Real(number) => out.put_slice(format_real(*number).as_bytes()),
            SqlValue::Text(text) => out.put_slice(text.as_bytes()),
            SqlValue::Blob(bytes) => out.put_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self.0 {
            SqlValue::Blob(_) => Format::Binary,
            SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) | SqlValue::Text(_) => Format::Text,
        }
    }

    to_sql_checked!();
}

fn format_real(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".into(),
        number if number.is_infinite() => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        number => format!("{number:?}"),
    }
}

/// The raw bytes of a value of any type.
struct RawBytes(Vec<u8>);

impl<'a> FromSql<'a> for RawBytes {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Reads a column of a row; fails if its type has no equivalent among [`SqlValue`].
pub(super) fn read_sql_value(row: &Row, index: usize, column: &Column) -> Result<SqlValue, SqlError> {
    let read_failed = |error: tokio_postgres::Error| SqlError::StatementFailed(DriverError(error).into());
    let column_type = column.type_();
    let Some(RawBytes(bytes)) = row.try_get::<_, Option<RawBytes>>(index).map_err(read_failed)? else {
        return Ok(SqlValue::Null);
    };
    let integer = |number: Option<i64>| number.map(SqlValue::Integer);
    let value = match *column_type {
        Type::BOOL => integer(row.try_get::<_, bool>(index).map(i64::from).ok()),
        Type::INT2 => integer(row.try_get::<_, i16>(index).map(i64::from).ok()),
        Type::INT4 => integer(row.try_get::<_, i32>(index).map(i64::from).ok()),
        Type::INT8 => integer(row.try_get(index).ok()),
        Type::OID => integer(row.try_get::<_, u32>(index).map(i64::from).ok()),
        Type::FLOAT4 => row.try_get::<_, f32>(index).map(|number| SqlValue::Real(number.into())).ok(),
        Type::FLOAT8 => row.try_get(index).map(SqlValue::Real).ok(),
        Type::BYTEA => Some(SqlValue::Blob(bytes)),
        Type::UUID => row.try_get::<_, uuid::Uuid>(index).map(|uuid| SqlValue::Text(uuid.to_string())).ok(),
        // PostgreSQL sends a version byte before the text.
        Type::JSONB => bytes.get(1..).and_then(decode_text_value),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::UNKNOWN => {
            decode_text_value(&bytes)
        }
        _ if matches!(column_type.kind(), Kind::Enum(_)) => decode_text_value(&bytes),
        _ => None,
    };
    value.ok_or_else(|| {
        let name = column.name();
        let problem = format!(
            "the column {name} has the type {column_type}, which is not supported; select {name}::text, or a number"
        );
        SqlError::StatementFailed(problem.into())
    })
}

fn decode_text_value(bytes: &[u8]) -> Option<SqlValue> {
    std::str::from_utf8(bytes).ok().map(|text| SqlValue::Text(text.into()))
}
