use super::{read_metric, start_server_with_settings};

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_throttled_and_valid_ones_are_not() {
    let test_server = start_server_with_settings("max_connections: 64").await;
    let mut throttled = 0;
    for number in 0..300 {
        let response = test_server.call_with_token(&format!("guess-{number}"), "GET", "/api/v1/me", "").await;
        match response.checked_problem_status() {
            401 => {}
            429 => {
                let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=2).contains(&wait), "{response:?}");
                throttled += 1;
            }
            _ => panic!("{response:?}"),
        }
        assert!(number >= 100 || throttled == 0, "the first ones are not throttled");
    }
    assert!(throttled > 0);
    for _ in 0..20 {
        assert_eq!(test_server.call_with_token("viewer", "GET", "/api/v1/me", "").await.status, 200);
    }
    // A wrong token is ignored where no token is needed.
    assert_eq!(test_server.call_with_token("guess", "GET", "/livez", "").await.status, 200);
    assert_eq!(read_metric(&test_server, "pointsman_http_failed_authentications_total").await, 300);
    let refused =
        read_metric(&test_server, "pointsman_http_refused_total{limit=\"failed_authentications\"}").await;
    assert_eq!(refused, throttled);
}
