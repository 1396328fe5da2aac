//! Chains as data: nodes that run handlers, and the links between them that orders follow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::HandlerName;
use crate::names::{BadName, CollectionName, MAX_NAME_BYTES, MAX_OBJECT_KEY_BYTES};
use crate::task::retry::RetryPolicy;

/// The absolute path of a chain, its folders separated by slashes (`/publish/article`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainPath(Arc<str>);

impl ChainPath {
    /// Validates a path.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        let bad = |why: &str| {
            BadName::with_reason(format!(
                "{text:?} is not the path of a chain: {why}; write one like `/folder/name`"
            ))
        };
        let Some(relative_path) = text.strip_prefix('/') else {
            return Err(bad("it must begin with a slash"));
        };
        // In the stream an order's key is `Order:`, the path, a comma and its id, and the length of a key is limited.
        if "Order:".len() + text.len() + 1 + MAX_NAME_BYTES > MAX_OBJECT_KEY_BYTES {
            return Err(bad("it is too long"));
        }
        for segment in relative_path.split('/') {
            parse_id_or_path_segment("", segment)
                .map_err(|_| bad("its parts may contain only letters, digits, `.`, `_` and `-`"))?;
        }
        Ok(Self(text.into()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a node within its chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainNodeId(CollectionName);

impl ChainNodeId {
    /// Validates a node's id.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        parse_id_or_path_segment("a node", text.as_ref()).map(Self)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The id of an order within its chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(CollectionName);

impl OrderId {
    /// Validates an order's id.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        parse_id_or_path_segment("an order", text.as_ref()).map(Self)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether this id is a number of the kind that only the store generates: for orders that events start, and for
    /// orders that are added without an id.
    pub fn is_generated(&self) -> bool {
        self.as_str().len() >= MIN_GENERATED_ID_DIGITS
            && self.as_str().bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// A number with at least this many digits is reserved for ids that the store generates.
pub const MIN_GENERATED_ID_DIGITS: usize = 13;

/// Parses the id of a node or an order, or a segment of a chain path. Rejects `.` and `..`, which have a special
/// meaning in URLs.
fn parse_id_or_path_segment(owner: &str, text: &str) -> Result<CollectionName, BadName> {
    let name = CollectionName::new(text).ok().filter(|_| text != "." && text != "..");
    name.ok_or_else(|| {
        BadName::with_reason(format!(
            "{text:?} is not the id of {owner}: 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`"
        ))
    })
}

/// The full name of an order: `/chain/path,id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderKey {
    /// The chain that the order runs through.
    pub chain: ChainPath,
    /// The order's id within its chain and tenant.
    pub id: OrderId,
}

macro_rules! impl_display_and_from_str {
    ($($name:ident),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }
    )+};
}
impl_display_and_from_str!(ChainPath, ChainNodeId, OrderId);

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.chain, self.id)
    }
}

impl std::str::FromStr for OrderKey {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((chain, id)) = text.split_once(',') else {
            return Err(BadName::with_reason(format!("{text:?} is not an order; write `/chain/path,id`")));
        };
        Ok(Self { chain: ChainPath::new(chain)?, id: OrderId::new(id)? })
    }
}

macro_rules! impl_string_conversions {
    ($($name:ident),+) => {$(
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.to_string()
            }
        }
    )+};
}
impl_string_conversions!(ChainPath, OrderKey);

/// A chain. Orders start at its first node unless they name another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The path, which identifies the chain.
    pub path: ChainPath,
    /// The nodes, in the configured order.
    pub nodes: Vec<ChainNode>,
}

/// A node of a chain: a step or an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainNode {
    /// The node's id within its chain.
    pub id: ChainNodeId,
    /// What happens to an order that arrives at the node.
    pub role: ChainNodeRole,
}

/// The role of a node: a step to run, or an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChainNodeRole {
    /// The node runs a step.
    Step(ChainStep),
    /// The order finishes when it arrives here.
    End,
}

