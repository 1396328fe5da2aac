//! `pointsman watch`: events and what becomes of them, as it happens.
//!
//! The stream is resumed where it broke: events have ids, so that none is shown twice and none is missed. Task
//! changes have none; those of a moment without a connection are not seen again.
//!
//! ```text
//!  line    what happens, a line each
//!  tree    the same, each below what caused it
//! ```

mod line;
mod tree;

use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, EventQuery, Frame, Frames};
use pointsman_api::{CauseBody, EventSeq};
use pointsman_core::journal::PathFilter;
use pointsman_core::names::RESERVED_TYPES;
use pointsman_core::{EventId, HandlingKey, ObjectKey, Tenant};
use pointsman_server::config::nearest::hint;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::happening::{Happening, Of};
use crate::output::{Output, say};
use line::{Line, Lines};
use tree::Tree;

/// Watch events and what becomes of them
///
/// Shows a line for each event and one for each change of a task, until it is interrupted. When the server is
/// restarted, it connects again and goes on where it was. If events were forgotten meanwhile, it says so.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman watch
  pointsman watch --return record --key record:1
  pointsman watch --return OrderEvent,JobChainEvent --path /publish/
  pointsman watch --tree
  pointsman watch --since-start --no-tasks -o json | jq -c .value

Orders, chains, failed tasks, configured objects and the scheduler have events of their own: \
`--return OrderEvent`, JobChainEvent, TaskEvent, FileBasedEvent or SchedulerEvent narrows to them.")]
pub(crate) struct Watch {
    /// Begin after this event, rather than now
    #[arg(long, value_name = "EVENT_ID", conflicts_with = "since_start")]
    after: Option<EventId>,

    /// Begin with the oldest event; in a journal that has forgotten its start, 1000 back from now
    #[arg(long)]
    since_start: bool,

    /// Only events of this type, or below it; several with commas between; no tasks then
    #[arg(long = "return", value_name = "TYPE", value_delimiter = ',')]
    kinds: Vec<HandlingKey>,

    /// Only those of one object
    #[arg(long)]
    key: Option<ObjectKey>,

    /// Only objects there: `/folder/`, `/folder/*` or `/folder/name`
    #[arg(long, value_parser = path)]
    path: Option<String>,

    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Show each event below the one that caused it, and an order's events below the order. Asks the server
    /// about every event: for a close look, not for a flood
    #[arg(long)]
    tree: bool,

    /// Show what becomes of tasks; this is the default
    #[arg(long, overrides_with = "no_tasks")]
    follow_tasks: bool,

    /// Show events only
    #[arg(long, overrides_with = "follow_tasks")]
    no_tasks: bool,
}

fn path(text: &str) -> std::result::Result<String, String> {
    text.parse::<PathFilter>().map(|_| text.into()).map_err(|e| e.to_string())
}

/// The names of frames that are not events of the journal.
const TORN: &str = "Torn";
const TASK: &str = "task";

/// How long to wait before connecting again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Watch {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        if self.tree && output.is_json() {
            return Err(Failure::usage("a tree is for people, and JSON is not").hint(
                "`pointsman events show ID -o json` tells of one event what caused it and what it caused.",
            ));
        }
        for kind in &self.kinds {
            mistyped(kind).iter().for_each(|hint| note(hint));
        }
        let mut query = EventQuery {
            kind: self.kinds(),
            path: self.path.clone(),
            key: self.key.as_ref().map(ToString::to_string),
            tenant: self.tenant.as_ref().map(ToString::to_string),
            ..EventQuery::default()
        };
        query.after = Some(self.start(&client, &query).await?);
        // What is watched from now on needs no date before the day ends.
        let from_now = self.after.is_none() && !self.since_start;
        let day = from_now.then(|| pointsman_engine::now().to_string().chars().take(10).collect());
        let tree = self.tree.then(Tree::default);
        let lines = Lines::new(output.paint, output.width());
        let mut view = View { output, tasks: !self.no_tasks, lines, tree, day, resume: None };
        // A server that is not there at first is a mistake to be told; one that goes away later comes back.
        let mut frames = client.stream(&query, None).await?;
        loop {
            match view.show_all(&client, &mut frames).await? {
                End::Torn { head } => {
                    query.after = Some(view.beyond_the_tear(&client, &query, head).await?);
                    view.resume = None;
                    frames = client.stream(&query, None).await?;
                }
                End::Broken(why) => {
                    note(&format!("{why}; connecting again…"));
                    frames = reconnect(&client, &query, view.resume).await?;
                    note("connected again");
                }
            }
        }
    }

    /// The types as the server takes them.
    fn kinds(&self) -> Option<String> {
        let kinds: Vec<&str> = self.kinds.iter().map(HandlingKey::as_str).collect();
        (!kinds.is_empty()).then(|| kinds.join(","))
    }

    /// The id to begin after. Without a wish it is the newest there is.
    async fn start(&self, client: &Client, query: &EventQuery) -> Result<u64> {
        match self.after {
            Some(after) => Ok(after.get()),
            None if self.since_start => before_the_oldest(client, query).await,
            None => {
                let newest = EventQuery { after: None, limit: Some(-1), ..query.clone() };
                Ok(line::newest_id(&client.events(&newest).await?))
            }
        }
    }
}

/// What is said of a type that is nearly one of the engine's. Anybody may emit others, which are told from those by
/// having dots or no capital.
fn mistyped(kind: &HandlingKey) -> Option<String> {
    let text = kind.as_str();
    let is_own =
        RESERVED_TYPES.contains(&text) || !text.starts_with(char::is_uppercase) || text.contains('.');
    let near = if is_own { String::new() } else { hint(text, RESERVED_TYPES.iter().copied()) };
    (!near.is_empty()).then(|| format!("the engine tells of no {text}{near}"))
}

