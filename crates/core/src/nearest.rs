//! The name that somebody who mistyped one probably meant.

/// The longest that is compared, in bytes. Names from outside can be long; nobody mistypes a long one into another.
const LONGEST: usize = 256;

/// The nearest of `names`, if it is near enough to be what was meant.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    several(wrong, names, 1).first().copied()
}

/// Those of `names` that are near enough to be what was meant, the nearest first, at most so many.
pub fn several<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    if wrong.len() > LONGEST {
        return vec![];
    }
    let lower = wrong.to_lowercase();
    let near = names.into_iter().map(|name| (distance(&lower, &name.to_lowercase()), name));
    let mut near: Vec<_> = near.filter(|(distance, name)| is_near(&lower, name, *distance)).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(most).collect()
}

/// How many characters two paths share, up to the last slash of that part.
fn folder(a: &str, b: &str) -> usize {
    let shared: Vec<char> = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    shared.iter().rposition(|c| *c == '/').map_or(0, |slash| slash + 1)
}

/// Whether so few differences make two names alike.
fn is_near(wrong: &str, name: &str, distance: usize) -> bool {
    // A folder that two paths share makes their names no more alike.
    let shared = folder(wrong, &name.to_lowercase());
    let longest = wrong.chars().count().max(name.chars().count()).saturating_sub(shared);
    distance <= (longest / 3).max(1) && distance < longest
}

/// `; did you mean …?`, or nothing.
pub fn hint<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// What is said of a name that is none of these.
pub fn unknown(wrong: &str, names: &[&str]) -> String {
    match nearest(wrong, names.iter().copied()) {
        Some(name) => format!("is not known; did you mean `{name}`?"),
        None => format!("is not known, and can only be one of {}", names.join(", ")),
    }
}

/// How many characters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_words_are_not() {
        let names = ["timeout", "retry", "order", "on_error"];
        assert_eq!(nearest("tiemout", names), Some("timeout"));
        assert_eq!(nearest("Retry", names), Some("retry"));
        assert_eq!(nearest("on-error", names), Some("on_error"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(hint("ordr", names), "; did you mean `order`?");
        assert_eq!(unknown("ordr", &names), "is not known; did you mean `order`?");
        assert_eq!(unknown("x", &["one", "two"]), "is not known, and can only be one of one, two");
    }

    #[test]
    fn paths_are_alike_by_what_they_do_not_share() {
        let paths = ["/laundry/slow", "/laundry/fast"];
        assert_eq!(nearest("/laundry/slwo", paths), Some("/laundry/slow"));
        assert_eq!(nearest("/landry/slow", paths), Some("/laundry/slow"));
        assert_eq!(nearest("/laundry/nope", paths), None);
    }

    #[test]
    fn several_come_the_nearest_first() {
        let names = ["order", "orders", "border", "retry", "order"];
        assert_eq!(several("ordr", names, 2), ["order", "orders"]);
        assert_eq!(several("ordr", names, 9), ["order", "orders", "border"]);
        assert!(several("banana", names, 9).is_empty() && several("ordr", names, 0).is_empty());
        assert!(several(&"x".repeat(LONGEST + 1), names, 9).is_empty());
    }

    #[test]
    fn swapped_neighbours_count_once() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
