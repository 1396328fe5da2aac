//! A row of the outbox, and the event that it is.

use pointsman_core::event::MAX_DEPTH;
use pointsman_core::store::{Emission, Idempotency};
use pointsman_core::wire::{EventBody, Fault};
use pointsman_core::{Cause, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::Result;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::link::{Param, params};
use crate::rows::get;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) n: i64,
    pub(super) receipt: Option<Uuid>,
    kind: String,
    key: Option<String>,
    sub: Option<String>,
    tenant: String,
    value: String,
    context: Option<String>,
    due: Option<i64>,
    priority: i32,
    idempotency_key: Option<String>,
    digest: Option<Vec<u8>>,
    at: i64,
    /// The event and the task that made it be emitted, and how many emits lie before it.
    cause: (Option<i64>, Option<i64>, Option<i32>),
}

impl Entry {
    pub(super) fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            n: get(row, 0)?,
            receipt: get(row, 1)?,
            kind: get(row, 2)?,
            key: get(row, 3)?,
            sub: get(row, 4)?,
            tenant: get(row, 5)?,
            value: get(row, 6)?,
            context: get(row, 7)?,
            due: get(row, 8)?,
            priority: get(row, 9)?,
            idempotency_key: get(row, 10)?,
            digest: get(row, 11)?,
            at: get(row, 12)?,
            cause: (get(row, 13)?, get(row, 14)?, get(row, 15)?),
        })
    }

    /// What it asks for. `emit` has checked it in SQL; but somebody may have written it by hand.
    pub(super) fn emission(&self, now: Timestamp) -> std::result::Result<Emission, Fault> {
        let body = EventBody {
            kind: Some(raw("/type", &self.kind)?),
            key: self.key.as_ref().map(|key| raw("/key", key)).transpose()?,
            sub: self.sub.as_ref().map(|sub| raw("/sub", sub)).transpose()?,
            value: Some(json("/value", &self.value)?),
            context: self.context.as_ref().map(|context| json("/context", context)).transpose()?,
            tenant: Some(raw("/tenant", &self.tenant)?),
            priority: Some(raw("/priority", &self.priority)?),
            ..EventBody::default()
        };
        let mut event = body.into_event(now, &Tenant::default())?;
        event.due = self.due.map(due).transpose()?;
        event.cause = self.cause()?;
        let idempotency = match &self.idempotency_key {
            Some(key) => Some(self.idempotency(key, event.tenant.clone())?),
            None => None,
        };
        Ok(Emission { events: vec![event], idempotency })
    }

    fn cause(&self) -> std::result::Result<Option<Cause>, Fault> {
        let (event, Some(task), depth) = self.cause else { return Ok(None) };
        let depth = u16::try_from(depth.unwrap_or(0)).ok().filter(|depth| *depth <= MAX_DEPTH);
        let depth =
            depth.ok_or_else(|| Fault::new("/cause_depth", "too many events that cause each other"))?;
        Ok(Some(Cause { event: event.map(EventId::from_i64), task: TaskSeq(task), depth }))
    }

    fn idempotency(&self, key: &str, tenant: Tenant) -> std::result::Result<Idempotency, Fault> {
        if !is_idempotency_key(key) {
            let what = "an idempotency key has 1 to 255 printable ASCII characters";
            return Err(Fault::new("/idempotency_key", what));
        }
        let digest = self.digest.as_deref().and_then(|digest| digest.try_into().ok());
        let digest =
            digest.ok_or_else(|| Fault::new("/digest", "an idempotency key has a digest of 32 bytes"))?;
        Ok(Idempotency { tenant, key: key.into(), digest })
    }

    /// The row as it stood there, and why it was set aside.
    pub(super) fn set_aside(self, reason: String, now: Timestamp) -> Vec<Param> {
        params![
            self.n,
            self.receipt,
            self.kind,
            self.key,
            self.sub,
            self.tenant,
            self.value,
            self.context,
            self.due,
            self.priority,
            self.idempotency_key,
            self.digest,
            self.at,
            reason,
            now.micros(),
        ]
    }
}

