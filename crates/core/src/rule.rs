//! Rules hold work back: a handler's tasks, a source's or one collection's, or a schedule's firings.

use serde::{Deserialize, Serialize};

use crate::names::{Pair, ScheduleName};
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
}

impl Place {
    /// The word for what kind of thing it is.
    pub fn space(&self) -> &'static str {
        match self {
            Self::Handler(_) => "handler",
            Self::Collection(_) => "collection",
            Self::Schedule(_) => "schedule",
        }
    }

    /// The name, without what kind of thing it names.
    pub fn name(&self) -> String {
        match self {
            Self::Handler(name) => name.to_string(),
            Self::Collection(pair) => pair.to_string(),
            Self::Schedule(name) => name.to_string(),
        }
    }

    /// The place of these two words.
    pub fn read(space: &str, name: &str) -> Option<Self> {
        match space {
            "handler" => HandlerName::new(name).ok().map(Self::Handler),
            "collection" => name.parse().ok().map(Self::Collection),
            "schedule" => ScheduleName::new(name).ok().map(Self::Schedule),
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
    /// Whether this rule holds that queue. A queue of a source has a collection.
    pub fn holds(&self, handler: &HandlerName, collection: Option<&str>, tenant: &Tenant) -> bool {
        let here = match &self.place {
            Place::Handler(name) => name == handler,
            Place::Collection(pair) => {
                pair.source == *handler && collection == Some(pair.collection.as_str())
            }
            Place::Schedule(_) => false,
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

    #[test]
    fn a_rule_without_a_tenant_holds_them_all() {
        let handler = HandlerName::new("index").unwrap();
        let (a, b) = (Tenant::new("a").unwrap(), Tenant::new("b").unwrap());
        let all = rule(Place::Handler(handler.clone()), None);
        assert!(all.holds(&handler, None, &a) && all.holds(&handler, None, &b));
        let one = rule(Place::Handler(handler.clone()), Some(a.clone()));
        assert!(one.holds(&handler, None, &a) && !one.holds(&handler, None, &b));
        assert!(!one.holds(&HandlerName::new("other").unwrap(), None, &a));
    }

    #[test]
    fn a_source_is_held_whole_or_by_the_collection() {
        let shop = HandlerName::new("shop").unwrap();
        let tenant = Tenant::default();
        let whole = rule(Place::Handler(shop.clone()), None);
        assert!(whole.holds(&shop, Some("orders"), &tenant));
        let one = rule(Place::Collection("shop/orders".parse().unwrap()), None);
        assert!(one.holds(&shop, Some("orders"), &tenant));
        assert!(!one.holds(&shop, Some("orders_x"), &tenant) && !one.holds(&shop, None, &tenant));
        let schedule = rule(Place::Schedule(ScheduleName::new("shop/orders").unwrap()), None);
        assert!(!schedule.holds(&shop, Some("orders"), &tenant));
        assert!(schedule.holds_schedule(&ScheduleName::new("shop/orders").unwrap()));
    }

    #[test]
    fn places_read_back() {
        for (space, name) in [("handler", "a"), ("collection", "a/b"), ("schedule", "a/b"), ("schedule", "c")]
        {
            let place = Place::read(space, name).unwrap();
            assert_eq!((place.space(), place.name().as_str()), (space, name));
        }
        assert_eq!(Place::read("chain", "a"), None);
        assert_eq!(Place::read("collection", "a"), None);
    }
}
