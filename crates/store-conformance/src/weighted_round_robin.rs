//! Whose turn it is: by weight over tenants, then over a tenant's queues, then over the keys of a queue.

use std::collections::BTreeMap;

use pointsman_core::store::Claimed;
use pointsman_core::{Limits, Tenant};

use crate::Harness;
use crate::fixture::*;

/// The core counts ages from 2024 on, and stories begin before that.
const AGES: u64 = 10_000_000;

/// Claims so many one by one, and ends each at once.
async fn serve(world: &StoreFixture<'_>, count: usize) -> Vec<Claimed> {
    let mut served = Vec::new();
    for _ in 0..count {
        let task = world.claim_one().await;
        world.succeed(&task).await;
        served.push(task);
    }
    served
}

fn by<K: Ord>(tasks: &[Claimed], what: impl Fn(&Claimed) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for task in tasks {
        *counts.entry(what(task)).or_default() += 1;
    }
    counts
}

fn by_tenant(tasks: &[Claimed]) -> BTreeMap<Tenant, usize> {
    by(tasks, |task| task.event().tenant.clone())
}

fn by_handler(tasks: &[Claimed]) -> BTreeMap<String, usize> {
    by(tasks, |task| task.handler.to_string())
}

fn by_key(tasks: &[Claimed]) -> BTreeMap<String, usize> {
    by(tasks, |task| task.event().key.as_ref().map_or(String::new(), ToString::to_string))
}

/// Within a twentieth of all.
fn about(got: usize, want: usize, all: usize) {
    assert!(got.abs_diff(want) * 20 <= all, "{got} instead of {want} of {all}");
}

fn two() -> RegistrationBuilder {
    RegistrationBuilder::default().route("big", &["big"]).route("small", &["small"])
}

pub async fn claims_follow_handler_weights(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, two().handler_weight("big", 3)).await;
    for kind in ["big", "small"] {
        world.emit_many(400, new_event(kind)).await;
    }
    let served = by_handler(&serve(&world, 400).await);
    about(served["big"], 300, 400);
    let mut claimed = Vec::new();
    for size in [16, 7, 16, 3, 16, 2] {
        claimed.extend(world.claim(size).await);
    }
    about(by_handler(&claimed)["big"], 45, 60);
}

pub async fn claims_follow_tenant_weights(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().tenant_weight("rich", 4)).await;
    for of in ["rich", "poor"] {
        world.emit_many(500, new_event("record").for_tenant(of)).await;
    }
    let served = by_tenant(&serve(&world, 500).await);
    about(served[&tenant("rich")], 400, 500);
}

pub async fn weights_change_with_the_registration_and_survive_a_restart(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, two()).await;
    for kind in ["big", "small"] {
        world.emit_many(500, new_event(kind)).await;
    }
    about(by_handler(&serve(&world, 100).await)["big"], 50, 100);
    world.register(two().handler_weight("big", 4)).await;
    about(by_handler(&serve(&world, 100).await)["big"], 80, 100);
    let world = world.reopen().await;
    about(by_handler(&serve(&world, 200).await)["big"], 160, 200);
}

/// Having many handlers earns a tenant nothing.
pub async fn tenants_share_equally_however_many_handlers_they_use(harness: &dyn Harness) {
    let names: Vec<_> = (0..10).map(|n| format!("handler-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let world = StoreFixture::new(
        harness,
        RegistrationBuilder::default().route("many", &names).route("one", &names[..1]),
    )
    .await;
    world.emit_many(50, new_event("many").for_tenant("wide")).await;
    world.emit_many(200, new_event("one").for_tenant("narrow")).await;
    let served = serve(&world, 200).await;
    about(by_tenant(&served)[&tenant("wide")], 100, 200);
    let wide: Vec<_> = served.into_iter().filter(|task| task.event().tenant == tenant("wide")).collect();
    for (name, count) in by_handler(&wide) {
        assert!(count.abs_diff(10) <= 2, "{name} got {count} of about 10 turns");
    }
}

/// A tenant's share is its own, however its handlers weigh; the weights share it out among them.
pub async fn handler_weights_apply_within_one_tenant_only(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, two().handler_weight("big", 1000)).await;
    world.emit_many(200, new_event("big").for_tenant("heavy")).await;
    world.emit_many(200, new_event("small").for_tenant("light")).await;
    about(by_tenant(&serve(&world, 200).await)[&tenant("heavy")], 100, 200);
}

