//! Parsing and encoding of outbox entries.

use pointsman_core::event::{Context, MAX_CAUSE_DEPTH};
use pointsman_core::event_json_parser::RawEmitBody;
use pointsman_core::{Cause, EventId, NewEvent, ObjectKey, TaskSeq, Tenant, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::tables::outbox::{MAX_ENTRY_BYTES, OutboxEntry};

/// Parses an outbox entry of an object into an event, or returns why it is not one.
pub(super) fn parse_entry(object: &[u8], entry: &OutboxEntry, now: Timestamp) -> Result<NewEvent, String> {
    let bytes = match entry {
        OutboxEntry::Unparsed(bytes) => bytes,
        OutboxEntry::TooLong(bytes) => {
            return Err(format!("it has {bytes} bytes, and may have {MAX_ENTRY_BYTES}"));
        }
    };
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let (cause, text) = split_cause_and_event(text)?;
    let body = RawEmitBody::parse(text).map_err(|fault| match fault.pointer.is_empty() {
        true => format!("it is not the JSON of an event: {fault}"),
        false => fault.to_string(),
    })?;
    let event = body.into_new_event(now, &Tenant::default()).map_err(|fault| fault.to_string())?;
    let key = object_key_of_name(object, &event.tenant)?;
    match &event.key {
        Some(named) if *named != key => {
            Err(format!("/key: it is {named}, but the entry was pushed for {key}"))
        }
        Some(_) | None => Ok(NewEvent { key: Some(key), cause, ..event }),
    }
}

/// First character of the line with the cause, which a unit of work writes before an event. No JSON begins with it.
const CAUSE_MARKER: char = '\u{1}';

/// Splits an entry into its cause, if it has a line with one, and the JSON of its event.
fn split_cause_and_event(text: &str) -> Result<(Option<Cause>, &str), String> {
    let Some(cause_line) = text.strip_prefix(CAUSE_MARKER) else { return Ok((None, text)) };
    let (cause_line, event) = cause_line.split_once('\n').ok_or("no event after the line with its cause")?;
    let numbers: Vec<i64> = cause_line.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [event_id, task, depth] = numbers[..] else { return Err("its cause cannot be parsed".into()) };
    let depth = u16::try_from(depth).ok().filter(|depth| *depth <= MAX_CAUSE_DEPTH);
    let depth = depth.ok_or("too many events that cause each other")?;
    let event_of_cause = Some(event_id).filter(|id| *id != 0).map(EventId::from_i64);
    Ok((Some(Cause { event: event_of_cause, task: TaskSeq(task), depth }), event))
}

/// Encodes an event as an outbox entry.
pub(crate) fn encode_entry(event: &NewEvent) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct EntryBody<'e> {
        #[serde(rename = "type")]
        event_type: &'e str,
        sub: Option<&'e str>,
        value: Box<RawValue>,
        context: &'e Context,
        tenant: &'e str,
        at: Option<String>,
        priority: u16,
    }
    let body = EntryBody {
        event_type: event.event_type.as_str(),
        sub: event.sub_object.as_ref().map(|sub| sub.as_str()),
        value: RawValue::from_string(event.value.as_str().into())?,
        context: &event.context,
        tenant: event.tenant.as_str(),
        at: event.due.map(|due| due.to_string()),
        priority: event.priority.get(),
    };
    let body = serde_json::to_string(&body)?;
    let cause_line = event.cause.map(|Cause { event, task, depth }| {
        format!("{CAUSE_MARKER}{} {task} {depth}\n", event.map_or(0, EventId::as_i64))
    });
    Ok([cause_line.unwrap_or_default(), body].concat().into_bytes())
}

/// Returns the key in the name of an object, which starts with its tenant unless that is the default one.
fn object_key_of_name(object: &[u8], tenant: &Tenant) -> Result<ObjectKey, String> {
    let name = std::str::from_utf8(object).map_err(|_| "the object's name is not UTF-8".to_string())?;
    let key = match tenant.is_default() {
        true => name,
        false => {
            let rest = name.strip_prefix(tenant.as_str()).and_then(|rest| rest.strip_prefix('/'));
            rest.ok_or_else(|| {
                format!("/tenant: objects of {tenant} are named {tenant}/key, and not {name}")
            })?
        }
    };
    ObjectKey::new(key).map_err(|error| format!("the object's name: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn parse_text_entry(object: &str, text: &str) -> Result<NewEvent, String> {
        parse_entry(object.as_bytes(), &OutboxEntry::Unparsed(text.as_bytes().into()), NOW)
    }

    #[test]
    fn object_name_becomes_the_event_key() {
        let event = parse_text_entry("work:1", r#"{"type": "work.changed", "value": {"n": 1.50}}"#).unwrap();
        assert_eq!((event.event_type.as_str(), event.key.unwrap().as_str()), ("work.changed", "work:1"));
        assert_eq!(event.value.as_str(), r#"{"n": 1.50}"#);
        let event = parse_text_entry("shop/a/1", r#"{"type": "a", "tenant": "shop", "key": "a/1"}"#).unwrap();
        assert_eq!((event.tenant.as_str(), event.key.unwrap().as_str()), ("shop", "a/1"));
        assert_eq!(parse_text_entry("a/1", r#"{"type": "a"}"#).unwrap().key.unwrap().as_str(), "a/1");
    }

    #[test]
    fn encoded_entries_parse_to_the_same_event() {
        let mut event =
            parse_text_entry("k", r#"{"type": "a.b", "sub": "s", "value": {"n": 1.50}, "priority": 7}"#)
                .unwrap();
        event.due = Some(Timestamp::from_micros(1_234_567_890));
        event.context.insert("ip".into(), "::1".into());
        for cause in [None, Some(Cause { event: Some(EventId::from_i64(5)), task: TaskSeq(7), depth: 2 })] {
            event.cause = cause;
            let entry = OutboxEntry::Unparsed(encode_entry(&event).unwrap().into());
            assert_eq!(parse_entry(b"k", &entry, NOW).unwrap(), event);
        }
        for broken in ["\u{1}", "\u{1}1 2\n{}", "\u{1}1 2 900\n{\"type\":\"a\"}"] {
            assert!(parse_text_entry("k", broken).unwrap_err().contains("cause"), "{broken}");
        }
    }

    #[test]
    fn invalid_entries_are_refused_with_a_reason() {
        for (object, text, expected) in [
            ("o", "", "JSON"),
            ("o", "[]", "JSON object"),
            ("o", r#"{"value": 1}"#, "/type"),
            ("o", r#"{"type": "OrderStarted"}"#, "/type"),
            ("o", r#"{"type": "a", "key": "p"}"#, "/key"),
            ("o", r#"{"type": "a", "tenant": "shop"}"#, "/tenant"),
            ("shop/", r#"{"type": "a", "tenant": "shop"}"#, "name"),
            ("o", r#"{"type": "a", "extra": 1}"#, "extra"),
        ] {
            let reason = parse_text_entry(object, text).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
        assert!(
            parse_entry(b"\xff", &OutboxEntry::Unparsed(br#"{"type":"a"}"#.as_slice().into()), NOW).is_err()
        );
        assert!(
            parse_entry(b"o", &OutboxEntry::Unparsed(b"\xff".as_slice().into()), NOW)
                .unwrap_err()
                .contains("UTF-8")
        );
        assert!(
            parse_entry(b"o", &OutboxEntry::TooLong(9_000_000), NOW).unwrap_err().contains("9000000 bytes")
        );
    }
}
