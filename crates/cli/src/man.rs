//! `pointsman man`: manual pages, generated from the definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::{Cli, EXIT_CODES_HELP};
use crate::failure::{CommandResult, Failure};

/// Print a manual page, or write all of them
///
/// Each command has its own page, named with hyphens: pointsman-tasks-list(1).
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman man --dir ~/.local/share/man/man1
      then: man pointsman, man pointsman-tasks-list
  pointsman man | man -l -
  pointsman man tasks list | man -l -")]
pub(crate) struct ManCommand {
    /// Command whose page is printed [default: pointsman itself]
    command: Vec<String>,
    /// Write the pages of all commands into this directory, which is created if needed
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl ManCommand {
    pub(crate) fn run(self) -> CommandResult {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        match self.dir {
            Some(dir) => {
                std::fs::create_dir_all(&dir).map_err(|error| file_write_failure(&dir, error))?;
                write_pages(&root, None, &dir)
            }
            None => {
                let (command, parent) = find_command(&root, &self.command)?;
                Ok(std::io::stdout().write_all(render_page(command, parent)?.as_bytes())?)
            }
        }
    }
}

/// The command with these words, and its parent command.
fn find_command<'a>(
    root: &'a Command,
    words: &[String],
) -> CommandResult<(&'a Command, Option<&'a Command>)> {
    let (mut command, mut parent) = (root, None);
    for word in words {
        let subcommand = command.find_subcommand(word).ok_or_else(|| {
            let names = command.get_subcommands().map(Command::get_name);
            let near = pointsman_core::suggestion::did_you_mean_suffix(word, names);
            Failure::usage(format!(
                "`{}` has no command {word:?}{near}",
                page_name(command).replace('-', " ")
            ))
            .with_hint("`pointsman --help` lists the commands.")
        })?;
        (command, parent) = (subcommand, Some(command));
    }
    Ok((command, parent))
}

fn write_pages(command: &Command, parent: Option<&Command>, dir: &Path) -> CommandResult {
    let file = dir.join(format!("{}.1", page_name(command)));
    std::fs::write(&file, render_page(command, parent)?).map_err(|error| file_write_failure(&file, error))?;
    let mut subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    subcommands.try_for_each(|subcommand| write_pages(subcommand, Some(command), dir))
}

fn file_write_failure(path: &Path, error: std::io::Error) -> Failure {
    Failure::runtime(format!("cannot write to {}: {error}", path.display()))
}

/// The name of a page: `pointsman-tasks-list`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn render_page(command: &Command, parent: Option<&Command>) -> CommandResult<String> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let (source, mut out) = (concat!("pointsman ", env!("CARGO_PKG_VERSION")), vec![]);
    // Without a date, the next field would be taken for one.
    let page = Page::new(command.clone().override_usage(usage)).date(" ").source(source).manual("Pointsman");
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    let mut sections = Roff::new();
    if let Some(text) = command.get_after_long_help() {
        append_help_text(&mut sections, &text.to_string());
    }
    if parent.is_some() {
        append_help_text(&mut sections, EXIT_CODES_HELP);
    }
    if let Some(parent) = parent {
        sections.control("SH", ["SEE ALSO"]);
        sections.text([bold(page_name(parent)), roman("(1)")]);
    }
    sections.to_writer(&mut out)?;
    Ok(escape_non_ascii(&String::from_utf8_lossy(&out)))
}

/// Escapes non-ASCII characters, so that a page does not depend on the terminal's encoding.
fn escape_non_ascii(page: &str) -> String {
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    page.chars().map(escaped).collect()
}

/// Appends the text below the options of the help: sections, sentences and verbatim lines.
fn append_help_text(page: &mut Roff, text: &str) {
    let mut is_verbatim = false;
    for line in text.lines() {
        let is_indented = line.starts_with("  ");
        if is_indented != is_verbatim && !line.is_empty() {
            page.control(if is_indented { "nf" } else { "fi" }, []);
            is_verbatim = is_indented;
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
