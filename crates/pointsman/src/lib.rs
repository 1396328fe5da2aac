//! Pointsman inside a Rust program: a durable event bus, with handlers and a unit of work.
//!
//! Emit an event, and it reaches every handler that should act on it, in order, and again if it fails; kill
//! the program at any instant, and nothing that was acknowledged is lost. Schedules emit events at planned times, and
//! orders run chains of handlers, one step at a time. All state is in a [store](#stores): a SQLite file, a PostgreSQL
//! database or a Redis server.
//!
//! # Quick start
//!
//! ```
//! use pointsman::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Event, Serialize, Deserialize)]
//! #[event(type = "record.published", key = "record:{id}")]
//! struct RecordPublished {
//!     id: u64,
//!     title: String,
//! }
//!
//! async fn index(event: RecordPublished, ctx: Ctx) -> Result<(), HandlerError> {
//!     ctx.log(format!("indexing {}", event.title));
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let bus = Bus::builder("sqlite::memory:") // or `sqlite:app.db`
//!     .handler("index", index)
//!     .retries(5)
//!     .on::<RecordPublished>("index")
//!     .start()
//!     .await?;
//!
//! let emitted = bus.emit(RecordPublished { id: 1, title: "Hello".into() }).await?;
//! let tasks = bus.wait_for_tasks(&emitted).await?;
//! assert_eq!(tasks[0].lifecycle.state.status(), TaskStatus::Done);
//! bus.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Stores
//!
//! | URL | the store | the bus |
//! |---|---|---|
//! | `sqlite:app.db` | a file, and a few beside it with the same beginning of their names | is the only program that uses it |
//! | `sqlite::memory:` | the memory of the program | for tests |
//! | `postgres://user@host/database` | the schema `pointsman` of a database, PostgreSQL 15 or newer | shares it with other programs and servers |
//! | `redis://host:6379` | Redis 7.0 or newer: a server, a master behind Sentinel, or a cluster | likewise |
//!
//! Programs on one store are nodes of a cluster: they share the work, and take over the tasks of those that die.
//! Programs with different handlers have different names ([`BusBuilder::program_name`]).
//!
//! # Handlers
//!
//! A handler is an async function. Its arguments are extracted from the attempt ([`Extract`]): the event in its own
//! type, or [`RawEvent`] for a handler of several types; [`Ctx`], to emit and log with the end of the attempt;
//! [`Step`], for the step of an order; [`State`], for values that handlers share; [`RequestContext`] and [`TaskInfo`];
//! the [`Bus`] itself. The returned value decides how the attempt ends ([`handler_result`]): an error is retried,
//! [`HandlerError::permanent`] is not, [`Snooze`] runs again later.
//!
//! A handler may run more than once for the same event: its node may die before the end of the attempt is committed.
//! Handlers must therefore be idempotent; systems that can compare numbers can reject writes of an old attempt by
//! [`Ctx::fence`].
//!
//! A handler's `tracing` events become lines of its task's log, if [`TaskLogLayer`] is among the layers of the
//! program's subscriber.
//!
//! # Units of work
//!
//! A [`UnitOfWork`] commits the program's own rows and the events about them in one transaction:
//!
//! ```
//! # use pointsman::prelude::*;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Event, Serialize, Deserialize)]
//! # #[event(type = "record.published", key = "record:{id}")]
//! # struct RecordPublished { id: u64 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let bus = Bus::builder("sqlite::memory:").start().await?;
//! let mut uow = bus.unit_of_work();
//! uow.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, title TEXT)", []);
//! uow.execute("INSERT INTO records VALUES (?1, ?2)", [1.into(), "Hello".into()]);
//! uow.emit(RecordPublished { id: 1 })?;
//! uow.on_post_commit(|| println!("published"));
//! let committed = uow.commit().await?;
//! assert_eq!(committed.len(), 1);
//! # bus.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Schedules, orders, and people
//!
//! | to | use |
//! |---|---|
//! | emit an event at planned times | [`BusBuilder::schedule`], [`BusBuilder::schedule_spec`], [`Bus::run_schedule`], [`Bus::list_fires`] |
//! | run a chain of handlers, one step at a time | [`BusBuilder::chain`], [`BusBuilder::on_chain`], [`Bus::add_order`], [`Bus::suspend_order`], [`Bus::stop_chain`] |
//! | keep work from starting | [`Bus::pause`], [`Bus::resume`], [`Bus::set_rule`] |
//! | see and change tasks | [`Bus::list_tasks`], [`Bus::explain_waiting`], [`Bus::retry_task`], [`Bus::cancel_task`] |
//! | retry many failed tasks | [`Bus::start_redrive`] |
//! | read the journal | [`Bus::watch`], [`Bus::watch_after`] |
//! | receive events elsewhere, in order | [`gate`] |
//!
//! # What it lacks
//!
//! There is no server, no configuration file and no console: the binary `pointsman` has them, and may use the same
//! store. The library handles events with functions of the program and HTTP endpoints, not by commands.
//!
//! # Features
//!
//! | feature | | brings |
//! |---|---|---|
//! | `sqlite` | default | stores in a file, `sqlite:app.db`, or in memory; `SqlitePositions` of a [`gate`] |
//! | `postgres` | | stores in PostgreSQL, `postgres://…`, which several programs can share |
//! | `redis` | | stores in Redis, `redis://…`, which several programs can share |
//! | `http` | default | handlers that are HTTP endpoints: `BusBuilder::http_handler` |
//!
//! A program with `default-features = false, features = ["sqlite"]` compiles neither a database client nor an HTTP
//! client nor TLS. A bus on a store that was left out does not start, and the error names the feature.

