//! The domain of Pointsman: events, tasks, rules, routes, chains and schedules, the lifecycle of a task, and the store
//! traits.
//!
//! ```text
//!  names, json, time      basic types: validated strings, raw payloads, instants and durations
//!  event_id               53-bit ids that strictly increase
//!  event                  events to emit, and events in the journal
//!  route, handler         which handlers an event goes to, and the definition of each
//!  task                   one run of a handler; its lifecycle is one exhaustive function
//!  rule, limit            pause and block; concurrency and rate limits, circuit breaker
//!  weight                 shares of tenants and handlers in the weighted round robin
//!  fire                   how a schedule's planned times are handled
//!  chain, order           chains of nodes, and the orders that run through them
//!  engine_event           the engine's own events in the journal
//!  cron                   expressions, schedules and their instants
//!  journal                ranges of event ids, event filters, retention
//!  event_json_parser      parses the JSON of an event to emit
//!  error_chain            displays an error with its causes
//!  suggestion, outage     suggestions for mistyped names; throttling of log lines about an outage
//!  store                  the traits, in domain verbs, that SQLite, PostgreSQL and Redis implement
//! ```
//!
//! It has no async runtime, no SQL, no HTTP and no clock: callers pass the time, so that everything here can be tested
//! to the microsecond.
//!
//! Enums are not `#[non_exhaustive]`: when one grows, each match on it (the HTTP status of an error, say) has to decide.

#![warn(missing_docs)]

pub mod chain;
pub mod cron;
pub mod engine_event;
mod error_chain;
pub mod event;
pub mod event_id;
pub mod event_json_parser;
pub mod fire;
pub mod handler;
pub mod journal;
pub mod json;
pub mod limit;
pub mod names;
pub mod order;
pub mod outage;
pub mod route;
pub mod rule;
pub mod store;
pub mod suggestion;
pub mod task;
pub mod time;
pub mod weight;

pub use error_chain::ErrorChain;
pub use event::{Cause, Context, Event, NewEvent, Priority};
pub use event_id::{EventId, EventIdGenerator};
pub use handler::{HandlerDef, LaneFailurePolicy, LaneOrdering, SourceDef};
pub use json::Json;
pub use limit::{Limits, Rate};
pub use names::{CollectionName, EventType, HandlerName, ObjectKey, ScheduleName, SourceCollection, Tenant};
pub use route::Routes;
pub use rule::{Rule, RuleKind, RuleScope};
pub use task::{TaskId, TaskSeq, TaskStatus};
pub use time::Timestamp;
pub use weight::Weight;
