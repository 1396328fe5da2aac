//! One event of the stream, reduced to what a line of `watch` or `events show` prints.
//!
//! An emitted event prints its payload. An engine event has a few fields instead; it prints a sentence such as `order 117
//! moved from render to deploy`. An engine event of a type that this version does not know prints its fields.

use pointsman_core::{EventId, Json};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::output::escape_and_shorten;

/// The maximum width of a payload or a sentence, in columns of the terminal.
const MAX_TEXT_WIDTH: usize = 160;

/// An event, reduced to what a line prints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamLine {
    pub(crate) event_id: EventId,
    pub(crate) event_type: String,
    pub(crate) key: Option<String>,
    pub(crate) subject: EventSubject,
    /// The payload of an emitted event, or a sentence about an engine event.
    pub(crate) text: String,
    /// The id of the task that an engine event names.
    pub(crate) task_id: Option<String>,
}

/// The kind of thing that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSubject {
    /// A producer emitted the event.
    Emitted,
    Order,
    Chain,
    Task,
    /// A configured handler, source, chain or schedule.
    ConfiguredObject,
    Scheduler,
}

impl EventSubject {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Emitted => "event",
            Self::Order => "order",
            Self::Chain => "chain",
            Self::Task => "task",
            Self::ConfiguredObject => "file",
            Self::Scheduler => "scheduler",
        }
    }

    /// The subject of an engine event, by the prefix of its type.
    fn from_engine_event_type(event_type: &str, key: Option<&str>) -> Self {
        match event_type {
            name if name.starts_with("JobChain") => Self::Chain,
            name if name.starts_with("Order") => Self::Order,
            name if name.starts_with("Task") => Self::Task,
            name if name.starts_with("FileBased") => match key {
                Some(key) if key.starts_with(FILE_BASED_ORDER_KEY_PREFIX) => Self::Order,
                _ => Self::ConfiguredObject,
            },
            _ => Self::Scheduler,
        }
    }
}

/// The prefix of an order's key in the events `FileBasedAdded` and `FileBasedRemoved`.
const FILE_BASED_ORDER_KEY_PREFIX: &str = "Order:";

/// The JSON members that emitted events and engine events share. A `null` payload reads as none. Only emitted events
/// have a tenant.
#[derive(Deserialize)]
struct CommonEventMembers {
    #[serde(rename = "eventId")]
    event_id: u64,
    #[serde(rename = "TYPE")]
    event_type: String,
    key: Option<Value>,
    value: Option<Json>,
    tenant: Option<String>,
}

impl StreamLine {
    /// Reads an event's JSON. Returns none for JSON that this version does not understand.
    pub(crate) fn from_json(json: &str) -> Option<Self> {
        let members: CommonEventMembers = serde_json::from_str(json).ok()?;
        let (id, event_type) = (EventId::new(members.event_id)?, members.event_type);
        let (key, task_of_key) = match members.key {
            Some(Value::Object(job)) => (string_field(&job, "jobPath"), string_field(&job, "taskId")),
            Some(Value::String(key)) => (Some(key), None),
            _ => (None, None),
        };
        if members.tenant.is_some() {
            let text = escape_and_shorten(members.value.unwrap_or_else(Json::null).as_str(), MAX_TEXT_WIDTH);
            return Some(Self {
                event_id: id,
                event_type,
                key,
                subject: EventSubject::Emitted,
                text,
                task_id: None,
            });
        }
        let fields: Map<String, Value> = serde_json::from_str(json).ok()?;
        let subject = EventSubject::from_engine_event_type(&event_type, key.as_deref());
        let task_id = task_of_key.or_else(|| string_field(&fields, "taskId"));
        let sentence = describe_engine_event(&event_type, key.as_deref(), &fields);
        let text = escape_and_shorten(
            &sentence.unwrap_or_else(|| describe_unknown_engine_event(&fields)),
            MAX_TEXT_WIDTH,
        );
        Some(Self { event_id: id, event_type, key, subject, text, task_id })
    }

    /// The key of the order that the event is about: `/chain/path,id`.
    pub(crate) fn order_key(&self) -> Option<&str> {
        let key = self.key.as_deref().filter(|_| self.subject == EventSubject::Order)?;
        Some(key.strip_prefix(FILE_BASED_ORDER_KEY_PREFIX).unwrap_or(key))
    }
}

