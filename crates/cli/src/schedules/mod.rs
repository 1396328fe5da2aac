//! `pointsman schedules`: when they fire, what they did, and running one now.
//!
//! ```text
//!  next    what an expression means and when it fires; needs no server
//!  mod     what a server knows of its schedules
//! ```

mod next;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{FireBody, FireList, MakesBody, RanNow, RuleBody, ScheduleBody, ScheduleDetail};
use pointsman_core::{ScheduleName, Timestamp};

use crate::args::{Global, moment};
use crate::failure::{Failure, Result};
use crate::handlers::{RULE_HEAD, rule_rows};
use crate::output::{Output, day_and_time};

/// See when schedules fire and what became of it, or run one now
///
/// Without a subcommand, lists those of the server.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman schedules
  pointsman schedules show nightly
  pointsman schedules fires nightly
  pointsman schedules run shop/orders
  pointsman schedules next '0 3 * * *' --timezone Europe/Berlin")]
pub(crate) struct Schedules {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all schedules
    #[command(after_long_help = "\
Examples:
  pointsman schedules list
  pointsman schedules list -o json | jq -r '.schedules[] | [.name, .next[0]] | @tsv'")]
    List,
    /// Show one schedule with its next times and what holds it
    #[command(after_long_help = "\
Examples:
  pointsman schedules show nightly
  pointsman schedules show shop/orders -o json | jq .next")]
    Show {
        /// The schedule's name, or SOURCE/COLLECTION
        name: ScheduleName,
    },
    /// List what became of a schedule's planned times, the latest first
    #[command(after_long_help = "\
Examples:
  pointsman schedules fires nightly
  pointsman schedules fires shop/orders --limit 100
  pointsman schedules fires nightly -o json | jq '.fires[] | select(.outcome == \"skipped\")'

A planned time has fired, fired late, been caught up, or been skipped: because a rule held the schedule, \
because what the last one began had not ended (overlap), or because it was missed.")]
    Fires {
        /// The schedule's name, or SOURCE/COLLECTION
        name: ScheduleName,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Only times planned before this one
        #[arg(long, value_name = "TIME", value_parser = moment)]
        before: Option<Timestamp>,
    },
    /// Make what a schedule makes, now
    ///
    /// Its planned times stay as they are.
    #[command(after_long_help = "\
Examples:
  pointsman schedules run nightly
  pointsman schedules run shop/orders")]
    Run {
        /// The schedule's name, or SOURCE/COLLECTION
        name: ScheduleName,
        /// A repeat with the same key creates nothing and prints the first result
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    Next(next::Next),
}

impl Schedules {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let output = Output::new(global);
        match self.action.unwrap_or(Action::List) {
            Action::Next(next) => next.run(output),
            Action::List => list(&global.client()?, output).await,
            Action::Show { name } => {
                let detail = global.client()?.schedule(name.as_str()).await.map_err(about)?;
                show(output, &detail)
            }
            Action::Fires { name, limit, before } => {
                let before = before.map(|time| time.to_string());
                let list = global.client()?.fires(name.as_str(), before.as_deref(), limit).await;
                fires(output, &list.map_err(about)?)
            }
            Action::Run { name, idempotency_key: key } => {
                let ran = global.client()?.run_schedule(name.as_str(), key.as_deref()).await;
                told(output, &ran.map_err(|error| not_run(&name, error))?)
            }
        }
    }
}

async fn list(client: &Client, output: Output) -> Result {
    let list = client.schedules().await?;
    if output.is_json() {
        return Ok(output.json(&list)?);
    }
    let rows = list.schedules.iter().map(row).collect();
    let head = ["schedule", "fires", "next", "held by", "last"];
    Ok(output.table(&head, rows, "No schedules. They are configured under `schedules:` and `sources:`.")?)
}

fn row(schedule: &ScheduleBody) -> Vec<String> {
    let held: Vec<&str> = schedule.rules.iter().map(|rule| rule.kind.as_str()).collect();
    vec![
        schedule.name.clone(),
        words(schedule).replace(COUNTED, ""),
        schedule.next.first().map_or("-".into(), |time| day_and_time(time)),
        held.join(" "),
        schedule.last.as_ref().map_or("-".into(), last),
    ]
}

/// What the words of an interval end with: worth knowing once, and tiresome in every row.
const COUNTED: &str = ", counted from 1970 in UTC";

