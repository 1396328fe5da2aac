//! The rooms of Pointsman.
//!
//! ```text
//!   emit ─▶ sequencer ─▶ store ─▶ scheduler ─▶ worker ─▶ handlers/…
//!                          │  ▲                  │
//!              observer ◀──┘  ├── clock          └─▶ back to the store: the end and its effects
//!                             ├── pull ◀─▶ workers elsewhere
//!                             ├── rescuer
//!                             └── pruner
//! ```
//!
//! `time` is the time that a node goes by, with the service that keeps it. `node` is what the rooms share, and `signals` what the store wakes them with. The worker has its own
//! helpers: `slots` are counted, each `attempt` is watched while it is `running` unless a rule `held` it back
//! just before, its lines go through the `logbook`, and `settle` says what is written of it; until then a `brief`
//! of the task is kept. A node that is a guest minds its `bound`. What people do to tasks is in `steer`, and to
//! many of them in `redrive`, with `retell` for those who watch. The observer's `tail` is the end of the journal
//! in memory, and its `followers` are those who wait for it to grow. What people do to chains and orders is in `orders`.
//!
//! Each room is one file and one task that can be killed at any instant: state lives in the store alone. Rooms
//! wake each other by signals; timers are only for what has a time.

mod attempt;
mod bound;
mod brief;
pub mod change;
mod clock;
pub mod engine;
mod followers;
pub mod handlers;
mod held;
mod logbook;
pub mod metrics;
mod node;
pub mod observer;
mod orders;
mod pruner;
mod pull;
mod redrive;
mod rescuer;
mod retell;
mod run_now;
pub mod runner;
mod running;
mod scheduler;
mod sequencer;
pub mod settings;
mod settle;
mod signals;
mod slots;
mod steer;
mod tail;
mod telling;
mod time;
mod worker;

pub use bound::Unfit;
pub use change::TaskChange;
pub use clock::Agenda;
pub use engine::{EmitError, Engine};
pub use observer::Observer;
pub use pull::{Leased, PullRequest};
pub use redrive::{PreparedRedrive, Redrive, RedriveRefused, RedriveRequest, RedriveState};
pub use run_now::RanNow;
pub use runner::{Delivery, HandlerSpec, Outcome, Runner};
pub use settings::{Bound, Rooms, Schedule, Settings, Setup};
pub use time::{Boot, Clocks, Reading, TimeSource, now};
