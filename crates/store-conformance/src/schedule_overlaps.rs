//! A planned time that comes while what the last one began has not ended.

use pointsman_core::fire::{Outcome, Overlap, Skipped};
use pointsman_core::store::TaskFilter;
use pointsman_core::task::{EndReason, Rejected};
use pointsman_core::{Status, Timestamp};

use crate::Harness;
use crate::fixture::*;

const OVERLAP: Outcome = Outcome::Skipped(Skipped::Overlap);

/// A world with one schedule that has fired once; the planned time of the next firing.
async fn fired<'h>(harness: &'h dyn Harness, what: &FiringBuilder) -> (StoreFixture<'h>, Timestamp) {
    let plan =
        RegistrationBuilder::default().route("record", &["index", "notify"]).collection("shop/orders", 100);
    let mut world = StoreFixture::new(harness, plan).await;
    world.plan_daily_schedule("nightly").await;
    world.advance_clock(100);
    let (fire, _) = world.resolve_firing(what.clone().build("nightly", world.now)).await;
    assert_eq!(fire.outcome, Outcome::Fired, "nothing was in its way");
    world.advance_clock(100);
    let next = world.now;
    (world, next)
}

fn emits(overlap: Overlap) -> FiringBuilder {
    FiringBuilder::emitting(new_event("record")).with_overlap(overlap)
}

fn runs(overlap: Overlap) -> FiringBuilder {
    FiringBuilder::starting_run("shop/orders").with_overlap(overlap)
}

pub async fn unfinished_tasks_of_the_last_fire_cause_a_skip(harness: &dyn Harness) {
    let what = emits(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    let begun: Vec<_> =
        world.list_tasks(&TaskFilter::default()).await.into_iter().map(|task| task.id).collect();
    let mut times = 0;
    let mut settle = async |world: &StoreFixture<'_>| {
        times += 1;
        world.resolve_firing(what.clone().build("nightly", next.plus(secs(times)))).await.0
    };
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.event), (OVERLAP, None), "they wait");
    assert!(begun.contains(&fire.task.expect("what was in the way")));
    world.succeed(&world.claim_one_for_handler("index").await).await;
    let left = world.claim_one().await;
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.task), (OVERLAP, Some(left.id.clone())), "one of them still runs");
    world.fail(&left).await;
    assert_eq!(settle(&world).await.outcome, OVERLAP, "or is to be tried again");
    let mut world = world.reopen().await;
    assert_eq!(settle(&world).await.outcome, OVERLAP, "also after a restart");
    world.advance_clock(RETRY_DELAY_SECS);
    world.fail_permanently(&world.claim_one().await).await;
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.event.is_some()), (Outcome::Fired, true), "all have ended");
    assert_eq!(world.read_all_events().await.len(), 2);
}

pub async fn overlap_queue_fires_beside_unfinished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Queue);
    let (world, next) = fired(harness, &what).await;
    let (fire, written) = world.resolve_firing(what.build("nightly", next)).await;
    assert_eq!((fire.outcome, written), (Outcome::Fired, true));
    assert_eq!(world.run_all_ready().await.len(), 4);
}

pub async fn overlap_cancel_cancels_unfinished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let old = world.list_tasks(&TaskFilter::default()).await;
    let running = world.claim_one().await;
    let (fire, _) = world.resolve_firing(what.build("nightly", next)).await;
    assert_eq!((fire.outcome, fire.event.is_some()), (Outcome::Fired, true));
    for task in &old {
        let task = world.read_task(&task.id).await;
        assert_eq!(task.life.state.reason(), Some(EndReason::Canceled), "{}", task.id);
        assert_eq!(task.error.as_deref(), Some("the schedule nightly fired again"));
    }
    let answer = world.finish_attempt(attempt_ending(&running, success())).await.map(drop);
    assert_eq!(answer, Err(Rejected::WrongState(Status::Error)), "its attempt is fenced off");
    let ran = world.run_all_ready().await;
    assert!(ran.iter().all(|task| Some(task.event().id) == fire.event));
    assert_eq!(ran.len(), 2);
}

