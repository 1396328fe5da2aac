//! The fire ledger: one row per planned time, the latest first.

use pointsman_core::Timestamp;
use pointsman_core::fire::{Fire, Outcome, Punctual, Skipped};
use pointsman_core::journal::Retention;

use crate::Harness;
use crate::fixture::*;

const DAY: u64 = 86_400;

fn event_firing() -> FiringBuilder {
    FiringBuilder::emitting(new_event("record"))
}

async fn fixture_with_nightly_schedule(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.plan_daily_schedule("nightly").await;
    fixture
}

fn planned_times(fires: &[Fire]) -> Vec<Timestamp> {
    fires.iter().map(|fire| fire.planned).collect()
}

pub async fn an_empty_fire_ledger_lists_nothing(harness: &dyn Harness) {
    let fixture = fixture_with_nightly_schedule(harness).await;
    assert!(fixture.list_fires("nightly").await.is_empty());
    assert!(fixture.list_fires("unheard-of").await.is_empty());
}

pub async fn fires_are_listed_latest_first_in_pages(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let mut rows = Vec::new();
    // Out of order: rows are sorted by planned time.
    for n in [0, 2, 1, 4, 3, 6, 5] {
        fixture.advance_clock(1);
        rows.push(
            fixture.resolve_firing(event_firing().build("nightly", START_TIME.plus(secs(n * 60)))).await.0,
        );
    }
    rows.sort_by_key(|fire| std::cmp::Reverse(fire.planned));
    let page = expect_ok(fixture.store.fires(&schedule_name("nightly"), None, 3).await);
    assert_eq!((page.fires.as_slice(), page.extent), (&rows[..3], fixture.journal_extent().await));
    let page = expect_ok(fixture.store.fires(&schedule_name("nightly"), Some(rows[2].planned), 3).await);
    assert_eq!(page.fires, rows[3..6]);
    let page = expect_ok(fixture.store.fires(&schedule_name("nightly"), Some(rows[5].planned), 3).await);
    assert_eq!(page.fires, rows[6..]);
    let page = expect_ok(fixture.store.fires(&schedule_name("nightly"), Some(rows[6].planned), 3).await);
    assert!(page.fires.is_empty());
    let between = rows[3].planned.plus(secs(1));
    let page = expect_ok(fixture.store.fires(&schedule_name("nightly"), Some(between), 1).await);
    assert_eq!(page.fires, rows[3..4], "any time can be a cursor");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_fires("nightly").await, rows);
}

pub async fn every_fire_outcome_is_stored(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let at = |n: u64| START_TIME.plus(secs(n));
    let mut rows = Vec::new();
    rows.push(fixture.resolve_firing(event_firing().build("nightly", at(1))).await.0);
    fixture.advance_clock(10);
    rows.push(
        fixture
            .resolve_firing(event_firing().with_punctuality(Punctual::Late).build("nightly", at(2)))
            .await
            .0,
    );
    rows.push(
        fixture
            .resolve_firing(event_firing().with_punctuality(Punctual::CaughtUp).build("nightly", at(3)))
            .await
            .0,
    );
    rows.push(fixture.resolve_firing(skipped_firing("nightly", at(4))).await.0);
    rows.push(
        fixture.resolve_firing(FiringBuilder::starting_run("nobody/nothing").build("nightly", at(5))).await.0,
    );
    fixture.pause("@nightly").await;
    rows.push(fixture.resolve_firing(event_firing().build("nightly", at(6))).await.0);
    rows.reverse();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_fires("nightly").await, rows);
    let outcomes: Vec<_> = rows.iter().map(|fire| fire.outcome).collect();
    let skipped = Outcome::Skipped;
    let want = [
        skipped(Skipped::Held),
        skipped(Skipped::Gone),
        skipped(Skipped::Missed),
        Outcome::CaughtUp,
        Outcome::Late,
        Outcome::Fired,
    ];
    assert_eq!(outcomes, want);
}

pub async fn each_schedule_has_its_own_fire_ledger(harness: &dyn Harness) {
    let fixture = fixture_with_nightly_schedule(harness).await;
    fixture.plan_schedules(&["nightly", "nightly.too"].map(|name| schedule_definition(name, "daily"))).await;
    let (one, other) = (START_TIME.plus(secs(1)), START_TIME.plus(secs(2)));
    fixture
        .resolve_firings(vec![
            event_firing().build("nightly", one),
            event_firing().build("nightly.too", other),
        ])
        .await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [one]);
    assert_eq!(planned_times(&fixture.list_fires("nightly.too").await), [other]);
}

/// Rows expire with the task history; the resolved position of the schedule does not.
pub async fn fires_expire_with_the_task_history(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let old = fixture.resolve_firing(skipped_firing("nightly", fixture.now)).await.0.planned;
    fixture.advance_clock(DAY - 60);
    let day = Retention { age: secs(DAY), ..KEEP_EVERYTHING };
    fixture.prune(KEEP_EVERYTHING, day).await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [old]);
    let young = fixture.resolve_firing(skipped_firing("nightly", fixture.now)).await.0.planned;
    fixture.advance_clock(120);
    fixture.prune(KEEP_EVERYTHING, day).await;
    assert_eq!(planned_times(&fixture.list_fires("nightly").await), [young]);
    fixture.advance_clock(2 * DAY);
    fixture.prune(KEEP_EVERYTHING, day).await;
    assert!(fixture.list_fires("nightly").await.is_empty());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.plan_daily_schedule("nightly").await.settled, young);
}

pub async fn pruning_the_journal_deletes_no_fires(harness: &dyn Harness) {
    let mut fixture = fixture_with_nightly_schedule(harness).await;
    let (fire, _) = fixture.resolve_firing(event_firing().build("nightly", fixture.now)).await;
    fixture.run_all_ready().await;
    fixture.advance_clock(2 * DAY);
    fixture.prune(Retention { count: 0, age: secs(1) }, KEEP_EVERYTHING).await;
    assert_eq!(fixture.list_fires("nightly").await, [fire]);
}
