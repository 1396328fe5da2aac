//! `pointsman handlers adopt`: queues a handler's missing tasks and replays past events to it.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{AdoptBody, AdoptResponse};
use pointsman_core::EventId;

use super::handler_request_failure;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, Progress, format_count};

/// Queue the tasks that are missing because their handler was not defined
///
/// With --from, past events are replayed as well: the handler gets a task, at the lowest priority, for each event since
/// then that is routed to it. No task is created twice, so an interrupted command can be repeated.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman handlers adopt index
  pointsman handlers adopt index --from 1478257655827000
  pointsman handlers adopt index --from 0")]
pub(super) struct AdoptCommand {
    /// Name of the handler
    name: String,
    /// Replay events from this id on
    #[arg(long = "from", value_name = "EVENT_ID")]
    from_event: Option<EventId>,
}

impl AdoptCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let body = AdoptBody { replay_from_event_id: self.from_event.map(EventId::get) };
        let progress = Progress::new_spinner();
        let mut total = AdoptResponse { adopted: 0, replayed: 0, has_more: true };
        // Each request queues a limited number of tasks, so that none takes too long.
        while total.has_more {
            let response = client.adopt_tasks(&self.name, &body).await;
            let page = response.map_err(|error| add_progress_hint(handler_request_failure(error), total))?;
            total = AdoptResponse {
                adopted: total.adopted + page.adopted,
                replayed: total.replayed + page.replayed,
                has_more: page.has_more,
            };
            progress.set_message(describe_adopted_tasks(total, &self.name, body));
        }
        drop(progress);
        match output.is_json() {
            true => Ok(output.print_json(&total)?),
            false => Ok(output.print_line(describe_adopted_tasks(total, &self.name, body))?),
        }
    }
}

fn describe_adopted_tasks(total: AdoptResponse, name: &str, request: AdoptBody) -> String {
    let missing =
        format!("{} of {name} queued again", format_count(total.adopted, "missing task", "missing tasks"));
    match request.replay_from_event_id {
        Some(_) => format!("{missing}, {} replayed", format_count(total.replayed, "event", "events")),
        None => missing,
    }
}

fn add_progress_hint(failure: Failure, total: AdoptResponse) -> Failure {
    match total.replayed {
        0 => failure,
        n => failure.with_hint(format!(
            "Already replayed: {}. Repeat the command to continue.",
            format_count(n, "event", "events")
        )),
    }
}
