//! The command line as a whole: what all commands share, and which commands there are.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pointsman_api::client::{Client, DEFAULT_URL};
use pointsman_core::Timestamp;

use crate::failure::{Failure, Result};
use crate::output::{clean, say};
use crate::{
    bench, chains, completions, config, doctor, emit, events, handlers, man, nodes, objects, orders, rules,
    run, schedules, serve, tasks, token, transfer, watch, work,
};

/// A durable event bus and job scheduler in one binary
///
/// Emit an event, and it reaches every handler that should act on it, in order, when its time has come; and
/// anyone allowed to can watch it happen.
#[derive(Debug, Parser)]
#[command(name = "pointsman", version, after_long_help = AFTER_HELP, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A literal, so that it can be a part of others.
macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0    it worked
  1    it failed while running
  2    the command line is wrong
  75   the server or its store is not available; try again later
  78   the configuration is wrong
  130  ended by Ctrl-C, as `watch` and `tasks logs -f` are"
    };
}

pub(crate) const EXIT_CODES: &str = exit_codes!();

const AFTER_HELP: &str = concat!(
    "\
Examples:
  pointsman serve
      prints a token; then, in another terminal:
  export POINTSMAN_TOKEN=…
  pointsman watch &
  pointsman emit record.published --key record:1 --value '{\"title\":\"Hello\"}'

",
    exit_codes!()
);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Emit(emit::Emit),
    Watch(watch::Watch),
    Events(events::Events),
    Tasks(Box<tasks::Tasks>),
    Run(run::Run),
    Orders(Box<orders::Orders>),
    Chains(chains::Chains),
    Handlers(handlers::Handlers),
    Pause(rules::Pause),
    Resume(rules::Resume),
    Block(rules::Block),
    Unblock(rules::Unblock),
    Objects(objects::Objects),
    Schedules(schedules::Schedules),
    Work(work::Work),
    Nodes(nodes::Nodes),
    Audit(nodes::Audit),
    Config(config::Config),
    Doctor(doctor::Doctor),
    Token(token::Token),
    Move(transfer::Move),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
}

/// What all commands take.
///
/// The environment is read here and not by clap, whose usage lines would show each variable that is set as an
/// option that must be given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Global {
    /// Where the server is [env: POINTSMAN_URL] [default: http://127.0.0.1:7646]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,

    /// Who you are. Better given in the environment, where other users of the machine cannot read it [env:
    /// POINTSMAN_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,

    /// A file that holds the token, if --token is not given [env: POINTSMAN_TOKEN_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<OsString>,

    /// Tables for people, JSON for programs
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub(crate) output: Format,

    /// When to use colours; NO_COLOR in the environment means never
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    Always,
    Never,
}

/// The command line. If it is wrong, says so and ends the process; help ends it, too.
pub(crate) fn read() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let steers = |word: OsString| matches!(clean(&word.to_string_lossy()), Cow::Owned(_));
        // Clap repeats what it was given as it came, among colours of its own.
        if error.use_stderr() && std::env::args_os().any(steers) {
            say(error.render().to_string().trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

impl Global {
    /// A client for the server that the options name.
    pub(crate) fn client(&self) -> Result<Client> {
        let url = self.url.clone().or_else(|| variable("POINTSMAN_URL")).filter(|url| !url.is_empty());
        Ok(Client::new(url.as_deref().unwrap_or(DEFAULT_URL), self.token()?.as_deref())?)
    }

    /// Whether the command line itself says where the server is.
    pub(crate) fn names_server(&self) -> bool {
        self.url.is_some()
    }

    fn token(&self) -> Result<Option<String>> {
        let token = self.token.clone().or_else(|| variable("POINTSMAN_TOKEN"));
        if let Some(token) = token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
            return Ok(Some(token.into()));
        }
        let file = self.token_file.clone().or_else(|| std::env::var_os("POINTSMAN_TOKEN_FILE"));
        let Some(file) = file.as_deref().and_then(named) else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read the token file {}: {e}", file.display())))?;
        Ok(Some(text.trim().into()))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A path that was given. An empty variable is how a script says that there is none.
pub(crate) fn named(path: &OsStr) -> Option<&Path> {
    (!path.is_empty()).then_some(Path::new(path))
}

/// A time as people write it and as the tables print it: RFC 3339, or in UTC without saying so, or a day.
pub(crate) fn moment(text: &str) -> std::result::Result<Timestamp, String> {
    let written = text.trim().replacen(' ', "T", 1);
    let forms = [written.clone(), format!("{written}Z"), format!("{written}T00:00:00Z")];
    forms.iter().find_map(|form| form.parse().ok()).ok_or_else(|| {
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

    /// Every command, with what it is called.
    fn commands(command: &clap::Command, called: &str) -> Vec<(String, clap::Command)> {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let below = below.flat_map(|below| commands(below, &format!("{called} {}", below.get_name())));
        [(called.to_owned(), command.clone())].into_iter().chain(below).collect()
    }

    #[test]
    fn every_command_has_examples_of_its_own() {
        for (called, command) in commands(&Cli::command(), "pointsman") {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Example").unwrap_or_default();
            assert!(examples.contains(&called), "`{called} --help` has no example of it:\n{help}");
            assert!(!command.is_hide_set(), "{called}");
        }
    }

    #[test]
    fn times_are_taken_as_the_tables_print_them() {
        let noon = moment("2026-01-31T12:00:00Z").unwrap();
        for form in ["2026-01-31 12:00:00", "2026-01-31T12:00:00", "2026-01-31T13:00:00+01:00"] {
            assert_eq!(moment(form).unwrap(), noon, "{form}");
        }
        assert_eq!(moment("2026-01-31").unwrap(), moment("2026-01-31T00:00:00Z").unwrap());
        for form in ["yesterday", "", "12:00:00", "2026-02-30"] {
            assert!(moment(form).is_err(), "{form}");
        }
    }
}
