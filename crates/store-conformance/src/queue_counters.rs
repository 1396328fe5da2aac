//! What the counters of a queue tell.

use pointsman_core::store::QueueView;

use crate::Harness;
use crate::fixture::*;

/// ready, waiting, scheduled, running, halted, missing
fn counts(queue: &QueueView) -> [u64; 6] {
    [queue.ready, queue.waiting, queue.scheduled, queue.running, queue.halted, queue.missing]
}

pub async fn queue_counters_follow_a_task_through_its_states(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let at = async |world: &StoreFixture<'_>| counts(&world.read_queue("index").await);
    assert_eq!(at(&world).await, [0; 6]);
    world.emit_many(2, new_event("record").with_key("a")).await;
    assert_eq!(at(&world).await, [1, 1, 0, 0, 0, 0], "a head and one behind it");
    world.schedule_ahead(5).await;
    assert_eq!(at(&world).await, [0, 1, 1, 0, 0, 0]);
    let task = world.claim_one().await;
    assert_eq!(at(&world).await, [0, 1, 0, 1, 0, 0]);
    world.fail(&task).await;
    assert_eq!(at(&world).await, [0, 2, 0, 0, 0, 0], "waiting for its time");
    world.advance_clock(RETRY_DELAY_SECS);
    let task = world.claim_one().await;
    world.fail_permanently(&task).await;
    assert_eq!(at(&world).await, [0, 1, 0, 0, 1, 0]);
    world.retry_task(&task.id).await.expect("it is halted");
    assert_eq!(at(&world).await, [1, 1, 0, 0, 0, 0]);
    world.succeed(&world.claim_one().await).await;
    assert_eq!(at(&world).await, [1, 0, 0, 0, 0, 0], "the next one is the head now");
    let mut world = world.reopen().await;
    assert_eq!(at(&world).await, [1, 0, 0, 0, 0, 0], "also after a restart");
    world.undefine_handler("index").await;
    assert_eq!(at(&world).await, [0, 0, 0, 0, 0, 1]);
    world.register(RegistrationBuilder::single_handler().halt_on_error("index")).await;
    world.adopt_missing_tasks("index").await;
    assert_eq!(at(&world).await, [1, 0, 0, 0, 0, 0]);
    world.run_all_ready().await;
    assert_eq!(at(&world).await, [0; 6]);
}

pub async fn gated_and_delayed_tasks_count_as_waiting(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["check!", "index"]))
            .await;
    world.emit(new_event("record")).await;
    world.emit(new_event("record").due_at(world.seconds_from_now(60))).await;
    assert_eq!(counts(&world.read_queue("check").await), [1, 1, 0, 0, 0, 0]);
    assert_eq!(counts(&world.read_queue("index").await), [0, 2, 0, 0, 0, 0]);
    world.succeed(&world.claim_one().await).await;
    assert_eq!(counts(&world.read_queue("index").await), [1, 1, 0, 0, 0, 0]);
}

pub async fn each_tenant_has_its_own_queue(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    world.emit_many(2, new_event("record").for_tenant("shop")).await;
    world.emit(new_event("record")).await;
    let mut seen: Vec<_> = expect_ok(world.store.queues(None).await)
        .iter()
        .filter(|queue| counts(queue) != [0; 6])
        .map(|queue| (queue.handler.to_string(), queue.tenant.to_string(), queue.ready))
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
