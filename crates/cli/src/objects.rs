//! `pointsman objects`: an object's lanes and events.

use clap::{Args, Subcommand};
use pointsman_api::client::ClientError;
use pointsman_api::{EventBody, ObjectDetail, ObjectLaneBody};
use pointsman_core::chain::OrderKey;
use pointsman_core::{EventId, ObjectKey, Tenant};

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, escape_and_shorten, format_timestamp};

/// Show an object with its lanes and events
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pointsman objects show record:1")]
pub(crate) struct ObjectsCommand {
    #[command(subcommand)]
    subcommand: ObjectSubcommand,
}

#[derive(Debug, Subcommand)]
enum ObjectSubcommand {
    /// Show an object's lanes and events, newest first
    ///
    /// A lane holds the tasks of one handler for the object, which run one after the other. For each lane with unfinished
    /// tasks, the first task is shown, with the number of tasks that wait behind it. A HALTED lane stops until its first
    /// task is retried or canceled.
    #[command(after_long_help = "\
Examples:
  pointsman objects show record:1
  pointsman objects show record:1 -o json | jq -r '.lanes[] | select(.halted) | .head.id'")]
    Show {
        /// Key of the object
        key: ObjectKey,
        /// Tenant of the object [default: the token's tenant, or `default`]
        #[arg(long)]
        tenant: Option<Tenant>,
    },
}

impl ObjectsCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let ObjectSubcommand::Show { key, tenant } = self.subcommand;
        let (client, output) = (global.new_client()?, Output::new(global));
        let response = client.read_object(key.as_str(), tenant.as_ref().map(Tenant::as_str)).await;
        let object = response.map_err(|error| object_request_failure(&key, error))?;
        if output.is_json() {
            return Ok(output.print_json(&object)?);
        }
        output.print_fields(&[
            ("object", object.key.clone()),
            ("tenant", object.tenant.clone()),
            ("last event", object.last_event_id.to_string()),
        ])?;
        output.print_line("")?;
        if !object.lanes.is_empty() {
            print_lanes(output, &object)?;
            output.print_line("")?;
        }
        let rows = object.events.iter().map(event_row).collect();
        Ok(output.print_table(
            &["event", "time", "previous", "type", "value"],
            rows,
            "Its events have expired.",
        )?)
    }
}

/// Converts the error of an API request about an object, with a hint.
fn object_request_failure(key: &ObjectKey, error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint(explain_unknown_key(key)),
        _ => failure,
    }
}

/// Explains why a key may have no events.
fn explain_unknown_key(key: &ObjectKey) -> String {
    let order = match key.as_str().parse::<OrderKey>() {
        Ok(order) => {
            format!("\nThis is the key of an order, not of an object: see `pointsman orders show {order}`.")
        }
        Err(_) => String::new(),
    };
    format!(
        "Keys are case-sensitive: check the spelling. Each tenant has its own objects: select another one with --tenant.\n\
         `pointsman watch --since-start --no-tasks` lists events with their keys.{order}"
    )
}

/// Prints the lanes, and for each halted lane the commands that release it.
fn print_lanes(output: Output, object: &ObjectDetail) -> CommandResult {
    let rows = object.lanes.iter().map(lane_row).collect();
    output.print_table(&["handler", "status", "waiting", "error", "first task"], rows, "")?;
    if object.has_more_lanes {
        output.print_line(format!("Only the first {} lanes are listed.", object.lanes.len()))?;
    }
    for lane in object.lanes.iter().filter(|lane| lane.is_halted) {
        output.print_line(format!("\n{}", suggest_lane_release(lane)))?;
    }
    Ok(())
}

fn lane_row(lane: &ObjectLaneBody) -> Vec<String> {
    let ObjectLaneBody { handler, head, is_halted, task_count_behind_head, has_more_behind_head } = lane;
    vec![
        handler.clone(),
        if *is_halted { "HALTED".into() } else { head.status.clone() },
        match has_more_behind_head {
            true => format!("over {task_count_behind_head}"),
            false => task_count_behind_head.to_string(),
        },
        escape_and_shorten(head.error.as_deref().unwrap_or(""), 60),
        head.id.clone(),
    ]
}

fn suggest_lane_release(lane: &ObjectLaneBody) -> String {
    let ObjectLaneBody { handler, head, .. } = lane;
    let id = &head.id;
    format!(
        "The lane of {handler} is halted: its first task failed permanently. Retry or cancel that task to continue:\n    \
         pointsman tasks retry {id}\n    \
         pointsman tasks cancel {id}"
    )
}

fn event_row(event: &EventBody) -> Vec<String> {
    let time = EventId::new(event.event_id).map(|id| id.timestamp().to_string()).unwrap_or_default();
    vec![
        event.event_id.to_string(),
        format_timestamp(&time),
        event.prev.flatten().map_or_else(|| "-".into(), |prev| prev.to_string()),
        event.event_type.clone(),
        escape_and_shorten(event.value.as_str(), 80),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_looks_like_an_order_gets_its_own_hint() {
        let hint = |key: &str| explain_unknown_key(&ObjectKey::new(key).unwrap());
        assert!(hint("/publish/article,117").ends_with("`pointsman orders show /publish/article,117`."));
        assert!(hint("record:1").ends_with("with their keys."));
    }
}
