//! What Pointsman and its clients say to each other over HTTP.
//!
//! Answers that carry events keep the camelCase of the event stream, answers about tasks the snake_case of
//! task JSON. Every list is a snapshot: its `eventId` is the newest id when it was read, so that reading the
//! journal on after it misses nothing.

pub mod chain;
pub mod client;
pub mod config;
pub mod event;
pub mod handler;
pub mod node;
pub mod order;
pub mod problem;
pub mod redrive;
pub mod rule;
pub mod schedule;
pub mod snapshot;
pub mod source;
pub mod task;
pub mod why;
pub mod worker;

pub use chain::{
    ChainBody, ChainDetail, ChainList, ChainNodeBody, ChainStateBody, NodeActionBody, SetbackBody,
    StrandedBody,
};
pub use config::{ConfigBody, FaultBody, ReloadBody};
pub use event::{
    CauseBody, CausedBody, Emitted, EmittedEvent, EventDetail, EventSeq, LaneBody, ObjectDetail,
};
pub use handler::{
    AdoptBody, Adopted, CollectionBody, Counts, HandlerBody, HandlerDetail, HandlerList, Health, LimitsBody,
    QueueBody, RouteBody, SourceBody, StoreHealth,
};
pub use node::{AuditList, ClockBody, ClockStepBody, DeedBody, MeBody, NodeBody, NodeList};
pub use order::{
    AddedOrder, AddedOrders, ChangeOrderBody, FailedBody, NewOrderBody, OrderBody, OrderList, OrderTaskBody,
};
pub use problem::Problem;
pub use redrive::{RedriveBody, RedriveCount, RedriveFilter, RedriveJob, RedriveList};
pub use rule::{HoldBody, RuleBody};
pub use schedule::{FireBody, FireList, MakesBody, RanNow, ScheduleBody, ScheduleDetail, ScheduleList};
pub use snapshot::EventSnapshot;
pub use source::{SourceLogs, SourceRun, SourceTasks};
pub use task::{AttemptBody, LogBody, LogList, RunningBody, TaskBody, TaskChangeBody, TaskDetail, TaskList};
pub use why::{GateBody, WhyBody};
pub use worker::StepBody;
