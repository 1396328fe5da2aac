//! Checks that a copied store continues its work.

use std::collections::BTreeSet;

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::store::{AuditEntry, TaskFilter};
use pointsman_core::{EventId, TaskStatus};

use crate::fixture::*;

/// Asserts that the copied store does everything the original would have done.
pub(super) async fn assert_work_continues(mut fixture: StoreFixture<'_>) {
    fixture.advance_clock(1);
    assert_emits_continue(&fixture).await;
    let locked_tasks =
        fixture.list_tasks(&TaskFilter { statuses: vec![TaskStatus::Locked], ..TaskFilter::default() }).await;
    let last_number = expect_ok(fixture.store.list_audit_entries(None, 1).await)[0].0;
    let entry = AuditEntry {
        at: fixture.now,
        actor: String::new(),
        action: String::new(),
        target: String::new(),
        detail: String::new(),
    };
    expect_ok(fixture.store.append_audit_entry(entry).await);
    assert_eq!(expect_ok(fixture.store.list_audit_entries(None, 1).await)[0].0, last_number + 1);

    // The first rescue frees the tasks of the old node; a worker's tasks are freed when their lease expires.
    assert!(fixture.send_heartbeat().await);
    let rescued: BTreeSet<_> =
        fixture.rescue_tasks().await.freed_tasks_with_status.into_iter().map(|(id, _)| id).collect();
    let locked: BTreeSet<_> = locked_tasks.into_iter().map(|task| task.id).collect();
    assert!(!rescued.is_empty() && rescued.is_subset(&locked), "{rescued:?} of {locked:?}");
    assert_orders_continue(&mut fixture).await;

    for name in ["index", "@held"] {
        assert!(fixture.lift_pause_rule(name).await);
    }
    fixture.advance_clock(3600);
    assert!(fixture.send_heartbeat().await);
    fixture.rescue_tasks().await;
    assert!(!fixture.run_all_ready_tasks().await.is_empty());
    let left =
        TaskFilter { statuses: vec![TaskStatus::Locked, TaskStatus::Scheduled], ..TaskFilter::default() };
    assert!(fixture.list_tasks(&left).await.is_empty());
}

/// Asserts that event ids, `prev` links and idempotency keys continue from those of the original.
async fn assert_emits_continue(fixture: &StoreFixture<'_>) {
    let head = fixture.read_journal_range().await.newest_event_id;
    let last = fixture.read_all_events().await.into_iter().rfind(|event| event.key == Some(object_key("r1")));
    let next = fixture.emit(new_event("record").with_key("r1")).await;
    assert!(next.id > head);
    assert_eq!(next.prev, last.map(|event| event.id));
    let again = new_idempotent_emit_batch("default", "once", 7, vec![new_event("bulk").with_key("b")]);
    let other = new_idempotent_emit_batch("default", "once", 8, vec![new_event("bulk").with_key("b")]);
    let answers = fixture.append(vec![again, other]).await;
    let answer = answers[0].as_ref().expect("the same was sent under this key");
    assert!(answer.repeated && answer.events[0].id < head && answer.events[0].id > EventId::ZERO);
    assert!(answers[1].is_err());
}

/// Asserts that unfinished orders can be finished.
async fn assert_orders_continue(fixture: &mut StoreFixture<'_>) {
    let unfinished_orders = ["/publish/article,1", "/publish/article,2", "/publish/article,3"];
    fixture.set_chain_node_action("/publish/article render", ChainNodeAction::Process).await;
    assert!(fixture.lift_pause_rule("/publish/article").await);
    fixture.advance_clock(60);
    for _ in 0..2 {
        for task in fixture.claim_for_handlers(&["render", "deploy"], 100).await {
            fixture.succeed(&task).await;
        }
    }
    for key in unfinished_orders {
        assert!(fixture.find_order(key).await.is_none(), "{key} has ended");
    }
    assert!(fixture.find_order("/publish/article,4").await.is_some(), "this one is suspended");
}
