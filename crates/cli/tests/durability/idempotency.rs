//! Racing duplicates: of all requests with one idempotency key exactly one emits.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::node::{PATIENCE, Place};
use crate::raw::{self, Answer};
use crate::seed;
use pointsman_testing::Chance;

const RACERS: usize = 500;

/// Sends all bodies at once under one key.
async fn race(place: &Place, key: &str, bodies: &[&str]) -> Vec<Answer> {
    let send = |body: &&str| {
        let request = format!(
            "POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            place.token(),
            body.len(),
        );
        let address = place.address().to_owned();
        async move { raw::exchange(&address, request.as_bytes(), PATIENCE).await.answer().expect("an answer") }
    };
    join_all(bodies.iter().map(send)).await
}

/// The answers by their status.
fn by_status(answers: Vec<Answer>) -> BTreeMap<u16, Vec<String>> {
    let mut by_status: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for answer in answers {
        by_status.entry(answer.status).or_default().push(answer.text());
    }
    by_status
}

/// How many events the journal has.
async fn journaled(place: &Place) -> usize {
    let request = format!(
        "GET /api/v1/events?after=0&tenant=default HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        place.token()
    );
    let answer = raw::exchange(place.address(), request.as_bytes(), PATIENCE).await.answer();
    answer.expect("an answer").json()["eventSnapshots"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_repeats_one_emits_and_all_are_told_the_same() {
    let mut place = Place::new("");
    let node = tokio::task::block_in_place(|| place.serve_elsewhere());
    let body = r#"[{"type":"order.placed","key":"order:1","value":1},{"type":"order.paid","key":"order:1"}]"#;
    let answers = by_status(race(&place, "one key", &[body; RACERS]).await);
    let counts: Vec<_> = answers.iter().map(|(status, list)| (*status, list.len())).collect();
    assert_eq!(counts, [(200, RACERS - 1), (201, 1)]);
    assert!(answers[&200].iter().all(|told| *told == answers[&201][0]));
    node.kill();

    // It holds over the death of the server, too.
    let _node = tokio::task::block_in_place(|| place.serve_elsewhere());
    let again = race(&place, "one key", &[body]).await;
    assert_eq!((again[0].status, again[0].text()), (200, answers[&201][0].clone()));
    assert_eq!(journaled(&place).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_bodies_under_one_key_one_wins_and_the_others_conflict() {
    let mut chance = Chance::new(seed::seed());
    let mut place = Place::new("");
    let _node = tokio::task::block_in_place(|| place.serve_elsewhere());
    let kinds = [r#"{"type":"a"}"#, r#"{"type":"b"}"#, r#"{"type":"a","value":1}"#];
    let bodies: Vec<&str> = (0..RACERS).map(|_| *chance.of(&kinds)).collect();
    let answers = race(&place, "another key", &bodies).await;
    let winner = answers.iter().position(|answer| answer.status == 201).expect("one emits");
    for (answer, body) in answers.iter().zip(&bodies) {
        if *body != bodies[winner] {
            assert_eq!(answer.problem(), 409);
        } else {
            assert_eq!(answer.text(), answers[winner].text());
        }
    }
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(journaled(&place).await, 1);
}
