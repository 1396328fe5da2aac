//! The circuit breaker: busy or failing targets get no further requests from any task.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "handler_support/test_server.rs"]
mod test_server;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use common::*;
use pointsman_core::TaskStatus;
use pointsman_core::limit::BREAKER_FAILURE_THRESHOLD;
use pointsman_core::task::AttemptOutcome;
use test_server::{build_response, http_handler, start_server};

#[tokio::test]
async fn a_busy_target_costs_one_request_and_no_retry() {
    let recovers_at: Arc<Mutex<Option<Instant>>> = Arc::default();
    let refused_count = Arc::new(AtomicUsize::new(0));
    let (url, inbox) = {
        let (recovers_at, refused_count) = (recovers_at.clone(), refused_count.clone());
        start_server(move || {
            let recovers_at =
                *recovers_at.lock().unwrap().get_or_insert_with(|| Instant::now() + Duration::from_secs(1));
            match Instant::now() < recovers_at {
                true => {
                    refused_count.fetch_add(1, Ordering::SeqCst);
                    build_response(429, &[("retry-after", "1")], "")
                }
                false => build_response(200, &[], ""),
            }
        })
        .await
    };
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .slots(1)
        .handler_with_runner("h", Some(Arc::new(http_handler(url))), |def| def.retry.max_retries = 0)
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let events = (0..10).map(|number| keyed_event("a", &format!("k{number}"))).collect();
    let receipt = emit(&engine, events).await;
    let ended = watcher.wait_for_ended_tasks(10).await;
    assert!(ended.iter().all(|change| change.status == TaskStatus::Done));
    assert_eq!(
        refused_count.load(Ordering::SeqCst),
        1,
        "no other request was sent while the target was busy"
    );
    assert_eq!(inbox.take().len(), 11);
    let mut snoozes = 0;
    for sequenced in &receipt.events {
        let done = read_task(&store, &sequenced.tasks[0]).await;
        assert_eq!(done.lifecycle.retries, 0);
        snoozes += done.attempts.iter().filter(|attempt| attempt.outcome == AttemptOutcome::Snoozed).count();
    }
    assert_eq!(snoozes, 1);
    engine.stop(TEST_TIMEOUT).await;
}

/// Records the number of concurrent requests, request by request.
#[derive(Clone, Default)]
struct ConcurrentRequests {
    running_count: Arc<AtomicUsize>,
    observed_counts: Arc<Mutex<Vec<usize>>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_target_that_keeps_failing_gets_one_request_at_a_time_until_it_recovers() {
    const SLOT_COUNT: usize = 8;
    const FAILED_REQUEST_COUNT: usize = 40;
    let requests = ConcurrentRequests::default();
    let observed = requests.observed_counts.clone();
    let app = Router::new().fallback(move || {
        let requests = requests.clone();
        async move {
            let concurrent = requests.running_count.fetch_add(1, Ordering::SeqCst) + 1;
            let number = {
                let mut observed = requests.observed_counts.lock().unwrap();
                observed.push(concurrent);
                observed.len()
            };
            tokio::time::sleep(Duration::from_millis(5)).await;
            requests.running_count.fetch_sub(1, Ordering::SeqCst);
            if number <= FAILED_REQUEST_COUNT { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });

    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .slots(SLOT_COUNT)
        .handler_with_runner("h", Some(Arc::new(http_handler(url))), |def| {
            def.retry.max_retries = 100;
            def.retry.delay = Duration::from_millis(1);
        })
        .route("a", "h")
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, (0..50).map(|number| keyed_event("a", &format!("k{number}"))).collect()).await;
    let ended = watcher.wait_for_ended_tasks(50).await;
    assert!(ended.iter().all(|change| change.status == TaskStatus::Done));
    // When the breaker opened, up to one request for each slot was still running.
    let observed = observed.lock().unwrap().clone();
    let while_failing = &observed[BREAKER_FAILURE_THRESHOLD as usize + SLOT_COUNT..FAILED_REQUEST_COUNT];
    assert!(while_failing.iter().all(|concurrent| *concurrent == 1), "{observed:?}");
    assert!(
        observed[..BREAKER_FAILURE_THRESHOLD as usize].iter().max() > Some(&1),
        "before the breaker opened, requests were concurrent: {observed:?}"
    );
    engine.stop(TEST_TIMEOUT).await;
}
