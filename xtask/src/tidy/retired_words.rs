//! The list of words that the project no longer uses, each with its replacement: `retired_words.txt`.
//!
//! An identifier is retired as a whole token. A word is retired wherever it occurs by itself: in prose, in messages,
//! and as a part of an identifier (`told` in `told_of` and in `ToldOf`, not in `untold`).

use std::collections::HashMap;

use anyhow::{Context, bail};

/// The contents of the list.
const RETIRED_WORDS_LIST: &str = include_str!("retired_words.txt");

/// The retired identifiers and words, each with its replacement.
#[derive(Debug)]
pub(super) struct RetiredWords<'a> {
    identifier_replacements: HashMap<&'a str, &'a str>,
    /// The keys are in lower case.
    word_replacements: HashMap<&'a str, &'a str>,
}

impl RetiredWords<'static> {
    /// Parses the list of the repository.
    pub(super) fn load() -> anyhow::Result<Self> {
        Self::parse(RETIRED_WORDS_LIST).context("xtask/src/tidy/retired_words.txt")
    }
}

impl<'a> RetiredWords<'a> {
    /// Parses lines of the form `KIND RETIRED = REPLACEMENT`, where KIND is `identifier` or `word`.
    fn parse(list: &'a str) -> anyhow::Result<Self> {
        let mut retired = Self { identifier_replacements: HashMap::new(), word_replacements: HashMap::new() };
        for (index, line) in list.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line.split_once(" = ").and_then(|(left, use_instead)| {
                let (kind, word) = left.split_once(' ')?;
                Some((kind, word.trim(), use_instead))
            });
            let replaced = match entry {
                Some(("identifier", name, use_instead)) => {
                    retired.identifier_replacements.insert(name, use_instead)
                }
                Some(("word", word, use_instead)) => retired.word_replacements.insert(word, use_instead),
                _ => bail!("line {}: expected `identifier NAME = USE INSTEAD` or `word …`", index + 1),
            };
            if replaced.is_some() {
                bail!("line {}: `{line}` is listed twice", index + 1);
            }
        }
        Ok(retired)
    }

    /// Reports the retired names and words of a line.
    pub(super) fn find_violations(&self, line: &str) -> Vec<String> {
        let mut found = vec![];
        for token in split_tokens(line) {
            if let Some(use_instead) = self.identifier_replacements.get(token) {
                found.push(format!("uses the retired name `{token}`; use {use_instead}"));
                continue;
            }
            for part in split_identifier(token) {
                let word = part.to_lowercase();
                if let Some(use_instead) = self.word_replacements.get(word.as_str()) {
                    found.push(format!("uses the retired word `{word}`; use {use_instead}"));
                }
            }
        }
        found
    }
}

/// Splits a line into its identifiers and words.
fn split_tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|token| !token.is_empty())
}

/// Splits an identifier into its words: `snake_case`, `camelCase` and `CONSTANT_CASE`.
fn split_identifier(token: &str) -> Vec<&str> {
    let mut parts = vec![];
    for piece in token.split('_') {
        let mut start = 0;
        let chars: Vec<(usize, char)> = piece.char_indices().collect();
        for pair in chars.windows(2) {
            let ((_, before), (at, after)) = (pair[0], pair[1]);
            if before.is_lowercase() && after.is_uppercase() {
                parts.push(&piece[start..at]);
                start = at;
            }
        }
        parts.push(&piece[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_LIST: &str =
        "# comment\n\nidentifier Keeper = `BackendStore`\nword told = notify, record, report\n";

    fn count_violations(line: &str) -> usize {
        RetiredWords::parse(SAMPLE_LIST).unwrap().find_violations(line).len()
    }

    #[test]
    fn retired_identifiers_are_found_as_whole_tokens() {
        assert_eq!(count_violations("struct Keeper<T>;"), 1);
        assert_eq!(count_violations("struct Keepers; let keeper = HouseKeeper;"), 0);
    }

    #[test]
    fn retired_words_are_found_in_prose_and_inside_identifiers() {
        assert_eq!(count_violations("Nobody was told. fn told_of() -> ToldOf { WAS_TOLD }"), 4);
        assert_eq!(count_violations("untold stories"), 0);
    }

    #[test]
    fn a_violation_names_the_replacement() {
        let found = RetiredWords::parse(SAMPLE_LIST).unwrap().find_violations("told");
        assert_eq!(found, ["uses the retired word `told`; use notify, record, report"]);
    }

    #[test]
    fn a_malformed_list_of_retired_words_is_rejected() {
        for list in ["word told\n", "noun told = x\n", "word a = b\nword a = c\n"] {
            assert!(RetiredWords::parse(list).is_err(), "{list}");
        }
    }

    #[test]
    fn the_repositorys_list_of_retired_words_is_well_formed() {
        RetiredWords::load().unwrap();
    }
}
