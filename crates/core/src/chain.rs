//! Chains: handlers joined as nodes that orders travel, as data.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::HandlerName;
use crate::names::{BadName, CollectionName, MAX_KEY, MAX_NAME};
use crate::task::retry::RetryPolicy;

/// Where a chain lies: absolute, its folders separated by slashes (`/publish/article`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainPath(Arc<str>);

impl ChainPath {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        let bad = |why: &str| {
            BadName::because(format!(
                "{text:?} is not the path of a chain: {why}; write one like `/folder/name`"
            ))
        };
        let Some(rest) = text.strip_prefix('/') else { return Err(bad("it begins with a slash")) };
        // In the stream an order is `Order:`, the path, a comma and its id, and a key has its bound.
        if "Order:".len() + text.len() + 1 + MAX_NAME > MAX_KEY {
            return Err(bad("it is too long"));
        }
        for segment in rest.split('/') {
            id("", segment).map_err(|_| bad("its parts are letters, digits, `.`, `_` and `-`"))?;
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A place in a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(CollectionName);

impl NodeId {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        id("a node", text.as_ref()).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// What tells the orders of a chain apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(CollectionName);

impl OrderId {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        id("an order", text.as_ref()).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is a number that only the store gives: to orders that events start, and to those added without an id.
    pub fn is_generated(&self) -> bool {
        self.as_str().len() >= GENERATED_DIGITS && self.as_str().bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// From this many digits on, a number is an id that only the store gives.
pub const GENERATED_DIGITS: usize = 13;

/// What the parts of a path and the ids of nodes and orders are made of. They stand in URLs, where `.` and `..` mean
/// something else.
fn id(of: &str, text: &str) -> Result<CollectionName, BadName> {
    let name = CollectionName::new(text).ok().filter(|_| text != "." && text != "..");
    name.ok_or_else(|| {
        BadName::because(format!(
            "{text:?} is not the id of {of}: 1 to {MAX_NAME} letters, digits, `.`, `_` and `-`"
        ))
    })
}

/// An order's whole name: `/chain/path,id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderKey {
    pub chain: ChainPath,
    pub id: OrderId,
}

macro_rules! shown {
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
shown!(ChainPath, NodeId, OrderId);

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.chain, self.id)
    }
}

impl std::str::FromStr for OrderKey {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((chain, id)) = text.split_once(',') else {
            return Err(BadName::because(format!("{text:?} is not an order; write `/chain/path,id`")));
        };
        Ok(Self { chain: ChainPath::new(chain)?, id: OrderId::new(id)? })
    }
}

macro_rules! through_text {
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
through_text!(ChainPath, OrderKey);

/// A chain. Orders begin at its first node if they name no other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    pub path: ChainPath,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    pub role: Role,
}

/// What happens at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Step(Step),
    /// The order has arrived.
    End,
}

/// A step: a task of a handler, and where the order goes after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub handler: HandlerName,
    pub next: NodeId,
    /// Where it goes when the step has failed for good. None: it is suspended where it stands.
    pub on_error: Option<NodeId>,
    /// How often and when a failed step is tried again, in place of what its handler says.
    pub setback: Option<RetryPolicy>,
}

impl Chain {
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == *id)
    }

    /// Whose steps it is made of.
    pub fn handlers(&self) -> impl Iterator<Item = &HandlerName> {
        self.nodes.iter().filter_map(|node| match &node.role {
            Role::Step(step) => Some(&step.handler),
            Role::End => None,
        })
    }

    pub fn step(&self, id: &NodeId) -> Option<&Step> {
        match &self.node(id)?.role {
            Role::Step(step) => Some(step),
            Role::End => None,
        }
    }

    /// What is wrong with it, each with the place of the node in the list.
    pub fn faults(&self) -> Vec<(usize, String)> {
        let mut faults = Vec::new();
        if self.nodes.is_empty() {
            faults.push((0, "a chain has at least one node".into()));
        }
        let mut seen: HashMap<&NodeId, usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(first) = seen.insert(&node.id, index) {
                faults.push((index, format!("the id {} is already given to node {}", node.id, first + 1)));
            }
            for (word, to) in node.ways() {
                if self.node(to).is_none() {
                    faults.push((index, format!("`{word}` leads to {to}, and there is no such node")));
                }
            }
        }
        if faults.is_empty() {
            let arriving = self.arriving();
            let stuck = self.nodes.iter().enumerate().filter(|(_, node)| !arriving.contains(&node.id));
            faults.extend(
                stuck.map(|(index, node)| (index, format!("from {} no way leads to an end", node.id))),
            );
        }
        faults
    }

    /// The nodes from which an end can be reached.
    fn arriving(&self) -> BTreeSet<&NodeId> {
        let mut arriving: BTreeSet<&NodeId> =
            self.nodes.iter().filter(|node| node.role == Role::End).map(|node| &node.id).collect();
        loop {
            let more: Vec<&NodeId> = self
                .nodes
                .iter()
                .filter(|node| !arriving.contains(&node.id))
                .filter(|node| node.ways().any(|(_, to)| arriving.contains(to)))
                .map(|node| &node.id)
                .collect();
            if more.is_empty() {
                return arriving;
            }
            arriving.extend(more);
        }
    }
}

