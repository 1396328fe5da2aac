//! Sets of numbers in words.

use crate::cron::bits::{Bits, Way};

/// What a set looks like to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cron) enum Pattern {
    All,
    One(u8),
    /// Every `step`th value round the whole field: the step divides the field's size.
    Even {
        first: u8,
        step: u8,
    },
    /// All values from the first to the last; the last may lie before the first.
    Run(u8, u8),
    /// Every `step`th value from the first to the last.
    Steps {
        first: u8,
        last: u8,
        step: u8,
    },
    Other,
}

/// Looks at a set of values of the field `low..=high`.
pub(in crate::cron) fn pattern(set: Bits, low: u8, high: u8) -> Pattern {
    let members: Vec<u8> = set.iter().collect();
    let (first, last) = (set.edge(Way::Forward), set.edge(Way::Backward));
    let size = high - low + 1;
    if members.len() == usize::from(size) {
        return Pattern::All;
    }
    if members.len() == 1 {
        return Pattern::One(first);
    }
    let step = members[1] - first;
    let regular = members.windows(2).all(|pair| pair[1] - pair[0] == step);
    match (regular, step) {
        (true, 1) => Pattern::Run(first, last),
        (true, _) if first + size - last == step => Pattern::Even { first, step },
        (true, _) if members.len() >= 4 => Pattern::Steps { first, last, step },
        _ => round_the_end(&members, low, high),
    }
}

/// A run that leaves the field at its end and comes in again at its start.
fn round_the_end(members: &[u8], low: u8, high: u8) -> Pattern {
    let (Some(first), Some(last)) = (members.first(), members.last()) else { return Pattern::Other };
    let holes: Vec<_> = members.windows(2).filter(|pair| pair[1] - pair[0] > 1).collect();
    match holes.as_slice() {
        [hole] if *first == low && *last == high => Pattern::Run(hole[1], hole[0]),
        _ => Pattern::Other,
    }
}

/// Beyond this many, a list is cut.
const SHOWN: usize = 8;

/// The members, each as `name` says it: `5`, `5 to 10`, `1, 7 and 9`.
pub(in crate::cron) fn members(set: Bits, low: u8, high: u8, name: impl Fn(u8) -> String) -> String {
    match pattern(set, low, high) {
        Pattern::Run(first, last) if set.len() > 2 => format!("{} to {}", name(first), name(last)),
        Pattern::All => format!("{} to {}", name(low), name(high)),
        Pattern::Steps { first, last, step } => {
            format!("{} to {} in steps of {step}", name(first), name(last))
        }
        Pattern::Even { first, step } if set.len() > 4 => {
            format!("{} to {} in steps of {step}", name(first), name(set.edge(Way::Backward)))
        }
        _ => list(set.iter().map(name).collect()),
    }
}

/// `a`, `a and b`, `a, b and c`; a long list is cut and says how much is missing.
pub(in crate::cron) fn list(mut items: Vec<String>) -> String {
    if items.len() > SHOWN {
        let rest = items.len() - SHOWN + 1;
        items.truncate(SHOWN - 1);
        items.push(format!("{rest} more"));
    }
    match items.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// `3,600`.
pub(in crate::cron) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 minute`, `5 minutes`.
pub(in crate::cron) fn plural(count: i64, unit: &str) -> String {
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

/// `second`, `third`, `21st`: as one says it between `every` and a noun.
pub(in crate::cron) fn ordinal(number: u8) -> String {
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
    fn patterns() {
        let minutes = |members: &[u8]| pattern(Bits::of(members.iter().copied()), 0, 59);
        assert_eq!(pattern(Bits::span(0, 59), 0, 59), Pattern::All);
        assert_eq!(minutes(&[7]), Pattern::One(7));
        assert_eq!(minutes(&[0, 20, 40]), Pattern::Even { first: 0, step: 20 });
        assert_eq!(minutes(&[5, 6, 7]), Pattern::Run(5, 7));
        assert_eq!(minutes(&[0, 7, 14, 21]), Pattern::Steps { first: 0, last: 21, step: 7 });
        assert_eq!(minutes(&[0, 1, 58, 59]), Pattern::Run(58, 1));
        assert_eq!(minutes(&[0, 7, 9]), Pattern::Other);
    }

    #[test]
    fn numbers_and_lists() {
        assert_eq!(list(vec!["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(list((0..20).map(|n| n.to_string()).collect()), "0, 1, 2, 3, 4, 5, 6 and 13 more");
        assert_eq!([thousands(999), thousands(3600), thousands(86_400)], ["999", "3,600", "86,400"]);
        assert_eq!([ordinal(2), ordinal(11), ordinal(12), ordinal(22)], ["second", "11th", "12th", "22nd"]);
    }
}
