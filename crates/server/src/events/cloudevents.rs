//! CloudEvents 1.0 as events to emit: `type` is the type, `subject` the key, `data` the value; `tenant`,
//! `priority` and `delay` are extensions; every other attribute goes into the context.
//!
//! Data that is not JSON is kept as a JSON string: text as it is, anything else in base64.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use pointsman_core::Timestamp;
use pointsman_core::event_json_parser::{JsonError, RawEmitBody, parse_string, to_pointer_segment};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};

use crate::percent_decoding;
use crate::problem::Problem;

/// JSON pointers to members of an event, each with the pointer to the CloudEvent member that it is read from.
pub(super) const EVENT_TO_CLOUDEVENT_POINTERS: &[(&str, &str)] =
    &[("/key", "/subject"), ("/value", "/data"), ("/context/", "/"), ("/context", "")];

const REQUIRED_ATTRIBUTES: [&str; 4] = ["specversion", "id", "source", "type"];

/// The attributes of a CloudEvent as texts by name, and its data.
#[derive(Default)]
struct CloudEventAttributes {
    texts_by_name: BTreeMap<String, String>,
    data: Option<Box<RawValue>>,
}

impl CloudEventAttributes {
    fn add_attribute(&mut self, name: &str, text: String) -> Result<(), JsonError> {
        let at = to_pointer_segment(name);
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            let detail = format!(
                "{name:?} is not an attribute of a CloudEvent: names have lower-case letters and digits"
            );
            return Err(JsonError::new(at, detail));
        }
        match self.texts_by_name.insert(name.into(), text) {
            None => Ok(()),
            Some(_) => Err(JsonError::new(at, format!("the attribute `{name}` is given twice"))),
        }
    }

    fn into_event_body(mut self) -> Result<RawEmitBody, JsonError> {
        for name in REQUIRED_ATTRIBUTES {
            if self.texts_by_name.get(name).is_none_or(String::is_empty) {
                return Err(JsonError::new(
                    to_pointer_segment(name),
                    format!("a CloudEvent has the attribute `{name}`"),
                ));
            }
        }
        if self.texts_by_name["specversion"] != "1.0" {
            return Err(JsonError::new("/specversion", "only CloudEvents 1.0 are supported"));
        }
        if let Some(time) = self.texts_by_name.get("time") {
            time.parse::<Timestamp>().map_err(|e| JsonError::new("/time", e))?;
        }
        let priority = match self.texts_by_name.remove("priority") {
            // Attributes are kept as text, numbers too.
            Some(text) => Some(
                text.parse::<i64>()
                    .map_err(|_| JsonError::new("/priority", "`priority` is a whole number"))?,
            ),
            None => None,
        };
        let mut text =
            |name: &str| self.texts_by_name.remove(name).map(|text| to_raw_json(&text)).transpose();
        Ok(RawEmitBody {
            event_type: text("type")?,
            key: text("subject")?,
            tenant: text("tenant")?,
            task_delay: text("delay")?,
            priority: priority.map(|number| to_raw_json(&number)).transpose()?,
            value: self.data.take(),
            context: Some(to_raw_json(&self.texts_by_name)?),
            sub_object: None,
            tasks_due_at: None,
        })
    }
}

fn to_raw_json(value: &impl serde::Serialize) -> Result<Box<RawValue>, JsonError> {
    to_raw_value(value).map_err(|e| JsonError::new("", e))
}

/// Parses a CloudEvent in structured mode: one JSON object with its data.
pub(super) fn parse_structured_event(raw: &RawValue) -> Result<RawEmitBody, JsonError> {
    let members: RawMembers = serde_json::from_str(raw.get()).map_err(|e| JsonError::new("", e))?;
    let mut attributes = CloudEventAttributes::default();
    let mut base64 = None;
    for (name, raw) in members.0 {
        match name.as_str() {
            "data" if attributes.data.is_some() => {
                return Err(JsonError::new("/data", "`data` is given twice"));
            }
            "data" => attributes.data = Some(raw),
            "data_base64" if base64.is_some() => {
                return Err(JsonError::new("/data_base64", "`data_base64` is given twice"));
            }
            "data_base64" => base64 = Some(parse_string("/data_base64", &raw)?),
            _ if raw.get() == "null" => {}
            _ => attributes.add_attribute(&name, parse_attribute(&name, &raw)?)?,
        }
    }
    if let Some(text) = base64 {
        if attributes.data.is_some() {
            return Err(JsonError::new("/data_base64", "`data` and `data_base64` exclude each other"));
        }
        let bytes = STANDARD.decode(&text).map_err(|e| JsonError::new("/data_base64", e))?;
        let media = attributes.texts_by_name.get("datacontenttype").map_or("", String::as_str);
        let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        attributes.data =
            Some(data_to_json(&essence, &bytes).map_err(|detail| JsonError::new("/data_base64", detail))?);
    }
    attributes.into_event_body()
}

