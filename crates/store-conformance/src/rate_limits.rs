//! Rate limits of handlers. The core's [`LimiterAndBreakerState`] decides; the store keeps it.

use std::time::Duration;

use pointsman_core::limit::{Admission, LimiterAndBreakerState};
use pointsman_core::{Limits, Timestamp};

use crate::Harness;
use crate::fixture::*;

/// The number of tasks that `60/m` lets start at once after a pause; after that it lets one start per second.
const BURST_SIZE: usize = 6;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["notify"])
        .rate_limit("index", "60/m")
}

pub async fn starts_never_exceed_the_rate_limit(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(20, new_event("record")).await;
    let claims = fixture.claim_with_remaining_work(20).await;
    assert_eq!(
        (claims.tasks.len(), claims.has_more, claims.next_task_due_at),
        (BURST_SIZE, false, Some(fixture.seconds_from_now(1)))
    );
    for task in &claims.tasks {
        fixture.succeed(task).await;
    }
    assert!(fixture.claim(20).await.is_empty(), "finishing does not count as a start");
    fixture.advance_clock(1);
    let claims = fixture.claim_with_remaining_work(20).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (1, Some(fixture.seconds_from_now(1))));
    fixture.advance_clock(3);
    assert_eq!(fixture.claim(20).await.len(), 3);
}

/// The core's rate limiter allows exactly the same starts, whatever the claims.
pub async fn starts_match_the_rate_limiter_over_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let limits = fixture.registration.expect_handler_def("index").limits.clone();
    fixture.emit_copies(400, new_event("record")).await;
    let (mut limiter_state, mut starts, beginning) = (LimiterAndBreakerState::default(), 0u64, fixture.now);
    for round in 0..200usize {
        let max = [1, 3, 20, 2][round % 4];
        let claims = fixture.claim_with_remaining_work(max).await;
        let allowed = match limiter_state.admission(&limits, 0, fixture.now) {
            Admission::Admitted(left) => max.min(left as usize),
            Admission::ConcurrencyFull | Admission::RateLimited(_) | Admission::BreakerOpen(_) => 0,
        };
        assert_eq!(claims.tasks.len(), allowed, "round {round}");
        for task in &claims.tasks {
            limiter_state.record_start(&limits, fixture.now);
            fixture.succeed(task).await;
        }
        starts += claims.tasks.len() as u64;
        fixture.now = fixture.now.plus(Duration::from_millis([100, 900, 2500, 1700][round % 4]));
    }
    let seconds = fixture.now.duration_since(beginning).as_secs();
    assert!(starts * 10 >= seconds * 8 && starts * 10 <= seconds * 11, "{starts} in {seconds} s");
}

/// Twenty a second with a burst of two: at most 21 starts in any second.
pub async fn no_time_window_has_more_starts_than_rate_and_burst(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["index"])
        .unordered("index")
        .rate_limit("index", "20/s");
    let mut fixture = StoreFixture::new(harness, registration).await;
    fixture.emit_copies(200, new_event("record")).await;
    let mut starts = Vec::new();
    for round in 0..240usize {
        let claimed = fixture.claim(20).await;
        starts.extend(vec![fixture.now; claimed.len()]);
        for task in &claimed {
            fixture.succeed(task).await;
        }
        let pause = if round % 120 == 0 { 1_500 } else { 10 };
        fixture.now = fixture.now.plus(Duration::from_millis(pause));
    }
    let within = |(first, start): (usize, &Timestamp)| {
        starts[first..].iter().take_while(|later| later.duration_since(*start) < secs(1)).count()
    };
    let max_per_second = starts.iter().enumerate().map(within).max();
    assert_eq!(max_per_second, Some(21));
    assert!(starts.len() >= 40, "{}", starts.len());
}

pub async fn rate_limit_applies_across_tenants_and_nodes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    for tenant_name in ["default", "shop", "depot"] {
        fixture.emit_copies(5, new_event("record").for_tenant(tenant_name)).await;
    }
    assert_eq!(fixture.claim(4).await.len(), 4);
    fixture.node_id = expect_ok(fixture.store.join_node("second", fixture.now).await);
    assert_eq!(fixture.claim(10).await.len(), BURST_SIZE - 4);
}

