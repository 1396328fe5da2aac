//! The kinds of handlers.

pub mod command;
mod effects;
pub mod http;
pub mod in_process;
mod run_body;
mod step_body;
mod text;
