//! Rules pause or block work: the tasks of a handler, a source, one collection or a chain, or the fires of a schedule.

use serde::{Deserialize, Serialize};

use crate::chain::ChainPath;
use crate::names::{ScheduleName, SourceCollection};
use crate::task::QueueSubject;
use crate::{HandlerName, Tenant, Timestamp};

/// The kind of a rule, which decides who may set and lift it. Both kinds may be set at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// A rule set by an operator.
    Pause,
    /// A rule set by an admin.
    Block,
}

impl RuleKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Pause, Self::Block];

    /// The kind's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Block => "block",
        }
    }
}

/// The work that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleScope {
    /// All tasks of a handler or a source.
    Handler(HandlerName),
    /// The tasks of one collection of a source.
    Collection(SourceCollection),
    /// The fires of a schedule.
    Schedule(ScheduleName),
    /// The steps of a chain's orders.
    Chain(ChainPath),
}

impl RuleScope {
    /// The name of the variant: `handler`, `collection`, `schedule` or `chain`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Handler(_) => "handler",
            Self::Collection(_) => "collection",
            Self::Schedule(_) => "schedule",
            Self::Chain(_) => "chain",
        }
    }

    /// The name of the handler, collection, schedule or chain.
    pub fn name(&self) -> String {
        match self {
            Self::Handler(name) => name.to_string(),
            Self::Collection(source_collection) => source_collection.to_string(),
            Self::Schedule(name) => name.to_string(),
            Self::Chain(path) => path.to_string(),
        }
    }

    /// Parses the scope from its [`kind_name`](Self::kind_name) and [`name`](Self::name).
    pub fn parse(kind: &str, name: &str) -> Option<Self> {
        match kind {
            "handler" => HandlerName::new(name).ok().map(Self::Handler),
            "collection" => name.parse().ok().map(Self::Collection),
            "schedule" => ScheduleName::new(name).ok().map(Self::Schedule),
            "chain" => ChainPath::new(name).ok().map(Self::Chain),
            _ => None,
        }
    }
}

/// A rule that is set: while it is, no new attempt in its scope starts, and no planned time fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Whether an operator or an admin set the rule.
    pub kind: RuleKind,
    /// The work that the rule applies to.
    #[serde(rename = "place")]
    pub scope: RuleScope,
    /// The rule applies only to this tenant's tasks; to all tenants' if not given. A schedule has no tenants.
    pub tenant: Option<Tenant>,
    /// The person or program that set the rule.
    #[serde(rename = "by")]
    pub set_by: String,
    /// Why the rule was set, as a text for people; may be empty.
    pub reason: String,
    /// When the rule was set.
    pub since: Timestamp,
}

impl Rule {
    /// Whether this rule pauses or blocks that queue.
    pub fn applies_to_queue(&self, handler: &HandlerName, subject: &QueueSubject, tenant: &Tenant) -> bool {
        let in_scope = match (&self.scope, subject) {
            (RuleScope::Handler(name), _) => name == handler,
            (RuleScope::Collection(source_collection), QueueSubject::Collection(collection)) => {
                source_collection.source == *handler && source_collection.collection == *collection
            }
            (RuleScope::Chain(path), QueueSubject::ChainNode { chain, .. }) => path == chain,
            (RuleScope::Collection(_) | RuleScope::Schedule(_) | RuleScope::Chain(_), _) => false,
        };
        in_scope && self.tenant.as_ref().is_none_or(|t| t == tenant)
    }

    /// Whether this rule stops a schedule from firing.
    pub fn applies_to_schedule(&self, schedule: &ScheduleName) -> bool {
        matches!(&self.scope, RuleScope::Schedule(name) if name == schedule)
    }