pub async fn rate_limit_applies_to_appended_and_prefetched_tasks(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let batches = vec![new_emit_batch(vec![new_event("record"); 4])];
    let (_, claims) =
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(10)), fixture.now).await);
    assert_eq!(claims.tasks.len(), 4);
    fixture.emit_copies(10, new_event("record")).await;
    fixture.schedule_tasks(10).await;
    assert_eq!(fixture.claim(10).await.len(), BURST_SIZE - 4);
    let attempts = vec![finished_attempt(&claims.tasks[0], success())];
    let (_, claims) = expect_ok(
        fixture.store.finish_attempts(attempts, Some(fixture.claim_request(10)), fixture.now).await,
    );
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, Some(fixture.seconds_from_now(1))));
    fixture.advance_clock(2);
    assert_eq!(fixture.claim(10).await.len(), 2);
}

/// Every attempt counts, also the second of the same task.
pub async fn every_attempt_counts_against_the_rate_limit(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(2, new_event("record")).await;
    for _ in 0..BURST_SIZE / 2 {
        for task in fixture.claim(2).await {
            fixture.release_task(&task).await;
        }
    }
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, Some(fixture.seconds_from_now(1))));
    fixture.advance_clock(1);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn next_due_includes_the_next_start_allowed_by_the_rate_limit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("note").due_at(fixture.seconds_from_now(60))).await;
    assert_eq!(
        fixture.claim_with_remaining_work(20).await.next_task_due_at,
        Some(fixture.seconds_from_now(60))
    );
    fixture.emit_copies(20, new_event("record")).await;
    fixture.claim(20).await;
    assert_eq!(
        fixture.claim_with_remaining_work(20).await.next_task_due_at,
        Some(fixture.seconds_from_now(1))
    );
}

pub async fn a_rate_limited_handler_does_not_delay_other_handlers(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(500, new_event("record").with_priority(9000)).await;
    fixture.claim(20).await;
    fixture.emit_copies(5, new_event("note").with_priority(1)).await;
    fixture.schedule_tasks(8).await;
    let claimed = fixture.claim(5).await;
    assert_eq!(claimed.len(), 5);
    assert!(claimed.iter().all(|task| task.handler == handler_name("notify")));
}

pub async fn rate_limit_state_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(20, new_event("record")).await;
    fixture.claim(20).await;
    let mut fixture = fixture.reopen().await;
    let claims = fixture.claim_with_remaining_work(20).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, Some(fixture.seconds_from_now(1))));
    fixture.advance_clock(1);
    assert_eq!(fixture.claim(20).await.len(), 1);
}

pub async fn rate_limit_changes_with_the_registration(harness: &dyn Harness) {
    let free = RegistrationBuilder::default().route("record", &["index"]);
    let mut fixture = StoreFixture::new(harness, free.clone()).await;
    fixture.emit_copies(100, new_event("record")).await;
    assert_eq!(fixture.claim(10).await.len(), 10);
    fixture.register(free.clone().rate_limit("index", "60/m")).await;
    assert_eq!(fixture.claim(100).await.len(), BURST_SIZE);
    fixture.register(free.clone().limits("index", Limits::default())).await;
    assert_eq!(fixture.claim(100).await.len(), 84);
}

pub async fn rate_and_concurrency_limits_both_apply(harness: &dyn Harness) {
    let rate = Some("60/m".parse().expect("a rate"));
    let limits = Limits { rate, concurrency: Some(2), ..Limits::default() };
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().limits("index", limits)).await;
    fixture.emit_copies(20, new_event("record")).await;
    let mut starts = 0;
    loop {
        let claimed = fixture.claim(20).await;
        assert!(claimed.len() <= 2);
        if claimed.is_empty() {
            break;
        }
        starts += claimed.len();
        for task in &claimed {
            fixture.succeed(task).await;
        }
    }
    assert_eq!(starts, BURST_SIZE);
    fixture.advance_clock(60);
    assert_eq!(fixture.claim(20).await.len(), 2);
}

pub async fn starts_while_the_clock_ran_ahead_do_not_block_the_handler(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().rate_limit("index", "10/m")).await;
    fixture.emit_copies(5, new_event("record")).await;
    let correct_time = fixture.now;
    fixture.advance_clock(86_400);
    fixture.claim_one().await;
    fixture.now = correct_time;
    let mut minutes = 0;
    while fixture.claim(1).await.is_empty() {
        fixture.advance_clock(60);
        minutes += 1;
        assert!(minutes < 5, "the handler is blocked as long as the clock was ahead");
    }
}
