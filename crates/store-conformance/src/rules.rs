//! Pause and block rules stop a handler's tasks from starting; nothing is lost, and the order is kept.

use pointsman_core::store::TaskFilter;
use pointsman_core::{RuleKind, TaskStatus};

use crate::Harness;
use crate::fixture::*;

pub async fn a_paused_or_blocked_handler_starts_no_task(harness: &dyn Harness) {
    for kind in RuleKind::ALL {
        let fixture =
            StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
                .await;
        fixture.emit_copies(2, new_event("record")).await;
        expect_ok(fixture.store.set_rule(fixture.new_rule(kind, "index", None)).await);
        fixture.emit(new_event("record")).await;
        let claims = fixture.claim_with_remaining_work(10).await;
        assert_eq!(claims.tasks.len(), 3);
        assert!(claims.tasks.iter().all(|task| task.handler == handler_name("notify")), "{kind:?}");
        assert!(!claims.has_more, "blocked tasks are not ready");
        assert_eq!(fixture.schedule_tasks(10).await, 0);
        assert!(fixture.read_queue("index").await.is_paused_or_blocked);
        let (_, claims) = expect_ok(
            fixture
                .store
                .append(
                    vec![new_emit_batch([new_event("record")])],
                    Some(fixture.claim_request(10)),
                    fixture.now,
                )
                .await,
        );
        assert_eq!(claims.tasks.len(), 1, "nor by the claim of an append");
    }
}

pub async fn a_rule_returns_prefetched_tasks_to_new(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    fixture.emit_copies(3, new_event("record")).await;
    assert_eq!(fixture.schedule_tasks(6).await, 6);
    fixture.set_pause_rule("index").await;
    let found = fixture.list_tasks(&TaskFilter::default()).await;
    for task in found {
        let is_paused = task.handler == handler_name("index");
        assert_eq!(
            task.lifecycle.state.status(),
            if is_paused { TaskStatus::New } else { TaskStatus::Scheduled }
        );
    }
    assert_eq!(fixture.read_queue("index").await.scheduled_count, 0);
    assert_eq!(fixture.schedule_tasks(0).await, 3);
    assert_eq!(fixture.claim(10).await.len(), 3);
}

pub async fn running_tasks_of_a_paused_handler_can_finish(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    fixture.set_pause_rule("index").await;
    assert_eq!(fixture.fail(&head).await.status, TaskStatus::New);
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert!(fixture.claim(10).await.is_empty());
    assert!(fixture.lift_pause_rule("index").await);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events));
}

pub async fn tasks_run_in_order_after_a_pause_is_lifted(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.schedule_tasks(5).await;
    fixture.set_pause_rule("index").await;
    fixture.advance_clock(60);
    events.extend(fixture.emit_copies(3, new_event("record").with_key("a")).await);
    assert!(fixture.claim(10).await.is_empty());
    assert!(fixture.lift_pause_rule("index").await);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events));
}

pub async fn pause_and_block_rules_are_independent(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    let index = rule_scope("index");
    for kind in RuleKind::ALL {
        expect_ok(fixture.store.set_rule(fixture.new_rule(kind, "index", None)).await);
    }
    assert_eq!(expect_ok(fixture.store.list_rules().await).len(), 2);
    assert!(expect_ok(fixture.store.lift_rule(RuleKind::Pause, &index, None).await));
    assert!(!expect_ok(fixture.store.lift_rule(RuleKind::Pause, &index, None).await), "it is already lifted");
    assert!(fixture.claim(10).await.is_empty(), "the block rule is still set");
    assert!(expect_ok(fixture.store.lift_rule(RuleKind::Block, &index, None).await));
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn a_tenant_rule_blocks_only_that_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for name in ["shop", "depot"] {
        fixture.emit(new_event("record").for_tenant(name)).await;
    }
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Pause, "index", Some("shop"))).await);
    let claimed = fixture.claim(10).await;
    assert_eq!(claimed.iter().map(|task| task.event().tenant.as_str()).collect::<Vec<_>>(), ["depot"]);
    // A rule for all tenants is independent: lifting it keeps the tenant's rule.
    fixture.set_pause_rule("index").await;
    assert!(fixture.lift_pause_rule("index").await);
    assert!(fixture.claim(10).await.is_empty());
    let (index, shop) = (rule_scope("index"), tenant("shop"));
    assert!(!expect_ok(fixture.store.lift_rule(RuleKind::Pause, &index, Some(&tenant("depot"))).await));
    assert!(expect_ok(fixture.store.lift_rule(RuleKind::Pause, &index, Some(&shop)).await));
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn a_rule_can_be_set_before_the_first_task(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.set_pause_rule("index").await;
    for name in ["default", "shop"] {
        fixture.emit(new_event("record").for_tenant(name)).await;
    }
    assert!(fixture.claim(10).await.is_empty());
    assert!(expect_ok(fixture.store.list_queues(None).await).iter().all(|queue| queue.is_paused_or_blocked));
    assert!(fixture.lift_pause_rule("index").await);
    assert_eq!(fixture.claim(10).await.len(), 2);
}

pub async fn rules_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    let rule = fixture.new_rule(RuleKind::Block, "index", Some("default"));
    expect_ok(fixture.store.set_rule(rule.clone()).await);
    let fixture = fixture.reopen().await;
    assert_eq!(expect_ok(fixture.store.list_rules().await), [rule]);
    fixture.emit(new_event("record")).await;
    assert!(fixture.claim(10).await.is_empty());
    assert!(expect_ok(
        fixture.store.lift_rule(RuleKind::Block, &rule_scope("index"), Some(&tenant("default"))).await
    ));
    assert_eq!(fixture.claim(10).await.len(), 2);
}

/// A handler, a collection and a schedule may share a name; each rule applies to its own target only.
pub async fn rules_of_different_scope_kinds_with_one_name_are_independent(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().collection("shop/orders", 1)).await;
    let scopes = ["shop", "shop/orders", "@shop", "@shop/orders"];
    let mut rules = Vec::new();
    for name in scopes {
        rules.push(fixture.new_rule(RuleKind::Pause, name, None));
        expect_ok(fixture.store.set_rule(rules[rules.len() - 1].clone()).await);
    }
    let fixture = fixture.reopen().await;
    let listed = expect_ok(fixture.store.list_rules().await);
    assert_eq!(listed.len(), 4);
    assert!(rules.iter().all(|rule| listed.contains(rule)));
    for (left, name) in scopes.iter().enumerate().map(|(n, name)| (3 - n, name)) {
        assert!(fixture.lift_pause_rule(name).await && !fixture.lift_pause_rule(name).await);
        assert_eq!(expect_ok(fixture.store.list_rules().await).len(), left);
    }
}

pub async fn setting_a_rule_again_replaces_it(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.set_pause_rule("index").await;
    fixture.advance_clock(10);
    let mut again = fixture.new_rule(RuleKind::Pause, "index", None);
    again.reason = "maintenance continues".into();
    expect_ok(fixture.store.set_rule(again.clone()).await);
    assert_eq!(expect_ok(fixture.store.list_rules().await), [again]);
    assert!(fixture.lift_pause_rule("index").await);
    assert!(expect_ok(fixture.store.list_rules().await).is_empty());
}

pub async fn a_lane_that_advances_while_paused_stays_paused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    fixture.set_pause_rule("index").await;
    fixture.succeed(&head).await;
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.cancel_task(&events[1].tasks[0]).await, Ok(()));
    assert!(fixture.claim(10).await.is_empty());
    fixture.lift_pause_rule("index").await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [events[2].id]);
}
