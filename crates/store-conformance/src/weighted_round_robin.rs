//! Weighted round robin: over tenants, then over a tenant's queues, then over the keys of a queue. In a
//! queue, tasks of a higher priority come first; the priority grows with age if the handler has an ageing interval.

use std::collections::BTreeMap;

use pointsman_core::store::ClaimedTask;
use pointsman_core::{Limits, Tenant};

use crate::Harness;
use crate::fixture::*;

/// Seconds from the start time of fixtures to a time in 2024, from which on the core counts ages.
const SECS_UNTIL_AGEING_EPOCH: u64 = 10_000_000;

/// Claims `count` tasks one by one and succeeds each.
async fn claim_and_succeed(fixture: &StoreFixture<'_>, count: usize) -> Vec<ClaimedTask> {
    let mut served = Vec::new();
    for _ in 0..count {
        let task = fixture.claim_one().await;
        fixture.succeed(&task).await;
        served.push(task);
    }
    served
}

fn count_by<K: Ord>(tasks: &[ClaimedTask], what: impl Fn(&ClaimedTask) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for task in tasks {
        *counts.entry(what(task)).or_default() += 1;
    }
    counts
}

fn count_by_tenant(tasks: &[ClaimedTask]) -> BTreeMap<Tenant, usize> {
    count_by(tasks, |task| task.event().tenant.clone())
}

fn count_by_handler(tasks: &[ClaimedTask]) -> BTreeMap<String, usize> {
    count_by(tasks, |task| task.handler.to_string())
}

fn count_by_key(tasks: &[ClaimedTask]) -> BTreeMap<String, usize> {
    count_by(tasks, |task| task.event().key.as_ref().map_or(String::new(), ToString::to_string))
}

/// Asserts that `got` differs from `want` by at most a twentieth of `all`.
fn assert_within_five_percent(got: usize, want: usize, all: usize) {
    assert!(got.abs_diff(want) * 20 <= all, "{got} instead of {want} of {all}");
}

fn two_handler_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("big", &["big"]).route("small", &["small"])
}

pub async fn claims_follow_handler_weights(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, two_handler_registration().handler_weight("big", 3)).await;
    for kind in ["big", "small"] {
        fixture.emit_copies(400, new_event(kind)).await;
    }
    let served = count_by_handler(&claim_and_succeed(&fixture, 400).await);
    assert_within_five_percent(served["big"], 300, 400);
    let mut claimed = Vec::new();
    for size in [16, 7, 16, 3, 16, 2] {
        claimed.extend(fixture.claim(size).await);
    }
    assert_within_five_percent(count_by_handler(&claimed)["big"], 45, 60);
}

pub async fn claims_follow_tenant_weights(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().tenant_weight("rich", 4)).await;
    for tenant_name in ["rich", "poor"] {
        fixture.emit_copies(500, new_event("record").for_tenant(tenant_name)).await;
    }
    let served = count_by_tenant(&claim_and_succeed(&fixture, 500).await);
    assert_within_five_percent(served[&tenant("rich")], 400, 500);
}

pub async fn weights_change_with_the_registration_and_survive_a_restart(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, two_handler_registration()).await;
    for kind in ["big", "small"] {
        fixture.emit_copies(500, new_event(kind)).await;
    }
    assert_within_five_percent(count_by_handler(&claim_and_succeed(&fixture, 100).await)["big"], 50, 100);
    fixture.register(two_handler_registration().handler_weight("big", 4)).await;
    assert_within_five_percent(count_by_handler(&claim_and_succeed(&fixture, 100).await)["big"], 80, 100);
    let fixture = fixture.reopen().await;
    assert_within_five_percent(count_by_handler(&claim_and_succeed(&fixture, 200).await)["big"], 160, 200);
}

/// A tenant with many handlers gets no larger share.
pub async fn tenants_share_equally_however_many_handlers_they_use(harness: &dyn Harness) {
    let names: Vec<_> = (0..10).map(|n| format!("handler-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let fixture = StoreFixture::new(
        harness,
        RegistrationBuilder::default().route("many", &names).route("one", &names[..1]),
    )
    .await;
    fixture.emit_copies(50, new_event("many").for_tenant("wide")).await;
    fixture.emit_copies(200, new_event("one").for_tenant("narrow")).await;
    let served = claim_and_succeed(&fixture, 200).await;
    assert_within_five_percent(count_by_tenant(&served)[&tenant("wide")], 100, 200);
    let wide: Vec<_> = served.into_iter().filter(|task| task.event().tenant == tenant("wide")).collect();
    for (name, count) in count_by_handler(&wide) {
        assert!(count.abs_diff(10) <= 2, "{name} got {count} of about 10 claims");
    }
}

/// A tenant's share does not depend on its handlers' weights; the weights only divide that share.
pub async fn handler_weights_apply_within_one_tenant_only(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, two_handler_registration().handler_weight("big", 1000)).await;
    fixture.emit_copies(200, new_event("big").for_tenant("heavy")).await;
    fixture.emit_copies(200, new_event("small").for_tenant("light")).await;
    assert_within_five_percent(
        count_by_tenant(&claim_and_succeed(&fixture, 200).await)[&tenant("heavy")],
        100,
        200,
    );
}

