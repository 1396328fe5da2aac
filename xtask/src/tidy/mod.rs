//! Style rules that neither rustfmt nor clippy checks: files stay short, no unfinished work is left behind, no path of
//! one machine is used, no retired word is used, no name is given to many types, links in the documents lead to
//! files, and the tests that docs/guarantees.md names exist.

mod documented_tests;
mod retired_words;
mod type_names;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use documented_tests::DocumentedTests;
use retired_words::RetiredWords;
use type_names::TypeNames;

/// The maximum length of a source file, in lines. A longer file should be split.
const MAX_FILE_LINES: usize = 600;

/// Files that a tool generates, which may be longer.
const GENERATED_FILES: &[&str] = &["crates/store-postgres/schema.sql"];

/// Folders that are not checked, because tools or other projects made their contents.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", "vendor", "node_modules"];

/// The extensions of the checked files of code.
const CODE_EXTENSIONS: &[&str] =
    &["rs", "sql", "lua", "sh", "js", "mjs", "css", "html", "toml", "yml", "yaml"];
/// The extensions of the checked documents.
const DOCUMENT_EXTENSIONS: &[&str] = &["md"];

/// Files where retired words may occur: the tests of the list, and the changelog, which says what was renamed.
const FILES_EXEMPT_FROM_RETIRED_WORDS: &[&str] = &["xtask/src/tidy/retired_words.rs", "CHANGELOG.md"];

/// Markers of unfinished work. Written in halves, so that this file passes its own check.
const UNFINISHED_MARKERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_SPECIFIC_PATH_PREFIXES: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// A violation of a style rule, with its position.
#[derive(Debug, PartialEq, Eq)]
struct StyleViolation {
    file: PathBuf,
    line: usize,
    message: String,
}

impl fmt::Display for StyleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

/// Checks the whole repository and reports all violations at once.
pub(crate) fn check_repository(root: &Path) -> anyhow::Result<()> {
    let mut files = vec![];
    collect_checked_files(root, Path::new(""), &mut files)?;
    files.sort();
    let (retired, mut type_names, mut violations) = (RetiredWords::load()?, TypeNames::default(), vec![]);
    let mut documented_tests = DocumentedTests::default();
    for file in &files {
        let text = std::fs::read_to_string(root.join(file))
            .with_context(|| format!("cannot read {} as text", file.display()))?;
        check_text_rules(file, &text, &mut violations);
        check_retired_words(&retired, file, &text, &mut violations);
        documented_tests.collect_names(file, &text);
        match file_extension(file) {
            "md" => check_links(root, file, &text, &mut violations),
            "rs" => type_names.collect_type_definitions(file, &text),
            _ => {}
        }
    }
    type_names.report_overused_names(&mut violations)?;
    documented_tests.report_missing_tests(&mut violations);
    if violations.is_empty() {
        eprintln!("{} files are tidy", files.len());
        return Ok(());
    }
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    bail!(
        "{} {}\n{}",
        violations.len(),
        if violations.len() == 1 { "violation" } else { "violations" },
        lines.join("\n")
    )
}

