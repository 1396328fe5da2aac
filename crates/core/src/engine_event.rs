//! The engine's own events: what the journal says of orders, chains, tasks, configured objects and the scheduler.
//!
//! They lie in the same stream as what is emitted, go to no handler, and show their fields beside `key` and `TYPE`
//! instead of a `value`. What is told of a tenant's order or task is the tenant's; all else is nobody's.

use serde_json::{Map, Value, json};

use crate::chain::{Action, ChainPath, NodeId, OrderKey};
use crate::{Context, Event, EventId, HandlerName, HandlingKey, Json, ObjectKey, TaskId, Tenant};

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Success,
    Error {
        return_code: i64,
    },
    /// The order stays where it is, and the step is run again.
    Keep,
}

/// Something of the engine's own that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    SchedulerStateChanged {
        state: SchedulerState,
    },
    SchedulerClosed,
    FileBased {
        change: FileChange,
        key: String,
    },
    /// A FileBasedAdded that also tells where the order stands.
    OrderAdded {
        order: OrderKey,
        node: NodeId,
    },
    OrderStarted {
        order: OrderKey,
        node: NodeId,
        task: TaskId,
    },
    OrderFinished {
        order: OrderKey,
        node: NodeId,
    },
    OrderStepStarted {
        order: OrderKey,
        node: NodeId,
        task: TaskId,
    },
    OrderStepEnded {
        order: OrderKey,
        transition: Transition,
    },
    OrderSetBack {
        order: OrderKey,
        node: NodeId,
    },
    OrderNodeChanged {
        order: OrderKey,
        node: NodeId,
        from: NodeId,
    },
    OrderSuspended {
        order: OrderKey,
    },
    OrderResumed {
        order: OrderKey,
    },
    JobChainStateChanged {
        chain: ChainPath,
        state: &'static str,
    },
    JobChainNodeActionChanged {
        chain: ChainPath,
        node: NodeId,
        action: Action,
    },
    TaskStarted {
        handler: HandlerName,
        task: TaskId,
    },
    TaskEnded {
        handler: HandlerName,
        task: TaskId,
        return_code: i64,
    },
    TaskClosed {
        handler: HandlerName,
        task: TaskId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerState {
    Starting,
    Running,
    Stopping,
}

impl SchedulerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// What became of something that is configured in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    Added,
    Removed,
    Replaced,
    Activated,
}

impl EngineEvent {
    fn kind(&self) -> &'static str {
        match self {
            Self::SchedulerStateChanged { .. } => "SchedulerStateChanged",
            Self::SchedulerClosed => "SchedulerClosed",
            Self::FileBased { change: FileChange::Added, .. } | Self::OrderAdded { .. } => "FileBasedAdded",
            Self::FileBased { change: FileChange::Removed, .. } => "FileBasedRemoved",
            Self::FileBased { change: FileChange::Replaced, .. } => "FileBasedReplaced",
            Self::FileBased { change: FileChange::Activated, .. } => "FileBasedActivated",
            Self::OrderStarted { .. } => "OrderStarted",
            Self::OrderFinished { .. } => "OrderFinished",
            Self::OrderStepStarted { .. } => "OrderStepStarted",
            Self::OrderStepEnded { .. } => "OrderStepEnded",
            Self::OrderSetBack { .. } => "OrderSetBack",
            Self::OrderNodeChanged { .. } => "OrderNodeChanged",
            Self::OrderSuspended { .. } => "OrderSuspended",
            Self::OrderResumed { .. } => "OrderResumed",
            Self::JobChainStateChanged { .. } => "JobChainStateChanged",
            Self::JobChainNodeActionChanged { .. } => "JobChainNodeActionChanged",
            Self::TaskStarted { .. } => "TaskStarted",
            Self::TaskEnded { .. } => "TaskEnded",
            Self::TaskClosed { .. } => "TaskClosed",
        }
    }

    fn key(&self) -> Option<String> {
        match self {
            Self::SchedulerStateChanged { .. } | Self::SchedulerClosed => None,
            Self::FileBased { key, .. } => Some(key.clone()),
            Self::OrderAdded { order, .. } => Some(format!("Order:{order}")),
            Self::OrderStarted { order, .. }
            | Self::OrderFinished { order, .. }
            | Self::OrderStepStarted { order, .. }
            | Self::OrderStepEnded { order, .. }
            | Self::OrderSetBack { order, .. }
            | Self::OrderNodeChanged { order, .. }
            | Self::OrderSuspended { order }
            | Self::OrderResumed { order } => Some(order.to_string()),
            Self::JobChainStateChanged { chain, .. } | Self::JobChainNodeActionChanged { chain, .. } => {
                Some(chain.to_string())
            }
            Self::TaskStarted { handler, task }
            | Self::TaskEnded { handler, task, .. }
            | Self::TaskClosed { handler, task } => {
                Some(json!({"jobPath": format!("/{handler}"), "taskId": task.as_str()}).to_string())
            }
        }
    }

    fn fields(&self) -> Value {
        match self {
            Self::SchedulerStateChanged { state } => json!({"state": state.as_str()}),
            Self::OrderStarted { node, task, .. } | Self::OrderStepStarted { node, task, .. } => {
                json!({"nodeId": node.as_str(), "taskId": task.as_str()})
            }
            Self::OrderAdded { node, .. }
            | Self::OrderFinished { node, .. }
            | Self::OrderSetBack { node, .. } => json!({"nodeId": node.as_str()}),
            Self::OrderStepEnded { transition, .. } => json!({"nodeTransition": match transition {
                Transition::Success => json!({"TYPE": "Success"}),
                Transition::Error { return_code } => json!({"TYPE": "Error", "returnCode": return_code}),
                Transition::Keep => json!({"TYPE": "Keep"}),
            }}),
            Self::OrderNodeChanged { node, from, .. } => {
                json!({"nodeId": node.as_str(), "fromNodeId": from.as_str()})
            }
            Self::JobChainStateChanged { state, .. } => json!({"state": state}),
            Self::JobChainNodeActionChanged { node, action, .. } => {
                json!({"nodeId": node.as_str(), "action": action.as_str()})
            }
            Self::TaskEnded { return_code, .. } => json!({"returnCode": return_code}),
            Self::SchedulerClosed
            | Self::FileBased { .. }
            | Self::OrderSuspended { .. }
            | Self::OrderResumed { .. }
            | Self::TaskStarted { .. }
            | Self::TaskClosed { .. } => Value::Object(Map::new()),
        }
    }

    /// As it stands in the journal, if it is of no tenant.
    pub fn at(&self, id: EventId) -> Event {
        let kind = HandlingKey::new(self.kind())
            .unwrap_or_else(|_| unreachable!("the engine's types are well-formed"));
        Event {
            id,
            prev: None,
            kind,
            // A task's may be longer than one that a producer may give.
            key: self.key().map(ObjectKey::trusted),
            sub: None,
            value: Json::trusted(self.fields().to_string()),
            context: Context::new(),
            tenant: Tenant::nobody(),
            cause: None,
        }
    }
}
