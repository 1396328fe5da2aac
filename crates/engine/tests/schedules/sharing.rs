//! Several nodes, and schedules that come and go.

use pointsman_core::Timestamp;
use pointsman_core::fire::{Overlap, Punctual, Settle};
use pointsman_core::store::{Firing, Schedules};
use pointsman_engine::Setup;

use super::*;

fn house() -> TestEngineBuilder {
    TestEngineBuilder::default().schedule(ticking())
}

#[tokio::test]
async fn two_clocks_fire_each_planned_time_once() {
    let store = store();
    let tick = ticking();
    let (one, other) = (house().start(&store).await, house().start(&store).await);
    ledger_when(&store, &tick, "some firings", |fires| fires.len() >= 2).await;
    one.stop(TEST_TIMEOUT).await;
    // A third one takes over in the middle of things.
    let third = house().start(&store).await;
    ledger_when(&store, &tick, "more firings", |fires| fires.len() >= 4).await;
    other.stop(TEST_TIMEOUT).await;
    ledger_when(&store, &tick, "yet more firings", |fires| fires.len() >= 6).await;
    third.stop(TEST_TIMEOUT).await;

    let fires = ledger(&store, &tick).await;
    let (first, last) = (fires[0].planned, fires[fires.len() - 1].planned);
    let every: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned).collect::<Vec<_>>(), every, "no time was left out");
    assert!(fires.iter().all(|fire| matches!(fire.outcome, FireOutcome::Fired | FireOutcome::Late)));
    let events = events(&third).await;
    assert_eq!(made(&fires), events.iter().map(|event| event.id).collect::<Vec<_>>(), "one event a time");
    let told: Vec<_> = events.iter().map(|event| event.context["planned_at"].clone()).collect();
    assert_eq!(told, every.iter().map(Timestamp::to_string).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event.context["schedule"] == "tick"));
}

/// Another node might have had it all the while.
#[tokio::test]
async fn a_schedule_that_comes_back_goes_on_where_it_stood() {
    let store = store();
    let tick = ticking();
    let engine = house().start(&store).await;
    ledger_when(&store, &tick, "a firing", |fires| !fires.is_empty()).await;
    // Another schedule shows when the clock has taken notice.
    let other = schedule("other", "every 1s");
    let setup = |schedules| Setup { schedules, ..Setup::default() };
    engine.reconfigure(setup(vec![other.clone()])).await.unwrap();
    ledger_when(&store, &other, "the other schedule", |fires| !fires.is_empty()).await;
    let before = ledger(&store, &tick).await.len();
    past(now().plus(SECOND * 2)).await;
    assert_eq!(ledger(&store, &tick).await.len(), before, "it is not set up");
    engine.reconfigure(setup(vec![other, tick.clone()])).await.unwrap();
    let fires = ledger_when(&store, &tick, "ticks again", |fires| fires.len() >= before + 4).await;
    engine.stop(TEST_TIMEOUT).await;
    let (first, last) = (fires[0].planned, fires[fires.len() - 1].planned);
    let every: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned).collect::<Vec<_>>(), every, "no time was left out");
}

/// A clock was ahead for a while: rows were written for times that are still to come, the latest of them far ahead.
#[tokio::test]
async fn after_a_step_that_was_undone_only_times_without_a_row_fire() {
    let (store, tick) = (store(), ticking());
    let begin = now();
    planned_since(&store, &[&tick], begin).await;
    let settled: Vec<_> = tick.cron.between(begin.plus(SECOND * 2), begin.plus(SECOND * 4)).collect();
    let far = tick.cron.next(begin.plus(HOUR / 2)).unwrap();
    let firing = |planned: Timestamp| Firing {
        schedule: tick.name.clone(),
        planned,
        settle: Settle::Fire {
            makes: tick.action.clone(),
            when: Punctual::CaughtUp,
            overlap: Overlap::default(),
        },
    };
    let rows: Vec<_> = settled.iter().copied().chain([far]).map(firing).collect();
    store.settle(rows, begin.plus(HOUR)).await.unwrap();

    let engine = house().start(&store).await;
    let last = settled[settled.len() - 1];
    let beyond = |fires: &[Fire]| fires.iter().filter(|fire| (last..far).contains(&fire.planned)).count() > 2;
    ledger_when(&store, &tick, "times after those that have a row", beyond).await;
    engine.stop(TEST_TIMEOUT).await;
    let (fires, emitted) = (ledger(&store, &tick).await, events(&engine).await);
    for fire in &fires {
        let has_row = settled.contains(&fire.planned) || fire.planned == far;
        assert_eq!(fire.outcome == FireOutcome::CaughtUp, has_row, "{fire:?}");
    }
    let come: Vec<_> = fires.iter().map(|fire| fire.planned).filter(|planned| *planned < far).collect();
    let every: Vec<_> = tick.cron.between(come[0].minus(SECOND), come[come.len() - 1]).collect();
    assert_eq!(come, every, "no time is left out");
    assert_eq!(made(&fires).len(), emitted.len(), "no time fires twice");
}

#[tokio::test]
async fn a_clock_that_was_put_back_silences_no_schedule() {
    let store = store();
    let (ahead, astray) = (schedule("ahead", "every 1s"), schedule("astray", "every 1s"));
    planned_since(&store, &[&astray], now().plus(DAY * 365)).await;
    planned_since(&store, &[&astray, &ahead], now().plus(HOUR / 2)).await;
    let engine =
        TestEngineBuilder::default().schedule(ahead.clone()).schedule(astray.clone()).start(&store).await;
    for schedule in [&ahead, &astray] {
        ledger_when(&store, schedule, "some firings", |fires| made(fires).len() >= 2).await;
    }
    engine.stop(TEST_TIMEOUT).await;
}
