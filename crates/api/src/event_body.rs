//! The JSON of an event in the event stream.
//!
//! There are two forms, as in the journal: a producer's event has a value, a context and a tenant; an engine event has
//! no tenant, and has its fields beside `key` and `TYPE`.

use std::collections::BTreeMap;

use pointsman_core::{Event, Json};
use serde::de::DeserializeOwned;
use serde::ser::{Error, SerializeMap};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// An event as it appears in the event stream.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(try_from = "RawMembers")]
#[schema(as = EventSnapshot)]
pub struct EventBody {
    /// The event's id.
    #[schema(rename = "eventId")]
    pub event_id: u64,
    /// The event's type.
    #[schema(rename = "TYPE")]
    pub event_type: String,
    /// The object; for a TaskEvent `{"jobPath":…,"taskId":…}`. Keyless events have no such member.
    // A JSON object is kept as its text.
    #[schema(value_type = Option<serde_json::Value>, required = false)]
    pub key: Option<String>,
    /// The preceding event of the same object: null for its first, absent without a key.
    #[schema(value_type = Option<u64>, required = false)]
    pub prev: Option<Option<u64>>,
    /// The key of a sub-object, a part of the object.
    #[schema(rename = "sub", required = false)]
    pub sub_object: Option<String>,
    /// The payload. Engine events have their fields in its place.
    // The fields are kept as one JSON object.
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Json,
    /// The context, such as the request that the event comes from.
    #[schema(required = false)]
    pub context: BTreeMap<String, String>,
    /// The tenant to which the event belongs. Engine events have no such member.
    // Empty for engine events.
    #[schema(required = false)]
    pub tenant: String,
}

/// The unparsed members of an event. Raw JSON keeps its exact text.
type RawMembers = BTreeMap<String, Box<RawValue>>;

impl EventBody {
    /// Whether the engine published it, and not a producer.
    pub fn is_engine_event(&self) -> bool {
        self.tenant.is_empty()
    }
}

impl From<&Event> for EventBody {
    fn from(event: &Event) -> Self {
        let has_prev = event.key.is_some() && !event.is_engine_event();
        Self {
            event_id: event.id.get(),
            event_type: event.event_type.to_string(),
            key: event.key.as_ref().map(ToString::to_string),
            prev: has_prev.then(|| event.prev.map(|prev| prev.get())),
            sub_object: event.sub_object.as_ref().map(ToString::to_string),
            value: event.value.clone(),
            context: event.context.clone(),
            tenant: if event.is_engine_event() { String::new() } else { event.tenant.to_string() },
        }
    }
}

impl Serialize for EventBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("eventId", &self.event_id)?;
        if self.is_engine_event() {
            if let Some(key) = &self.key {
                match key.starts_with('{') {
                    true => map.serialize_entry("key", &parse_raw_json::<S>(key)?)?,
                    false => map.serialize_entry("key", key)?,
                }
            }
            map.serialize_entry("TYPE", &self.event_type)?;
            let fields: RawMembers = self.value.decode().map_err(S::Error::custom)?;
            for (name, field) in &fields {
                map.serialize_entry(name, field)?;
            }
            return map.end();
        }
        map.serialize_entry("TYPE", &self.event_type)?;
        if let Some(key) = &self.key {
            map.serialize_entry("key", key)?;
        }
        if let Some(prev) = &self.prev {
            map.serialize_entry("prev", prev)?;
        }
        if let Some(sub) = &self.sub_object {
            map.serialize_entry("sub", sub)?;
        }
        map.serialize_entry("value", &self.value)?;
        map.serialize_entry("context", &self.context)?;
        map.serialize_entry("tenant", &self.tenant)?;
        map.end()
    }
}

fn parse_raw_json<S: Serializer>(text: &str) -> Result<&RawValue, S::Error> {
    serde_json::from_str(text).map_err(S::Error::custom)
}

