//! The common part of all stores: the store operations, implemented over the tables of a database.
//!
//! ```text
//!   callers ──jobs──▶ writer thread ──▶ begin … all waiting jobs … commit ──▶ results, signals
//!                        │ operations (Txn)
//!                        ▼
//!                     Tables: rows of one database; makes no decisions
//!   readers ◀─────── StoreReader: own connections, one transaction per read, never blocks the writer
//! ```
//!
//! It has no SQL and no connections, and makes no decision about tasks, orders and limits: `pointsman-core` does.
//!
//! A store is a [`BackendStore`]: it has a [`Writer`] over its [`tables::Tables`], and a [`StoreReader`].
//!
//! - `tables/`: operations that a database provides, a trait for each table; `row.rs` and `phase.rs`: its rows;
//!   `columns/`: the columns of each row; `store_reader.rs`: read operations; `views/`: conversion of rows into views,
//!   shared by all readers.
//! - `writer.rs`: the writer thread and its group commit; `writer_status.rs`: its statistics and outages;
//!   `writer_state.rs` and `recent_events.rs`: its cache of the tables; `read_set.rs`: the rows that a job will read.
//! - `append.rs`, `claim.rs`, `finish_attempts.rs`, `collection_runs.rs`, `schedules.rs`, `registry.rs`,
//!   `registrations.rs`, `replay.rs`, `prune.rs` and `prune_objects.rs`: write operations. `lifecycle.rs` applies
//!   lifecycle transitions, `lanes.rs` decides which of an object's tasks may run, `reconcile.rs` applies a changed
//!   registration to waiting tasks, `objects.rs` numbers the objects, and `idempotency.rs` records the answers to
//!   requests.
//! - Selection of the next tasks: `queues/` has the counts and placement of queues, `fair_queue.rs` the round robin of
//!   tenants and queues, `key_round_robin.rs` that of keys, `limiters.rs` the limits, and `selection.rs` selects.
//!   `wait_reasons.rs` collects the same facts for one task.
//! - `chains.rs`, `orders.rs` and `add_orders.rs`: chains and orders; `task_events.rs`: engine events about tasks.
//! - `caller_time_source.rs`, `invalidation.rs`, `notifier.rs`, `background_jobs.rs` and `set_aside_log.rs`: for stores that
//!   several nodes share: the time, cache invalidation, notification of peers, background futures, and a log.
//! - `sql.rs`: SQL of programs inside a unit of work; `expand_sql.rs`: codes and lists of
//!   columns that a store's SQL refers to by name.
//! - `backend_store.rs`: implements the store traits with the writer and the reader.
//! - `finding.rs`: findings of a store check; `store_copy/`: copies one store into another; `store_kind.rs`: the schemes
//!   of store URLs.

mod add_orders;
mod append;
mod backend_store;
pub mod background_jobs;
pub mod caller_time_source;
mod chains;
mod claim;
mod collection_runs;
pub mod columns;
pub mod error;
pub mod expand_sql;
mod fair_queue;
pub mod finding;
mod finish_attempts;
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
mod registrations;
mod registry;
mod replay;
pub mod row;
mod schedules;
mod selection;
mod set_aside_log;
pub mod sql;
pub mod store_copy;
pub mod store_kind;
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
pub use claim::PendingClaim;
pub use error::{Fault, TableResult};
pub use lanes::{LANES_PER_OBJECT, lane_number, lane_range_of_object, object_of_lane};
pub use read_set::add_emit_batches_to_read_set;
pub use set_aside_log::SetAsideEntryLog;
pub use store_reader::StoreReader;
pub use writer::{CommitHook, JobPosition, JobRequest, Txn, Writer};
pub use writer_state::WriterState;
pub use writer_status::{ReadOutageLog, WriterStatus};
