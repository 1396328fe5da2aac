//! `pointsman events`: one event with its tasks, its cause and the events it caused.

use clap::{Args, Subcommand};
use pointsman_api::{CausedEventBody, EventBody, EventCauseBody, EventDetail, TaskBody};
use pointsman_core::EventId;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, Paint, escape_and_shorten, escape_controls, time_of_day};
use crate::stream_line::StreamLine;

/// Show an event with its cause, its tasks and the events it caused
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman events show 1478257655827000
  pointsman events show 1478257655827000 -o json | jq '.. | .event? | .TYPE?'

To follow events live: pointsman watch --tree")]
pub(crate) struct EventsCommand {
    #[command(subcommand)]
    subcommand: EventSubcommand,
}

#[derive(Debug, Subcommand)]
enum EventSubcommand {
    /// Show one event with its tasks, its cause and the events it caused
    #[command(after_long_help = "\
Examples:
  pointsman events show 1478257655827000
  pointsman events show 1478257655827000 -o json | jq -r '.tasks[].id'")]
    Show {
        /// Id of the event, as printed by `emit` and `watch`
        #[arg(value_name = "EVENT_ID")]
        id: EventId,
    },
}

impl EventsCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let EventSubcommand::Show { id } = self.subcommand;
        let (client, output) = (global.new_client()?, Output::new(global));
        let response = client.read_event(id.get()).await;
        let detail = response.map_err(|e| {
            let status = e.http_status();
            match (status, Failure::from(e)) {
                (Some(404), failure) => failure.with_hint(
                    "It may have expired (see `journal` in the configuration) or belong to another tenant.\n\
                     `pointsman watch --since-start` lists the events that are kept.",
                ),
                (_, failure) => failure,
            }
        })?;
        print_event(output, &detail)
    }
}

fn print_event(output: Output, detail: &EventDetail) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    output.print_fields(&event_fields(detail))?;
    if !detail.tasks.is_empty() {
        output.print_line("")?;
        let head = ["status", "handler", "tries", "error", "task"];
        output.print_table(&head, detail.tasks.iter().map(task_row).collect(), "")?;
    }
    if detail.caused_events.is_empty() {
        return Ok(());
    }
    output.print_line("")?;
    let mut lines = vec![format_event(output.paint, &detail.event, None)];
    append_caused_events(output.paint, &detail.caused_events, "", &mut lines);
    lines.iter().try_for_each(|line| output.print_line(line))?;
    if detail.are_caused_events_truncated {
        output.print_line("… and possibly more: the tree is cut off at its size limit.")?;
    }
    Ok(())
}

fn event_fields(detail: &EventDetail) -> Vec<(&'static str, String)> {
    let event = &detail.event;
    let time = EventId::new(event.event_id).map(|id| id.timestamp().to_string()).unwrap_or_default();
    let summary =
        Some(event).filter(|event| event.is_engine_event()).and_then(to_stream_line).map(|line| line.text);
    let context = event.context.iter().map(|(name, value)| format!("{name}={value}"));
    vec![
        ("event", event.event_id.to_string()),
        ("type", event.event_type.clone()),
        ("summary", summary.unwrap_or_default()),
        ("key", event.key.clone().unwrap_or_default()),
        ("sub", event.sub_object.clone().unwrap_or_default()),
        ("tenant", event.tenant.clone()),
        ("time", time),
        ("prev", event.prev.flatten().map(|prev| prev.to_string()).unwrap_or_default()),
        ("caused by", detail.cause.as_ref().map(describe_cause).unwrap_or_default()),
        ("context", context.collect::<Vec<_>>().join(" ")),
        ("value", event.value.as_str().to_owned()),
    ]
}

fn describe_cause(cause: &EventCauseBody) -> String {
    match (cause.event_id, &cause.task) {
        (Some(event), Some(task)) => format!("{event}, by {task}"),
        (Some(event), None) => event.to_string(),
        (None, Some(task)) => task.clone(),
        (None, None) => String::new(),
    }
}

fn task_row(task: &TaskBody) -> Vec<String> {
    vec![
        task.status.clone(),
        task.handler.clone(),
        task.attempt.to_string(),
        escape_and_shorten(task.error.as_deref().unwrap_or(""), 60),
        task.id.clone(),
    ]
}

