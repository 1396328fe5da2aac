//! Reads the section `schedules`: events to emit and orders to add at planned times.

use pointsman_core::chain::{ChainNodeId, ChainPath, OrderId, OrderKey};
use pointsman_core::cron::{self, Dialect, Zone};
use pointsman_core::event::{MAX_CONTEXT_ENTRIES, MAX_CONTEXT_STRING_BYTES};
use pointsman_core::fire::{FireAction, OverlapPolicy};
use pointsman_core::names::check_emittable_type;
use pointsman_core::store::NewOrder;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{Context, EventType, HandlerName, Json, NewEvent, ObjectKey, ScheduleName, Tenant};
use pointsman_engine::ScheduleSpec;

use super::chains::{self, NodeIdsOfDefinedChains, invalid_id_message, read_chain_node_id};
use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_choice, read_map_entries, read_text};
use super::fault::Findings;
use super::handlers::{NameLocations, read_unique_name};
use super::json_value;
use super::location::SettingLocation;
use super::schedule_timing::{self, SchedulePolicy};
use super::yaml::YamlNode;

pub(super) const SCHEDULE_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a schedule",
    names: &[
        "cron",
        "timezone",
        "dialect",
        "emit",
        "order",
        "catch_up",
        "catch_up_within",
        "overlap",
        "jitter",
    ],
    not_yet_supported: &[],
};
pub(super) const EMIT_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "an event to emit",
    names: &["type", "key", "sub", "value", "context", "tenant", "priority"],
    not_yet_supported: &["delay", "at"],
};

pub(super) const ORDER_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "an order to add",
    names: &["path", "id", "node", "value", "priority", "tenant"],
    not_yet_supported: &[],
};

/// A configured schedule: of the section `schedules`, or of a source's collection.
#[derive(Clone, Debug)]
pub struct ScheduleConfig {
    pub schedule: ScheduleSpec,
    /// The location that warnings about the schedule name.
    pub(super) location: SettingLocation,
}

