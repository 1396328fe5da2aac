//! `pointsman watch`: follows events and task changes live.
//!
//! After a disconnect the stream resumes at the last event id, so that no event is missed or shown twice. Task changes
//! have no ids; those during a disconnect are not shown.
//!
//! ```text
//!  line    one line per event or task change, in columns
//!  tree    each event below its cause
//! ```

mod line;
mod tree;

use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, EventQuery, SseFrame, SseFrameStream};
use pointsman_api::{EventCauseBody, EventSeq};
use pointsman_core::journal::PathFilter;
use pointsman_core::names::ENGINE_EVENT_TYPES;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{EventId, EventType, ObjectKey, Tenant};

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, print_to_stderr};
use crate::stream_line::{EventSubject, StreamLine};
use line::{WatchLine, WatchLineFormatter};
use tree::EventTree;

/// Follow events and task changes live
///
/// Prints a line for each event and each change of a task until interrupted. After a restart of the server it
/// reconnects and continues where it was. If events expired meanwhile, it prints TORN.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman watch
  pointsman watch --return record --key record:1
  pointsman watch --return OrderEvent,JobChainEvent --path /publish/
  pointsman watch --tree
  pointsman watch --since-start --no-tasks -o json | jq -c .value

The engine records events about orders, chains, failed tasks, configured objects and the scheduler: \
`--return OrderEvent`, JobChainEvent, TaskEvent, FileBasedEvent or SchedulerEvent selects them.")]
pub(crate) struct WatchCommand {
    /// Start after this event instead of now
    #[arg(long, value_name = "EVENT_ID", conflicts_with = "since_start")]
    after: Option<EventId>,

    /// Start with the oldest event; if the start of the journal has expired, with the newest 1000
    #[arg(long)]
    since_start: bool,

    /// Only events of this type and its subtypes, without task changes; separate several with commas
    #[arg(long = "return", value_name = "TYPE", value_delimiter = ',')]
    event_types: Vec<EventType>,

    /// Only events of this object
    #[arg(long)]
    key: Option<ObjectKey>,

    /// Only objects at this path: `/folder/`, `/folder/*` or `/folder/name`
    #[arg(long, value_parser = validate_path_filter)]
    path: Option<String>,

    /// Only events of this tenant
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Show each event below its cause, and an order's events below the order. Sends one request per event, so
    /// do not use it under high load
    #[arg(long)]
    tree: bool,

    /// Show task changes (the default)
    #[arg(long, overrides_with = "no_tasks")]
    follow_tasks: bool,

    /// Show only events
    #[arg(long, overrides_with = "follow_tasks")]
    no_tasks: bool,
}

/// Checks a path filter and returns it unchanged.
fn validate_path_filter(text: &str) -> Result<String, String> {
    text.parse::<PathFilter>().map(|_| text.into()).map_err(|e| e.to_string())
}

/// The names of the server-sent frames that contain no event of the journal.
const TORN_FRAME_NAME: &str = "Torn";
const TASK_FRAME_NAME: &str = "task";

/// The delay before reconnecting: at first, and at most.
const MIN_RECONNECT_DELAY: Duration = Duration::from_millis(200);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(5);

impl WatchCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        if self.tree && output.is_json() {
            return Err(Failure::usage("--tree cannot be combined with -o json").with_hint(
                "`pointsman events show ID -o json` prints the cause of one event and the events it caused.",
            ));
        }
        for event_type in &self.event_types {
            suggest_engine_event_type(event_type).iter().for_each(|hint| print_notice(hint));
        }
        let mut query = EventQuery {
            event_type: self.joined_event_types(),
            path: self.path.clone(),
            key: self.key.as_ref().map(ToString::to_string),
            tenant: self.tenant.as_ref().map(ToString::to_string),
            ..EventQuery::default()
        };
        query.after = Some(self.id_to_start_after(&client, &query).await?);
        // Without past events, the first lines are of today and need no date above them.
        let starts_now = self.after.is_none() && !self.since_start;
        let printed_day =
            starts_now.then(|| pointsman_engine::machine_clock_now().to_string().chars().take(10).collect());
        let tree = self.tree.then(EventTree::default);
        let line_formatter = WatchLineFormatter::new(output.paint, output.terminal_width());
        let mut view = WatchView {
            output,
            shows_tasks: !self.no_tasks,
            line_formatter,
            tree,
            last_printed_day: printed_day,
            last_event_id: None,
        };
        // An unreachable server is an error at the start; later the command waits for it.
        let mut frames = client.stream_events(&query, None).await?;
        loop {
            match view.print_frames(&client, &mut frames).await? {
                StreamEnd::Torn { newest_event_id } => {
                    query.after =
                        Some(view.id_to_continue_after_gap(&client, &query, newest_event_id).await?);
                    view.last_event_id = None;
                    frames = client.stream_events(&query, None).await?;
                }
                StreamEnd::Disconnected(reason) => {
                    print_notice(&format!("{reason}; reconnecting…"));
                    frames = reconnect(&client, &query, view.last_event_id).await?;
                    print_notice("reconnected");
                }
            }
        }
    }

    /// The event types as the `return` parameter of the API.
    fn joined_event_types(&self) -> Option<String> {
        let event_types: Vec<&str> = self.event_types.iter().map(EventType::as_str).collect();
        (!event_types.is_empty()).then(|| event_types.join(","))
    }

    /// The id of the event to start after: by default that of the newest event.
    async fn id_to_start_after(&self, client: &Client, query: &EventQuery) -> CommandResult<u64> {
        match self.after {
            Some(after) => Ok(after.get()),
            None if self.since_start => fetch_id_before_oldest_event(client, query).await,
            None => {
                let newest = EventQuery { after: None, limit: Some(-1), ..query.clone() };
                Ok(line::newest_event_id(&client.list_events(&newest).await?))
            }
        }
    }
}

