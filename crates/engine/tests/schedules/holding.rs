//! Rules on schedules.

use pointsman_core::fire::CatchUp;
use pointsman_core::store::Registry;
use pointsman_core::{Place, Rule, RuleKind};

use super::*;

fn pause(schedule: &ScheduleSpec) -> Rule {
    Rule {
        kind: RuleKind::Pause,
        place: Place::Schedule(schedule.name.clone()),
        tenant: None,
        by: "ops".into(),
        reason: "the press is broken".into(),
        since: now(),
    }
}

async fn release(engine: &Engine, schedule: &ScheduleSpec) {
    let place = Place::Schedule(schedule.name.clone());
    assert!(engine.lift_rule(RuleKind::Pause, &place, None).await.unwrap());
}

#[tokio::test]
async fn after_a_release_the_policy_makes_up_for_what_was_held() {
    for (catch_up, within, want) in [
        (CatchUp::One, DAY, [HELD, HELD, FireOutcome::CaughtUp]),
        (CatchUp::One, HOUR, [HELD, HELD, HELD]),
        (CatchUp::All, DAY * 7, [FireOutcome::CaughtUp, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUp::All, DAY * 2, [HELD, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUp::None, DAY * 7, [HELD, HELD, HELD]),
    ] {
        let store = store();
        let daily = ScheduleSpec { catch_up, catch_up_window: within, ..long_ago() };
        planned_since(&store, &[&daily], now().minus(DAY * 3)).await;
        store.hold(pause(&daily)).await.unwrap();
        let engine = TestEngineBuilder::default().schedule(daily.clone()).start(&store).await;
        let fires = ledger_when(&store, &daily, "the ledger", |fires| fires.len() >= 3).await;
        assert_eq!(outcomes(&fires), [HELD; 3]);
        assert!(events(&engine).await.is_empty());

        release(&engine, &daily).await;
        soon("all to be made up for", async {
            while planned_since(&store, &[&daily], now()).await[0].unmet.is_some() {
                tokio::time::sleep(SECOND / 50).await;
            }
        })
        .await;
        let fires = ledger(&store, &daily).await;
        assert_eq!(outcomes(&fires), want, "{catch_up:?} within {within:?}");
        let ids: Vec<_> = events(&engine).await.iter().map(|event| event.id).collect();
        assert_eq!(made(&fires), ids, "made in the order of the planned times");
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn while_it_is_held_nothing_is_made_and_afterwards_it_goes_on() {
    let store = store();
    let tick = ScheduleSpec { catch_up: CatchUp::All, ..ticking() };
    let engine = TestEngineBuilder::default().schedule(tick.clone()).start(&store).await;
    ledger_when(&store, &tick, "a firing", |fires| !fires.is_empty()).await;
    engine.set_rule(pause(&tick)).await.unwrap();
    let before = events(&engine).await.len();
    let held = ledger_when(&store, &tick, "held times", |fires| count(fires, HELD) >= 2).await;
    assert_eq!((events(&engine).await.len(), made(&held).len()), (before, before));

    release(&engine, &tick).await;
    let later = held[held.len() - 1].planned.plus(SECOND * 2);
    let gone_on = |fires: &[Fire]| {
        fires.last().is_some_and(|fire| fire.planned > later) && fires.iter().all(|f| f.event.is_some())
    };
    let fires = ledger_when(&store, &tick, "all to be made up for", gone_on).await;
    assert!(count(&fires, FireOutcome::CaughtUp) >= 2, "{fires:?}");
    engine.stop(TEST_TIMEOUT).await;
    let fires = ledger(&store, &tick).await;
    let mut ids = made(&fires);
    ids.sort();
    assert_eq!(ids, events(&engine).await.iter().map(|event| event.id).collect::<Vec<_>>());
}
