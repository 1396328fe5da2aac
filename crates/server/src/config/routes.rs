//! `event_handlers`: which handlers an event goes to, by its handling key.

use pointsman_core::route::Binding;
use pointsman_core::{HandlerName, HandlingKey, Routes};

use super::decode::{Fields, Keys, boolean, entries, items};
use super::fault::Findings;
use super::handlers::{Known, reference};
use super::yaml::{Kind, Node};

const BINDING: Keys = Keys { of: "an entry", known: &["handler", "sync"], later: &[] };

/// Reads the routes; every handler they name must be a known one.
pub(super) fn read(node: &Node, known: &Known, findings: &mut Findings) -> Routes {
    let mut routes = Routes::new();
    for entry in entries(node, "`event_handlers`", findings).unwrap_or_default() {
        let key =
            HandlingKey::new(&entry.key).map_err(|error| findings.fault(&entry.at, error.to_string())).ok();
        let mut named: Vec<HandlerName> = Vec::new();
        for item in items(&entry.value, "what an event goes to", findings).unwrap_or_default() {
            let Some(binding) = binding(item, known, findings) else { continue };
            if named.contains(&binding.handler) {
                let name = binding.handler.as_str();
                findings.fault(&item.place, format!("{name:?} stands twice in this list"));
                continue;
            }
            named.push(binding.handler.clone());
            if let Some(key) = &key {
                routes.bind(key.clone(), binding);
            }
        }
    }
    routes
}

/// A handler's name, or a map that says more.
fn binding(node: &Node, known: &Known, findings: &mut Findings) -> Option<Binding> {
    if !matches!(node.kind, Kind::Map(_)) {
        return reference(node, known, findings).map(Binding::queued);
    }
    let fields = Fields::open(node, &BINDING, findings)?;
    let handler = fields.need("handler", "an entry", findings).and_then(|n| reference(n, known, findings));
    let sync = fields.or("sync", false, findings, boolean);
    Some(Binding { handler: handler?, sync })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn known(node: &Node, findings: &mut Findings) -> Option<Routes> {
        let names = |names: &[&str]| names.iter().map(|name| HandlerName::new(name).unwrap()).collect();
        let known = Known { handlers: names(&["index", "notify"]), sources: names(&["shop"]) };
        Some(read(node, &known, findings))
    }

    #[test]
    fn lists_keep_their_order() {
        let routes = read_text("record: [notify, {handler: index, sync: true}]", known).unwrap();
        let (key, list) = routes.iter().next().unwrap();
        assert_eq!(key.as_str(), "record");
        assert_eq!(
            list.iter().map(|b| (b.handler.as_str(), b.sync)).collect::<Vec<_>>(),
            [("notify", false), ("index", true)]
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
