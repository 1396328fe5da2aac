//! Handlers and routes, in a few words.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::chain::{Chain, Role};
use pointsman_core::handler::Observe;
use pointsman_core::route::{Binding, ChainRoutes};
use pointsman_core::store::Registration;
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use pointsman_core::{
    HandlerDef, HandlerName, LaneFailure, Limits, Order, Pair, Priority, Routes, Tenant, Weight,
};

use super::{chain_path, handler, kind, node, pair, secs, tenant};

/// How long a failed task waits in a plan, in seconds: always the same, so that a story can tell when.
pub const BACKOFF: u64 = 10;

/// What is registered. A handler exists as soon as a route, a chain or a wish names it. The journal tells of none of
/// its attempts unless that is wished for, so that a story hears only what it is about.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    by: String,
    handlers: BTreeMap<String, HandlerDef>,
    routes: Vec<(String, Vec<String>)>,
    tenants: BTreeMap<Tenant, Weight>,
    chains: BTreeMap<String, Chain>,
    chain_routes: Vec<(String, String)>,
    files: BTreeMap<String, String>,
}

impl Plan {
    /// A route: the handlers of a handling key, in order. `name!` is synchronous.
    pub fn on(mut self, key: &str, names: &[&str]) -> Self {
        for name in names {
            self.def_mut(name.trim_end_matches('!'));
        }
        self.routes.push((key.into(), names.iter().map(|name| name.to_string()).collect()));
        self
    }

    /// Whose plan it is.
    pub fn by(mut self, name: &str) -> Self {
        self.by = name.into();
        self
    }

    /// One handler for everything of the type `record`.
    pub fn simple() -> Self {
        Self::default().on("record", &["index"])
    }

    /// A handler whose tasks keep no order.
    pub fn free(mut self, name: &str) -> Self {
        self.def_mut(name).order = Order::None;
        self
    }

    /// A handler whose lane waits behind a task that failed for good.
    pub fn halting(mut self, name: &str) -> Self {
        self.def_mut(name).on_error = LaneFailure::Halt;
        self
    }

    /// A handler whose tasks are fetched by workers.
    pub fn pulled(mut self, name: &str) -> Self {
        self.def_mut(name).pull = true;
        self
    }

    /// A handler with these limits.
    pub fn limited(mut self, name: &str, limits: Limits) -> Self {
        self.def_mut(name).limits = limits;
        self
    }

    /// A handler of which so many tasks run at a time.
    pub fn narrow(self, name: &str, most: u32) -> Self {
        self.limited(name, Limits { concurrency: Some(most), ..Limits::default() })
    }

    /// A handler that begins so often (`100/m`).
    pub fn paced(self, name: &str, rate: &str) -> Self {
        self.limited(name, Limits { rate: Some(rate.parse().expect("a rate")), ..Limits::default() })
    }

    /// A handler whose waits grow from one to the next.
    pub fn patient(mut self, name: &str) -> Self {
        self.def_mut(name).retry = RetryPolicy::default();
        self
    }

    /// A handler with this share in the round robin.
    pub fn weighing(mut self, name: &str, weight: u16) -> Self {
        self.def_mut(name).limits.weight = Weight::new(weight).expect("a weight");
        self
    }

    /// A tenant with this share in the round robin.
    pub fn favouring(mut self, of: &str, weight: u16) -> Self {
        self.tenants.insert(tenant(of), Weight::new(weight).expect("a weight"));
        self
    }

    /// A collection of a source of the default tenant. Naming another collection of the source adds it.
    pub fn collects(self, name: &str, priority: i64) -> Self {
        self.collects_for("default", name, priority)
    }

    /// The same for another tenant.
    pub fn collects_for(mut self, of: &str, name: &str, priority: i64) -> Self {
        let Pair { source, collection } = pair(name);
        let def = self.def_mut(source.as_str()).source.get_or_insert_default();
        def.tenant = tenant(of);
        def.collections.insert(collection, Priority::try_from(priority).expect("a priority"));
        self
    }

