//! The HTTP server of Pointsman and its configuration.
//!
//! ```text
//!  config               files, environment and flags, checked whole
//!  server               store, engine, HTTP and reload, started and stopped together
//!  opening              the store, opened, and the token that lies with it
//!  listen               the accept loop: connections, their limits and their end
//!  limits               shares of streams and of memory per token; failed authentications per address
//!  metrics              what the HTTP side counts
//!  router               what stands before every call
//!  auth                 tokens, roles, tenants
//!  events, stream, tasks, sync_tasks, redrives, handlers, schedules, orders, chains, jobscheduler, worker, nodes, me,
//!  configured, health, pages
//!                       a file or a folder a resource
//!  console              the files of the console, and what `/` answers
//!  rules, deeds         holding things, and who did what
//!  known                whether there is, or was, what a request names
//!  problem              the one policy on errors
//!  body, media, query, segment, below, percent, action
//!                       what a request is made of, read strictly
//!  walk, paging, sse    reading the journal page by page, and sending it as it grows
//!  openapi              the description, made from the calls themselves
//! ```
//!
//! Nothing here decides about events or tasks: calls are read, checked, handed to the engine or the store, and
//! answered. No request is answered with 2xx before what it asked for is durable.

pub mod auth;
pub mod config;
pub mod openapi;
pub mod server;

mod app;
mod audit;
mod body;
mod chains;
mod config_status;
mod console;
mod docs_page;
mod events;
mod handler_lookup;
mod handlers;
mod health;
mod idempotency;
mod jobscheduler;
mod journal_reader;
mod json_body;
mod limits;
mod listen;
mod me;
mod media;
mod metrics;
mod nodes;
mod open_store;
mod orders;
mod paging;
mod path_segment;
mod path_tail;
mod percent;
mod problem;
mod query;
mod redrives;
mod router;
mod rules;
mod schedules;
mod sse;
mod stream;
mod sync_tasks;
mod tasks;
mod worker;

pub use server::{ReloadCounts, Server, StartError};
