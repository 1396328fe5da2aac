//! The HTTP server of Pointsman and its configuration.
//!
//! ```text
//!  config               files, environment and flags, validated as a whole
//!  app_state            the state that all requests share
//!  server               store, engine, HTTP and reload, started and stopped together
//!  open_store           opens the store, and reads or creates the first token
//!  listen               the accept loop: connections, their limits and their end
//!  limits               shares of streams and of memory per token; failed authentications per address
//!  metrics              counters and gauges of the HTTP server
//!  http_router          all routes, and the middleware before every call
//!  auth                 tokens, roles, tenants
//!  events, event_stream, tasks, source_tasks, redrives, handlers, schedules, orders, chains, jobscheduler,
//!  pull_workers, nodes_and_audit, me, config_status, health, docs_page
//!                       one file or folder per resource
//!  console              the files of the console, and the response of `/`
//!  rules, audit         setting and lifting pauses and blocks; audit entries
//!  handler_lookup       whether a handler that a request names exists or existed
//!  idempotency          records responses under idempotency keys, and returns them to repeats
//!  problem              errors: their status and problem document
//!  request_body, media_type, request_query, path_segment, path_tail, percent_decoding, json_body
//!                       strict parsing of the parts of a request
//!  journal_reader, journal_paging, sse
//!                       reading the journal page by page, and streaming it
//!  openapi              the OpenAPI document, generated from the calls
//! ```
//!
//! Calls are parsed, checked and passed to the engine or the store, which decide about events and tasks. No request
//! gets 2xx before its change is durable.

pub mod auth;
pub mod config;
pub mod openapi;
pub mod server;

mod app_state;
mod audit;
mod chains;
mod config_status;
mod console;
mod docs_page;
mod event_stream;
mod events;
mod handler_lookup;
mod handlers;
mod health;
mod http_router;
mod idempotency;
mod jobscheduler;
mod journal_paging;
mod journal_reader;
mod json_body;
mod limits;
mod listen;
mod me;
mod media_type;
mod metrics;
mod nodes_and_audit;
mod open_store;
mod orders;
mod path_segment;
mod path_tail;
mod percent_decoding;
mod problem;
mod pull_workers;
mod redrives;
mod request_body;
mod request_query;
mod rules;
mod schedules;
mod source_tasks;
mod sse;
mod tasks;

pub use server::{ReloadCounts, Server, StartOrReloadError};
