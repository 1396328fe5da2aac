//! Members of the bodies that add or change orders. Each stays raw until it is parsed, so that a fault points at it.

use pointsman_core::chain::{ChainNodeId, ChainPath, OrderId, OrderKey};
use pointsman_core::event_json_parser::{
    JsonError, MAX_VALUE_BYTES, parse_duration, parse_json_object, parse_member, parse_string,
};
use pointsman_core::names::BadName;
use pointsman_core::store::NewOrder;
use pointsman_core::{Json, Priority, Tenant, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::problem::Problem;

/// The members of an order to be added. `null` is the same as a missing member.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object that describes an order")]
pub(super) struct NewOrderRequest {
    path: Option<Box<RawValue>>,
    value: Option<Box<RawValue>>,
    node: Option<Box<RawValue>>,
    at: Option<Box<RawValue>>,
    delay: Option<Box<RawValue>>,
    priority: Option<Box<RawValue>>,
    tenant: Option<Box<RawValue>>,
}

impl NewOrderRequest {
    /// Reads the raw members; `into_order` parses their values.
    pub(super) fn parse(text: &str) -> Result<Self, JsonError> {
        parse_json_object(text)
    }

    /// Parses the order. `delay` counts from `now`.
    pub(super) fn into_order(self, now: Timestamp, tenant: &Tenant) -> Result<NewOrder, Problem> {
        let path =
            self.path.ok_or_else(|| JsonError::new("/path", "an order has a path: `/chain/path,id`"))?;
        let (chain, id) =
            parse_order_path(&parse_string("/path", &path)?).map_err(|e| JsonError::new("/path", e))?;
        let own_tenant = self.tenant.map(|raw| parse_string("/tenant", &raw)).transpose()?;
        let own_tenant = own_tenant.map(Tenant::new).transpose().map_err(|e| JsonError::new("/tenant", e))?;
        Ok(NewOrder {
            chain,
            id,
            start_node: self.node.map(|raw| parse_chain_node_id(&raw)).transpose()?,
            value: self.value.map(|raw| parse_order_value(&raw)).transpose()?.unwrap_or_else(Json::null),
            planned_at: parse_planned_time(self.at.as_deref(), self.delay.as_deref(), now)?,
            priority: self.priority.map(|raw| parse_priority(&raw)).transpose()?.unwrap_or_default(),
            tenant: own_tenant.unwrap_or_else(|| tenant.clone()),
            origin: None,
        })
    }
}

/// Parses the path of a chain, optionally followed by a comma and the id of an order.
fn parse_order_path(path: &str) -> Result<(ChainPath, Option<OrderId>), BadName> {
    match path.contains(',') {
        true => path.parse().map(|OrderKey { chain, id }| (chain, Some(id))),
        false => ChainPath::new(path).map(|chain| (chain, None)),
    }
}

/// The members of a change of an order. A value may be changed to `null`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct ChangeOrderRequest {
    #[serde(default, deserialize_with = "deserialize_null_as_present")]
    value: Option<Box<RawValue>>,
    node: Option<Box<RawValue>>,
    at: Option<Box<RawValue>>,
}

/// Deserializes `null` as a value, so that it differs from a missing member.
fn deserialize_null_as_present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(d).map(Some)
}

/// The new value, node or planned time of an order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OrderChange {
    pub(super) value: Option<Json>,
    pub(super) node: Option<ChainNodeId>,
    pub(super) planned_at: Option<Timestamp>,
}

impl ChangeOrderRequest {
    pub(super) fn into_change(self) -> Result<OrderChange, Problem> {
        let change = OrderChange {
            value: self.value.map(|raw| parse_order_value(&raw)).transpose()?,
            node: self.node.map(|raw| parse_chain_node_id(&raw)).transpose()?,
            planned_at: self.at.map(|raw| parse_timestamp(&raw)).transpose()?,
        };
        if change == OrderChange::default() {
            let detail = "nothing to change: give `value`, `node` or `at`";
            return Err(Problem::malformed(detail).with_pointer(""));
        }
        Ok(change)
    }
}

fn parse_order_value(raw: &RawValue) -> Result<Json, Problem> {
    if raw.get().len() > MAX_VALUE_BYTES {
        let detail = format!("a value has at most {MAX_VALUE_BYTES} bytes");
        return Err(Problem::too_large(detail).with_pointer("/value"));
    }
    Ok(Json::parse(raw.get()).map_err(|e| JsonError::new("/value", e))?)
}

fn parse_chain_node_id(raw: &RawValue) -> Result<ChainNodeId, JsonError> {
    ChainNodeId::new(parse_string("/node", raw)?).map_err(|e| JsonError::new("/node", e))
}

fn parse_timestamp(raw: &RawValue) -> Result<Timestamp, JsonError> {
    parse_string("/at", raw)?.parse().map_err(|e| JsonError::new("/at", e))
}

fn parse_planned_time(
    at: Option<&RawValue>,
    delay: Option<&RawValue>,
    now: Timestamp,
) -> Result<Option<Timestamp>, JsonError> {
    match (at, delay) {
        (None, None) => Ok(None),
        (Some(at), None) => parse_timestamp(at).map(Some),
        (None, Some(delay)) => parse_duration("/delay", delay).map(|delay| Some(now.plus(delay))),
        (Some(_), Some(_)) => Err(JsonError::new("/at", "`delay` and `at` exclude each other")),
    }
}

fn parse_priority(raw: &RawValue) -> Result<Priority, JsonError> {
    let number: i64 = parse_member("/priority", raw, "a whole number from 1 to 9000")?;
    Priority::try_from(number).map_err(|e| JsonError::new("/priority", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn parse_order(text: &str) -> Result<NewOrder, Problem> {
        NewOrderRequest::parse(text)?.into_order(NOW, &Tenant::default())
    }

    #[test]
    fn only_the_path_of_a_new_order_is_required_and_every_member_is_read() {
        let chain = ChainPath::new("/a/b").unwrap();
        assert_eq!(parse_order(r#"{"path":"/a/b","value":null,"node":null}"#).unwrap(), NewOrder::new(chain));
        let full = parse_order(
            r#"{"path":"/a/b,1","value":{ "n": 1.50 },"node":"x","delay":"1m","priority":7,"tenant":"shop"}"#,
        )
        .unwrap();
        assert_eq!(full.id, Some(OrderId::new("1").unwrap()));
        assert_eq!((full.value.as_str(), full.start_node.unwrap().as_str()), (r#"{ "n": 1.50 }"#, "x"));
        assert_eq!(full.planned_at, Some(Timestamp::from_millis(1_060_000)));
        assert_eq!((full.priority.get(), full.tenant.as_str()), (7, "shop"));
    }

    #[test]
    fn a_value_can_be_changed_to_null() {
        let change = |text: &str| parse_json_object::<ChangeOrderRequest>(text).unwrap().into_change();
        assert_eq!(change(r#"{"value":null}"#).unwrap().value, Some(Json::null()));
        assert_eq!(change(r#"{"node":"x"}"#).unwrap().value, None);
        assert!(change("{}").is_err() && change(r#"{"node":null}"#).is_err());
    }
}