fn string_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name)?.as_str().map(Into::into)
}

/// Describes an engine event in a sentence. None if its type is not known or a field is missing.
fn describe_engine_event(event_type: &str, key: Option<&str>, fields: &Map<String, Value>) -> Option<String> {
    match event_type {
        "SchedulerStateChanged" => Some(format!("scheduler is now {}", string_field(fields, "state")?)),
        "SchedulerClosed" => Some("scheduler closed".into()),
        "JobChainStateChanged" => Some(format!("chain {} is now {}", key?, string_field(fields, "state")?)),
        "JobChainNodeActionChanged" => {
            let (node, action) = (string_field(fields, "nodeId")?, string_field(fields, "action")?);
            Some(format!("node {node} of chain {} set to {action}", key?))
        }
        name if name.starts_with("Task") => describe_task_event(name, key?, fields),
        name if name.starts_with("FileBased") && !key?.starts_with(FILE_BASED_ORDER_KEY_PREFIX) => {
            describe_configuration_event(name, key?)
        }
        name => {
            describe_order_event(name, key?.strip_prefix(FILE_BASED_ORDER_KEY_PREFIX).unwrap_or(key?), fields)
        }
    }
}

fn describe_order_event(event_type: &str, order: &str, fields: &Map<String, Value>) -> Option<String> {
    let (chain, id) = order.rsplit_once(',')?;
    let node = || string_field(fields, "nodeId");
    Some(match event_type {
        "FileBasedAdded" => format!("order {id} added to {chain} at {}", node()?),
        "FileBasedRemoved" => format!("order {id} removed from {chain}"),
        "OrderStarted" => format!("order {id} started at {}", node()?),
        "OrderStepStarted" => format!("order {id} runs step {}", node()?),
        "OrderStepEnded" => {
            let transition = fields.get("nodeTransition")?.as_object()?;
            match transition.get("TYPE")?.as_str()? {
                "Success" => format!("step of order {id} succeeded"),
                "Error" => {
                    format!("step of order {id} failed with return code {}", transition.get("returnCode")?)
                }
                "Keep" => format!("step of order {id} will run again"),
                _ => return None,
            }
        }
        "OrderSetBack" => format!("order {id} is set back at {} and will be retried", node()?),
        "OrderNodeChanged" => {
            format!("order {id} moved from {} to {}", string_field(fields, "fromNodeId")?, node()?)
        }
        "OrderSuspended" => format!("order {id} suspended"),
        "OrderResumed" => format!("order {id} resumed"),
        "OrderFinished" => format!("order {id} finished at {}", node()?),
        _ => return None,
    })
}

fn describe_task_event(event_type: &str, job_path: &str, fields: &Map<String, Value>) -> Option<String> {
    let handler = job_path.trim_start_matches('/');
    Some(match event_type {
        "TaskStarted" => format!("task of handler {handler} started"),
        "TaskEnded" => {
            format!("task of handler {handler} ended with return code {}", fields.get("returnCode")?)
        }
        "TaskClosed" => format!("task of handler {handler} closed"),
        _ => return None,
    })
}

/// Describes a change of a configured object, whose key is such as `Job:/index`, `JobChain:/publish/article` or
/// `Schedule:/nightly`.
fn describe_configuration_event(event_type: &str, key: &str) -> Option<String> {
    let (prefix, path) = key.split_once(':')?;
    let name = path.strip_prefix('/').unwrap_or(path);
    let object = match prefix {
        "Job" => format!("handler {name}"),
        "JobChain" => format!("chain {path}"),
        prefix => format!("{} {name}", prefix.to_lowercase()),
    };
    let change = match event_type {
        "FileBasedAdded" => "added",
        "FileBasedRemoved" => "removed",
        "FileBasedReplaced" => "replaced",
        "FileBasedActivated" => "activated",
        _ => return None,
    };
    Some(format!("{object} {change}"))
}

/// Lists the known fields of an engine event whose type, or a needed field of which, this version does not know.
fn describe_unknown_engine_event(fields: &Map<String, Value>) -> String {
    let mut parts = vec![];
    match (string_field(fields, "fromNodeId"), string_field(fields, "nodeId"), string_field(fields, "action"))
    {
        (Some(from), Some(to), _) => parts.push(format!("{from} → {to}")),
        (_, Some(node), Some(action)) => parts.push(format!("{node}: {action}")),
        (_, Some(node), None) => parts.push(format!("at {node}")),
        (_, None, _) => {}
    }
    parts.extend(string_field(fields, "state"));
    if let Some(Value::Object(transition)) = fields.get("nodeTransition") {
        parts.extend(string_field(transition, "TYPE"));
        parts.extend(describe_return_code(transition));
    }
    parts.extend(describe_return_code(fields));
    parts.join(", ")
}

