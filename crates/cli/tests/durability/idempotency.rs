//! Concurrent duplicates: of all requests with one idempotency key exactly one emits.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::raw_http::{self, RawResponse};
use crate::seed;
use crate::test_server::{ServerFixture, WAIT_TIMEOUT};
use pointsman_testing::Rng;

const CONCURRENT_REQUESTS: usize = 500;

/// Sends all bodies concurrently with one key.
async fn send_concurrently(pointsman: &ServerFixture, key: &str, bodies: &[&str]) -> Vec<RawResponse> {
    let send = |body: &&str| {
        let request = format!(
            "POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            pointsman.token(),
            body.len(),
        );
        let address = pointsman.address().to_owned();
        async move {
            raw_http::send_raw(&address, request.as_bytes(), WAIT_TIMEOUT)
                .await
                .into_response()
                .expect("a response")
        }
    };
    join_all(bodies.iter().map(send)).await
}

/// The bodies of the responses by status.
fn group_bodies_by_status(responses: Vec<RawResponse>) -> BTreeMap<u16, Vec<String>> {
    let mut by_status: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for response in responses {
        by_status.entry(response.status).or_default().push(response.text());
    }
    by_status
}

/// The number of events in the journal.
async fn count_events(pointsman: &ServerFixture) -> usize {
    let request = format!(
        "GET /api/v1/events?after=0&tenant=default HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        pointsman.token()
    );
    let response =
        raw_http::send_raw(pointsman.address(), request.as_bytes(), WAIT_TIMEOUT).await.into_response();
    response.expect("a response").json()["eventSnapshots"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_repeats_emits_and_all_get_the_same_response() {
    let mut pointsman = ServerFixture::new("");
    let node = tokio::task::block_in_place(|| pointsman.serve_on_new_port());
    let body = r#"[{"type":"order.placed","key":"order:1","value":1},{"type":"order.paid","key":"order:1"}]"#;
    let responses =
        group_bodies_by_status(send_concurrently(&pointsman, "one key", &[body; CONCURRENT_REQUESTS]).await);
    let counts: Vec<_> = responses.iter().map(|(status, list)| (*status, list.len())).collect();
    assert_eq!(counts, [(200, CONCURRENT_REQUESTS - 1), (201, 1)]);
    assert!(responses[&200].iter().all(|text| *text == responses[&201][0]));
    node.kill();

    // After a kill of the server, a repeat still gets the same response.
    let _node = tokio::task::block_in_place(|| pointsman.serve_on_new_port());
    let again = send_concurrently(&pointsman, "one key", &[body]).await;
    assert_eq!((again[0].status, again[0].text()), (200, responses[&201][0].clone()));
    assert_eq!(count_events(&pointsman).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_bodies_with_the_same_key_wins_and_the_others_conflict() {
    let mut rng = Rng::new(seed::choose_seed());
    let mut pointsman = ServerFixture::new("");
    let _node = tokio::task::block_in_place(|| pointsman.serve_on_new_port());
    let bodies = [r#"{"type":"a"}"#, r#"{"type":"b"}"#, r#"{"type":"a","value":1}"#];
    let bodies: Vec<&str> = (0..CONCURRENT_REQUESTS).map(|_| *rng.choose(&bodies)).collect();
    let responses = send_concurrently(&pointsman, "another key", &bodies).await;
    let winner = responses.iter().position(|response| response.status == 201).expect("one emits");
    for (response, body) in responses.iter().zip(&bodies) {
        if *body != bodies[winner] {
            assert_eq!(response.assert_problem(), 409);
        } else {
            assert_eq!(response.text(), responses[winner].text());
        }
    }
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 1);
    assert_eq!(count_events(&pointsman).await, 1);
}
