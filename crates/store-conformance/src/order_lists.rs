//! Order lists and statistics; each names the journal position it reflects.

use pointsman_core::journal::PathFilter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{NewOrder, OrderCommand, OrderCursor, OrderView};
use pointsman_core::{Rule, RuleKind, RuleScope, TaskStatus, Timestamp};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    let nodes = "a=first>b b=second>done!failed done failed";
    ["/a/x", "/a/x2", "/a/b/y", "/ab", "/c"]
        .into_iter()
        .fold(RegistrationBuilder::default(), |registration, path| registration.chain(path, nodes))
}

const ORDER_KEYS: [&str; 9] =
    ["/a/b/y,1", "/a/x,1", "/a/x,10", "/a/x,12", "/a/x,2", "/a/x2,1", "/ab,1", "/c,-", "/c,x.y"];

/// A fixture with the orders of `ORDER_KEYS`, added in a different order.
async fn fixture_with_many_orders(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for number in 0..ORDER_KEYS.len() {
        fixture.add_order(new_order(ORDER_KEYS[(number * 4 + 3) % ORDER_KEYS.len()])).await;
    }
    fixture
}

fn order_keys(views: &[OrderView]) -> Vec<String> {
    views.iter().map(|view| view.order.key.to_string()).collect()
}

/// Computes the expected statistics from the views of the orders.
fn compute_statistics(views: &[OrderView], now: Timestamp) -> OrderStatistics {
    let mut sum = OrderStatistics::default();
    for view in views {
        let order = &view.order;
        let started = order.started_at.is_some();
        let one = OrderStatistics {
            total: 1,
            not_planned: (!started && order.planned_at.is_none()).into(),
            planned: (!started && order.planned_at.is_some_and(|at| at > now)).into(),
            due: (!started && order.planned_at.is_some_and(|at| at <= now)).into(),
            started: started.into(),
            in_task: view.task.is_some().into(),
            in_process: order.step_running.into(),
            setback: view.retry_at.is_some().into(),
            suspended: order.suspended.into(),
            ..OrderStatistics::default()
        };
        sum.add(&one);
    }
    sum
}

pub async fn order_lists_and_statistics_can_be_limited_to_a_path(harness: &dyn Harness) {
    let fixture = fixture_with_many_orders(harness).await;
    let paths = [
        "/",
        "/a/",
        "/a/*",
        "/a/x",
        "/a/x,1",
        "/a/x,99",
        "/a/b/",
        "/a/b/*",
        "/a/b",
        "/c",
        "/c/",
        "/*",
        "/nowhere/",
        "/ab",
        "/a",
    ];
    for text in paths {
        let filter: PathFilter = path_filter(text);
        let want: Vec<_> = ORDER_KEYS.into_iter().filter(|key| filter.matches(key)).collect();
        assert_eq!(order_keys(&fixture.list_orders(text).await), want, "{text}");
        assert_eq!(fixture.read_order_statistics(text).await.total, want.len() as u64, "{text}");
    }
    assert_eq!(fixture.list_orders("/a/x").await.len(), 4, "a chain's orders are under its path");
}

pub async fn orders_are_listed_in_pages(harness: &dyn Harness) {
    let fixture = fixture_with_many_orders(harness).await;
    let everything = PathFilter::Everything;
    let page = expect_ok(fixture.store.list_orders(&everything, None, None, 4).await);
    assert_eq!(order_keys(&page.orders), ORDER_KEYS[..4]);
    let last = OrderCursor { key: order_key(ORDER_KEYS[3]), tenant: tenant("default") };
    assert_eq!(page.next_cursor, Some(last));
    fixture.remove_order(ORDER_KEYS[3]).await;
    fixture.add_order(new_order("/a/x,11")).await;
    let page = expect_ok(fixture.store.list_orders(&everything, None, page.next_cursor, 100).await);
    assert_eq!(order_keys(&page.orders), ORDER_KEYS[4..], "reading continues though the order is gone");
    assert_eq!(page.next_cursor, None);
    let page = expect_ok(fixture.store.list_orders(&everything, None, None, 9).await);
    assert_eq!(
        (page.orders.len(), page.next_cursor),
        (9, None),
        "the page with the last order has no next page"
    );
}

