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
//! A store is a [`BackendStore`]: it has a [`Writer`] over its [`tables::Tables`], and its [`StoreReader`].
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
mod backend_store;
pub mod background_jobs;
pub mod caller_time;
mod chains;
mod claim;
pub mod error;
mod fair_queue;
pub mod finding;
mod finish;
mod idempotency;
pub mod invalidation;
mod key_round_robin;
mod lanes;
mod lifecycle;
mod limiters;
pub mod notifier;
mod objects;
mod orders;
mod phase;
mod prune;
mod prune_objects;
mod queues;
mod read_set;
mod recent_events;
mod reconcile;
mod registrants;
mod registry;
mod replay;
pub mod row;
mod schedules;
mod selection;
mod set_aside_log;
mod source_runs;
pub mod sql;
pub mod store_copy;
mod store_reader;
pub mod tables;
mod task_events;
pub mod views;
mod wait_reasons;
mod writer;
mod writer_state;
mod writer_status;

pub use backend_store::BackendStore;
pub use chains::ChainRegistry;
pub use claim::ClaimSlots;
pub use error::{Fault, Result};
pub use lanes::{LANES_PER_OBJECT, lane_number, lane_range_of_object, object_of_lane};
pub use read_set::add_emissions_to_read_set;
pub use set_aside_log::SetAsideLog;
pub use store_reader::StoreReader;
pub use writer::{CommitHook, JobPosition, JobRequest, Txn, Writer};
pub use writer_state::WriterState;
pub use writer_status::{ReadOutageLog, WriterStatus};
