//! The fire ledger: one row per planned time, the latest first.

use pointsman_core::Timestamp;
use pointsman_core::fire::{Fire, FireOutcome, Punctuality, SkipReason};
use pointsman_core::journal::Retention;

use crate::Harness;
use crate::fixture::*;

const DAY_SECS: u64 = 86_400;

fn event_fire_builder() -> FireRequestBuilder {
    FireRequestBuilder::emitting_event(new_event("record"))
}

async fn fixture_with_nightly_schedule(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.register_daily_schedule("nightly").await;
    fixture
}

fn planned_times(fires: &[Fire]) -> Vec<Timestamp> {
    fires.iter().map(|fire| fire.planned_at).collect()
}

pub async fn an_empty_fire_ledger_lists_nothing(harness: &dyn Harness) {
    let fixture = fixture_with_nightly_schedule(harness).await;
    assert!(fixture.list_fires("nightly").await.is_empty());
    assert!(fixture.list_fires("unheard-of").await.is_empty());
}

pub async fn fires_are_listed_latest_first_in_pages(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let mut rows = Vec::new();
    // The times are recorded out of order; the list is sorted by planned time.
    for n in [0, 2, 1, 4, 3, 6, 5] {
        fixture.advance_clock(1);
        rows.push(
            fixture.record_fire(event_fire_builder().build("nightly", START_TIME.plus(secs(n * 60)))).await.0,
        );
    }
    rows.sort_by_key(|fire| std::cmp::Reverse(fire.planned_at));
    let page = expect_ok(fixture.store.list_fires(&schedule_name("nightly"), None, 3).await);
    assert_eq!((page.fires.as_slice(), page.journal_range), (&rows[..3], fixture.read_journal_range().await));
    let page =
        expect_ok(fixture.store.list_fires(&schedule_name("nightly"), Some(rows[2].planned_at), 3).await);
    assert_eq!(page.fires, rows[3..6]);
    let page =
        expect_ok(fixture.store.list_fires(&schedule_name("nightly"), Some(rows[5].planned_at), 3).await);
    assert_eq!(page.fires, rows[6..]);
    let page =
        expect_ok(fixture.store.list_fires(&schedule_name("nightly"), Some(rows[6].planned_at), 3).await);
    assert!(page.fires.is_empty());
    let between = rows[3].planned_at.plus(secs(1));
    let page = expect_ok(fixture.store.list_fires(&schedule_name("nightly"), Some(between), 1).await);
    assert_eq!(page.fires, rows[3..4], "any time can be a cursor");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_fires("nightly").await, rows);
}

pub async fn every_fire_outcome_is_stored(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let at = |n: u64| START_TIME.plus(secs(n));
    let mut rows = Vec::new();
    rows.push(fixture.record_fire(event_fire_builder().build("nightly", at(1))).await.0);
    fixture.advance_clock(10);
    rows.push(
        fixture
            .record_fire(event_fire_builder().with_punctuality(Punctuality::Late).build("nightly", at(2)))
            .await
            .0,
    );
    rows.push(
        fixture
            .record_fire(event_fire_builder().with_punctuality(Punctuality::CaughtUp).build("nightly", at(3)))
            .await
            .0,
    );
    rows.push(fixture.record_fire(skip_fire_request("nightly", at(4))).await.0);
    rows.push(
        fixture
            .record_fire(FireRequestBuilder::running_collection("nobody/nothing").build("nightly", at(5)))
            .await
            .0,
    );
    fixture.set_pause_rule("@nightly").await;
    rows.push(fixture.record_fire(event_fire_builder().build("nightly", at(6))).await.0);
    rows.reverse();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_fires("nightly").await, rows);
    let outcomes: Vec<_> = rows.iter().map(|fire| fire.outcome).collect();
    let skipped = FireOutcome::Skipped;
    let want = [
        skipped(SkipReason::PausedByRule),
        skipped(SkipReason::TargetUndefined),
        skipped(SkipReason::Missed),
        FireOutcome::CaughtUp,
        FireOutcome::Late,
        FireOutcome::Fired,
    ];
    assert_eq!(outcomes, want);
}

pub async fn each_schedule_has_its_own_fire_ledger(harness: &dyn Harness) {
    let fixture = fixture_with_nightly_schedule(harness).await;
    fixture
        .register_schedules(&["nightly", "nightly.too"].map(|name| schedule_definition(name, "daily")))
        .await;
    let (one, other) = (START_TIME.plus(secs(1)), START_TIME.plus(secs(2)));
    fixture
        .record_fires(vec![
            event_fire_builder().build("nightly", one),
            event_fire_builder().build("nightly.too", other),
        ])
        .await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [one]);
    assert_eq!(planned_times(&fixture.list_fires("nightly.too").await), [other]);
}

/// Rows expire with the task history; the position up to which the schedule is processed does not.
pub async fn fires_expire_with_the_task_history(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let old = fixture.record_fire(skip_fire_request("nightly", fixture.now)).await.0.planned_at;
    fixture.advance_clock(DAY_SECS - 60);
    let day = Retention { max_age: secs(DAY_SECS), ..KEEP_EVERYTHING };
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, day).await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [old]);
    let recent = fixture.record_fire(skip_fire_request("nightly", fixture.now)).await.0.planned_at;
    fixture.advance_clock(120);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, day).await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [recent]);
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, day).await;
    assert!(fixture.list_fires("nightly").await.is_empty());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.register_daily_schedule("nightly").await.processed_up_to, recent);
}

pub async fn pruning_the_journal_deletes_no_fires(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let (fire, _) = fixture.record_fire(event_fire_builder().build("nightly", fixture.now)).await;
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(Retention { max_count: 0, max_age: secs(1) }, KEEP_EVERYTHING).await;
    assert_eq!(fixture.list_fires("nightly").await, [fire]);
}
