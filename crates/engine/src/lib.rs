//! The rooms of Pointsman.
//!
//! ```text
//!   emit ─▶ sequencer ─▶ store ─▶ scheduler ─▶ worker ─▶ handlers/…
//!                          │  ▲                  │
//!              observer ◀──┘  ├── clock          └─▶ back to the store: the end and its effects
//!                             ├── rescuer
//!                             └── pruner
//! ```
//!
//! `node` is what the rooms share, and `signals` what the store wakes them with. The worker has its own
//! helpers: `slots` are counted, each `attempt` is watched while it is `running` unless a rule `held` it back
//! just before, and its lines go through the `logbook`. The observer's `tail` is the end of the journal in memory.
//!
//! Each room is one file and one task that can be killed at any instant: state lives in the store alone. Rooms
//! wake each other by signals; timers are only for what has a time.

mod attempt;
pub mod change;
mod clock;
pub mod engine;
pub mod handlers;
mod held;
mod logbook;
pub mod metrics;
mod node;
pub mod observer;
mod pruner;
mod rescuer;
pub mod runner;
mod running;
mod scheduler;
mod sequencer;
pub mod settings;
mod signals;
mod slots;
mod tail;
mod time;
mod worker;

pub use change::TaskChange;
pub use engine::{EmitError, Engine};
pub use observer::Observer;
pub use runner::{Delivery, HandlerSpec, Outcome, Runner};
pub use settings::{Rooms, Schedule, Settings, Setup};
pub use time::now;
