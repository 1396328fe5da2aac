//! The per-key concurrency limit of unordered handlers.

use pointsman_core::Limits;
use pointsman_core::store::ClaimedTask;

use crate::Harness;
use crate::fixture::*;

fn per_key_limit_registration(limit: u32) -> RegistrationBuilder {
    let limits = Limits { concurrency_per_key: Some(limit), ..Limits::default() };
    RegistrationBuilder::single_handler().unordered("index").limits("index", limits)
}

/// Counts the tasks of this object.
fn count_tasks_of_object(tasks: &[ClaimedTask], name: &str) -> usize {
    tasks.iter().filter(|task| task.event().key.as_ref().is_some_and(|key| key.as_str() == name)).count()
}

pub async fn running_tasks_of_an_object_never_exceed_the_per_key_limit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(2)).await;
    for key in ["a", "b"] {
        fixture.emit_copies(5, new_event("record").with_key(key)).await;
    }
    fixture.emit_copies(3, new_event("record")).await;
    let claims = fixture.claim_with_remaining_work(100).await;
    let running = claims.tasks;
    assert_eq!(
        (
            count_tasks_of_object(&running, "a"),
            count_tasks_of_object(&running, "b"),
            running.len(),
            claims.has_more
        ),
        (2, 2, 7, false)
    );
    let a = running
        .iter()
        .find(|task| count_tasks_of_object(std::slice::from_ref(task), "a") == 1)
        .expect("one of them");
    fixture.succeed(a).await;
    let next = fixture.claim(100).await;
    assert_eq!((count_tasks_of_object(&next, "a"), next.len()), (1, 1), "one finished, one starts");
}

pub async fn all_tasks_of_limited_keys_run_eventually(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(2)).await;
    let mut events = Vec::new();
    for n in 0..30 {
        events.push(fixture.emit(new_event("record").with_key(["a", "b", "c"][n % 3])).await);
    }
    fixture.schedule_tasks(10).await;
    let (mut ran, mut running) = (Vec::new(), fixture.claim(100).await);
    while let Some(task) = running.pop() {
        fixture.succeed(&task).await;
        ran.push(task.event().id);
        running.extend(fixture.claim(100).await);
        for key in ["a", "b", "c"] {
            assert!(count_tasks_of_object(&running, key) <= 2, "{key}");
        }
    }
    ran.sort();
    assert_eq!(ran, event_ids_of_receipts(&events));
}

pub async fn a_backlog_of_one_object_does_not_delay_another(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(1)).await;
    fixture.emit_copies(500, new_event("record").with_key("a")).await;
    fixture.claim(1).await;
    fixture.emit_copies(1, new_event("record").with_key("b")).await;
    let claims = fixture.claim_with_remaining_work(1).await;
    assert_eq!((count_tasks_of_object(&claims.tasks, "b"), claims.has_more), (1, false));
}

pub async fn the_per_key_limit_counts_each_tenant_separately(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(1)).await;
    for name in ["default", "shop"] {
        fixture.emit_copies(2, new_event("record").with_key("a").for_tenant(name)).await;
    }
    assert_eq!(fixture.claim(10).await.len(), 2);
}

/// A task that waits for its due time frees its slot, and needs one again when it is due.
pub async fn delayed_tasks_use_no_per_key_slot(harness: &dyn Harness) {
    for snooze in [false, true] {
        let mut fixture = StoreFixture::new(harness, per_key_limit_registration(2)).await;
        fixture.emit_copies(5, new_event("record").with_key("a")).await;
        fixture
            .emit(new_event("record").with_key("a").due_at(fixture.seconds_from_now(RETRY_DELAY_SECS)))
            .await;
        for task in fixture.claim(10).await {
            match snooze {
                true => drop(fixture.snooze_task(&task, RETRY_DELAY_SECS).await),
                false => drop(fixture.fail(&task).await),
            }
        }
        let running = fixture.claim(10).await;
        assert_eq!(running.len(), 2, "two others");
        assert!(running.iter().all(|task| task.attempt == 1));
        fixture.advance_clock(RETRY_DELAY_SECS);
        assert!(fixture.claim(10).await.is_empty(), "all slots are in use");
        for task in &running {
            fixture.succeed(task).await;
        }
        assert_eq!(fixture.claim(10).await.len(), 2);
        assert!(fixture.claim(10).await.is_empty());
    }
}

pub async fn every_attempt_end_frees_a_per_key_slot(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, per_key_limit_registration(1)).await;
    fixture.emit_copies(5, new_event("record").with_key("a")).await;
    let task = fixture.claim_one().await;
    assert_eq!(fixture.cancel_task(&task.id).await, Ok(()));
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    fixture.schedule_tasks(5).await;
    let task = fixture.claim_one().await;
    fixture.release_task(&task).await;
    fixture.claim_one().await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
    fixture.rescue_tasks().await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn per_key_slots_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(2)).await;
    fixture.emit_copies(5, new_event("record").with_key("a")).await;
    let running = fixture.claim_one().await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.succeed(&running).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn the_per_key_limit_changes_with_the_registration(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, per_key_limit_registration(1)).await;
    fixture.emit_copies(10, new_event("record").with_key("a")).await;
    let mut running = fixture.claim(10).await;
    fixture.register(per_key_limit_registration(4)).await;
    running.extend(fixture.claim(10).await);
    assert_eq!(running.len(), 4, "with a higher limit");
    fixture.register(per_key_limit_registration(2)).await;
    for task in running.drain(..2) {
        fixture.succeed(&task).await;
        assert!(fixture.claim(10).await.is_empty(), "with a lower limit");
    }
    fixture.succeed(&running.remove(0)).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.register(RegistrationBuilder::single_handler().unordered("index")).await;
    assert_eq!(fixture.claim(10).await.len(), 5, "without a limit");
}

/// A limit set while there is a backlog applies to the backlog.
pub async fn a_new_per_key_limit_applies_to_the_existing_backlog(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit_copies(6, new_event("record").with_key("a")).await;
    let running = fixture.claim_one().await;
    fixture.register(per_key_limit_registration(2)).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.succeed(&running).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn rules_and_the_per_key_limit_both_apply(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, per_key_limit_registration(1)).await;
    fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.schedule_tasks(3).await;
    fixture.set_pause_rule("index").await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.lift_pause_rule("index").await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    assert!(fixture.claim(10).await.is_empty());
}

/// Adopted tasks follow the limits at the time of the adoption.
pub async fn adopted_tasks_respect_the_per_key_limit(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.register(per_key_limit_registration(1)).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 3);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// A handler becomes unordered while tasks are in its lane: they still run.
pub async fn tasks_in_lanes_still_run_after_their_handler_becomes_unordered(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let first = fixture.claim_one().await;
    fixture.register(per_key_limit_registration(1)).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let claimed = fixture.claim(5).await;
    fixture.release_task(&first).await;
    for task in &claimed {
        fixture.succeed(task).await;
    }
    fixture.advance_clock(100);
    let ran = fixture.run_all_ready_tasks().await.len() + claimed.len();
    assert_eq!(ran, 3, "each runs in the end");
}
