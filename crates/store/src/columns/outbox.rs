//! The outbox of stores in which events can be emitted with SQL.

use std::borrow::Cow;

use super::columns;

columns! {
    /// The columns of a receipt, and the event that it became.
    OutboxReceiptColumns<'a> key(n) {
        n: i64,
        receipt: Cow<'a, [u8]>,
        event: i64,
    }
}

columns! {
    /// The columns of an idempotency key that was used in SQL.
    OutboxKeyColumns<'a> key(tenant, key) {
        tenant: Cow<'a, str>,
        key: Cow<'a, str>,
        /// The digest of the event.
        digest: Cow<'a, [u8]>,
        receipt: Cow<'a, [u8]>,
        at: i64,
    }
}

columns! {
    /// The columns of a row of the outbox that was refused, and the reason.
    OutboxRefusalColumns<'a> key(n) {
        n: i64,
        receipt: Option<Cow<'a, [u8]>>,
        event_type: Cow<'a, str> as "type",
        key: Option<Cow<'a, str>>,
        sub: Option<Cow<'a, str>>,
        tenant: Cow<'a, str>,
        value: Cow<'a, str>,
        context: Option<Cow<'a, str>>,
        due: Option<i64>,
        priority: i32,
        idempotency_key: Option<Cow<'a, str>>,
        digest: Option<Cow<'a, [u8]>>,
        at: i64,
        reason: Cow<'a, str>,
        refused_at: i64,
    }
}
