//! The `pointsman` binary: one module per command.
//!
//! ```text
//!  args        global options and the list of commands
//!  failure     errors for the user, hints and exit codes
//!  output      tables, colours, JSON
//!  node_process        logging, signals and start errors of `serve` and `work`
//!  process_protection  denies other processes of the user access to this one
//!  root_warning        warns of command handlers that run as root
//!  serve work  run a node: until stopped, or for a limited time
//!  emit watch events tasks run orders chains handlers rules schedules objects nodes audit
//!              talk to a server over HTTP
//!  stream_line one event as `watch` and `events show` print it
//!  config doctor token move_store completions man
//!              need no server, nor does `schedules next`
//! ```

mod args;
mod audit;
mod chains;
mod completions;
mod config;
mod doctor;
mod emit;
mod events;
mod failure;
mod handlers;
mod man;
mod move_store;
mod node_process;
mod nodes;
mod objects;
mod orders;
mod output;
mod process_protection;
mod root_warning;
mod rules;
mod run;
mod schedules;
mod serve;
mod stream_line;
mod tasks;
mod token;
mod watch;
mod work;

use std::future::Future;
use std::process::ExitCode;

use args::{Cli, CliCommand};
use failure::{CommandResult, Failure};
use output::Paint;

fn main() -> ExitCode {
    let protected = process_protection::protect_process();
    let cli = args::parse_command_line();
    let paint = Paint::for_stderr(cli.global.color);
    match protected.and_then(|()| run_command(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print_and_get_exit_code(paint),
    }
}

fn run_command(cli: Cli) -> CommandResult {
    let global = &cli.global;
    match cli.command {
        CliCommand::Serve(command) => command.run(global),
        CliCommand::Emit(command) => block_on(command.run(global)),
        CliCommand::Watch(command) => block_on(command.run(global)),
        CliCommand::Events(command) => block_on(command.run(global)),
        CliCommand::Tasks(command) => block_on(command.run(global)),
        CliCommand::Run(command) => block_on(command.run(global)),
        CliCommand::Orders(command) => block_on(command.run(global)),
        CliCommand::Chains(command) => block_on(command.run(global)),
        CliCommand::Handlers(command) => block_on(command.run(global)),
        CliCommand::Pause(command) => block_on(command.run(global)),
        CliCommand::Resume(command) => block_on(command.run(global)),
        CliCommand::Block(command) => block_on(command.run(global)),
        CliCommand::Unblock(command) => block_on(command.run(global)),
        CliCommand::Objects(command) => block_on(command.run(global)),
        CliCommand::Schedules(command) => block_on(command.run(global)),
        CliCommand::Nodes(command) => block_on(command.run(global)),
        CliCommand::Audit(command) => block_on(command.run(global)),
        CliCommand::Work(command) => command.run(global),
        CliCommand::Config(command) => command.run(global),
        CliCommand::Doctor(command) => block_on(command.run(global)),
        CliCommand::Token(command) => command.run(global),
        CliCommand::Move(command) => command.run(global),
        CliCommand::Completions(command) => command.run(),
        CliCommand::Man(command) => command.run(),
    }
}

/// Runs the future of a command that talks to a server, on one thread.
fn block_on(future: impl Future<Output = CommandResult>) -> CommandResult {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)?
        .block_on(future)
}
