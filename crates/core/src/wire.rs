//! An event to emit, as JSON has it: the same object in an HTTP body, in a handler's reply and in an effects
//! file, read by one piece of code so that all of them refuse the same things in the same words.
//!
//! The members stay raw until they are looked at one by one. A member of the wrong type is thus a [`Fault`]
//! that points at it, and a payload is checked but never parsed.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use crate::event::{Context, MAX_CONTEXT_BYTES, MAX_CONTEXT_ENTRIES};
use crate::time::parse_http_duration;
use crate::{HandlingKey, Json, NewEvent, ObjectKey, Priority, Tenant, Timestamp, json, names};

/// The largest value of an event, in bytes of its JSON.
pub const MAX_VALUE: usize = 1 << 20;
/// The largest result of a task, in bytes of its JSON. That of a step becomes its order's value, and may be as large as
/// one ([`Subject::max_result`](crate::task::Subject::max_result)).
pub const MAX_RESULT: usize = 64 << 10;

/// What is wrong with a JSON document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer (RFC 6901); empty for the document as a whole.
    pub pointer: String,
    pub detail: String,
}

impl Fault {
    pub fn new(pointer: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self { pointer: pointer.into(), detail: detail.to_string() }
    }

    /// The same fault, seen from a document that holds this one at `prefix` (`/emit/3`).
    pub fn under(self, prefix: impl fmt::Display) -> Self {
        Self { pointer: format!("{prefix}{}", self.pointer), detail: self.detail }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.detail)
        } else {
            write!(f, "{}: {}", self.pointer, self.detail)
        }
    }
}

impl std::error::Error for Fault {}

/// A name as one step of a JSON pointer.
pub fn pointer_step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The members of an event to emit. `null` is the same as leaving a member out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object that describes an event")]
pub struct EventBody {
    #[serde(rename = "type")]
    pub kind: Option<Box<RawValue>>,
    pub key: Option<Box<RawValue>>,
    pub sub: Option<Box<RawValue>>,
    pub value: Option<Box<RawValue>>,
    pub context: Option<Box<RawValue>>,
    pub tenant: Option<Box<RawValue>>,
    pub delay: Option<Box<RawValue>>,
    pub at: Option<Box<RawValue>>,
    pub priority: Option<Box<RawValue>>,
}

impl EventBody {
    /// Reads the members; what they hold is looked at by [`EventBody::into_event`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        members(text)
    }

    /// The event that this asks for. `delay` counts from `now`.
    pub fn into_event(self, now: Timestamp, default_tenant: &Tenant) -> Result<NewEvent, Fault> {
        let kind = self.kind.ok_or_else(|| Fault::new("/type", "an event has a type"))?;
        let kind = name("/type", &kind, HandlingKey::new)?;
        names::check_emittable(&kind).map_err(|reserved| Fault::new("/type", reserved))?;
        let tenant = self.tenant.map(|raw| name("/tenant", &raw, Tenant::new)).transpose()?;
        Ok(NewEvent {
            kind,
            key: self.key.map(|raw| name("/key", &raw, ObjectKey::new)).transpose()?,
            sub: self.sub.map(|raw| name("/sub", &raw, ObjectKey::new)).transpose()?,
            value: self.value.map(|raw| value(&raw)).transpose()?.unwrap_or_else(Json::null),
            context: self.context.map(|raw| context(&raw)).transpose()?.unwrap_or_default(),
            tenant: tenant.unwrap_or_else(|| default_tenant.clone()),
            due: due(self.delay.as_deref(), self.at.as_deref(), now)?,
            priority: self.priority.map(|raw| priority(&raw)).transpose()?.unwrap_or_default(),
            cause: None,
            planned: None,
        })
    }
}

fn name<T>(
    at: &str,
    raw: &RawValue,
    new: impl FnOnce(String) -> Result<T, names::BadName>,
) -> Result<T, Fault> {
    new(string(at, raw)?).map_err(|e| Fault::new(at, e))
}

