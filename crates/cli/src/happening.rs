//! One event out of the stream, in the words that a line has room for.
//!
//! What was emitted shows its payload. The engine's own events have no payload but a few fields, which are put into
//! words here: `render → deploy`, `Error, return code 3`.

use pointsman_core::{EventId, Json};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::output::short;

/// The longest payload that is shown.
const MOST: usize = 160;

/// An event as a line tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Happening {
    pub(crate) id: EventId,
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) of: Of,
    /// The payload, or the fields in words.
    pub(crate) words: String,
    /// The task that it speaks of.
    pub(crate) task: Option<String>,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Whatever its producer meant.
    Emitted,
    Order,
    Chain,
    Task,
    File,
    Scheduler,
}

impl Of {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Emitted => "event",
            Self::Order => "order",
            Self::Chain => "chain",
            Self::Task => "task",
            Self::File => "file",
            Self::Scheduler => "scheduler",
        }
    }

    /// Whose an event without a payload is, by the beginning of its type.
    fn read(kind: &str, key: Option<&str>) -> Self {
        match kind {
            kind if kind.starts_with("JobChain") => Self::Chain,
            kind if kind.starts_with("Order") => Self::Order,
            kind if kind.starts_with("Task") => Self::Task,
            kind if kind.starts_with("FileBased") => match key {
                Some(key) if key.starts_with(ORDER) => Self::Order,
                _ => Self::File,
            },
            _ => Self::Scheduler,
        }
    }
}

/// How the key of an order begins where it appears or vanishes.
const ORDER: &str = "Order:";

/// What an event has. A payload stays as it came; one that is null is none here. The engine's own have no tenant.
#[derive(Deserialize)]
struct Parts {
    #[serde(rename = "eventId")]
    id: u64,
    #[serde(rename = "TYPE")]
    kind: String,
    key: Option<Value>,
    value: Option<Json>,
    tenant: Option<String>,
}

impl Happening {
    /// Reads an event's JSON. What is not understood is newer than this program.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let parts: Parts = serde_json::from_str(json).ok()?;
        let (id, kind) = (EventId::new(parts.id)?, parts.kind);
        let (key, of_key) = match parts.key {
            Some(Value::Object(job)) => (text(&job, "jobPath"), text(&job, "taskId")),
            Some(Value::String(key)) => (Some(key), None),
            _ => (None, None),
        };
        if parts.tenant.is_some() {
            let words = short(parts.value.unwrap_or_else(Json::null).as_str(), MOST);
            return Some(Self { id, kind, key, of: Of::Emitted, words, task: None });
        }
        let fields: Map<String, Value> = serde_json::from_str(json).ok()?;
        let of = Of::read(&kind, key.as_deref());
        let task = of_key.or_else(|| text(&fields, "taskId"));
        Some(Self { id, kind, key, of, words: words(&fields), task })
    }

    /// The order that it speaks of.
    pub(crate) fn order(&self) -> Option<&str> {
        let key = self.key.as_deref().filter(|_| self.of == Of::Order)?;
        Some(key.strip_prefix(ORDER).unwrap_or(key))
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name)?.as_str().map(Into::into)
}

/// The fields of an engine's event, as people say it.
fn words(fields: &Map<String, Value>) -> String {
    let mut said = vec![];
    match (text(fields, "fromNodeId"), text(fields, "nodeId"), text(fields, "action")) {
        (Some(from), Some(to), _) => said.push(format!("{from} → {to}")),
        (_, Some(node), Some(action)) => said.push(format!("{node}: {action}")),
        (_, Some(node), None) => said.push(format!("at {node}")),
        (_, None, _) => {}
    }
    said.extend(text(fields, "state"));
    if let Some(Value::Object(transition)) = fields.get("nodeTransition") {
        said.extend(text(transition, "TYPE"));
        said.extend(return_code(transition));
    }
    said.extend(return_code(fields));
    short(&said.join(", "), MOST)
}

