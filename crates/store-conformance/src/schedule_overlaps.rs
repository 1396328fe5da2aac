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
    let plan = RegistrationBuilder::default().on("record", &["index", "notify"]).collects("shop/orders", 100);
    let mut world = StoreFixture::new(harness, plan).await;
    world.standing("nightly").await;
    world.tick(100);
    let (fire, _) = world.settle(what.clone().at("nightly", world.now)).await;
    assert_eq!(fire.outcome, Outcome::Fired, "nothing was in its way");
    world.tick(100);
    let next = world.now;
    (world, next)
}

fn emits(overlap: Overlap) -> FiringBuilder {
    FiringBuilder::event(new_event("record")).overlap(overlap)
}

fn runs(overlap: Overlap) -> FiringBuilder {
    FiringBuilder::run("shop/orders").overlap(overlap)
}

pub async fn unfinished_tasks_of_the_last_fire_cause_a_skip(harness: &dyn Harness) {
    let what = emits(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    let begun: Vec<_> = world.tasks(&TaskFilter::default()).await.into_iter().map(|task| task.id).collect();
    let mut times = 0;
    let mut settle = async |world: &StoreFixture<'_>| {
        times += 1;
        world.settle(what.clone().at("nightly", next.plus(secs(times)))).await.0
    };
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.event), (OVERLAP, None), "they wait");
    assert!(begun.contains(&fire.task.expect("what was in the way")));
    world.succeed(&world.claim_one_for("index").await).await;
    let left = world.claim_one().await;
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.task), (OVERLAP, Some(left.id.clone())), "one of them still runs");
    world.fail(&left).await;
    assert_eq!(settle(&world).await.outcome, OVERLAP, "or is to be tried again");
    let mut world = world.reopen().await;
    assert_eq!(settle(&world).await.outcome, OVERLAP, "also after a restart");
    world.tick(RETRY_DELAY_SECS);
    world.fail_for_good(&world.claim_one().await).await;
    let fire = settle(&world).await;
    assert_eq!((fire.outcome, fire.event.is_some()), (Outcome::Fired, true), "all have ended");
    assert_eq!(world.read_all().await.len(), 2);
}

pub async fn overlap_queue_fires_beside_unfinished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Queue);
    let (world, next) = fired(harness, &what).await;
    let (fire, written) = world.settle(what.at("nightly", next)).await;
    assert_eq!((fire.outcome, written), (Outcome::Fired, true));
    assert_eq!(world.run_all().await.len(), 4);
}

pub async fn overlap_cancel_cancels_unfinished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let old = world.tasks(&TaskFilter::default()).await;
    let running = world.claim_one().await;
    let (fire, _) = world.settle(what.at("nightly", next)).await;
    assert_eq!((fire.outcome, fire.event.is_some()), (Outcome::Fired, true));
    for task in &old {
        let task = world.task(&task.id).await;
        assert_eq!(task.life.state.reason(), Some(EndReason::Canceled), "{}", task.id);
        assert_eq!(task.error.as_deref(), Some("the schedule nightly fired again"));
    }
    let answer = world.end(attempt_ending(&running, success())).await.map(drop);
    assert_eq!(answer, Err(Rejected::WrongState(Status::Error)), "its attempt is fenced off");
    let ran = world.run_all().await;
    assert!(ran.iter().all(|task| Some(task.event().id) == fire.event));
    assert_eq!(ran.len(), 2);
}

pub async fn overlap_cancel_keeps_finished_tasks(harness: &dyn Harness) {
    let what = emits(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let ran = world.run_all().await;
    assert_eq!(world.settle(what.at("nightly", next)).await.0.outcome, Outcome::Fired);
    for task in &ran {
        assert_eq!(world.status(&task.id).await, Status::Done);
    }
}

/// Only what this schedule began counts.
pub async fn tasks_of_other_schedules_do_not_count_as_overlap(harness: &dyn Harness) {
    for overlap in [Overlap::Skip, Overlap::Cancel] {
        let what = emits(overlap);
        let (world, next) = fired(harness, &what).await;
        world.run_all().await;
        let foreign = world.emit(new_event("record")).await;
        let plans = ["nightly", "hourly"].map(|name| schedule_definition(name, "daily"));
        world.plan_schedules(&plans).await;
        world.settle(what.clone().at("hourly", next)).await;
        assert_eq!(world.settle(what.at("nightly", next)).await.0.outcome, Outcome::Fired, "{overlap:?}");
        assert_eq!(world.status(&foreign.tasks[0]).await, Status::New, "{overlap:?}");
        assert_eq!(world.run_all().await.len(), 6, "{overlap:?}");
    }
}

/// What was skipped began nothing, so that the one before it still counts.
pub async fn a_skipped_time_does_not_replace_the_last_fire(harness: &dyn Harness) {
    let what = runs(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    world.pause("@nightly").await;
    world.settle(what.clone().at("nightly", next)).await;
    world.resume("@nightly").await;
    let (fire, _) = world.settle(what.at("nightly", next.plus(secs(1)))).await;
    assert_eq!(fire.outcome, OVERLAP);
}

pub async fn an_unfinished_run_causes_a_skip(harness: &dyn Harness) {
    let what = runs(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    let begun = world.run("shop/orders").await.task;
    let (fire, _) = world.settle(what.clone().at("nightly", next)).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (OVERLAP, Some(&begun)));
    let task = world.claim_one().await;
    let (fire, _) = world.settle(what.clone().at("nightly", next.plus(secs(1)))).await;
    assert_eq!((fire.outcome, fire.task.as_ref()), (OVERLAP, Some(&begun)));
    world.succeed(&task).await;
    let (fire, _) = world.settle(what.at("nightly", next.plus(secs(2)))).await;
    assert_eq!(fire.outcome, Outcome::Fired);
    assert_ne!(fire.task, Some(begun));
}

pub async fn overlap_cancel_cancels_an_unfinished_run(harness: &dyn Harness) {
    let what = runs(Overlap::Cancel);
    let (world, next) = fired(harness, &what).await;
    let running = world.claim_one().await;
    let (fire, _) = world.settle(what.at("nightly", next)).await;
    assert_eq!(fire.outcome, Outcome::Fired);
    assert_eq!(world.task(&running.id).await.life.state.reason(), Some(EndReason::Canceled));
    assert_eq!(Some(world.run("shop/orders").await.task), fire.task);
    assert_eq!(world.run_all().await.len(), 1);
}

/// A pair never has two, whatever the policy: the row names the one that is there.
pub async fn overlap_queue_reuses_an_unfinished_run(harness: &dyn Harness) {
    let what = runs(Overlap::Queue);
    let (world, next) = fired(harness, &what).await;
    let begun = world.run("shop/orders").await.task;
    let (fire, written) = world.settle(what.at("nightly", next)).await;
    assert_eq!((fire.task, written), (Some(begun), true));
    assert_eq!(world.tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(world.run_all().await.len(), 1);
}

/// Another expression makes no other schedule of it: what it began last still runs.
pub async fn a_changed_expression_still_detects_the_overlap(harness: &dyn Harness) {
    let what = emits(Overlap::Skip);
    let (world, next) = fired(harness, &what).await;
    world.plan_schedules(&[schedule_definition("nightly", "another")]).await;
    assert_eq!(world.settle(what.at("nightly", next)).await.0.outcome, OVERLAP);
}
