//! The scripts by themselves, for what hardly ever happens.

use crate::common::place::{Hand, Place, left};

const BEGIN: &str = include_str!("../../src/lua/begin_transaction.lua");
const COMMIT: &str = include_str!("../../src/lua/commit.lua");
const TAKE: &str = include_str!("../../src/lua/claim_objects.lua");

const BEFORE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 1, 1, 1, 1, 1, 1];
const AFTER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 5, 2, 2, 2, 2, 2, 2, 2, 2];

/// Commits by hand: what was taken out of outboxes (object, holder, id, number of events), and commands. Each is the
/// number of its words and its words.
fn commit(hand: &mut Hand, fences: &[[&str; 4]], writes: &[&[&str]]) -> String {
    commit_telling(hand, "", fences, writes)
}

/// The same, with what it tells of what it wrote.
fn commit_telling(hand: &mut Hand, touched: &str, fences: &[[&str; 4]], writes: &[&[&str]]) -> String {
    let mut words: Vec<Vec<u8>> = ["EVAL", COMMIT, "6"].map(|word| word.as_bytes().to_vec()).into();
    let names = ["point", "told", "turn", "turn:waiting", "touched", "turn:wake:"];
    words.extend(names.iter().map(|name| format!(":pointsman:{name}").into_bytes()));
    words.extend(["me", "3000"].map(|word| word.as_bytes().to_vec()));
    words.extend([BEFORE.to_vec(), AFTER.to_vec(), AFTER.to_vec(), touched.into()]);
    words.extend([hand.prefix.clone(), String::new(), fences.len().to_string()].map(String::into_bytes));
    words.extend(fences.iter().flatten().map(|word| word.as_bytes().to_vec()));
    for write in writes {
        words.push(write.len().to_string().into_bytes());
        words.extend(write.iter().map(|word| word.as_bytes().to_vec()));
    }
    hand.text(&words).unwrap()
}

/// A place where the last commit was `BEFORE`.
fn place() -> Hand {
    let mut hand = Place::shared().connect();
    hand.ask(&[b"SET".as_slice(), b":pointsman:point", &BEFORE]);
    hand.ask(&[b"LPUSH".as_slice(), b":pointsman:told", &BEFORE]);
    hand
}

fn mark(hand: &mut Hand) -> String {
    hand.key("mark")
}

/// Scripts are not rolled back. So what could fail is looked at before anything is written.
#[test]
fn a_commit_that_acknowledges_more_than_is_there_writes_nothing() {
    let mut hand = place();
    let mark = mark(&mut hand);
    hand.holds("w", "o", Some((&left("a", 0), "7")));
    let queued = left("a", 1);
    hand.ask(&["LPUSH", ":o:events", &queued]);
    let writes: [&[&str]; 2] = [&["SET", &mark, "1"], &["acknowledge", "o", "", "", "set aside\n"]];
    assert_eq!(commit(&mut hand, &[["o", "w", "7", "3"]], &writes), "fenced");
    let left = (hand.number(&["LLEN", ":o:events"]), hand.number(&["LLEN", ":event.worker:w:event"]));
    assert_eq!((left, hand.number(&["EXISTS", ":mark"])), ((1, 1), 0));
    let writes: [&[&str]; 2] = [&["SET", &mark, "1"], &["acknowledge", "o", "", "aside "]];
    assert_eq!(commit(&mut hand, &[["o", "w", "7", "2"]], &writes), "done");
    assert_eq!(hand.texts(&["LRANGE", ":events.set.aside", "0", "-1"]), [format!("aside {queued}")]);
    assert_eq!((hand.number(&["EXISTS", ":mark"]), hand.number(&["LLEN", ":o:events"])), (1, 0));
}

#[test]
fn a_commit_is_refused_if_the_outbox_is_not_as_it_was_seen() {
    for fence in [
        ["o", "v", "7", "1"],
        ["o", "w", "8", "1"],
        ["o", "w", "", "1"],
        ["o", "", "", "1"],
        ["p", "w", "", "0"],
    ] {
        let mut hand = place();
        let mark = mark(&mut hand);
        hand.holds("w", "o", Some((&left("a", 0), "7")));
        assert_eq!(commit(&mut hand, &[fence], &[&["SET", &mark, "1"]]), "fenced", "{fence:?}");
        assert_eq!(hand.number(&["EXISTS", ":mark"]), 0);
    }
}

/// Its answer was lost, and others have committed since.
#[test]
fn a_commit_that_is_sent_again_knows_itself() {
    let mut hand = place();
    let key = hand.key("list");
    let write: [&[&str]; 1] = [&["RPUSH", &key, "1"]];
    assert_eq!(commit(&mut hand, &[], &write), "done");
    assert_eq!(commit(&mut hand, &[], &write), "done");
    for n in 6..16 {
        let later = [[0, 0, 0, 0, 0, 0, 0, n], [n; 8]].concat();
        hand.ask(&[b"SET".as_slice(), b":pointsman:point", &later]);
        hand.ask(&[b"LPUSH".as_slice(), b":pointsman:told", &later]);
        assert_eq!(commit(&mut hand, &[], &write), "done", "it is known among what was told");
    }
    assert_eq!(hand.number(&["LLEN", ":list"]), 1);
    let other = [[0, 0, 0, 0, 0, 0, 0, 5], [9; 8]].concat();
    hand.ask(&[b"DEL".as_slice(), b":pointsman:told"]);
    hand.ask(&[b"LPUSH".as_slice(), b":pointsman:told", &other]);
    hand.ask(&[b"SET".as_slice(), b":pointsman:point", &other]);
    assert_eq!(commit(&mut hand, &[], &write), "behind", "that was another of the same number");
}

