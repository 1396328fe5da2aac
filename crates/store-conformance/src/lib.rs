//! The one suite that every store passes.
//!
//! A behaviour is one async function that takes a [`Harness`] and panics if the store behaves otherwise. They
//! are filed by topic; [`suite!`] makes a test of each, so that a store's test file is a few lines and every
//! behaviour shows up by its name.
//!
//! ```text
//!  company/    several nodes on one store: what they do at the same time, and behaviours of which each verb goes to the next
//!  moving/     moves from store to store: where one lies, one with something of everything, and what holds
//!  fixture/      a store with a clock set by hand, and verbs that read like a story
//!  audit … why            the behaviours, a file a topic
//!  lifecycle   the state × command table of the core, cell by cell
//!  walk/       a long random history, compared with a model after every step
//!  order_walk  another, of orders, compared with what an observer of the stream knows
//! ```
//!
//! What is asserted follows from the documents of the store traits and from the core's own functions
//! (`transition`, `Routes::resolve`, `Filter::matches`, `Pace`), never from how one store happens to do it. Where a
//! store is free, as in how much one page holds, the behaviours go on reading until all is there.
//!
//! No behaviour sleeps: the time is an argument of every verb.

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
pub mod late_tasks;
pub mod lifecycle;
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
pub mod tasks;
pub mod waiting_reasons;
pub mod weighted_round_robin;

mod order_suite;
mod suite;

/// How the suite gets at a store.
#[async_trait]
pub trait Harness: Send + Sync {
    /// An empty store, apart from all others.
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store>;

    /// Ends a store that [`Harness::open_empty`] or this gave out, and opens again what it has left behind.
    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store>;
}
