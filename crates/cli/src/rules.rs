//! `pointsman pause`, `resume`, `block` and `unblock`: rules that keep tasks from starting or schedules from firing.

use clap::Args;
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{RuleBody, RuleRequestBody};
use pointsman_core::chain::ChainPath;
use pointsman_core::{HandlerName, RuleKind, SourceCollection, Tenant};
use serde::Serialize;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::handlers::{self, RULE_COLUMNS, rule_rows};
use crate::output::Output;
use crate::{chains, schedules};

/// Pause a handler, a source, a collection, a chain or a schedule
///
/// When this returns, no new attempt starts; running ones finish. Tasks that are created meanwhile wait and run in order
/// after `resume`. A paused schedule does not fire; after `resume`, its `catch_up` setting decides about the missed
/// times.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman pause index --reason 'the search cluster is down'
  pointsman pause index --tenant shop
  pointsman pause shop/orders
  pointsman pause /publish/article
  pointsman pause --schedule nightly

A name that starts with a slash is a chain: its orders start no steps.")]
pub(crate) struct PauseCommand {
    #[command(flatten)]
    rule: SetRuleArgs,
}

/// Resume what was paused
///
/// A block, which only an admin can lift, stays in force.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman resume index
  pointsman resume /publish/article
  pointsman resume --schedule nightly

For suspended orders: pointsman orders resume PATH,ID")]
pub(crate) struct ResumeCommand {
    #[command(flatten)]
    rule: LiftRuleArgs,
}

/// Block a handler, source, collection, chain or schedule as an admin
///
/// Like `pause`, but only an admin can lift it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman block index --reason 'wrong data, see the incident'
  pointsman block shop/orders --tenant shop")]
pub(crate) struct BlockCommand {
    #[command(flatten)]
    rule: SetRuleArgs,
}

/// Lift a block
///
/// A pause stays in force.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman unblock index
  pointsman unblock --schedule nightly")]
pub(crate) struct UnblockCommand {
    #[command(flatten)]
    rule: LiftRuleArgs,
}

#[derive(Debug, Args)]
struct SetRuleArgs {
    #[command(flatten)]
    target: RuleTarget,
    /// Reason, shown with the rule
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct LiftRuleArgs {
    #[command(flatten)]
    target: RuleTarget,
}

/// The target of a rule.
#[derive(Debug, Args)]
struct RuleTarget {
    /// Handler, source, SOURCE/COLLECTION or path of a chain; with --schedule, a schedule
    #[arg(value_parser = validate_target_name)]
    name: String,
    /// NAME is a schedule
    #[arg(long = "schedule", conflicts_with = "tenant")]
    is_schedule: bool,
    /// Only tasks of this tenant
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// Checks that a text is a name, SOURCE/COLLECTION or the path of a chain, and returns it unchanged. Schedules have
/// names like the first two.
fn validate_target_name(text: &str) -> Result<String, String> {
    let checked = match text.find('/') {
        Some(0) if text.contains(',') => {
            return Err(format!(
                "an order cannot be paused; suspend it with: pointsman orders suspend {text}"
            ));
        }
        Some(0) => ChainPath::new(text).map(|_| ()),
        Some(_) => text.parse::<SourceCollection>().map(|_| ()),
        None => HandlerName::new(text).map(|_| ()),
    };
    checked.map(|()| text.into()).map_err(|e| e.to_string())
}

impl PauseCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        self.rule.run(global, RuleKind::Pause).await
    }
}

impl ResumeCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        self.rule.run(global, RuleKind::Pause).await
    }
}

impl BlockCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        self.rule.run(global, RuleKind::Block).await
    }
}

impl UnblockCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        self.rule.run(global, RuleKind::Block).await
    }
}

impl SetRuleArgs {
    async fn run(self, global: &GlobalOptions, kind: RuleKind) -> CommandResult {
        let (client, output, target) = (global.new_client()?, Output::new(global), &self.target);
        let body = RuleRequestBody { tenant: target.tenant_name(), reason: self.reason };
        if target.is_schedule {
            let detail = client
                .set_schedule_rule(kind, &target.name, &body)
                .await
                .map_err(schedules::schedule_request_failure)?;
            return print_changed_rules(
                output,
                &detail,
                &target.describe_rule_set(kind),
                &detail.schedule.rules,
            );
        }
        if let Some(chain) = target.chain_path() {
            let detail =
                client.set_chain_rule(kind, &chain, &body).await.map_err(chains::chain_request_failure)?;
            return print_changed_rules(
                output,
                &detail,
                &target.describe_rule_set(kind),
                &detail.chain.rules,
            );
        }
        let detail = match client.set_handler_rule(kind, &target.name, &body).await {
            Ok(detail) => detail,
            Err(error) => return Err(target.handler_rule_request_failure(&client, error).await),
        };
        print_changed_rules(output, &detail, &target.describe_rule_set(kind), &detail.handler.rules)
    }
}

