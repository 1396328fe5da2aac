//! Whose turn it is to write: whoever waits gets it, the first who came first.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::place::{Hand, Place};

const BEGIN: &str = include_str!("../src/lua/begin_transaction.lua");
const COMMIT: &str = include_str!("../src/lua/commit.lua");
const NAMES: [&str; 5] = ["point", "told", "turn", "turn:waiting", "touched"];

/// Asks for the turn; answers whether it has it.
fn ask(hand: &mut Hand, who: &str) -> bool {
    let names = NAMES.into_iter().chain(["turn:asked"]);
    let keys: Vec<String> = names.map(|name| format!(":pointsman:{name}")).collect();
    let words =
        ["EVAL", BEGIN, "6"].into_iter().chain(keys.iter().map(String::as_str)).chain([who, "60000", ""]);
    hand.ask(&words.collect::<Vec<_>>()).list()[0].number().unwrap() == 1
}

/// Hands the turn on; answers who has it then.
fn hand_on(hand: &mut Hand, who: &str) -> Option<String> {
    let names = NAMES.into_iter().chain(["turn:wake:"]);
    let keys: Vec<String> = names.map(|name| format!(":pointsman:{name}")).collect();
    let prefix = hand.prefix.clone();
    let words = ["EVAL", COMMIT, "6"].into_iter().chain(keys.iter().map(String::as_str));
    let words = words.chain([who, "60000", "", "", "", "", &prefix, "", "0"]);
    hand.ask(&words.collect::<Vec<_>>());
    hand.text(&["GET", ":pointsman:turn"])
}

/// Also those who come in the same second, and whatever they are called: else one of three who always write would hardly
/// ever have a turn.
#[test]
fn whoever_waits_longest_is_next() {
    let mut hand = Place::shared().connect();
    for round in 0..5 {
        assert!(ask(&mut hand, "b"));
        assert!(!ask(&mut hand, "c") && !ask(&mut hand, "a") && !ask(&mut hand, "c"));
        assert_eq!(hand_on(&mut hand, "b").as_deref(), Some("c"), "in round {round}");
        assert!(ask(&mut hand, "c") && !ask(&mut hand, "b"));
        assert_eq!(hand_on(&mut hand, "c").as_deref(), Some("a"));
        assert_eq!(hand_on(&mut hand, "a").as_deref(), Some("b"));
        assert!(ask(&mut hand, "b"));
        assert_eq!(hand_on(&mut hand, "b"), None);
    }
}

#[test]
fn whoever_waits_for_long_keeps_its_place_and_whoever_is_gone_does_not() {
    let mut hand = Place::shared().connect();
    assert!(ask(&mut hand, "a") && !ask(&mut hand, "gone") && !ask(&mut hand, "patient"));
    // Both wait for a minute, and one of them has long asked for the last time.
    let seconds: i64 = hand.texts(&["TIME"])[0].parse().unwrap();
    let [minute_ago, long_ago] = [60, 30].map(|ago| ((seconds - ago) * 1_000_000).to_string());
    hand.ask(&["ZADD", ":pointsman:turn:waiting", &minute_ago, "gone", &minute_ago, "patient"]);
    hand.ask(&["ZADD", ":pointsman:turn:asked", &long_ago, "gone"]);
    assert!(!ask(&mut hand, "late"));
    assert_eq!(hand.texts(&["ZRANGE", ":pointsman:turn:waiting", "0", "-1"]), ["patient", "late"]);
    assert_eq!(hand_on(&mut hand, "a").as_deref(), Some("patient"));
}

/// Nobody waits for those who waited before everything was stopped.
#[test]
fn the_line_ends_when_nobody_asks_any_more() {
    let mut hand = Place::shared().connect();
    assert!(ask(&mut hand, "a") && !ask(&mut hand, "b"));
    for key in [":pointsman:turn:waiting", ":pointsman:turn:asked"] {
        assert!((1..=3000).contains(&hand.number(&["PTTL", key])));
    }
    assert_eq!(hand_on(&mut hand, "a").as_deref(), Some("b"));
    assert!(ask(&mut hand, "b"));
    assert_eq!(hand.number(&["EXISTS", ":pointsman:turn:waiting", ":pointsman:turn:asked"]), 0);
}
