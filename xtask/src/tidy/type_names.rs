//! Limits how many visible types share a name: a name that four types have says nothing about any of them.
//!
//! Counts `struct`, `enum`, `trait`, `union` and `type` items that are visible outside their module (`pub`,
//! `pub(crate)`, `pub(super)`). Associated types have no visibility of their own and do not count. More types
//! may share a name if `overused_type_names.txt` lists it with a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::StyleViolation;

/// The contents of the list of names that more than [`MAX_TYPES_PER_NAME`] types may share.
const ALLOWED_OVERUSED_NAMES: &str = include_str!("overused_type_names.txt");

/// The maximum number of visible types that share a name.
const MAX_TYPES_PER_NAME: usize = 3;

/// The visible types of the repository by name, each with its file and line.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    definitions: BTreeMap<String, Vec<(PathBuf, usize)>>,
}

impl TypeNames {
    /// Records the visible types that a Rust file defines.
    pub(super) fn collect_type_definitions(&mut self, file: &Path, text: &str) {
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = parse_type_definition(line) {
                self.definitions.entry(name.to_owned()).or_default().push((file.into(), index + 1));
            }
        }
    }

    /// Reports the fourth and each further type of one name, unless the name is listed, and each listed name that at
    /// most three types have.
    pub(super) fn report_overused_names(&self, violations: &mut Vec<StyleViolation>) -> anyhow::Result<()> {
        let allowed = parse_allowed_overused_names(ALLOWED_OVERUSED_NAMES)
            .context("xtask/src/tidy/overused_type_names.txt")?;
        for (name, definitions) in &self.definitions {
            if allowed.contains_key(name.as_str()) {
                continue;
            }
            for (file, line) in definitions.iter().skip(MAX_TYPES_PER_NAME) {
                let message = format!(
                    "`{name}` already names {MAX_TYPES_PER_NAME} visible types; choose a name that says which one this is, or \
                     list it with a reason in xtask/src/tidy/overused_type_names.txt"
                );
                violations.push(StyleViolation { file: file.clone(), line: *line, message });
            }
        }
        for name in allowed.keys() {
            if self.definitions.get(*name).is_none_or(|definitions| definitions.len() <= MAX_TYPES_PER_NAME) {
                let message = format!("lists `{name}`, which at most {MAX_TYPES_PER_NAME} types have");
                violations.push(StyleViolation {
                    file: "xtask/src/tidy/overused_type_names.txt".into(),
                    line: 1,
                    message,
                });
            }
        }
        Ok(())
    }
}

/// Returns the name of the visible type that a line defines.
fn parse_type_definition(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let rest =
        ["struct ", "enum ", "trait ", "union ", "type "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
}

/// Parses lines of the form `NAME = REASON`.
fn parse_allowed_overused_names(list: &str) -> anyhow::Result<BTreeMap<&str, &str>> {
    let mut allowed = BTreeMap::new();
    for (index, line) in list.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(" = ") {
            Some((name, reason)) if !reason.trim().is_empty() => allowed.insert(name, reason),
            _ => bail!("line {}: expected `NAME = REASON`", index + 1),
        };
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_violations(texts: &[&str]) -> Vec<StyleViolation> {
        let mut names = TypeNames::default();
        for (index, text) in texts.iter().enumerate() {
            names.collect_type_definitions(Path::new(&format!("{index}.rs")), text);
        }
        let mut violations = vec![];
        names.report_overused_names(&mut violations).unwrap();
        violations
    }

    #[test]
    fn visible_types_are_found_and_others_are_not() {
        assert_eq!(parse_type_definition("pub struct Row<'a> {"), Some("Row"));
        assert_eq!(parse_type_definition("    pub(crate) enum Row {"), Some("Row"));
        assert_eq!(parse_type_definition("pub(in super::super) type Row = ();"), Some("Row"));
        for line in
            ["struct Row;", "type Err = Row;", "pub fn row()", "public struct Row;", "// pub struct Row"]
        {
            assert_eq!(parse_type_definition(line), None, "{line}");
        }
    }

    #[test]
    fn the_fourth_type_of_one_name_is_a_violation() {
        let line = "pub struct Row;\n";
        assert!(find_violations(&[line, line, line]).is_empty());
        let found = find_violations(&[line, line, line, line]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, Path::new("3.rs"));
    }

    #[test]
    fn an_allowed_overused_name_needs_a_reason() {
        assert!(parse_allowed_overused_names("Row = each table has rows\n").is_ok());
        for list in ["Row\n", "Row = \n"] {
            assert!(parse_allowed_overused_names(list).is_err(), "{list}");
        }
    }
}
