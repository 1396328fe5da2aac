//! Parses the JSON of an event to emit: the same object in an HTTP body, in a handler's reply and in an effects file,
//! parsed by the same code so that all of them reject the same mistakes with the same messages.
//!
//! The members stay raw until they are parsed one by one. A member of the wrong type is thus a [`JsonError`] that
//! points at it, and a payload is checked but never parsed.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use crate::event::{Context, MAX_CONTEXT_ENTRIES, MAX_CONTEXT_STRING_BYTES};
use crate::time::parse_http_duration;
use crate::{EventType, Json, NewEvent, ObjectKey, Priority, Tenant, Timestamp, json, names};

/// The maximum size of an event's value, in bytes of JSON.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// The maximum size of a task's result, in bytes of JSON. The result of a step becomes its order's value, and may be as
/// large as one ([`TaskSubject::max_result_bytes`](crate::task::TaskSubject::max_result_bytes)).
pub const MAX_RESULT_BYTES: usize = 64 << 10;

/// A mistake in a JSON document: where it is and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The position as a JSON pointer (RFC 6901); empty for the document as a whole.
    pub pointer: String,
    /// The mistake, as a text for people.
    pub detail: String,
}

impl JsonError {
    /// A mistake at this position.
    pub fn new(pointer: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self { pointer: pointer.into(), detail: detail.to_string() }
    }

    /// The same error for a document that contains this one at `prefix` (`/emit/3`).
    pub fn with_pointer_prefix(self, prefix: impl fmt::Display) -> Self {
        Self { pointer: format!("{prefix}{}", self.pointer), detail: self.detail }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.detail)
        } else {
            write!(f, "{}: {}", self.pointer, self.detail)
        }
    }
}

impl std::error::Error for JsonError {}

/// Formats a member name as a segment of a JSON pointer.
pub fn to_pointer_segment(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The members of an event to emit, each as unparsed JSON. `null` is the same as leaving a member out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object that describes an event")]
pub struct RawEmitBody {
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: Option<Box<RawValue>>,
    /// The object's key.
    pub key: Option<Box<RawValue>>,
    /// The key of a part of the object.
    #[serde(rename = "sub")]
    pub sub_object: Option<Box<RawValue>>,
    /// The payload.
    pub value: Option<Box<RawValue>>,
    /// The context, an object of strings.
    pub context: Option<Box<RawValue>>,
    /// The tenant.
    pub tenant: Option<Box<RawValue>>,
    /// A delay of the event's tasks.
    #[serde(rename = "delay")]
    pub task_delay: Option<Box<RawValue>>,
    /// The time at which the event's tasks are due.
    #[serde(rename = "at")]
    pub tasks_due_at: Option<Box<RawValue>>,
    /// The priority of the event's tasks.
    pub priority: Option<Box<RawValue>>,
}

impl RawEmitBody {
    /// Splits the text of a JSON object into its members; [`RawEmitBody::into_new_event`] parses their contents.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        parse_json_object(text)
    }

    /// Parses the members. `delay` counts from `now`.
    pub fn into_new_event(self, now: Timestamp, default_tenant: &Tenant) -> Result<NewEvent, JsonError> {
        let event_type = self.event_type.ok_or_else(|| JsonError::new("/type", "an event has a type"))?;
        let event_type = parse_name("/type", &event_type, EventType::new)?;
        names::check_emittable_type(&event_type).map_err(|reserved| JsonError::new("/type", reserved))?;
        let tenant = self.tenant.map(|raw| parse_name("/tenant", &raw, Tenant::new)).transpose()?;
        Ok(NewEvent {
            event_type,
            key: self.key.map(|raw| parse_name("/key", &raw, ObjectKey::new)).transpose()?,
            sub_object: self.sub_object.map(|raw| parse_name("/sub", &raw, ObjectKey::new)).transpose()?,
            value: self.value.map(|raw| parse_event_value(&raw)).transpose()?.unwrap_or_else(Json::null),
            context: self.context.map(|raw| parse_context(&raw)).transpose()?.unwrap_or_default(),
            tenant: tenant.unwrap_or_else(|| default_tenant.clone()),
            due: parse_due(self.task_delay.as_deref(), self.tasks_due_at.as_deref(), now)?,
            priority: self.priority.map(|raw| parse_priority(&raw)).transpose()?.unwrap_or_default(),
            cause: None,
            planned_at: None,
        })
    }
}

