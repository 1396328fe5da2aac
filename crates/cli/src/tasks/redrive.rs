//! `pointsman tasks redrive`: retries many tasks, after counting them.
//!
//! The server runs the job; this command shows its progress, and stops it when interrupted.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{RedriveBody, RedriveDryRunResponse, RedriveJob};
use pointsman_core::{Rate, Timestamp};

use super::list::parse_status;
use crate::args::parse_time;
use crate::failure::{CommandResult, Failure};
use crate::handlers;
use crate::node_process::StopSignals;
use crate::output::{Output, Progress, format_count};

/// Retry many failed or canceled tasks
///
/// Counts the matching tasks and asks for confirmation. They are queued oldest first, each at the end of its lane.
/// With --canary N, N tasks run first, and the rest only if all of them succeed. Ctrl-C stops the redrive; tasks
/// that are already queued stay queued.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks redrive --handler index --dry-run
  pointsman tasks redrive --handler index --rate 10/s --canary 5
  pointsman tasks redrive --source shop --collection orders --yes
  pointsman tasks redrive --tenant shop --start 2026-01-31 --end 2026-02-01
  pointsman tasks redrive --handler index --status CANCELED
  pointsman tasks redrive --all --rate 10/s

The exit code is 1 if the canary fails. For tasks that are `missing` because their handler was not defined, use \
`pointsman handlers adopt`.")]
pub(super) struct RedriveCommand {
    /// Only tasks of this handler
    #[arg(long, conflicts_with = "source")]
    handler: Option<String>,
    /// Only tasks of this source
    #[arg(long)]
    source: Option<String>,
    /// Only tasks of this collection of a source, or of this event type
    #[arg(long)]
    collection: Option<String>,
    /// Only tasks of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only tasks of this object
    #[arg(long)]
    key: Option<String>,
    /// Only tasks with this status: FAILED, CANCELED, or `error` for both [default: FAILED]
    #[arg(long, value_parser = parse_status)]
    status: Option<String>,
    /// Only tasks created at or after this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Only tasks created before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    end: Option<Timestamp>,
    /// All tasks with this status
    #[arg(long, conflicts_with_all = ["handler", "source", "collection", "tenant", "key", "start", "end"])]
    all: bool,
    /// Only count the tasks and print some of their ids
    #[arg(long)]
    dry_run: bool,
    /// Maximum rate at which tasks are queued: `10/s`, `100/m`
    #[arg(long, value_name = "N/UNIT")]
    rate: Option<Rate>,
    /// Run this many tasks first, and the rest only if they succeed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CANARIES))]
    canary: Option<u32>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// The server's limit of canary tasks.
const MAX_CANARIES: i64 = 1000;
/// How often the job's progress is read.
const JOB_POLL_INTERVAL: Duration = Duration::from_millis(200);

impl RedriveCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        if !self.has_filter_or_all() {
            return Err(Failure::usage("give at least one filter, or --all"));
        }
        let body = self.request_body();
        let count = client.dry_run_redrive(&body).await.map_err(handlers::handler_request_failure)?;
        if self.dry_run {
            return print_dry_run(output, &count);
        }
        if count.matched == 0 {
            return print_no_matching_tasks(output);
        }
        if !self.yes && !confirm_retry(&describe_matched_count(&count))? {
            return Err(Failure::runtime("not confirmed; no task was retried"));
        }
        // The signal handlers are installed before the job starts, so that a signal always stops the job.
        let signals = StopSignals::new()?;
        let job = client.start_redrive(&body).await.map_err(handlers::handler_request_failure)?;
        print_outcome(output, &follow_redrive_job(client, job, signals).await?)
    }

    /// Whether the command line has --all or a filter. --status alone is not enough: it would select all failed tasks.
    fn has_filter_or_all(&self) -> bool {
        let names = [&self.handler, &self.source, &self.collection, &self.tenant, &self.key];
        self.all || names.iter().any(|name| name.is_some()) || self.start.or(self.end).is_some()
    }

    fn request_body(&self) -> RedriveBody {
        RedriveBody {
            handler: self.handler.clone(),
            source: self.source.clone(),
            subject_name: self.collection.clone(),
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            status: self.status.clone(),
            created_from: self.start.map(|time| time.to_string()),
            created_before: self.end.map(|time| time.to_string()),
            all: self.all,
            dry_run: self.dry_run,
            rate: self.rate.map(|rate| rate.to_string()),
            canary_count: self.canary,
        }
    }
}

