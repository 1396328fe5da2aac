//! Fairness between queues: a busy queue does not delay the others.

use pointsman_core::store::ClaimedTask;

use crate::Harness;
use crate::fixture::*;

/// Counts the tasks of this handler and of all others.
fn count_tasks_of_handler_and_others(tasks: &[ClaimedTask], name: &str) -> (usize, usize) {
    let mine = tasks.iter().filter(|task| task.handler == handler_name(name)).count();
    (mine, tasks.len() - mine)
}

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("flood", &["busy"]).route("drop", &["quiet"])
}

pub async fn a_busy_queue_delays_another_queue_by_at_most_one_round(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(1000, new_event("flood")).await;
    // The busy queue has been served for a while before the other one gets a task.
    for _ in 0..10 {
        fixture.claim(10).await;
    }
    fixture.emit(new_event("drop")).await;
    let next = [fixture.claim_one().await, fixture.claim_one().await];
    assert_eq!(
        count_tasks_of_handler_and_others(&next, "quiet").0,
        1,
        "a round of two queues has two claims"
    );
}

pub async fn one_claim_serves_every_queue(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(1000, new_event("flood").with_priority(9000)).await;
    fixture.emit(new_event("drop").with_priority(1)).await;
    assert_eq!(
        count_tasks_of_handler_and_others(&fixture.claim(10).await, "quiet"),
        (1, 9),
        "however low its priority"
    );
}

pub async fn each_tenant_of_a_handler_has_its_own_queue(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(500, new_event("record").for_tenant("loud")).await;
    for n in 0..5 {
        fixture.emit(new_event("record").for_tenant(&format!("tenant-{n}"))).await;
    }
    let served: Vec<_> = fixture.claim(6).await.iter().map(|task| task.event().tenant.to_string()).collect();
    for n in 0..5 {
        assert!(served.contains(&format!("tenant-{n}")), "{served:?}");
    }
}

/// Being idle earns no credit: a queue with new tasks is ahead by at most one claim, however much the other one was
/// served in the meantime.
pub async fn an_idle_queue_earns_no_credit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("drop")).await;
    fixture.run_all_ready_tasks().await;
    fixture.emit_copies(400, new_event("flood")).await;
    for _ in 0..50 {
        fixture.claim(4).await;
    }
    fixture.emit_copies(100, new_event("drop")).await;
    let mut served = Vec::new();
    for _ in 0..40 {
        served.push(fixture.claim_one().await);
    }
    let (quiet, busy) = count_tasks_of_handler_and_others(&served, "quiet");
    assert!(quiet.abs_diff(busy) <= 5, "{quiet} to {busy} of 40");
}

pub async fn two_busy_queues_share_claims_evenly(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(300, new_event("flood")).await;
    fixture.emit_copies(100, new_event("drop")).await;
    let mut served = Vec::new();
    for size in [1, 7, 3, 16, 1, 1, 5, 16] {
        served.extend(fixture.claim(size).await);
    }
    let (quiet, busy) = count_tasks_of_handler_and_others(&served, "quiet");
    assert!(quiet.abs_diff(busy) <= 8, "{quiet} to {busy}: one odd task a claim at most");
}

pub async fn prefetch_is_fair_between_queues(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(100, new_event("flood")).await;
    fixture.emit(new_event("drop")).await;
    assert_eq!(fixture.schedule_tasks(4).await, 4);
    assert_eq!(fixture.read_queue("quiet").await.scheduled_count, 1);
    assert_eq!(fixture.read_queue("busy").await.scheduled_count, 3);
}

/// Prefetched tasks have used their turn: they do not delay a queue that has not.
pub async fn prefetched_tasks_of_one_queue_do_not_delay_another(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(100, new_event("flood")).await;
    assert_eq!(fixture.schedule_tasks(30).await, 30);
    let append = async |kind: &str| {
        let batches = vec![new_emit_batch(vec![new_event(kind)])];
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(1)), fixture.now).await).1.tasks
    };
    assert_eq!(count_tasks_of_handler_and_others(&append("drop").await, "quiet"), (1, 0));
    let newest = fixture.read_all_events().await.last().map(|event| event.id);
    let own = append("flood").await;
    assert!(Some(own[0].event().id) < newest, "but older tasks of its own queue run first");
}

pub async fn a_paused_queue_uses_no_round_robin_turn(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(50, new_event("flood")).await;
    fixture.set_pause_rule("busy").await;
    fixture.emit_copies(5, new_event("drop")).await;
    assert_eq!(count_tasks_of_handler_and_others(&fixture.claim(5).await, "quiet"), (5, 0));
}

pub async fn busy_queues_share_claims_evenly_after_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(200, new_event("flood")).await;
    for _ in 0..50 {
        fixture.claim(2).await;
    }
    let fixture = fixture.reopen().await;
    fixture.emit_copies(50, new_event("drop")).await;
    let mut served = Vec::new();
    for _ in 0..20 {
        served.push(fixture.claim_one().await);
    }
    let (quiet, busy) = count_tasks_of_handler_and_others(&served, "quiet");
    assert!(quiet.abs_diff(busy) <= 4, "{quiet} to {busy} of 20");
}
