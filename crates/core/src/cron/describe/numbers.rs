//! Describes sets of numbers in English.

use crate::cron::number_set::{Direction, NumberSet};

/// The pattern that a set of values of a field forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cron) enum ValuePattern {
    All,
    SingleValue(u8),
    /// Every `step`th value of the whole field: the step divides the field's size.
    EvenSteps {
        first: u8,
        step: u8,
    },
    /// All values from the first to the last; wraps around the end of the field if the last is less than the first.
    Range(u8, u8),
    /// Every `step`th value from the first to the last.
    Steps {
        first: u8,
        last: u8,
        step: u8,
    },
    Irregular,
}

/// Finds the pattern of a set of values of the field `low..=high`.
pub(in crate::cron) fn find_pattern(set: NumberSet, low: u8, high: u8) -> ValuePattern {
    let members: Vec<u8> = set.iter().collect();
    let (first, last) =
        (set.first_in_direction(Direction::Forward), set.first_in_direction(Direction::Backward));
    let size = high - low + 1;
    if members.len() == usize::from(size) {
        return ValuePattern::All;
    }
    if members.len() == 1 {
        return ValuePattern::SingleValue(first);
    }
    let step = members[1] - first;
    let regular = members.windows(2).all(|pair| pair[1] - pair[0] == step);
    match (regular, step) {
        (true, 1) => ValuePattern::Range(first, last),
        (true, _) if first + size - last == step => ValuePattern::EvenSteps { first, step },
        (true, _) if members.len() >= 4 => ValuePattern::Steps { first, last, step },
        _ => find_wrapping_range(&members, low, high),
    }
}

/// Finds a range that wraps around the end of the field (`58, 59, 0, 1`); otherwise the set is irregular.
fn find_wrapping_range(members: &[u8], low: u8, high: u8) -> ValuePattern {
    let (Some(first), Some(last)) = (members.first(), members.last()) else { return ValuePattern::Irregular };
    let holes: Vec<_> = members.windows(2).filter(|pair| pair[1] - pair[0] > 1).collect();
    match holes.as_slice() {
        [hole] if *first == low && *last == high => ValuePattern::Range(hole[1], hole[0]),
        _ => ValuePattern::Irregular,
    }
}

/// The maximum number of items that [`join_with_and`] writes; a longer list is cut.
const MAX_LISTED_ITEMS: usize = 8;

/// Describes the members, each formatted by `format_member`: `5`, `5 to 10`, `1, 7 and 9`.
pub(in crate::cron) fn describe_members(
    set: NumberSet,
    low: u8,
    high: u8,
    format_member: impl Fn(u8) -> String,
) -> String {
    match find_pattern(set, low, high) {
        ValuePattern::Range(first, last) if set.len() > 2 => {
            format!("{} to {}", format_member(first), format_member(last))
        }
        ValuePattern::All => format!("{} to {}", format_member(low), format_member(high)),
        ValuePattern::Steps { first, last, step } => {
            format!("{} to {} in steps of {step}", format_member(first), format_member(last))
        }
        ValuePattern::EvenSteps { first, step } if set.len() > 4 => {
            format!(
                "{} to {} in steps of {step}",
                format_member(first),
                format_member(set.first_in_direction(Direction::Backward))
            )
        }
        _ => join_with_and(set.iter().map(format_member).collect()),
    }
}

/// Joins items in English: `a and b`, `a, b and c`. A long list is cut and ends with the number of omitted items.
pub(in crate::cron) fn join_with_and(mut items: Vec<String>) -> String {
    if items.len() > MAX_LISTED_ITEMS {
        let rest = items.len() - MAX_LISTED_ITEMS + 1;
        items.truncate(MAX_LISTED_ITEMS - 1);
        items.push(format!("{rest} more"));
    }
    match items.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// Formats a number with thousands separators: `3,600`.
pub(in crate::cron) fn format_thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its unit: `1 minute`, `5 minutes`.
pub(in crate::cron) fn format_count_with_unit(count: i64, unit: &str) -> String {
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

/// Formats an ordinal number: `second`, `third`, `21st`.
pub(in crate::cron) fn format_ordinal(number: u8) -> String {
    match number {
        1 => "first".into(),
        2 => "second".into(),
        3 => "third".into(),
        4 => "fourth".into(),
        5 => "fifth".into(),
        n if n % 10 == 1 && n != 11 => format!("{n}st"),
        n if n % 10 == 2 && n != 12 => format!("{n}nd"),
        n if n % 10 == 3 && n != 13 => format!("{n}rd"),
        n => format!("{n}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_of_a_set_is_found() {
        let minutes = |members: &[u8]| find_pattern(NumberSet::from_members(members.iter().copied()), 0, 59);
        assert_eq!(find_pattern(NumberSet::from_range(0, 59), 0, 59), ValuePattern::All);
        assert_eq!(minutes(&[7]), ValuePattern::SingleValue(7));
        assert_eq!(minutes(&[0, 20, 40]), ValuePattern::EvenSteps { first: 0, step: 20 });
        assert_eq!(minutes(&[5, 6, 7]), ValuePattern::Range(5, 7));
        assert_eq!(minutes(&[0, 7, 14, 21]), ValuePattern::Steps { first: 0, last: 21, step: 7 });
        assert_eq!(minutes(&[0, 1, 58, 59]), ValuePattern::Range(58, 1));
        assert_eq!(minutes(&[0, 7, 9]), ValuePattern::Irregular);
    }

    #[test]
    fn numbers_and_lists_are_formatted_in_english() {
        assert_eq!(join_with_and(vec!["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(
            join_with_and((0..20).map(|n| n.to_string()).collect()),
            "0, 1, 2, 3, 4, 5, 6 and 13 more"
        );
        assert_eq!(
            [format_thousands(999), format_thousands(3600), format_thousands(86_400)],
            ["999", "3,600", "86,400"]
        );
        assert_eq!(
            [format_ordinal(2), format_ordinal(11), format_ordinal(12), format_ordinal(22)],
            ["second", "11th", "12th", "22nd"]
        );
    }
}