/// A hint for an event type that is spelt like one of the engine's. Emitted events may have types of any name; a type
/// with dots or without a leading capital letter is assumed to be a type of emitted events.
fn suggest_engine_event_type(event_type: &EventType) -> Option<String> {
    let text = event_type.as_str();
    let needs_no_hint =
        ENGINE_EVENT_TYPES.contains(&text) || !text.starts_with(char::is_uppercase) || text.contains('.');
    let near = if needs_no_hint {
        String::new()
    } else {
        did_you_mean_suffix(text, ENGINE_EVENT_TYPES.iter().copied())
    };
    (!near.is_empty()).then(|| format!("the engine has no event type {text}{near}"))
}

/// The number of events that `--since-start` prints when the start of the journal has expired.
const SINCE_START_LIMIT: i64 = 1000;

/// Fetches the id before the oldest matching event. Once the start of the journal has expired, the API does not return
/// the oldest event; then this is the id before the newest [`SINCE_START_LIMIT`] events.
async fn fetch_id_before_oldest_event(client: &Client, query: &EventQuery) -> CommandResult<u64> {
    let oldest = EventQuery { after: Some(0), limit: Some(1), ..query.clone() };
    let newest = EventQuery { after: None, limit: Some(-SINCE_START_LIMIT), ..query.clone() };
    let seq = match client.list_events(&oldest).await? {
        EventSeq::Torn { .. } => client.list_events(&newest).await?,
        seq => seq,
    };
    Ok(match seq {
        EventSeq::NonEmpty { event_id, event_snapshots } => {
            let oldest = event_snapshots.iter().map(|event| event.event_id).min();
            oldest.map_or(event_id, |oldest| oldest.saturating_sub(1))
        }
        EventSeq::Empty { last_event_id, .. } => last_event_id,
        EventSeq::Torn { event_id } => event_id,
    })
}

/// Opens the stream again after a disconnect, retrying until it works or the server refuses the request permanently.
async fn reconnect(
    client: &Client,
    query: &EventQuery,
    last_event_id: Option<u64>,
) -> CommandResult<SseFrameStream> {
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        tokio::time::sleep(delay).await;
        match client.stream_events(query, last_event_id).await {
            Err(error) if error.is_temporary() => delay = (delay * 2).min(MAX_RECONNECT_DELAY),
            response => return Ok(response?),
        }
    }
}

/// Why a stream of the server ended.
enum StreamEnd {
    Disconnected(String),
    /// Events are missing from the stream.
    Torn {
        newest_event_id: u64,
    },
}

/// Prints what `watch` receives, and keeps what it printed last.
struct WatchView {
    output: Output,
    shows_tasks: bool,
    line_formatter: WatchLineFormatter,
    tree: Option<EventTree>,
    /// The day of the last printed line.
    last_printed_day: Option<String>,
    /// The id of the last printed event, after which the stream resumes.
    last_event_id: Option<u64>,
}