fn return_code(fields: &Map<String, Value>) -> Option<String> {
    fields.get("returnCode").map(|code| format!("return code {code}"))
}

#[cfg(test)]
mod tests {
    use pointsman_core::engine_event::{EngineEvent, FileChange, SchedulerState, Transition};
    use pointsman_core::{TaskId, chain::Action};

    use super::*;

    fn read(event: EngineEvent) -> Happening {
        Happening::read(&event.at(EventId::new(7).unwrap()).to_json()).unwrap()
    }

    fn said(event: EngineEvent) -> (&'static str, String) {
        let happening = read(event);
        (happening.of.word(), happening.words)
    }

    #[test]
    fn the_engines_own_events_are_told_in_words() {
        let order = || "/publish/article,117".parse().unwrap();
        let node = |name: &str| name.parse().unwrap();
        let task = || TaskId::from_text("render_a_1");
        let changed =
            EngineEvent::OrderNodeChanged { order: order(), node: node("deploy"), from: node("render") };
        assert_eq!(said(changed), ("order", "render → deploy".into()));
        let ended = |transition| EngineEvent::OrderStepEnded { order: order(), transition };
        assert_eq!(said(ended(Transition::Success)).1, "Success");
        assert_eq!(said(ended(Transition::Error { return_code: 3 })).1, "Error, return code 3");
        let started = read(EngineEvent::OrderStarted { order: order(), node: node("render"), task: task() });
        assert_eq!((started.words.as_str(), started.order()), ("at render", Some("/publish/article,117")));
        assert_eq!(started.task.as_deref(), Some("render_a_1"));

        let chain = || "/publish/article".parse().unwrap();
        let stopped = EngineEvent::JobChainStateChanged { chain: chain(), state: "stopped" };
        assert_eq!(said(stopped), ("chain", "stopped".into()));
        let set = EngineEvent::JobChainNodeActionChanged {
            chain: chain(),
            node: node("deploy"),
            action: Action::NextState,
        };
        assert_eq!(said(set), ("chain", "deploy: next_state".into()));
        let state = EngineEvent::SchedulerStateChanged { state: SchedulerState::Running };
        assert_eq!(said(state), ("scheduler", "running".into()));
    }

    #[test]
    fn a_tasks_key_names_its_handler_and_itself() {
        let (handler, task) = ("index".parse().unwrap(), TaskId::from_text("index_x_1"));
        let ended = read(EngineEvent::TaskEnded { handler, task, return_code: 3 });
        assert_eq!((ended.of, ended.words.as_str()), (Of::Task, "return code 3"));
        assert_eq!((ended.key.as_deref(), ended.task.as_deref()), (Some("/index"), Some("index_x_1")));
    }

    #[test]
    fn an_order_appears_as_an_order_and_a_file_as_a_file() {
        let added =
            read(EngineEvent::OrderAdded { order: "/a/b,1".parse().unwrap(), node: "x".parse().unwrap() });
        assert_eq!((added.of, added.order(), added.words.as_str()), (Of::Order, Some("/a/b,1"), "at x"));
        let file = read(EngineEvent::FileBased { change: FileChange::Replaced, key: "Job:/index".into() });
        assert_eq!((file.of, file.order(), file.words.as_str()), (Of::File, None, ""));
    }

    #[test]
    fn what_was_emitted_shows_its_payload_whatever_its_type() {
        let json = r#"{"eventId":7,"TYPE":"Orders","key":"a","prev":null,"value":{"n":1.50},"context":{},"tenant":"t"}"#;
        let event = Happening::read(json).unwrap();
        assert_eq!((event.of, event.words.as_str(), event.order()), (Of::Emitted, r#"{"n":1.50}"#, None));
        let null = Happening::read(&json.replace(r#"{"n":1.50}"#, "null")).unwrap();
        assert_eq!((null.of, null.words.as_str()), (Of::Emitted, "null"));
        assert_eq!(Happening::read("{}"), None);
    }
}