impl LiftRuleArgs {
    async fn run(self, global: &GlobalOptions, kind: RuleKind) -> CommandResult {
        let (client, output, target) = (global.new_client()?, Output::new(global), &self.target);
        let was_set = target.has_rule(&client, kind).await;
        let message =
            if was_set { target.describe_rule_lifted(kind) } else { target.describe_rule_not_set(kind) };
        if target.is_schedule {
            let detail = client
                .delete_schedule_rule(kind, &target.name)
                .await
                .map_err(schedules::schedule_request_failure)?;
            return print_changed_rules(output, &detail, &message, &detail.schedule.rules);
        }
        let body = RuleRequestBody { tenant: target.tenant_name(), reason: None };
        if let Some(chain) = target.chain_path() {
            let detail =
                client.delete_chain_rule(kind, &chain, &body).await.map_err(chains::chain_request_failure)?;
            return print_changed_rules(output, &detail, &message, &detail.chain.rules);
        }
        let detail = match client.delete_handler_rule(kind, &target.name, &body).await {
            Ok(detail) => detail,
            Err(error) => return Err(target.handler_rule_request_failure(&client, error).await),
        };
        print_changed_rules(output, &detail, &message, &detail.handler.rules)
    }
}

impl RuleTarget {
    fn tenant_name(&self) -> Option<String> {
        self.tenant.as_ref().map(ToString::to_string)
    }

    /// The path, if the target is a chain.
    fn chain_path(&self) -> Option<ChainPath> {
        ChainPath::new(&self.name).ok().filter(|_| !self.is_schedule)
    }

    /// Whether the target has a rule of this kind for the same tenant.
    async fn has_rule(&self, client: &Client, kind: RuleKind) -> bool {
        let rules = if self.is_schedule {
            client.read_schedule(&self.name).await.map(|detail| detail.schedule.rules)
        } else if let Some(chain) = self.chain_path() {
            client.read_chain(&chain).await.map(|detail| detail.chain.rules)
        } else {
            // The rules of a collection are listed with its source.
            let handler = self.name.split('/').next().unwrap_or(&self.name);
            client.read_handler(handler).await.map(|detail| detail.handler.rules)
        };
        // If they cannot be read, the request that lifts the rule returns the error.
        let (rules, tenant) = (rules.unwrap_or_default(), self.tenant_name());
        rules.iter().any(|rule| rule.kind == kind && rule.name == self.name && rule.tenant == tenant)
    }

    fn describe_rule_set(&self, kind: RuleKind) -> String {
        self.format_rule_sentence("is", kind)
    }

    fn describe_rule_lifted(&self, kind: RuleKind) -> String {
        self.format_rule_sentence("is no longer", kind)
    }

    fn describe_rule_not_set(&self, kind: RuleKind) -> String {
        self.format_rule_sentence("was not", kind)
    }

    fn format_rule_sentence(&self, verb: &str, kind: RuleKind) -> String {
        let prefix = if self.is_schedule { "Schedule " } else { "" };
        let state = match kind {
            RuleKind::Pause => "paused",
            RuleKind::Block => "blocked",
        };
        let tenant = self.tenant.as_ref().map(|tenant| format!(" for tenant {tenant}")).unwrap_or_default();
        format!("{prefix}{} {verb} {state}{tenant}.", self.name)
    }

    /// Converts the error of a request about a handler's rule. If a schedule has the name, the hint says so.
    async fn handler_rule_request_failure(&self, client: &Client, error: ClientError) -> Failure {
        let is_unknown = error.http_status() == Some(404);
        let failure = handlers::handler_request_failure(error);
        if is_unknown && client.read_schedule(&self.name).await.is_ok() {
            return failure.with_hint(format!("{} is a schedule; use --schedule {0}", self.name));
        }
        failure
    }
}

/// Prints the change as a sentence, and all rules of the target.
fn print_changed_rules(
    output: Output,
    detail: &impl Serialize,
    message: &str,
    rules: &[RuleBody],
) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    output.print_line(message)?;
    if rules.is_empty() {
        return Ok(());
    }
    output.print_line("")?;
    Ok(output.print_table(&RULE_COLUMNS, rule_rows(rules), "")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_rules_are_described_as_sentences() {
        let notify = RuleTarget { name: "notify".into(), is_schedule: false, tenant: None };
        assert_eq!(notify.describe_rule_set(RuleKind::Pause), "notify is paused.");
        assert_eq!(notify.describe_rule_not_set(RuleKind::Block), "notify was not blocked.");
        let one_tenant = RuleTarget { tenant: Tenant::new("shop").ok(), ..notify };
        assert_eq!(
            one_tenant.describe_rule_lifted(RuleKind::Pause),
            "notify is no longer paused for tenant shop."
        );
        let nightly = RuleTarget { name: "nightly".into(), is_schedule: true, tenant: None };
        assert_eq!(nightly.describe_rule_set(RuleKind::Block), "Schedule nightly is blocked.");
    }
}
