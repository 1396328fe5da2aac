//! `pointsman tasks redrive`: running many tasks again, after a look at which ones.
//!
//! The server does the work; this command shows how far it is, and stops it when it is interrupted.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{RedriveBody, RedriveCount, RedriveJob};
use pointsman_core::{Rate, Timestamp};

use super::list::status;
use crate::args::moment;
use crate::failure::{Failure, Result};
use crate::handlers;
use crate::output::{Output, Progress, counted};
use crate::process::Signals;

/// Run many tasks again that ended in `error`
///
/// Counts them first and asks. They are queued again oldest first, and go to the end of their lanes. With
/// --canary so many run first, and the rest follow only if all of those succeed. Ctrl-C stops it; what has
/// been queued again stays so.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks redrive --handler index --dry-run
  pointsman tasks redrive --handler index --rate 10/s --canary 5
  pointsman tasks redrive --source shop --collection orders --yes
  pointsman tasks redrive --tenant shop --start 2026-01-31 --end 2026-02-01
  pointsman tasks redrive --handler index --status CANCELED
  pointsman tasks redrive --all --rate 10/s

It exits with 1 if the canary fails. Tasks that went missing while their handler was not defined are taken \
up by `pointsman handlers adopt`.")]
pub(super) struct Redrive {
    /// Only those of one handler
    #[arg(long, conflicts_with = "source")]
    handler: Option<String>,
    /// Only those of one source
    #[arg(long)]
    source: Option<String>,
    /// Only those of one of a source's collections, or of one type of event
    #[arg(long)]
    collection: Option<String>,
    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only those of one object
    #[arg(long)]
    key: Option<String>,
    /// FAILED, CANCELED, or `error` for both [default: FAILED]
    #[arg(long, value_parser = status)]
    status: Option<String>,
    /// Created at or after this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    end: Option<Timestamp>,
    /// All of them, of every handler
    #[arg(long, conflicts_with_all = ["handler", "source", "collection", "tenant", "key", "start", "end"])]
    all: bool,
    /// Only tell how many there are
    #[arg(long)]
    dry_run: bool,
    /// Queue no more than this: `10/s`, `100/m`
    #[arg(long, value_name = "N/UNIT")]
    rate: Option<Rate>,
    /// Run so many first, and the rest only if they succeed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_CANARIES))]
    canary: Option<u32>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// The most tasks that can go ahead of the others, as the server has it.
const MOST_CANARIES: i64 = 1000;
/// How often the job is looked at.
const LOOK: Duration = Duration::from_millis(200);

impl Redrive {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        if !self.says_which() {
            return Err(Failure::usage("name at least one filter, or say --all"));
        }
        let body = self.body();
        let count = client.redrive_count(&body).await.map_err(handlers::about)?;
        if self.dry_run {
            return preview(output, &count);
        }
        if count.matched == 0 {
            return nothing(output);
        }
        if !self.yes && !agreed(&how_many(&count))? {
            return Err(Failure::runtime("nothing was run again"));
        }
        // Heard from now on, so that no job begins that an interrupt would not stop.
        let signals = Signals::new()?;
        let job = client.redrive(&body).await.map_err(handlers::about)?;
        tell(output, &attend(client, job, signals).await?)
    }

    /// A status does not: all that can be run again have one.
    fn says_which(&self) -> bool {
        let names = [&self.handler, &self.source, &self.collection, &self.tenant, &self.key];
        self.all || names.iter().any(|name| name.is_some()) || self.start.or(self.end).is_some()
    }

    fn body(&self) -> RedriveBody {
        RedriveBody {
            handler: self.handler.clone(),
            source: self.source.clone(),
            collection: self.collection.clone(),
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            status: self.status.clone(),
            start: self.start.map(|time| time.to_string()),
            end: self.end.map(|time| time.to_string()),
            all: self.all,
            dry_run: self.dry_run,
            rate: self.rate.map(|rate| rate.to_string()),
            canary: self.canary,
        }
    }
}

fn nothing(output: Output) -> Result {
    if output.is_json() {
        // As a job would be told that had nothing to do.
        let none = serde_json::json!({
            "id": null, "state": "done", "why": null, "matched": 0, "retried": 0, "refused": 0,
        });
        return Ok(output.json(&none)?);
    }
    Ok(output.line("No tasks match; nothing is run again.")?)
}

fn how_many(count: &RedriveCount) -> String {
    let tasks = counted(count.matched, "task", "tasks");
    if count.more { format!("more than {tasks}") } else { tasks }
}

fn preview(output: Output, count: &RedriveCount) -> Result {
    if output.is_json() {
        return Ok(output.json(count)?);
    }
    output.line(format!("{} would be run again", how_many(count)))?;
    for id in &count.sample {
        output.line(format!("  {id}"))?;
    }
    if count.more || count.matched > count.sample.len() as u64 {
        output.line("  …")?;
    }
    Ok(())
}

/// Asks whoever sits at the terminal. Where nobody does, nobody has agreed.
fn agreed(tasks: &str) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{tasks} would be run again; say --yes to do it"))
            .hint("--dry-run shows some of them."));
    }
    let mut asking = io::stderr().lock();
    write!(asking, "Run {tasks} again? [y/N] ")?;
    asking.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Watches a job to its end, or stops it when this command is interrupted. Answers how it stands then.
async fn attend(client: &Client, mut job: RedriveJob, mut signals: Signals) -> Result<RedriveJob> {
    let progress = Progress::of(job.matched);
    while job.ended_at.is_empty() {
        tokio::select! {
            () = signals.next() => {
                job = client.stop_redrive(&job.id).await.map_err(out_of_sight)?;
                break;
            }
            () = tokio::time::sleep(LOOK) => {
                job = client.redrive_job(&job.id).await.map_err(out_of_sight)?;
            }
        }
        progress.is_at(job.retried + job.refused, job.matched);
        progress.doing(if job.state == "canary" { "waiting for the canary" } else { "" });
    }
    Ok(job)
}

fn out_of_sight(error: ClientError) -> Failure {
    Failure::from(error).hint(
        "The server runs the tasks again, not this command: if it still runs, it goes on. What was queued\n\
         again stays so; the same command takes up the rest.",
    )
}

fn tell(output: Output, job: &RedriveJob) -> Result {
    let mut said = format!("{} of {} queued again", job.retried, counted(job.matched, "task", "tasks"),);
    if job.refused > 0 {
        said.push_str(&format!(", {} no longer in `error`", job.refused));
    }
    if output.is_json() {
        output.json(job)?;
    }
    match job.why.as_deref() {
        Some(why) => Err(Failure::runtime(format!("the redrive stopped: {why}")).hint(said)),
        None if job.state == "done" && output.is_json() => Ok(()),
        None if job.state == "done" => Ok(output.line(said)?),
        None => Err(Failure::runtime("the redrive was stopped").hint(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_was_cut_short_says_so() {
        let count = |matched, more| RedriveCount { matched, more, sample: vec![], dry_run: true };
        assert_eq!(how_many(&count(1, false)), "1 task");
        assert_eq!(how_many(&count(1000, true)), "more than 1000 tasks");
    }
}
