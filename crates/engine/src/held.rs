//! Rules that were set through this node, for attempts that are on their way.
//!
//! What the store has locked before a rule may reach its handler only after the rule was answered: the claim is
//! still under way, or the attempt has not had its turn. So whoever claims notes how many rules there were when
//! it asked, and an attempt that a later rule holds is given back before it begins. Claims that were asked for
//! after a rule are the store's business alone.

use std::sync::{PoisonError, RwLock};

use pointsman_core::Rule;
use pointsman_core::store::Claimed;
use pointsman_core::task::Subject;

#[derive(Debug, Default)]
pub(crate) struct Held(RwLock<Rules>);

#[derive(Debug, Default)]
struct Rules {
    set: u64,
    /// The latest rule of each place, and which one it was.
    latest: Vec<(u64, Rule)>,
}

/// How many rules had been set when a claim was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(u64);

impl Held {
    /// The store has taken a rule. When this returns, nothing that it holds begins any more.
    pub(crate) fn hold(&self, rule: Rule) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        rules.set += 1;
        let number = rules.set;
        rules.latest.retain(|(_, other)| !other.same_place(&rule));
        rules.latest.push((number, rule));
    }

    pub(crate) fn asked(&self) -> Asked {
        Asked(self.0.read().unwrap_or_else(PoisonError::into_inner).set)
    }

    /// Whether a rule that was set since then holds the queue of this task.
    pub(crate) fn since(&self, asked: Asked, task: &Claimed) -> bool {
        let collection = match &task.subject {
            Subject::Run(run) => Some(run.pair.collection.as_str()),
            Subject::Event(_) => None,
        };
        let tenant = task.subject.tenant();
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut later = rules.latest.iter().filter(|(number, _)| *number > asked.0);
        later.any(|(_, rule)| rule.holds(&task.handler, collection, tenant))
    }
}
