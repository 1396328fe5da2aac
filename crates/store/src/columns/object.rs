//! Objects.

use std::borrow::Cow;

use pointsman_core::{EventId, Tenant};

use super::columns;
use crate::row::ObjectRow;

columns! {
    /// The columns of an object.
    ObjectColumns<'a> key(tenant, key) {
        tenant: Cow<'a, str>,
        key: Cow<'a, str>,
        number: i64,
        last_event: i64,
        /// The last event sent to each handler, encoded by [`ObjectRow::encode_last_sent_events`].
        last_sent: Cow<'a, [u8]>,
        /// The event at which retention last found the object in use: its first event until then, or 0 if that is unknown.
        checked: i64,
    }
}

impl<'a> ObjectColumns<'a> {
    pub fn from_row(tenant: &'a Tenant, key: &'a str, row: &ObjectRow, checked: EventId) -> Self {
        Self {
            tenant: tenant.as_str().into(),
            key: key.into(),
            number: row.number,
            last_event: row.last_event.as_i64(),
            last_sent: row.encode_last_sent_events().into(),
            checked: checked.as_i64(),
        }
    }

    pub fn into_row(self) -> ObjectRow {
        ObjectRow {
            number: self.number,
            last_event: EventId::from_i64(self.last_event),
            last_sent_events: ObjectRow::decode_last_sent_events(&self.last_sent),
        }
    }
}
