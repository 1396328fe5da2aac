//! Reads `retry` of a handler and `setback` of a chain node: how often a failed task is retried, and after which delays.

use std::time::Duration;

use pointsman_core::task::retry::{Backoff, RetryPolicy};

use super::decode::{AllowedKeys, CheckedMap, read_choice, read_duration, read_integer};
use super::fault::Findings;
use super::yaml::{YamlKind, YamlNode};

pub(super) const RETRY_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "`retry`",
    names: &["max", "backoff", "delay", "max_delay"],
    not_yet_supported: &[],
};

pub(super) const SETBACK_KEYS: AllowedKeys = AllowedKeys { described_thing: "`setback`", ..RETRY_KEYS };

pub(super) fn read_retry(node: &YamlNode, findings: &mut Findings) -> Option<RetryPolicy> {
    read_retry_policy(node, &RETRY_KEYS, RetryPolicy::default(), findings)
}

/// Reads `setback`. Its delay is the same every time, unless `backoff` is set.
pub(super) fn read_setback(node: &YamlNode, findings: &mut Findings) -> Option<RetryPolicy> {
    read_retry_policy(
        node,
        &SETBACK_KEYS,
        RetryPolicy { backoff: Backoff::Fixed, ..RetryPolicy::default() },
        findings,
    )
}

fn read_retry_policy(
    node: &YamlNode,
    keys: &AllowedKeys,
    default: RetryPolicy,
    findings: &mut Findings,
) -> Option<RetryPolicy> {
    let fields = CheckedMap::from_node_with_known_keys(node, keys, findings)?;
    let max = fields.read_or_default("max", default.max_retries.into(), findings, |n, f| {
        read_integer(n, f, 0..=1_000_000)
    });
    let backoff = fields.read_or_default("backoff", default.backoff, findings, read_backoff);
    let delay =
        fields.read_or_default("delay", default.delay, findings, |n, f| read_duration(n, f, Duration::ZERO));
    // A first delay above the default limit raises the limit; only an explicit limit can conflict with it.
    let default_max_delay = default.max_delay.max(delay);
    let max_delay = fields.read_or_default("max_delay", default_max_delay, findings, |n, f| {
        read_duration(n, f, Duration::ZERO)
    });
    if max_delay < delay
        && let Some(node) = fields.get("max_delay")
    {
        findings.add_fault(&node.location, "`max_delay` is shorter than `delay`");
    }
    Some(RetryPolicy { max_retries: u32::try_from(max).ok()?, backoff, delay, max_delay })
}

fn read_backoff(node: &YamlNode, findings: &mut Findings) -> Option<Backoff> {
    let YamlKind::List(delays) = &node.kind else {
        let choices = [
            ("exponential", &Backoff::Exponential),
            ("linear", &Backoff::Linear),
            ("fixed", &Backoff::Fixed),
        ];
        return read_choice(node, findings, &choices).cloned();
    };
    if delays.is_empty() {
        findings.add_fault(&node.location, "a list of delays must not be empty");
    }
    let read: Vec<Duration> =
        delays.iter().filter_map(|delay| read_duration(delay, findings, Duration::ZERO)).collect();
    Some(Backoff::List(read))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    #[test]
    fn omitted_retry_settings_have_their_defaults() {
        assert_eq!(read_value_from_yaml("{}", read_retry), Ok(RetryPolicy::default()));
        let policy = read_value_from_yaml("{max: 5, backoff: fixed, delay: 10m}", read_retry).unwrap();
        assert_eq!((policy.max_retries, policy.backoff), (5, Backoff::Fixed));
        assert_eq!(policy.delay, Duration::from_secs(600));
        let policy = read_value_from_yaml("{backoff: [1s, 1m]}", read_retry).unwrap();
        assert_eq!(policy.backoff, Backoff::List(vec![Duration::from_secs(1), Duration::from_secs(60)]));
    }

    #[test]
    fn setback_backoff_is_fixed_by_default() {
        let policy = read_value_from_yaml("{delay: 30s, max: 5}", read_setback).unwrap();
        assert_eq!((policy.max_retries, policy.backoff), (5, Backoff::Fixed));
        let policy =
            read_value_from_yaml("{delay: 30s, backoff: linear, max_delay: 2m}", read_setback).unwrap();
        assert_eq!((policy.backoff, policy.max_delay), (Backoff::Linear, Duration::from_secs(120)));
    }

    #[test]
    fn every_invalid_retry_setting_is_reported() {
        assert_eq!(
            fault_messages("{max: -1, backoff: quadratic, delay: 1m, max_delay: 1s, dely: 1s}", read_retry),
            [
                "-1 is too small; the least is 0",
                "\"quadratic\" is not one of exponential, linear, fixed",
                "`max_delay` is shorter than `delay`",
                "unknown setting \"dely\" of `retry`; did you mean `delay`?",
            ]
        );
        assert_eq!(fault_messages("{backoff: []}", read_retry), ["a list of delays must not be empty"]);
    }
}
