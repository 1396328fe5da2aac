//! What Pointsman and its clients say to each other over HTTP.
//!
//! Answers that carry events keep the camelCase of the event stream, answers about tasks the snake_case of
//! task JSON. Every list is a snapshot: its `eventId` is the newest id when it was read, so that reading the
//! journal on after it misses nothing.

pub mod client;
pub mod event;
pub mod handler;
pub mod problem;
pub mod task;

pub use event::{CauseBody, Emitted, EmittedEvent, EventDetail, EventSeq, EventSnapshot, ObjectDetail};
pub use handler::{
    Adopted, Counts, HandlerBody, HandlerDetail, HandlerList, Health, HoldBody, QueueBody, RouteBody,
    RuleBody,
};
pub use problem::Problem;
pub use task::{AttemptBody, LogBody, LogList, TaskBody, TaskChangeBody, TaskDetail, TaskList};
