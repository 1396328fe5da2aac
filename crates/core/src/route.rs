//! Routes: which handlers and chains an event goes to.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::chain::ChainPath;
use crate::{EventType, HandlerName};

/// A handler in the list of an event type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerBinding {
    /// The handler.
    pub handler: HandlerName,
    /// The handler's task is synchronous: synchronous tasks run one after the other, in list order, before the event's
    /// queued tasks.
    pub sync: bool,
}

impl HandlerBinding {
    /// A binding whose tasks are queued.
    pub fn new_queued(handler: HandlerName) -> Self {
        Self { handler, sync: false }
    }

    /// A binding whose tasks are synchronous.
    pub fn new_sync(handler: HandlerName) -> Self {
        Self { handler, sync: true }
    }
}

/// Event types and the handlers of each, in the configured order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes(BTreeMap<EventType, Vec<HandlerBinding>>);

impl Routes {
    /// No routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler to the end of an event type's list.
    pub fn bind(&mut self, event_type: EventType, binding: HandlerBinding) {
        self.0.entry(event_type).or_default().push(binding);
    }

    /// Appends the entries of `other` that are not in the lists yet.
    pub fn merge(&mut self, other: Self) {
        merge_lists(&mut self.0, other.0);
    }

    /// The event types and the handlers of each, in the configured order.
    pub fn iter(&self) -> impl Iterator<Item = (&EventType, &[HandlerBinding])> {
        self.0.iter().map(|(event_type, list)| (event_type, list.as_slice()))
    }

    /// The handlers of an event of this type: those of its ancestors first, each list in order, each handler
    /// once, at its first position. The synchronous ones come before the queued ones; a handler that is
    /// bound twice is synchronous if either binding says so.
    pub fn find_handlers_of_event_type(&self, event_type: &EventType) -> Vec<HandlerBinding> {
        let mut found: Vec<HandlerBinding> = Vec::new();
        let mut index_of: HashMap<&HandlerName, usize> = HashMap::new();
        for ancestor in event_type.self_and_ancestors() {
            let Ok(ancestor) = EventType::new(ancestor) else { continue };
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

/// Event types and the chains for which their events start orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRoutes(BTreeMap<EventType, Vec<ChainPath>>);

impl ChainRoutes {
    /// Adds a chain to the end of an event type's list.
    pub fn bind(&mut self, event_type: EventType, chain: ChainPath) {
        self.0.entry(event_type).or_default().push(chain);
    }

    /// Appends the entries of `other` that are not in the lists yet.
    pub fn merge(&mut self, other: Self) {
        merge_lists(&mut self.0, other.0);
    }

    /// The event types and the chains of each, in the configured order.
    pub fn iter(&self) -> impl Iterator<Item = (&EventType, &[ChainPath])> {
        self.0.iter().map(|(event_type, list)| (event_type, list.as_slice()))
    }

    /// The chains of an event of this type: those of its ancestors first, each once.
    pub fn find_chains_of_event_type(&self, event_type: &EventType) -> Vec<ChainPath> {
        let mut found: Vec<ChainPath> = Vec::new();
        for ancestor in event_type.self_and_ancestors().filter_map(|ancestor| EventType::new(ancestor).ok()) {
            for chain in self.0.get(&ancestor).into_iter().flatten() {
                if !found.contains(chain) {
                    found.push(chain.clone());
                }
            }
        }
        found
    }
}

fn merge_lists<T: PartialEq>(lists: &mut BTreeMap<EventType, Vec<T>>, others: BTreeMap<EventType, Vec<T>>) {
    for (event_type, others) in others {
        let list = lists.entry(event_type).or_default();
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

    fn build_routes(entries: &[(&str, &[(&str, bool)])]) -> Routes {
        let mut routes = Routes::new();
        for (key, list) in entries {
            for (handler, sync) in *list {
                let handler = HandlerName::new(handler).unwrap();
                routes.bind(EventType::new(key).unwrap(), HandlerBinding { handler, sync: *sync });
            }
        }
        routes
    }

    fn find_and_format_handlers(routes: &Routes, event_type: &str) -> Vec<String> {
        let event_type = EventType::new(event_type).unwrap();
        let format_binding = |b: HandlerBinding| format!("{}{}", b.handler, if b.sync { "!" } else { "" });
        routes.find_handlers_of_event_type(&event_type).into_iter().map(format_binding).collect()
    }

    #[test]
    fn handlers_of_parent_types_come_first_and_lists_keep_their_order() {
        let routes = build_routes(&[
            ("record", &[("audit", false), ("count", false)]),
            ("record.published", &[("index", false), ("notify", false)]),
        ]);
        assert_eq!(
            find_and_format_handlers(&routes, "record.published"),
            ["audit", "count", "index", "notify"]
        );
        assert_eq!(
            find_and_format_handlers(&routes, "record.published.again"),
            ["audit", "count", "index", "notify"]
        );
        assert_eq!(find_and_format_handlers(&routes, "record"), ["audit", "count"]);
        assert!(find_and_format_handlers(&routes, "records.published").is_empty());
    }

    #[test]
    fn synchronous_handlers_are_listed_before_queued_ones() {
        let routes = build_routes(&[
            ("a", &[("one", false)]),
            ("a.b", &[("two", true), ("three", false), ("four", true)]),
        ]);
        assert_eq!(find_and_format_handlers(&routes, "a.b"), ["two!", "four!", "one", "three"]);
    }

    #[test]
    fn a_handler_bound_to_parent_and_child_is_listed_once() {
        let routes = build_routes(&[("a", &[("x", false), ("y", false)]), ("a.b", &[("x", true)])]);
        assert_eq!(find_and_format_handlers(&routes, "a.b"), ["x!", "y"]);
    }
}
