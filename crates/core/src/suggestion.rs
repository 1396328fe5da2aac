//! Suggestions for mistyped names.

use strsim::osa_distance;

/// A longer name gets no suggestions, because comparing long names is slow and anybody may send one.
const MAX_COMPARED_NAME_BYTES: usize = 256;

/// The most similar of `names`, if it is similar enough to be what was meant.
pub fn suggest_name<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    suggest_names(wrong, names, 1).first().copied()
}

/// At most `limit` of `names` that are similar enough to be what was meant, the most similar first.
pub fn suggest_names<'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    if wrong.len() > MAX_COMPARED_NAME_BYTES {
        return vec![];
    }
    let lower = wrong.to_lowercase();
    let similar = names.into_iter().map(|name| (osa_distance(&lower, &name.to_lowercase()), name));
    let mut similar: Vec<_> =
        similar.filter(|(distance, name)| is_similar(&lower, name, *distance)).collect();
    similar.sort_by_key(|(distance, _)| *distance);
    similar.dedup();
    similar.into_iter().map(|(_, name)| name).take(limit).collect()
}

/// The length of the folder path that two paths share, in characters.
fn shared_folder_length(a: &str, b: &str) -> usize {
    let shared: Vec<char> = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    shared.iter().rposition(|c| *c == '/').map_or(0, |slash| slash + 1)
}

/// Whether two names at this edit distance are similar.
fn is_similar(wrong: &str, name: &str, distance: usize) -> bool {
    // A shared folder does not make two names more similar.
    let shared = shared_folder_length(wrong, &name.to_lowercase());
    let longest = wrong.chars().count().max(name.chars().count()).saturating_sub(shared);
    distance <= (longest / 3).max(1) && distance < longest
}

/// Formats `; did you mean …?` for the end of an error message; empty if no name is similar.
pub fn did_you_mean_suffix<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    suggest_name(wrong, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Formats the part of an error message that follows the name `wrong`, which is none of `names`.
pub fn describe_unknown_name(wrong: &str, names: &[&str]) -> String {
    match suggest_name(wrong, names.iter().copied()) {
        Some(name) => format!("is not known; did you mean `{name}`?"),
        None => format!("is not known, and can only be one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_get_a_suggestion_and_other_words_do_not() {
        let names = ["timeout", "retry", "order", "on_error"];
        assert_eq!(suggest_name("tiemout", names), Some("timeout"));
        assert_eq!(suggest_name("Retry", names), Some("retry"));
        assert_eq!(suggest_name("on-error", names), Some("on_error"));
        assert_eq!(suggest_name("banana", names), None);
        assert_eq!(suggest_name("x", ["y"]), None);
        assert_eq!(suggest_name("", names), None);
        assert_eq!(did_you_mean_suffix("ordr", names), "; did you mean `order`?");
        assert_eq!(describe_unknown_name("ordr", &names), "is not known; did you mean `order`?");
        assert_eq!(
            describe_unknown_name("x", &["one", "two"]),
            "is not known, and can only be one of one, two"
        );
    }

    #[test]
    fn a_shared_folder_does_not_make_paths_similar() {
        let paths = ["/laundry/slow", "/laundry/fast"];
        assert_eq!(suggest_name("/laundry/slwo", paths), Some("/laundry/slow"));
        assert_eq!(suggest_name("/landry/slow", paths), Some("/laundry/slow"));
        assert_eq!(suggest_name("/laundry/nope", paths), None);
    }

    #[test]
    fn suggestions_are_sorted_by_similarity() {
        let names = ["order", "orders", "border", "retry", "order"];
        assert_eq!(suggest_names("ordr", names, 2), ["order", "orders"]);
        assert_eq!(suggest_names("ordr", names, 9), ["order", "orders", "border"]);
        assert!(suggest_names("banana", names, 9).is_empty() && suggest_names("ordr", names, 0).is_empty());
        assert!(suggest_names(&"x".repeat(MAX_COMPARED_NAME_BYTES + 1), names, 9).is_empty());
    }

    #[test]
    fn swapped_neighbours_count_as_one_edit() {
        assert_eq!(suggest_name("abc", ["bac"]), Some("bac"));
        assert_eq!(suggest_name("abc", ["bca"]), None);
    }
}
