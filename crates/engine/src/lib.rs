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
//! Each room is one file and one task that can be killed at any instant: state lives in the store alone. Rooms
//! wake each other by signals; timers are only for what has a time.

pub mod change;
pub mod engine;
pub mod handlers;
pub mod metrics;
pub mod observer;
pub mod runner;
pub mod settings;

pub use change::TaskChange;
pub use engine::{EmitError, Engine};
pub use observer::Observer;
pub use runner::{Delivery, HandlerSpec, Outcome, Runner};
pub use settings::{Rooms, Schedule, Settings, Setup};