#[test]
fn what_a_commit_tells_of_what_it_wrote_is_kept_for_a_while() {
    let touched = |hand: &mut Hand| hand.texts(&["LRANGE", ":pointsman:touched", "0", "-1"]);
    let mut hand = place();
    (0..20).for_each(|n| drop(hand.ask(&["LPUSH", ":pointsman:touched", &format!("before {n}")])));
    assert_eq!(commit_telling(&mut hand, "mine", &[], &[]), "done");
    let kept = touched(&mut hand);
    assert_eq!((kept.len(), kept[0].as_str(), kept[1].as_str()), (16, "mine", "before 19"));
    let mut hand = place();
    hand.ask(&["LPUSH", ":pointsman:touched", "before"]);
    assert_eq!(commit(&mut hand, &[], &[]), "done");
    assert_eq!(touched(&mut hand), [""; 0], "one that does not tell makes the others worthless");
    let mut hand = place();
    hand.ask(&["SET", ":pointsman:touched", "somebody else's"]);
    assert_eq!(commit_telling(&mut hand, "mine", &[], &[]), "done", "nothing depends on it");
    assert_eq!(touched(&mut hand), ["mine"]);
}

#[test]
fn whoever_has_missed_a_little_is_told_what_was_written() {
    let mut hand = Place::shared().connect();
    let point = [[0, 0, 0, 0, 0, 0, 0, 20], [7; 8]].concat();
    hand.ask(&[b"SET".as_slice(), b":pointsman:point", &point]);
    (0..16).for_each(|n| drop(hand.ask(&["LPUSH", ":pointsman:touched", &n.to_string()])));
    let names = ["point", "told", "turn", "turn:waiting", "touched", "turn:asked"];
    let keys = names.map(|name| format!(":pointsman:{name}"));
    let told = |hand: &mut Hand, known: &str| {
        let words = ["EVAL", BEGIN, "6"].into_iter().chain(keys.iter().map(String::as_str));
        let answer = hand.ask(&words.chain(["me", "3000", known]).collect::<Vec<_>>());
        answer.list()[2].clone().list().len()
    };
    assert_eq!(["20", "19", "4", "3", ""].map(|known| told(&mut hand, known)), [0, 1, 16, 0, 0]);
    hand.ask(&["SET", ":pointsman:touched", "somebody else's"]);
    assert_eq!(told(&mut hand, "19"), 0);
}

fn take(hand: &mut Hand, workers: &[&str]) -> Vec<String> {
    take_of(hand, "1000", workers)
}

/// The same, with so many names looked at.
fn take_of(hand: &mut Hand, names: &str, workers: &[&str]) -> Vec<String> {
    let prefix = hand.prefix.clone();
    let words = ["EVAL", TAKE, "1", ":objects.with.events", &prefix, "15000", names];
    hand.texts(&words.iter().chain(workers).collect::<Vec<_>>())
}

#[test]
fn whoever_holds_something_is_told_so_though_others_find_nothing() {
    let mut hand = Place::shared().connect();
    hand.holds("b", "o", Some((&left("a", 0), "7")));
    hand.lives("b");
    assert_eq!(take(&mut hand, &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(take(&mut hand, &["a", "b", "c"]), ["b", "o"], "asked again, it is told the same");
}

#[test]
fn an_object_is_held_by_one_worker() {
    let mut hand = Place::shared().connect();
    hand.push("o", &[left("a", 0)]);
    hand.push("o", &[left("a", 1)]);
    hand.push("p", &[left("a", 2)]);
    hand.push("o", &[left("a", 3)]);
    assert_eq!(take(&mut hand, &["a", "b", "c"]), ["a", "o", "b", "p"]);
    assert_eq!(hand.number(&["EXISTS", ":objects.with.events", ":event.worker:c:object"]), 0);
}

#[test]
fn a_flood_of_names_keeps_nobody_from_what_it_holds() {
    let mut hand = Place::shared().connect();
    hand.lives("other");
    hand.holds("other", "busy", None);
    hand.holds("b", "o", None);
    hand.ask(&["LPUSH", ":objects.with.events", "busy", "busy", "busy", "busy", "busy", "free"]);
    assert_eq!(take_of(&mut hand, "3", &["a", "b", "c"]), ["b", "o"]);
    assert_eq!(take_of(&mut hand, "3", &["a", "b", "c"]), ["a", "free", "b", "o"]);
    assert_eq!(hand.keys("event.worker:*:object").len(), 3);
}
