//! Reads the section `handlers`: what each handler runs, with its retries, order and limits.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::handler::AttemptEventPolicy;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{HandlerDef, HandlerName, LaneFailurePolicy, LaneOrdering};
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_choice, read_integer, read_map_entries};
use super::fault::Findings;
use super::handler_run::{self, HandlerRunConfig};
use super::location::SettingLocation;
use super::secrets::SecretResolver;
use super::yaml::{YamlEntry, YamlNode};
use super::{handler_limits, retry};

pub(super) const HANDLER_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a handler",
    names: &[
        "run",
        "retry",
        "crashes",
        "order",
        "on_error",
        "concurrency",
        "concurrency_per_key",
        "rate",
        "weight",
        "ageing",
        "observe",
    ],
    not_yet_supported: &[],
};

/// A configured handler or source.
#[derive(Clone, Debug)]
pub struct HandlerConfig {
    pub def: HandlerDef,
    pub run: HandlerRunConfig,
    pub(super) location: SettingLocation,
}

/// The names in use, with their locations. Handlers, sources and schedules share one namespace.
pub(super) type NameLocations = BTreeMap<String, SettingLocation>;

/// Reads a name that must be unique, and adds it to the names in use. A name that is in use already is a fault.
pub(super) fn read_unique_name(
    entry: &YamlEntry,
    names: &mut NameLocations,
    findings: &mut Findings,
) -> Option<HandlerName> {
    let name = HandlerName::new(&entry.key)
        .map_err(|error| findings.add_fault(&entry.key_location, error.to_string()))
        .ok();
    if let Some(first) = names.get(&entry.key) {
        let message = format!(
            "the name {:?} is already used at {first}; handlers, sources and schedules share one namespace",
            entry.key
        );
        findings.add_fault(&entry.key_location, message);
        return None;
    }
    names.insert(entry.key.clone(), entry.key_location.clone());
    name
}

