//! Rules hold work back: a handler's tasks, a source's or one collection's, or a schedule's firings.

use serde::{Deserialize, Serialize};

use crate::chain::ChainPath;
use crate::names::{Pair, ScheduleName};
use crate::task::QueueOf;
use crate::{HandlerName, Tenant, Timestamp};

/// Who may set a rule, and who may lift it. Both may stand at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// An operator's.
    Pause,
    /// An admin's.
    Block,
}

impl RuleKind {
    pub const ALL: [Self; 2] = [Self::Pause, Self::Block];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Block => "block",
        }
    }
}

/// What a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// All tasks of a handler or a source.
    Handler(HandlerName),
    /// The tasks of one collection of a source.
    Collection(Pair),
    /// The firings of a schedule.
    Schedule(ScheduleName),
    /// The steps of a chain's orders.
    Chain(ChainPath),
}

impl Place {
    /// The word for what kind of thing it is.
    pub fn space(&self) -> &'static str {
        match self {
            Self::Handler(_) => "handler",
            Self::Collection(_) => "collection",
            Self::Schedule(_) => "schedule",
            Self::Chain(_) => "chain",
        }
    }

    /// The name, without what kind of thing it names.
    pub fn name(&self) -> String {
        match self {
            Self::Handler(name) => name.to_string(),
            Self::Collection(pair) => pair.to_string(),
            Self::Schedule(name) => name.to_string(),
            Self::Chain(path) => path.to_string(),
        }
    }

    /// The place of these two words.
    pub fn read(space: &str, name: &str) -> Option<Self> {
        match space {
            "handler" => HandlerName::new(name).ok().map(Self::Handler),
            "collection" => name.parse().ok().map(Self::Collection),
            "schedule" => ScheduleName::new(name).ok().map(Self::Schedule),
            "chain" => ChainPath::new(name).ok().map(Self::Chain),
            _ => None,
        }
    }
}

/// A standing rule: while it stands, no new attempt of what it speaks of starts, or no planned time fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub kind: RuleKind,
    pub place: Place,
    /// One tenant's queue of the handler; all of them if not given. A schedule has no tenants.
    pub tenant: Option<Tenant>,
    pub by: String,
    pub reason: String,
    pub since: Timestamp,
}

impl Rule {
    /// Whether this rule holds that queue.
    pub fn holds(&self, handler: &HandlerName, of: &QueueOf, tenant: &Tenant) -> bool {
        let here = match (&self.place, of) {
            (Place::Handler(name), _) => name == handler,
            (Place::Collection(pair), QueueOf::Collection(collection)) => {
                pair.source == *handler && pair.collection == *collection
            }
            (Place::Chain(path), QueueOf::Node { chain, .. }) => path == chain,
            (Place::Collection(_) | Place::Schedule(_) | Place::Chain(_), _) => false,
        };
        here && self.tenant.as_ref().is_none_or(|t| t == tenant)
    }

    /// Whether this rule keeps a schedule from firing.
    pub fn holds_schedule(&self, schedule: &ScheduleName) -> bool {
        matches!(&self.place, Place::Schedule(name) if name == schedule)
    }

    /// Whether the other rule speaks of the same thing, so that it replaces this one.
    pub fn same_place(&self, other: &Self) -> bool {
        self.kind == other.kind && self.place == other.place && self.tenant == other.tenant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(place: Place, tenant: Option<Tenant>) -> Rule {
        let (by, reason) = ("ops".into(), String::new());
        Rule { kind: RuleKind::Pause, place, tenant, by, reason, since: Timestamp::MIN }
    }

    fn of(text: &str) -> QueueOf {
        QueueOf::read(text).unwrap()
    }

    #[test]
    fn the_steps_of_a_chain_are_held_by_its_path() {
        let (handler, tenant) = (HandlerName::new("h").unwrap(), Tenant::default());
        let held = rule(Place::Chain(ChainPath::new("/a/b").unwrap()), None);
        assert!(held.holds(&handler, &of("/a/b x"), &tenant));
        assert!(!held.holds(&handler, &of("/a/bc x"), &tenant) && !held.holds(&handler, &of("x"), &tenant));
        assert_eq!(of("/a/b x").text(), "/a/b x");
    }

    #[test]
    fn a_rule_without_a_tenant_holds_them_all() {
        let handler = HandlerName::new("index").unwrap();
        let (a, b) = (Tenant::new("a").unwrap(), Tenant::new("b").unwrap());
        let all = rule(Place::Handler(handler.clone()), None);
        assert!(all.holds(&handler, &QueueOf::Events, &a) && all.holds(&handler, &QueueOf::Events, &b));
        let one = rule(Place::Handler(handler.clone()), Some(a.clone()));
        assert!(one.holds(&handler, &QueueOf::Events, &a) && !one.holds(&handler, &QueueOf::Events, &b));
        assert!(!one.holds(&HandlerName::new("other").unwrap(), &QueueOf::Events, &a));
    }

    #[test]
    fn a_source_is_held_whole_or_by_the_collection() {
        let shop = HandlerName::new("shop").unwrap();
        let tenant = Tenant::default();
        let whole = rule(Place::Handler(shop.clone()), None);
        assert!(whole.holds(&shop, &of("orders"), &tenant));
        let one = rule(Place::Collection("shop/orders".parse().unwrap()), None);
        assert!(one.holds(&shop, &of("orders"), &tenant));
        assert!(!one.holds(&shop, &of("orders_x"), &tenant) && !one.holds(&shop, &QueueOf::Events, &tenant));
        let schedule = rule(Place::Schedule(ScheduleName::new("shop/orders").unwrap()), None);
        assert!(!schedule.holds(&shop, &of("orders"), &tenant));
        assert!(schedule.holds_schedule(&ScheduleName::new("shop/orders").unwrap()));
    }

    #[test]
    fn places_read_back() {
        for (space, name) in [
            ("handler", "a"),
            ("collection", "a/b"),
            ("schedule", "a/b"),
            ("schedule", "c"),
            ("chain", "/a/b"),
        ] {
            let place = Place::read(space, name).unwrap();
            assert_eq!((place.space(), place.name().as_str()), (space, name));
        }
        assert_eq!(Place::read("chain", "a"), None);
        assert_eq!(Place::read("collection", "a"), None);
    }
}
