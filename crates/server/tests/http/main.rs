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
mod protocol;
mod reload;
mod stream;
mod tasks;
