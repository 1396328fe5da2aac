//! `pointsman events`: one event, what caused it and what it caused.

use clap::{Args, Subcommand};
use pointsman_api::{CauseBody, CausedBody, EventDetail, EventSnapshot, TaskBody};
use pointsman_core::EventId;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::happening::Happening;
use crate::output::{Output, Paint, clean, clock, short};

/// Look at an event: its cause, its tasks, and the tree of what it caused
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman events show 1478257655827000
  pointsman events show 1478257655827000 -o json | jq '.. | .event? | .TYPE?'

To see it as it happens: pointsman watch --tree")]
pub(crate) struct Events {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show one event with its tasks, what caused it, and what it caused
    #[command(after_long_help = "\
Examples:
  pointsman events show 1478257655827000
  pointsman events show 1478257655827000 -o json | jq -r '.tasks[].id'")]
    Show {
        /// The event's id, as `emit` and `watch` show it
        #[arg(value_name = "EVENT_ID")]
        id: EventId,
    },
}

impl Events {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let Action::Show { id } = self.action;
        let (client, output) = (global.client()?, Output::new(global));
        let answer = client.event(id.get()).await;
        let detail = answer.map_err(|e| {
            let status = e.status();
            match (status, Failure::from(e)) {
                (Some(404), failure) => failure.hint(
                    "It may have been forgotten (see `journal` in the configuration), or be another tenant's.\n\
                     `pointsman watch --since-start` shows what is remembered.",
                ),
                (_, failure) => failure,
            }
        })?;
        show(output, &detail)
    }
}

fn show(output: Output, detail: &EventDetail) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    output.facts(&facts(detail))?;
    if !detail.tasks.is_empty() {
        output.line("")?;
        let head = ["status", "handler", "tries", "error", "task"];
        output.table(&head, detail.tasks.iter().map(task).collect(), "")?;
    }
    if detail.caused.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let mut lines = vec![told(output.paint, &detail.event, None)];
    branches(output.paint, &detail.caused, "", &mut lines);
    lines.iter().try_for_each(|line| output.line(line))?;
    if detail.caused_cut {
        output.line("… and perhaps more: the tree has its bounds.")?;
    }
    Ok(())
}

fn facts(detail: &EventDetail) -> Vec<(&'static str, String)> {
    let event = &detail.event;
    let at = EventId::new(event.event_id).map(|id| id.timestamp().to_string()).unwrap_or_default();
    let context = event.context.iter().map(|(name, value)| format!("{name}={value}"));
    vec![
        ("event", event.event_id.to_string()),
        ("type", event.kind.clone()),
        ("key", event.key.clone().unwrap_or_default()),
        ("sub", event.sub.clone().unwrap_or_default()),
        ("tenant", event.tenant.clone()),
        ("at", at),
        ("prev", event.prev.flatten().map(|prev| prev.to_string()).unwrap_or_default()),
        ("caused by", detail.cause.as_ref().map(cause).unwrap_or_default()),
        ("context", context.collect::<Vec<_>>().join(" ")),
        ("value", event.value.as_str().to_owned()),
    ]
}

fn cause(cause: &CauseBody) -> String {
    match (cause.event_id, &cause.task) {
        (Some(event), Some(task)) => format!("{event}, by {task}"),
        (Some(event), None) => event.to_string(),
        (None, Some(task)) => task.clone(),
        (None, None) => String::new(),
    }
}

fn task(task: &TaskBody) -> Vec<String> {
    vec![
        task.status.clone(),
        task.handler.clone(),
        task.attempt.to_string(),
        short(task.error.as_deref().unwrap_or(""), 60),
        task.id.clone(),
    ]
}

/// An event in one line.
fn told(paint: Paint, event: &EventSnapshot, by: Option<&str>) -> String {
    let json = serde_json::to_string(event).unwrap_or_default();
    let Some(event) = Happening::read(&json) else { return String::new() };
    let time = event.id.timestamp().to_string();
    let mut parts = vec![paint.dim(clock(&time)).into_owned(), paint.name(&event.kind).into_owned()];
    parts.extend(event.key.as_deref().map(|key| clean(key).into_owned()));
    parts.push(event.id.to_string());
    parts.extend(by.map(|by| paint.dim(&clean(by)).into_owned()));
    parts.join("  ")
}

/// What was caused, a line each, drawn as a tree below what stands above.
fn branches(paint: Paint, caused: &[CausedBody], before: &str, lines: &mut Vec<String>) {
    for (at, event) in caused.iter().enumerate() {
        let is_last = at + 1 == caused.len();
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let text = told(paint, &event.event, event.task.as_deref());
        lines.push(format!("{}{text}", paint.dim(&format!("{before}{branch}"))));
        branches(paint, &event.caused, &format!("{before}{below}"), lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    fn event(id: u64, kind: &str) -> EventSnapshot {
        let json =
            format!(r#"{{"eventId":{id},"TYPE":"{kind}","value":null,"context":{{}},"tenant":"default"}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn caused(id: u64, kind: &str, caused: Vec<CausedBody>) -> CausedBody {
        CausedBody { event: event(id, kind), task: Some(format!("t{id}")), caused }
    }

    #[test]
    fn what_was_caused_is_drawn_as_a_tree() {
        let tree = vec![
            caused(2, "billed", vec![caused(3, "mailed", vec![]), caused(4, "booked", vec![])]),
            caused(5, "packed", vec![caused(6, "sent", vec![])]),
        ];
        let mut lines = vec![];
        branches(Paint::new(Color::Never), &tree, "", &mut lines);
        let want = [
            "├─ 00:00:00.000  billed  2  t2",
            "│  ├─ 00:00:00.000  mailed  3  t3",
            "│  └─ 00:00:00.000  booked  4  t4",
            "└─ 00:00:00.000  packed  5  t5",
            "   └─ 00:00:00.000  sent  6  t6",
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn a_cause_names_the_event_and_the_task_as_far_as_they_are_known() {
        let of = |event_id, task: Option<&str>| {
            cause(&CauseBody { event_id, task: task.map(Into::into), depth: 1 })
        };
        assert_eq!(of(Some(7), Some("t")), "7, by t");
        assert_eq!(of(Some(7), None), "7");
        assert_eq!(of(None, Some("t")), "t");
    }
}
