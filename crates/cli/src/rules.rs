//! `pointsman pause`, `resume`, `block` and `unblock`: hold tasks or a schedule back, and let them go on.

use clap::Args;
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{HoldBody, RuleBody};
use pointsman_core::chain::ChainPath;
use pointsman_core::{HandlerName, Pair, RuleKind, Tenant};
use serde::Serialize;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::handlers::{self, RULE_HEAD, rule_rows};
use crate::output::Output;
use crate::{chains, schedules};

/// Hold back a handler, a source, a collection, a chain or a schedule
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
  pointsman pause /publish/article
  pointsman pause --schedule nightly

What begins with a slash is a chain: the steps of its orders are meant.")]
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
  pointsman resume /publish/article
  pointsman resume --schedule nightly

For orders that are suspended: pointsman orders resume PATH,ID")]
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
    /// A handler, a source, SOURCE/COLLECTION, or a chain's path; with --schedule, a schedule
    #[arg(value_parser = name)]
    name: String,
    /// It is a schedule's name: its firings are meant, not tasks
    #[arg(long, conflicts_with = "tenant")]
    schedule: bool,
    /// Only one tenant's tasks
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// A name, or two with a slash between, or a path that begins with one; schedules are called the same as the first two.
fn name(text: &str) -> std::result::Result<String, String> {
    let checked = match text.find('/') {
        Some(0) if text.contains(',') => {
            return Err(format!("an order is not paused but suspended: pointsman orders suspend {text}"));
        }
        Some(0) => ChainPath::new(text).map(|_| ()),
        Some(_) => text.parse::<Pair>().map(|_| ()),
        None => HandlerName::new(text).map(|_| ()),
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
        let (client, output, what) = (global.client()?, Output::new(global), &self.what);
        let body = HoldBody { tenant: what.tenant(), reason: self.reason };
        if what.schedule {
            let held = client.hold_schedule(kind, &what.name, &body).await.map_err(schedules::about)?;
            return told(output, &held, &what.is(kind), &held.schedule.rules);
        }
        if let Some(chain) = what.chain() {
            let held = client.hold_chain(kind, &chain, &body).await.map_err(chains::about)?;
            return told(output, &held, &what.is(kind), &held.chain.rules);
        }
        let held = client.hold(kind, &what.name, &body).await;
        let held = match held {
            Ok(held) => held,
            Err(error) => return Err(what.unknown(&client, error).await),
        };
        told(output, &held, &what.is(kind), &held.handler.rules)
    }
}

impl Release {
    async fn run(self, global: &Global, kind: RuleKind) -> Result {
        let (client, output, what) = (global.client()?, Output::new(global), &self.what);
        let stood = what.stands(&client, kind).await;
        let said = if stood { what.is_no_longer(kind) } else { what.was_not(kind) };
        if what.schedule {
            let released = client.release_schedule(kind, &what.name).await.map_err(schedules::about)?;
            return told(output, &released, &said, &released.schedule.rules);
        }
        let body = HoldBody { tenant: what.tenant(), reason: None };
        if let Some(chain) = what.chain() {
            let released = client.release_chain(kind, &chain, &body).await.map_err(chains::about)?;
            return told(output, &released, &said, &released.chain.rules);
        }
        let released = match client.release(kind, &what.name, &body).await {
            Ok(released) => released,
            Err(error) => return Err(what.unknown(&client, error).await),
        };
        told(output, &released, &said, &released.handler.rules)
    }
}

impl What {
    fn tenant(&self) -> Option<String> {
        self.tenant.as_ref().map(ToString::to_string)
    }

    /// The chain, if it is one.
    fn chain(&self) -> Option<ChainPath> {
        ChainPath::new(&self.name).ok().filter(|_| !self.schedule)
    }

    /// Whether the rule stands now that is to be lifted.
    async fn stands(&self, client: &Client, kind: RuleKind) -> bool {
        let rules = if self.schedule {
            client.schedule(&self.name).await.map(|detail| detail.schedule.rules)
        } else if let Some(chain) = self.chain() {
            client.chain(&chain).await.map(|detail| detail.chain.rules)
        } else {
            // A collection's rules are told with its source.
            let handler = self.name.split('/').next().unwrap_or(&self.name);
            client.handler(handler).await.map(|detail| detail.handler.rules)
        };
        // Where they cannot be read, the call that follows says why.
        let (rules, tenant) = (rules.unwrap_or_default(), self.tenant());
        rules.iter().any(|rule| rule.kind == kind && rule.name == self.name && rule.tenant == tenant)
    }

    fn is(&self, kind: RuleKind) -> String {
        self.sentence("is", kind)
    }

    fn is_no_longer(&self, kind: RuleKind) -> String {
        self.sentence("is no longer", kind)
    }

    fn was_not(&self, kind: RuleKind) -> String {
        self.sentence("was not", kind)
    }

    fn sentence(&self, verb: &str, kind: RuleKind) -> String {
        let whose = if self.schedule { "The schedule " } else { "" };
        let state = match kind {
            RuleKind::Pause => "paused",
            RuleKind::Block => "blocked",
        };
        let tenant = self.tenant.as_ref().map(|tenant| format!(" for {tenant}")).unwrap_or_default();
        format!("{whose}{} {verb} {state}{tenant}.", self.name)
    }

    /// A call about what is not a schedule failed; perhaps because it is one.
    async fn unknown(&self, client: &Client, error: ClientError) -> Failure {
        let is_unknown = error.status() == Some(404);
        let failure = handlers::about(error);
        if is_unknown && client.schedule(&self.name).await.is_ok() {
            return failure.hint(format!("{} is a schedule: say --schedule {0}", self.name));
        }
        failure
    }
}

/// Says in a sentence how it stands now, and lists all that holds it.
fn told(output: Output, detail: &impl Serialize, said: &str, rules: &[RuleBody]) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    output.line(said)?;
    if rules.is_empty() {
        return Ok(());
    }
    output.line("")?;
    Ok(output.table(&RULE_HEAD, rule_rows(rules), "")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_a_sentence() {
        let what = What { name: "notify".into(), schedule: false, tenant: None };
        assert_eq!(what.is(RuleKind::Pause), "notify is paused.");
        assert_eq!(what.was_not(RuleKind::Block), "notify was not blocked.");
        let of_one = What { tenant: Tenant::new("shop").ok(), ..what };
        assert_eq!(of_one.is_no_longer(RuleKind::Pause), "notify is no longer paused for shop.");
        let nightly = What { name: "nightly".into(), schedule: true, tenant: None };
        assert_eq!(nightly.is(RuleKind::Block), "The schedule nightly is blocked.");
    }
}