/// A step: a task of a handler, and the nodes to which the order moves afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainStep {
    /// The handler that runs the step.
    pub handler: HandlerName,
    /// The node to which the order moves when the step has succeeded.
    pub next: ChainNodeId,
    /// The node to which the order moves when the step has failed for good. None: the order is suspended at this node.
    pub on_error: Option<ChainNodeId>,
    /// How often and when a failed step is retried, instead of the handler's policy.
    #[serde(rename = "setback")]
    pub retry: Option<RetryPolicy>,
}

impl Chain {
    /// Finds a node by its id.
    pub fn find_node(&self, id: &ChainNodeId) -> Option<&ChainNode> {
        self.nodes.iter().find(|node| node.id == *id)
    }

    /// The handlers of the chain's steps.
    pub fn handlers(&self) -> impl Iterator<Item = &HandlerName> {
        self.nodes.iter().filter_map(|node| match &node.role {
            ChainNodeRole::Step(step) => Some(&step.handler),
            ChainNodeRole::End => None,
        })
    }

    /// Finds the step of a node; `None` if there is no such node, or it is an end.
    pub fn find_step(&self, id: &ChainNodeId) -> Option<&ChainStep> {
        match &self.find_node(id)?.role {
            ChainNodeRole::Step(step) => Some(step),
            ChainNodeRole::End => None,
        }
    }

    /// The mistakes in the chain's definition, each with the index of the faulty node.
    pub fn validation_errors(&self) -> Vec<(usize, String)> {
        let mut errors = Vec::new();
        if self.nodes.is_empty() {
            errors.push((0, "a chain needs at least one node; add one".into()));
        }
        let mut first_index: HashMap<&ChainNodeId, usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(first) = first_index.insert(&node.id, index) {
                errors.push((index, format!("the id {} is already used by node {}", node.id, first + 1)));
            }
            for (member, to) in node.successors() {
                if self.find_node(to).is_none() {
                    errors.push((index, format!("`{member}` names the node {to}, which does not exist")));
                }
            }
        }
        if errors.is_empty() {
            let reaching_end = self.nodes_reaching_end();
            let stuck = self.nodes.iter().enumerate().filter(|(_, node)| !reaching_end.contains(&node.id));
            errors.extend(
                stuck.map(|(index, node)| (index, format!("no path leads from {} to an end node", node.id))),
            );
        }
        errors
    }

    /// The ids of the nodes from which an end node can be reached.
    fn nodes_reaching_end(&self) -> BTreeSet<&ChainNodeId> {
        let mut reaching_end: BTreeSet<&ChainNodeId> =
            self.nodes.iter().filter(|node| node.role == ChainNodeRole::End).map(|node| &node.id).collect();
        loop {
            let newly_reaching_end: Vec<&ChainNodeId> = self
                .nodes
                .iter()
                .filter(|node| !reaching_end.contains(&node.id))
                .filter(|node| node.successors().any(|(_, to)| reaching_end.contains(to)))
                .map(|node| &node.id)
                .collect();
            if newly_reaching_end.is_empty() {
                return reaching_end;
            }
            reaching_end.extend(newly_reaching_end);
        }
    }
}

impl ChainNode {
    /// The nodes to which an order can move from here, each with the member that names it.
    fn successors(&self) -> impl Iterator<Item = (&'static str, &ChainNodeId)> {
        let step = match &self.role {
            ChainNodeRole::Step(step) => Some(step),
            ChainNodeRole::End => None,
        };
        let next = step.map(|step| ("next", &step.next));
        next.into_iter().chain(step.and_then(|step| step.on_error.as_ref()).map(|to| ("on_error", to)))
    }
}

/// An operator's setting for the orders that arrive at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainNodeAction {
    /// The step runs.
    #[default]
    Process,
    /// Orders wait here.
    Stop,
    /// Orders skip the step and move to the next node.
    NextState,
}

impl ChainNodeAction {
    /// All actions.
    pub const ALL: [Self; 3] = [Self::Process, Self::Stop, Self::NextState];

    /// The action's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Stop => "stop",
            Self::NextState => "next_state",
        }
    }
}

