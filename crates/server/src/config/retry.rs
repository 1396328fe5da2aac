//! `retry` of a handler, and `setback` of a chain's node: how often and after which waits a failed task is tried again.

use std::time::Duration;

use pointsman_core::task::retry::{Backoff, RetryPolicy};

use super::decode::{Fields, Keys, duration, one_of, whole};
use super::fault::Findings;
use super::yaml::{Kind, Node};

pub(super) const KEYS: Keys =
    Keys { of: "`retry`", known: &["max", "backoff", "delay", "max_delay"], later: &[] };

pub(super) const SETBACK: Keys = Keys { of: "`setback`", ..KEYS };

pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<RetryPolicy> {
    policy(node, &KEYS, RetryPolicy::default(), findings)
}

/// An order that is set back waits as long every time, unless it is said how the waits grow.
pub(super) fn setback(node: &Node, findings: &mut Findings) -> Option<RetryPolicy> {
    policy(node, &SETBACK, RetryPolicy { backoff: Backoff::Fixed, ..RetryPolicy::default() }, findings)
}

fn policy(node: &Node, keys: &Keys, default: RetryPolicy, findings: &mut Findings) -> Option<RetryPolicy> {
    let fields = Fields::open(node, keys, findings)?;
    let max = fields.or("max", default.max.into(), findings, |n, f| whole(n, f, 0..=1_000_000));
    let backoff = fields.or("backoff", default.backoff, findings, backoff);
    let delay = fields.or("delay", default.delay, findings, |n, f| duration(n, f, Duration::ZERO));
    // A first wait beyond the usual limit raises the limit; only a stated limit can be in conflict with it.
    let usual = default.max_delay.max(delay);
    let max_delay = fields.or("max_delay", usual, findings, |n, f| duration(n, f, Duration::ZERO));
    if max_delay < delay
        && let Some(node) = fields.get("max_delay")
    {
        findings.fault(&node.place, "`max_delay` is shorter than `delay`");
    }
    Some(RetryPolicy { max: u32::try_from(max).ok()?, backoff, delay, max_delay })
}

fn backoff(node: &Node, findings: &mut Findings) -> Option<Backoff> {
    let Kind::List(delays) = &node.kind else {
        let words = [
            ("exponential", &Backoff::Exponential),
            ("linear", &Backoff::Linear),
            ("fixed", &Backoff::Fixed),
        ];
        return one_of(node, findings, &words).cloned();
    };
    if delays.is_empty() {
        findings.fault(&node.place, "a list of waits needs at least one");
    }
    let read: Vec<Duration> =
        delays.iter().filter_map(|delay| duration(delay, findings, Duration::ZERO)).collect();
    Some(Backoff::List(read))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn what_is_not_said_is_the_default() {
        assert_eq!(read_text("{}", read), Ok(RetryPolicy::default()));
        let policy = read_text("{max: 5, backoff: fixed, delay: 10m}", read).unwrap();
        assert_eq!((policy.max, policy.backoff), (5, Backoff::Fixed));
        assert_eq!(policy.delay, Duration::from_secs(600));
        let policy = read_text("{backoff: [1s, 1m]}", read).unwrap();
        assert_eq!(policy.backoff, Backoff::List(vec![Duration::from_secs(1), Duration::from_secs(60)]));
    }

    #[test]
    fn a_setback_is_as_long_every_time_unless_it_grows() {
        let policy = read_text("{delay: 30s, max: 5}", setback).unwrap();
        assert_eq!((policy.max, policy.backoff), (5, Backoff::Fixed));
        let policy = read_text("{delay: 30s, backoff: linear, max_delay: 2m}", setback).unwrap();
        assert_eq!((policy.backoff, policy.max_delay), (Backoff::Linear, Duration::from_secs(120)));
    }

    #[test]
    fn every_fault_is_told() {
        assert_eq!(
            faults_of("{max: -1, backoff: quadratic, delay: 1m, max_delay: 1s, dely: 1s}", read),
            [
                "\"-1\" is not a whole number",
                "\"quadratic\" is not one of exponential, linear, fixed",
                "`max_delay` is shorter than `delay`",
                "unknown setting \"dely\" of `retry`; did you mean `delay`?",
            ]
        );
        assert_eq!(faults_of("{backoff: []}", read), ["a list of waits needs at least one"]);
    }
}
