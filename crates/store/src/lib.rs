//! What all stores have in common: the verbs, over tables that a database keeps.
//!
//! ```text
//!   callers ──jobs──▶ writer thread ──▶ begin … all jobs that are waiting … commit ──▶ answers, signals
//!                        │ verbs (Txn)
//!                        ▼
//!                     Tables: rows of one database, which decides nothing
//!   readers ◀─────── Reads: their own connections, each read in one transaction, never in the writer's way
//! ```
//!
//! A store is a [`Keeper`]: it has a [`Writer`] over its [`tables::Tables`], and its [`Reads`].
//!
//! - `tables.rs` is what a database must be able to do, `row.rs` the rows, `reads.rs` the verbs that read, and `views/`
//!   what readers share.
//! - `writer.rs` is the thread and its group commit, `work.rs` what it has done and whether it can, `state.rs` the memory beside the tables, `foresight.rs` what a group
//!   of jobs will look at.
//! - `append.rs`, `claim.rs`, `finish.rs`, `runs.rs`, `schedules.rs`, `registry.rs`, `registrants.rs`, `replay.rs`, `prune.rs` and `prune_objects.rs` are the
//!   verbs that write; `life.rs` carries out what the core's lifecycle decides, `lanes.rs` who of an object's tasks may
//!   run, `reform.rs` what a changed registration means for those that wait.
//! - What runs next: `queues/` counts and keeps them, `turns.rs` knows whose turn it is, `bands.rs` which key's,
//!   `gauges.rs` what the limits say, and `deal.rs` deals. `why.rs` gathers the same facts for one task.
//! - `chains.rs` and `orders.rs` carry out what the core decides of orders, `observe.rs` says what the journal tells of
//!   tasks.
//! - `clock.rs`, `commits.rs`, `news.rs` and `beside.rs` are for stores that several nodes share: what time it is, what
//!   commits tell the next writer, how nodes wake each other, and what runs beside the writer.
//! - `sql.rs` is what programs do with tables of their own in a unit of work.
//! - `store.rs` hands each verb to the writer or to a reader.
//! - `finding.rs` is what an examination of a store finds, `transfer/` moves all that one store holds to another.

mod add_orders;
mod append;
mod bands;
pub mod beside;
mod chains;
mod claim;
pub mod clock;
pub mod commits;
mod deal;
pub mod error;
pub mod finding;
mod finish;
mod foresight;
mod gauges;
mod idempotency;
mod lanes;
mod life;
pub mod news;
mod objects;
mod observe;
mod orders;
mod phase;
mod prune;
mod prune_objects;
mod queues;
mod reads;
mod recent;
mod reform;
mod registrants;
mod registry;
mod replay;
pub mod row;
mod runs;
mod schedules;
mod set_aside;
pub mod sql;
mod state;
mod store;
pub mod tables;
pub mod transfer;
mod turns;
pub mod views;
mod why;
mod work;
mod writer;

pub use chains::Chains;
pub use claim::Room;
pub use error::{Fault, Result};
pub use foresight::foresee_emissions;
pub use lanes::{LANES, lane_number, lanes_of, object_of_lane};
pub use reads::Reads;
pub use set_aside::SetAsideLog;
pub use state::State;
pub use store::Keeper;
pub use work::{Readable, Work};
pub use writer::{Asked, Overhears, Place, Txn, Writer};
