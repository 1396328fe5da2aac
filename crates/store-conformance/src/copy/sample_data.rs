//! A store that contains data of every kind.

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::fire::Punctuality;
use pointsman_core::store::{AttemptResult, AuditEntry, FinishedAttempt, NodeCapabilities};
use pointsman_core::{Limits, RuleKind};

use crate::fixture::*;

pub fn sample_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .registrant("server")
        .route("record", &["check!", "index", "gone"])
        .route("note", &["strict", "fetched"])
        .route("bulk", &["loose"])
        .halt_on_error("strict")
        .pulled_by_workers("fetched")
        .unordered("loose")
        .limits("loose", Limits { concurrency: Some(3), rate: "100/m".parse().ok(), ..Limits::default() })
        .tenant_weight("acme", 3)
        .collection("shop/orders", 200)
        .collection("shop/customers", 100)
        .chain("/publish/article", "render=render>deploy!failed deploy=deploy>done done failed")
        .step_retry_policy("/publish/article", "deploy", 3, 30)
        .chain_route("article", "/publish/article")
        .config_file("Job:/index", "1")
}

/// Fills a fixture registered with [`sample_registration`]. Afterwards about half of its work is unfinished.
pub async fn fill_with_sample_data(fixture: &mut StoreFixture<'_>) {
    let capabilities =
        NodeCapabilities { handlers: fixture.registration.handler_names(), ..NodeCapabilities::default() };
    expect_ok(fixture.store.store_node_capabilities(fixture.node_id, capabilities).await);
    emit_events_and_undefine_handler(fixture).await;
    run_some_tasks(fixture).await;
    add_orders(fixture).await;
    fire_schedules(fixture).await;
    set_rules_and_audit_entries(fixture).await;
}

async fn emit_events_and_undefine_handler(fixture: &mut StoreFixture<'_>) {
    for n in 0..9 {
        let tenant = if n % 3 == 0 { "acme" } else { "default" };
        let record =
            new_event("record").with_key(&format!("r{}", n % 3)).with_sub_key("part").for_tenant(tenant);
        fixture.emit(record.with_value(&format!("{{\"n\": {n}, \"ü\": [1.50]}}"))).await;
        fixture
            .emit(new_event("note").with_key(&format!("n{}", n % 2)).due_at(fixture.seconds_from_now(n * 10)))
            .await;
        fixture.emit(new_event("bulk").with_priority(1 + n as i64)).await;
    }
    fixture
        .append(vec![new_idempotent_emit_batch("default", "once", 7, vec![new_event("bulk").with_key("b")])])
        .await;
    fixture.advance_clock(20);
    fixture.undefine_handler_and_rescue("gone").await;
}

/// Runs tasks: some succeed, some fail, some fail permanently, some are snoozed, and the last ones stay running.
async fn run_some_tasks(fixture: &mut StoreFixture<'_>) {
    for round in 0..3 {
        for (n, task) in fixture.claim(9).await.iter().enumerate() {
            let result = match n % 4 {
                0 => AttemptResult::Succeeded { result: Some(parse_json("{\"ok\": true}")) },
                1 => retryable_failure(),
                2 => AttemptResult::Failed {
                    error: "a NUL\0 in it".into(),
                    return_code: 3,
                    retry_at: None,
                    permanent: true,
                },
                _ => AttemptResult::Snoozed { until: fixture.seconds_from_now(40) },
            };
            let logs = vec![
                info_log_line(fixture.now, &format!("round {round}")),
                info_log_line(fixture.now, "two\0lines"),
            ];
            fixture
                .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(task, result) })
                .await
                .expect("its fence is the last one");
        }
        fixture.advance_clock(7);
    }
    fixture.request_collection_run("shop/orders").await;
    assert!(!fixture.claim_as_pull_worker(&["fetched"], 1).await.is_empty());
    assert!(!fixture.claim(2).await.is_empty());
    fixture.schedule_tasks(2).await;
}

/// Adds orders: one ends, one finishes its first step, one is suspended, one is planned for later, one waits for a
/// retry.
async fn add_orders(fixture: &mut StoreFixture<'_>) {
    for id in ["1", "2", "3", "4"] {
        fixture
            .add_order(new_order(&format!("/publish/article,{id}")).with_value("{\"title\": \"x\"}"))
            .await;
    }
    fixture
        .add_order(
            new_order("/publish/article,later").planned_at(fixture.seconds_from_now(3600)).for_tenant("acme"),
        )
        .await;
    fixture.emit(new_event("article").with_key("a1")).await;
    for task in fixture.claim_for_handlers(&["render"], 3).await {
        fixture.succeed(&task).await;
    }
    let deploys = fixture.claim_for_handlers(&["deploy"], 2).await;
    fixture.succeed(&deploys[0]).await;
    fixture.fail(&deploys[1]).await;
    fixture.suspend_order("/publish/article,4").await;
    fixture.set_chain_node_action("/publish/article render", ChainNodeAction::Stop).await;
}

async fn fire_schedules(fixture: &mut StoreFixture<'_>) {
    let definitions = [
        schedule_definition("nightly", "0 3 * * *"),
        schedule_definition("shop/orders", "@hourly"),
        schedule_definition("held", "daily"),
    ];
    fixture.register_schedules(&definitions).await;
    let (first, second) = (fixture.seconds_from_now(1), fixture.seconds_from_now(2));
    fixture.set_pause_rule("@held").await;
    fixture.advance_clock(3);
    fixture
        .record_fire(
            FireRequestBuilder::emitting_event(new_event("report").with_key("daily")).build("nightly", first),
        )
        .await;
    fixture.record_fire(skip_fire_request("nightly", second)).await;
    fixture
        .record_fire(
            FireRequestBuilder::running_collection("shop/customers")
                .with_punctuality(Punctuality::CaughtUp)
                .build("shop/orders", first),
        )
        .await;
    fixture.record_fire(FireRequestBuilder::emitting_event(new_event("report")).build("held", second)).await;
}

async fn set_rules_and_audit_entries(fixture: &mut StoreFixture<'_>) {
    fixture.set_pause_rule("index").await;
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Block, "shop/customers", None)).await);
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Pause, "loose", Some("acme"))).await);
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Pause, "/publish/article", None)).await);
    for n in 0..3 {
        let entry = AuditEntry {
            at: fixture.now,
            actor: "ann".into(),
            action: "pause".into(),
            target: format!("handler {n}"),
            detail: "because".into(),
        };
        expect_ok(fixture.store.append_audit_entry(entry).await);
    }
}
