//! The engine of Pointsman: the services of one node.
//!
//! ```text
//!   emit ─▶ sequencer ─▶ store ─▶ scheduler ─▶ worker ─▶ handlers/…
//!                          │  ▲                  │
//!              observer ◀──┘  ├── clock          └─▶ back to the store: the end and its effects
//!                             ├── pull ◀─▶ pull workers
//!                             ├── rescuer
//!                             └── pruner
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `engine` | the services of a node and what callers may do with them |
//! | `supervisor` | starts, restarts and stops services |
//! | `node` | the state that all services share |
//! | `time` | the time source of the node, and the service that monitors the clock |
//! | `wake_signals` | notifications from the store that wake services |
//! | `slots` | the number of attempts that may run at a time |
//! | `attempt`, `running_attempts`, `start_gate` | running one attempt, stopping it, and not starting it if it was paused |
//! | `unstarted_claim` | claimed tasks, which are started or released |
//! | `attempt_ending`, `claimed_task_summary` | the end of an attempt as it is stored, and the part of its task needed for that |
//! | `log_writer` | writes the log lines of attempts to the store |
//! | `bounded_run` | runs that end after a number of attempts |
//! | `task_control`, `order_control`, `redrive`, `schedule_run` | operations on tasks, rules, chains, orders and schedules |
//! | `task_change`, `retry_notifications`, `node_state_events` | notifications to watchers, and engine events about the state of the node |
//! | `observer`, `journal_tail`, `followers` | reading the journal, its newest events in memory, and readers that wait for more |
//!
//! Each service is one module and one spawned future that can be killed at any instant: all state is in the store. The
//! supervisor restarts a service that panics. Services wake each other by signals; timers are used only for things that
//! have a due time.
//!
//! It has no SQL, no HTTP server and no configuration files: a store implements the traits of `pointsman-core`, and
//! callers pass the handlers.

#![warn(missing_docs)]

mod attempt;
mod attempt_ending;
mod bounded_run;
mod claimed_task_summary;
mod clock;
pub mod engine;
mod followers;
pub mod handlers;
mod journal_tail;
mod log_writer;
pub mod metrics;
mod node;
mod node_state_events;
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
mod supervisor;
pub mod task_change;
mod task_control;
mod time;
mod unstarted_claim;
mod wake_signals;
mod worker;

pub use bounded_run::BoundedRunError;
pub use clock::DueQueue;
pub use engine::{EmitError, Engine};
pub use observer::Observer;
pub use pull::{LeasedTaskInfo, PullRequest};
pub use redrive::{PreparedRedrive, RedriveError, RedriveRequest, RedriveState, RedriveStatus};
pub use runner::{Delivery, HandlerOutcome, HandlerSpec, Runner};
pub use schedule_run::ScheduleRunResult;
pub use settings::{BoundedRun, EnabledServices, ScheduleSpec, Settings, Setup};
pub use supervisor::ServiceFailure;
pub use task_change::TaskChange;
pub use time::{ClockReading, MachineBoot, MachineClocks, TimeSource, machine_clock_now};