pub async fn an_idle_tenant_earns_no_credit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record").for_tenant("sleepy")).await;
    fixture.emit_copies(400, new_event("record").for_tenant("busy")).await;
    claim_and_succeed(&fixture, 200).await;
    fixture.emit_copies(100, new_event("record").for_tenant("sleepy")).await;
    assert_within_five_percent(
        count_by_tenant(&claim_and_succeed(&fixture, 60).await)[&tenant("sleepy")],
        30,
        60,
    );
}

/// One busy tenant and many quiet ones: each of the quiet ones is served within a round.
pub async fn a_busy_tenant_delays_others_by_at_most_one_round(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    fixture.emit_copies(1000, new_event("record").for_tenant("flood")).await;
    claim_and_succeed(&fixture, 50).await;
    for n in 0..20 {
        fixture.emit(new_event("record").for_tenant(&format!("quiet-{n}"))).await;
    }
    let served = count_by_tenant(&claim_and_succeed(&fixture, 44).await);
    assert_eq!(served.len(), 21, "{served:?}");
    assert!(served[&tenant("flood")] <= 6, "{served:?}");
}

async fn assert_busy_key_delays_other_keys_little(harness: &dyn Harness, registration: RegistrationBuilder) {
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.emit_copies(1000, new_event("record").with_key("crowded")).await;
    claim_and_succeed(&fixture, 5).await;
    fixture.emit(new_event("record").with_key("quiet")).await;
    let served = count_by_key(&claim_and_succeed(&fixture, 3).await);
    assert_eq!(served.get("quiet"), Some(&1), "{served:?}");
}

pub async fn a_long_lane_delays_another_lane_by_about_one_task(harness: &dyn Harness) {
    assert_busy_key_delays_other_keys_little(harness, RegistrationBuilder::single_handler()).await;
}

pub async fn a_busy_unordered_key_delays_another_key_by_about_one_task(harness: &dyn Harness) {
    assert_busy_key_delays_other_keys_little(
        harness,
        RegistrationBuilder::single_handler().unordered("index"),
    )
    .await;
}

async fn assert_keys_share_evenly(harness: &dyn Harness, registration: RegistrationBuilder) {
    let fixture = StoreFixture::new(harness, registration).await;
    for n in 0..10 {
        // All events of the first key come before those of the second, and so on: by age alone they would run in this
        // order.
        fixture.emit_copies(30, new_event("record").with_key(&format!("key-{n}"))).await;
    }
    let served = count_by_key(&claim_and_succeed(&fixture, 100).await);
    assert_eq!(served.len(), 10, "{served:?}");
    for (key, count) in &served {
        assert!(count.abs_diff(10) <= 3, "{key} was served {count} times of about 10: {served:?}");
    }
}

pub async fn lanes_share_a_queue_evenly(harness: &dyn Harness) {
    assert_keys_share_evenly(harness, RegistrationBuilder::single_handler()).await;
}

pub async fn unordered_keys_share_a_queue_evenly(harness: &dyn Harness) {
    assert_keys_share_evenly(harness, RegistrationBuilder::single_handler().unordered("index")).await;
}

/// Priority orders the tasks of a queue; keys of the same priority take turns.
pub async fn priority_comes_before_round_robin_between_keys(harness: &dyn Harness) {
    for registration in
        [RegistrationBuilder::single_handler(), RegistrationBuilder::single_handler().unordered("index")]
    {
        let fixture = StoreFixture::new(harness, registration).await;
        fixture.emit_copies(5, new_event("record").with_key("low").with_priority(10)).await;
        fixture.emit_copies(5, new_event("record").with_key("high").with_priority(1000)).await;
        let served = claim_and_succeed(&fixture, 5).await;
        assert_eq!(count_by_key(&served), BTreeMap::from([("high".into(), 5)]));
    }
}

