//! The command line as a whole: what all commands share, and which commands there are.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pointsman_api::client::{Client, DEFAULT_URL};

use crate::failure::{Failure, Result};
use crate::{
    bench, completions, config, emit, handlers, nodes, objects, rules, run, schedules, serve, tasks, token,
    watch, work,
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
  0   it worked
  1   it failed while running
  2   the command line is wrong
  75  the server or its store is not available; try again later
  78  the configuration is wrong"
    };
}

const EXIT_CODES: &str = exit_codes!();

const AFTER_HELP: &str = concat!(
    "\
A first look, in two terminals:
  pointsman serve
      prints a token
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
    Tasks(Box<tasks::Tasks>),
    Run(run::Run),
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
    Token(token::Token),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(completions::Man),
}

/// What all commands take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Global {
    /// Where the server is
    #[arg(long, global = true, env = "POINTSMAN_URL", hide_env_values = true, default_value = DEFAULT_URL, value_name = "URL")]
    url: String,

    /// Who you are. Better given in the environment, where other users of the machine cannot read it
    #[arg(long, global = true, env = "POINTSMAN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,

    /// A file that holds the token, if --token is not given
    #[arg(long, global = true, env = "POINTSMAN_TOKEN_FILE", hide_env_values = true, value_name = "FILE")]
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

impl Global {
    /// A client for the server that the options name.
    pub(crate) fn client(&self) -> Result<Client> {
        let url = if self.url.is_empty() { DEFAULT_URL } else { &self.url };
        Ok(Client::new(url, self.token()?.as_deref())?)
    }

    fn token(&self) -> Result<Option<String>> {
        if let Some(token) = self.token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
            return Ok(Some(token.into()));
        }
        let Some(file) = self.token_file.as_deref().and_then(named) else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read the token file {}: {e}", file.display())))?;
        Ok(Some(text.trim().into()))
    }
}

/// A path that was given. An empty variable is how a script says that there is none.
pub(crate) fn named(path: &OsStr) -> Option<&Path> {
    (!path.is_empty()).then_some(Path::new(path))
}
