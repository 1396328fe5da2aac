//! Reads the limits of a handler: `concurrency`, `concurrency_per_key`, `rate`, `weight` and `ageing`.

use std::time::Duration;

use pointsman_core::{LaneOrdering, Limits, Rate, Weight};

use super::decode::{CheckedMap, parse_scalar, read_duration, read_integer};
use super::fault::Findings;
use super::yaml::YamlNode;

/// The largest accepted concurrency. Larger ones are taken for typing errors.
const MAX_CONCURRENCY: u64 = 1_000_000;

/// The shortest accepted ageing interval. With a shorter one, waiting would soon outweigh every configured priority.
const MIN_AGEING_INTERVAL: Duration = Duration::from_secs(1);

/// Reads the limits of a handler with this lane ordering.
pub(super) fn read_handler_limits(
    fields: &CheckedMap,
    order: LaneOrdering,
    findings: &mut Findings,
) -> Limits {
    let mut count = |key| fields.get(key).and_then(|n| read_concurrency(n, findings));
    let (concurrency, per_key) = (count("concurrency"), count("concurrency_per_key"));
    if let (LaneOrdering::Key, Some(2..), Some(node)) = (order, per_key, fields.get("concurrency_per_key")) {
        let message = "tasks of one object run one at a time to keep their order; \
                       set `order: none` to let more of them run";
        findings.add_fault(&node.location, message);
    }
    Limits {
        concurrency,
        concurrency_per_key: per_key,
        rate: fields.get("rate").and_then(|n| parse_scalar(n, findings, str::parse::<Rate>)),
        weight: read_weight(fields, findings),
        ageing_interval: fields.get("ageing").and_then(|n| read_duration(n, findings, MIN_AGEING_INTERVAL)),
    }
}

fn read_concurrency(node: &YamlNode, findings: &mut Findings) -> Option<u32> {
    read_integer(node, findings, 1..=MAX_CONCURRENCY).and_then(|count| u32::try_from(count).ok())
}

/// Reads `weight`, the weight in the weighted round robin; 1 if it is not set.
pub(super) fn read_weight(fields: &CheckedMap, findings: &mut Findings) -> Weight {
    fields.read_or_default("weight", Weight::default(), findings, |n, f| {
        let weight = read_integer(n, f, 1..=Weight::MAX.into())?;
        u16::try_from(weight).ok().and_then(Weight::new)
    })
}

#[cfg(test)]
mod tests {
    use super::super::decode::AllowedKeys;
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    const LIMIT_KEYS: AllowedKeys = AllowedKeys {
        described_thing: "limits",
        names: &["concurrency", "concurrency_per_key", "rate", "weight", "ageing"],
        not_yet_supported: &[],
    };

    fn read_limits_with_lane_order(node: &YamlNode, findings: &mut Findings) -> Option<Limits> {
        CheckedMap::from_node_with_known_keys(node, &LIMIT_KEYS, findings)
            .map(|fields| read_handler_limits(&fields, LaneOrdering::Key, findings))
    }

    fn read_limits_without_lane_order(node: &YamlNode, findings: &mut Findings) -> Option<Limits> {
        CheckedMap::from_node_with_known_keys(node, &LIMIT_KEYS, findings)
            .map(|fields| read_handler_limits(&fields, LaneOrdering::None, findings))
    }

    #[test]
    fn a_handler_without_limit_settings_has_no_limits() {
        assert_eq!(read_value_from_yaml("{}", read_limits_with_lane_order), Ok(Limits::default()));
    }

    #[test]
    fn every_handler_limit_is_read() {
        let text = "{concurrency: 4, concurrency_per_key: 2, rate: 100/m, weight: 3, ageing: 1m}";
        let want = Limits {
            concurrency: Some(4),
            concurrency_per_key: Some(2),
            rate: Some(Rate { count: 100, period: Duration::from_secs(60) }),
            weight: Weight::new(3).unwrap(),
            ageing_interval: Some(Duration::from_secs(60)),
        };
        assert_eq!(read_value_from_yaml(text, read_limits_without_lane_order), Ok(want));
    }

    #[test]
    fn every_invalid_handler_limit_is_reported() {
        assert_eq!(
            fault_messages(
                "{concurrency: 0, concurrency_per_key: x, rate: 100/w, weight: 1001, ageing: 10ms}",
                read_limits_with_lane_order
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
    fn concurrency_per_key_above_one_requires_order_none() {
        assert!(read_value_from_yaml("{concurrency_per_key: 1}", read_limits_with_lane_order).is_ok());
        assert!(read_value_from_yaml("{concurrency_per_key: 2}", read_limits_without_lane_order).is_ok());
        assert_eq!(
            fault_messages("{concurrency_per_key: 2}", read_limits_with_lane_order),
            [
                "tasks of one object run one at a time to keep their order; set `order: none` to let more of them run"
            ]
        );
    }
}