    /// Whether setting this rule replaces the other one: both have the same kind, scope and tenant.
    pub fn replaces(&self, other: &Self) -> bool {
        self.kind == other.kind && self.scope == other.scope && self.tenant == other.tenant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_pause_rule(scope: RuleScope, tenant: Option<Tenant>) -> Rule {
        let (set_by, reason) = ("ops".into(), String::new());
        Rule { kind: RuleKind::Pause, scope, tenant, set_by, reason, since: Timestamp::MIN }
    }

    fn queue_subject(text: &str) -> QueueSubject {
        QueueSubject::from_text(text).unwrap()
    }

    #[test]
    fn a_chain_rule_applies_to_the_steps_of_that_chain() {
        let (handler, tenant) = (HandlerName::new("h").unwrap(), Tenant::default());
        let chain_rule = new_pause_rule(RuleScope::Chain(ChainPath::new("/a/b").unwrap()), None);
        assert!(chain_rule.applies_to_queue(&handler, &queue_subject("/a/b x"), &tenant));
        assert!(
            !chain_rule.applies_to_queue(&handler, &queue_subject("/a/bc x"), &tenant)
                && !chain_rule.applies_to_queue(&handler, &queue_subject("x"), &tenant)
        );
        assert_eq!(queue_subject("/a/b x").to_text(), "/a/b x");
    }

    #[test]
    fn a_rule_without_a_tenant_applies_to_all_tenants() {
        let handler = HandlerName::new("index").unwrap();
        let (a, b) = (Tenant::new("a").unwrap(), Tenant::new("b").unwrap());
        let rule_for_all_tenants = new_pause_rule(RuleScope::Handler(handler.clone()), None);
        assert!(
            rule_for_all_tenants.applies_to_queue(&handler, &QueueSubject::Events, &a)
                && rule_for_all_tenants.applies_to_queue(&handler, &QueueSubject::Events, &b)
        );
        let rule_for_tenant_a = new_pause_rule(RuleScope::Handler(handler.clone()), Some(a.clone()));
        assert!(
            rule_for_tenant_a.applies_to_queue(&handler, &QueueSubject::Events, &a)
                && !rule_for_tenant_a.applies_to_queue(&handler, &QueueSubject::Events, &b)
        );
        assert!(!rule_for_tenant_a.applies_to_queue(
            &HandlerName::new("other").unwrap(),
            &QueueSubject::Events,
            &a
        ));
    }

    #[test]
    fn a_rule_applies_to_a_whole_source_or_to_one_collection() {
        let shop = HandlerName::new("shop").unwrap();
        let tenant = Tenant::default();
        let source_rule = new_pause_rule(RuleScope::Handler(shop.clone()), None);
        assert!(source_rule.applies_to_queue(&shop, &queue_subject("orders"), &tenant));
        let collection_rule = new_pause_rule(RuleScope::Collection("shop/orders".parse().unwrap()), None);
        assert!(collection_rule.applies_to_queue(&shop, &queue_subject("orders"), &tenant));
        assert!(
            !collection_rule.applies_to_queue(&shop, &queue_subject("orders_x"), &tenant)
                && !collection_rule.applies_to_queue(&shop, &QueueSubject::Events, &tenant)
        );
        let schedule_rule =
            new_pause_rule(RuleScope::Schedule(ScheduleName::new("shop/orders").unwrap()), None);
        assert!(!schedule_rule.applies_to_queue(&shop, &queue_subject("orders"), &tenant));
        assert!(schedule_rule.applies_to_schedule(&ScheduleName::new("shop/orders").unwrap()));
    }

    #[test]
    fn rule_scopes_round_trip_through_kind_and_name() {
        for (kind, name) in [
            ("handler", "a"),
            ("collection", "a/b"),
            ("schedule", "a/b"),
            ("schedule", "c"),
            ("chain", "/a/b"),
        ] {
            let scope = RuleScope::parse(kind, name).unwrap();
            assert_eq!((scope.kind_name(), scope.name().as_str()), (kind, name));
        }
        assert_eq!(RuleScope::parse("chain", "a"), None);
        assert_eq!(RuleScope::parse("collection", "a"), None);
    }
}