/// Parses the value of an attribute as text: a string, a boolean or a whole number.
fn parse_attribute(name: &str, raw: &RawValue) -> Result<String, JsonError> {
    let text = raw.get();
    if text.starts_with('"') {
        return parse_string(&to_pointer_segment(name), raw);
    }
    let scalar = matches!(text, "true" | "false") || text.parse::<i64>().is_ok();
    let fault =
        || JsonError::new(to_pointer_segment(name), "an attribute is a string, a boolean or a whole number");
    scalar.then(|| text.to_owned()).ok_or_else(fault)
}

/// Whether a request is a CloudEvent in binary mode: its attributes are headers.
pub(super) fn is_binary_mode(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("ce-"))
}

/// Parses a CloudEvent in binary mode; its body is the data.
pub(super) fn parse_binary_event(
    headers: &HeaderMap,
    essence: &str,
    body: &[u8],
) -> Result<RawEmitBody, Problem> {
    let header_problem = |fault: JsonError| {
        let header = header_for_pointer(&fault.pointer).unwrap_or_default();
        Problem::malformed(fault.detail).with_parameter(header)
    };
    let mut attributes = CloudEventAttributes::default();
    for (name, value) in headers {
        let Some(attribute) = name.as_str().strip_prefix("ce-") else { continue };
        let text = value
            .to_str()
            .ok()
            .and_then(|text| percent_decoding::decode_percent_encoded(&unquote_header_value(text)))
            .ok_or_else(|| {
                Problem::malformed("the header is not percent-encoded UTF-8").with_parameter(name.as_str())
            })?;
        attributes.add_attribute(attribute, text).map_err(header_problem)?;
    }
    if let Some(value) = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        attributes.texts_by_name.entry("datacontenttype".into()).or_insert_with(|| value.into());
    }
    if !body.is_empty() {
        attributes.data = Some(data_to_json(essence, body).map_err(Problem::malformed)?);
    }
    attributes.into_event_body().map_err(header_problem)
}

/// Removes the double quotes around a header value. Older versions of CloudEvents quoted values with blanks, and the
/// HTTP binding requires receivers to accept that.
fn unquote_header_value(text: &str) -> Cow<'_, str> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = quoted else { return text.into() };
    let mut plain = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => plain.extend(rest.next()),
            // Two quoted strings, or an escaped closing quote: not one quoted value.
            '"' => return text.into(),
            c => plain.push(c),
        }
    }
    plain.into()
}

/// The header that a JSON pointer into a CloudEvent refers to, if it refers to an attribute.
pub(super) fn header_for_pointer(pointer: &str) -> Option<String> {
    let name = match pointer {
        "/key" => "subject",
        "/value" | "" | "/context" => return None,
        other => other.strip_prefix("/context").unwrap_or(other).strip_prefix('/')?,
    };
    Some(format!("ce-{name}"))
}

/// Converts data of a media type to JSON.
fn data_to_json(essence: &str, bytes: &[u8]) -> Result<Box<RawValue>, String> {
    let is_json = matches!(essence, "" | "application/json" | "text/json") || essence.ends_with("+json");
    let problem = |e: serde_json::Error| format!("the data is not JSON: {e}");
    if is_json {
        let text = std::str::from_utf8(bytes).map_err(|_| "the data is not UTF-8")?;
        return serde_json::from_str::<&RawValue>(text).map(ToOwned::to_owned).map_err(problem);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if essence.starts_with("text/") => to_raw_value(text).map_err(problem),
        _ => to_raw_value(&STANDARD.encode(bytes)).map_err(problem),
    }
}

/// The raw members of a JSON object, in order.
struct RawMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RawMembers {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct RawMembersVisitor;
        impl<'de> Visitor<'de> for RawMembersVisitor {
            type Value = RawMembers;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a CloudEvent as a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMembers, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }
        d.deserialize_map(RawMembersVisitor)
    }
}
