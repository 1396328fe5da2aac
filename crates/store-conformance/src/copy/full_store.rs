//! A store that holds something of everything.

use pointsman_core::chain::Action;
use pointsman_core::fire::Punctual;
use pointsman_core::store::{Abilities, Deed, Ended, Ending};
use pointsman_core::{Limits, RuleKind};

use crate::fixture::*;

pub fn plan() -> RegistrationBuilder {
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
        .step_retry("/publish/article", "deploy", 3, 30)
        .chain_route("article", "/publish/article")
        .config_file("Job:/index", "1")
}

/// Fills a world that has this plan. Afterwards half of it is in the middle of something.
pub async fn fill(world: &mut StoreFixture<'_>) {
    let abilities = Abilities { handlers: world.plan.handler_names(), ..Abilities::default() };
    expect_ok(world.store.announce(world.node, abilities).await);
    emit(world).await;
    work(world).await;
    orders(world).await;
    schedules(world).await;
    people(world).await;
}

async fn emit(world: &mut StoreFixture<'_>) {
    for n in 0..9 {
        let tenant = if n % 3 == 0 { "acme" } else { "default" };
        let record =
            new_event("record").with_key(&format!("r{}", n % 3)).with_sub_key("part").for_tenant(tenant);
        world.emit(record.with_value(&format!("{{\"n\": {n}, \"ü\": [1.50]}}"))).await;
        world
            .emit(new_event("note").with_key(&format!("n{}", n % 2)).due_at(world.seconds_from_now(n * 10)))
            .await;
        world.emit(new_event("bulk").with_priority(1 + n as i64)).await;
    }
    world.append(vec![keyed_emission("default", "once", 7, vec![new_event("bulk").with_key("b")])]).await;
    world.advance_clock(20);
    world.undefine_handler("gone").await;
}

/// Some succeed, some fail, some fail for good, some run on.
async fn work(world: &mut StoreFixture<'_>) {
    for round in 0..3 {
        for (n, task) in world.claim(9).await.iter().enumerate() {
            let ended = match n % 4 {
                0 => Ended::Succeeded { result: Some(parse_json("{\"ok\": true}")) },
                1 => retryable_failure(),
                2 => Ended::Failed { error: "a NUL\0 in it".into(), code: 3, after: None, last: true },
                _ => Ended::Snoozed { until: world.seconds_from_now(40) },
            };
            let logs =
                vec![info_line(world.now, &format!("round {round}")), info_line(world.now, "two\0lines")];
            world
                .finish_attempt(Ending { logs, ..attempt_ending(task, ended) })
                .await
                .expect("its fence is the last one");
        }
        world.advance_clock(7);
    }
    world.request_run("shop/orders").await;
    assert!(!world.fetch_as_worker(&["fetched"], 1).await.is_empty());
    assert!(!world.claim(2).await.is_empty());
    world.schedule_ahead(2).await;
}

/// One has ended, one has done its first step, one is suspended, one waits for its time, one waits behind a setback.
async fn orders(world: &mut StoreFixture<'_>) {
    for id in ["1", "2", "3", "4"] {
        world.add_order(new_order(&format!("/publish/article,{id}")).with_value("{\"title\": \"x\"}")).await;
    }
    world
        .add_order(
            new_order("/publish/article,later").planned_at(world.seconds_from_now(3600)).for_tenant("acme"),
        )
        .await;
    world.emit(new_event("article").with_key("a1")).await;
    for task in world.claim_for_handlers(&["render"], 3).await {
        world.succeed(&task).await;
    }
    let deploys = world.claim_for_handlers(&["deploy"], 2).await;
    world.succeed(&deploys[0]).await;
    world.fail(&deploys[1]).await;
    world.suspend_order("/publish/article,4").await;
    world.set_node_action("/publish/article render", Action::Stop).await;
}

async fn schedules(world: &mut StoreFixture<'_>) {
    let plans = [
        schedule_definition("nightly", "0 3 * * *"),
        schedule_definition("shop/orders", "@hourly"),
        schedule_definition("held", "daily"),
    ];
    world.plan_schedules(&plans).await;
    let (first, second) = (world.seconds_from_now(1), world.seconds_from_now(2));
    world.pause("@held").await;
    world.advance_clock(3);
    world
        .resolve_firing(
            FiringBuilder::emitting(new_event("report").with_key("daily")).build("nightly", first),
        )
        .await;
    world.resolve_firing(skipped_firing("nightly", second)).await;
    world
        .resolve_firing(
            FiringBuilder::starting_run("shop/customers")
                .with_punctuality(Punctual::CaughtUp)
                .build("shop/orders", first),
        )
        .await;
    world.resolve_firing(FiringBuilder::emitting(new_event("report")).build("held", second)).await;
}

async fn people(world: &mut StoreFixture<'_>) {
    world.pause("index").await;
    expect_ok(world.store.hold(world.new_rule(RuleKind::Block, "shop/customers", None)).await);
    expect_ok(world.store.hold(world.new_rule(RuleKind::Pause, "loose", Some("acme"))).await);
    expect_ok(world.store.hold(world.new_rule(RuleKind::Pause, "/publish/article", None)).await);
    for n in 0..3 {
        let deed = Deed {
            at: world.now,
            by: "ann".into(),
            action: "pause".into(),
            what: format!("handler {n}"),
            detail: "because".into(),
        };
        expect_ok(world.store.note(deed).await);
    }
}
