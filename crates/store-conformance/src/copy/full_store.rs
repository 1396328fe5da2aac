//! A store that holds something of everything.

use pointsman_core::chain::Action;
use pointsman_core::fire::Punctual;
use pointsman_core::store::{Abilities, Deed, Ended, Ending};
use pointsman_core::{Limits, RuleKind};

use crate::fixture::*;

pub fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .by("server")
        .on("record", &["check!", "index", "gone"])
        .on("note", &["strict", "fetched"])
        .on("bulk", &["loose"])
        .halting("strict")
        .pulled("fetched")
        .free("loose")
        .limited("loose", Limits { concurrency: Some(3), rate: "100/m".parse().ok(), ..Limits::default() })
        .favouring("acme", 3)
        .collects("shop/orders", 200)
        .collects("shop/customers", 100)
        .chain("/publish/article", "render=render>deploy!failed deploy=deploy>done done failed")
        .setback("/publish/article", "deploy", 3, 30)
        .orders("article", "/publish/article")
        .file("Job:/index", "1")
}

/// Fills a world that has this plan. Afterwards half of it is in the middle of something.
pub async fn fill(world: &mut StoreFixture<'_>) {
    let abilities = Abilities { handlers: world.plan.names(), ..Abilities::default() };
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
        let record = new_event("record").key(&format!("r{}", n % 3)).sub("part").tenant(tenant);
        world.emit(record.value(&format!("{{\"n\": {n}, \"ü\": [1.50]}}"))).await;
        world.emit(new_event("note").key(&format!("n{}", n % 2)).due(world.later(n * 10))).await;
        world.emit(new_event("bulk").priority(1 + n as i64)).await;
    }
    world.append(vec![keyed_emission("default", "once", 7, vec![new_event("bulk").key("b")])]).await;
    world.tick(20);
    world.lose("gone").await;
}

/// Some succeed, some fail, some fail for good, some run on.
async fn work(world: &mut StoreFixture<'_>) {
    for round in 0..3 {
        for (n, task) in world.claim(9).await.iter().enumerate() {
            let ended = match n % 4 {
                0 => Ended::Succeeded { result: Some(parse_json("{\"ok\": true}")) },
                1 => retryable_failure(),
                2 => Ended::Failed { error: "a NUL\0 in it".into(), code: 3, after: None, last: true },
                _ => Ended::Snoozed { until: world.later(40) },
            };
            let logs =
                vec![info_line(world.now, &format!("round {round}")), info_line(world.now, "two\0lines")];
            world
                .end(Ending { logs, ..attempt_ending(task, ended) })
                .await
                .expect("its fence is the last one");
        }
        world.tick(7);
    }
    world.run("shop/orders").await;
    assert!(!world.fetch(&["fetched"], 1).await.is_empty());
    assert!(!world.claim(2).await.is_empty());
    world.schedule(2).await;
}

/// One has ended, one has done its first step, one is suspended, one waits for its time, one waits behind a setback.
async fn orders(world: &mut StoreFixture<'_>) {
    for id in ["1", "2", "3", "4"] {
        world.add(new_order(&format!("/publish/article,{id}")).holding("{\"title\": \"x\"}")).await;
    }
    world.add(new_order("/publish/article,later").planned(world.later(3600)).owned_by("acme")).await;
    world.emit(new_event("article").key("a1")).await;
    for task in world.claim_for(&["render"], 3).await {
        world.succeed(&task).await;
    }
    let deploys = world.claim_for(&["deploy"], 2).await;
    world.succeed(&deploys[0]).await;
    world.fail(&deploys[1]).await;
    world.suspend("/publish/article,4").await;
    world.set_node("/publish/article render", Action::Stop).await;
}

async fn schedules(world: &mut StoreFixture<'_>) {
    let plans = [
        schedule_definition("nightly", "0 3 * * *"),
        schedule_definition("shop/orders", "@hourly"),
        schedule_definition("held", "daily"),
    ];
    world.plan_schedules(&plans).await;
    let (first, second) = (world.later(1), world.later(2));
    world.pause("@held").await;
    world.tick(3);
    world.settle(FiringBuilder::event(new_event("report").key("daily")).at("nightly", first)).await;
    world.settle(skipped_firing("nightly", second)).await;
    world
        .settle(FiringBuilder::run("shop/customers").when(Punctual::CaughtUp).at("shop/orders", first))
        .await;
    world.settle(FiringBuilder::event(new_event("report")).at("held", second)).await;
}

async fn people(world: &mut StoreFixture<'_>) {
    world.pause("index").await;
    expect_ok(world.store.hold(world.rule(RuleKind::Block, "shop/customers", None)).await);
    expect_ok(world.store.hold(world.rule(RuleKind::Pause, "loose", Some("acme"))).await);
    expect_ok(world.store.hold(world.rule(RuleKind::Pause, "/publish/article", None)).await);
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
