//! Several nodes, and schedules that come and go.

use pointsman_core::Timestamp;
use pointsman_engine::Setup;

use super::*;

fn house() -> House {
    House::default().schedule(ticking())
}

#[tokio::test]
async fn two_clocks_fire_each_planned_time_once() {
    let store = store();
    let tick = ticking();
    let (one, other) = (house().start(&store).await, house().start(&store).await);
    ledger_when(&store, &tick, "some firings", |fires| fires.len() >= 2).await;
    one.stop(PATIENCE).await;
    // A third one takes over in the middle of things.
    let third = house().start(&store).await;
    ledger_when(&store, &tick, "more firings", |fires| fires.len() >= 4).await;
    other.stop(PATIENCE).await;
    ledger_when(&store, &tick, "yet more firings", |fires| fires.len() >= 6).await;
    third.stop(PATIENCE).await;

    let fires = ledger(&store, &tick).await;
    let (first, last) = (fires[0].planned, fires[fires.len() - 1].planned);
    let every: Vec<_> = tick.when.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned).collect::<Vec<_>>(), every, "no time was left out");
    assert!(fires.iter().all(|fire| matches!(fire.outcome, Became::Fired | Became::Late)));
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
    engine.stop(PATIENCE).await;
    let (first, last) = (fires[0].planned, fires[fires.len() - 1].planned);
    let every: Vec<_> = tick.when.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned).collect::<Vec<_>>(), every, "no time was left out");
}

#[tokio::test]
async fn a_clock_that_was_put_back_repeats_nothing() {
    let store = store();
    let (tick, ahead, astray) = (ticking(), schedule("ahead", "every 1s"), schedule("astray", "every 1s"));
    planned_since(&store, &[&astray], now().plus(DAY * 365)).await;
    planned_since(&store, &[&astray, &ahead], now().plus(HOUR / 2)).await;
    let house = House::default().schedule(tick.clone()).schedule(ahead.clone()).schedule(astray.clone());
    let engine = house.start(&store).await;
    ledger_when(&store, &tick, "some firings", |fires| fires.len() >= 3).await;
    assert!(ledger(&store, &ahead).await.is_empty(), "its times are settled for half an hour");
    // Nobody's clock is right by a year: such a schedule goes by its rows.
    ledger_when(&store, &astray, "some firings", |fires| made(fires).len() >= 2).await;
    engine.stop(PATIENCE).await;
}