pub async fn ageing_raises_the_priority_of_waiting_tasks(harness: &dyn Harness) {
    let ageing = Limits { ageing_interval: Some(secs(60)), ..Limits::default() };
    for (minutes, old_first) in [(9, false), (11, true)] {
        let mut fixture =
            StoreFixture::new(harness, RegistrationBuilder::single_handler().limits("index", ageing.clone()))
                .await;
        fixture.advance_clock(SECS_UNTIL_AGEING_EPOCH);
        let old = fixture.emit(new_event("record").with_priority(100)).await;
        fixture.advance_clock(60 * minutes);
        let young = fixture.emit(new_event("record").with_priority(110)).await;
        let mut fixture = fixture.reopen().await;
        fixture.advance_clock(100_000);
        let order = event_ids_of_tasks(&claim_and_succeed(&fixture, 2).await);
        assert_eq!(
            order,
            if old_first { [old.id, young.id] } else { [young.id, old.id] },
            "{minutes} minutes"
        );
    }
}

/// With an ageing interval, a low-priority task runs in spite of a stream of urgent tasks; without one it starves.
pub async fn low_priority_tasks_starve_only_without_ageing(harness: &dyn Harness) {
    let ageing = Limits { ageing_interval: Some(secs(1)), ..Limits::default() };
    for (limits, starves) in [(Limits::default(), true), (ageing, false)] {
        let mut fixture =
            StoreFixture::new(harness, RegistrationBuilder::single_handler().limits("index", limits)).await;
        fixture.advance_clock(SECS_UNTIL_AGEING_EPOCH);
        let low = fixture.emit(new_event("record").with_priority(50)).await.id;
        let mut served = Vec::new();
        for _ in 0..100 {
            fixture.advance_clock(1);
            fixture.emit_copies(2, new_event("record").with_priority(100)).await;
            served.extend(event_ids_of_tasks(&claim_and_succeed(&fixture, 1).await));
        }
        assert_eq!(served.contains(&low), !starves);
    }
}

/// Tasks of a key do not fall behind later tasks of that key, even if the store loses its round robin state.
pub async fn tasks_of_a_key_keep_their_order_across_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    let mut events =
        event_ids_of_receipts(&fixture.emit_copies(30, new_event("record").with_key("crowded")).await);
    claim_and_succeed(&fixture, 5).await;
    let fixture = fixture.reopen().await;
    events.push(fixture.emit(new_event("record").with_key("crowded")).await.id);
    fixture.emit(new_event("record").with_key("quiet")).await;
    let served = claim_and_succeed(&fixture, 3).await;
    assert_eq!(count_by_key(&served).get("quiet"), Some(&1), "and others keep their turns");
    let crowded = |task: &&ClaimedTask| task.event().key == Some(object_key("crowded"));
    let mut order: Vec<_> = served.iter().filter(crowded).map(|task| task.event().id).collect();
    order.extend(event_ids_of_tasks(&claim_and_succeed(&fixture, 24).await));
    assert_eq!(order, events[5..]);
}

/// Tasks from before and after a change of ageing are ordered by the same score.
pub async fn changing_ageing_does_not_reorder_waiting_tasks(harness: &dyn Harness) {
    let aged = RegistrationBuilder::single_handler()
        .limits("index", Limits { ageing_interval: Some(secs(60)), ..Limits::default() });
    for (before, after) in
        [(aged.clone(), RegistrationBuilder::single_handler()), (RegistrationBuilder::single_handler(), aged)]
    {
        let mut fixture = StoreFixture::new(harness, before).await;
        fixture.advance_clock(SECS_UNTIL_AGEING_EPOCH);
        let old = fixture.emit(new_event("record").with_priority(100)).await.id;
        fixture.register(after).await;
        fixture.advance_clock(1);
        let equal = fixture.emit(new_event("record").with_priority(100)).await.id;
        let urgent = fixture.emit(new_event("record").with_priority(9000)).await.id;
        assert_eq!(event_ids_of_tasks(&claim_and_succeed(&fixture, 3).await), [urgent, old, equal]);
    }
}

/// Each priority has its own round over the keys: tasks of a high priority use no turn of those of a lower one.
pub async fn round_robin_between_keys_is_separate_for_each_priority(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit_copies(50, new_event("record").with_key("patient")).await;
    fixture.emit_copies(50, new_event("record").with_key("urgent").with_priority(200)).await;
    for task in fixture.claim(50).await {
        fixture.succeed(&task).await;
    }
    let new = fixture.emit(new_event("record").with_key("new")).await;
    let next = fixture.claim(3).await;
    assert!(event_ids_of_tasks(&next).contains(&new.id), "it waits for one of the others at most");
}