pub(super) fn read_handlers(
    node: &YamlNode,
    network: &NetworkAccess,
    names: &mut NameLocations,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Vec<HandlerConfig> {
    let mut handlers = Vec::new();
    for entry in read_map_entries(node, "`handlers`", findings).unwrap_or_default() {
        let name = read_unique_name(entry, names, findings);
        let handler = read_handler(entry, name, network, resolver, findings);
        handlers.extend(handler);
    }
    handlers
}

/// Reads a handler, even one with an invalid name, to find its other faults.
fn read_handler(
    entry: &YamlEntry,
    name: Option<HandlerName>,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<HandlerConfig> {
    let fields = CheckedMap::from_node_with_known_keys(&entry.value, &HANDLER_KEYS, findings)?;
    let run = match fields.get("run") {
        Some(node) => handler_run::read_handler_run(node, network, resolver, findings),
        None => {
            findings.add_fault(
                &entry.key_location,
                format!("the handler {:?} needs `run`: what it does", entry.key),
            );
            None
        }
    };
    let retry = fields.read_or_default("retry", RetryPolicy::default(), findings, retry::read_retry);
    let crashes = fields.get("crashes").and_then(|n| read_max_crashes(n, findings));
    let order = fields.read_or_default("order", LaneOrdering::default(), findings, |n, f| {
        read_choice(n, f, &[("key", LaneOrdering::Key), ("none", LaneOrdering::None)])
    });
    let on_error = fields.read_or_default("on_error", LaneFailurePolicy::default(), findings, |n, f| {
        read_choice(n, f, &[("park", LaneFailurePolicy::Park), ("halt", LaneFailurePolicy::Halt)])
    });
    if on_error == LaneFailurePolicy::Halt
        && order == LaneOrdering::None
        && let Some(node) = fields.get("on_error")
    {
        findings.add_fault(
            &node.location,
            "`on_error: halt` stops a lane, and with `order: none` there are no lanes",
        );
    }
    let limits = handler_limits::read_handler_limits(&fields, order, findings);
    let observe =
        fields.read_or_default("observe", AttemptEventPolicy::default(), findings, read_observe_policy);
    let (run, defaults) = (run?, HandlerDef::new(name?));
    let crashes = crashes.unwrap_or(defaults.max_crashes);
    let pull = matches!(run, HandlerRunConfig::Pull);
    let def = HandlerDef {
        ordering: order,
        on_error,
        retry,
        max_crashes: crashes,
        attempt_event_policy: observe,
        limits,
        pull,
        ..defaults
    };
    Some(HandlerConfig { def, run, location: entry.key_location.clone() })
}

/// Reads how many nodes or workers may crash while running one task.
pub(super) fn read_max_crashes(node: &YamlNode, findings: &mut Findings) -> Option<u32> {
    read_integer(node, findings, 0..=1_000_000).and_then(|count| u32::try_from(count).ok())
}

/// Reads which attempts are published in the journal.
pub(super) fn read_observe_policy(node: &YamlNode, findings: &mut Findings) -> Option<AttemptEventPolicy> {
    let choices = [
        ("all", AttemptEventPolicy::All),
        ("failures", AttemptEventPolicy::Failures),
        ("none", AttemptEventPolicy::None),
    ];
    read_choice(node, findings, &choices)
}

/// The names of handlers and sources that routes and chains can refer to.
#[derive(Debug)]
pub(super) struct DefinedHandlersAndSources {
    pub(super) handlers: BTreeSet<HandlerName>,
    pub(super) sources: BTreeSet<HandlerName>,
}

/// Reads the name of a handler that must exist.
pub(super) fn read_handler_reference(
    node: &YamlNode,
    defined: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> Option<HandlerName> {
    let name = parse_scalar(node, findings, str::parse::<HandlerName>)?;
    check_handler_exists(node, &name, defined, "gets no events", findings).then_some(name)
}

/// Whether the handler is defined. Reports a fault if the handler is not defined, or is a source, which cannot be used
/// here; `source_restriction` completes the message about a source.
pub(super) fn check_handler_exists(
    node: &YamlNode,
    name: &HandlerName,
    defined: &DefinedHandlersAndSources,
    source_restriction: &str,
    findings: &mut Findings,
) -> bool {
    let DefinedHandlersAndSources { handlers, sources } = defined;
    let exists = handlers.contains(name);
    if sources.contains(name) {
        findings.add_fault(
            &node.location,
            format!("{:?} is a source, and a source {source_restriction}", name.as_str()),
        );
    } else if !exists {
        let suggestion = pointsman_core::suggestion::did_you_mean_suffix(
            name.as_str(),
            handlers.iter().map(HandlerName::as_str),
        );
        findings.add_fault(&node.location, format!("there is no handler {:?}{suggestion}", name.as_str()));
    }
    exists
}

#[cfg(test)]
mod tests {
    use super::super::secrets::Environment;
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_all_handlers(node: &YamlNode, findings: &mut Findings) -> Option<Vec<HandlerConfig>> {
        let env = Environment::default();
        Some(read_handlers(
            node,
            &NetworkAccess::default(),
            &mut NameLocations::new(),
            &mut SecretResolver::new(&env),
            findings,
        ))
    }

    #[test]
    fn settings_a_handler_omits_have_their_defaults() {
        let handlers =
            read_value_from_yaml("a: {run: {command: [sh]}, order: none, crashes: 0}", read_all_handlers)
                .unwrap();
        let want = HandlerDef {
            ordering: LaneOrdering::None,
            max_crashes: 0,
            ..HandlerDef::new(HandlerName::new("a").unwrap())
        };
        assert_eq!(handlers[0].def, want);
    }

    #[test]
    fn a_pull_handler_can_have_limits() {
        let handlers =
            read_value_from_yaml("a: {run: pull, concurrency: 2, rate: 10/s}", read_all_handlers).unwrap();
        let HandlerConfig { def, run, .. } = &handlers[0];
        assert!(def.pull && matches!(run, HandlerRunConfig::Pull));
        assert_eq!((def.limits.concurrency, def.limits.rate), (Some(2), "10/s".parse().ok()));
        assert_eq!(
            fault_messages("a: {run: pull, concurrency_per_key: 2}", read_all_handlers),
            [
                "tasks of one object run one at a time to keep their order; set `order: none` to let more of them run"
            ]
        );
    }

    #[test]
    fn observe_setting_of_a_handler_is_read() {
        let text = "a: {run: pull}\nb: {run: pull, observe: all}\nc: {run: pull, observe: none}";
        let handlers = read_value_from_yaml(text, read_all_handlers).unwrap();
        let observed: Vec<AttemptEventPolicy> =
            handlers.iter().map(|handler| handler.def.attempt_event_policy).collect();
        assert_eq!(
            observed,
            [AttemptEventPolicy::Failures, AttemptEventPolicy::All, AttemptEventPolicy::None]
        );
    }

    #[test]
    fn every_fault_of_every_handler_is_reported() {
        assert_eq!(
            fault_messages(
                "a/b: {run: {command: []}}\n\
                 c: {order: key}\n\
                 d: {run: {command: [sh]}, order: none, on_error: halt, observe: some, oder: key}\n",
                read_all_handlers
            ),
            [
                "\"a/b\" contains '/'; a name is made of letters, digits, `.`, `_` and `-`",
                "a command needs at least the name of a program",
                "the handler \"c\" needs `run`: what it does",
                "`on_error: halt` stops a lane, and with `order: none` there are no lanes",
                "\"some\" is not one of all, failures, none",
                "unknown setting \"oder\" of a handler; did you mean `order`?",
            ]
        );
    }
}