fn to_stream_line(event: &EventBody) -> Option<StreamLine> {
    StreamLine::from_json(&serde_json::to_string(event).ok()?)
}

/// An event in one line, with the task that emitted it.
fn format_event(paint: Paint, event: &EventBody, emitted_by: Option<&str>) -> String {
    let Some(event) = to_stream_line(event) else { return String::new() };
    let time = event.event_id.timestamp().to_string();
    let mut parts =
        vec![paint.dim(time_of_day(&time)).into_owned(), paint.cyan(&event.event_type).into_owned()];
    parts.extend(event.key.as_deref().map(|key| escape_controls(key).into_owned()));
    parts.push(event.event_id.to_string());
    parts.extend(emitted_by.map(|task| paint.dim(&escape_controls(task)).into_owned()));
    parts.join("  ")
}

/// Appends a line for each caused event, drawn as a tree. `indent` is the text before the branches of this level.
fn append_caused_events(paint: Paint, caused: &[CausedEventBody], indent: &str, lines: &mut Vec<String>) {
    for (index, event) in caused.iter().enumerate() {
        let is_last = index + 1 == caused.len();
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let text = format_event(paint, &event.event, event.task.as_deref());
        lines.push(format!("{}{text}", paint.dim(&format!("{indent}{branch}"))));
        append_caused_events(paint, &event.caused_events, &format!("{indent}{below}"), lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColorChoice;

    fn sample_event(id: u64, event_type: &str) -> EventBody {
        let json = format!(
            r#"{{"eventId":{id},"TYPE":"{event_type}","value":null,"context":{{}},"tenant":"default"}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn sample_caused_event(
        id: u64,
        event_type: &str,
        caused_events: Vec<CausedEventBody>,
    ) -> CausedEventBody {
        CausedEventBody { event: sample_event(id, event_type), task: Some(format!("t{id}")), caused_events }
    }

    #[test]
    fn caused_events_are_drawn_as_a_tree() {
        let tree = vec![
            sample_caused_event(
                2,
                "billed",
                vec![sample_caused_event(3, "mailed", vec![]), sample_caused_event(4, "booked", vec![])],
            ),
            sample_caused_event(5, "packed", vec![sample_caused_event(6, "sent", vec![])]),
        ];
        let mut lines = vec![];
        append_caused_events(Paint::for_stdout(ColorChoice::Never), &tree, "", &mut lines);
        let expected = [
            "├─ 00:00:00.000  billed  2  t2",
            "│  ├─ 00:00:00.000  mailed  3  t3",
            "│  └─ 00:00:00.000  booked  4  t4",
            "└─ 00:00:00.000  packed  5  t5",
            "   └─ 00:00:00.000  sent  6  t6",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_cause_names_the_event_and_the_task_if_present() {
        let describe = |event_id, task: Option<&str>| {
            describe_cause(&EventCauseBody { event_id, task: task.map(Into::into), depth: 1 })
        };
        assert_eq!(describe(Some(7), Some("t")), "7, by t");
        assert_eq!(describe(Some(7), None), "7");
        assert_eq!(describe(None, Some("t")), "t");
    }

    #[test]
    fn an_engine_event_has_a_readable_summary() {
        let shown = |event: &str| -> Option<String> {
            let json = format!(
                r#"{{"event":{event},"tasks":[],"cause":null,"caused":[],"causedTruncated":false,"eventId":9}}"#
            );
            let detail: EventDetail = serde_json::from_str(&json).unwrap();
            let summary = event_fields(&detail).into_iter().find(|(name, _)| *name == "summary")?.1;
            (!summary.is_empty()).then_some(summary)
        };
        let finished = r#"{"eventId":7,"key":"/publish/article,203","TYPE":"OrderFinished","nodeId":"done"}"#;
        assert_eq!(shown(finished).as_deref(), Some("order 203 finished at done"));
        let emitted = r#"{"eventId":7,"TYPE":"a","value":{"n":1},"context":{},"tenant":"default"}"#;
        assert_eq!(shown(emitted), None, "an emitted event has its value");
    }
}