/// Whether it can be an idempotency key, as `emit` and the HTTP API have it.
pub(crate) fn is_idempotency_key(key: &str) -> bool {
    (1..=255).contains(&key.len()) && key.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn raw(at: &str, value: &impl Serialize) -> std::result::Result<Box<RawValue>, Fault> {
    to_raw_value(value).map_err(|e| Fault::new(at, e))
}

fn json(at: &str, text: &str) -> std::result::Result<Box<RawValue>, Fault> {
    RawValue::from_string(text.into()).map_err(|e| Fault::new(at, format!("not JSON: {e}")))
}

fn due(micros: i64) -> std::result::Result<Timestamp, Fault> {
    let due = Timestamp::from_micros(micros);
    let known = (Timestamp::MIN..=Timestamp::MAX).contains(&due);
    known
        .then_some(due)
        .ok_or_else(|| Fault::new("/due", format!("{micros} is not a time before the year 10000")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn entry() -> Entry {
        Entry {
            n: 1,
            receipt: None,
            kind: "a.b".into(),
            key: Some("k \"1\"".into()),
            sub: None,
            tenant: "shop".into(),
            value: r#"{"n": 1.50}"#.into(),
            context: Some(r#"{"ip": "::1"}"#.into()),
            due: Some(7),
            priority: 200,
            idempotency_key: Some("once".into()),
            digest: Some(vec![3; 32]),
            at: 5,
            cause: (None, None, None),
        }
    }

    #[test]
    fn a_row_is_the_event_that_was_emitted() {
        let Emission { mut events, idempotency } = entry().emission(NOW).unwrap();
        let event = events.remove(0);
        assert_eq!((event.kind.as_str(), event.tenant.as_str()), ("a.b", "shop"));
        assert_eq!(event.key.unwrap().as_str(), "k \"1\"");
        assert_eq!(event.value.as_str(), r#"{"n": 1.50}"#);
        assert_eq!(event.context["ip"], "::1");
        assert_eq!((event.due, event.priority.get()), (Some(Timestamp::from_micros(7)), 200));
        let idempotency = idempotency.unwrap();
        assert_eq!((idempotency.key.as_str(), idempotency.digest), ("once", [3; 32]));
    }

    #[test]
    fn what_caused_it_is_kept() {
        let Emission { events, .. } =
            Entry { cause: (Some(5), Some(7), Some(2)), ..entry() }.emission(NOW).unwrap();
        let cause = Cause { event: Some(EventId::from_i64(5)), task: TaskSeq(7), depth: 2 };
        assert_eq!(events[0].cause, Some(cause));
    }

    #[test]
    fn what_is_not_an_event_says_why() {
        for (broken, at) in [
            (Entry { kind: "OrderStarted".into(), ..entry() }, "/type"),
            (Entry { kind: "a b".into(), ..entry() }, "/type"),
            (Entry { key: Some(String::new()), ..entry() }, "/key"),
            (Entry { sub: Some("\n".into()), ..entry() }, "/sub"),
            (Entry { tenant: "a b".into(), ..entry() }, "/tenant"),
            (Entry { value: "{".into(), ..entry() }, "/value"),
            (Entry { value: "1e400".into(), ..entry() }, "/value"),
            (Entry { context: Some("[]".into()), ..entry() }, "/context"),
            (Entry { priority: 0, ..entry() }, "/priority"),
            (Entry { due: Some(-1), ..entry() }, "/due"),
            (Entry { digest: None, ..entry() }, "/digest"),
            (Entry { idempotency_key: Some(String::new()), ..entry() }, "/idempotency_key"),
            (Entry { idempotency_key: Some("k".repeat(256)), ..entry() }, "/idempotency_key"),
            (Entry { idempotency_key: Some("\u{e9}".into()), ..entry() }, "/idempotency_key"),
            (Entry { cause: (None, Some(7), Some(65)), ..entry() }, "/cause_depth"),
        ] {
            assert_eq!(broken.emission(NOW).unwrap_err().pointer, at);
        }
    }
}