/// Collects the files that the rules apply to, relative to the root.
fn collect_checked_files(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let listing = root.join(folder);
    for entry in std::fs::read_dir(&listing).with_context(|| format!("cannot list {}", listing.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let is_skipped = SKIPPED_FOLDERS.iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() {
            if !is_skipped {
                collect_checked_files(root, &path, files)?;
            }
        } else if is_checked_file(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_checked_file(path: &Path) -> bool {
    let is_known_extension = CODE_EXTENSIONS.contains(&file_extension(path))
        || DOCUMENT_EXTENSIONS.contains(&file_extension(path));
    is_known_extension || path == Path::new(".ci/run")
}

fn file_extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

/// Checks the rules that need only the text of a file: tabs, blanks, leftovers, paths of one machine, and the length.
fn check_text_rules(file: &Path, text: &str, violations: &mut Vec<StyleViolation>) {
    let mut add_violation =
        |line: usize, message: String| violations.push(StyleViolation { file: file.into(), line, message });
    let is_document = DOCUMENT_EXTENSIONS.contains(&file_extension(file));
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.contains('\t') {
            add_violation(number, "has a tab".into());
        }
        if line.trim_end() != line {
            add_violation(number, "ends in blanks".into());
        }
        if let Some(word) = UNFINISHED_MARKERS.iter().find(|word| !is_document && line.contains(**word)) {
            add_violation(number, format!("has a leftover `{word}`; finish the work, or remove it"));
        }
        if let Some(path) = MACHINE_SPECIFIC_PATH_PREFIXES.iter().find(|path| line.contains(**path)) {
            add_violation(number, format!("contains `{path}`, a path of one machine only"));
        }
    }
    let lines = text.lines().count();
    let is_generated = GENERATED_FILES.iter().any(|path| file == Path::new(path));
    if !is_document && !is_generated && lines > MAX_FILE_LINES {
        add_violation(lines, format!("has {lines} lines; the maximum is {MAX_FILE_LINES}; split it"));
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        add_violation(lines, "does not end in exactly one line break".into());
    }
}

/// Checks that a file uses no retired name or word.
fn check_retired_words(
    retired: &RetiredWords<'_>,
    file: &Path,
    text: &str,
    violations: &mut Vec<StyleViolation>,
) {
    if FILES_EXEMPT_FROM_RETIRED_WORDS.iter().any(|path| file == Path::new(path)) {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let found = retired.find_violations(line).into_iter();
        violations.extend(found.map(|message| StyleViolation {
            file: file.into(),
            line: index + 1,
            message,
        }));
    }
}

/// Checks that links to files of the repository lead to files.
fn check_links(root: &Path, file: &Path, text: &str, violations: &mut Vec<StyleViolation>) {
    let mut in_code_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code_block = !in_code_block;
        }
        if in_code_block {
            continue;
        }
        for target in find_link_targets(line) {
            let path = target.split('#').next().unwrap_or("");
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let folder = file.parent().unwrap_or(Path::new(""));
            if !root.join(folder).join(path).exists() {
                let message = format!("links to `{path}`, which does not exist");
                violations.push(StyleViolation { file: file.into(), line: index + 1, message });
            }
        }
    }
}

/// Finds the targets of `[text](target)` in a line. Text in backticks is not a link.
fn find_link_targets(line: &str) -> Vec<&str> {
    let prose = line.split('`').step_by(2);
    let link_starts = prose.flat_map(|part| part.split("](").skip(1));
    link_starts.filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_text_rule_violations(file: &str, text: &str) -> Vec<String> {
        let mut violations = vec![];
        check_text_rules(Path::new(file), text, &mut violations);
        violations.into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_clean_file_has_no_violations() {
        assert!(find_text_rule_violations("a.rs", "fn main() {}\n").is_empty());
        assert!(find_text_rule_violations("empty.rs", "").is_empty());
    }

    #[test]
    fn each_text_rule_reports_its_violation() {
        let long = "x\n".repeat(MAX_FILE_LINES + 1);
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
            let found = find_text_rule_violations("a.rs", text);
            assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn documents_may_be_long_and_may_mention_leftovers() {
        let text = concat!("We leave no `to", "do!` behind.\n").repeat(MAX_FILE_LINES + 1);
        assert!(find_text_rule_violations("CONTRIBUTING.md", &text).is_empty());
    }

    #[test]
    fn links_are_found_and_code_in_backticks_is_ignored() {
        assert_eq!(
            find_link_targets("see [a](docs/a.md#x) and [b](b.md \"title\")"),
            ["docs/a.md#x", "b.md"]
        );
        assert!(find_link_targets("write `[a](b)`").is_empty());
    }
}