fn value(raw: &RawValue) -> Result<Json, Fault> {
    let text = raw.get();
    if text.len() > MAX_VALUE {
        let detail = format!("a value has at most {MAX_VALUE} bytes, this one has {}", text.len());
        return Err(Fault::new("/value", detail));
    }
    json::check(text).map_err(|e| Fault::new("/value", e))?;
    Ok(Json::trusted(text))
}

/// Refuses a result of so many bytes where its task may return no more than `most`.
pub fn check_result(size: usize, most: usize) -> Result<(), String> {
    match size <= most {
        true => Ok(()),
        false => Err(format!("a result has at most {most} bytes, this one has {size}")),
    }
}

fn context(raw: &RawValue) -> Result<Context, Fault> {
    let entries: BTreeMap<String, Box<RawValue>> = read("/context", raw, "an object of strings")?;
    if entries.len() > MAX_CONTEXT_ENTRIES {
        let detail =
            format!("a context has at most {MAX_CONTEXT_ENTRIES} entries, this one has {}", entries.len());
        return Err(Fault::new("/context", detail));
    }
    entries.into_iter().map(|(name, raw)| context_entry(name, &raw)).collect()
}

fn context_entry(name: String, raw: &RawValue) -> Result<(String, String), Fault> {
    if name.len() > MAX_CONTEXT_BYTES {
        return Err(Fault::new("/context", format!("a name in it has more than {MAX_CONTEXT_BYTES} bytes")));
    }
    let at = format!("/context{}", pointer_step(&name));
    let text = string(&at, raw)?;
    if text.len() > MAX_CONTEXT_BYTES {
        return Err(Fault::new(at, format!("it has more than {MAX_CONTEXT_BYTES} bytes")));
    }
    Ok((name, text))
}

fn due(delay: Option<&RawValue>, at: Option<&RawValue>, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    match (delay, at) {
        (None, None) => Ok(None),
        (Some(delay), None) => duration("/delay", delay).map(|delay| Some(now.plus(delay))),
        (None, Some(at)) => string("/at", at)?.parse().map(Some).map_err(|e| Fault::new("/at", e)),
        (Some(_), Some(_)) => Err(Fault::new("/at", "`delay` and `at` exclude each other")),
    }
}

/// A duration: a string as HTTP parameters have it, or a number of seconds.
pub fn duration(at: &str, raw: &RawValue) -> Result<std::time::Duration, Fault> {
    let text = match serde_json::from_str::<f64>(raw.get()) {
        // Written out, because the parser of durations knows no exponents.
        Ok(seconds) => seconds.to_string(),
        Err(_) => read(at, raw, "a duration: a string, or a number of seconds")?,
    };
    parse_http_duration(&text).map_err(|e| Fault::new(at, e))
}

fn priority(raw: &RawValue) -> Result<Priority, Fault> {
    let number: i64 = read("/priority", raw, "a whole number from 1 to 9000")?;
    Priority::try_from(number).map_err(|e| Fault::new("/priority", e))
}

/// A string without what not every store can hold.
pub fn string(at: &str, raw: &RawValue) -> Result<String, Fault> {
    read(at, raw, "a string")
}

/// Reads one member, `what` telling what it ought to be.
pub fn read<T: DeserializeOwned>(at: &str, raw: &RawValue, what: &str) -> Result<T, Fault> {
    json::check(raw.get()).map_err(|e| Fault::new(at, e))?;
    serde_json::from_str(raw.get()).map_err(|_| Fault::new(at, format!("this is not {what}")))
}

/// Reads an object whose members stay raw. The fault tells what serde found without its line and column: what
/// is read here is often a part of something larger, where they would mislead.
pub fn members<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(OnlyObject(&mut json)).and_then(|read| json.end().map(|()| read));
    read.map_err(|error| {
        let said = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let said = said.strip_suffix(&place).unwrap_or(&said);
        Fault::new(member_named(said).map(pointer_step).unwrap_or_default(), said)
    })
}