fn describe_return_code(fields: &Map<String, Value>) -> Option<String> {
    fields.get("returnCode").map(|code| format!("return code {code}"))
}

#[cfg(test)]
mod tests {
    use pointsman_core::engine_event::{EngineEvent, EngineState, FileBasedChange, StepTransition};
    use pointsman_core::{TaskId, chain::ChainNodeAction};

    use super::*;

    fn engine_event_line(event: EngineEvent) -> StreamLine {
        StreamLine::from_json(&event.to_event(EventId::new(7).unwrap()).to_json()).unwrap()
    }

    fn label_and_text(event: EngineEvent) -> (&'static str, String) {
        let line = engine_event_line(event);
        (line.subject.label(), line.text)
    }

    #[test]
    fn order_events_are_sentences() {
        let order = || "/publish/article,203".parse().unwrap();
        let node = |name: &str| name.parse().unwrap();
        let task = || TaskId::from_text("render_a_1");
        let ended = |transition| EngineEvent::OrderStepEnded { order: order(), transition };
        let removed = EngineEvent::FileBasedChanged {
            change: FileBasedChange::Removed,
            key: "Order:/publish/article,203".into(),
        };
        for (event, sentence) in [
            (
                EngineEvent::OrderAdded { order: order(), node: node("render") },
                "order 203 added to /publish/article at render",
            ),
            (removed, "order 203 removed from /publish/article"),
            (
                EngineEvent::OrderStarted { order: order(), node: node("render"), task: task() },
                "order 203 started at render",
            ),
            (
                EngineEvent::OrderStepStarted { order: order(), node: node("render"), task: task() },
                "order 203 runs step render",
            ),
            (ended(StepTransition::Success), "step of order 203 succeeded"),
            (ended(StepTransition::Error { return_code: 3 }), "step of order 203 failed with return code 3"),
            (ended(StepTransition::Keep), "step of order 203 will run again"),
            (
                EngineEvent::OrderSetBack { order: order(), node: node("deploy") },
                "order 203 is set back at deploy and will be retried",
            ),
            (
                EngineEvent::OrderNodeChanged {
                    order: order(),
                    node: node("deploy"),
                    from_node: node("render"),
                },
                "order 203 moved from render to deploy",
            ),
            (EngineEvent::OrderSuspended { order: order() }, "order 203 suspended"),
            (EngineEvent::OrderResumed { order: order() }, "order 203 resumed"),
            (EngineEvent::OrderFinished { order: order(), node: node("done") }, "order 203 finished at done"),
        ] {
            assert_eq!(label_and_text(event), ("order", sentence.into()));
        }
    }

    #[test]
    fn chain_and_scheduler_events_are_sentences() {
        let chain = || "/publish/article".parse().unwrap();
        let stopped = EngineEvent::JobChainStateChanged { chain: chain(), state: "stopped" };
        assert_eq!(label_and_text(stopped), ("chain", "chain /publish/article is now stopped".into()));
        let set = EngineEvent::JobChainNodeActionChanged {
            chain: chain(),
            node: "deploy".parse().unwrap(),
            action: ChainNodeAction::NextState,
        };
        assert_eq!(
            label_and_text(set),
            ("chain", "node deploy of chain /publish/article set to next_state".into())
        );
        let running = EngineEvent::SchedulerStateChanged { state: EngineState::Running };
        assert_eq!(label_and_text(running), ("scheduler", "scheduler is now running".into()));
        assert_eq!(label_and_text(EngineEvent::SchedulerClosed), ("scheduler", "scheduler closed".into()));
    }

    #[test]
    fn task_events_are_sentences() {
        let (handler, task) = (|| "index".parse().unwrap(), || TaskId::from_text("index_x_1"));
        for (event, sentence) in [
            (EngineEvent::TaskStarted { handler: handler(), task: task() }, "task of handler index started"),
            (
                EngineEvent::TaskEnded { handler: handler(), task: task(), return_code: 0 },
                "task of handler index ended with return code 0",
            ),
            (EngineEvent::TaskClosed { handler: handler(), task: task() }, "task of handler index closed"),
        ] {
            assert_eq!(label_and_text(event), ("task", sentence.into()));
        }
    }

