//! `pointsman handlers`: how each runs, what leads to it, and what waits for it.

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{HandlerBody, HandlerDetail, QueueBody, RuleBody};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, clean, counted, day_and_time, short};

/// List handlers, look at one, or adopt its missing tasks
///
/// Without a subcommand, lists them all.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman handlers
  pointsman handlers show index
  pointsman handlers -o json | jq '.handlers[] | select(.counts.halted > 0) | .name'")]
pub(crate) struct Handlers {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all handlers
    List,
    /// Show one handler with its routes, queues and rules
    Show {
        /// The handler's name
        name: String,
    },
    /// Take up the tasks that went missing while a handler was not defined
    Adopt {
        /// The handler's name
        name: String,
    },
}

impl Handlers {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        match self.action.unwrap_or(Action::List) {
            Action::List => list(&client, output).await,
            Action::Show { name } => {
                let detail = client.handler(&name).await.map_err(|e| about(&name, e))?;
                show(output, &detail)
            }
            Action::Adopt { name } => {
                let adopted = client.adopt(&name).await.map_err(|e| about(&name, e))?;
                if output.is_json() {
                    return Ok(output.json(&adopted)?);
                }
                let tasks = counted(adopted.adopted, "missing task", "missing tasks");
                Ok(output.line(format!("{tasks} of {name} queued again"))?)
            }
        }
    }
}

async fn list(client: &Client, output: Output) -> Result {
    let list = client.handlers().await?;
    if output.is_json() {
        return Ok(output.json(&list)?);
    }
    let rows = list.handlers.iter().map(row).collect();
    let head = ["handler", "runs", "types", "ready", "waiting", "running", "halted", "missing", "held by"];
    Ok(output.table(&head, rows, "No handlers. They are configured under `handlers:`.")?)
}

fn row(handler: &HandlerBody) -> Vec<String> {
    let types: Vec<&str> = handler.routes.iter().map(|route| route.kind.as_str()).collect();
    let held: Vec<String> = handler.rules.iter().map(rule_in_short).collect();
    let counts = &handler.counts;
    vec![
        handler.name.clone(),
        runs(handler),
        short(&types.join(" "), 40),
        (counts.ready + counts.scheduled).to_string(),
        counts.waiting.to_string(),
        counts.running.to_string(),
        counts.halted.to_string(),
        counts.missing.to_string(),
        held.join(" "),
    ]
}

fn runs(handler: &HandlerBody) -> String {
    match &handler.run {
        Some(run) => run.clone(),
        None if handler.defined => "elsewhere".into(),
        None => "not defined".into(),
    }
}

fn rule_in_short(rule: &RuleBody) -> String {
    match &rule.tenant {
        Some(tenant) => format!("{}({tenant})", rule.kind.as_str()),
        None => rule.kind.as_str().into(),
    }
}

/// Shows a handler. Also what `pause` and its kin show when they have worked.
pub(crate) fn show(output: Output, detail: &HandlerDetail) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    let handler = &detail.handler;
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    output.facts(&[
        ("handler", handler.name.clone()),
        ("runs", runs(handler)),
        ("timeout", handler.timeout_seconds.map(|s| format!("{s} s")).unwrap_or_default()),
        ("order", word(serde_json::to_value(handler.order))),
        ("on error", word(serde_json::to_value(handler.on_error))),
        ("retries", handler.retry_max.map(|max| max.to_string()).unwrap_or_default()),
        ("types", routes(handler)),
    ])?;
    if !handler.rules.is_empty() {
        output.line("")?;
        output.table(&["rule", "tenant", "by", "since", "reason"], rules(&handler.rules), "")?;
    }
    output.line("")?;
    let head = ["tenant", "ready", "waiting", "scheduled", "running", "halted", "missing", "held"];
    Ok(output.table(&head, queues(&handler.queues), "Nothing waits for it.")?)
}

fn routes(handler: &HandlerBody) -> String {
    let shown =
        handler.routes.iter().map(|r| if r.sync { format!("{} (sync)", r.kind) } else { r.kind.clone() });
    shown.collect::<Vec<_>>().join(", ")
}

fn rules(rules: &[RuleBody]) -> Vec<Vec<String>> {
    let row = |rule: &RuleBody| {
        vec![
            rule.kind.as_str().into(),
            rule.tenant.clone().unwrap_or_else(|| "all".into()),
            rule.by.clone(),
            day_and_time(&rule.since),
            clean(&rule.reason).into_owned(),
        ]
    };
    rules.iter().map(row).collect()
}

fn queues(queues: &[QueueBody]) -> Vec<Vec<String>> {
    let row = |queue: &QueueBody| {
        let c = &queue.counts;
        let counts = [c.ready, c.waiting, c.scheduled, c.running, c.halted, c.missing];
        let mut row = vec![queue.tenant.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(if queue.held { "yes" } else { "no" }.into());
        row
    };
    queues.iter().map(row).collect()
}

/// A call about one handler failed.
pub(crate) fn about(name: &str, error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => {
            failure.hint(format!("`pointsman handlers` lists the handlers there are; is {name:?} one?"))
        }
        _ => failure,
    }
}
