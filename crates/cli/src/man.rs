//! `pointsman man`: manual pages, made from the command line's own definition.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::{Cli, EXIT_CODES};
use crate::failure::{Failure, Result};

/// Print a manual page, or write all of them
///
/// Each command has a page of its own, called as it is with hyphens: pointsman-tasks-list(1).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman man --dir ~/.local/share/man/man1
      then: man pointsman, man pointsman-tasks-list
  pointsman man | man -l -
  pointsman man tasks list | man -l -")]
pub(crate) struct Man {
    /// The command whose page is printed [default: pointsman itself]
    command: Vec<String>,
    /// Write the pages of all commands into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        match self.dir {
            Some(dir) => {
                std::fs::create_dir_all(&dir).map_err(|error| unwritten(&dir, error))?;
                write_all(&root, None, &dir)
            }
            None => {
                let (command, above) = named(&root, &self.command)?;
                Ok(std::io::stdout().write_all(page(command, above)?.as_bytes())?)
            }
        }
    }
}

/// The command that the words lead to, and the one above it.
fn named<'a>(root: &'a Command, words: &[String]) -> Result<(&'a Command, Option<&'a Command>)> {
    let (mut command, mut above) = (root, None);
    for word in words {
        let below = command.find_subcommand(word).ok_or_else(|| {
            let names = command.get_subcommands().map(Command::get_name);
            let near = pointsman_server::config::nearest::hint(word, names);
            Failure::usage(format!("`{}` has no command {word:?}{near}", title(command).replace('-', " ")))
                .hint("`pointsman --help` lists the commands.")
        })?;
        (command, above) = (below, Some(command));
    }
    Ok((command, above))
}

fn write_all(command: &Command, above: Option<&Command>, dir: &Path) -> Result {
    let file = dir.join(format!("{}.1", title(command)));
    std::fs::write(&file, page(command, above)?).map_err(|error| unwritten(&file, error))?;
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.try_for_each(|below| write_all(below, Some(command), dir))
}

fn unwritten(path: &Path, error: std::io::Error) -> Failure {
    Failure::runtime(format!("cannot write to {}: {error}", path.display()))
}

/// What a page is called: `pointsman-tasks-list`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, above: Option<&Command>) -> Result<String> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let (source, mut out) = (concat!("pointsman ", env!("CARGO_PKG_VERSION")), vec![]);
    // Without a date, what follows would be taken for one.
    let page = Page::new(command.clone().override_usage(usage)).date(" ").source(source).manual("Pointsman");
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    let mut rest = Roff::new();
    if let Some(text) = command.get_after_long_help() {
        explain(&mut rest, &text.to_string());
    }
    if above.is_some() {
        explain(&mut rest, EXIT_CODES);
    }
    if let Some(above) = above {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([bold(title(above)), roman("(1)")]);
    }
    rest.to_writer(&mut out)?;
    Ok(in_ascii(&String::from_utf8_lossy(&out)))
}

/// A page that reads the same whatever the encoding of the terminal is.
fn in_ascii(page: &str) -> String {
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    page.chars().map(escaped).collect()
}

/// What stands below the options in the help: sections, sentences, and lines that stay as they are.
fn explain(page: &mut Roff, text: &str) {
    let mut is_verbatim = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        if indented != is_verbatim && !line.is_empty() {
            page.control(if indented { "nf" } else { "fi" }, []);
            is_verbatim = indented;
        }
        match line {
            "" => page.control("PP", []),
            "Example:" | "Examples:" => page.control("SH", ["EXAMPLES"]),
            "Exit codes:" => page.control("SH", ["EXIT STATUS"]),
            line => page.text([roman(line)]),
        };
    }
    if is_verbatim {
        page.control("fi", []);
    }
}
