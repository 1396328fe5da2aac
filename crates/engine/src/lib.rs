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
//! Each room is one file and one task that can be killed at any instant: state lives in the store alone. Services
//! wake each other by signals; timers are only for what has a time.

mod attempt;
mod attempt_ending;
mod bounded_run;
mod claim_summary;
mod clock;
pub mod engine;
mod engine_events;
mod followers;
pub mod handlers;
mod journal_tail;
mod log_writer;
pub mod metrics;
mod node;
pub mod observer;
mod order_control;
mod pruner;
mod pull;
mod redrive;
mod rescuer;
mod retry_notifications;
pub mod runner;
mod running_attempts;
mod schedule_run;
mod scheduler;
mod sequencer;
pub mod settings;
mod slots;
mod start_gate;
pub mod task_change;
mod task_control;
mod time;
mod wake_signals;
mod worker;

pub use bounded_run::BoundedRunError;
pub use clock::DueQueue;
pub use engine::{EmitError, Engine};
pub use observer::Observer;
pub use pull::{LeasedTaskInfo, PullRequest};
pub use redrive::{PreparedRedrive, Redrive, RedriveRefused, RedriveRequest, RedriveState};
pub use runner::{AttemptOutcome, Delivery, HandlerSpec, Runner};
pub use schedule_run::ScheduleRunResult;
pub use settings::{BoundedRun, EnabledServices, ScheduleSpec, Settings, Setup};
pub use task_change::TaskChange;
pub use time::{ClockReading, MachineBoot, MachineClocks, TimeSource, now};