    #[test]
    fn events_of_configured_objects_are_sentences() {
        for (change, key, sentence) in [
            (FileBasedChange::Added, "Job:/index", "handler index added"),
            (FileBasedChange::Removed, "Job:/index", "handler index removed"),
            (FileBasedChange::Replaced, "Job:/index", "handler index replaced"),
            (FileBasedChange::Activated, "Job:/index", "handler index activated"),
            (FileBasedChange::Replaced, "JobChain:/publish/article", "chain /publish/article replaced"),
            (FileBasedChange::Added, "Schedule:/nightly", "schedule nightly added"),
            (FileBasedChange::Added, "Schedule:/shop/orders", "schedule shop/orders added"),
        ] {
            let event = EngineEvent::FileBasedChanged { change, key: key.into() };
            assert_eq!(label_and_text(event), ("file", sentence.into()));
        }
    }

    #[test]
    fn an_engine_event_of_an_unknown_type_prints_its_fields() {
        let text = |json: &str| StreamLine::from_json(json).unwrap().text;
        let event = r#"{"eventId":7,"TYPE":"OrderParked","key":"/a,1","fromNodeId":"x","nodeId":"y"}"#;
        assert_eq!(text(event), "x → y");
        let event = r#"{"eventId":7,"TYPE":"SchedulerPaused","state":"paused","returnCode":3}"#;
        assert_eq!(text(event), "paused, return code 3");
        let event = r#"{"eventId":7,"TYPE":"OrderStepEnded","key":"/a,1","nodeTransition":{"TYPE":"Jump"}}"#;
        assert_eq!(text(event), "Jump");
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        let event = r#"{"eventId":7,"TYPE":"OrderStarted","key":"/a,1\u001b[31m","nodeId":"x\u202ey"}"#;
        let text = StreamLine::from_json(event).unwrap().text;
        assert_eq!(text, r"order 1\u{1b}[31m started at x\u{202e}y");
    }

    #[test]
    fn the_task_id_is_read_from_the_key_or_the_fields() {
        let (handler, task) = ("index".parse().unwrap(), TaskId::from_text("index_x_1"));
        let ended = engine_event_line(EngineEvent::TaskEnded { handler, task, return_code: 3 });
        assert_eq!(ended.subject, EventSubject::Task);
        assert_eq!((ended.key.as_deref(), ended.task_id.as_deref()), (Some("/index"), Some("index_x_1")));
        let (order, task) = ("/a/b,1".parse().unwrap(), TaskId::from_text("render_a_1"));
        let started = EngineEvent::OrderStarted { order, node: "render".parse().unwrap(), task };
        assert_eq!(engine_event_line(started).task_id.as_deref(), Some("render_a_1"));
    }

    #[test]
    fn file_based_events_of_orders_have_the_order_as_subject() {
        let added = engine_event_line(EngineEvent::OrderAdded {
            order: "/a/b,1".parse().unwrap(),
            node: "x".parse().unwrap(),
        });
        assert_eq!((added.subject, added.order_key()), (EventSubject::Order, Some("/a/b,1")));
        let replaced =
            EngineEvent::FileBasedChanged { change: FileBasedChange::Replaced, key: "Job:/index".into() };
        let replaced = engine_event_line(replaced);
        assert_eq!((replaced.subject, replaced.order_key()), (EventSubject::ConfiguredObject, None));
    }

    #[test]
    fn an_emitted_event_prints_its_payload_whatever_its_type() {
        let json = r#"{"eventId":7,"TYPE":"Orders","key":"a","prev":null,"value":{"n":1.50},"context":{},"tenant":"t"}"#;
        let event = StreamLine::from_json(json).unwrap();
        assert_eq!(
            (event.subject, event.text.as_str(), event.order_key()),
            (EventSubject::Emitted, r#"{"n":1.50}"#, None)
        );
        let null = StreamLine::from_json(&json.replace(r#"{"n":1.50}"#, "null")).unwrap();
        assert_eq!((null.subject, null.text.as_str()), (EventSubject::Emitted, "null"));
        assert_eq!(StreamLine::from_json("{}"), None);
    }
}