#![warn(missing_docs)]

mod attempt_scope;
pub mod builder;
mod bus;
mod bus_store;
mod ctx;
mod emit;
pub mod event;
pub mod gate;
mod handler;
pub mod handler_result;
mod orders;
mod redrives;
mod request_context;
mod rules;
mod schedules;
mod shared_state;
mod step;
mod task_log;
mod tasks;
mod unit_of_work;
mod watch;

pub use builder::{BusBuilder, StartError};
pub use bus::Bus;
pub use ctx::{Ctx, CtxError, TaskInfo};
pub use emit::{EmitError, EmitOptions, EmittedEvent, InvalidEvent};
pub use event::{Event, RawEvent};
pub use handler::{Extract, Handler};
pub use handler_result::{HandlerError, Snooze};
pub use orders::OrderOperationError;
pub use redrives::NewRedrive;
pub use request_context::RequestContext;
pub use rules::{NewRule, PauseError};
pub use schedules::RunScheduleError;
pub use shared_state::{MissingState, State, StateMap};
pub use step::Step;
pub use task_log::TaskLogLayer;
pub use tasks::TaskOperationError;
pub use unit_of_work::{BoxError, CommitError, CommittedEvents, EventReceipt, Operation, Tx, UnitOfWork};
pub use watch::{JournalWatch, WatchError};

/// Handlers that are HTTP endpoints; see [`BusBuilder::http_handler`].
#[cfg(feature = "http")]
pub mod http {
    pub use pointsman_engine::handlers::http::{
        AllowedDestination, BadAllowedDestination, BadHttpTarget, BadSecret, HttpTarget, NetworkAccess,
        WebhookSecret,
    };
}

pub use pointsman_core::journal::{EventFilter, PathFilter};
pub use pointsman_core::order::{Order, OrderStatistics};
pub use pointsman_core::store::{
    AddedOrder, ChainView, FirePage, IdempotencyError, IdempotencyKey, NewOrder, OrderBatch,
    OrderBatchReceipt, OrderCommand, OrderCursor, OrderError, OrderPage, OrderView, StoreError, TaskFilter,
    TaskPage,
};
pub use pointsman_core::task::gates::{Gate as TaskGate, GateKind as TaskGateKind};
pub use pointsman_core::task::retry::{Backoff, RetryPolicy};
pub use pointsman_core::task::{ErrorReason, LogLevel, LogLine, Task, TaskCommandError};
pub use pointsman_core::{
    ErrorChain, EventId, HandlerName, Json, LaneFailurePolicy, LaneOrdering, NewEvent, ObjectKey, Rate, Rule,
    RuleKind, RuleScope, ScheduleName, TaskId, TaskSeq, TaskStatus, Tenant, Timestamp,
};
pub use pointsman_core::{chain, cron, fire};
pub use pointsman_derive::Event;
pub use pointsman_engine::{
    EmitError as EmitFailure, RedriveError, RedriveState, RedriveStatus, ScheduleRunResult, ScheduleSpec,
    ServiceFailure,
};
pub use pointsman_store::sql::{SqlError, SqlRow, SqlValue};
pub use pointsman_store::store_kind::{MissingStoreFeature, StoreKind};

/// The items that most programs use.
pub mod prelude {
    pub use crate::{
        BoxError, Bus, Ctx, EmitOptions, Event, HandlerError, Operation, RawEvent, RequestContext, Snooze,
        State, Step, TaskInfo, TaskStatus, Tx, UnitOfWork,
    };
}