fn words(schedule: &ScheduleBody) -> String {
    match (schedule.defined, schedule.timezone.as_str()) {
        (false, _) => "not defined".into(),
        (true, "UTC" | "") => schedule.words.clone(),
        (true, zone) => format!("{} ({zone})", schedule.words),
    }
}

fn last(fire: &FireBody) -> String {
    format!("{} {}", day_and_time(&fire.planned_at), outcome(fire))
}

fn outcome(fire: &FireBody) -> String {
    let word = fire.outcome.replace('_', " ");
    match &fire.reason {
        Some(reason) => format!("{word}: {reason}"),
        None => word,
    }
}

fn show(output: Output, detail: &ScheduleDetail) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    let schedule = &detail.schedule;
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let seconds = |seconds: f64| if seconds > 0.0 { format!("{seconds} s") } else { String::new() };
    output.facts(&[
        ("schedule", schedule.name.clone()),
        ("expression", schedule.expression.clone()),
        ("fires", words(schedule)),
        ("makes", schedule.makes.as_ref().map(makes).unwrap_or_default()),
        ("catch up", word(serde_json::to_value(schedule.catch_up))),
        ("within", seconds(schedule.catch_up_within_seconds)),
        ("overlap", overlap(schedule, word(serde_json::to_value(schedule.overlap)))),
        ("jitter", seconds(schedule.jitter_seconds)),
        ("last", schedule.last.as_ref().map(last).unwrap_or_default()),
        ("next", schedule.next.iter().map(|time| day_and_time(time)).collect::<Vec<_>>().join(", ")),
    ])?;
    rules(output, &schedule.rules)
}

/// An order of one name can only be on its way once, whatever the setting says.
fn overlap(schedule: &ScheduleBody, word: String) -> String {
    match &schedule.makes {
        Some(MakesBody::Order { id: Some(_), .. }) => "skip while the order is on its way".into(),
        _ => word,
    }
}

fn makes(makes: &MakesBody) -> String {
    match makes {
        MakesBody::Event { kind, key, tenant } => {
            let of = key.as_ref().map(|key| format!(" of {key}")).unwrap_or_default();
            format!("the event {kind}{of}, for {tenant}")
        }
        MakesBody::Run { source, collection } => format!("a task of {source}/{collection}"),
        MakesBody::Order { chain, id, node, tenant } => {
            let id = id.as_ref().map(|id| format!(",{id}")).unwrap_or_default();
            let at = node.as_ref().map(|node| format!(" at {node}")).unwrap_or_default();
            format!("the order {chain}{id}{at}, for {tenant}")
        }
    }
}

fn rules(output: Output, rules: &[RuleBody]) -> Result {
    if rules.is_empty() {
        return Ok(());
    }
    output.line("")?;
    Ok(output.table(&RULE_HEAD, rule_rows(rules), "")?)
}

fn fires(output: Output, list: &FireList) -> Result {
    if output.is_json() {
        return Ok(output.json(list)?);
    }
    let rows = list.fires.iter().map(|fire| {
        let made = fire.event_id.map(|id| id.to_string()).or_else(|| fire.task_id.clone());
        let (planned, settled) = (day_and_time(&fire.planned_at), day_and_time(&fire.settled_at));
        vec![planned, outcome(fire), settled, made.unwrap_or_default()]
    });
    let head = ["planned", "outcome", "settled", "event or task"];
    output.table(&head, rows.collect(), "None of its times has come yet.")?;
    if let Some(next) = &list.next {
        output.line(format!("There are more: --before {next}"))?;
    }
    Ok(())
}

fn told(output: Output, ran: &RanNow) -> Result {
    if output.is_json() {
        return Ok(output.json(ran)?);
    }
    let made = ran.task_id.clone().or(ran.event_id.map(|id| id.to_string())).unwrap_or_default();
    let before = if ran.created { "" } else { "  (was queued or running already)" };
    Ok(output.line(format!("{made}{before}"))?)
}

/// A collection can be run whether it has a schedule or not, only not as one.
fn not_run(name: &ScheduleName, error: ClientError) -> Failure {
    let is_pair = error.status() == Some(404) && name.as_str().contains('/');
    match (is_pair, about(error)) {
        (true, failure) => {
            failure.hint(format!("`pointsman run {name}` runs a collection, also one that has no schedule."))
        }
        (false, failure) => failure,
    }
}

/// A call about one schedule failed.
pub(crate) fn about(error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint("`pointsman schedules` lists the schedules there are."),
        _ => failure,
    }
}
