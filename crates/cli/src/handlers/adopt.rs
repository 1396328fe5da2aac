//! `pointsman handlers adopt`: give a handler the tasks that it should have had.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{AdoptBody, Adopted};
use pointsman_core::EventId;

use super::about;
use crate::failure::{Failure, Result};
use crate::output::{Output, Progress, counted};

/// Take up the tasks that went missing while a handler was not defined
///
/// With --from, history is replayed to it as well: it gets a task, at the lowest priority, for each event since
/// then that it would have been sent had it been there. None is made twice; interrupted, it can be asked again.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman handlers adopt index
  pointsman handlers adopt index --from 1478257655827000
  pointsman handlers adopt index --from 0")]
pub(super) struct Adopt {
    /// The handler's name
    name: String,
    /// Replay history from this event on
    #[arg(long, value_name = "EVENT_ID")]
    from: Option<EventId>,
}

impl Adopt {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let body = AdoptBody { from: self.from.map(EventId::get) };
        let progress = Progress::endless();
        let mut sum = Adopted { adopted: 0, replayed: 0, more: true };
        // One call does a stretch of it, so that none takes for ever.
        while sum.more {
            let done = client.adopt(&self.name, &body).await;
            let done = done.map_err(|error| interrupted(about(error), sum))?;
            sum = Adopted {
                adopted: sum.adopted + done.adopted,
                replayed: sum.replayed + done.replayed,
                more: done.more,
            };
            progress.doing(said(sum, &self.name, body));
        }
        drop(progress);
        match output.is_json() {
            true => Ok(output.json(&sum)?),
            false => Ok(output.line(said(sum, &self.name, body))?),
        }
    }
}

fn said(sum: Adopted, name: &str, asked: AdoptBody) -> String {
    let missing = format!("{} of {name} queued again", counted(sum.adopted, "missing task", "missing tasks"));
    match asked.from {
        Some(_) => format!("{missing}, {} replayed", counted(sum.replayed, "event", "events")),
        None => missing,
    }
}

fn interrupted(failure: Failure, sum: Adopted) -> Failure {
    match sum.replayed {
        0 => failure,
        n => failure.hint(format!(
            "Replayed before that: {}. The same command goes on where it stopped.",
            counted(n, "event", "events")
        )),
    }
}