/// Takes JSON objects and nothing else. What is derived for a struct would otherwise take an array as well, by the
/// order in which its members happen to be declared.
struct OnlyObject<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OnlyObject<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The member that serde says is unknown or repeated.
fn member_named(said: &str) -> Option<&str> {
    let named = said.strip_prefix("unknown field `").or_else(|| said.strip_prefix("duplicate field `"))?;
    named.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn event(text: &str) -> Result<NewEvent, Fault> {
        EventBody::parse(text)?.into_event(NOW, &Tenant::default())
    }

    #[test]
    fn a_type_is_enough() {
        assert_eq!(event(r#"{"type":"a.b"}"#).unwrap(), NewEvent::of(HandlingKey::new("a.b").unwrap()));
    }

    #[test]
    fn every_member_is_taken() {
        let full = event(
            r#"{"type":"a","key":"k:1","sub":"s","value":{ "n": 1.50 },"context":{"ip":"::1"},
                "tenant":"shop","delay":"1m","priority":9000}"#,
        )
        .unwrap();
        assert_eq!(full.key.unwrap().as_str(), "k:1");
        assert_eq!(full.sub.unwrap().as_str(), "s");
        assert_eq!(full.value.as_str(), r#"{ "n": 1.50 }"#);
        assert_eq!(full.context["ip"], "::1");
        assert_eq!(full.tenant.as_str(), "shop");
        assert_eq!(full.due, Some(Timestamp::from_millis(1_060_000)));
        assert_eq!(full.priority, Priority::MAX);
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        let event =
            event(r#"{"type":"a","key":null,"value":null,"context":null,"delay":null,"tenant":null}"#)
                .unwrap();
        assert_eq!(event, NewEvent::of(HandlingKey::new("a").unwrap()));
    }

    #[test]
    fn times_are_durations_numbers_or_instants() {
        let due = |member: &str| event(&format!(r#"{{"type":"a",{member}}}"#)).unwrap().due.unwrap();
        assert_eq!(due(r#""delay":"60""#), Timestamp::from_millis(1_060_000));
        assert_eq!(due(r#""delay":0.5"#), Timestamp::from_millis(1_000_500));
        assert_eq!(due(r#""delay":6e1"#), Timestamp::from_millis(1_060_000));
        assert_eq!(due(r#""at":"1970-01-02T00:00:00Z""#), Timestamp::from_millis(86_400_000));
    }

    #[test]
    fn faults_point_at_the_member() {
        let long_value = format!(r#"{{"type":"a","value":"{}"}}"#, "x".repeat(MAX_VALUE));
        let long_context =
            format!(r#"{{"type":"a","context":{{"a/b~":"{}"}}}}"#, "x".repeat(MAX_CONTEXT_BYTES + 1));
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
            let fault = event(text).expect_err(&format!("{text:.60}"));
            assert_eq!(fault.pointer, pointer, "{text:.60}: {fault}");
        }
    }

    #[test]
    fn unknown_and_repeated_members_are_named() {
        for (text, pointer) in
            [(r#"{"type":"a","colour":"red"}"#, "/colour"), (r#"{"type":"a","type":"b"}"#, "/type")]
        {
            let fault = event(text).unwrap_err();
            assert_eq!(fault.pointer, pointer);
            assert!(fault.detail.contains(&pointer[1..]), "{fault}");
        }
    }

    #[test]
    fn only_an_object_has_members() {
        for text in ["[]", r#"["a"]"#, r#"["a",null,null,1,null,null,null,null,null]"#, " [ 1 ]", "1", "null"]
        {
            let fault = event(text).unwrap_err();
            assert_eq!(fault.pointer, "");
            assert!(
                fault.detail.ends_with("expected a JSON object that describes an event"),
                "{text}: {fault}"
            );
        }
        assert!(event(r#"[["a"]]"#).unwrap_err().detail.starts_with("invalid type: sequence"));
        for text in ["", "{", r#"{"type":"a"} x"#, r#"{"type":"a"}{}"#] {
            assert!(event(text).is_err(), "{text}");
        }
        assert!(event(" \n{\"type\":\"a\"}\t").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn reading_never_panics(text in ".{0,200}", member in "(type|key|value|context|delay|at|priority)") {
            let _ = event(&text);
            let _ = event(&format!(r#"{{"type":"a","{member}":{text}}}"#));
        }
    }
}
