//! `pointsman completions`: made from the command line's own definition.

use std::io::Write;

use clap::{Args, CommandFactory};

use crate::args::Cli;
use crate::failure::Result;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman completions bash > ~/.local/share/bash-completion/completions/pointsman
  pointsman completions zsh > ~/.zfunc/_pointsman
  pointsman completions fish > ~/.config/fish/completions/pointsman.fish")]
pub(crate) struct Completions {
    /// The shell to complete in
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result {
        let mut script = vec![];
        clap_complete::generate(self.shell, &mut Cli::command(), "pointsman", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