impl TryFrom<RawMembers> for EventBody {
    type Error = String;
    fn try_from(mut members: RawMembers) -> Result<Self, String> {
        let event_id = take_member(&mut members, "eventId")?.ok_or("an event without eventId")?;
        let event_type = take_member(&mut members, "TYPE")?.ok_or("an event without TYPE")?;
        let key = match members.remove("key") {
            Some(raw) if raw.get().starts_with('{') => Some(raw.get().to_owned()),
            Some(raw) => Some(parse_member("key", &raw)?),
            None => None,
        };
        let Some(tenant) = take_member(&mut members, "tenant")? else {
            let value = Json::from_value(&members).map_err(|e| e.to_string())?;
            let (context, tenant) = (BTreeMap::new(), String::new());
            return Ok(Self {
                event_id,
                event_type,
                key,
                prev: None,
                sub_object: None,
                value,
                context,
                tenant,
            });
        };
        Ok(Self {
            event_id,
            event_type,
            key,
            prev: take_member(&mut members, "prev")?,
            sub_object: take_member(&mut members, "sub")?,
            value: take_member(&mut members, "value")?.ok_or("an event without a value")?,
            context: take_member(&mut members, "context")?.unwrap_or_default(),
            tenant,
        })
    }
}

/// Removes a member and parses it, if it is present.
fn take_member<T: DeserializeOwned>(members: &mut RawMembers, name: &str) -> Result<Option<T>, String> {
    members.remove(name).map(|raw| parse_member(name, &raw)).transpose()
}

fn parse_member<T: DeserializeOwned>(name: &str, raw: &RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|e| format!("{name}: {e}"))
}

#[cfg(test)]
mod tests {
    use pointsman_core::engine_event::{EngineEvent, EngineState, StepTransition};
    use pointsman_core::{EventId, EventType, ObjectKey, TaskId, Tenant};

    use super::*;

    const TEST_EVENT_ID: u64 = 7;

    fn producer_event(key: Option<&str>, prev: Option<u64>) -> Event {
        Event {
            id: EventId::new(TEST_EVENT_ID).unwrap(),
            prev: prev.and_then(EventId::new),
            event_type: EventType::new("record.published").unwrap(),
            key: key.map(|key| ObjectKey::new(key).unwrap()),
            sub_object: None,
            value: Json::parse(r#"{ "n": 1.50 }"#).unwrap(),
            context: BTreeMap::from([("ip".into(), "::1".into())]),
            tenant: Tenant::default(),
            cause: None,
        }
    }

    fn engine_events() -> Vec<Event> {
        let (handler, task) = ("h".parse().unwrap(), TaskId::from_text("h_x_1"));
        let order: pointsman_core::chain::OrderKey = "/a/b,1".parse().unwrap();
        let (node, from) = ("BB".parse().unwrap(), "A".parse().unwrap());
        let transition = StepTransition::Error { return_code: 3 };
        [
            EngineEvent::SchedulerClosed,
            EngineEvent::SchedulerStateChanged { state: EngineState::Running },
            EngineEvent::OrderNodeChanged { order: order.clone(), node, from_node: from },
            EngineEvent::OrderStepEnded { order, transition },
            EngineEvent::TaskEnded { handler, task, return_code: 3 },
        ]
        .map(|event| event.to_event(EventId::new(TEST_EVENT_ID).unwrap()))
        .into()
    }

    #[test]
    fn event_bodies_serialize_like_core_events_and_are_parsed_back() {
        let emitted = [
            producer_event(Some("a\"b"), Some(3)),
            producer_event(Some("a"), None),
            producer_event(None, None),
        ];
        for event in emitted.into_iter().chain(engine_events()) {
            let body = EventBody::from(&event);
            assert_eq!(serde_json::to_string(&body).unwrap(), event.to_json());
            assert_eq!(serde_json::from_str::<EventBody>(&event.to_json()).unwrap(), body);
        }
    }

    #[test]
    fn json_that_is_not_an_event_is_rejected() {
        for bad in [
            "{}",
            r#"{"eventId":1}"#,
            r#"{"eventId":"1","TYPE":"a"}"#,
            r#"{"eventId":1,"TYPE":"a","tenant":"x"}"#,
        ] {
            assert!(serde_json::from_str::<EventBody>(bad).is_err(), "{bad}");
        }
    }
}
