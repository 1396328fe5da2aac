//! `pointsman pause`, `resume`, `block` and `unblock`: hold tasks or a schedule back, and let them go on.

use clap::Args;
use pointsman_api::HoldBody;
use pointsman_core::{HandlerName, Pair, RuleKind, Tenant};

use crate::args::Global;
use crate::failure::Result;
use crate::output::Output;
use crate::{handlers, schedules};

/// Hold back a handler, a source, a collection or a schedule
///
/// When this returns, no new attempt starts; what runs already runs to its end. What is emitted meanwhile
/// waits, and runs in order after `resume`. The times of a paused schedule pass without firing; after `resume`
/// its `catch_up` says what is made up for.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman pause index --reason 'the search cluster is down'
  pointsman pause index --tenant shop
  pointsman pause shop/orders
  pointsman pause --schedule nightly")]
pub(crate) struct Pause {
    #[command(flatten)]
    hold: Hold,
}

/// Let what was paused go on
///
/// A block, which only an admin can lift, may still hold it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman resume index
  pointsman resume --schedule nightly")]
pub(crate) struct Resume {
    #[command(flatten)]
    release: Release,
}

/// Hold something back as an admin
///
/// Like `pause`, but operators cannot lift it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman block index --reason 'wrong data, see the incident'
  pointsman block shop/orders --tenant shop")]
pub(crate) struct Block {
    #[command(flatten)]
    hold: Hold,
}

/// Lift a block
///
/// A pause may still hold what was blocked.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman unblock index
  pointsman unblock --schedule nightly")]
pub(crate) struct Unblock {
    #[command(flatten)]
    release: Release,
}

#[derive(Debug, Args)]
struct Hold {
    #[command(flatten)]
    what: What,
    /// Why, for those who wonder
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct Release {
    #[command(flatten)]
    what: What,
}

/// What a rule speaks of.
#[derive(Debug, Args)]
struct What {
    /// A handler, a source, or SOURCE/COLLECTION; with --schedule, a schedule
    #[arg(value_parser = name)]
    name: String,
    /// It is a schedule's name: its firings are meant, not tasks
    #[arg(long, conflicts_with = "tenant")]
    schedule: bool,
    /// Only one tenant's tasks
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// A name, or two with a slash between; schedules are called the same.
fn name(text: &str) -> std::result::Result<String, String> {
    let checked = match text.contains('/') {
        true => text.parse::<Pair>().map(|_| ()),
        false => HandlerName::new(text).map(|_| ()),
    };
    checked.map(|()| text.into()).map_err(|e| e.to_string())
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
        let (client, output, name) = (global.client()?, Output::new(global), self.what.name.as_str());
        let body = HoldBody { tenant: self.what.tenant.map(|t| t.to_string()), reason: self.reason };
        if self.what.schedule {
            let held = client.hold_schedule(kind, name, &body).await;
            return schedules::show(output, &held.map_err(schedules::about)?);
        }
        handlers::show(output, &client.hold(kind, name, &body).await.map_err(handlers::about)?)
    }
}

impl Release {
    async fn run(self, global: &Global, kind: RuleKind) -> Result {
        let (client, output, name) = (global.client()?, Output::new(global), self.what.name.as_str());
        if self.what.schedule {
            let released = client.release_schedule(kind, name).await;
            return schedules::show(output, &released.map_err(schedules::about)?);
        }
        let body = HoldBody { tenant: self.what.tenant.map(|t| t.to_string()), reason: None };
        handlers::show(output, &client.release(kind, name, &body).await.map_err(handlers::about)?)
    }
}
