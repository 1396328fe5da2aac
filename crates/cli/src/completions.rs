//! `pointsman completions`: shell completions, generated from the definition of the command line.

use std::io::Write;

use clap::{Args, CommandFactory};

use crate::args::Cli;
use crate::failure::CommandResult;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman completions bash > ~/.local/share/bash-completion/completions/pointsman
  pointsman completions zsh > ~/.zfunc/_pointsman
  pointsman completions fish > ~/.config/fish/completions/pointsman.fish")]
pub(crate) struct CompletionsCommand {
    /// Shell
    shell: clap_complete::Shell,
}

impl CompletionsCommand {
    pub(crate) fn run(self) -> CommandResult {
        let mut script = vec![];
        clap_complete::generate(self.shell, &mut Cli::command(), "pointsman", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
