//! Reads the section `chains`: chains of nodes that orders run through, by path.
//!
//! ```text
//!  chains./publish/article.nodes ──▶ each node alone: its keys, its handler
//!                                └─▶ the whole chain: unique ids, existing targets, a reachable end
//! ```
//!
//! The whole chain is checked even if single nodes have faults, so that all faults are reported at once. A node that
//! could not be read counts as an end there, so that nodes that lead to it are not reported.

use std::collections::BTreeMap;

use pointsman_core::HandlerName;
use pointsman_core::chain::{Chain, ChainNode, ChainNodeId, ChainNodeRole, ChainPath, ChainStep};
use pointsman_core::names::MAX_NAME_BYTES;
use pointsman_core::suggestion::did_you_mean_suffix;

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_boolean, read_list_items, read_map_entries};
use super::fault::Findings;
use super::handlers::{DefinedHandlersAndSources, check_handler_exists};
use super::location::SettingLocation;
use super::retry;
use super::yaml::{YamlEntry, YamlKind, YamlNode};

pub(super) const CHAIN_KEYS: AllowedKeys =
    AllowedKeys { described_thing: "a chain", names: &["nodes"], not_yet_supported: &[] };
const CHAIN_NODE_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a node",
    names: &["id", "handler", "next", "on_error", "setback", "end"],
    not_yet_supported: &[],
};

/// The most nodes of a chain. The cost of checking a chain grows with the square of its nodes.
const MAX_CHAIN_NODES: usize = 1000;

/// A configured chain.
#[derive(Clone, Debug)]
pub struct ChainConfig {
    pub chain: Chain,
    /// The location of each node.
    pub(super) node_locations: Vec<SettingLocation>,
}

/// The paths of all defined chains, including those with faults, with the ids of their nodes.
pub(super) type NodeIdsOfDefinedChains = BTreeMap<ChainPath, Vec<ChainNodeId>>;

/// The section `chains`.
#[derive(Debug, Default)]
pub(super) struct ChainsSection {
    pub(super) chains: Vec<ChainConfig>,
    pub(super) node_ids_of_defined_chains: NodeIdsOfDefinedChains,
}

