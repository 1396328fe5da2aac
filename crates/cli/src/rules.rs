//! `pointsman pause`, `resume`, `block` and `unblock`: hold a handler's tasks back, and let them go on.

use clap::Args;
use pointsman_api::HoldBody;
use pointsman_core::{HandlerName, RuleKind, Tenant};

use crate::args::Global;
use crate::failure::Result;
use crate::handlers;
use crate::output::Output;

/// Hold a handler's tasks back
///
/// When this returns, no new attempt starts; what runs already runs to its end. What is emitted meanwhile
/// waits, and runs in order after `resume`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman pause index --reason 'the search cluster is down'
  pointsman pause index --tenant shop")]
pub(crate) struct Pause {
    #[command(flatten)]
    hold: Hold,
}

/// Let a paused handler's tasks go on
///
/// A block, which only an admin can lift, may still hold them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pointsman resume index")]
pub(crate) struct Resume {
    #[command(flatten)]
    release: Release,
}

/// Hold a handler's tasks back as an admin
///
/// Like `pause`, but operators cannot lift it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pointsman block index --reason 'wrong data, see the incident'")]
pub(crate) struct Block {
    #[command(flatten)]
    hold: Hold,
}

/// Lift a block
///
/// A pause may still hold the handler's tasks.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pointsman unblock index")]
pub(crate) struct Unblock {
    #[command(flatten)]
    release: Release,
}

#[derive(Debug, Args)]
struct Hold {
    /// The handler's name
    handler: HandlerName,
    /// Only one tenant's tasks
    #[arg(long)]
    tenant: Option<Tenant>,
    /// Why, for those who wonder
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct Release {
    /// The handler's name
    handler: HandlerName,
    /// The rule for only one tenant's tasks
    #[arg(long)]
    tenant: Option<Tenant>,
}

impl Pause {
    pub(crate) async fn run(self, global: &Global) -> Result {
        self.hold.run(global, RuleKind::Pause).await
    }
}

impl Resume {
    pub(crate) async fn run(self, global: &Global) -> Result {
        self.release.run(global, RuleKind::Pause).await
    }
}

impl Block {
    pub(crate) async fn run(self, global: &Global) -> Result {
        self.hold.run(global, RuleKind::Block).await
    }
}

impl Unblock {
    pub(crate) async fn run(self, global: &Global) -> Result {
        self.release.run(global, RuleKind::Block).await
    }
}

impl Hold {
    async fn run(self, global: &Global, kind: RuleKind) -> Result {
        let (client, name) = (global.client()?, self.handler.as_str());
        let body = HoldBody { tenant: self.tenant.map(|t| t.to_string()), reason: self.reason };
        let detail = client.hold(kind, name, &body).await.map_err(|e| handlers::about(name, e))?;
        handlers::show(Output::new(global), &detail)
    }
}

impl Release {
    async fn run(self, global: &Global, kind: RuleKind) -> Result {
        let (client, name) = (global.client()?, self.handler.as_str());
        let body = HoldBody { tenant: self.tenant.map(|t| t.to_string()), reason: None };
        let detail = client.release(kind, name, &body).await.map_err(|e| handlers::about(name, e))?;
        handlers::show(Output::new(global), &detail)
    }
}