pub(super) fn read_schedules(
    node: &YamlNode,
    names: &mut NameLocations,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Vec<ScheduleConfig> {
    let mut schedules = Vec::new();
    for entry in read_map_entries(node, "`schedules`", findings).unwrap_or_default() {
        let name = read_unique_name(entry, names, findings);
        let schedule = read_schedule(&entry.value, name, chains, findings);
        schedules.extend(
            schedule.map(|schedule| ScheduleConfig { schedule, location: entry.key_location.clone() }),
        );
    }
    schedules
}

/// Reads a schedule, even one with an invalid name, to find its other faults.
fn read_schedule(
    node: &YamlNode,
    name: Option<HandlerName>,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<ScheduleSpec> {
    let fields = CheckedMap::from_node_with_known_keys(node, &SCHEDULE_KEYS, findings)?;
    let when = read_cron_schedule(&fields, findings);
    let action = read_fire_action(&fields, chains, findings);
    let policy = SchedulePolicy::read(&fields, findings);
    let choices =
        [("skip", OverlapPolicy::Skip), ("queue", OverlapPolicy::Queue), ("cancel", OverlapPolicy::Cancel)];
    let overlap = fields
        .read_or_default("overlap", OverlapPolicy::default(), findings, |n, f| read_choice(n, f, &choices));
    let name = ScheduleName::new(name?.as_str()).ok()?;
    let schedule = ScheduleSpec::new(name, when?, action?);
    Some(policy.apply_to(ScheduleSpec { overlap, ..schedule }))
}

/// Reads the cron expression in its dialect, with its time zone.
fn read_cron_schedule(fields: &CheckedMap<'_>, findings: &mut Findings) -> Option<cron::Schedule> {
    let dialect = schedule_timing::read_dialect(fields, Dialect::Auto, findings);
    let zone = schedule_timing::read_time_zone(fields, Zone::utc(), findings);
    let expression = fields
        .get_required("cron", SCHEDULE_KEYS.described_thing, findings)
        .and_then(|n| schedule_timing::read_cron_expression(n, dialect, findings))?;
    Some(cron::Schedule::new(expression, zone))
}

/// Reads what a firing creates: an event or an order.
fn read_fire_action(
    fields: &CheckedMap<'_>,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<FireAction> {
    match (fields.get("emit"), fields.get("order")) {
        (Some(emit), None) => {
            read_scheduled_event(emit, findings).map(|event| FireAction::EmitEvent(Box::new(event)))
        }
        (None, Some(order)) => {
            read_scheduled_order(order, chains, findings).map(|order| FireAction::AddOrder(Box::new(order)))
        }
        (Some(_), Some(order)) => {
            findings.add_fault(&order.location, "a schedule has either `emit` or `order`, not both");
            None
        }
        (None, None) => {
            let message = "a schedule needs `emit`, the event it emits, or `order`, the order it adds";
            findings.add_fault(&fields.node.location, message);
            None
        }
    }
}

/// Reads an order. Its path is that of a chain, optionally with the id of the order after a comma.
fn read_scheduled_order(
    node: &YamlNode,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<NewOrder> {
    let fields = CheckedMap::from_node_with_known_keys(node, &ORDER_KEYS, findings)?;
    let path = fields
        .get_required("path", ORDER_KEYS.described_thing, findings)
        .and_then(|n| read_order_path(n, chains, findings));
    let id = fields.get("id").and_then(|n| read_order_id(n, findings).map(|id| (id, n)));
    let at = fields.get("node").and_then(|n| read_chain_node_id(n, findings).map(|id| (id, n)));
    let value = fields.read_or_default("value", Json::null(), findings, json_value::read_json);
    let tenant = fields.read_or_default("tenant", Tenant::default(), findings, |n, f| {
        parse_scalar(n, f, str::parse::<Tenant>)
    });
    let priority = schedule_timing::read_priority(&fields, findings);
    let (chain, path_id) = path?;
    if let (Some(_), Some((_, node))) = (&path_id, &id) {
        findings.add_fault(&node.location, "the `path` names an id already");
    }
    if let (Some((id, node)), Some(nodes)) = (&at, chains.get(&chain))
        && !nodes.contains(id)
    {
        let suggestion = did_you_mean_suffix(id.as_str(), nodes.iter().map(ChainNodeId::as_str));
        findings.add_fault(&node.location, format!("the chain {chain} has no node {id}{suggestion}"));
    }
    let (id, node) = (path_id.or(id.map(|(id, _)| id)), at.map(|(id, _)| id));
    Some(NewOrder { id, start_node: node, value, priority, tenant, ..NewOrder::new(chain) })
}

fn read_order_path(
    node: &YamlNode,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<(ChainPath, Option<OrderId>)> {
    let (chain, id) = parse_scalar(node, findings, |text| match text.contains(',') {
        true => text.parse().map(|OrderKey { chain, id }| (chain, Some(id))),
        false => ChainPath::new(text).map(|chain| (chain, None)),
    })?;
    chains::check_chain_exists(node, &chain, chains, findings).then_some((chain, id))
}

fn read_order_id(node: &YamlNode, findings: &mut Findings) -> Option<OrderId> {
    parse_scalar(node, findings, |text| OrderId::new(text).map_err(|_| invalid_id_message(text, "an order")))
}

fn read_scheduled_event(node: &YamlNode, findings: &mut Findings) -> Option<NewEvent> {
    let fields = CheckedMap::from_node_with_known_keys(node, &EMIT_KEYS, findings)?;
    let kind = fields.get_required("type", "an event to emit", findings).and_then(|n| {
        let kind = parse_scalar(n, findings, str::parse::<EventType>)?;
        if let Err(reserved) = check_emittable_type(&kind) {
            findings.add_fault(&n.location, reserved.to_string());
        }
        Some(kind)
    });
    let mut some_key = |key| fields.get(key).and_then(|n| parse_scalar(n, findings, str::parse::<ObjectKey>));
    let (key, sub) = (some_key("key"), some_key("sub"));
    let value = fields.get("value").and_then(|n| json_value::read_json(n, findings));
    let context = fields.read_or_default("context", Context::new(), findings, read_context);
    let tenant = fields.read_or_default("tenant", Tenant::default(), findings, |n, f| {
        parse_scalar(n, f, str::parse::<Tenant>)
    });
    let priority = schedule_timing::read_priority(&fields, findings);
    let defaults = NewEvent::new(kind?);
    let value = value.unwrap_or(defaults.value.clone());
    Some(NewEvent { key, sub_object: sub, value, context, tenant, priority, ..defaults })
}

fn read_context(node: &YamlNode, findings: &mut Findings) -> Option<Context> {
    let entries = read_map_entries(node, "a context", findings)?;
    if entries.len() > MAX_CONTEXT_ENTRIES {
        findings.add_fault(&node.location, format!("a context has at most {MAX_CONTEXT_ENTRIES} entries"));
    }
    let mut context = Context::new();
    for entry in entries {
        let Some(value) = read_text(&entry.value, findings) else { continue };
        if entry.key.len() > MAX_CONTEXT_STRING_BYTES || value.len() > MAX_CONTEXT_STRING_BYTES {
            let message =
                format!("names and values of a context have at most {MAX_CONTEXT_STRING_BYTES} bytes");
            findings.add_fault(&entry.key_location, message);
        }
        if value.contains('\0') || entry.key.contains('\0') {
            findings.add_fault(&entry.key_location, "a context cannot contain NUL characters");
        }
        context.insert(entry.key.clone(), value.to_owned());
    }
    Some(context)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::fire::CatchUpPolicy;

    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_all_schedules(node: &YamlNode, findings: &mut Findings) -> Option<Vec<ScheduleSpec>> {
        let nodes = ["render", "done"].map(|id| ChainNodeId::new(id).unwrap()).to_vec();
        let chains = [(ChainPath::new("/publish/article").unwrap(), nodes)].into();
        let schedule_config = read_schedules(node, &mut NameLocations::new(), &chains, findings);
        Some(schedule_config.into_iter().map(|schedule_config| schedule_config.schedule).collect())
    }

    #[test]
    fn a_schedule_can_emit_an_event_with_any_json_value() {
        let text =
            "beat: {cron: every 90s, emit: {type: a.b, key: 'k:1', value: {n: [1, x]}, priority: 200}}";
        let schedule = &read_value_from_yaml(text, read_all_schedules).unwrap()[0];
        assert_eq!((schedule.name.as_str(), schedule.cron.expression().as_str()), ("beat", "every 90s"));
        let FireAction::EmitEvent(emit) = &schedule.action else { panic!("{schedule:?}") };
        assert_eq!(emit.value.as_str(), r#"{"n":[1,"x"]}"#);
        assert_eq!(emit.priority.get(), 200);
        let with_default_policies =
            ScheduleSpec::new(schedule.name.clone(), schedule.cron.clone(), schedule.action.clone());
        assert_eq!(*schedule, with_default_policies, "the policies are the defaults");
    }

    #[test]
    fn a_schedule_can_add_an_order() {
        let text = "a: {cron: '@daily', order: {path: /publish/article}}\n\
                    b: {cron: '@daily', order: {path: '/publish/article,7'}}\n\
                    c: {cron: '@daily', order: {path: /publish/article, id: n-1, node: done, value: {n: 1}, \
                    priority: 200, tenant: lab}}";
        let schedules = read_value_from_yaml(text, read_all_schedules).unwrap();
        let orders: Vec<&NewOrder> = schedules
            .iter()
            .map(|schedule| match &schedule.action {
                FireAction::AddOrder(order) => &**order,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(*orders[0], NewOrder::new(ChainPath::new("/publish/article").unwrap()));
        assert_eq!(orders[1].id.as_ref().map(OrderId::as_str), Some("7"));
        let NewOrder { id, start_node: node, value, priority, tenant, .. } = orders[2];
        assert_eq!(
            (id.as_ref().map(OrderId::as_str), node.as_ref().map(ChainNodeId::as_str)),
            (Some("n-1"), Some("done"))
        );
        assert_eq!((value.as_str(), priority.get(), tenant.as_str()), (r#"{"n":1}"#, 200, "lab"));
    }

    #[test]
    fn every_fault_of_a_scheduled_order_is_reported() {
        let text = "a: {cron: '@daily', emit: {type: x}, order: {path: /publish/article}}\n\
                    b: {cron: '@daily'}\n\
                    c: {cron: '@daily', order: {path: /publish/articel, id: 'a,b', priority: 0}}\n\
                    d: {cron: '@daily', order: {path: '/publish/article,1', id: 2, node: rendr, nod: x}}\n\
                    e: {cron: '@daily', order: {id: 1}}\n\
                    f: {cron: '@daily', order: {path: publish}}\n";
        assert_eq!(
            fault_messages(text, read_all_schedules),
            [
                "a schedule has either `emit` or `order`, not both",
                "a schedule needs `emit`, the event it emits, or `order`, the order it adds",
                "there is no chain /publish/articel; did you mean `/publish/article`?",
                "\"a,b\" is not the id of an order: 1 to 128 letters, digits, `.`, `_` and `-`",
                "0 is too small; the least is 1",
                "the `path` names an id already",
                "the chain /publish/article has no node rendr; did you mean `render`?",
                "unknown setting \"nod\" of an order to add; did you mean `node`?",
                "an order to add needs `path`",
                "\"publish\" is not the path of a chain: it must begin with a slash; write one like `/folder/name`",
            ]
        );
    }

    #[test]
    fn catch_up_overlap_and_jitter_are_read() {
        let text = "a: {cron: '@daily', emit: {type: x}, catch_up: all, catch_up_within: 2d, overlap: cancel, \
                    jitter: 10s}";
        let schedule = &read_value_from_yaml(text, read_all_schedules).unwrap()[0];
        assert_eq!((schedule.catch_up, schedule.overlap), (CatchUpPolicy::All, OverlapPolicy::Cancel));
        assert_eq!(schedule.catch_up_window, Duration::from_secs(2 * 86_400));
        assert_eq!(schedule.jitter, Duration::from_secs(10));
        assert_eq!(
            fault_messages(
                "a: {cron: '@daily', emit: {type: x}, catch_up: some, catch_up_within: 0s, overlap: wait, \
                 jitter: a bit, jiter: 1s}",
                read_all_schedules
            ),
            [
                "\"some\" is not one of one, all, none",
                "0s is too short; the least is 1s",
                "\"wait\" is not one of skip, queue, cancel",
                "\"a bit\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
                "unknown setting \"jiter\" of a schedule; did you mean `jitter`?",
            ]
        );
    }

    #[test]
    fn every_fault_of_a_schedule_is_reported() {
        let text = "a: {cron: '0 75 * * *', timezone: Mars/Olympus, emit: {type: OrderStarted}}\n\
                    b: {cron: every 0s, emit: {key: '', priority: 0}}\n\
                    c: {schedule: '@daily', emit: {type: x, vlaue: 1}}\n\
                    d: {cron: '@daily', emit: {type: task}}\n";
        assert_eq!(
            fault_messages(text, read_all_schedules),
            [
                "hour field: hours are 0 to 23, got `75`",
                "\"Mars/Olympus\" is not a time zone; write one like `UTC`, `Europe/Berlin` or `America/New_York`",
                "only the engine itself emits OrderStarted",
                "an interval lasts from one second to 100 years; write an interval like `every 90s`, \
                 `every 1h30m` or `every 12 hours`",
                "an event to emit needs `type`",
                "a key has 1 to 512 bytes, this one has 0",
                "0 is too small; the least is 1",
                "a schedule needs `cron`",
                "unknown setting \"schedule\" of a schedule; did you mean `cron`?",
                "unknown setting \"vlaue\" of an event to emit; did you mean `value`?",
                "task is the name of a frame of the event stream; use another type, such as task.changed",
            ]
        );
    }

    #[test]
    fn time_zone_and_dialect_of_a_schedule_are_read() {
        let text = "a: {cron: '0 3 * * 1', timezone: Europe/Berlin, emit: {type: x}}\n\
                    b: {cron: '0 3 * * 1', dialect: quartz, emit: {type: x}}";
        let schedules = read_value_from_yaml(text, read_all_schedules).unwrap();
        assert_eq!(schedules[0].cron.zone().name(), "Europe/Berlin");
        assert!(schedules[0].cron.expression().describe().contains("Monday"));
        assert!(schedules[1].cron.expression().describe().contains("Sunday"));
    }
}
