//! The command line: global options and the list of commands.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pointsman_api::client::{Client, DEFAULT_URL};
use pointsman_core::Timestamp;

use crate::failure::{CommandResult, Failure};
use crate::output::{escape_controls, print_to_stderr};
use crate::{
    audit, chains, completions, config, doctor, emit, events, handlers, man, move_store, nodes, objects,
    orders, rules, run, schedules, serve, tasks, token, watch, work,
};

/// A durable event bus and job scheduler in one binary
///
/// Stores events, delivers each one to its handlers in order, runs jobs on schedules and orders through chains, and
/// shows the current state.
#[derive(Debug, Parser)]
#[command(name = "pointsman", version, after_long_help = EXAMPLES_AND_EXIT_CODES_HELP, after_help = EXIT_CODES_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The help text as a macro: `concat!` accepts literals but no constants.
macro_rules! exit_codes_help {
    () => {
        "\
Exit codes:
  0    success
  1    the command failed
  2    invalid command line
  75   the server or its store is not available; try again later
  78   invalid configuration
  130  interrupted by Ctrl-C, such as `watch` and `tasks logs -f`"
    };
}

pub(crate) const EXIT_CODES_HELP: &str = exit_codes_help!();

const EXAMPLES_AND_EXIT_CODES_HELP: &str = concat!(
    "\
Examples:
  pointsman serve
      prints a token; then, in another terminal:
  export POINTSMAN_TOKEN=…
  pointsman watch &
  pointsman emit record.published --key record:1 --value '{\"title\":\"Hello\"}'

",
    exit_codes_help!()
);

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Serve(serve::ServeCommand),
    Emit(emit::EmitCommand),
    Watch(watch::WatchCommand),
    Events(events::EventsCommand),
    Tasks(Box<tasks::TasksCommand>),
    Run(run::RunCommand),
    Orders(Box<orders::OrdersCommand>),
    Chains(chains::ChainsCommand),
    Handlers(handlers::HandlersCommand),
    Pause(rules::PauseCommand),
    Resume(rules::ResumeCommand),
    Block(rules::BlockCommand),
    Unblock(rules::UnblockCommand),
    Objects(objects::ObjectsCommand),
    Schedules(schedules::SchedulesCommand),
    Work(work::WorkCommand),
    Nodes(nodes::NodesCommand),
    Audit(audit::AuditCommand),
    Config(config::ConfigCommand),
    Doctor(doctor::DoctorCommand),
    Token(token::TokenCommand),
    Move(move_store::MoveStoreCommand),
    Completions(completions::CompletionsCommand),
    Man(man::ManCommand),
}

/// Options of all commands.
///
/// Environment variables are read here and not by clap: its usage lines would show each variable that is set as a
/// required option.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct GlobalOptions {
    /// URL of the server [env: POINTSMAN_URL] [default: http://127.0.0.1:7646]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,

    /// Access token. Prefer the environment variable: other users of this machine can read command lines [env:
    /// POINTSMAN_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,

    /// File that contains the token, used without --token [env: POINTSMAN_TOKEN_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<OsString>,

    /// Output format
    #[arg(short, long = "output", global = true, value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,

    /// When to use colours; a NO_COLOR variable turns off `auto`
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal
    Auto,
    Always,
    Never,
}

/// Parses the command line. Prints the help, if requested, or a usage error, and then exits the process.
pub(crate) fn parse_command_line() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let has_controls =
            |argument: OsString| matches!(escape_controls(&argument.to_string_lossy()), Cow::Owned(_));
        // Clap prints arguments unescaped, between colour codes of its own.
        if error.use_stderr() && std::env::args_os().any(has_controls) {
            print_to_stderr(error.render().to_string().trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

impl GlobalOptions {
    /// Creates a client for the server and token of these options.
    pub(crate) fn new_client(&self) -> CommandResult<Client> {
        let url =
            self.url.clone().or_else(|| read_env_variable("POINTSMAN_URL")).filter(|url| !url.is_empty());
        Ok(Client::new(url.as_deref().unwrap_or(DEFAULT_URL), self.read_token()?.as_deref())?)
    }

    /// Whether --url is given on the command line.
    pub(crate) fn has_explicit_url(&self) -> bool {
        self.url.is_some()
    }

    fn read_token(&self) -> CommandResult<Option<String>> {
        let token = self.token.clone().or_else(|| read_env_variable("POINTSMAN_TOKEN"));
        if let Some(token) = token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
            return Ok(Some(token.into()));
        }
        let file = self.token_file.clone().or_else(|| std::env::var_os("POINTSMAN_TOKEN_FILE"));
        let Some(file) = file.as_deref().and_then(non_empty_path) else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read the token file {}: {e}", file.display())))?;
        Ok(Some(text.trim().into()))
    }
}

fn read_env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the path, or none if it is empty: scripts set a variable to an empty text instead of unsetting it.
pub(crate) fn non_empty_path(path: &OsStr) -> Option<&Path> {
    (!path.is_empty()).then_some(Path::new(path))
}

/// Parses RFC 3339, or `2026-01-31 12:00:00` in UTC as the tables print it, or a date.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let normalized = text.trim().replacen(' ', "T", 1);
    let candidates = [normalized.clone(), format!("{normalized}Z"), format!("{normalized}T00:00:00Z")];
    candidates.iter().find_map(|candidate| candidate.parse().ok()).ok_or_else(|| {
        format!(
            "{text:?} is not a time; write one like `2026-01-31T12:00:00Z`, `2026-01-31 12:00:00` (in UTC) or \
             `2026-01-31`"
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The command and all its subcommands, each with its full name.
    fn list_commands(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
        let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
        let subcommands =
            subcommands.flat_map(|sub| list_commands(sub, &format!("{name} {}", sub.get_name())));
        [(name.to_owned(), command.clone())].into_iter().chain(subcommands).collect()
    }

    #[test]
    fn every_command_has_examples_of_its_own() {
        for (name, command) in list_commands(&Cli::command(), "pointsman") {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Example").unwrap_or_default();
            assert!(examples.contains(&name), "`{name} --help` has no example of it:\n{help}");
            assert!(!command.is_hide_set(), "{name}");
        }
    }

    #[test]
    fn times_are_parsed_in_rfc_3339_as_the_tables_print_them_and_as_dates() {
        let noon = parse_time("2026-01-31T12:00:00Z").unwrap();
        for form in ["2026-01-31 12:00:00", "2026-01-31T12:00:00", "2026-01-31T13:00:00+01:00"] {
            assert_eq!(parse_time(form).unwrap(), noon, "{form}");
        }
        assert_eq!(parse_time("2026-01-31").unwrap(), parse_time("2026-01-31T00:00:00Z").unwrap());
        for form in ["yesterday", "", "12:00:00", "2026-02-30"] {
            assert!(parse_time(form).is_err(), "{form}");
        }
    }
}
