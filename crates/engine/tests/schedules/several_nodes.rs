//! Several nodes, and schedules that are removed and restored.

use pointsman_core::Timestamp;
use pointsman_core::fire::{FireDecision, OverlapPolicy, Punctuality};
use pointsman_core::store::{FireRequest, Schedules};
use pointsman_engine::Setup;

use super::*;

fn builder_with_tick_schedule() -> TestEngineBuilder {
    TestEngineBuilder::default().schedule(every_second_schedule())
}

#[tokio::test]
async fn several_nodes_fire_each_planned_time_once() {
    let store = in_memory_store();
    let tick = every_second_schedule();
    let (one, other) =
        (builder_with_tick_schedule().start(&store).await, builder_with_tick_schedule().start(&store).await);
    wait_for_ledger(&store, &tick, "some firings", |fires| fires.len() >= 2).await;
    one.stop(TEST_TIMEOUT).await;
    // A third node joins while the second one fires.
    let third = builder_with_tick_schedule().start(&store).await;
    wait_for_ledger(&store, &tick, "more firings", |fires| fires.len() >= 4).await;
    other.stop(TEST_TIMEOUT).await;
    wait_for_ledger(&store, &tick, "yet more firings", |fires| fires.len() >= 6).await;
    third.stop(TEST_TIMEOUT).await;

    let fires = read_ledger(&store, &tick).await;
    let (first, last) = (fires[0].planned_at, fires[fires.len() - 1].planned_at);
    let expected_times: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(
        fires.iter().map(|fire| fire.planned_at).collect::<Vec<_>>(),
        expected_times,
        "no time was left out"
    );
    assert!(fires.iter().all(|fire| matches!(fire.outcome, FireOutcome::Fired | FireOutcome::Late)));
    let events = list_emitted_events(&third).await;
    assert_eq!(
        created_event_ids(&fires),
        events.iter().map(|event| event.id).collect::<Vec<_>>(),
        "one event for each planned time"
    );
    let planned_times: Vec<_> = events.iter().map(|event| event.context["planned_at"].clone()).collect();
    assert_eq!(planned_times, expected_times.iter().map(Timestamp::to_string).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event.context["schedule"] == "tick"));
}

/// The times between the removal and the restoration are recorded too, because another node may have kept the schedule.
#[tokio::test]
async fn a_restored_schedule_records_the_times_of_its_absence() {
    let store = in_memory_store();
    let tick = every_second_schedule();
    let engine = builder_with_tick_schedule().start(&store).await;
    wait_for_ledger(&store, &tick, "a firing", |fires| !fires.is_empty()).await;
    // A fire of another schedule shows that the clock has read the new setup.
    let other = event_schedule("other", "every 1s");
    let setup = |schedules| Setup { schedules, ..Setup::default() };
    engine.reconfigure(setup(vec![other.clone()])).await.unwrap();
    wait_for_ledger(&store, &other, "the other schedule", |fires| !fires.is_empty()).await;
    let fires_before = read_ledger(&store, &tick).await.len();
    wait_until_time_has_passed(now().plus(SECOND * 2)).await;
    assert_eq!(read_ledger(&store, &tick).await.len(), fires_before, "the schedule is not in the setup");
    engine.reconfigure(setup(vec![other, tick.clone()])).await.unwrap();
    let fires = wait_for_ledger(&store, &tick, "ticks again", |fires| fires.len() >= fires_before + 4).await;
    engine.stop(TEST_TIMEOUT).await;
    let (first, last) = (fires[0].planned_at, fires[fires.len() - 1].planned_at);
    let expected_times: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(
        fires.iter().map(|fire| fire.planned_at).collect::<Vec<_>>(),
        expected_times,
        "no time was left out"
    );
}

/// A clock was ahead for a while: rows were written for times that are still to come, the latest of them far ahead.
#[tokio::test]
async fn after_an_undone_clock_step_only_times_without_a_row_fire() {
    let (store, tick) = (in_memory_store(), every_second_schedule());
    let begin = now();
    register_schedules_at(&store, &[&tick], begin).await;
    let times_with_row: Vec<_> = tick.cron.between(begin.plus(SECOND * 2), begin.plus(SECOND * 4)).collect();
    let far_ahead = tick.cron.next(begin.plus(HOUR / 2)).unwrap();
    let fire_request = |planned: Timestamp| FireRequest {
        schedule: tick.name.clone(),
        planned_at: planned,
        decision: FireDecision::Fire {
            action: tick.action.clone(),
            punctuality: Punctuality::CaughtUp,
            overlap: OverlapPolicy::default(),
        },
    };
    let rows: Vec<_> = times_with_row.iter().copied().chain([far_ahead]).map(fire_request).collect();
    store.execute_fire_requests(rows, begin.plus(HOUR)).await.unwrap();

    let engine = builder_with_tick_schedule().start(&store).await;
    let last = times_with_row[times_with_row.len() - 1];
    let has_fired_later_times =
        |fires: &[Fire]| fires.iter().filter(|fire| (last..far_ahead).contains(&fire.planned_at)).count() > 2;
    wait_for_ledger(&store, &tick, "times after those that have a row", has_fired_later_times).await;
    engine.stop(TEST_TIMEOUT).await;
    let (fires, emitted) = (read_ledger(&store, &tick).await, list_emitted_events(&engine).await);
    for fire in &fires {
        let has_row = times_with_row.contains(&fire.planned_at) || fire.planned_at == far_ahead;
        assert_eq!(fire.outcome == FireOutcome::CaughtUp, has_row, "{fire:?}");
    }
    let past_times: Vec<_> =
        fires.iter().map(|fire| fire.planned_at).filter(|planned| *planned < far_ahead).collect();
    let expected_times: Vec<_> =
        tick.cron.between(past_times[0].minus(SECOND), past_times[past_times.len() - 1]).collect();
    assert_eq!(past_times, expected_times, "no time is left out");
    assert_eq!(created_event_ids(&fires).len(), emitted.len(), "no time fires twice");
}

#[tokio::test]
async fn a_clock_set_back_does_not_stop_schedules() {
    let store = in_memory_store();
    let (half_hour_ahead, year_ahead) =
        (event_schedule("half-hour-ahead", "every 1s"), event_schedule("year-ahead", "every 1s"));
    register_schedules_at(&store, &[&year_ahead], now().plus(DAY * 365)).await;
    register_schedules_at(&store, &[&year_ahead, &half_hour_ahead], now().plus(HOUR / 2)).await;
    let engine = TestEngineBuilder::default()
        .schedule(half_hour_ahead.clone())
        .schedule(year_ahead.clone())
        .start(&store)
        .await;
    for schedule in [&half_hour_ahead, &year_ahead] {
        wait_for_ledger(&store, schedule, "some firings", |fires| created_event_ids(fires).len() >= 2).await;
    }
    engine.stop(TEST_TIMEOUT).await;
}