fn parse_name<T>(
    pointer: &str,
    raw: &RawValue,
    construct: impl FnOnce(String) -> Result<T, names::BadName>,
) -> Result<T, JsonError> {
    construct(parse_string(pointer, raw)?).map_err(|e| JsonError::new(pointer, e))
}

fn parse_event_value(raw: &RawValue) -> Result<Json, JsonError> {
    let text = raw.get();
    if text.len() > MAX_VALUE_BYTES {
        let detail = format!("a value has at most {MAX_VALUE_BYTES} bytes, this one has {}", text.len());
        return Err(JsonError::new("/value", detail));
    }
    json::check_portable(text).map_err(|e| JsonError::new("/value", e))?;
    Ok(Json::from_trusted(text))
}

/// Rejects a result of `size` bytes if it is larger than `max_bytes`.
pub fn check_result_size(size: usize, max_bytes: usize) -> Result<(), String> {
    match size <= max_bytes {
        true => Ok(()),
        false => Err(format!("a result has at most {max_bytes} bytes, this one has {size}")),
    }
}

fn parse_context(raw: &RawValue) -> Result<Context, JsonError> {
    let entries: BTreeMap<String, Box<RawValue>> = parse_member("/context", raw, "an object of strings")?;
    if entries.len() > MAX_CONTEXT_ENTRIES {
        let detail =
            format!("a context has at most {MAX_CONTEXT_ENTRIES} entries, this one has {}", entries.len());
        return Err(JsonError::new("/context", detail));
    }
    entries.into_iter().map(|(name, raw)| parse_context_entry(name, &raw)).collect()
}

fn parse_context_entry(name: String, raw: &RawValue) -> Result<(String, String), JsonError> {
    if name.len() > MAX_CONTEXT_STRING_BYTES {
        return Err(JsonError::new(
            "/context",
            format!("a name in it has more than {MAX_CONTEXT_STRING_BYTES} bytes"),
        ));
    }
    let pointer = format!("/context{}", to_pointer_segment(&name));
    let text = parse_string(&pointer, raw)?;
    if text.len() > MAX_CONTEXT_STRING_BYTES {
        return Err(JsonError::new(pointer, format!("it has more than {MAX_CONTEXT_STRING_BYTES} bytes")));
    }
    Ok((name, text))
}

/// Parses `delay` or `at`, of which at most one may be given, as the time at which the event's tasks are due.
fn parse_due(
    delay: Option<&RawValue>,
    at: Option<&RawValue>,
    now: Timestamp,
) -> Result<Option<Timestamp>, JsonError> {
    match (delay, at) {
        (None, None) => Ok(None),
        (Some(delay), None) => parse_duration("/delay", delay).map(|delay| Some(now.plus(delay))),
        (None, Some(at)) => parse_string("/at", at)?.parse().map(Some).map_err(|e| JsonError::new("/at", e)),
        (Some(_), Some(_)) => Err(JsonError::new("/at", "`delay` and `at` exclude each other")),
    }
}

/// Parses the duration at `pointer`: a string in the format of HTTP parameters, or a number of seconds.
pub fn parse_duration(pointer: &str, raw: &RawValue) -> Result<std::time::Duration, JsonError> {
    let text = match serde_json::from_str::<f64>(raw.get()) {
        // Formatted without an exponent, which the parser of durations does not accept.
        Ok(seconds) => seconds.to_string(),
        Err(_) => parse_member(pointer, raw, "a duration: a string, or a number of seconds")?,
    };
    parse_http_duration(&text).map_err(|e| JsonError::new(pointer, e))
}

