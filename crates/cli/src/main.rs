//! The one binary: a file a command.
//!
//! ```text
//!  args        what all commands share
//!  failure     what a person is told when something is wrong, and the exit codes
//!  output      tables, colours, JSON
//!  process     what the commands share that run a node
//!  protect     keeps other processes of the user out of this one
//!  serve work  run a node: for good, or for a while
//!  emit watch events tasks run orders chains handlers rules schedules objects nodes
//!              talk to a node over HTTP
//!  happening   an event as `watch` and `events` tell it
//!  config doctor token transfer bench completions man
//!              need no node, nor does `schedules next`
//! ```

mod args;
mod bench;
mod chains;
mod completions;
mod config;
mod doctor;
mod emit;
mod events;
mod failure;
mod handlers;
mod happening;
mod man;
mod nodes;
mod objects;
mod orders;
mod output;
mod process;
mod protect;
mod rules;
mod run;
mod schedules;
mod serve;
mod tasks;
mod token;
mod transfer;
mod watch;
mod work;

use std::future::Future;
use std::process::ExitCode;

use args::{Cli, Command};
use failure::{Failure, Result};
use output::Paint;

fn main() -> ExitCode {
    let protected = protect::refuse_inspection();
    let cli = args::read();
    let paint = Paint::of_stderr(cli.global.color);
    match protected.and_then(|()| run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(paint),
    }
}

fn run(cli: Cli) -> Result {
    let global = &cli.global;
    match cli.command {
        Command::Serve(command) => command.run(global),
        Command::Emit(command) => wait(command.run(global)),
        Command::Watch(command) => wait(command.run(global)),
        Command::Events(command) => wait(command.run(global)),
        Command::Tasks(command) => wait(command.run(global)),
        Command::Run(command) => wait(command.run(global)),
        Command::Orders(command) => wait(command.run(global)),
        Command::Chains(command) => wait(command.run(global)),
        Command::Handlers(command) => wait(command.run(global)),
        Command::Pause(command) => wait(command.run(global)),
        Command::Resume(command) => wait(command.run(global)),
        Command::Block(command) => wait(command.run(global)),
        Command::Unblock(command) => wait(command.run(global)),
        Command::Objects(command) => wait(command.run(global)),
        Command::Schedules(command) => wait(command.run(global)),
        Command::Nodes(command) => wait(command.run(global)),
        Command::Audit(command) => wait(command.run(global)),
        Command::Work(command) => command.run(global),
        Command::Config(command) => command.run(global),
        Command::Doctor(command) => wait(command.run(global)),
        Command::Token(command) => command.run(global),
        Command::Move(command) => command.run(global),
        Command::Bench(command) => command.run(global),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    }
}

/// Runs a command that talks to a server. One thread is plenty for that.
fn wait(work: impl Future<Output = Result>) -> Result {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::from)?.block_on(work)
}
