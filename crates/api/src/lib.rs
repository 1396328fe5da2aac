//! The JSON bodies of Pointsman's HTTP API, and a typed client.
//!
//! Responses with events keep the camelCase of the event stream, responses about tasks the snake_case of
//! task JSON. Every list is a snapshot: its `eventId` is the newest id when it was read, so that reading the
//! journal after that id misses nothing.
//!
//! It has no engine and no store: a program that only calls a server compiles neither.

#![warn(missing_docs)]

pub mod audit;
pub mod chain;
pub mod client;
pub mod config;
pub mod event;
pub mod event_body;
pub mod handler;
pub mod health;
pub mod node;
pub mod order;
pub mod problem;
pub mod redrive;
pub mod rule;
pub mod schedule;
pub mod source_tasks;
pub mod task;
pub mod task_why;
pub mod token;
pub mod worker;

pub use audit::{AuditEntryBody, AuditList};
pub use chain::{
    ChainBody, ChainDetail, ChainList, ChainNodeBody, RemovedNodeOrderCountBody, SetChainNodeActionBody,
    SetChainStateBody, SetbackPolicyBody,
};
pub use config::{ConfigBody, ConfigFaultBody, ConfigReloadBody};
pub use event::{
    CausedEventBody, EmitResponse, EmittedEventBody, EventCauseBody, EventDetail, EventSeq, ObjectDetail,
    ObjectLaneBody,
};
pub use event_body::EventBody;
pub use handler::{
    AdoptMissingTasksBody, AdoptMissingTasksResponse, CollectionBody, HandlerBody, HandlerDetail,
    HandlerList, LimitsBody, QueueBody, RouteBody, SourceBody, TaskCounts,
};
pub use health::{HealthBody, StoreHealthBody};
pub use node::{ClockStepBody, NodeBody, NodeClockBody, NodeList};
pub use order::{
    AddOrdersResponse, AddedOrderBody, ChangeOrderBody, FailedStepBody, NewOrderBody, OrderBody, OrderList,
    OrderTaskBody,
};
pub use problem::ProblemDetails;
pub use redrive::{RedriveBody, RedriveDryRunResponse, RedriveFilter, RedriveJob, RedriveList};
pub use rule::{RuleBody, RuleRequestBody};
pub use schedule::{
    FireBody, FireList, RunScheduleResponse, ScheduleActionBody, ScheduleBody, ScheduleDetail, ScheduleList,
};
pub use source_tasks::{CollectionRunResponse, SourceTaskList, SourceTaskLogs};
pub use task::{
    EndedAttemptBody, LogLineBody, LogList, RunningAttemptBody, TaskBody, TaskChangeBody, TaskDetail,
    TaskList,
};
pub use task_why::{TaskGateBody, TaskWhyBody};
pub use token::CurrentTokenBody;
pub use worker::OrderStepBody;
