//! Digests of handlers, schedules and chains, used to detect changes.
//!
//! The store compares them with those of the last registration and publishes what was added, replaced and removed. A
//! digest covers the parsed settings, not their text: it does not change with a restart, with the order of keys or with
//! the notation of a duration or path. It covers the values of secrets, so that a replaced secret is a change; the
//! values cannot be recovered from it.

use std::collections::BTreeMap;

use pointsman_core::fire::FireAction;
use pointsman_core::store::{NewCollectionRun, NewOrder};
use pointsman_core::{Json, NewEvent};
use pointsman_engine::ScheduleSpec;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Config;
use super::handler_run::{CommandRunConfig, HandlerRunConfig, HttpRunConfig};
use super::handlers::HandlerConfig;

impl Config {
    /// The digest of each handler, source, schedule and chain, by its key in the journal. The schedules of a source's
    /// collections are part of the source.
    pub(super) fn compute_digests(&self) -> BTreeMap<String, String> {
        let mut source_schedules: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut digests = BTreeMap::new();
        for schedule_config in &self.schedules {
            let schedule = &schedule_config.schedule;
            match &schedule.action {
                FireAction::RunCollection(run) => {
                    source_schedules
                        .entry(run.source_collection.source.as_str())
                        .or_default()
                        .push(schedule_to_json(schedule));
                }
                FireAction::EmitEvent(_) | FireAction::AddOrder(_) => {
                    digests.insert(
                        format!("Schedule:/{}", schedule.name),
                        digest_json(&schedule_to_json(schedule)),
                    );
                }
            }
        }
        for handler in self.handlers.iter().chain(&self.sources) {
            let name = handler.def.name.as_str();
            let mut schedules = source_schedules.remove(name).unwrap_or_default();
            schedules.sort_by_cached_key(to_canonical_json);
            digests.insert(format!("Job:/{name}"), digest_json(&handler_to_json(handler, schedules)));
        }
        for chain_config in &self.chains {
            let chain = &chain_config.chain;
            digests.insert(format!("JobChain:{}", chain.path), digest_json(&json!({ "nodes": chain.nodes })));
        }
        digests
    }
}

fn handler_to_json(handler: &HandlerConfig, schedules: Vec<Value>) -> Value {
    json!({"def": handler.def, "run": handler_run_to_json(&handler.run), "schedules": schedules})
}

fn handler_run_to_json(run: &HandlerRunConfig) -> Value {
    match run {
        HandlerRunConfig::Http(HttpRunConfig {
            url,
            timeout,
            signing_secrets: _,
            signing_secret_hashes: secret_hashes,
            headers,
        }) => {
            let headers: Vec<(&str, &[u8])> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            json!({"http": url.as_str(), "timeout": timeout, "secrets": secret_hashes, "headers": into_sorted(headers)})
        }
        HandlerRunConfig::Command(CommandRunConfig { spec, timeout, user: _ }) => {
            let mut run =
                json!({"command": spec.argv, "dir": spec.working_dir, "env": spec.env, "timeout": timeout});
            if let Some(run_as) = &spec.run_as {
                run["run_as"] = json!(run_as.uid_and_gid());
            }
            run
        }
        HandlerRunConfig::Pull => json!("pull"),
    }
}

fn into_sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

fn schedule_to_json(schedule: &ScheduleSpec) -> Value {
    let ScheduleSpec { name, cron, action, catch_up, catch_up_window, overlap, jitter } = schedule;
    json!({
        "name": name,
        "cron": cron.expression().as_str(),
        "dialect": cron.expression().dialect().to_string(),
        "zone": cron.zone().name(),
        "action": fire_action_to_json(action),
        "catch_up": catch_up,
        "catch_up_window": catch_up_window,
        "overlap": overlap,
        "jitter": jitter,
    })
}

fn fire_action_to_json(action: &FireAction) -> Value {
    match action {
        FireAction::EmitEvent(event) => {
            let NewEvent { event_type, key, sub_object: sub, value, context, tenant, priority, .. } =
                &**event;
            let value = parse_json_or_text(value);
            json!({"emit": event_type, "key": key, "sub": sub, "value": value, "context": context, "tenant": tenant,
                "priority": priority.get()})
        }
        FireAction::RunCollection(NewCollectionRun { source_collection: pair, priority }) => {
            json!({"run": pair.to_string(), "priority": priority.map(|priority| priority.get())})
        }
        FireAction::AddOrder(order) => {
            let NewOrder { chain, id, start_node: node, value, planned_at: _, priority, tenant, origin: _ } =
                &**order;
            let value = parse_json_or_text(value);
            json!({"order": chain, "id": id, "node": node, "value": value, "tenant": tenant,
                "priority": priority.get()})
        }
    }
}

/// Parses a value, so that the order of its keys does not matter. A value that cannot be represented is used as text.
fn parse_json_or_text(value: &Json) -> Value {
    serde_json::from_str(value.as_str()).unwrap_or_else(|_| Value::from(value.as_str()))
}

pub(super) fn digest_json(value: &Value) -> String {
    sha256_hex(to_canonical_json(value).as_bytes())
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON text with the members of objects sorted by name.
fn to_canonical_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), to_canonical_json(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(to_canonical_json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
