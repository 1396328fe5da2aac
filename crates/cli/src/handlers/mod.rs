//! `pointsman handlers`: how each runs, what leads to it, and what waits for it.

mod adopt;
mod show;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{HandlerBody, LimitsBody, RuleBody};
use pointsman_server::config::nearest::hint;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, age, short};

pub(crate) use show::{RULE_HEAD, rule_rows};

/// List handlers and sources, look at one, or give one its past tasks
///
/// Without a subcommand, lists them all.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman handlers
  pointsman handlers show index
  pointsman handlers adopt index --from 1478257655827000
  pointsman handlers -o json | jq '.handlers[] | select(.counts.halted > 0) | .name'")]
pub(crate) struct Handlers {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all handlers and sources
    ///
    /// `gets` is what leads to it: types of events, or a source's collections. `oldest` is for how long the
    /// task has waited that is next in line, of those that could run now.
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
        /// The name of a handler or a source
        name: String,
    },
    Adopt(adopt::Adopt),
}

impl Handlers {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        match self.action.unwrap_or(Action::List) {
            Action::List => list(&client, output).await,
            Action::Show { name } => show::show(output, &client.handler(&name).await.map_err(about)?),
            Action::Adopt(adopt) => adopt.run(&client, output).await,
        }
    }
}

async fn list(client: &Client, output: Output) -> Result {
    let list = client.handlers().await?;
    if output.is_json() {
        return Ok(output.json(&list)?);
    }
    let rows = list.handlers.iter().map(row).collect();
    let head = [
        "handler", "runs", "gets", "limits", "ready", "oldest", "waiting", "running", "halted", "missing",
        "held by",
    ];
    Ok(output.table(&head, rows, "No handlers. They are configured under `handlers:` and `sources:`.")?)
}

fn row(handler: &HandlerBody) -> Vec<String> {
    let held: Vec<String> = handler.rules.iter().map(|rule| rule_in_short(handler, rule)).collect();
    let counts = &handler.counts;
    vec![
        handler.name.clone(),
        runs(handler),
        short(&gets(handler).join(" "), 40),
        handler.limits.as_ref().map(limits).unwrap_or_default(),
        (counts.ready + counts.scheduled).to_string(),
        handler.oldest_runnable_seconds.map(age).unwrap_or_default(),
        counts.waiting.to_string(),
        counts.running.to_string(),
        counts.halted.to_string(),
        counts.missing.to_string(),
        held.join(" "),
    ]
}

/// What leads to it: types of events, or the collections of a source.
fn gets(handler: &HandlerBody) -> Vec<&str> {
    match &handler.source {
        Some(source) => source.collections.iter().map(|collection| collection.name.as_str()).collect(),
        None => handler.routes.iter().map(|route| route.kind.as_str()).collect(),
    }
}

fn runs(handler: &HandlerBody) -> String {
    match &handler.run {
        Some(run) => run.clone(),
        None if handler.defined => "elsewhere".into(),
        None => "not defined".into(),
    }
}

/// What bounds it, in a few words; nothing if nothing does.
fn limits(limits: &LimitsBody) -> String {
    let some = [
        limits.concurrency.map(|n| format!("{n} at a time")),
        limits.concurrency_per_key.map(|n| format!("{n} per key")),
        limits.rate.clone(),
        (limits.weight != 1).then(|| format!("weight {}", limits.weight)),
        limits.ageing_seconds.map(|each| format!("ages by {each} s")),
    ];
    some.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A rule in a word, with what it holds if that is not the whole handler.
fn rule_in_short(handler: &HandlerBody, rule: &RuleBody) -> String {
    let part = (rule.name != handler.name).then_some(rule.name.as_str());
    let of: Vec<&str> = part.into_iter().chain(rule.tenant.as_deref()).collect();
    match of.is_empty() {
        true => rule.kind.as_str().into(),
        false => format!("{}({})", rule.kind.as_str(), of.join(" ")),
    }
}

/// That there is no handler or source of this name, and which is nearest. Nothing if there is one, or if the list of
/// them cannot be read: this is said beside something else.
pub(crate) async fn unknown(client: &Client, name: &str) -> Option<String> {
    let list = client.handlers().await.ok()?;
    let names: Vec<&str> = list.handlers.iter().map(|handler| handler.name.as_str()).collect();
    (!names.contains(&name))
        .then(|| format!("There is no handler or source {name}{}", ending(&hint(name, names))))
}

/// A hint is a question and ends as one; without it, a sentence ends with a full stop.
fn ending(hint: &str) -> &str {
    if hint.is_empty() { "." } else { hint }
}

/// A call about one handler failed.
pub(crate) fn about(error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint("`pointsman handlers` lists the handlers and sources there are."),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_only_where_there_are_some() {
        let none = LimitsBody {
            concurrency: None,
            concurrency_per_key: None,
            rate: None,
            weight: 1,
            ageing_seconds: None,
        };
        assert_eq!(limits(&none), "");
        let some = LimitsBody { concurrency: Some(4), rate: Some("100/m".into()), weight: 2, ..none };
        assert_eq!(limits(&some), "4 at a time, 100/m, weight 2");
    }
}
