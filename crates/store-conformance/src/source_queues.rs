//! All source tasks of a tenant share one queue, and rules block a whole source or one collection.

use pointsman_core::RuleKind;

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .collection("shop/orders", 100)
        .collection("shop/orders_x", 500)
        .collection("crm/people", 100)
}

/// Runs of all sources share one queue, ordered by priority and age.
pub async fn all_source_runs_of_a_tenant_are_ordered_by_priority_then_age(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .collection("shop/orders", 100)
        .collection("crm/people", 500)
        .collection("erp/stock", 100)
        .collection("erp/bills", 9000)
        .collection("shop/items", 1);
    let mut fixture = StoreFixture::new(harness, registration).await;
    for name in ["shop/items", "shop/orders", "crm/people", "erp/stock", "erp/bills"] {
        fixture.request_new_collection_run(name).await;
        fixture.advance_clock(1);
    }
    let want = ["erp/bills", "crm/people", "shop/orders", "erp/stock", "shop/items"];
    assert_eq!(source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await), want);
}

pub async fn all_sources_of_a_tenant_share_one_round_robin_turn(harness: &dyn Harness) {
    let mut registration = RegistrationBuilder::single_handler();
    for n in 0..20 {
        registration = registration.collection(&format!("source-{n}/all"), 9000);
    }
    let fixture = StoreFixture::new(harness, registration).await;
    for n in 0..20 {
        fixture.request_new_collection_run(&format!("source-{n}/all")).await;
    }
    fixture.emit_copies(20, new_event("record").with_priority(1)).await;
    let mut runs = 0usize;
    for _ in 0..20 {
        runs += usize::from(fixture.claim_one().await.subject.event().is_none());
    }
    assert!(runs.abs_diff(10) <= 2, "{runs} of 20 were runs");
}

pub async fn sources_of_different_tenants_have_separate_queues(harness: &dyn Harness) {
    let registration = (0..4).fold(RegistrationBuilder::default(), |registration, n| {
        registration.tenant_collection("loud", &format!("loud-{n}/all"), 9000)
    });
    let fixture = StoreFixture::new(harness, registration.tenant_collection("quiet", "quiet/all", 1)).await;
    for name in ["loud-0/all", "loud-1/all", "loud-2/all", "loud-3/all", "quiet/all"] {
        fixture.request_new_collection_run(name).await;
    }
    let served = source_collection_names_of_tasks(&fixture.claim(2).await);
    assert!(served.contains(&"quiet/all".into()), "{served:?}");
}

pub async fn a_paused_source_starts_nothing_and_delays_no_other(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for name in ["shop/orders", "shop/orders_x"] {
        fixture.request_new_collection_run(name).await;
    }
    assert_eq!(fixture.schedule_tasks(10).await, 2);
    fixture.set_pause_rule("shop").await;
    assert_eq!(fixture.schedule_tasks(10).await, 0, "scheduled tasks are new again");
    fixture.request_new_collection_run("crm/people").await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!(
        (source_collection_names_of_tasks(&claims.tasks), claims.has_more),
        (vec!["crm/people".to_string()], false)
    );
    assert!(
        fixture.read_queue("shop/orders").await.is_paused_or_blocked
            && fixture.read_queue("shop/orders_x").await.is_paused_or_blocked
    );
    assert!(!fixture.request_collection_run("shop/orders").await.created, "the collection keeps its task");
    assert!(fixture.lift_pause_rule("shop").await);
    assert_eq!(
        source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await),
        ["shop/orders_x", "shop/orders"]
    );
}

pub async fn a_paused_collection_starts_nothing_and_delays_no_other(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.set_pause_rule("shop/orders_x").await;
    for name in ["shop/orders", "shop/orders_x", "crm/people"] {
        fixture.request_new_collection_run(name).await;
    }
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!(
        (source_collection_names_of_tasks(&claims.tasks), claims.has_more),
        (vec!["shop/orders".into(), "crm/people".into()], false)
    );
    assert!(
        fixture.read_queue("shop/orders_x").await.is_paused_or_blocked
            && !fixture.read_queue("shop/orders").await.is_paused_or_blocked
    );
    let fixture = fixture.reopen().await;
    assert!(fixture.claim(10).await.is_empty());
    // A rule for another tenant does not apply, and both rule kinds are independent.
    expect_ok(
        fixture.store.set_rule(fixture.new_rule(RuleKind::Block, "shop/orders_x", Some("elsewhere"))).await,
    );
    assert!(fixture.lift_pause_rule("shop/orders_x").await);
    assert_eq!(source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await), ["shop/orders_x"]);
}

pub async fn each_collection_has_its_own_queue_counters(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.request_new_collection_run("shop/orders").await;
    fixture.request_new_collection_run("shop/orders_x").await;
    fixture.claim_one().await;
    let (idle, busy) = (fixture.read_queue("shop/orders").await, fixture.read_queue("shop/orders_x").await);
    assert_eq!((idle.ready_count, idle.running_count, busy.ready_count, busy.running_count), (1, 0, 0, 1));
    assert_eq!(idle.next_ready_task_created_at, Some(fixture.now));
    assert_eq!(fixture.read_queue("crm/people").await.ready_count, 0);
}
