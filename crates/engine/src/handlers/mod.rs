//! The kinds of handlers: functions of this process, HTTP endpoints and commands; and what they share.

mod clean_text;
mod collection_run_body;
pub mod command;
mod effects;
#[cfg(feature = "http-config")]
pub mod http;
pub mod in_process;
mod step_body;
