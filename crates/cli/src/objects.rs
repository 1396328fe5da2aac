//! `pointsman objects`: what happened to one thing.

use clap::{Args, Subcommand};
use pointsman_api::EventSnapshot;
use pointsman_core::{EventId, ObjectKey, Tenant};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, day_and_time, short};

/// Look at an object: the chain of its events
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
    /// Show an object's events, the newest first
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
        let object = answer.map_err(|e| {
            let status = e.status();
            match (status, Failure::from(e)) {
                (Some(404), failure) => {
                    failure.hint("Nothing has happened to it yet. Is it another tenant's?")
                }
                (_, failure) => failure,
            }
        })?;
        if output.is_json() {
            return Ok(output.json(&object)?);
        }
        output.facts(&[
            ("object", object.key.clone()),
            ("tenant", object.tenant.clone()),
            ("last", object.last.to_string()),
        ])?;
        output.line("")?;
        let rows = object.events.iter().map(row).collect();
        Ok(output.table(
            &["event", "at", "prev", "type", "value"],
            rows,
            "Its events have been forgotten.",
        )?)
    }
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
