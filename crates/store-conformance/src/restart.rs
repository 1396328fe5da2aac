//! A process ends while tasks are running, and another one takes over.

use pointsman_core::store::TaskFilter;
use pointsman_core::{RuleKind, TaskStatus};

use crate::Harness;
use crate::fixture::*;

pub async fn acknowledged_events_and_their_tasks_survive_a_restart(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        for n in 0..10 {
            let draft =
                new_event("record").with_key(&format!("k{}", n % 3)).with_value(&format!("[{round},{n}]"));
            acknowledged.push(fixture.emit(draft).await);
        }
        let before = (
            fixture.read_all_events().await,
            fixture.list_tasks(&TaskFilter::default()).await,
            fixture.read_journal_range().await,
        );
        fixture = fixture.reopen().await;
        let after = (
            fixture.read_all_events().await,
            fixture.list_tasks(&TaskFilter::default()).await,
            fixture.read_journal_range().await,
        );
        assert_eq!(before, after);
        fixture.advance_clock(1);
    }
    let read: Vec<_> = fixture.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(read, event_ids_of_receipts(&acknowledged));
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 100);
}

pub async fn tasks_of_the_old_process_are_rescued(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(4, new_event("record")).await;
    let running = fixture.claim(3).await;
    fixture.succeed(&running[0]).await;
    let mut fixture = fixture.reopen().await;
    assert_eq!(
        fixture.read_task_status(&running[1].id).await,
        TaskStatus::Locked,
        "the old process may still be running"
    );
    fixture.advance_clock(LEASE_SECS + 1);
    assert!(fixture.send_heartbeat().await);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status.len(), 2);
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(ran.len(), 3);
    let attempts: Vec<_> = running[1..].iter().map(|old| ran.iter().find(|new| new.id == old.id)).collect();
    assert!(attempts.into_iter().all(|new| new.is_some_and(|new| new.attempt == 2)));
}

/// A process that was only slow may still finish its attempts: its fence is valid until a rescue.
pub async fn a_fence_stays_valid_across_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let running = fixture.claim_one().await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.succeed(&running).await.status, TaskStatus::Done);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

pub async fn every_task_state_survives_a_restart(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["check!", "index", "gone"])
        .route("note", &["halts", "notify"])
        .halt_on_error("halts");
    let mut fixture = StoreFixture::new(harness, registration).await;
    for n in 0..6 {
        fixture.emit(new_event("record").with_key(&format!("r{}", n % 2))).await;
        fixture
            .emit(new_event("note").with_key(&format!("n{}", n % 2)).due_at(fixture.seconds_from_now(n * 10)))
            .await;
    }
    fixture.advance_clock(20);
    fixture.undefine_handler_and_rescue("gone").await;
    for (n, task) in fixture.claim(6).await.iter().enumerate() {
        match n % 3 {
            0 => drop(fixture.succeed(task).await),
            1 => drop(fixture.fail(task).await),
            _ => drop(fixture.fail_permanently(task).await),
        }
    }
    fixture.claim(2).await;
    fixture.schedule_tasks(3).await;
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Block, "notify", None)).await);
    let before = fixture.list_tasks(&TaskFilter::default()).await;
    let queues = list_sorted_queues(&fixture).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await, before);
    assert_eq!(list_sorted_queues(&fixture).await, queues);
}

async fn list_sorted_queues(fixture: &StoreFixture<'_>) -> Vec<pointsman_core::store::QueueView> {
    let mut queues = expect_ok(fixture.store.list_queues(None).await);
    queues.sort_by(|a, b| (&a.handler, &a.tenant).cmp(&(&b.handler, &b.tenant)));
    queues
}

pub async fn an_empty_store_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let fixture = fixture.reopen().await;
    let fixture = fixture.reopen().await;
    assert!(fixture.read_all_events().await.is_empty());
    assert!(fixture.claim(10).await.is_empty());
}
