//! Operations of the bus on rules: pausing and blocking handlers, schedules and chains.

use pointsman_core::names::BadName;
use pointsman_core::store::StoreError;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{HandlerName, Rule, RuleKind, RuleScope, Tenant};

use crate::Bus;

/// A rule to be set with [`Bus::set_rule`]. It replaces one of the same kind, scope and tenant.
///
/// ```
/// # use pointsman::{Bus, NewRule, RuleScope};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pointsman::BoxError> {
/// # let bus = Bus::builder("sqlite::memory:").start().await?;
/// let nightly = RuleScope::Schedule("nightly".parse()?);
/// bus.set_rule(NewRule::pause(nightly).reason("the target moves")).await?;
/// # bus.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    kind: RuleKind,
    scope: RuleScope,
    tenant: Option<Tenant>,
    reason: String,
}

impl NewRule {
    /// A rule that pauses this work.
    pub fn pause(scope: RuleScope) -> Self {
        Self { kind: RuleKind::Pause, scope, tenant: None, reason: String::new() }
    }

    /// A rule that blocks this work. It has the effect of a pause, and resuming does not lift it: an administrator can
    /// keep operators from starting the work.
    pub fn block(scope: RuleScope) -> Self {
        Self { kind: RuleKind::Block, ..Self::pause(scope) }
    }

    /// Restricts the rule to the tasks of a tenant.
    pub fn tenant(self, tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// Sets the reason, which is shown to people who ask why a task waits.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

/// Why a handler was not paused or resumed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PauseError {
    /// The name is invalid.
    #[error(transparent)]
    InvalidName(#[from] BadName),
    /// No program has registered a handler of this name.
    #[error("there is no handler {name} in the store{suggestion}")]
    UnknownHandler {
        /// The name that was given.
        name: HandlerName,
        /// The text `; did you mean …?`; empty if no handler has a similar name.
        suggestion: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Bus {
    /// Pauses a handler on all nodes: when this returns, none of its attempts starts until [`resume`](Self::resume).
    /// Running attempts continue to their ends, and events still create tasks, which wait.
    pub async fn pause(&self, handler: &str) -> Result<(), PauseError> {
        let handler = self.find_handler(handler).await?;
        Ok(self.set_rule(NewRule::pause(RuleScope::Handler(handler))).await?)
    }

    /// Resumes a paused handler; `false` if it was not paused. A pause of one tenant remains, and so does a block.
    pub async fn resume(&self, handler: &str) -> Result<bool, PauseError> {
        let handler = self.find_handler(handler).await?;
        Ok(self.lift_rule(RuleKind::Pause, &RuleScope::Handler(handler), None).await?)
    }

    /// Sets a rule in the name of this program. When this returns, no new attempt in its scope starts, and no planned
    /// time of its schedule fires.
    pub async fn set_rule(&self, rule: NewRule) -> Result<(), StoreError> {
        let NewRule { kind, scope, tenant, reason } = rule;
        let set_by = self.program_name.to_string();
        self.engine.set_rule(Rule { kind, scope, tenant, set_by, reason, since: self.now() }).await
    }

    /// Lifts the rule of this kind, scope and tenant; `false` if there was none.
    pub async fn lift_rule(
        &self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> Result<bool, StoreError> {
        self.engine.lift_rule(kind, scope, tenant).await
    }

    /// Lists all rules that are set, also those that other programs set.
    pub async fn list_rules(&self) -> Result<Vec<Rule>, StoreError> {
        self.engine.store().list_rules().await
    }

    /// Returns the name of a handler that this or another program has registered.
    async fn find_handler(&self, name: &str) -> Result<HandlerName, PauseError> {
        let name = HandlerName::new(name)?;
        let registered = self.engine.store().read_merged_registration().await?.handlers;
        if registered.iter().any(|def| def.name == name) {
            return Ok(name);
        }
        let names = registered.iter().map(|def| def.name.as_str());
        let suggestion = did_you_mean_suffix(name.as_str(), names);
        Err(PauseError::UnknownHandler { name, suggestion })
    }
}
