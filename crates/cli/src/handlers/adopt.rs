//! `pointsman handlers adopt`: queues a handler's missing tasks and replays past events to it.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{AdoptMissingTasksBody, AdoptMissingTasksResponse};
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
        let body = AdoptMissingTasksBody { replay_from_event_id: self.from_event.map(EventId::get) };
        let progress = Progress::new_spinner();
        let mut total =
            AdoptMissingTasksResponse { adopted_task_count: 0, replayed_task_count: 0, has_more: true };
        // Each request queues a limited number of tasks, so that none takes too long.
        while total.has_more {
            let response = client.adopt_missing_tasks(&self.name, &body).await;
            let page = response.map_err(|error| add_progress_hint(handler_request_failure(error), total))?;
            total = AdoptMissingTasksResponse {
                adopted_task_count: total.adopted_task_count + page.adopted_task_count,
                replayed_task_count: total.replayed_task_count + page.replayed_task_count,
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

fn describe_adopted_tasks(
    total: AdoptMissingTasksResponse,
    name: &str,
    request: AdoptMissingTasksBody,
) -> String {
    let missing = format!(
        "{} of {name} queued again",
        format_count(total.adopted_task_count, "missing task", "missing tasks")
    );
    match request.replay_from_event_id {
        Some(_) => {
            format!("{missing}, {} replayed", format_count(total.replayed_task_count, "event", "events"))
        }
        None => missing,
    }
}

fn add_progress_hint(failure: Failure, total: AdoptMissingTasksResponse) -> Failure {
    match total.replayed_task_count {
        0 => failure,
        n => failure.with_hint(format!(
            "Already replayed: {}. Repeat the command to continue.",
            format_count(n, "event", "events")
        )),
    }
}
