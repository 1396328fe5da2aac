//! `pointsman objects`: what happened to one thing, and what is still to be done for it.

use clap::{Args, Subcommand};
use pointsman_api::client::ClientError;
use pointsman_api::{EventSnapshot, LaneBody, ObjectDetail};
use pointsman_core::chain::OrderKey;
use pointsman_core::{EventId, ObjectKey, Tenant};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, day_and_time, short};

/// Look at an object: its lanes, and the chain of its events
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pointsman objects show record:1")]
pub(crate) struct Objects {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show an object's lanes, and its events, the newest first
    ///
    /// A lane is all tasks of one handler for the object, which run one after the other. Of each in which something is
    /// to be done, the head is shown, and how many tasks wait behind it. One that is HALTED stands still until somebody
    /// retries or cancels its head.
    #[command(after_long_help = "\
Examples:
  pointsman objects show record:1
  pointsman objects show record:1 -o json | jq -r '.lanes[] | select(.halted) | .head.id'")]
    Show {
        /// The object's key
        key: ObjectKey,
        /// Whose object it is
        #[arg(long)]
        tenant: Option<Tenant>,
    },
}

impl Objects {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let Action::Show { key, tenant } = self.action;
        let (client, output) = (global.client()?, Output::new(global));
        let answer = client.object(key.as_str(), tenant.as_ref().map(Tenant::as_str)).await;
        let object = answer.map_err(|error| about(&key, error))?;
        if output.is_json() {
            return Ok(output.json(&object)?);
        }
        output.facts(&[
            ("object", object.key.clone()),
            ("tenant", object.tenant.clone()),
            ("last", object.last.to_string()),
        ])?;
        output.line("")?;
        if !object.lanes.is_empty() {
            lanes(output, &object)?;
            output.line("")?;
        }
        let rows = object.events.iter().map(row).collect();
        Ok(output.table(
            &["event", "at", "prev", "type", "value"],
            rows,
            "Its events have been forgotten.",
        )?)
    }
}

/// A call about an object failed.
fn about(key: &ObjectKey, error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint(unknown(key)),
        _ => failure,
    }
}

/// What could be wrong with a key to which nothing has happened.
fn unknown(key: &ObjectKey) -> String {
    let order = match key.as_str().parse::<OrderKey>() {
        Ok(order) => format!("\nThe path of an order is no object: see `pointsman orders show {order}`."),
        Err(_) => String::new(),
    };
    format!(
        "Keys are exact: look at the spelling, at capitals and at blanks. Each tenant has objects of its own: name\n\
         another one with --tenant. `pointsman watch --since-start --no-tasks` shows events with their keys.{order}"
    )
}

/// What stands in its lanes, and what to do about what stands still.
fn lanes(output: Output, object: &ObjectDetail) -> Result {
    let rows = object.lanes.iter().map(lane_row).collect();
    output.table(&["handler", "status", "waiting", "error", "head"], rows, "")?;
    if object.more_lanes {
        output.line(format!("It has more lanes than these {}.", object.lanes.len()))?;
    }
    for lane in object.lanes.iter().filter(|lane| lane.halted) {
        output.line(format!("\n{}", way_out(lane)))?;
    }
    Ok(())
}

fn lane_row(lane: &LaneBody) -> Vec<String> {
    let LaneBody { handler, head, halted, waiting, more } = lane;
    vec![
        handler.clone(),
        if *halted { "HALTED".into() } else { head.status.clone() },
        if *more { format!("over {waiting}") } else { waiting.to_string() },
        short(head.error.as_deref().unwrap_or(""), 60),
        head.id.clone(),
    ]
}

fn way_out(lane: &LaneBody) -> String {
    let LaneBody { handler, head, .. } = lane;
    let id = &head.id;
    format!(
        "{handler} stands still: its head failed for good. Run it again, or give it up so that the next one runs:\n    \
         pointsman tasks retry {id}\n    \
         pointsman tasks cancel {id}"
    )
}

fn row(event: &EventSnapshot) -> Vec<String> {
    let at = EventId::new(event.event_id).map(|id| id.timestamp().to_string()).unwrap_or_default();
    vec![
        event.event_id.to_string(),
        day_and_time(&at),
        event.prev.flatten().map_or_else(|| "-".into(), |prev| prev.to_string()),
        event.kind.clone(),
        short(event.value.as_str(), 80),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_reads_like_an_order_is_told_as_such() {
        let hint = |key: &str| unknown(&ObjectKey::new(key).unwrap());
        assert!(hint("/publish/article,117").ends_with("`pointsman orders show /publish/article,117`."));
        assert!(hint("record:1").ends_with("with their keys."));
    }
}