pub async fn a_listed_order_equals_the_single_view(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders_in_every_state(harness).await;
    fixture.advance_clock(1);
    for view in fixture.list_orders("/").await {
        assert_eq!(fixture.read_order(&view.order.key.to_string()).await, view);
    }
}

/// A fixture with one order in each state: waiting, planned, due, running, retrying, suspended, suspended while
/// running, at its second step, stranded at a removed chain node.
async fn fixture_with_orders_in_every_state(harness: &dyn Harness) -> StoreFixture<'_> {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/a/x,running")).await;
    fixture.add_order(new_order("/a/x,ending")).await;
    fixture.add_order(new_order("/a/x,failing")).await;
    fixture.add_order(new_order("/a/x,second-step")).await;
    for task in fixture.claim(10).await {
        match task.step_run().order_key.id.as_str() {
            "ending" => fixture.suspend_order("/a/x,ending").await,
            "failing" => drop(fixture.fail(&task).await),
            "second-step" => drop(fixture.succeed(&task).await),
            _ => {}
        }
    }
    fixture.add_order(new_order("/a/x,waiting")).await;
    fixture.add_order(new_order("/a/x,planned").planned_at(fixture.seconds_from_now(1000))).await;
    fixture.add_order(new_order("/a/x,due").planned_at(fixture.seconds_from_now(1))).await;
    fixture.add_order(new_order("/a/x,suspended")).await;
    fixture.suspend_order("/a/x,suspended").await;
    fixture.add_order(new_order("/c,stranded")).await;
    let short = fixture.registration.clone().chain("/c", "b=second>done done");
    fixture.register(short).await;
    fixture.advance_clock(1);
    fixture
}

pub async fn order_statistics_count_every_state(harness: &dyn Harness) {
    let fixture = fixture_with_orders_in_every_state(harness).await;
    let want = OrderStatistics {
        total: 9,
        not_planned: 3,
        planned: 1,
        due: 1,
        started: 4,
        in_task: 7,
        in_process: 2,
        setback: 1,
        suspended: 2,
        ..OrderStatistics::default()
    };
    assert_eq!(fixture.read_order_statistics("/").await, want);
    assert_eq!(compute_statistics(&fixture.list_orders("/").await, fixture.now), want);
    let one = OrderStatistics { total: 1, not_planned: 1, ..OrderStatistics::default() };
    assert_eq!(fixture.read_order_statistics("/c").await, one);
    assert_eq!(fixture.read_order_statistics("/a/x,planned").await.planned, 1);
    assert_eq!(fixture.read_order_statistics("/nowhere/").await, OrderStatistics::default());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.read_order_statistics("/").await, want, "after a restart");
}

pub async fn a_planned_order_becomes_due_when_its_time_comes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/a/x,1").planned_at(fixture.seconds_from_now(60))).await;
    fixture.add_order(new_order("/a/x,2").planned_at(fixture.seconds_from_now(120))).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let statistics = fixture.read_order_statistics("/a/").await;
        seen.push((statistics.planned, statistics.due));
        fixture.advance_clock(59);
    }
    assert_eq!(seen, [(2, 0), (2, 0), (1, 1), (0, 2)]);
}

/// The counts follow an order from its creation to its end and return to zero.
pub async fn order_statistics_follow_an_order_through_its_states(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let check = async |fixture: &StoreFixture<'_>, when: &str| {
        for text in ["/", "/a/", "/a/x", "/a/x,1"] {
            let want = compute_statistics(&fixture.list_orders(text).await, fixture.now);
            assert_eq!(fixture.read_order_statistics(text).await, want, "{when}");
        }
    };
    fixture.add_order(new_order("/a/x,1")).await;
    check(&fixture, "added").await;
    fixture.suspend_order("/a/x,1").await;
    check(&fixture, "suspended").await;
    fixture.resume_order("/a/x,1").await;
    check(&fixture, "resumed").await;
    fixture.schedule_tasks(5).await;
    check(&fixture, "scheduled").await;
    let task = fixture.claim_one().await;
    check(&fixture, "running").await;
    fixture.fail(&task).await;
    check(&fixture, "set back").await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    check(&fixture, "due for its retry").await;
    fixture.schedule_tasks(5).await;
    check(&fixture, "scheduled for its retry").await;
    let task = fixture.claim_one().await;
    check(&fixture, "running again").await;
    fixture.snooze_task(&task, 5).await;
    check(&fixture, "snoozing").await;
    fixture.advance_clock(5);
    fixture.succeed(&fixture.claim_one().await).await;
    check(&fixture, "at its second step").await;
    fixture.set_chain_stopped("/a/x", true).await;
    check(&fixture, "stopped").await;
    fixture.set_chain_stopped("/a/x", false).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    check(&fixture, "finished").await;
    assert_eq!(fixture.read_order_statistics("/").await, OrderStatistics::default());
}