impl Node {
    /// Where an order can go from here.
    fn ways(&self) -> impl Iterator<Item = (&'static str, &NodeId)> {
        let step = match &self.role {
            Role::Step(step) => Some(step),
            Role::End => None,
        };
        let next = step.map(|step| ("next", &step.next));
        next.into_iter().chain(step.and_then(|step| step.on_error.as_ref()).map(|to| ("on_error", to)))
    }
}

/// What an operator has set a node to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    #[default]
    Process,
    /// Orders wait here.
    Stop,
    /// Orders go on to the next node without a step.
    NextState,
}

impl Action {
    pub const ALL: [Self; 3] = [Self::Process, Self::Stop, Self::NextState];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Stop => "stop",
            Self::NextState => "next_state",
        }
    }
}

/// How an operator has set a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainState {
    /// None of its orders begins a step.
    pub stopped: bool,
    /// What is not named is processed.
    pub actions: BTreeMap<NodeId, Action>,
}

impl ChainState {
    pub fn action(&self, node: &NodeId) -> Action {
        self.actions.get(node).copied().unwrap_or_default()
    }

    /// Whether the tasks of a node's steps wait.
    pub fn holds(&self, node: &NodeId) -> bool {
        self.stopped || self.action(node) == Action::Stop
    }

    /// Whether orders go on from a node without a step. Those of a stopped chain go nowhere.
    pub fn passes(&self, node: &NodeId) -> bool {
        !self.stopped && self.action(node) == Action::NextState
    }

    /// The word for it in the stream.
    pub fn as_str(&self) -> &'static str {
        if self.stopped { "stopped" } else { "running" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, next: Option<&str>, on_error: Option<&str>) -> Node {
        let name = |text: &str| NodeId::new(text).unwrap();
        let role = match next {
            None => Role::End,
            Some(next) => Role::Step(Step {
                handler: HandlerName::new("h").unwrap(),
                next: name(next),
                on_error: on_error.map(name),
                setback: None,
            }),
        };
        Node { id: name(id), role }
    }

    fn faults(nodes: Vec<Node>) -> Vec<(usize, String)> {
        Chain { path: ChainPath::new("/a/b").unwrap(), nodes }.faults()
    }

    #[test]
    fn paths_and_keys_read_back_and_nonsense_is_refused() {
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
    fn a_sound_chain_has_no_faults() {
        assert!(
            faults(vec![node("a", Some("b"), Some("x")), node("b", Some("x"), None), node("x", None, None)])
                .is_empty()
        );
        // A loop is sound as long as there is a way out.
        assert!(
            faults(vec![node("a", Some("b"), None), node("b", Some("a"), Some("x")), node("x", None, None)])
                .is_empty()
        );
    }

    #[test]
    fn every_fault_is_told_with_its_node() {
        assert_eq!(
            faults(vec![
                node("a", Some("b"), Some("nowhere")),
                node("a", Some("b"), None),
                node("b", None, None)
            ]),
            [
                (0, "`on_error` leads to nowhere, and there is no such node".into()),
                (1, "the id a is already given to node 1".into())
            ]
        );
        assert_eq!(
            faults(vec![node("a", Some("b"), None), node("b", Some("a"), None), node("x", None, None)]),
            [(0, "from a no way leads to an end".into()), (1, "from b no way leads to an end".into())]
        );
    }
}
