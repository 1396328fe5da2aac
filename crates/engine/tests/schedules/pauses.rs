//! Rules on schedules.

use pointsman_core::fire::CatchUpPolicy;
use pointsman_core::store::Registry;
use pointsman_core::{Rule, RuleKind, RuleScope};

use super::*;

fn pause_rule(schedule: &ScheduleSpec) -> Rule {
    Rule {
        kind: RuleKind::Pause,
        scope: RuleScope::Schedule(schedule.name.clone()),
        tenant: None,
        set_by: "ops".into(),
        reason: "a test pause".into(),
        since: now(),
    }
}

async fn lift_pause(engine: &Engine, schedule: &ScheduleSpec) {
    let scope = RuleScope::Schedule(schedule.name.clone());
    assert!(engine.lift_rule(RuleKind::Pause, &scope, None).await.unwrap());
}

#[tokio::test]
async fn after_a_pause_the_catch_up_policy_applies() {
    for (catch_up, window, expected) in [
        (CatchUpPolicy::One, DAY, [SKIPPED_BY_PAUSE, SKIPPED_BY_PAUSE, FireOutcome::CaughtUp]),
        (CatchUpPolicy::One, HOUR, [SKIPPED_BY_PAUSE, SKIPPED_BY_PAUSE, SKIPPED_BY_PAUSE]),
        (CatchUpPolicy::All, DAY * 7, [FireOutcome::CaughtUp, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUpPolicy::All, DAY * 2, [SKIPPED_BY_PAUSE, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUpPolicy::None, DAY * 7, [SKIPPED_BY_PAUSE, SKIPPED_BY_PAUSE, SKIPPED_BY_PAUSE]),
    ] {
        let store = in_memory_store();
        let daily =
            ScheduleSpec { catch_up, catch_up_window: window, ..daily_schedule_due_twelve_hours_ago() };
        register_schedules_at(&store, &[&daily], now().minus(DAY * 3)).await;
        store.set_rule(pause_rule(&daily)).await.unwrap();
        let engine = TestEngineBuilder::default().schedule(daily.clone()).start(&store).await;
        let fires = wait_for_ledger(&store, &daily, "the ledger", |fires| fires.len() >= 3).await;
        assert_eq!(fire_outcomes(&fires), [SKIPPED_BY_PAUSE; 3]);
        assert!(list_emitted_events(&engine).await.is_empty());

        lift_pause(&engine, &daily).await;
        within_timeout("all paused times to be caught up", async {
            while register_schedules_at(&store, &[&daily], now()).await[0]
                .first_skipped_while_paused
                .is_some()
            {
                tokio::time::sleep(SECOND / 50).await;
            }
        })
        .await;
        let fires = read_ledger(&store, &daily).await;
        assert_eq!(fire_outcomes(&fires), expected, "{catch_up:?} within {window:?}");
        let ids: Vec<_> = list_emitted_events(&engine).await.iter().map(|event| event.id).collect();
        assert_eq!(created_event_ids(&fires), ids, "created in the order of the planned times");
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn a_paused_schedule_creates_nothing_and_then_continues() {
    let store = in_memory_store();
    let tick = ScheduleSpec { catch_up: CatchUpPolicy::All, ..every_second_schedule() };
    let engine = TestEngineBuilder::default().schedule(tick.clone()).start(&store).await;
    wait_for_ledger(&store, &tick, "a firing", |fires| !fires.is_empty()).await;
    engine.set_rule(pause_rule(&tick)).await.unwrap();
    let emitted_before = list_emitted_events(&engine).await.len();
    let paused =
        wait_for_ledger(&store, &tick, "skipped times", |fires| count_outcome(fires, SKIPPED_BY_PAUSE) >= 2)
            .await;
    assert_eq!(
        (list_emitted_events(&engine).await.len(), created_event_ids(&paused).len()),
        (emitted_before, emitted_before)
    );

    lift_pause(&engine, &tick).await;
    let after_pause = paused[paused.len() - 1].planned_at.plus(SECOND * 2);
    let has_caught_up = |fires: &[Fire]| {
        fires.last().is_some_and(|fire| fire.planned_at > after_pause)
            && fires.iter().all(|f| f.event_id.is_some())
    };
    let fires = wait_for_ledger(&store, &tick, "all paused times to be caught up", has_caught_up).await;
    assert!(count_outcome(&fires, FireOutcome::CaughtUp) >= 2, "{fires:?}");
    engine.stop(TEST_TIMEOUT).await;
    let fires = read_ledger(&store, &tick).await;
    let mut ids = created_event_ids(&fires);
    ids.sort();
    assert_eq!(ids, list_emitted_events(&engine).await.iter().map(|event| event.id).collect::<Vec<_>>());
}