/// An operator's settings for a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainState {
    /// While the chain is stopped, none of its orders starts a step.
    pub stopped: bool,
    /// Nodes that are not listed have [`ChainNodeAction::Process`].
    #[serde(rename = "actions")]
    pub node_actions: BTreeMap<ChainNodeId, ChainNodeAction>,
}

impl ChainState {
    /// The action of a node.
    pub fn node_action(&self, node: &ChainNodeId) -> ChainNodeAction {
        self.node_actions.get(node).copied().unwrap_or_default()
    }

    /// Whether the tasks of a node's step must wait: the chain or the node is stopped.
    pub fn is_node_stopped(&self, node: &ChainNodeId) -> bool {
        self.stopped || self.node_action(node) == ChainNodeAction::Stop
    }

    /// Whether orders skip the step of a node. Orders of a stopped chain do not move.
    pub fn skips_node(&self, node: &ChainNodeId) -> bool {
        !self.stopped && self.node_action(node) == ChainNodeAction::NextState
    }

    /// The state as the event stream names it: `stopped` or `running`.
    pub fn as_str(&self) -> &'static str {
        if self.stopped { "stopped" } else { "running" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_node(id: &str, next: Option<&str>, on_error: Option<&str>) -> ChainNode {
        let node_id = |text: &str| ChainNodeId::new(text).unwrap();
        let role = match next {
            None => ChainNodeRole::End,
            Some(next) => ChainNodeRole::Step(ChainStep {
                handler: HandlerName::new("h").unwrap(),
                next: node_id(next),
                on_error: on_error.map(node_id),
                retry: None,
            }),
        };
        ChainNode { id: node_id(id), role }
    }

    fn validation_errors_of(nodes: Vec<ChainNode>) -> Vec<(usize, String)> {
        Chain { path: ChainPath::new("/a/b").unwrap(), nodes }.validation_errors()
    }

    #[test]
    fn paths_and_order_keys_round_trip_and_invalid_ones_are_rejected() {
        let key: OrderKey = "/a-b/c.d,117".parse().unwrap();
        assert_eq!((key.chain.as_str(), key.id.as_str()), ("/a-b/c.d", "117"));
        assert_eq!(key.to_string(), "/a-b/c.d,117");
        for bad in [
            "",
            "/",
            "a",
            "/a/",
            "//a",
            "/a//b",
            "/a,b",
            "/a b",
            "/a/..",
            "/./a",
            &format!("/{}", "x".repeat(500)),
        ] {
            assert!(ChainPath::new(bad).is_err(), "{bad:?}");
        }
        for bad in ["/a", "/a,", ",1", "/a,1,2", "a,1", "/a,1/2", "/a,.."] {
            assert!(bad.parse::<OrderKey>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_valid_chain_has_no_validation_errors() {
        assert!(
            validation_errors_of(vec![
                chain_node("a", Some("b"), Some("x")),
                chain_node("b", Some("x"), None),
                chain_node("x", None, None)
            ])
            .is_empty()
        );
        // A loop is valid as long as one of its nodes leads to an end.
        assert!(
            validation_errors_of(vec![
                chain_node("a", Some("b"), None),
                chain_node("b", Some("a"), Some("x")),
                chain_node("x", None, None)
            ])
            .is_empty()
        );
    }

    #[test]
    fn each_validation_error_has_the_index_of_its_node() {
        assert_eq!(
            validation_errors_of(vec![
                chain_node("a", Some("b"), Some("nowhere")),
                chain_node("a", Some("b"), None),
                chain_node("b", None, None)
            ]),
            [
                (0, "`on_error` names the node nowhere, which does not exist".into()),
                (1, "the id a is already used by node 1".into())
            ]
        );
        assert_eq!(
            validation_errors_of(vec![
                chain_node("a", Some("b"), None),
                chain_node("b", Some("a"), None),
                chain_node("x", None, None)
            ]),
            [
                (0, "no path leads from a to an end node".into()),
                (1, "no path leads from b to an end node".into())
            ]
        );
    }
}