pub(super) fn read_chains(
    node: &YamlNode,
    handlers: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> ChainsSection {
    let mut section = ChainsSection::default();
    for entry in read_map_entries(node, "`chains`", findings).unwrap_or_default() {
        let path = ChainPath::new(&entry.key)
            .map_err(|error| findings.add_fault(&entry.key_location, error.to_string()))
            .ok();
        let read = read_chain_nodes(entry, handlers, findings);
        let Some(path) = path else { continue };
        let (nodes, node_locations): (Vec<ChainNode>, Vec<SettingLocation>) = read.into_iter().unzip();
        section
            .node_ids_of_defined_chains
            .insert(path.clone(), nodes.iter().map(|node| node.id.clone()).collect());
        section.chains.push(ChainConfig { chain: Chain { path, nodes }, node_locations });
    }
    section
}

/// Reads the nodes of a chain that have an id, with their locations.
fn read_chain_nodes(
    entry: &YamlEntry,
    handlers: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> Vec<(ChainNode, SettingLocation)> {
    let Some(fields) = CheckedMap::from_node_with_known_keys(&entry.value, &CHAIN_KEYS, findings) else {
        return vec![];
    };
    let Some(list) = fields.get("nodes") else {
        findings.add_fault(
            &entry.key_location,
            format!("the chain {:?} needs `nodes`: where its orders go", entry.key),
        );
        return vec![];
    };
    let Some(list) = read_list_items(list, "`nodes`", findings) else { return vec![] };
    if list.is_empty() {
        findings.add_fault(&entry.key_location, format!("the chain {:?} needs at least one node", entry.key));
        return vec![];
    }
    if list.len() > MAX_CHAIN_NODES {
        findings.add_fault(
            &list[MAX_CHAIN_NODES].location,
            format!("a chain has at most {MAX_CHAIN_NODES} nodes"),
        );
        return vec![];
    }
    let read: Vec<Option<ChainNode>> =
        list.iter().map(|item| read_chain_node(item, handlers, findings)).collect();
    // A node without an id may be the target of others, so that the whole chain cannot be checked.
    if let Some(nodes) = read.iter().cloned().collect::<Option<Vec<ChainNode>>>() {
        check_whole_chain(&entry.key, nodes, list, findings);
    }
    let placed = read.into_iter().zip(list).map(|(node, item)| Some((node?, item.location.clone())));
    placed.flatten().collect()
}

/// Reports faults of the chain as a whole.
fn check_whole_chain(path: &str, nodes: Vec<ChainNode>, list: &[YamlNode], findings: &mut Findings) {
    // The path does not matter here, and an invalid one has been reported already.
    let Ok(path) = ChainPath::new(path).or_else(|_| ChainPath::new("/x")) else { return };
    let chain = Chain { path, nodes };
    for (index, fault) in chain.validation_errors() {
        let item = &list[index];
        // A fault names the key it is about in backticks.
        let key = fault.split('`').nth(1).and_then(|key| item.get(key));
        let suggestion = match key.map(|key| &key.kind) {
            Some(YamlKind::Scalar { text, .. }) => {
                did_you_mean_suffix(text, chain.nodes.iter().map(|node| node.id.as_str()))
            }
            Some(YamlKind::Null | YamlKind::List(_) | YamlKind::Map(_)) | None => String::new(),
        };
        findings.add_fault(&key.unwrap_or(item).location, format!("{fault}{suggestion}"));
    }
}

/// Reads a chain node. Returns `None` if the node is not a map or has no valid id. Other faults are only reported.
fn read_chain_node(
    item: &YamlNode,
    handlers: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> Option<ChainNode> {
    let fields = CheckedMap::from_node_with_known_keys(item, &CHAIN_NODE_KEYS, findings)?;
    let id = fields
        .get_required("id", CHAIN_NODE_KEYS.described_thing, findings)
        .and_then(|n| read_chain_node_id(n, findings));
    let role = match fields.read_or_default("end", false, findings, read_boolean) {
        true => {
            check_end_node_keys(item, findings);
            None
        }
        false => read_chain_step(&fields, handlers, findings),
    };
    Some(ChainNode { id: id?, role: role.map_or(ChainNodeRole::End, ChainNodeRole::Step) })
}

/// Reports settings of a step on an end node.
fn check_end_node_keys(item: &YamlNode, findings: &mut Findings) {
    for entry in item.entries().iter().filter(|entry| !matches!(entry.key.as_str(), "id" | "end")) {
        if CHAIN_NODE_KEYS.names.contains(&entry.key.as_str()) {
            let message = format!("a node with `end: true` has no `{}`: orders end there", entry.key);
            findings.add_fault(&entry.key_location, message);
        }
    }
}

fn read_chain_step(
    fields: &CheckedMap,
    handlers: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> Option<ChainStep> {
    let handler = match fields.get("handler") {
        Some(node) => read_step_handler(node, handlers, findings),
        None => {
            let message = "a node needs a `handler`, which runs the step, or `end: true`";
            findings.add_fault(&fields.node.location, message);
            None
        }
    };
    let next = match fields.get("next") {
        Some(node) => read_chain_node_id(node, findings),
        None if handler.is_some() => {
            findings.add_fault(&fields.node.location, "a step needs `next`: the node that its order goes to");
            None
        }
        None => None,
    };
    let on_error = fields.get("on_error").and_then(|n| read_chain_node_id(n, findings));
    let setback = fields.get("setback").and_then(|n| retry::read_setback(n, findings));
    Some(ChainStep { handler: handler?, next: next?, on_error, retry: setback })
}

pub(super) fn read_chain_node_id(node: &YamlNode, findings: &mut Findings) -> Option<ChainNodeId> {
    parse_scalar(node, findings, |text| {
        ChainNodeId::new(text).map_err(|_| invalid_id_message(text, "a node"))
    })
}

/// The message of the fault for an invalid id. Orders and nodes have the same format of ids.
pub(super) fn invalid_id_message(text: &str, owner: &str) -> String {
    format!("{text:?} is not the id of {owner}: 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`")
}

/// Reads the name of a step's handler. A handler that does not exist is reported, and its name is still returned.
fn read_step_handler(
    node: &YamlNode,
    defined: &DefinedHandlersAndSources,
    findings: &mut Findings,
) -> Option<HandlerName> {
    let name = parse_scalar(node, findings, str::parse::<HandlerName>)?;
    check_handler_exists(node, &name, defined, "takes no steps", findings);
    Some(name)
}

/// Reads the path of a chain that must exist.
pub(super) fn read_chain_reference(
    node: &YamlNode,
    defined: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<ChainPath> {
    let path = parse_scalar(node, findings, str::parse::<ChainPath>)?;
    check_chain_exists(node, &path, defined, findings).then_some(path)
}

/// Whether the chain is defined. Reports a fault if the chain is not defined.
pub(super) fn check_chain_exists(
    node: &YamlNode,
    path: &ChainPath,
    defined: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> bool {
    let exists = defined.contains_key(path);
    if !exists {
        let suggestion = did_you_mean_suffix(path.as_str(), defined.keys().map(ChainPath::as_str));
        findings.add_fault(&node.location, format!("there is no chain {path}{suggestion}"));
    }
    exists
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::task::retry::{Backoff, RetryPolicy};

    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_all_chains(node: &YamlNode, findings: &mut Findings) -> Option<Vec<Chain>> {
        let names = |names: &[&str]| names.iter().map(|name| HandlerName::new(name).unwrap()).collect();
        let defined =
            DefinedHandlersAndSources { handlers: names(&["render", "deploy"]), sources: names(&["shop"]) };
        Some(
            read_chains(node, &defined, findings)
                .chains
                .into_iter()
                .map(|chain_config| chain_config.chain)
                .collect(),
        )
    }

    #[test]
    fn chain_steps_and_end_nodes_are_read() {
        let text = "/publish/article:\n  nodes:\n  - {id: render, handler: render, next: deploy, on_error: failed}\n\
                    \x20 - {id: deploy, handler: deploy, next: done, on_error: failed, setback: {delay: 30s, max: 5}}\n\
                    \x20 - {id: done, end: true}\n  - {id: failed, end: true}\n";
        let chains = read_value_from_yaml(text, read_all_chains).unwrap();
        assert_eq!(chains[0].path.as_str(), "/publish/article");
        let ids: Vec<&str> = chains[0].nodes.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids, ["render", "deploy", "done", "failed"]);
        let ChainNodeRole::Step(first) = &chains[0].nodes[0].role else { panic!("{chains:?}") };
        assert_eq!((first.handler.as_str(), first.next.as_str()), ("render", "deploy"));
        assert_eq!((first.on_error.as_ref().map(ChainNodeId::as_str), &first.retry), (Some("failed"), &None));
        let ChainNodeRole::Step(second) = &chains[0].nodes[1].role else { panic!("{chains:?}") };
        let delay = Duration::from_secs(30);
        let want = RetryPolicy { max_retries: 5, backoff: Backoff::Fixed, delay, ..RetryPolicy::default() };
        assert_eq!(second.retry, Some(want), "the delay is the same every time");
        assert_eq!(chains[0].nodes[3].role, ChainNodeRole::End);
    }

    #[test]
    fn every_fault_of_a_chain_node_is_reported() {
        let text = "/a:\n  nodes:\n  - {id: a, handler: rendr, next: b}\n  - {id: b, handler: shop, next: c}\n\
                    \x20 - {id: c, handler: render}\n  - {id: d}\n  - {id: e, end: true, next: a, hander: x}\n\
                    \x20 - {id: f g, end: maybe, handler: render, next: a}\n  - {handler: render, next: a}\n  - x\n\
                    \x20 - {id: h, handler: render, next: e, setback: {delay: soon, dely: 1s}}\n";
        assert_eq!(
            fault_messages(text, read_all_chains),
            [
                "there is no handler \"rendr\"; did you mean `render`?",
                "\"shop\" is a source, and a source takes no steps",
                "a step needs `next`: the node that its order goes to",
                "a node needs a `handler`, which runs the step, or `end: true`",
                "a node with `end: true` has no `next`: orders end there",
                "unknown setting \"hander\" of a node; did you mean `handler`?",
                "\"f g\" is not the id of a node: 1 to 128 letters, digits, `.`, `_` and `-`",
                "\"maybe\" is neither true nor false",
                "a node needs `id`",
                "a node must be a map, not a plain value",
                "\"soon\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
                "unknown setting \"dely\" of `setback`; did you mean `delay`?",
            ]
        );
    }

    #[test]
    fn every_fault_of_a_chain_is_reported() {
        let text = "/a: {nodes: [{id: a, handler: render, next: bb, on_error: a}, {id: b, end: true}]}\n\
                    /b: {nodes: [{id: a, handler: render, next: a}]}\n\
                    /c: {nodes: [{id: a, end: true}, {id: a, end: true}]}\n\
                    /d: {nodes: []}\n/e: {}\n/f: {nodes: x}\n/g: []\n\
                    h: {nodes: [{id: a, end: true}]}\n/i//j: {node: []}\n\
                    /k: {nodes: [{id: a, handler: rendr, next: nowhere}]}\n";
        assert_eq!(
            fault_messages(text, read_all_chains),
            [
                "`next` names the node bb, which does not exist; did you mean `b`?",
                "no path leads from a to an end node",
                "the id a is already used by node 1",
                "the chain \"/d\" needs at least one node",
                "the chain \"/e\" needs `nodes`: where its orders go",
                "`nodes` must be a list, not a plain value",
                "a chain must be a map, not a list",
                "\"h\" is not the path of a chain: it must begin with a slash; write one like `/folder/name`",
                "\"/i//j\" is not the path of a chain: its parts may contain only letters, digits, `.`, `_` and `-`; write one like \
                 `/folder/name`",
                "the chain \"/i//j\" needs `nodes`: where its orders go",
                "unknown setting \"node\" of a chain; did you mean `nodes`?",
                "there is no handler \"rendr\"; did you mean `render`?",
                "`next` names the node nowhere, which does not exist",
            ]
        );
    }

    #[test]
    fn a_chain_with_too_many_nodes_is_a_fault_at_the_first_excess_node() {
        let nodes: Vec<String> = (0..=MAX_CHAIN_NODES)
            .map(|n| format!("{{id: n{n}, handler: render, next: n{}}}", n + 1))
            .collect();
        let text = format!("/a: {{nodes: [{}]}}", nodes.join(", "));
        assert_eq!(fault_messages(&text, read_all_chains), ["a chain has at most 1000 nodes"]);
    }
}