pub async fn order_statistics_can_be_limited_to_a_tenant(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().chain("/x", "a=first>done done")).await;
    for (key, tenant_name) in [("/x,1", "shop"), ("/x,2", "shop"), ("/x,3", "other")] {
        fixture.add_order(new_order(key).for_tenant(tenant_name)).await;
    }
    fixture.send_tenant_order_command("shop", "/x,1", OrderCommand::Suspend).await.expect("the order exists");
    let counted = async |tenant_name: &str, text: &str| {
        let (own_tenant, path) = (tenant(tenant_name), path_filter(text));
        let numbers =
            expect_ok(fixture.store.read_order_statistics(&path, Some(&own_tenant), fixture.now).await).0;
        (numbers.total, numbers.suspended)
    };
    assert_eq!(counted("shop", "/").await, (2, 1));
    assert_eq!(counted("shop", "/x,2").await, (1, 0));
    assert_eq!(counted("other", "/").await, (1, 0));
    assert_eq!(counted("nobody", "/").await, (0, 0));
    assert_eq!(fixture.read_order_statistics("/").await.total, 3);
}

pub async fn chains_count_their_orders_by_chain_node(harness: &dyn Harness) {
    let fixture = fixture_with_many_orders(harness).await;
    fixture.send_order_command("/a/x,2", move_order_command("b")).await.expect("no step is running");
    fixture.send_order_command("/a/x,1", move_order_command("done")).await.expect("no step is running");
    let chains = fixture.list_chains().await;
    let paths: Vec<_> = chains.iter().map(|view| view.chain.path.to_string()).collect();
    assert_eq!(paths, ["/a/b/y", "/a/x", "/a/x2", "/ab", "/c"]);
    let counts = |number: usize| {
        let orders = chains[number].order_counts_by_node.iter().filter(|(_, count)| *count > 0);
        orders.map(|(node, count)| (node.to_string(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(counts(1), [("a".to_string(), 2), ("b".to_string(), 1)]);
    assert_eq!(counts(4), [("a".to_string(), 2)]);
    fixture.run_all_ready_tasks().await;
    assert!(
        fixture
            .list_chains()
            .await
            .iter()
            .all(|view| view.order_counts_by_node.iter().all(|(_, count)| *count == 0))
    );
}

/// A client that follows the stream from a snapshot's position misses nothing.
pub async fn every_order_list_names_its_journal_position(harness: &dyn Harness) {
    let fixture = fixture_with_many_orders(harness).await;
    for _ in 0..3 {
        let head = fixture.read_journal_range().await;
        let everything = PathFilter::Everything;
        assert_eq!(
            expect_ok(fixture.store.list_orders(&everything, None, None, 2).await).journal_range,
            head
        );
        assert_eq!(
            expect_ok(fixture.store.read_order_statistics(&everything, None, fixture.now).await).1,
            head
        );
        assert_eq!(expect_ok(fixture.store.list_chains().await).1, head);
        let one = expect_ok(fixture.store.read_order(&tenant("default"), &order_key("/c,-")).await);
        assert_eq!(one.map(|(_, journal_range)| journal_range), Some(head));
        fixture.claim_one_for_handler("first").await;
        assert!(fixture.read_journal_head().await > head.newest_event_id, "the start of a step is published");
    }
}

pub async fn orders_survive_a_restart(harness: &dyn Harness) {
    let fixture = fixture_with_orders_in_every_state(harness).await;
    let (orders, chains, since) =
        (fixture.list_orders("/").await, fixture.list_chains().await, fixture.read_journal_head().await);
    let tasks = fixture.list_tasks(&Default::default()).await;
    let mut fixture = fixture.reopen().await;
    assert_eq!((fixture.list_orders("/").await, fixture.list_chains().await), (orders, chains));
    assert_eq!(fixture.list_tasks(&Default::default()).await, tasks);
    assert_eq!(fixture.read_journal_head().await, since, "a restart is no event");
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.send_heartbeat().await;
    fixture.rescue_tasks().await;
    fixture.run_all_ready_tasks().await;
    let left = order_keys(&fixture.list_orders("/").await);
    assert_eq!(left, ["/a/x,ending", "/a/x,planned", "/a/x,suspended", "/c,stranded"]);
    let view = fixture.read_order("/a/x,ending").await;
    assert!(view.order.suspended && view.task.is_none(), "its node died, and it is not retried");
}

/// A step that was running when the process ended can still be finished.
pub async fn a_running_step_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/a/x,1")).await;
    let task = fixture.claim_one().await;
    let fixture = fixture.reopen().await;
    assert!(fixture.read_order("/a/x,1").await.order.step_running);
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
    let task = fixture.claim_one().await;
    assert_eq!(format_steps(std::slice::from_ref(&task)), ["/a/x,1 b"]);
    fixture.succeed(&task).await;
    assert!(fixture.find_order("/a/x,1").await.is_none());
}

pub async fn order_lists_can_be_limited_to_a_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for n in 0..6 {
        let order_tenant = tenant(if n % 3 == 0 { "shop" } else { "default" });
        fixture.add_order(NewOrder { tenant: order_tenant, ..new_order(&format!("/a/x,{n}")) }).await;
    }
    let (everything, shop) = (path_filter("/"), tenant("shop"));
    let page = expect_ok(fixture.store.list_orders(&everything, Some(&shop), None, 1).await);
    let first: Vec<_> = page.orders.iter().map(|view| view.order.key.to_string()).collect();
    assert_eq!((first, page.next_cursor.is_some()), (vec!["/a/x,0".into()], true));
    let page = expect_ok(fixture.store.list_orders(&everything, Some(&shop), page.next_cursor, 9).await);
    let rest: Vec<_> = page.orders.iter().map(|view| view.order.key.to_string()).collect();
    assert_eq!((rest, page.next_cursor), (vec!["/a/x,3".into()], None));
    assert_eq!(
        expect_ok(fixture.store.list_all_orders_without_values(&everything, Some(&shop)).await).orders.len(),
        2
    );
    assert_eq!(
        expect_ok(fixture.store.list_all_orders_without_values(&everything, None).await).orders.len(),
        6
    );
}

pub async fn an_order_view_names_the_failure_that_suspended_it(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/a/x,1")).await;
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    let (named, error) =
        fixture.read_order("/a/x,1").await.suspended_by_failed_task.expect("its step failed");
    assert_eq!(named, task.id);
    assert!(!error.is_empty());
    let fixture = fixture.reopen().await;
    assert!(fixture.read_order("/a/x,1").await.suspended_by_failed_task.is_some());
    fixture.resume_order("/a/x,1").await;
    assert_eq!(fixture.read_order("/a/x,1").await.suspended_by_failed_task, None);
    fixture.suspend_order("/a/x,1").await;
    assert_eq!(fixture.read_order("/a/x,1").await.suspended_by_failed_task, None, "no failure suspended it");
}

pub async fn an_order_view_names_the_rule_or_stop_that_blocks_it(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/a/x,1")).await;
    assert_eq!(fixture.read_order("/a/x,1").await.step_blocked_because, None);
    let chain = chain_path("/a/x");
    assert_eq!(expect_ok(fixture.store.set_chain_stopped(&chain, true, fixture.now).await), Ok(()));
    assert_eq!(
        fixture.read_order("/a/x,1").await.step_blocked_because.as_deref(),
        Some("the chain /a/x is stopped")
    );
    assert_eq!(expect_ok(fixture.store.set_chain_stopped(&chain, false, fixture.now).await), Ok(()));
    let rule = fixture.new_rule(RuleKind::Pause, "first", None);
    expect_ok(fixture.store.set_rule(Rule { scope: RuleScope::Chain(chain), ..rule }).await);
    let reason = fixture.read_order("/a/x,1").await.step_blocked_because.unwrap_or_default();
    assert!(reason.contains("pause") && reason.contains("/a/x"), "{reason}");
}