impl WatchView {
    /// Prints frames until the stream ends.
    async fn print_frames(
        &mut self,
        client: &Client,
        frames: &mut SseFrameStream,
    ) -> CommandResult<StreamEnd> {
        loop {
            match frames.next().await {
                Ok(Some(frame)) => {
                    self.print_frame(client, &frame).await?;
                    if non_event_frame_name(&frame) == TORN_FRAME_NAME {
                        let torn = serde_json::from_str(&frame.data)?;
                        return Ok(StreamEnd::Torn { newest_event_id: line::newest_event_id(&torn) });
                    }
                }
                Ok(None) => return Ok(StreamEnd::Disconnected("the server closed the stream".into())),
                Err(error) if error.is_temporary() => return Ok(StreamEnd::Disconnected(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn print_frame(&mut self, client: &Client, frame: &SseFrame) -> CommandResult {
        if let Some(id) = frame.id.as_ref().and_then(|id| id.parse().ok()) {
            self.last_event_id = Some(id);
        }
        let is_task = non_event_frame_name(frame) == TASK_FRAME_NAME;
        if frame.data.is_empty() || (is_task && !self.shows_tasks) {
            return Ok(());
        }
        if self.output.is_json() {
            return Ok(self.output.print_json_text(&frame.data)?);
        }
        let paint = self.output.paint;
        // Frames of a newer server that this version cannot read are skipped; `-o json` prints them.
        let lines: Vec<WatchLine> = match (non_event_frame_name(frame), &mut self.tree) {
            (TORN_FRAME_NAME, _) => line::format_torn_frame(paint, &frame.data).into_iter().collect(),
            (TASK_FRAME_NAME, None) => self.line_formatter.format_task(&frame.data).into_iter().collect(),
            (_, None) => self.line_formatter.format_event(&frame.data).into_iter().collect(),
            (TASK_FRAME_NAME, Some(tree)) => {
                let change = serde_json::from_str(&frame.data);
                change.map(|change| tree.add_task_change(paint, &change)).unwrap_or_default()
            }
            (_, Some(tree)) => match StreamLine::from_json(&frame.data) {
                Some(event) => {
                    let cause = fetch_cause(client, &event).await;
                    tree.add_event(paint, &event, cause.as_ref())
                }
                None => vec![],
            },
        };
        lines.into_iter().try_for_each(|line| self.print_line_below_day_heading(line))
    }

    /// Prints a line, with a heading above if its day is not that of the previous line.
    fn print_line_below_day_heading(&mut self, line: WatchLine) -> CommandResult {
        if let Some(day) = line.day.filter(|day| self.last_printed_day.as_ref() != Some(day)) {
            self.output.print_line(self.output.paint.dim(&format!("── {day}")))?;
            self.last_printed_day = Some(day);
        }
        // Wrapped lines are indented behind the time.
        match line.text.split_once("  ") {
            Some((time, rest)) => Ok(self.output.print_with_hanging_indent(&format!("{time}  "), rest)?),
            None => Ok(self.output.print_with_hanging_indent("", &line.text)?),
        }
    }

    /// The id to continue after when events are missing: before the oldest event, or the newest id when this is not the
    /// journal that was watched before.
    async fn id_to_continue_after_gap(
        &self,
        client: &Client,
        query: &EventQuery,
        newest_event_id: u64,
    ) -> CommandResult<u64> {
        let last_event_id = self.last_event_id.or(query.after).unwrap_or(0);
        if last_event_id > newest_event_id {
            Ok(newest_event_id)
        } else {
            fetch_id_before_oldest_event(client, query).await
        }
    }
}

/// Fetches the cause of an event: the stream does not contain it. None for engine events, or if the request fails; then
/// the event starts a new tree.
async fn fetch_cause(client: &Client, event: &StreamLine) -> Option<EventCauseBody> {
    if event.subject != EventSubject::Emitted {
        return None;
    }
    client.read_event(event.event_id.get()).await.ok()?.cause
}

/// The name of a frame that contains no event; empty for an event. Only events have ids; their types may have the same
/// names.
fn non_event_frame_name(frame: &SseFrame) -> &str {
    if frame.id.is_none() { &frame.event_name } else { "" }
}

/// Prints a notice, such as about the connection, to standard error.
fn print_notice(text: &str) {
    print_to_stderr(format!("── {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_engine_type_gets_a_suggestion() {
        let suggest = |event_type: &str| suggest_engine_event_type(&event_type.parse().unwrap());
        assert_eq!(
            suggest("OrderEvnt").unwrap(),
            "the engine has no event type OrderEvnt; did you mean `OrderEvent`?"
        );
        for valid in ["OrderEvent", "Event", "order.started", "order", "Wholesale"] {
            assert_eq!(suggest(valid), None, "{valid}");
        }
    }
}
