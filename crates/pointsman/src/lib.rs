//! Pointsman inside a Rust program: a durable event bus, with handlers and a unit of work.
//!
//! Emit an event, and it reaches every handler that should act on it, in order, and again if it fails; kill
//! the program at any instant, and nothing that was acknowledged is lost. All state lies in one SQLite file.
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
//! let tasks = bus.ended(&emitted).await?;
//! assert_eq!(tasks[0].life.state.status(), Status::Done);
//! bus.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Handlers
//!
//! A handler is an async function. Its arguments say what it needs ([`Extract`]): the event in its own type,
//! or [`Raw`] for a handler of several types; [`Ctx`], to emit and log with the end of the attempt;
//! [`Step`], where an order comes to it; [`State`], for what handlers share; [`RequestContext`] and [`TaskInfo`]; the [`Bus`] itself. What it
//! returns says how the attempt went ([`answer`]): an error is tried again, [`HandlerError::permanent`] is
//! not, [`Snooze`] comes back later.
//!
//! An attempt may run more than once for the same event: its node may die before the end is written. Handlers
//! are therefore made to bear a repeat, with [`Ctx::fence`] for those who write to systems that can compare it.
//!
//! What a handler logs through `tracing` becomes lines of its task's log, if [`TaskLog`] is among the layers of
//! the program's subscriber.
//!
//! # Units of work
//!
//! A [`UnitOfWork`] commits the program's own rows and the events that tell of them in one transaction:
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

pub mod answer;
pub mod builder;
mod bus;
mod ctx;
mod emit;
pub mod event;
pub mod gate;
mod handler;
mod opened;
mod request;
mod scope;
mod state;
mod step;
mod task_log;
mod unit_of_work;
mod watch;

pub use answer::{HandlerError, Snooze};
pub use builder::{Builder, StartError};
pub use bus::Bus;
pub use ctx::{Ctx, CtxError, TaskInfo};
pub use emit::{BadEvent, Emit, EmitError, Emitted};
pub use event::{Event, Raw};
pub use handler::{Extract, Handler};
pub use request::RequestContext;
pub use state::{MissingState, State, States};
pub use step::Step;
pub use task_log::TaskLog;
pub use unit_of_work::{BoxError, CommitError, Committed, Operation, Receipt, Tx, UnitOfWork};
pub use watch::{Watch, WatchError};

pub use pointsman_core::chain;
pub use pointsman_core::journal::Filter;
pub use pointsman_core::store::{NewOrder, OrderRefused, OrderView, StoreError};
pub use pointsman_core::task::retry::{Backoff, RetryPolicy};
pub use pointsman_core::task::{Level, LogLine, Task};
pub use pointsman_core::{EventId, Json, LaneFailure, Order, Status, TaskId};
pub use pointsman_derive::Event;
pub use pointsman_store::sql::{SqlError, SqlRow, Value};

/// What most programs use.
pub mod prelude {
    pub use crate::{
        BoxError, Bus, Ctx, Emit, Event, HandlerError, Operation, Raw, RequestContext, Snooze, State, Status,
        Step, TaskInfo, Tx, UnitOfWork,
    };
}
