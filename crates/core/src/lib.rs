//! The domain of Pointsman: what an event, a task, a rule and a route are, how a task lives, and what a
//! store must be able to do.
//!
//! ```text
//!  names, json, time      the small words: validated strings, raw payloads, instants and durations
//!  event_id               53-bit ids that never go back
//!  event                  what is emitted, and what the journal holds
//!  route, handler         which handlers an event goes to, and how each of them is treated
//!  task                   one handler to be run once; its lifecycle is one exhaustive function
//!  rule, limit            pause and block; how many at a time and how often
//!  fire                   what becomes of a schedule's planned times
//!  chain, order           nodes that orders travel, and how an order goes on
//!  engine_event           what the journal says of the engine's own doings
//!  cron                   expressions, schedules and their instants
//!  journal                cursors, filters, retention
//!  wire                   an event to emit, as JSON has it
//!  store                  the traits, in domain verbs, that SQLite, PostgreSQL and Redis implement
//! ```
//!
//! What is deliberately absent: an async runtime, SQL, HTTP, and any clock. Whoever calls says what time it
//! is, so that every rule here can be tested to the microsecond.

pub mod chain;
pub mod cron;
pub mod engine_event;
pub mod event;
pub mod event_id;
pub mod fire;
pub mod handler;
pub mod journal;
pub mod json;
pub mod limit;
pub mod names;
pub mod nearest;
pub mod order;
pub mod outage;
pub mod route;
pub mod rule;
pub mod store;
pub mod task;
pub mod time;
pub mod wire;

pub use event::{Cause, Context, Event, NewEvent, Priority};
pub use event_id::{EventId, IdClock};
pub use handler::{HandlerDef, LaneFailure, Order, SourceDef};
pub use json::Json;
pub use limit::{Limits, Rate, Weight};
pub use names::{CollectionName, HandlerName, HandlingKey, ObjectKey, Pair, ScheduleName, Tenant};
pub use route::Routes;
pub use rule::{Place, Rule, RuleKind};
pub use task::{Status, TaskId, TaskSeq};
pub use time::Timestamp;
