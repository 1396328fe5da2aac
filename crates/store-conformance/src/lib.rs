//! The conformance suite that every store passes.
//!
//! A behaviour is one async function that takes a [`Harness`] and panics if the store behaves differently. Behaviours
//! are grouped by topic; [`suite!`] creates a test for each, so that a store's test file is a few lines and every
//! behaviour is a test of its own.
//!
//! ```text
//!  fixture/           a store with a clock set by hand, one node, and methods to call it
//!  cluster/           several nodes on one store: concurrent calls, and behaviours run round robin over nodes
//!  dispatching_store  a store that forwards each call to one of several, for tests that choose it or run code before
//!  copy/              copies between stores: locations, a filled store, and the behaviours of copies
//!  attempt_ends …     the behaviours, one file per topic
//!  task_lifecycle     the core's table of states and commands, case by case
//!  random_walk/       a long random history, compared with a model after every step
//!  order_random_walk  a random history of orders, compared with their event stream
//! ```
//!
//! Assertions follow from the documentation of the store traits and from the core's own functions (`transition`,
//! `Routes::find_handlers_of_event_type`, `EventFilter::matches`, `LimiterAndBreakerState`), never from one store's
//! implementation. A store may choose the size of its pages, so the behaviours read page by page until they have
//! everything.
//!
//! No behaviour sleeps: the time is an argument of every call.

use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;

pub mod cluster;
pub mod copy;
pub mod fixture;

pub mod attempt_ends;
pub mod audit;
pub mod caused_events;
pub mod chain_changes;
pub mod chain_control;
pub mod circuit_breakers;
pub mod claims;
pub mod concurrency_limits;
pub mod engine_events;
pub mod fairness;
pub mod fire_ledger;
pub mod idempotency;
pub mod journal;
pub mod journal_reads;
pub mod lanes;
pub mod logs;
pub mod missing_tasks;
pub mod nodes;
pub mod notifications;
pub mod object_lanes;
pub mod object_retention;
pub mod order_commands;
pub mod order_creation;
pub mod order_ids;
pub mod order_lists;
pub mod order_random_walk;
pub mod order_steps;
pub mod order_tenants;
pub mod orders;
pub mod out_of_order_tasks;
pub mod per_key_concurrency;
pub mod pull_workers;
pub mod queue_counters;
pub mod random_walk;
pub mod rate_limits;
pub mod registrants;
pub mod replay;
pub mod rescue;
pub mod restart;
pub mod retention;
pub mod routing;
pub mod rules;
pub mod schedule_overlaps;
pub mod schedules;
pub mod source_queues;
pub mod sources;
pub mod step_retries;
pub mod sync_handlers;
pub mod task_events;
pub mod task_lifecycle;
pub mod tasks;
pub mod waiting_reasons;
pub mod weighted_round_robin;

mod dispatching_store;
mod order_suite;
mod suite;

pub use dispatching_store::DispatchingStore;

/// Opens the stores that the suite tests.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens an empty store that shares nothing with other stores.
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store>;

    /// Closes a store that [`Harness::open_empty`] or this method returned, and opens its data again.
    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store>;
}
