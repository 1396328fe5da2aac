//! Planned times that are due while the tasks of the last fire are unfinished.

use pointsman_core::fire::{FireOutcome, OverlapPolicy, SkipReason};
use pointsman_core::store::TaskFilter;
use pointsman_core::task::{ErrorReason, TaskCommandError};
use pointsman_core::{TaskStatus, Timestamp};

use crate::Harness;
use crate::fixture::*;

const SKIPPED_BY_OVERLAP: FireOutcome = FireOutcome::Skipped(SkipReason::Overlap);

/// A fixture with one schedule that has fired once, and the next planned time.
async fn fixture_with_one_fire<'h>(
    harness: &'h dyn Harness,
    builder: &FireRequestBuilder,
) -> (StoreFixture<'h>, Timestamp) {
    let registration =
        RegistrationBuilder::default().route("record", &["index", "notify"]).collection("shop/orders", 100);
    let mut fixture = StoreFixture::new(harness, registration).await;
    fixture.register_daily_schedule("nightly").await;
    fixture.advance_clock(100);
    let (fire, _) = fixture.record_fire(builder.clone().build("nightly", fixture.now)).await;
    assert_eq!(fire.outcome, FireOutcome::Fired, "there is no overlap");
    fixture.advance_clock(100);
    let next = fixture.now;
    (fixture, next)
}

fn event_fire_builder(overlap: OverlapPolicy) -> FireRequestBuilder {
    FireRequestBuilder::emitting_event(new_event("record")).with_overlap(overlap)
}

fn collection_run_fire_builder(overlap: OverlapPolicy) -> FireRequestBuilder {
    FireRequestBuilder::running_collection("shop/orders").with_overlap(overlap)
}

pub async fn unfinished_tasks_of_the_last_fire_cause_a_skip(harness: &dyn Harness) {
    let builder = event_fire_builder(OverlapPolicy::Skip);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let first_run: Vec<_> =
        fixture.list_tasks(&TaskFilter::default()).await.into_iter().map(|task| task.id).collect();
    let mut times = 0;
    let mut record_next_fire = async |fixture: &StoreFixture<'_>| {
        times += 1;
        fixture.record_fire(builder.clone().build("nightly", next.plus(secs(times)))).await.0
    };
    let fire = record_next_fire(&fixture).await;
    assert_eq!((fire.outcome, fire.event_id), (SKIPPED_BY_OVERLAP, None), "its tasks wait");
    assert!(first_run.contains(&fire.task.expect("the overlapping task")));
    fixture.succeed(&fixture.claim_one_for_handler("index").await).await;
    let left = fixture.claim_one().await;
    let fire = record_next_fire(&fixture).await;
    assert_eq!(
        (fire.outcome, fire.task),
        (SKIPPED_BY_OVERLAP, Some(left.id.clone())),
        "one of them still runs"
    );
    fixture.fail(&left).await;
    assert_eq!(record_next_fire(&fixture).await.outcome, SKIPPED_BY_OVERLAP, "or waits for its retry");
    let mut fixture = fixture.reopen().await;
    assert_eq!(record_next_fire(&fixture).await.outcome, SKIPPED_BY_OVERLAP, "also after a restart");
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let fire = record_next_fire(&fixture).await;
    assert_eq!((fire.outcome, fire.event_id.is_some()), (FireOutcome::Fired, true), "all have ended");
    assert_eq!(fixture.read_all_events().await.len(), 2);
}

pub async fn overlap_policy_queue_fires_beside_unfinished_tasks(harness: &dyn Harness) {
    let builder = event_fire_builder(OverlapPolicy::Queue);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let (fire, written) = fixture.record_fire(builder.build("nightly", next)).await;
    assert_eq!((fire.outcome, written), (FireOutcome::Fired, true));
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 4);
}

pub async fn overlap_policy_cancel_cancels_unfinished_tasks(harness: &dyn Harness) {
    let builder = event_fire_builder(OverlapPolicy::Cancel);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let old = fixture.list_tasks(&TaskFilter::default()).await;
    let running = fixture.claim_one().await;
    let (fire, _) = fixture.record_fire(builder.build("nightly", next)).await;
    assert_eq!((fire.outcome, fire.event_id.is_some()), (FireOutcome::Fired, true));
    for task in &old {
        let task = fixture.read_task(&task.id).await;
        assert_eq!(task.lifecycle.state.error_reason(), Some(ErrorReason::Canceled), "{}", task.id);
        assert_eq!(task.error.as_deref(), Some("the schedule nightly fired again"));
    }
    let answer = fixture.finish_attempt(finished_attempt(&running, success())).await.map(drop);
    assert_eq!(answer, Err(TaskCommandError::WrongState(TaskStatus::Error)), "its attempt is fenced off");
    let ran = fixture.run_all_ready_tasks().await;
    assert!(ran.iter().all(|task| Some(task.event().id) == fire.event_id));
    assert_eq!(ran.len(), 2);
}

