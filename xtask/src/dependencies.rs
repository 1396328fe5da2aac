//! Checks the dependencies of the product: every licence is accepted, and a crate has two versions only if listed.
//!
//! Reads `cargo tree`, so that it needs neither a network nor another program. Security advisories need both:
//! CONTRIBUTING.md says how to check them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo_command;

/// Licences that the product may contain. All of them permit redistribution in a binary without its sources.
const ACCEPTED_LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that may have several versions, each with the reason.
const ACCEPTED_DUPLICATES: &[(&str, &str)] = &[
    ("base64", "tokio-postgres has an older version than reqwest"),
    ("const-oid", "x509-cert, which tokio-postgres-rustls uses, has an older version than sha2"),
    ("fallible-iterator", "tokio-postgres has an older version than rusqlite"),
    ("getrandom", "ring has an older version than uuid"),
    ("syn", "derive macros of other crates have different versions; the binary contains none of them"),
];

/// A dependency, as `cargo tree` prints it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    licence: String,
}

/// Checks the dependencies of the product on this platform.
pub(crate) fn check_dependencies(root: &Path) -> anyhow::Result<()> {
    let arguments = [
        "tree",
        "--locked",
        "--workspace",
        "--edges=normal,build",
        "--prefix=none",
        "--format={p}|{l}",
        "--quiet",
    ];
    let output = cargo_command(root, &arguments).output().context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let dependencies = parse_tree(&String::from_utf8(output.stdout)?)?;
    let mut problems = list_licence_problems(&dependencies);
    problems.extend(list_version_problems(&dependencies, ACCEPTED_DUPLICATES));
    if problems.is_empty() {
        eprintln!("{} dependencies have accepted licences and versions", dependencies.len());
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// Parses lines such as `serde v1.0.2 (proc-macro)|MIT OR Apache-2.0`.
fn parse_tree(text: &str) -> anyhow::Result<BTreeSet<Dependency>> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| parse_tree_line(line).with_context(|| format!("cannot parse `{line}`"))).collect()
}

fn parse_tree_line(line: &str) -> Option<Dependency> {
    let (package, licence) = line.split_once('|')?;
    let mut parts = package.split(' ');
    let name = parts.next()?.to_owned();
    let version = parts.next()?.strip_prefix('v')?.to_owned();
    // A package that was printed before is marked.
    let licence = licence.trim_end_matches(" (*)").to_owned();
    Some(Dependency { name, version, licence })
}

fn list_licence_problems(dependencies: &BTreeSet<Dependency>) -> Vec<String> {
    let refused = dependencies.iter().filter(|dependency| !is_licence_accepted(&dependency.licence));
    refused
        .map(|Dependency { name, version, licence }| {
            format!(
                "{name} {version} has the licence `{licence}`, which is not accepted: use another crate, or \
                 add the licence to ACCEPTED_LICENCES in xtask/src/dependencies.rs"
            )
        })
        .collect()
}

/// Evaluates a licence expression: one of the parts around `OR` must be accepted, and all of the parts around `AND`.
fn is_licence_accepted(expression: &str) -> bool {
    // Older crates separate alternatives with a slash.
    let expression = expression.replace(" / ", " OR ").replace('/', " OR ");
    split_outside_parentheses(&expression, " OR ").into_iter().any(|alternative| {
        split_outside_parentheses(alternative, " AND ").into_iter().all(|licence| {
            let inner = licence.strip_prefix('(').and_then(|licence| licence.strip_suffix(')'));
            inner.map_or_else(|| ACCEPTED_LICENCES.contains(&licence), is_licence_accepted)
        })
    })
}

/// Splits an expression at an operator, except inside of parentheses.
fn split_outside_parentheses<'e>(expression: &'e str, operator: &str) -> Vec<&'e str> {
    let (mut parts, mut start, mut depth) = (vec![], 0, 0);
    for (index, character) in expression.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && expression[index..].starts_with(operator) => {
                parts.push(&expression[start..index]);
                start = index + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

/// Reports crates with several versions that are not accepted, and accepted ones that have one version only.
fn list_version_problems(dependencies: &BTreeSet<Dependency>, accepted: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for dependency in dependencies {
        versions.entry(&dependency.name).or_default().insert(&dependency.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let is_accepted = |name: &str| accepted.iter().any(|(accepted_name, _)| *accepted_name == name);
    let new_duplicates = versions.iter().filter(|(name, _)| !is_accepted(name)).map(|(name, versions)| {
        let versions: Vec<&str> = versions.iter().copied().collect();
        format!(
            "{name} has the versions {}: `cargo tree --duplicates` says why. Align them, or add the crate to \
             ACCEPTED_DUPLICATES in xtask/src/dependencies.rs with the reason",
            versions.join(" and ")
        )
    });
    let single = accepted.iter().filter(|(name, _)| !versions.contains_key(name));
    let unused = single.map(|(name, _)| {
        format!(
            "{name} has one version only: remove it from ACCEPTED_DUPLICATES in xtask/src/dependencies.rs"
        )
    });
    new_duplicates.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        for (expression, is_accepted) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0 OR LGPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("(LGPL-3.0 OR GPL-3.0) AND Unicode-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("Unlicense/MIT", true),
            ("Apache-2.0 / MIT", true),
            ("", false),
        ] {
            assert_eq!(is_licence_accepted(expression), is_accepted, "{expression}");
        }
    }

    #[test]
    fn new_duplicates_and_unused_exceptions_are_reported() {
        let tree = "a v1.0.0|MIT\nb v1.0.0 (proc-macro)|MIT\na v2.0.0|MIT (*)\na v1.0.0|MIT (*)\n";
        let dependencies = parse_tree(tree).unwrap();
        assert_eq!(dependencies.len(), 3);
        let problems = list_version_problems(&dependencies, &[]);
        assert!(matches!(&problems[..], [a] if a.starts_with("a has the versions 1.0.0 and 2.0.0")));
        let problems = list_version_problems(&dependencies, &[("a", "reason"), ("b", "reason")]);
        assert!(matches!(&problems[..], [b] if b.starts_with("b has one version only")));
    }

    #[test]
    fn lines_that_cannot_be_parsed_are_errors() {
        assert!(parse_tree("serde 1.0|MIT\n").is_err() && parse_tree("serde v1.0\n").is_err());
    }
}
