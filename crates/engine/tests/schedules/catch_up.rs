//! Planned times that passed while no node ran.

use pointsman_core::fire::{CatchUpPolicy, ON_TIME_TOLERANCE};
use pointsman_store_sqlite::Sqlite;

use super::*;

#[tokio::test]
async fn a_restart_catches_up_by_the_policy() {
    let registered_at = now().minus(DAY * 3);
    for (catch_up, window, expected) in [
        (CatchUpPolicy::One, DAY, [SKIPPED_AS_MISSED, SKIPPED_AS_MISSED, FireOutcome::CaughtUp]),
        (CatchUpPolicy::One, HOUR, [SKIPPED_AS_MISSED, SKIPPED_AS_MISSED, SKIPPED_AS_MISSED]),
        (CatchUpPolicy::All, DAY * 7, [FireOutcome::CaughtUp, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUpPolicy::All, DAY * 2, [SKIPPED_AS_MISSED, FireOutcome::CaughtUp, FireOutcome::CaughtUp]),
        (CatchUpPolicy::None, DAY * 7, [SKIPPED_AS_MISSED, SKIPPED_AS_MISSED, SKIPPED_AS_MISSED]),
    ] {
        let store = in_memory_store();
        let daily =
            ScheduleSpec { catch_up, catch_up_window: window, ..daily_schedule_due_twelve_hours_ago() };
        register_schedules_at(&store, &[&daily], registered_at).await;
        let engine = TestEngineBuilder::default().schedule(daily.clone()).start(&store).await;
        let fires = wait_for_ledger(&store, &daily, "the ledger", |fires| fires.len() >= 3).await;
        assert_eq!(fire_outcomes(&fires), expected, "{catch_up:?} within {window:?}");
        let ids: Vec<_> = list_emitted_events(&engine).await.iter().map(|event| event.id).collect();
        assert_eq!(created_event_ids(&fires), ids);
        engine.stop(TEST_TIMEOUT).await;

        // The next start finds nothing to do.
        let tick = every_second_schedule();
        let engine =
            TestEngineBuilder::default().schedule(daily.clone()).schedule(tick.clone()).start(&store).await;
        wait_for_ledger(&store, &tick, "a tick", |fires| !fires.is_empty()).await;
        assert_eq!(read_ledger(&store, &daily).await, fires);
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn only_the_newest_times_of_a_long_gap_are_recorded() {
    let store = in_memory_store();
    let tick = ScheduleSpec { catch_up: CatchUpPolicy::None, ..every_second_schedule() };
    let registered_at = now().minus(DAY * 30);
    register_schedules_at(&store, &[&tick], registered_at).await;
    let engine = TestEngineBuilder::default().schedule(tick.clone()).start(&store).await;
    let fires = wait_for_ledger(&store, &tick, "a firing on time", |fires| {
        count_outcome(fires, FireOutcome::Fired) > 0
    })
    .await;
    let missed = count_outcome(&fires, SKIPPED_AS_MISSED);
    assert!((800..1000).contains(&missed), "{missed}");
    assert!(fires[0].planned_at > now().minus(HOUR));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_outage_loses_no_planned_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pointsman.db");
    let store = Sqlite::open(&file, now()).unwrap();
    let tick = every_second_schedule();
    let engine = TestEngineBuilder::default().schedule(tick.clone()).start(&store).await;
    wait_for_ledger(&store, &tick, "a firing", |fires| !fires.is_empty()).await;

    let locking_connection = rusqlite::Connection::open(&file).unwrap();
    locking_connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let errors_before = read_metric(&engine, "pointsman_store_errors_total");
    within_timeout("the store to give up", async {
        while read_metric(&engine, "pointsman_store_errors_total") == errors_before {
            tokio::time::sleep(SECOND / 20).await;
        }
    })
    .await;
    locking_connection.execute_batch("ROLLBACK").unwrap();

    let store_back_at = now();
    let caught_up = |fires: &[Fire]| fires.last().is_some_and(|fire| fire.planned_at > store_back_at);
    let fires = wait_for_ledger(&store, &tick, "firings after the outage", caught_up).await;
    let (first, last) = (fires[0].planned_at, fires[fires.len() - 1].planned_at);
    let expected_times: Vec<_> = tick.cron.between(first.minus(SECOND), last).collect();
    assert_eq!(fires.iter().map(|fire| fire.planned_at).collect::<Vec<_>>(), expected_times);
    // Times that were overtaken meanwhile are recorded as missed; times that are on time still fire.
    let on_time =
        fires.iter().filter(|fire| fire.recorded_at.duration_since(fire.planned_at) <= ON_TIME_TOLERANCE);
    assert!(on_time.clone().count() > 1 && on_time.clone().all(|fire| fire.event_id.is_some()), "{fires:?}");
    engine.stop(TEST_TIMEOUT).await;
}