pub async fn overlap_policy_cancel_keeps_finished_tasks(harness: &dyn Harness) {
    let builder = event_fire_builder(OverlapPolicy::Cancel);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(fixture.record_fire(builder.build("nightly", next)).await.0.outcome, FireOutcome::Fired);
    for task in &ran {
        assert_eq!(fixture.read_task_status(&task.id).await, TaskStatus::Done);
    }
}

/// Only tasks that this schedule created count as an overlap.
pub async fn tasks_of_other_schedules_do_not_count_as_overlap(harness: &dyn Harness) {
    for overlap in [OverlapPolicy::Skip, OverlapPolicy::Cancel] {
        let builder = event_fire_builder(overlap);
        let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
        fixture.run_all_ready_tasks().await;
        let foreign = fixture.emit(new_event("record")).await;
        let definitions = ["nightly", "hourly"].map(|name| schedule_definition(name, "daily"));
        fixture.register_schedules(&definitions).await;
        fixture.record_fire(builder.clone().build("hourly", next)).await;
        assert_eq!(
            fixture.record_fire(builder.build("nightly", next)).await.0.outcome,
            FireOutcome::Fired,
            "{overlap:?}"
        );
        assert_eq!(fixture.read_task_status(&foreign.tasks[0]).await, TaskStatus::New, "{overlap:?}");
        assert_eq!(fixture.run_all_ready_tasks().await.len(), 6, "{overlap:?}");
    }
}

/// A skipped time creates nothing, so the fire before it still counts.
pub async fn a_skipped_time_does_not_replace_the_last_fire(harness: &dyn Harness) {
    let builder = collection_run_fire_builder(OverlapPolicy::Skip);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    fixture.set_pause_rule("@nightly").await;
    fixture.record_fire(builder.clone().build("nightly", next)).await;
    fixture.lift_pause_rule("@nightly").await;
    let (fire, _) = fixture.record_fire(builder.build("nightly", next.plus(secs(1)))).await;
    assert_eq!(fire.outcome, SKIPPED_BY_OVERLAP);
}

pub async fn an_unfinished_collection_run_causes_a_skip(harness: &dyn Harness) {
    let builder = collection_run_fire_builder(OverlapPolicy::Skip);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let first_run = fixture.request_collection_run("shop/orders").await.task;
    let (fire, _) = fixture.record_fire(builder.clone().build("nightly", next)).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (SKIPPED_BY_OVERLAP, Some(&first_run)));
    let task = fixture.claim_one().await;
    let (fire, _) = fixture.record_fire(builder.clone().build("nightly", next.plus(secs(1)))).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (SKIPPED_BY_OVERLAP, Some(&first_run)));
    fixture.succeed(&task).await;
    let (fire, _) = fixture.record_fire(builder.build("nightly", next.plus(secs(2)))).await;
    assert_eq!(fire.outcome, FireOutcome::Fired);
    assert_ne!(fire.task, Some(first_run));
}

pub async fn overlap_policy_cancel_cancels_an_unfinished_collection_run(harness: &dyn Harness) {
    let builder = collection_run_fire_builder(OverlapPolicy::Cancel);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let running = fixture.claim_one().await;
    let (fire, _) = fixture.record_fire(builder.build("nightly", next)).await;
    assert_eq!(fire.outcome, FireOutcome::Fired);
    assert_eq!(
        fixture.read_task(&running.id).await.lifecycle.state.error_reason(),
        Some(ErrorReason::Canceled)
    );
    assert_eq!(Some(fixture.request_collection_run("shop/orders").await.task), fire.task);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

/// A collection never has two unfinished runs, whatever the policy: the fire names the existing one.
pub async fn overlap_policy_queue_reuses_an_unfinished_collection_run(harness: &dyn Harness) {
    let builder = collection_run_fire_builder(OverlapPolicy::Queue);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    let first_run = fixture.request_collection_run("shop/orders").await.task;
    let (fire, written) = fixture.record_fire(builder.build("nightly", next)).await;
    assert_eq!((fire.task, written), (Some(first_run), true));
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

/// A schedule whose expression changed is still the same schedule: the tasks of its last fire still count.
pub async fn a_changed_expression_still_detects_the_overlap(harness: &dyn Harness) {
    let builder = event_fire_builder(OverlapPolicy::Skip);
    let (fixture, next) = fixture_with_one_fire(harness, &builder).await;
    fixture.register_schedules(&[schedule_definition("nightly", "another")]).await;
    assert_eq!(fixture.record_fire(builder.build("nightly", next)).await.0.outcome, SKIPPED_BY_OVERLAP);
}
