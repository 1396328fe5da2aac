//! The one exception to the order: a parked task that a person retries.

use pointsman_core::Status;
use pointsman_core::store::Sequenced;

use crate::Harness;
use crate::world::*;

/// Four events of one object, the first of them parked.
async fn parked(harness: &dyn Harness) -> (World<'_>, Vec<Sequenced>) {
    let world = World::new(harness, Plan::simple()).await;
    let events = world.emit_many(4, event("record").key("a")).await;
    world.fail_for_good(&world.claim_one().await).await;
    (world, events)
}

pub async fn a_parked_task_that_is_retried_comes_late(harness: &dyn Harness) {
    let (world, events) = parked(harness).await;
    world.run_all().await;
    assert_eq!(world.retry(&events[0].tasks[0]).await, Ok(()));
    let late = world.claim_one().await;
    assert!(late.late);
    assert_eq!((late.event.id, late.attempt, late.retries), (events[0].id, 2, 0));
    world.succeed(&late).await;
    let task = world.task(&events[0].tasks[0]).await;
    assert_eq!(task.life.state.status(), Status::Done);
    assert_eq!(task.attempts.len(), 2);
    assert_eq!(world.queue("index").await.ready, 0);
}

/// Its end is not the end of the lane's head.
pub async fn a_late_task_moves_nobody_forward(harness: &dyn Harness) {
    let (world, events) = parked(harness).await;
    let head = world.claim_one().await;
    assert_eq!(head.event.id, events[1].id);
    world.retry(&events[0].tasks[0]).await.expect("it is parked");
    let late = world.claim(10).await;
    assert_eq!(events_of(&late), [events[0].id], "a late task waits for nobody");
    world.succeed(&late[0]).await;
    assert!(world.claim(10).await.is_empty(), "the head still runs");
    world.succeed(&head).await;
    assert_eq!(events_of(&world.run_all().await), ids_of(&events[2..]));
}

pub async fn a_late_task_holds_nobody_up(harness: &dyn Harness) {
    let (mut world, events) = parked(harness).await;
    world.retry(&events[0].tasks[0]).await.expect("it is parked");
    let claimed = world.claim(10).await;
    let late = claimed.iter().find(|task| task.late).expect("the late one is ready");
    let head = claimed.iter().find(|task| !task.late).expect("and so is the head");
    world.fail(late).await;
    world.succeed(head).await;
    assert_eq!(
        events_of(&world.run_all().await),
        ids_of(&events[2..]),
        "while the late one waits to be retried"
    );
    world.tick(BACKOFF);
    let again = world.claim_one().await;
    assert!(again.late, "late it stays");
    assert_eq!(again.event.id, events[0].id);
}

/// Even where the lane halts on failure.
pub async fn a_late_task_that_fails_again_is_parked_again(harness: &dyn Harness) {
    let (mut world, events) = parked(harness).await;
    world.register(Plan::simple().halting("index")).await;
    world.retry(&events[0].tasks[0]).await.expect("it is parked");
    let late = world.claim(10).await.into_iter().find(|task| task.late).expect("the late one is ready");
    world.fail_for_good(&late).await;
    assert_eq!(world.queue("index").await.halted, 0);
    assert_eq!(world.retry(&late.id).await, Ok(()), "and can be retried again");
}

pub async fn lateness_survives_a_restart(harness: &dyn Harness) {
    let (world, events) = parked(harness).await;
    let head = world.claim_one().await;
    world.succeed(&head).await;
    world.retry(&events[0].tasks[0]).await.expect("it is parked");
    let world = world.reopen().await;
    let claimed = world.claim(10).await;
    let seen: Vec<_> = claimed.iter().map(|task| (task.event.id, task.late)).collect();
    assert!(seen.contains(&(events[0].id, true)), "{seen:?}");
    assert!(seen.contains(&(events[2].id, false)), "{seen:?}");
    assert_eq!(seen.len(), 2);
}
