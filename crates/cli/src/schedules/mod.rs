//! `pointsman schedules`: lists schedules with their next and past times, and runs one now.
//!
//! ```text
//!  next    explains an expression and its next times; needs no server
//!  mod     the schedules of a server
//! ```

mod next;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{
    FireBody, FireList, RuleBody, RunScheduleResponse, ScheduleActionBody, ScheduleBody, ScheduleDetail,
};
use pointsman_core::{ScheduleName, Timestamp};

use crate::args::{GlobalOptions, parse_time};
use crate::failure::{CommandResult, Failure};
use crate::handlers::{RULE_COLUMNS, rule_rows};
use crate::output::{Output, format_timestamp};

/// List or show schedules and their past times, or run one now
///
/// Without a subcommand, lists the schedules of the server.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman schedules
  pointsman schedules show nightly
  pointsman schedules fires nightly
  pointsman schedules run shop/orders
  pointsman schedules next '0 3 * * *' --timezone Europe/Berlin")]
pub(crate) struct SchedulesCommand {
    #[command(subcommand)]
    subcommand: Option<ScheduleSubcommand>,
}

#[derive(Debug, Subcommand)]
enum ScheduleSubcommand {
    /// List all schedules
    #[command(after_long_help = "\
Examples:
  pointsman schedules list
  pointsman schedules list -o json | jq -r '.schedules[] | [.name, .next[0]] | @tsv'")]
    List,
    /// Show one schedule with its next times and rules
    #[command(after_long_help = "\
Examples:
  pointsman schedules show nightly
  pointsman schedules show shop/orders -o json | jq .next")]
    Show {
        /// Name of the schedule, or SOURCE/COLLECTION
        name: ScheduleName,
    },
    /// List the past times of a schedule, newest first
    #[command(after_long_help = "\
Examples:
  pointsman schedules fires nightly
  pointsman schedules fires shop/orders --limit 100
  pointsman schedules fires nightly -o json | jq '.fires[] | select(.outcome == \"skipped\")'

A planned time has fired, fired late, was caught up, or was skipped: because the schedule was paused or blocked, \
because the previous run had not ended (overlap), or because it was missed.")]
    Fires {
        /// Name of the schedule, or SOURCE/COLLECTION
        name: ScheduleName,
        /// Maximum number of results
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Only times before this one
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        before: Option<Timestamp>,
    },
    /// Run a schedule now
    ///
    /// Its planned times do not change.
    #[command(after_long_help = "\
Examples:
  pointsman schedules run nightly
  pointsman schedules run shop/orders")]
    Run {
        /// Name of the schedule, or SOURCE/COLLECTION
        name: ScheduleName,
        /// Repeating the command with the same key runs nothing and prints the first result
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    Next(next::NextFiresCommand),
}

impl SchedulesCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let output = Output::new(global);
        match self.subcommand.unwrap_or(ScheduleSubcommand::List) {
            ScheduleSubcommand::Next(next) => next.run(output),
            ScheduleSubcommand::List => list_schedules(&global.new_client()?, output).await,
            ScheduleSubcommand::Show { name } => {
                let detail = global
                    .new_client()?
                    .read_schedule(name.as_str())
                    .await
                    .map_err(schedule_request_failure)?;
                print_schedule(output, &detail)
            }
            ScheduleSubcommand::Fires { name, limit, before } => {
                let before = before.map(|time| time.to_string());
                let list = global.new_client()?.list_fires(name.as_str(), before.as_deref(), limit).await;
                print_fires(output, &list.map_err(schedule_request_failure)?)
            }
            ScheduleSubcommand::Run { name, idempotency_key: key } => {
                let response = global.new_client()?.run_schedule(name.as_str(), key.as_deref()).await;
                print_schedule_run(
                    output,
                    &response.map_err(|error| run_schedule_request_failure(&name, error))?,
                )
            }
        }
    }
}

async fn list_schedules(client: &Client, output: Output) -> CommandResult {
    let list = client.list_schedules().await?;
    if output.is_json() {
        return Ok(output.print_json(&list)?);
    }
    let rows = list.schedules.iter().map(schedule_row).collect();
    let head = ["schedule", "fires", "next", "rules", "last"];
    Ok(output.print_table(&head, rows, "No schedules. Configure them under `schedules:` and `sources:`.")?)
}

fn schedule_row(schedule: &ScheduleBody) -> Vec<String> {
    let rules: Vec<&str> = schedule.rules.iter().map(|rule| rule.kind.as_str()).collect();
    vec![
        schedule.name.clone(),
        describe_timing(schedule).replace(INTERVAL_ORIGIN_SUFFIX, ""),
        schedule.next_planned_times.first().map_or("-".into(), |time| format_timestamp(time)),
        rules.join(" "),
        schedule.last_fire.as_ref().map_or("-".into(), describe_fire),
    ]
}

/// The suffix of an interval's description that the server sends; the table of schedules omits it.
const INTERVAL_ORIGIN_SUFFIX: &str = ", counted from 1970 in UTC";