/// How far back `--since-start` goes in a journal that has forgotten its start.
const LOOK_BACK: i64 = 1000;

/// The id just below the oldest event that is wanted and remembered. Once a journal has forgotten its start,
/// it does not tell where it begins now; then a stretch back from the newest is taken.
async fn before_the_oldest(client: &Client, query: &EventQuery) -> Result<u64> {
    let oldest = EventQuery { after: Some(0), limit: Some(1), ..query.clone() };
    let newest = EventQuery { after: None, limit: Some(-LOOK_BACK), ..query.clone() };
    let seq = match client.events(&oldest).await? {
        EventSeq::Torn { .. } => client.events(&newest).await?,
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

/// Connects again, however long it takes, unless the server says that it never will.
async fn reconnect(client: &Client, query: &EventQuery, resume: Option<u64>) -> Result<Frames> {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        match client.stream(query, resume).await {
            Err(error) if error.is_temporary() => pause = (pause * 2).min(LONGEST_PAUSE),
            answer => return Ok(answer?),
        }
    }
}

/// Why a stream is over.
enum End {
    Broken(String),
    /// There is a gap. The newest id at that time.
    Torn {
        head: u64,
    },
}

/// What is shown, and how far it has come.
struct View {
    output: Output,
    tasks: bool,
    lines: Lines,
    tree: Option<Tree>,
    /// The day of the last line.
    day: Option<String>,
    /// The id of the last frame that had one.
    resume: Option<u64>,
}

impl View {
    /// Shows frames until the stream is over.
    async fn show_all(&mut self, client: &Client, frames: &mut Frames) -> Result<End> {
        loop {
            match frames.next().await {
                Ok(Some(frame)) => {
                    self.show(client, &frame).await?;
                    if told(&frame) == TORN {
                        let torn = serde_json::from_str(&frame.data)?;
                        return Ok(End::Torn { head: line::newest_id(&torn) });
                    }
                }
                Ok(None) => return Ok(End::Broken("the server has ended the stream".into())),
                Err(error) if error.is_temporary() => return Ok(End::Broken(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn show(&mut self, client: &Client, frame: &Frame) -> Result {
        if let Some(id) = frame.id.as_ref().and_then(|id| id.parse().ok()) {
            self.resume = Some(id);
        }
        let is_task = told(frame) == TASK;
        if frame.data.is_empty() || (is_task && !self.tasks) {
            return Ok(());
        }
        if self.output.is_json() {
            return Ok(self.output.json_text(&frame.data)?);
        }
        let paint = self.output.paint;
        // What is not understood is newer than this program; whoever wants it can have it with `-o json`.
        let lines: Vec<Line> = match (told(frame), &mut self.tree) {
            (TORN, _) => line::torn(paint, &frame.data).into_iter().collect(),
            (TASK, None) => self.lines.task(&frame.data).into_iter().collect(),
            (_, None) => self.lines.event(&frame.data).into_iter().collect(),
            (TASK, Some(tree)) => {
                serde_json::from_str(&frame.data).map(|change| tree.task(paint, &change)).unwrap_or_default()
            }
            (_, Some(tree)) => match Happening::read(&frame.data) {
                Some(event) => tree.event(paint, &event, cause(client, &event).await.as_ref()),
                None => vec![],
            },
        };
        lines.into_iter().try_for_each(|line| self.print(line))
    }

    fn print(&mut self, line: Line) -> Result {
        if let Some(day) = line.day.filter(|day| self.day.as_ref() != Some(day)) {
            self.output.line(self.output.paint.dim(&format!("── {day}")))?;
            self.day = Some(day);
        }
        // What a terminal has no room for stands below, behind the time.
        match line.text.split_once("  ") {
            Some((time, rest)) => Ok(self.output.hanging(&format!("{time}  "), rest)?),
            None => Ok(self.output.hanging("", &line.text)?),
        }
    }

    /// Where to go on after a tear: with the oldest event there is, or, when the journal is not the one that
    /// was watched before, with what comes now.
    async fn beyond_the_tear(&self, client: &Client, query: &EventQuery, head: u64) -> Result<u64> {
        let reached = self.resume.or(query.after).unwrap_or(0);
        if reached > head { Ok(head) } else { before_the_oldest(client, query).await }
    }
}

/// What caused an event. The stream does not say; and where the server cannot, the event begins a tree of its own.
async fn cause(client: &Client, event: &Happening) -> Option<CauseBody> {
    if event.of != Of::Emitted {
        return None;
    }
    client.event(event.id.get()).await.ok()?.cause
}

/// Which of the frames that are no events this is, if it is one. An event has an id, and may have any type: also
/// one that reads like those.
fn told(frame: &Frame) -> &str {
    if frame.id.is_none() { &frame.event } else { "" }
}

/// Something about the watching itself: not a part of what is watched.
fn note(text: &str) {
    say(format!("── {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_is_nearly_one_of_the_engines_is_told() {
        let told = |kind: &str| mistyped(&kind.parse().unwrap());
        assert_eq!(
            told("OrderEvnt").unwrap(),
            "the engine tells of no OrderEvnt; did you mean `OrderEvent`?"
        );
        for fine in ["OrderEvent", "Event", "order.started", "order", "Wholesale"] {
            assert_eq!(told(fine), None, "{fine}");
        }
    }
}
