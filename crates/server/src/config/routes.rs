//! `event_handlers`: which handlers an event goes to, and which chains it makes an order for, by its handling key.

use pointsman_core::chain::ChainPath;
use pointsman_core::route::{Binding, ChainRoutes};
use pointsman_core::{HandlingKey, Routes};

use super::chains::{self, KnownChains};
use super::decode::{Fields, Keys, boolean, entries, items};
use super::fault::Findings;
use super::handlers::{Known, reference};
use super::yaml::{Kind, Node};

const BINDING: Keys = Keys { of: "an entry", known: &["handler", "sync", "chain"], later: &[] };

/// What the section comes to.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) routes: Routes,
    pub(super) chain_routes: ChainRoutes,
}

/// What an entry names.
enum Target {
    Handler(Binding),
    Chain(ChainPath),
}

impl Target {
    fn name(&self) -> &str {
        match self {
            Self::Handler(binding) => binding.handler.as_str(),
            Self::Chain(path) => path.as_str(),
        }
    }
}

/// Reads the routes; every handler and every chain they name must be a known one.
pub(super) fn read(node: &Node, known: &Known, chains: &KnownChains, findings: &mut Findings) -> Section {
    let mut section = Section::default();
    for entry in entries(node, "`event_handlers`", findings).unwrap_or_default() {
        let key =
            HandlingKey::new(&entry.key).map_err(|error| findings.fault(&entry.at, error.to_string())).ok();
        let mut named: Vec<String> = Vec::new();
        for item in items(&entry.value, "what an event goes to", findings).unwrap_or_default() {
            let Some(target) = target(item, known, chains, findings) else { continue };
            if named.iter().any(|name| name == target.name()) {
                findings.fault(&item.place, format!("{:?} stands twice in this list", target.name()));
                continue;
            }
            named.push(target.name().to_owned());
            match (&key, target) {
                (Some(key), Target::Handler(binding)) => section.routes.bind(key.clone(), binding),
                (Some(key), Target::Chain(path)) => section.chain_routes.bind(key.clone(), path),
                (None, _) => {}
            }
        }
    }
    section
}

/// A handler's name, a chain's path, or a map that says more.
fn target(node: &Node, known: &Known, chains: &KnownChains, findings: &mut Findings) -> Option<Target> {
    if matches!(&node.kind, Kind::Scalar { text, .. } if text.starts_with('/')) {
        return chains::reference(node, chains, findings).map(Target::Chain);
    }
    if !matches!(node.kind, Kind::Map(_)) {
        return reference(node, known, findings).map(|name| Target::Handler(Binding::queued(name)));
    }
    let fields = Fields::open(node, &BINDING, findings)?;
    let sync = fields.or("sync", false, findings, boolean);
    let Some(chain) = fields.get("chain") else {
        let handler =
            fields.need("handler", "an entry", findings).and_then(|n| reference(n, known, findings));
        return Some(Target::Handler(Binding { handler: handler?, sync }));
    };
    if let Some(node) = fields.get("handler") {
        findings.fault(&node.place, "an entry names either a `handler` or a `chain`, not both");
    }
    if let Some(node) = fields.get("sync").filter(|_| sync) {
        findings.fault(&node.place, "nobody waits for an order: `sync` is for handlers");
    }
    chains::reference(chain, chains, findings).map(Target::Chain)
}

#[cfg(test)]
mod tests {
    use pointsman_core::HandlerName;

    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn known(node: &Node, findings: &mut Findings) -> Option<Section> {
        let names = |names: &[&str]| names.iter().map(|name| HandlerName::new(name).unwrap()).collect();
        let known = Known { handlers: names(&["index", "notify"]), sources: names(&["shop"]) };
        let chains = [(ChainPath::new("/publish/article").unwrap(), vec![])].into();
        Some(read(node, &known, &chains, findings))
    }

    #[test]
    fn lists_keep_their_order() {
        let routes = read_text("record: [notify, {handler: index, sync: true}]", known).unwrap().routes;
        let (key, list) = routes.iter().next().unwrap();
        assert_eq!(key.as_str(), "record");
        assert_eq!(
            list.iter().map(|b| (b.handler.as_str(), b.sync)).collect::<Vec<_>>(),
            [("notify", false), ("index", true)]
        );
    }

    #[test]
    fn what_begins_with_a_slash_is_a_chain() {
        let text = "record: [/publish/article, index]\nother: [{chain: /publish/article}]";
        let Section { routes, chain_routes } = read_text(text, known).unwrap();
        assert_eq!(
            routes.iter().map(|(key, list)| (key.as_str(), list.len())).collect::<Vec<_>>(),
            [("record", 1)]
        );
        let told: Vec<(&str, &str)> =
            chain_routes.iter().map(|(key, list)| (key.as_str(), list[0].as_str())).collect();
        assert_eq!(told, [("other", "/publish/article"), ("record", "/publish/article")]);
        assert_eq!(
            faults_of(
                "a: [/publish/artcle, /publish/article, {chain: /publish/article}, /x//y]\n\
                 b: [{chain: publish}, {chain: /publish/article, handler: index, sync: true}]\n",
                known
            ),
            [
                "there is no chain /publish/artcle; did you mean `/publish/article`?",
                "\"/publish/article\" stands twice in this list",
                "\"/x//y\" is not the path of a chain: its parts may contain only letters, digits, `.`, `_` and `-`; write one like \
                 `/folder/name`",
                "\"publish\" is not the path of a chain: it must begin with a slash; write one like `/folder/name`",
                "an entry names either a `handler` or a `chain`, not both",
                "nobody waits for an order: `sync` is for handlers",
            ]
        );
    }

    #[test]
    fn every_fault_is_told() {
        assert_eq!(
            faults_of(
                "a..b: [index]\nrecord: [indx, notify, notify, {handler: banana, sync: maybe}]\nc: index\nd: [shop]\n",
                known
            ),
            [
                "\"a..b\" has an empty segment between its dots",
                "there is no handler \"indx\"; did you mean `index`?",
                "\"notify\" stands twice in this list",
                "there is no handler \"banana\"",
                "\"maybe\" is neither true nor false",
                "what an event goes to must be a list, not a plain value",
                "\"shop\" is a source, and a source gets no events",
            ]
        );
    }
}
