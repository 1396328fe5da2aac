//! The counters of queues.

use pointsman_core::store::QueueView;

use crate::Harness;
use crate::fixture::*;

/// The counters ready, waiting, scheduled, running, halted, missing.
fn queue_counts(queue: &QueueView) -> [u64; 6] {
    [
        queue.ready_count,
        queue.waiting_count,
        queue.scheduled_count,
        queue.running_count,
        queue.halted_count,
        queue.missing_count,
    ]
}

pub async fn queue_counters_follow_a_task_through_its_states(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let at = async |fixture: &StoreFixture<'_>| queue_counts(&fixture.read_queue("index").await);
    assert_eq!(at(&fixture).await, [0; 6]);
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    assert_eq!(at(&fixture).await, [1, 1, 0, 0, 0, 0], "a head and one behind it");
    fixture.schedule_tasks(5).await;
    assert_eq!(at(&fixture).await, [0, 1, 1, 0, 0, 0]);
    let task = fixture.claim_one().await;
    assert_eq!(at(&fixture).await, [0, 1, 0, 1, 0, 0]);
    fixture.fail(&task).await;
    assert_eq!(at(&fixture).await, [0, 2, 0, 0, 0, 0], "waiting for its time");
    fixture.advance_clock(RETRY_DELAY_SECS);
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    assert_eq!(at(&fixture).await, [0, 1, 0, 0, 1, 0]);
    fixture.retry_task(&task.id).await.expect("it is halted");
    assert_eq!(at(&fixture).await, [1, 1, 0, 0, 0, 0]);
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(at(&fixture).await, [1, 0, 0, 0, 0, 0], "the next one is the head now");
    let mut fixture = fixture.reopen().await;
    assert_eq!(at(&fixture).await, [1, 0, 0, 0, 0, 0], "also after a restart");
    fixture.undefine_handler_and_rescue("index").await;
    assert_eq!(at(&fixture).await, [0, 0, 0, 0, 0, 1]);
    fixture.register(RegistrationBuilder::single_handler().halt_on_error("index")).await;
    fixture.adopt_missing_tasks("index").await;
    assert_eq!(at(&fixture).await, [1, 0, 0, 0, 0, 0]);
    fixture.run_all_ready_tasks().await;
    assert_eq!(at(&fixture).await, [0; 6]);
}

pub async fn sync_gated_and_delayed_tasks_count_as_waiting(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["check!", "index"]))
            .await;
    fixture.emit(new_event("record")).await;
    fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    assert_eq!(queue_counts(&fixture.read_queue("check").await), [1, 1, 0, 0, 0, 0]);
    assert_eq!(queue_counts(&fixture.read_queue("index").await), [0, 2, 0, 0, 0, 0]);
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(queue_counts(&fixture.read_queue("index").await), [1, 1, 0, 0, 0, 0]);
}

pub async fn each_tenant_has_its_own_queue(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    fixture.emit_copies(2, new_event("record").for_tenant("shop")).await;
    fixture.emit(new_event("record")).await;
    let mut seen: Vec<_> = expect_ok(fixture.store.list_queues(None).await)
        .iter()
        .filter(|queue| queue_counts(queue) != [0; 6])
        .map(|queue| (queue.handler.to_string(), queue.tenant.to_string(), queue.ready_count))
        .collect();
    seen.sort();
    let line = |handler: &str, tenant: &str, ready| (handler.to_string(), tenant.to_string(), ready);
    assert_eq!(
        seen,
        [
            line("index", "default", 1),
            line("index", "shop", 2),
            line("notify", "default", 1),
            line("notify", "shop", 2),
        ]
    );
}
