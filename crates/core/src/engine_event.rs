//! The engine's own events: changes of orders, chains, tasks, configured objects and the scheduler.
//!
//! Engine events are in the same stream as emitted events, go to no handler, and have their fields next to `key` and
//! `TYPE` instead of a `value`. An event about a tenant's order or task belongs to that tenant; all others have no
//! tenant.

use serde_json::{Map, Value, json};

use crate::chain::{ChainNodeAction, ChainNodeId, ChainPath, OrderKey};
use crate::{Context, Event, EventId, EventType, HandlerName, Json, ObjectKey, TaskId, Tenant};

/// How an order continues after an attempt of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTransition {
    /// The order moves along the `next` link.
    Success,
    /// The step failed for good: the order moves along the `on_error` link, or is suspended.
    Error {
        /// The exit code of a command, the HTTP status, or what a worker reported.
        return_code: i64,
    },
    /// The order stays at its node, and the step runs again.
    Keep,
}

/// An event that the engine publishes about itself.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// A node starts, runs or stops.
    SchedulerStateChanged {
        /// The state that the node entered.
        state: EngineState,
    },
    /// A node has stopped.
    SchedulerClosed,
    /// An object that is configured in files was changed.
    FileBasedChanged {
        /// The change.
        change: FileBasedChange,
        /// The key of the object, such as `JobChain:/a/b`.
        key: String,
    },
    /// An order was added. Published as `FileBasedAdded` with the order's node.
    OrderAdded {
        /// The order.
        order: OrderKey,
        /// The node at which the order starts.
        node: ChainNodeId,
    },
    /// An order starts its first step.
    OrderStarted {
        /// The order.
        order: OrderKey,
        /// The node of the step.
        node: ChainNodeId,
        /// The task that runs the step.
        task: TaskId,
    },
    /// An order arrived at an end node.
    OrderFinished {
        /// The order.
        order: OrderKey,
        /// The end node.
        node: ChainNodeId,
    },
    /// An attempt of a step starts.
    OrderStepStarted {
        /// The order.
        order: OrderKey,
        /// The node of the step.
        node: ChainNodeId,
        /// The task that runs the step.
        task: TaskId,
    },
    /// An attempt of a step has ended.
    OrderStepEnded {
        /// The order.
        order: OrderKey,
        /// How the order continues.
        transition: StepTransition,
    },
    /// A step failed and is retried later.
    OrderSetBack {
        /// The order.
        order: OrderKey,
        /// The node of the step.
        node: ChainNodeId,
    },
    /// An order moved to another node.
    OrderNodeChanged {
        /// The order.
        order: OrderKey,
        /// The node to which the order moved.
        node: ChainNodeId,
        /// The node that the order left.
        from_node: ChainNodeId,
    },
    /// An order was suspended.
    OrderSuspended {
        /// The order.
        order: OrderKey,
    },
    /// An order was resumed.
    OrderResumed {
        /// The order.
        order: OrderKey,
    },
    /// A chain was stopped or started.
    JobChainStateChanged {
        /// The chain.
        chain: ChainPath,
        /// `stopped` or `running`.
        state: &'static str,
    },
    /// An operator set the action of a chain node.
    JobChainNodeActionChanged {
        /// The chain.
        chain: ChainPath,
        /// The node.
        node: ChainNodeId,
        /// The node's new action.
        action: ChainNodeAction,
    },
    /// An attempt of a handler starts, if all its attempts are published.
    TaskStarted {
        /// The handler.
        handler: HandlerName,
        /// The task.
        task: TaskId,
    },
    /// An attempt of an observed handler has ended.
    TaskEnded {
        /// The handler.
        handler: HandlerName,
        /// The task.
        task: TaskId,
        /// 0 for a success; for a failure the exit code of a command, the HTTP status, or what a worker reported.
        return_code: i64,
    },
    /// A task of an observed handler has ended: it has succeeded, failed for good or was cancelled.
    TaskClosed {
        /// The handler.
        handler: HandlerName,
        /// The task.
        task: TaskId,
    },
}

/// The state of the engine, which the event stream calls the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// The node starts its services.
    Starting,
    /// The node is in service.
    Running,
    /// The node finishes its attempts and stops.
    Stopping,
}

impl EngineState {
    /// Returns the name of the engine's state in the event stream: `starting`, `running` or `stopping`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// A change of an object that is configured in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileBasedChange {
    /// The object was added.
    Added,
    /// The object was removed.
    Removed,
    /// The object was replaced by another definition.
    Replaced,
    /// The object is in effect.
    Activated,
}

impl EngineEvent {
    fn type_name(&self) -> &'static str {
        match self {
            Self::SchedulerStateChanged { .. } => "SchedulerStateChanged",
            Self::SchedulerClosed => "SchedulerClosed",
            Self::FileBasedChanged { change: FileBasedChange::Added, .. } | Self::OrderAdded { .. } => {
                "FileBasedAdded"
            }
            Self::FileBasedChanged { change: FileBasedChange::Removed, .. } => "FileBasedRemoved",
            Self::FileBasedChanged { change: FileBasedChange::Replaced, .. } => "FileBasedReplaced",
            Self::FileBasedChanged { change: FileBasedChange::Activated, .. } => "FileBasedActivated",
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
            Self::FileBasedChanged { key, .. } => Some(key.clone()),
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
                StepTransition::Success => json!({"TYPE": "Success"}),
                StepTransition::Error { return_code } => json!({"TYPE": "Error", "returnCode": return_code}),
                StepTransition::Keep => json!({"TYPE": "Keep"}),
            }}),
            Self::OrderNodeChanged { node, from_node, .. } => {
                json!({"nodeId": node.as_str(), "fromNodeId": from_node.as_str()})
            }
            Self::JobChainStateChanged { state, .. } => json!({"state": state}),
            Self::JobChainNodeActionChanged { node, action, .. } => {
                json!({"nodeId": node.as_str(), "action": action.as_str()})
            }
            Self::TaskEnded { return_code, .. } => json!({"returnCode": return_code}),
            Self::SchedulerClosed
            | Self::FileBasedChanged { .. }
            | Self::OrderSuspended { .. }
            | Self::OrderResumed { .. }
            | Self::TaskStarted { .. }
            | Self::TaskClosed { .. } => Value::Object(Map::new()),
        }
    }

    /// Converts this to an event as the journal stores it, without a tenant.
    pub fn to_event(&self, id: EventId) -> Event {
        let event_type = EventType::new(self.type_name())
            .unwrap_or_else(|_| unreachable!("the engine's types are well-formed"));
        Event {
            id,
            prev: None,
            event_type,
            // The key of a task may be longer than a producer's key may be.
            key: self.key().map(ObjectKey::from_trusted),
            sub_object: None,
            value: Json::from_trusted(self.fields().to_string()),
            context: Context::new(),
            tenant: Tenant::no_tenant(),
            cause: None,
        }
    }
}