pub async fn overlap_cancel_keeps_finished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let ran = world.run_all_ready().await;
    assert_eq!(world.resolve_firing(what.build("nightly", next)).await.0.outcome, Outcome::Fired);
    for task in &ran {
        assert_eq!(world.task_status(&task.id).await, Status::Done);
    }
}

/// Only what this schedule began counts.
pub async fn tasks_of_other_schedules_do_not_count_as_overlap(harness: &dyn Harness) {
    for overlap in [Overlap::Skip, Overlap::Cancel] {
        let what = emits(overlap);
        let (world, next) = fired(harness, &what).await;
        world.run_all_ready().await;
        let foreign = world.emit(new_event("record")).await;
        let plans = ["nightly", "hourly"].map(|name| schedule_definition(name, "daily"));
        world.plan_schedules(&plans).await;
        world.resolve_firing(what.clone().build("hourly", next)).await;
        assert_eq!(
            world.resolve_firing(what.build("nightly", next)).await.0.outcome,
            Outcome::Fired,
            "{overlap:?}"
        );
        assert_eq!(world.task_status(&foreign.tasks[0]).await, Status::New, "{overlap:?}");
        assert_eq!(world.run_all_ready().await.len(), 6, "{overlap:?}");
    }
}

/// What was skipped began nothing, so that the one before it still counts.
pub async fn a_skipped_time_does_not_replace_the_last_fire(harness: &dyn Harness) {
    let what = runs(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    world.pause("@nightly").await;
    world.resolve_firing(what.clone().build("nightly", next)).await;
    world.resume("@nightly").await;
    let (fire, _) = world.resolve_firing(what.build("nightly", next.plus(secs(1)))).await;
    assert_eq!(fire.outcome, OVERLAP);
}

pub async fn an_unfinished_run_causes_a_skip(harness: &dyn Harness) {
    let what = runs(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    let begun = world.request_run("shop/orders").await.task;
    let (fire, _) = world.resolve_firing(what.clone().build("nightly", next)).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (OVERLAP, Some(&begun)));
    let task = world.claim_one().await;
    let (fire, _) = world.resolve_firing(what.clone().build("nightly", next.plus(secs(1)))).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (OVERLAP, Some(&begun)));
    world.succeed(&task).await;
    let (fire, _) = world.resolve_firing(what.build("nightly", next.plus(secs(2)))).await;
    assert_eq!(fire.outcome, Outcome::Fired);
    assert_ne!(fire.task, Some(begun));
}

pub async fn overlap_cancel_cancels_an_unfinished_run(harness: &dyn Harness) {
    let what = runs(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let running = world.claim_one().await;
    let (fire, _) = world.resolve_firing(what.build("nightly", next)).await;
    assert_eq!(fire.outcome, Outcome::Fired);
    assert_eq!(world.read_task(&running.id).await.life.state.reason(), Some(EndReason::Canceled));
    assert_eq!(Some(world.request_run("shop/orders").await.task), fire.task);
    assert_eq!(world.run_all_ready().await.len(), 1);
}

/// A pair never has two, whatever the policy: the row names the one that is there.
pub async fn overlap_queue_reuses_an_unfinished_run(harness: &dyn Harness) {
    let what = runs(Overlap::Queue);
    let (world, next) = fired(harness, &what).await;
    let begun = world.request_run("shop/orders").await.task;
    let (fire, written) = world.resolve_firing(what.build("nightly", next)).await;
    assert_eq!((fire.task, written), (Some(begun), true));
    assert_eq!(world.list_tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(world.run_all_ready().await.len(), 1);
}

/// Another expression makes no other schedule of it: what it began last still runs.
pub async fn a_changed_expression_still_detects_the_overlap(harness: &dyn Harness) {
    let what = emits(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    world.plan_schedules(&[schedule_definition("nightly", "another")]).await;
    assert_eq!(world.resolve_firing(what.build("nightly", next)).await.0.outcome, OVERLAP);
}
