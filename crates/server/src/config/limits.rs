//! The limits of a handler: how many of its tasks run at a time, how often one begins, and its share.

use std::time::Duration;

use pointsman_core::{Limits, Order, Rate, Weight};

use super::decode::{Fields, duration, parsed, whole};
use super::fault::Findings;
use super::yaml::Node;

/// More at a time than this is a slip of the keyboard.
const MOST: u64 = 1_000_000;

/// A quicker gain of priority would soon outweigh every priority that was given.
const LEAST_AGEING: Duration = Duration::from_secs(1);

/// Reads the limits of a handler whose tasks keep this order.
pub(super) fn read(fields: &Fields, order: Order, findings: &mut Findings) -> Limits {
    let mut count = |key| fields.get(key).and_then(|n| at_a_time(n, findings));
    let (concurrency, per_key) = (count("concurrency"), count("concurrency_per_key"));
    if let (Order::Key, Some(2..), Some(node)) = (order, per_key, fields.get("concurrency_per_key")) {
        let message = "tasks of one object run one at a time to keep their order; \
                       set `order: none` to let more of them run";
        findings.fault(&node.place, message);
    }
    Limits {
        concurrency,
        concurrency_per_key: per_key,
        rate: fields.get("rate").and_then(|n| parsed(n, findings, str::parse::<Rate>)),
        weight: weight(fields, findings),
        ageing: fields.get("ageing").and_then(|n| duration(n, findings, LEAST_AGEING)),
    }
}

fn at_a_time(node: &Node, findings: &mut Findings) -> Option<u32> {
    whole(node, findings, 1..=MOST).and_then(|count| u32::try_from(count).ok())
}

/// A share in a round robin; that of everybody else if none is named.
pub(super) fn weight(fields: &Fields, findings: &mut Findings) -> Weight {
    fields.or("weight", Weight::default(), findings, |n, f| {
        let weight = whole(n, f, 1..=Weight::MAX.into())?;
        u16::try_from(weight).ok().and_then(Weight::new)
    })
}

#[cfg(test)]
mod tests {
    use super::super::decode::Keys;
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    const KEYS: Keys = Keys {
        of: "limits",
        known: &["concurrency", "concurrency_per_key", "rate", "weight", "ageing"],
        later: &[],
    };

    fn ordered(node: &Node, findings: &mut Findings) -> Option<Limits> {
        Fields::open(node, &KEYS, findings).map(|fields| read(&fields, Order::Key, findings))
    }

    fn free(node: &Node, findings: &mut Findings) -> Option<Limits> {
        Fields::open(node, &KEYS, findings).map(|fields| read(&fields, Order::None, findings))
    }

    #[test]
    fn without_limits_there_are_none() {
        assert_eq!(read_text("{}", ordered), Ok(Limits::default()));
    }

    #[test]
    fn every_limit_is_understood() {
        let text = "{concurrency: 4, concurrency_per_key: 2, rate: 100/m, weight: 3, ageing: 1m}";
        let want = Limits {
            concurrency: Some(4),
            concurrency_per_key: Some(2),
            rate: Some(Rate { count: 100, per: Duration::from_secs(60) }),
            weight: Weight::new(3).unwrap(),
            ageing: Some(Duration::from_secs(60)),
        };
        assert_eq!(read_text(text, free), Ok(want));
    }

    #[test]
    fn every_fault_is_told() {
        assert_eq!(
            faults_of(
                "{concurrency: 0, concurrency_per_key: x, rate: 100/w, weight: 1001, ageing: 10ms}",
                ordered
            ),
            [
                "0 is too small; the least is 1",
                "\"x\" is not a whole number",
                "\"100/w\" is not a rate; write one like `10/s`, `100/m`, `1000/h` or `5000/d`",
                "1001 is too large; the most is 1000",
                "10ms is too short; the least is 1s",
            ]
        );
    }

    #[test]
    fn what_keeps_an_order_runs_one_at_a_time() {
        assert!(read_text("{concurrency_per_key: 1}", ordered).is_ok());
        assert!(read_text("{concurrency_per_key: 2}", free).is_ok());
        assert_eq!(
            faults_of("{concurrency_per_key: 2}", ordered),
            [
                "tasks of one object run one at a time to keep their order; set `order: none` to let more of them run"
            ]
        );
    }
}
