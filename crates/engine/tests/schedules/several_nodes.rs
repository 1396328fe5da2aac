//! Several nodes, and schedules that are removed and restored.

use pointsman_core::Timestamp;
use pointsman_core::fire::{FireDecision, OverlapPolicy, Punctuality};
use pointsman_core::store::{FireRequest, Schedules};
use pointsman_engine::Setup;

use super::*;

fn ticking_engine() -> TestEngineBuilder {
    TestEngineBuilder::default().schedule(every_second())
}

#[tokio::test]
async fn two_clocks_fire_each_planned_time_once() {
    let store = in_memory_store();
    let tick = every_second();
    let (one, other) = (ticking_engine().start(&store).await, ticking_engine().start(&store).await);
    wait_for_ledger(&store, &tick, "some firings", |fires| fires.len() >= 2).await;
    one.stop(TEST_TIMEOUT).await;
    // A third node joins while the second one fires.
    let third = ticking_engine().start(&store).await;
    wait_for_ledger(&store, &tick, "more firings", |fires| fires.len() >= 4).await;
    other.stop(TEST_TIMEOUT).await;
    wait_for_ledger(&store, &tick, "yet more firings", |fires| fires.len() >= 6).await;
    third.stop(TEST_TIMEOUT).await;

    let fires = read_ledger(&store, &tick).await;
    let (first, last) = (fires[0].planned_at, fires[fires.len() - 1].planned_at);
    let every: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned_at).collect::<Vec<_>>(), every, "no time was left out");
    assert!(fires.iter().all(|fire| matches!(fire.outcome, FireOutcome::Fired | FireOutcome::Late)));
    let events = list_events(&third).await;
    assert_eq!(
        created_event_ids(&fires),
        events.iter().map(|event| event.id).collect::<Vec<_>>(),
        "one event for each planned time"
    );
    let planned_times: Vec<_> = events.iter().map(|event| event.context["planned_at"].clone()).collect();
    assert_eq!(planned_times, every.iter().map(Timestamp::to_string).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event.context["schedule"] == "tick"));
}

/// Another node might have kept the schedule all the time.
#[tokio::test]
async fn a_restored_schedule_continues_where_it_was() {
    let store = in_memory_store();
    let tick = every_second();
    let engine = ticking_engine().start(&store).await;
    wait_for_ledger(&store, &tick, "a firing", |fires| !fires.is_empty()).await;
    // A fire of another schedule shows that the clock has read the new setup.
    let other = event_schedule("other", "every 1s");
    let setup = |schedules| Setup { schedules, ..Setup::default() };
    engine.reconfigure(setup(vec![other.clone()])).await.unwrap();
    wait_for_ledger(&store, &other, "the other schedule", |fires| !fires.is_empty()).await;
    let before = read_ledger(&store, &tick).await.len();
    wait_until_past(now().plus(SECOND * 2)).await;
    assert_eq!(read_ledger(&store, &tick).await.len(), before, "the schedule is not in the setup");
    engine.reconfigure(setup(vec![other, tick.clone()])).await.unwrap();
    let fires = wait_for_ledger(&store, &tick, "ticks again", |fires| fires.len() >= before + 4).await;
    engine.stop(TEST_TIMEOUT).await;
    let (first, last) = (fires[0].planned_at, fires[fires.len() - 1].planned_at);
    let every: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned_at).collect::<Vec<_>>(), every, "no time was left out");
}

/// A clock was ahead for a while: rows were written for times that are still to come, the latest of them far ahead.
#[tokio::test]
async fn after_an_undone_clock_step_only_times_without_a_row_fire() {
    let (store, tick) = (in_memory_store(), every_second());
    let begin = now();
    register_schedules_at(&store, &[&tick], begin).await;
    let settled: Vec<_> = tick.cron.between(begin.plus(SECOND * 2), begin.plus(SECOND * 4)).collect();
    let far = tick.cron.next(begin.plus(HOUR / 2)).unwrap();
    let firing = |planned: Timestamp| FireRequest {
        schedule: tick.name.clone(),
        planned_at: planned,
        decision: FireDecision::Fire {
            action: tick.action.clone(),
            punctuality: Punctuality::CaughtUp,
            overlap: OverlapPolicy::default(),
        },
    };
    let rows: Vec<_> = settled.iter().copied().chain([far]).map(firing).collect();
    store.record_fires(rows, begin.plus(HOUR)).await.unwrap();

    let engine = ticking_engine().start(&store).await;
    let last = settled[settled.len() - 1];
    let beyond =
        |fires: &[Fire]| fires.iter().filter(|fire| (last..far).contains(&fire.planned_at)).count() > 2;
    wait_for_ledger(&store, &tick, "times after those that have a row", beyond).await;
    engine.stop(TEST_TIMEOUT).await;
    let (fires, emitted) = (read_ledger(&store, &tick).await, list_events(&engine).await);
    for fire in &fires {
        let has_row = settled.contains(&fire.planned_at) || fire.planned_at == far;
        assert_eq!(fire.outcome == FireOutcome::CaughtUp, has_row, "{fire:?}");
    }
    let come: Vec<_> = fires.iter().map(|fire| fire.planned_at).filter(|planned| *planned < far).collect();
    let every: Vec<_> = tick.cron.between(come[0].minus(SECOND), come[come.len() - 1]).collect();
    assert_eq!(come, every, "no time is left out");
    assert_eq!(created_event_ids(&fires).len(), emitted.len(), "no time fires twice");
}

#[tokio::test]
async fn a_clock_set_back_does_not_stop_schedules() {
    let store = in_memory_store();
    let (ahead, astray) = (event_schedule("ahead", "every 1s"), event_schedule("astray", "every 1s"));
    register_schedules_at(&store, &[&astray], now().plus(DAY * 365)).await;
    register_schedules_at(&store, &[&astray, &ahead], now().plus(HOUR / 2)).await;
    let engine =
        TestEngineBuilder::default().schedule(ahead.clone()).schedule(astray.clone()).start(&store).await;
    for schedule in [&ahead, &astray] {
        wait_for_ledger(&store, schedule, "some firings", |fires| created_event_ids(fires).len() >= 2).await;
    }
    engine.stop(TEST_TIMEOUT).await;
}