fn describe_timing(schedule: &ScheduleBody) -> String {
    match (schedule.defined, schedule.timezone.as_str()) {
        (false, _) => "not defined".into(),
        (true, "UTC" | "") => schedule.description.clone(),
        (true, zone) => format!("{} ({zone})", schedule.description),
    }
}

fn describe_fire(fire: &FireBody) -> String {
    format!("{} {}", format_timestamp(&fire.planned_at), describe_fire_outcome(fire))
}

fn describe_fire_outcome(fire: &FireBody) -> String {
    let outcome = fire.outcome.replace('_', " ");
    match &fire.skip_reason {
        Some(reason) => format!("{outcome}: {reason}"),
        None => outcome,
    }
}

fn print_schedule(output: Output, detail: &ScheduleDetail) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    let schedule = &detail.schedule;
    let json_name = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let format_seconds = |seconds: f64| if seconds > 0.0 { format!("{seconds} s") } else { String::new() };
    output.print_fields(&[
        ("schedule", schedule.name.clone()),
        ("expression", schedule.expression.clone()),
        ("fires", describe_timing(schedule)),
        ("creates", schedule.action.as_ref().map(describe_schedule_action).unwrap_or_default()),
        ("catch up", json_name(serde_json::to_value(schedule.catch_up))),
        ("catch up within", format_seconds(schedule.catch_up_within_seconds)),
        ("overlap", describe_overlap_policy(schedule, json_name(serde_json::to_value(schedule.overlap)))),
        ("jitter", format_seconds(schedule.jitter_seconds)),
        ("last", schedule.last_fire.as_ref().map(describe_fire).unwrap_or_default()),
        (
            "next",
            schedule
                .next_planned_times
                .iter()
                .map(|time| format_timestamp(time))
                .collect::<Vec<_>>()
                .join(", "),
        ),
    ])?;
    print_rules(output, &schedule.rules)
}

/// Describes a schedule's overlap policy: `policy`, except for an order with a fixed id, which cannot run twice at a time.
fn describe_overlap_policy(schedule: &ScheduleBody, policy: String) -> String {
    match &schedule.action {
        Some(ScheduleActionBody::AddOrder { id: Some(_), .. }) => "skip while the order runs".into(),
        _ => policy,
    }
}

/// Describes the event, task or order that a schedule creates.
fn describe_schedule_action(action: &ScheduleActionBody) -> String {
    match action {
        ScheduleActionBody::EmitEvent { event_type, key, tenant } => {
            let object = key.as_ref().map(|key| format!(" for {key}")).unwrap_or_default();
            format!("event {event_type}{object}, tenant {tenant}")
        }
        ScheduleActionBody::RunCollection { source, collection } => format!("task of {source}/{collection}"),
        ScheduleActionBody::AddOrder { chain, id, node, tenant } => {
            let id = id.as_ref().map(|id| format!(",{id}")).unwrap_or_default();
            let start = node.as_ref().map(|node| format!(" at {node}")).unwrap_or_default();
            format!("order {chain}{id}{start}, tenant {tenant}")
        }
    }
}

fn print_rules(output: Output, rules: &[RuleBody]) -> CommandResult {
    if rules.is_empty() {
        return Ok(());
    }
    output.print_line("")?;
    Ok(output.print_table(&RULE_COLUMNS, rule_rows(rules), "")?)
}

fn print_fires(output: Output, list: &FireList) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(list)?);
    }
    let rows = list.fires.iter().map(|fire| {
        let created = fire.event_id.map(|id| id.to_string()).or_else(|| fire.task_id.clone());
        let (planned, decided) = (format_timestamp(&fire.planned_at), format_timestamp(&fire.recorded_at));
        vec![planned, describe_fire_outcome(fire), decided, created.unwrap_or_default()]
    });
    let head = ["planned", "outcome", "decided", "event or task"];
    output.print_table(&head, rows.collect(), "The schedule has no past times.")?;
    if let Some(next) = &list.next {
        output.print_line(format!("More results: --before {next}"))?;
    }
    Ok(())
}

fn print_schedule_run(output: Output, run: &RunScheduleResponse) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(run)?);
    }
    let created = run.task_id.clone().or(run.event_id.map(|id| id.to_string())).unwrap_or_default();
    let note = if run.created { "" } else { "  (already queued or running)" };
    Ok(output.print_line(format!("{created}{note}"))?)
}

/// Converts the error of a request to run a schedule. The hint for a collection without a schedule names `pointsman run`.
fn run_schedule_request_failure(name: &ScheduleName, error: ClientError) -> Failure {
    let is_collection = error.http_status() == Some(404) && name.as_str().contains('/');
    match (is_collection, schedule_request_failure(error)) {
        (true, failure) => {
            failure.with_hint(format!("`pointsman run {name}` runs a collection that has no schedule."))
        }
        (false, failure) => failure,
    }
}

/// Converts the error of an API request about one schedule, with a hint.
pub(crate) fn schedule_request_failure(error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint("`pointsman schedules` lists the schedules."),
        _ => failure,
    }
}
