//! Routes: which handlers and chains an event goes to.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::chain::ChainPath;
use crate::{HandlerName, HandlingKey};

/// A handler in the list of a handling key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerBinding {
    pub handler: HandlerName,
    /// The handler runs before the queued ones, in list order, one after the other.
    pub sync: bool,
}

impl HandlerBinding {
    pub fn new_queued(handler: HandlerName) -> Self {
        Self { handler, sync: false }
    }

    pub fn new_sync(handler: HandlerName) -> Self {
        Self { handler, sync: true }
    }
}

/// Handling keys and their handlers, each list in its configured order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes(BTreeMap<HandlingKey, Vec<HandlerBinding>>);

impl Routes {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler to the end of a key's list.
    pub fn bind(&mut self, key: HandlingKey, binding: HandlerBinding) {
        self.0.entry(key).or_default().push(binding);
    }

    /// Appends the entries of `other` that are not in the lists yet.
    pub fn merge(&mut self, other: Self) {
        merge_lists(&mut self.0, other.0);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&HandlingKey, &[HandlerBinding])> {
        self.0.iter().map(|(key, list)| (key, list.as_slice()))
    }

    /// The handlers of an event of this type: those of its ancestors first, each list in order, each handler
    /// once, at its first position. The synchronous ones come before the queued ones; a handler that is
    /// bound twice is synchronous if either binding says so.
    pub fn resolve_handlers(&self, kind: &HandlingKey) -> Vec<HandlerBinding> {
        let mut found: Vec<HandlerBinding> = Vec::new();
        let mut index_of: HashMap<&HandlerName, usize> = HashMap::new();
        for ancestor in kind.self_and_ancestors() {
            let Ok(ancestor) = HandlingKey::new(ancestor) else { continue };
            for binding in self.0.get(&ancestor).into_iter().flatten() {
                match index_of.get(&binding.handler) {
                    Some(&index) => found[index].sync |= binding.sync,
                    None => {
                        index_of.insert(&binding.handler, found.len());
                        found.push(binding.clone());
                    }
                }
            }
        }
        found.sort_by_key(|binding| !binding.sync);
        found
    }
}

/// Handling keys and the chains for which their events start orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRoutes(BTreeMap<HandlingKey, Vec<ChainPath>>);

impl ChainRoutes {
    pub fn bind(&mut self, key: HandlingKey, chain: ChainPath) {
        self.0.entry(key).or_default().push(chain);
    }

    /// Appends the entries of `other` that are not in the lists yet.
    pub fn merge(&mut self, other: Self) {
        merge_lists(&mut self.0, other.0);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&HandlingKey, &[ChainPath])> {
        self.0.iter().map(|(key, list)| (key, list.as_slice()))
    }

    /// The chains of an event of this type: those of its ancestors first, each once.
    pub fn resolve_chains(&self, kind: &HandlingKey) -> Vec<ChainPath> {
        let mut found: Vec<ChainPath> = Vec::new();
        for ancestor in kind.self_and_ancestors().filter_map(|ancestor| HandlingKey::new(ancestor).ok()) {
            for chain in self.0.get(&ancestor).into_iter().flatten() {
                if !found.contains(chain) {
                    found.push(chain.clone());
                }
            }
        }
        found
    }
}

fn merge_lists<T: PartialEq>(
    lists: &mut BTreeMap<HandlingKey, Vec<T>>,
    others: BTreeMap<HandlingKey, Vec<T>>,
) {
    for (key, others) in others {
        let list = lists.entry(key).or_default();
        for other in others {
            if !list.contains(&other) {
                list.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(entries: &[(&str, &[(&str, bool)])]) -> Routes {
        let mut routes = Routes::new();
        for (key, list) in entries {
            for (handler, sync) in *list {
                let handler = HandlerName::new(handler).unwrap();
                routes.bind(HandlingKey::new(key).unwrap(), HandlerBinding { handler, sync: *sync });
            }
        }
        routes
    }

    fn resolved_names(routes: &Routes, kind: &str) -> Vec<String> {
        let kind = HandlingKey::new(kind).unwrap();
        let format_binding = |b: HandlerBinding| format!("{}{}", b.handler, if b.sync { "!" } else { "" });
        routes.resolve_handlers(&kind).into_iter().map(format_binding).collect()
    }

    #[test]
    fn parents_come_first_and_lists_keep_their_order() {
        let routes = routes(&[
            ("record", &[("audit", false), ("count", false)]),
            ("record.published", &[("index", false), ("notify", false)]),
        ]);
        assert_eq!(resolved_names(&routes, "record.published"), ["audit", "count", "index", "notify"]);
        assert_eq!(resolved_names(&routes, "record.published.again"), ["audit", "count", "index", "notify"]);
        assert_eq!(resolved_names(&routes, "record"), ["audit", "count"]);
        assert!(resolved_names(&routes, "records.published").is_empty());
    }

    #[test]
    fn synchronous_handlers_run_before_queued_ones() {
        let routes =
            routes(&[("a", &[("one", false)]), ("a.b", &[("two", true), ("three", false), ("four", true)])]);
        assert_eq!(resolved_names(&routes, "a.b"), ["two!", "four!", "one", "three"]);
    }

    #[test]
    fn a_handler_bound_to_parent_and_child_is_listed_once() {
        let routes = routes(&[("a", &[("x", false), ("y", false)]), ("a.b", &[("x", true)])]);
        assert_eq!(resolved_names(&routes, "a.b"), ["x!", "y"]);
    }
}
