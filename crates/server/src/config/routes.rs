//! Reads the section `event_handlers`: the handlers of an event type, and the chains to which its events add orders.

use pointsman_core::chain::ChainPath;
use pointsman_core::route::{ChainRoutes, HandlerBinding};
use pointsman_core::{EventType, Routes};

use super::chains::{self, NodeIdsOfDefinedChains};
use super::decode::{AllowedKeys, CheckedMap, read_boolean, read_list_items, read_map_entries};
use super::fault::Findings;
use super::handlers::{DefinedHandlersAndSources, read_handler_reference};
use super::yaml::{YamlKind, YamlNode};

const ROUTE_ENTRY_KEYS: AllowedKeys =
    AllowedKeys { described_thing: "an entry", names: &["handler", "sync", "chain"], not_yet_supported: &[] };

/// The section `event_handlers`.
#[derive(Debug, Default)]
pub(super) struct RoutesSection {
    pub(super) routes: Routes,
    pub(super) chain_routes: ChainRoutes,
}

/// The target of a route entry.
enum RouteTarget {
    Handler(HandlerBinding),
    Chain(ChainPath),
}

impl RouteTarget {
    fn name(&self) -> &str {
        match self {
            Self::Handler(binding) => binding.handler.as_str(),
            Self::Chain(path) => path.as_str(),
        }
    }
}

/// Reads the routes. A route to a handler or chain that is not defined is a fault.
pub(super) fn read_routes(
    node: &YamlNode,
    defined: &DefinedHandlersAndSources,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> RoutesSection {
    let mut section = RoutesSection::default();
    for entry in read_map_entries(node, "`event_handlers`", findings).unwrap_or_default() {
        let key = EventType::new(&entry.key)
            .map_err(|error| findings.add_fault(&entry.key_location, error.to_string()))
            .ok();
        let mut named: Vec<String> = Vec::new();
        for item in
            read_list_items(&entry.value, "the targets of an event type", findings).unwrap_or_default()
        {
            let Some(target) = read_route_target(item, defined, chains, findings) else { continue };
            if named.iter().any(|name| name == target.name()) {
                findings.add_fault(&item.location, format!("{:?} is listed twice", target.name()));
                continue;
            }
            named.push(target.name().to_owned());
            match (&key, target) {
                (Some(key), RouteTarget::Handler(binding)) => section.routes.bind(key.clone(), binding),
                (Some(key), RouteTarget::Chain(path)) => section.chain_routes.bind(key.clone(), path),
                (None, _) => {}
            }
        }
    }
    section
}

/// Reads an entry: a handler's name, a chain's path, or a map with more settings.
fn read_route_target(
    node: &YamlNode,
    defined: &DefinedHandlersAndSources,
    chains: &NodeIdsOfDefinedChains,
    findings: &mut Findings,
) -> Option<RouteTarget> {
    if matches!(&node.kind, YamlKind::Scalar { text, .. } if text.starts_with('/')) {
        return chains::read_chain_reference(node, chains, findings).map(RouteTarget::Chain);
    }
    if !matches!(node.kind, YamlKind::Map(_)) {
        return read_handler_reference(node, defined, findings)
            .map(|name| RouteTarget::Handler(HandlerBinding::new_queued(name)));
    }
    let fields = CheckedMap::from_node_with_known_keys(node, &ROUTE_ENTRY_KEYS, findings)?;
    let sync = fields.read_or_default("sync", false, findings, read_boolean);
    let Some(chain) = fields.get("chain") else {
        let handler = fields
            .get_required("handler", "an entry", findings)
            .and_then(|n| read_handler_reference(n, defined, findings));
        return Some(RouteTarget::Handler(HandlerBinding { handler: handler?, sync }));
    };
    if let Some(node) = fields.get("handler") {
        findings.add_fault(&node.location, "an entry names either a `handler` or a `chain`, not both");
    }
    if let Some(node) = fields.get("sync").filter(|_| sync) {
        findings.add_fault(&node.location, "`sync` is for handlers: nothing waits for an order of a chain");
    }
    chains::read_chain_reference(chain, chains, findings).map(RouteTarget::Chain)
}

#[cfg(test)]
mod tests {
    use pointsman_core::HandlerName;

    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_routes_to_known_targets(node: &YamlNode, findings: &mut Findings) -> Option<RoutesSection> {
        let names = |names: &[&str]| names.iter().map(|name| HandlerName::new(name).unwrap()).collect();
        let defined =
            DefinedHandlersAndSources { handlers: names(&["index", "notify"]), sources: names(&["shop"]) };
        let chains = [(ChainPath::new("/publish/article").unwrap(), vec![])].into();
        Some(read_routes(node, &defined, &chains, findings))
    }

    #[test]
    fn handlers_of_a_route_keep_their_order() {
        let routes = read_value_from_yaml(
            "record: [notify, {handler: index, sync: true}]",
            read_routes_to_known_targets,
        )
        .unwrap()
        .routes;
        let (key, list) = routes.iter().next().unwrap();
        assert_eq!(key.as_str(), "record");
        assert_eq!(
            list.iter().map(|b| (b.handler.as_str(), b.sync)).collect::<Vec<_>>(),
            [("notify", false), ("index", true)]
        );
    }

    #[test]
    fn route_entries_with_a_leading_slash_are_chains() {
        let text = "record: [/publish/article, index]\nother: [{chain: /publish/article}]";
        let RoutesSection { routes, chain_routes } =
            read_value_from_yaml(text, read_routes_to_known_targets).unwrap();
        assert_eq!(
            routes.iter().map(|(key, list)| (key.as_str(), list.len())).collect::<Vec<_>>(),
            [("record", 1)]
        );
        let routed_chains: Vec<(&str, &str)> =
            chain_routes.iter().map(|(key, list)| (key.as_str(), list[0].as_str())).collect();
        assert_eq!(routed_chains, [("other", "/publish/article"), ("record", "/publish/article")]);
        assert_eq!(
            fault_messages(
                "a: [/publish/artcle, /publish/article, {chain: /publish/article}, /x//y]\n\
                 b: [{chain: publish}, {chain: /publish/article, handler: index, sync: true}]\n",
                read_routes_to_known_targets
            ),
            [
                "there is no chain /publish/artcle; did you mean `/publish/article`?",
                "\"/publish/article\" is listed twice",
                "\"/x//y\" is not the path of a chain: its parts may contain only letters, digits, `.`, `_` and `-`; write one like \
                 `/folder/name`",
                "\"publish\" is not the path of a chain: it must begin with a slash; write one like `/folder/name`",
                "an entry names either a `handler` or a `chain`, not both",
                "`sync` is for handlers: nothing waits for an order of a chain",
            ]
        );
    }

    #[test]
    fn every_invalid_route_entry_is_reported() {
        assert_eq!(
            fault_messages(
                "a..b: [index]\nrecord: [indx, notify, notify, {handler: banana, sync: maybe}]\nc: index\nd: [shop]\n",
                read_routes_to_known_targets
            ),
            [
                "\"a..b\" has an empty segment between its dots",
                "there is no handler \"indx\"; did you mean `index`?",
                "\"notify\" is listed twice",
                "there is no handler \"banana\"",
                "\"maybe\" is neither true nor false",
                "the targets of an event type must be a list, not a plain value",
                "\"shop\" is a source, and a source gets no events",
            ]
        );
    }
}