fn parse_priority(raw: &RawValue) -> Result<Priority, JsonError> {
    let number: i64 = parse_member("/priority", raw, "a whole number from 1 to 9000")?;
    Priority::try_from(number).map_err(|e| JsonError::new("/priority", e))
}

/// Parses the string at `pointer`; rejects characters that one of the stores cannot store.
pub fn parse_string(pointer: &str, raw: &RawValue) -> Result<String, JsonError> {
    parse_member(pointer, raw, "a string")
}

/// Parses the member at `pointer`; `expected` names the expected kind of value in the error.
pub fn parse_member<T: DeserializeOwned>(
    pointer: &str,
    raw: &RawValue,
    expected: &str,
) -> Result<T, JsonError> {
    json::check_portable(raw.get()).map_err(|e| JsonError::new(pointer, e))?;
    serde_json::from_str(raw.get()).map_err(|_| JsonError::new(pointer, format!("this is not {expected}")))
}

/// Parses an object whose members stay raw. The error is serde's message without its line and column: the text is often
/// a part of a larger document, where they would mislead.
pub fn parse_json_object<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = T::deserialize(ObjectOnlyDeserializer(&mut deserializer))
        .and_then(|parsed| deserializer.end().map(|()| parsed));
    parsed.map_err(|error| {
        let message = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&position).unwrap_or(&message);
        JsonError::new(
            find_member_in_serde_message(message).map(to_pointer_segment).unwrap_or_default(),
            message,
        )
    })
}

