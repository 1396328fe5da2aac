//! `pointsman handlers`: lists handlers and sources with their routes, queues and rules.

mod adopt;
mod show;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{HandlerBody, LimitsBody, RuleBody};
use pointsman_core::suggestion::did_you_mean_suffix;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, escape_and_shorten, format_age};

pub(crate) use show::{RULE_COLUMNS, rule_rows};

/// List or show handlers and sources, or replay past events to one
///
/// Without a subcommand, lists all handlers and sources.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman handlers
  pointsman handlers show index
  pointsman handlers adopt index --from 1478257655827000
  pointsman handlers -o json | jq '.handlers[] | select(.counts.halted > 0) | .name'")]
pub(crate) struct HandlersCommand {
    #[command(subcommand)]
    subcommand: Option<HandlerSubcommand>,
}

#[derive(Debug, Subcommand)]
enum HandlerSubcommand {
    /// List all handlers and sources
    ///
    /// ROUTES are the event types routed to a handler, or a source's collections. OLDEST is how long the next runnable
    /// task has waited.
    #[command(after_long_help = "\
Examples:
  pointsman handlers list
  pointsman handlers list -o json | jq -r '.handlers[] | select(.defined | not) | .name'")]
    List,
    /// Show one handler with its routes, limits, queues and rules
    #[command(after_long_help = "\
Examples:
  pointsman handlers show index
  pointsman handlers show shop -o json | jq .counts")]
    Show {
        /// Name of the handler or source
        name: String,
    },
    Adopt(adopt::AdoptCommand),
}

impl HandlersCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        match self.subcommand.unwrap_or(HandlerSubcommand::List) {
            HandlerSubcommand::List => list_handlers(&client, output).await,
            HandlerSubcommand::Show { name } => show::print_handler(
                output,
                &client.read_handler(&name).await.map_err(handler_request_failure)?,
            ),
            HandlerSubcommand::Adopt(adopt) => adopt.run(&client, output).await,
        }
    }
}

async fn list_handlers(client: &Client, output: Output) -> CommandResult {
    let list = client.list_handlers().await?;
    if output.is_json() {
        return Ok(output.print_json(&list)?);
    }
    let rows = list.handlers.iter().map(handler_row).collect();
    let head = [
        "handler", "runs", "routes", "limits", "ready", "oldest", "waiting", "running", "halted", "missing",
        "rules",
    ];
    Ok(output.print_table(&head, rows, "No handlers. Configure them under `handlers:` and `sources:`.")?)
}

fn handler_row(handler: &HandlerBody) -> Vec<String> {
    let rules: Vec<String> = handler.rules.iter().map(|rule| describe_rule(handler, rule)).collect();
    let counts = &handler.counts;
    vec![
        handler.name.clone(),
        describe_run_kind(handler),
        escape_and_shorten(&event_types_or_collections(handler).join(" "), 40),
        handler.limits.as_ref().map(describe_handler_limits).unwrap_or_default(),
        (counts.ready + counts.scheduled).to_string(),
        handler.max_next_ready_task_age_seconds.map(format_age).unwrap_or_default(),
        counts.waiting.to_string(),
        counts.running.to_string(),
        counts.halted.to_string(),
        counts.missing.to_string(),
        rules.join(" "),
    ]
}

/// The event types of a handler, or the collections of a source.
fn event_types_or_collections(handler: &HandlerBody) -> Vec<&str> {
    match &handler.source {
        Some(source) => source.collections.iter().map(|collection| collection.name.as_str()).collect(),
        None => handler.routes.iter().map(|route| route.event_type.as_str()).collect(),
    }
}

/// How the tasks of a handler are run, such as `command`, and `not defined` if no node defines the handler.
fn describe_run_kind(handler: &HandlerBody) -> String {
    match &handler.run_kind {
        Some(run) => run.clone(),
        None if handler.defined => "on another node".into(),
        None => "not defined".into(),
    }
}

/// Describes the limits of a handler that are set: `4 at a time, 100/m`. Empty if none is.
fn describe_handler_limits(limits: &LimitsBody) -> String {
    let parts = [
        limits.concurrency.map(|n| format!("{n} at a time")),
        limits.concurrency_per_key.map(|n| format!("{n} per key")),
        limits.rate.clone(),
        (limits.weight != 1).then(|| format!("weight {}", limits.weight)),
        limits.ageing_seconds.map(|each| format!("ageing every {each} s")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The kind of a rule, with its collection or tenant if it does not apply to the whole handler.
fn describe_rule(handler: &HandlerBody, rule: &RuleBody) -> String {
    let part = (rule.name != handler.name).then_some(rule.name.as_str());
    let scope: Vec<&str> = part.into_iter().chain(rule.tenant.as_deref()).collect();
    match scope.is_empty() {
        true => rule.kind.as_str().into(),
        false => format!("{}({})", rule.kind.as_str(), scope.join(" ")),
    }
}

/// Says in a sentence that there is no such handler or source, with a suggestion. None if it exists or the list cannot
/// be read.
pub(crate) async fn explain_unknown_handler(client: &Client, name: &str) -> Option<String> {
    let list = client.list_handlers().await.ok()?;
    let names: Vec<&str> = list.handlers.iter().map(|handler| handler.name.as_str()).collect();
    (!names.contains(&name)).then(|| {
        format!(
            "There is no handler or source {name}{}",
            hint_or_full_stop(&did_you_mean_suffix(name, names))
        )
    })
}

/// The hint, or a full stop if it is empty. A hint ends with a question mark.
fn hint_or_full_stop(hint: &str) -> &str {
    if hint.is_empty() { "." } else { hint }
}

/// Converts the error of an API request about one handler, with a hint.
pub(crate) fn handler_request_failure(error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint("`pointsman handlers` lists the handlers and sources."),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_are_set_are_described() {
        let none = LimitsBody {
            concurrency: None,
            concurrency_per_key: None,
            rate: None,
            weight: 1,
            ageing_seconds: None,
        };
        assert_eq!(describe_handler_limits(&none), "");
        let some = LimitsBody { concurrency: Some(4), rate: Some("100/m".into()), weight: 2, ..none };
        assert_eq!(describe_handler_limits(&some), "4 at a time, 100/m, weight 2");
    }
}
