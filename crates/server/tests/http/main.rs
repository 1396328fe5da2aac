//! The HTTP surface against a real server with the real store.

mod auth;
mod client;
mod cloudevents;
mod description;
mod emit;
mod handlers;
mod hostile;
mod house;
mod journal;
mod nodes;
mod protocol;
mod redrive;
mod reload;
mod schedules;
mod stream;
mod sync_tasks;
mod tasks;
mod typed;
mod why;
mod worker;