pub async fn an_idle_tenant_earns_no_credit(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit(new_event("record").for_tenant("sleepy")).await;
    world.emit_many(400, new_event("record").for_tenant("busy")).await;
    serve(&world, 200).await;
    world.emit_many(100, new_event("record").for_tenant("sleepy")).await;
    about(by_tenant(&serve(&world, 60).await)[&tenant("sleepy")], 30, 60);
}

/// One flooding tenant, many quiet ones: each of them is served within a round.
pub async fn a_busy_tenant_delays_others_by_at_most_one_round(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    world.emit_many(1000, new_event("record").for_tenant("flood")).await;
    serve(&world, 50).await;
    for n in 0..20 {
        world.emit(new_event("record").for_tenant(&format!("quiet-{n}"))).await;
    }
    let served = by_tenant(&serve(&world, 44).await);
    assert_eq!(served.len(), 21, "{served:?}");
    assert!(served[&tenant("flood")] <= 6, "{served:?}");
}

async fn a_crowded_key(harness: &dyn Harness, plan: RegistrationBuilder) {
    let world = StoreFixture::new(harness, plan).await;
    world.emit_many(1000, new_event("record").with_key("crowded")).await;
    serve(&world, 5).await;
    world.emit(new_event("record").with_key("quiet")).await;
    let served = by_key(&serve(&world, 3).await);
    assert_eq!(served.get("quiet"), Some(&1), "{served:?}");
}

pub async fn a_long_lane_delays_another_lane_by_about_one_task(harness: &dyn Harness) {
    a_crowded_key(harness, RegistrationBuilder::single_handler()).await;
}

pub async fn a_busy_unordered_key_delays_another_key_by_about_one_task(harness: &dyn Harness) {
    a_crowded_key(harness, RegistrationBuilder::single_handler().unordered("index")).await;
}

async fn keys_share(harness: &dyn Harness, plan: RegistrationBuilder) {
    let world = StoreFixture::new(harness, plan).await;
    for n in 0..10 {
        // The first is emitted whole before the second, and so on: age alone would serve them in this order.
        world.emit_many(30, new_event("record").with_key(&format!("key-{n}"))).await;
    }
    let served = by_key(&serve(&world, 100).await);
    assert_eq!(served.len(), 10, "{served:?}");
    for (key, count) in &served {
        assert!(count.abs_diff(10) <= 3, "{key} was served {count} times of about 10: {served:?}");
    }
}

pub async fn lanes_share_a_queue_evenly(harness: &dyn Harness) {
    keys_share(harness, RegistrationBuilder::single_handler()).await;
}

pub async fn unordered_keys_share_a_queue_evenly(harness: &dyn Harness) {
    keys_share(harness, RegistrationBuilder::single_handler().unordered("index")).await;
}

/// Priority ranks what could run within a queue; keys take turns among equals.
pub async fn priority_comes_before_round_robin_between_keys(harness: &dyn Harness) {
    for plan in
        [RegistrationBuilder::single_handler(), RegistrationBuilder::single_handler().unordered("index")]
    {
        let world = StoreFixture::new(harness, plan).await;
        world.emit_many(5, new_event("record").with_key("low").with_priority(10)).await;
        world.emit_many(5, new_event("record").with_key("high").with_priority(1000)).await;
        let served = serve(&world, 5).await;
        assert_eq!(by_key(&served), BTreeMap::from([("high".into(), 5)]));
    }
}