fn print_no_matching_tasks(output: Output) -> CommandResult {
    if output.is_json() {
        // The same members as a job without matching tasks.
        let empty_job = serde_json::json!({
            "id": null, "state": "done", "stop_reason": null, "matched": 0, "retried": 0, "refused": 0,
        });
        return Ok(output.print_json(&empty_job)?);
    }
    Ok(output.print_line("No tasks match; nothing was retried.")?)
}

fn describe_matched_count(count: &RedriveDryRunResponse) -> String {
    let tasks = format_count(count.matched, "task", "tasks");
    if count.has_more { format!("more than {tasks}") } else { tasks }
}

fn print_dry_run(output: Output, count: &RedriveDryRunResponse) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(count)?);
    }
    output.print_line(format!("{} would be retried", describe_matched_count(count)))?;
    for id in &count.sample_task_ids {
        output.print_line(format!("  {id}"))?;
    }
    if count.has_more || count.matched > count.sample_task_ids.len() as u64 {
        output.print_line("  …")?;
    }
    Ok(())
}

/// Asks for confirmation at the terminal. Without a terminal, --yes is required.
fn confirm_retry(tasks: &str) -> CommandResult<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{tasks} would be retried; add --yes to do so"))
            .with_hint("--dry-run lists some of them."));
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "Retry {tasks}? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Waits for a redrive job to end, or stops it when this command gets a signal. Returns the last state of the job.
async fn follow_redrive_job(
    client: &Client,
    mut job: RedriveJob,
    mut signals: StopSignals,
) -> CommandResult<RedriveJob> {
    let progress = Progress::with_steps(job.matched);
    while job.ended_at.is_empty() {
        tokio::select! {
            () = signals.recv() => {
                job = client.stop_redrive(&job.id).await.map_err(lost_contact_failure)?;
                break;
            }
            () = tokio::time::sleep(JOB_POLL_INTERVAL) => {
                job = client.read_redrive(&job.id).await.map_err(lost_contact_failure)?;
            }
        }
        progress.set_position_and_total(job.retried + job.refused, job.matched);
        progress.set_message(if job.state == "canary" { "waiting for the canary" } else { "" });
    }
    Ok(job)
}

fn lost_contact_failure(error: ClientError) -> Failure {
    Failure::from(error).with_hint(
        "The server continues the redrive without this command if it still runs. Tasks that are already queued stay\n\
         queued; repeat the command for the rest.",
    )
}

fn print_outcome(output: Output, job: &RedriveJob) -> CommandResult {
    let mut summary =
        format!("{} of {} queued again", job.retried, format_count(job.matched, "task", "tasks"));
    if job.refused > 0 {
        summary.push_str(&format!(", {} no longer failed", job.refused));
    }
    if output.is_json() {
        output.print_json(job)?;
    }
    match job.stop_reason.as_deref() {
        Some(why) => Err(Failure::runtime(format!("the redrive stopped: {why}")).with_hint(summary)),
        None if job.state == "done" && output.is_json() => Ok(()),
        None if job.state == "done" => Ok(output.print_line(summary)?),
        None => Err(Failure::runtime("the redrive was stopped").with_hint(summary)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_count_of_matching_tasks_is_printed_as_more_than() {
        let count = |matched, has_more| RedriveDryRunResponse {
            matched,
            has_more,
            sample_task_ids: vec![],
            dry_run: true,
        };
        assert_eq!(describe_matched_count(&count(1, false)), "1 task");
        assert_eq!(describe_matched_count(&count(1000, true)), "more than 1000 tasks");
    }
}
