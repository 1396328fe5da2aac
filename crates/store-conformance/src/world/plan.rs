//! Handlers and routes, in a few words.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::route::Binding;
use pointsman_core::store::Registration;
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use pointsman_core::{
    HandlerDef, HandlerName, LaneFailure, Limits, Order, Pair, Priority, Routes, Tenant, Weight,
};

use super::{handler, kind, pair, secs, tenant};

/// How long a failed task waits in a plan, in seconds: always the same, so that a story can tell when.
pub const BACKOFF: u64 = 10;

/// What is registered. A handler exists as soon as a route or a wish names it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    handlers: BTreeMap<String, HandlerDef>,
    routes: Vec<(String, Vec<String>)>,
    tenants: BTreeMap<Tenant, Weight>,
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
            handlers: self.handlers.values().cloned().collect(),
            routes: self.routes(),
            tenants: self.tenants.clone(),
        }
    }

    fn def_mut(&mut self, name: &str) -> &mut HandlerDef {
        self.handlers.entry(name.into()).or_insert_with(|| HandlerDef {
            retry: RetryPolicy { backoff: Backoff::Fixed, delay: secs(BACKOFF), ..RetryPolicy::default() },
            ..HandlerDef::new(handler(name))
        })
    }
}