/// Accepts only JSON objects. A derived struct deserializer would also accept an array, by the order in which the
/// fields happen to be declared.
struct ObjectOnlyDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnlyDeserializer<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Finds the member that an error message of serde calls unknown or repeated.
fn find_member_in_serde_message(message: &str) -> Option<&str> {
    let named =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("duplicate field `"))?;
    named.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn parse_event(text: &str) -> Result<NewEvent, JsonError> {
        RawEmitBody::parse(text)?.into_new_event(NOW, &Tenant::default())
    }

    #[test]
    fn an_event_needs_only_a_type() {
        assert_eq!(parse_event(r#"{"type":"a.b"}"#).unwrap(), NewEvent::new(EventType::new("a.b").unwrap()));
    }

    #[test]
    fn every_member_of_an_event_is_parsed() {
        let full = parse_event(
            r#"{"type":"a","key":"k:1","sub":"s","value":{ "n": 1.50 },"context":{"ip":"::1"},
                "tenant":"shop","delay":"1m","priority":9000}"#,
        )
        .unwrap();
        assert_eq!(full.key.unwrap().as_str(), "k:1");
        assert_eq!(full.sub_object.unwrap().as_str(), "s");
        assert_eq!(full.value.as_str(), r#"{ "n": 1.50 }"#);
        assert_eq!(full.context["ip"], "::1");
        assert_eq!(full.tenant.as_str(), "shop");
        assert_eq!(full.due, Some(Timestamp::from_millis(1_060_000)));
        assert_eq!(full.priority, Priority::MAX);
    }

    #[test]
    fn a_null_member_is_the_same_as_a_missing_one() {
        let event =
            parse_event(r#"{"type":"a","key":null,"value":null,"context":null,"delay":null,"tenant":null}"#)
                .unwrap();
        assert_eq!(event, NewEvent::new(EventType::new("a").unwrap()));
    }

    #[test]
    fn due_times_are_durations_numbers_or_instants() {
        let due = |member: &str| parse_event(&format!(r#"{{"type":"a",{member}}}"#)).unwrap().due.unwrap();
        assert_eq!(due(r#""delay":"60""#), Timestamp::from_millis(1_060_000));
        assert_eq!(due(r#""delay":0.5"#), Timestamp::from_millis(1_000_500));
        assert_eq!(due(r#""delay":6e1"#), Timestamp::from_millis(1_060_000));
        assert_eq!(due(r#""at":"1970-01-02T00:00:00Z""#), Timestamp::from_millis(86_400_000));
    }

    #[test]
    fn errors_have_the_pointer_of_the_invalid_member() {
        let long_value = format!(r#"{{"type":"a","value":"{}"}}"#, "x".repeat(MAX_VALUE_BYTES));
        let long_context =
            format!(r#"{{"type":"a","context":{{"a/b~":"{}"}}}}"#, "x".repeat(MAX_CONTEXT_STRING_BYTES + 1));
        for (text, pointer) in [
            (r#"{}"#, "/type"),
            (r#"{"type":1}"#, "/type"),
            (r#"{"type":"a..b"}"#, "/type"),
            (r#"{"type":"OrderStarted"}"#, "/type"),
            (r#"{"type":"a","key":""}"#, "/key"),
            (r#"{"type":"a","key":7}"#, "/key"),
            (r#"{"type":"a","key":"\ud800"}"#, "/key"),
            (r#"{"type":"a","sub":"x\u0000"}"#, "/sub"),
            (r#"{"type":"a","value":1e400}"#, "/value"),
            (&long_value, "/value"),
            (r#"{"type":"a","context":[]}"#, "/context"),
            (r#"{"type":"a","context":{"a":1}}"#, "/context/a"),
            (r#"{"type":"a","context":{"a":"\u0000"}}"#, "/context"),
            (&long_context, "/context/a~1b~0"),
            (r#"{"type":"a","tenant":"a b"}"#, "/tenant"),
            (r#"{"type":"a","delay":-1}"#, "/delay"),
            (r#"{"type":"a","delay":1e300}"#, "/delay"),
            (r#"{"type":"a","delay":"5 minutes"}"#, "/delay"),
            (r#"{"type":"a","delay":true}"#, "/delay"),
            (r#"{"type":"a","at":"yesterday"}"#, "/at"),
            (r#"{"type":"a","at":"1970-01-02T00:00:00Z","delay":1}"#, "/at"),
            (r#"{"type":"a","priority":0}"#, "/priority"),
            (r#"{"type":"a","priority":1.5}"#, "/priority"),
            (r#"{"type":"a","priority":"1"}"#, "/priority"),
        ] {
            let error = parse_event(text).expect_err(&format!("{text:.60}"));
            assert_eq!(error.pointer, pointer, "{text:.60}: {error}");
        }
    }

    #[test]
    fn errors_name_unknown_and_repeated_members() {
        for (text, pointer) in
            [(r#"{"type":"a","colour":"red"}"#, "/colour"), (r#"{"type":"a","type":"b"}"#, "/type")]
        {
            let error = parse_event(text).unwrap_err();
            assert_eq!(error.pointer, pointer);
            assert!(error.detail.contains(&pointer[1..]), "{error}");
        }
    }

    #[test]
    fn only_a_json_object_is_accepted() {
        for text in ["[]", r#"["a"]"#, r#"["a",null,null,1,null,null,null,null,null]"#, " [ 1 ]", "1", "null"]
        {
            let error = parse_event(text).unwrap_err();
            assert_eq!(error.pointer, "");
            assert!(
                error.detail.ends_with("expected a JSON object that describes an event"),
                "{text}: {error}"
            );
        }
        assert!(parse_event(r#"[["a"]]"#).unwrap_err().detail.starts_with("invalid type: sequence"));
        for text in ["", "{", r#"{"type":"a"} x"#, r#"{"type":"a"}{}"#] {
            assert!(parse_event(text).is_err(), "{text}");
        }
        assert!(parse_event(" \n{\"type\":\"a\"}\t").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn parsing_an_event_never_panics(text in ".{0,200}", member in "(type|key|value|context|delay|at|priority)") {
            let _ = parse_event(&text);
            let _ = parse_event(&format!(r#"{{"type":"a","{member}":{text}}}"#));
        }
    }
}