pub async fn ageing_raises_the_priority_of_waiting_tasks(harness: &dyn Harness) {
    let ageing = Limits { ageing: Some(secs(60)), ..Limits::default() };
    for (minutes, old_first) in [(9, false), (11, true)] {
        let mut world =
            StoreFixture::new(harness, RegistrationBuilder::single_handler().limits("index", ageing.clone()))
                .await;
        world.advance_clock(AGES);
        let old = world.emit(new_event("record").with_priority(100)).await;
        world.advance_clock(60 * minutes);
        let young = world.emit(new_event("record").with_priority(110)).await;
        let mut world = world.reopen().await;
        world.advance_clock(100_000);
        let order = event_ids_of(&serve(&world, 2).await);
        assert_eq!(
            order,
            if old_first { [old.id, young.id] } else { [young.id, old.id] },
            "{minutes} minutes"
        );
    }
}

/// So that low ones do not starve under a stream of urgent ones.
pub async fn ageing_prevents_starvation(harness: &dyn Harness) {
    let ageing = Limits { ageing: Some(secs(1)), ..Limits::default() };
    for (limits, starves) in [(Limits::default(), true), (ageing, false)] {
        let mut world =
            StoreFixture::new(harness, RegistrationBuilder::single_handler().limits("index", limits)).await;
        world.advance_clock(AGES);
        let low = world.emit(new_event("record").with_priority(50)).await.id;
        let mut served = Vec::new();
        for _ in 0..100 {
            world.advance_clock(1);
            world.emit_many(2, new_event("record").with_priority(100)).await;
            served.extend(event_ids_of(&serve(&world, 1).await));
        }
        assert_eq!(served.contains(&low), !starves);
    }
}

/// Whatever is remembered of the turns of keys, what waits of a key does not fall behind what comes later.
pub async fn tasks_of_a_key_keep_their_order_across_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    let mut events = sequenced_ids(&world.emit_many(30, new_event("record").with_key("crowded")).await);
    serve(&world, 5).await;
    let world = world.reopen().await;
    events.push(world.emit(new_event("record").with_key("crowded")).await.id);
    world.emit(new_event("record").with_key("quiet")).await;
    let served = serve(&world, 3).await;
    assert_eq!(by_key(&served).get("quiet"), Some(&1), "and others keep their turns");
    let crowded = |task: &&Claimed| task.event().key == Some(object_key("crowded"));
    let mut order: Vec<_> = served.iter().filter(crowded).map(|task| task.event().id).collect();
    order.extend(event_ids_of(&serve(&world, 24).await));
    assert_eq!(order, events[5..]);
}

/// What waited when the ageing changed is ranked with what comes after by the same measure.
pub async fn changing_ageing_does_not_reorder_waiting_tasks(harness: &dyn Harness) {
    let aged = RegistrationBuilder::single_handler()
        .limits("index", Limits { ageing: Some(secs(60)), ..Limits::default() });
    for (before, after) in
        [(aged.clone(), RegistrationBuilder::single_handler()), (RegistrationBuilder::single_handler(), aged)]
    {
        let mut world = StoreFixture::new(harness, before).await;
        world.advance_clock(AGES);
        let old = world.emit(new_event("record").with_priority(100)).await.id;
        world.register(after).await;
        world.advance_clock(1);
        let equal = world.emit(new_event("record").with_priority(100)).await.id;
        let urgent = world.emit(new_event("record").with_priority(9000)).await.id;
        assert_eq!(event_ids_of(&serve(&world, 3).await), [urgent, old, equal]);
    }
}

/// What is urgent has its own round: it does not push those that are not behind each other.
pub async fn round_robin_between_keys_is_separate_for_each_priority(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    world.emit_many(50, new_event("record").with_key("patient")).await;
    world.emit_many(50, new_event("record").with_key("urgent").with_priority(200)).await;
    for task in world.claim(50).await {
        world.succeed(&task).await;
    }
    let new = world.emit(new_event("record").with_key("new")).await;
    let next = world.claim(3).await;
    assert!(event_ids_of(&next).contains(&new.id), "it waits for one of the others at most");
}
