//! Style that matters and that neither rustfmt nor clippy looks at: files stay short, nothing unfinished is
//! left behind, nothing names the machine it was written on, no retired word is used, no name is given to
//! many types, and links in the documents lead somewhere.

mod retired;
mod type_names;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use retired::Retired;
use type_names::TypeNames;

/// The longest source file, in lines. What is longer is two things.
const MAX_LINES: usize = 600;

/// Written by a tool, and as long as what it tells of.
const WRITTEN: &[&str] = &["crates/store-postgres/schema.sql"];

/// Folders that are not ours to check: made by tools, or by others.
const FOREIGN: &[&str] = &["target", ".git", "vendor", "node_modules"];

/// What is code, and what is a text for people.
const CODE: &[&str] = &["rs", "sql", "lua", "sh", "js", "mjs", "css", "html", "toml", "yml", "yaml"];
const PROSE: &[&str] = &["md"];

/// Where retired words may occur: the list of them, its tests, and the changelog, which says what was renamed.
const NAMES_RETIRED_WORDS: &[&str] = &["xtask/src/tidy/retired.rs", "CHANGELOG.md"];

/// Signs of unfinished work. Written in halves, so that this file passes its own check.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Where only one machine can go.
const ELSEWHERE: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// A rule broken somewhere.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// Checks the whole repository and tells every fault at once.
pub(crate) fn all(root: &Path) -> anyhow::Result<()> {
    let mut files = vec![];
    collect(root, Path::new(""), &mut files)?;
    files.sort();
    let (retired, mut type_names, mut faults) = (Retired::load()?, TypeNames::default(), vec![]);
    for file in &files {
        let text = std::fs::read_to_string(root.join(file))
            .with_context(|| format!("{} cannot be read as text", file.display()))?;
        check(file, &text, &mut faults);
        check_words(&retired, file, &text, &mut faults);
        match extension(file) {
            "md" => check_links(root, file, &text, &mut faults),
            "rs" => type_names.collect(file, &text),
            _ => {}
        }
    }
    type_names.check(&mut faults)?;
    if faults.is_empty() {
        eprintln!("{} files are tidy", files.len());
        return Ok(());
    }
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    bail!("{} {}\n{}", faults.len(), if faults.len() == 1 { "fault" } else { "faults" }, lines.join("\n"))
}

/// Gathers the files that the rules are about, relative to the root.
fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let listing = root.join(folder);
    for entry in std::fs::read_dir(&listing).with_context(|| format!("cannot list {}", listing.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let foreign = FOREIGN.iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() {
            if !foreign {
                collect(root, &path, files)?;
            }
        } else if is_checked(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_checked(path: &Path) -> bool {
    let known = CODE.contains(&extension(path)) || PROSE.contains(&extension(path));
    known || path == Path::new(".ci/run")
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

/// Checks one file by its text alone.
fn check(file: &Path, text: &str, faults: &mut Vec<Fault>) {
    let mut fault = |line: usize, what: String| faults.push(Fault { file: file.into(), line, what });
    let prose = PROSE.contains(&extension(file));
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.contains('\t') {
            fault(number, "has a tab".into());
        }
        if line.trim_end() != line {
            fault(number, "ends in blanks".into());
        }
        if let Some(word) = LEFTOVERS.iter().find(|word| !prose && line.contains(**word)) {
            fault(number, format!("has a leftover `{word}`"));
        }
        if let Some(place) = ELSEWHERE.iter().find(|place| line.contains(**place)) {
            fault(number, format!("names `{place}`, which is of one machine only"));
        }
    }
    let lines = text.lines().count();
    let written = WRITTEN.iter().any(|path| file == Path::new(path));
    if !prose && !written && lines > MAX_LINES {
        fault(lines, format!("has {lines} lines; the most is {MAX_LINES}"));
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        fault(lines, "does not end in exactly one line break".into());
    }
}

/// Checks that no retired name or word is used.
fn check_words(retired: &Retired<'_>, file: &Path, text: &str, faults: &mut Vec<Fault>) {
    if NAMES_RETIRED_WORDS.iter().any(|path| file == Path::new(path)) {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let found = retired.find(line).into_iter();
        faults.extend(found.map(|what| Fault { file: file.into(), line: index + 1, what }));
    }
}

/// Checks that links to files of the repository lead to files.
fn check_links(root: &Path, file: &Path, text: &str, faults: &mut Vec<Fault>) {
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in links(line) {
            let path = target.split('#').next().unwrap_or("");
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let folder = file.parent().unwrap_or(Path::new(""));
            if !root.join(folder).join(path).exists() {
                let what = format!("links to `{path}`, which is not there");
                faults.push(Fault { file: file.into(), line: index + 1, what });
            }
        }
    }
}

/// The targets of `[text](target)` in a line. What stands in backticks is no link.
fn links(line: &str) -> Vec<&str> {
    let prose = line.split('`').step_by(2);
    let after = prose.flat_map(|part| part.split("](").skip(1));
    after.filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        let mut faults = vec![];
        check(Path::new(file), text, &mut faults);
        faults.into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn a_clean_file_has_no_faults() {
        assert!(faults("a.rs", "fn main() {}\n").is_empty());
        assert!(faults("empty.rs", "").is_empty());
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let long = "x\n".repeat(MAX_LINES + 1);
        for (text, word) in [
            ("a\tb\n", "tab"),
            ("a \n", "blanks"),
            (concat!("to", "do!()\n"), "leftover"),
            (concat!("// FIX", "ME later\n"), "leftover"),
            (concat!("open(\"/ho", "me/me/x\")\n"), "one machine"),
            (&long, "lines"),
            ("no end", "line break"),
            ("two ends\n\n", "line break"),
        ] {
            let found = faults("a.rs", text);
            assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn documents_may_be_long_and_may_speak_of_leftovers() {
        let text = concat!("We leave no `to", "do!` behind.\n").repeat(MAX_LINES + 1);
        assert!(faults("CONTRIBUTING.md", &text).is_empty());
    }

    #[test]
    fn links_are_found_and_code_is_not_mistaken_for_them() {
        assert_eq!(links("see [a](docs/a.md#x) and [b](b.md \"title\")"), ["docs/a.md#x", "b.md"]);
        assert!(links("write `[a](b)`").is_empty());
    }
}
