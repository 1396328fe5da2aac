//! A row of the outbox, and its conversion to an event.

use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::event_json_parser::{JsonError, RawEmitBody};
use pointsman_core::store::{EmitBatch, IdempotencyKey};
use pointsman_core::{Cause, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::TableResult;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::rows::read_column;
use crate::writer_connection::{BoxedParam, params};

/// A row of `pointsman.outbox`, which may have been inserted manually, with any contents.
#[derive(Debug)]
pub(super) struct OutboxRow {
    pub(super) number: i64,
    pub(super) receipt: Option<Uuid>,
    event_type: String,
    key: Option<String>,
    sub_object: Option<String>,
    tenant: String,
    value: String,
    context: Option<String>,
    due: Option<i64>,
    priority: i32,
    idempotency_key: Option<String>,
    request_digest: Option<Vec<u8>>,
    emitted_at: i64,
    /// The event and the task that caused this event, and the depth of the cause.
    cause: (Option<i64>, Option<i64>, Option<i32>),
}

impl OutboxRow {
    pub(super) fn from_row(row: &Row) -> TableResult<Self> {
        Ok(Self {
            number: read_column(row, 0)?,
            receipt: read_column(row, 1)?,
            event_type: read_column(row, 2)?,
            key: read_column(row, 3)?,
            sub_object: read_column(row, 4)?,
            tenant: read_column(row, 5)?,
            value: read_column(row, 6)?,
            context: read_column(row, 7)?,
            due: read_column(row, 8)?,
            priority: read_column(row, 9)?,
            idempotency_key: read_column(row, 10)?,
            request_digest: read_column(row, 11)?,
            emitted_at: read_column(row, 12)?,
            cause: (read_column(row, 13)?, read_column(row, 14)?, read_column(row, 15)?),
        })
    }

    /// Converts the row to a batch of one event; fails if the row was inserted manually and is not an event.
    pub(super) fn to_emit_batch(&self, now: Timestamp) -> Result<EmitBatch, JsonError> {
        let body = RawEmitBody {
            event_type: Some(to_raw_json("/type", &self.event_type)?),
            key: self.key.as_ref().map(|key| to_raw_json("/key", key)).transpose()?,
            sub_object: self.sub_object.as_ref().map(|sub| to_raw_json("/sub", sub)).transpose()?,
            value: Some(parse_raw_json("/value", &self.value)?),
            context: self.context.as_ref().map(|context| parse_raw_json("/context", context)).transpose()?,
            tenant: Some(to_raw_json("/tenant", &self.tenant)?),
            priority: Some(to_raw_json("/priority", &self.priority)?),
            ..RawEmitBody::default()
        };
        let mut event = body.into_new_event(now, &Tenant::default())?;
        event.due = self.due.map(parse_due).transpose()?;
        event.cause = self.parse_cause()?;
        let idempotency = match &self.idempotency_key {
            Some(key) => Some(self.parse_idempotency_key(key, event.tenant.clone())?),
            None => None,
        };
        Ok(EmitBatch { events: vec![event], idempotency_key: idempotency })
    }

    fn parse_cause(&self) -> Result<Option<Cause>, JsonError> {
        let (event, Some(task), depth) = self.cause else { return Ok(None) };
        let depth = u16::try_from(depth.unwrap_or(0)).ok().filter(|depth| *depth <= MAX_CAUSE_DEPTH);
        let depth =
            depth.ok_or_else(|| JsonError::new("/cause_depth", "too many events that cause each other"))?;
        Ok(Some(Cause { event: event.map(EventId::from_i64), task: TaskSeq(task), depth }))
    }

    fn parse_idempotency_key(&self, key: &str, tenant: Tenant) -> Result<IdempotencyKey, JsonError> {
        if !is_valid_idempotency_key(key) {
            let problem = "an idempotency key has 1 to 255 printable ASCII characters";
            return Err(JsonError::new("/idempotency_key", problem));
        }
        let digest = self.request_digest.as_deref().and_then(|digest| digest.try_into().ok());
        let digest =
            digest.ok_or_else(|| JsonError::new("/digest", "an idempotency key has a digest of 32 bytes"))?;
        Ok(IdempotencyKey { tenant, key: key.into(), request_digest: digest })
    }

    /// Returns the parameters of `outbox/insert_refused_row`: the unchanged row, with the reason.
    pub(super) fn refused_row_params(self, reason: String, now: Timestamp) -> Vec<BoxedParam> {
        params![
            self.number,
            self.receipt,
            self.event_type,
            self.key,
            self.sub_object,
            self.tenant,
            self.value,
            self.context,
            self.due,
            self.priority,
            self.idempotency_key,
            self.request_digest,
            self.emitted_at,
            reason,
            now.micros(),
        ]
    }
}

/// True if it is a valid idempotency key, as for `emit` and the HTTP API.
pub(crate) fn is_valid_idempotency_key(key: &str) -> bool {
    (1..=255).contains(&key.len()) && key.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn to_raw_json(pointer: &str, value: &impl Serialize) -> Result<Box<RawValue>, JsonError> {
    to_raw_value(value).map_err(|e| JsonError::new(pointer, e))
}

fn parse_raw_json(pointer: &str, text: &str) -> Result<Box<RawValue>, JsonError> {
    RawValue::from_string(text.into()).map_err(|e| JsonError::new(pointer, format!("not JSON: {e}")))
}

fn parse_due(micros: i64) -> Result<Timestamp, JsonError> {
    let due = Timestamp::from_micros(micros);
    let is_valid = (Timestamp::MIN..=Timestamp::MAX).contains(&due);
    is_valid
        .then_some(due)
        .ok_or_else(|| JsonError::new("/due", format!("{micros} is not a time before the year 10000")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn sample_row() -> OutboxRow {
        OutboxRow {
            number: 1,
            receipt: None,
            event_type: "a.b".into(),
            key: Some("k \"1\"".into()),
            sub_object: None,
            tenant: "shop".into(),
            value: r#"{"n": 1.50}"#.into(),
            context: Some(r#"{"ip": "::1"}"#.into()),
            due: Some(7),
            priority: 200,
            idempotency_key: Some("once".into()),
            request_digest: Some(vec![3; 32]),
            emitted_at: 5,
            cause: (None, None, None),
        }
    }

    #[test]
    fn a_row_becomes_the_event_that_was_emitted() {
        let EmitBatch { mut events, idempotency_key: idempotency } = sample_row().to_emit_batch(NOW).unwrap();
        let event = events.remove(0);
        assert_eq!((event.event_type.as_str(), event.tenant.as_str()), ("a.b", "shop"));
        assert_eq!(event.key.unwrap().as_str(), "k \"1\"");
        assert_eq!(event.value.as_str(), r#"{"n": 1.50}"#);
        assert_eq!(event.context["ip"], "::1");
        assert_eq!((event.due, event.priority.get()), (Some(Timestamp::from_micros(7)), 200));
        let idempotency = idempotency.unwrap();
        assert_eq!((idempotency.key.as_str(), idempotency.request_digest), ("once", [3; 32]));
    }

    #[test]
    fn the_cause_of_a_row_becomes_the_cause_of_its_event() {
        let EmitBatch { events, .. } =
            OutboxRow { cause: (Some(5), Some(7), Some(2)), ..sample_row() }.to_emit_batch(NOW).unwrap();
        let cause = Cause { event: Some(EventId::from_i64(5)), task: TaskSeq(7), depth: 2 };
        assert_eq!(events[0].cause, Some(cause));
    }

    #[test]
    fn an_invalid_row_names_the_invalid_column() {
        for (broken, pointer) in [
            (OutboxRow { event_type: "OrderStarted".into(), ..sample_row() }, "/type"),
            (OutboxRow { event_type: "a b".into(), ..sample_row() }, "/type"),
            (OutboxRow { key: Some(String::new()), ..sample_row() }, "/key"),
            (OutboxRow { sub_object: Some("\n".into()), ..sample_row() }, "/sub"),
            (OutboxRow { tenant: "a b".into(), ..sample_row() }, "/tenant"),
            (OutboxRow { value: "{".into(), ..sample_row() }, "/value"),
            (OutboxRow { value: "1e400".into(), ..sample_row() }, "/value"),
            (OutboxRow { context: Some("[]".into()), ..sample_row() }, "/context"),
            (OutboxRow { priority: 0, ..sample_row() }, "/priority"),
            (OutboxRow { due: Some(-1), ..sample_row() }, "/due"),
            (OutboxRow { request_digest: None, ..sample_row() }, "/digest"),
            (OutboxRow { idempotency_key: Some(String::new()), ..sample_row() }, "/idempotency_key"),
            (OutboxRow { idempotency_key: Some("k".repeat(256)), ..sample_row() }, "/idempotency_key"),
            (OutboxRow { idempotency_key: Some("\u{e9}".into()), ..sample_row() }, "/idempotency_key"),
            (OutboxRow { cause: (None, Some(7), Some(65)), ..sample_row() }, "/cause_depth"),
        ] {
            assert_eq!(broken.to_emit_batch(NOW).unwrap_err().pointer, pointer);
        }
    }
}