    /// The same source without this collection.
    pub fn without_collection(mut self, name: &str) -> Self {
        let Pair { source, collection } = pair(name);
        if let Some(def) = &mut self.def_mut(source.as_str()).source {
            def.collections.remove(&collection);
        }
        self
    }

    /// A handler of whose attempts the journal tells these.
    pub fn observing(mut self, name: &str, observe: Observe) -> Self {
        self.def_mut(name).observe = observe;
        self
    }

    /// A chain, a node a word: `a=first>b` is a step of the handler `first` that leads to `b`, `a=first>b!x` leads to
    /// `x` when it has failed for good, and `x` alone is an end.
    pub fn chain(mut self, path: &str, nodes: &str) -> Self {
        let nodes: Vec<_> = nodes.split_whitespace().map(node).collect();
        for node in &nodes {
            if let Role::Step(step) = &node.role {
                self.def_mut(step.handler.as_str());
            }
        }
        self.chains.insert(path.into(), Chain { path: chain_path(path), nodes });
        self
    }

    /// A failed step of this node is tried again so often, after so many seconds each time.
    pub fn setback(mut self, path: &str, id: &str, max: u32, seconds: u64) -> Self {
        let nodes = &mut self.chains.get_mut(path).expect("the chain is planned").nodes;
        let node = nodes.iter_mut().find(|node| node.id.as_str() == id).expect("the node is planned");
        let Role::Step(step) = &mut node.role else { panic!("{id} is an end") };
        let (backoff, delay) = (Backoff::Fixed, secs(seconds));
        step.setback = Some(RetryPolicy { max, backoff, delay, ..RetryPolicy::default() });
        self
    }

    pub fn without_chain(mut self, path: &str) -> Self {
        self.chains.remove(path);
        self
    }

    /// Events of a handling key make orders for this chain.
    pub fn orders(mut self, key: &str, path: &str) -> Self {
        self.chain_routes.push((key.into(), path.into()));
        self
    }

    /// Something that is configured in files, and what its digest is made of.
    pub fn file(mut self, key: &str, content: &str) -> Self {
        self.files.insert(key.into(), content.into());
        self
    }

    pub fn without_file(mut self, key: &str) -> Self {
        self.files.remove(key);
        self
    }

    /// The same without this handler and its routes.
    pub fn without(mut self, name: &str) -> Self {
        self.handlers.remove(name);
        for (_, names) in &mut self.routes {
            names.retain(|bound| bound.trim_end_matches('!') != name);
        }
        self
    }

    pub fn def(&self, name: &str) -> &HandlerDef {
        &self.handlers[name]
    }

    pub fn defines(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    pub fn names(&self) -> BTreeSet<HandlerName> {
        self.handlers.values().map(|def| def.name.clone()).collect()
    }

    pub fn routes(&self) -> Routes {
        let mut routes = Routes::new();
        for (key, names) in &self.routes {
            for name in names {
                let sync = name.ends_with('!');
                let binding = Binding { handler: handler(name.trim_end_matches('!')), sync };
                routes.bind(kind(key), binding);
            }
        }
        routes
    }

    pub fn registration(&self) -> Registration {
        Registration {
            by: self.by.clone(),
            handlers: self.handlers.values().cloned().collect(),
            routes: self.routes(),
            tenants: self.tenants.clone(),
            chains: self.chains.values().cloned().collect(),
            chain_routes: self.chain_routes(),
            files: self.files.clone(),
        }
    }

    fn chain_routes(&self) -> ChainRoutes {
        let mut routes = ChainRoutes::default();
        for (key, path) in &self.chain_routes {
            routes.bind(kind(key), chain_path(path));
        }
        routes
    }

    fn def_mut(&mut self, name: &str) -> &mut HandlerDef {
        self.handlers.entry(name.into()).or_insert_with(|| HandlerDef {
            retry: RetryPolicy { backoff: Backoff::Fixed, delay: secs(BACKOFF), ..RetryPolicy::default() },
            observe: Observe::None,
            ..HandlerDef::new(handler(name))
        })
    }
}
