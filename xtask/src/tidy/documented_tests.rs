//! Checks that every test named in `docs/guarantees.md` exists.

use std::collections::HashSet;
use std::path::Path;

use super::StyleViolation;

/// The document that names a test for each promise.
const DOCUMENT: &str = "docs/guarantees.md";

/// Names with fewer underscores are those of files, settings and the like.
const MIN_UNDERSCORES: usize = 3;

/// The names of tests in the document, with their lines, and the names of all functions.
#[derive(Default)]
pub(super) struct DocumentedTests {
    documented: Vec<(usize, String)>,
    functions: HashSet<String>,
}

impl DocumentedTests {
    /// Collects the functions of a Rust file, or the names in the document.
    pub(super) fn collect_names(&mut self, file: &Path, text: &str) {
        if file == Path::new(DOCUMENT) {
            for (number, line) in (1..).zip(text.lines()) {
                let names = line.split('`').skip(1).step_by(2).filter(|span| is_test_name(span));
                self.documented.extend(names.map(|name| (number, name.to_owned())));
            }
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            let after_fn = text.split("fn ").skip(1);
            let name_length = |rest: &str| rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
            self.functions.extend(after_fn.map(|rest| rest[..name_length(rest)].to_owned()));
        }
    }

    pub(super) fn report_missing_tests(&self, violations: &mut Vec<StyleViolation>) {
        for (line, name) in &self.documented {
            let function = name.rsplit("::").next().unwrap_or(name);
            if !self.functions.contains(function) {
                let message = format!("there is no test `{name}`; use its new name, or remove it");
                violations.push(StyleViolation { file: DOCUMENT.into(), line: *line, message });
            }
        }
    }
}

/// Returns whether a code span may be the name of a test, with or without its module.
fn is_test_name(span: &str) -> bool {
    span.chars().all(|c| is_name_char(c) || c == ':')
        && span.rsplit("::").next().is_some_and(|name| name.matches('_').count() >= MIN_UNDERSCORES)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documented_test_that_does_not_exist_is_a_violation() {
        let mut tests = DocumentedTests::default();
        tests.collect_names(Path::new("a.rs"), "#[test]\nfn lanes_keep_their_order() {}\n");
        tests.collect_names(
            Path::new(DOCUMENT),
            "- `a.rs` › `lanes_keep_their_order`, `full_page_writes`\n- `lanes::lanes_lose_their_order`\n",
        );
        let mut violations = vec![];
        tests.report_missing_tests(&mut violations);
        assert!(
            matches!(&violations[..], [violation] if violation.line == 2
                && violation.message.contains("`lanes::lanes_lose_their_order`")),
            "{violations:?}"
        );
    }
}
