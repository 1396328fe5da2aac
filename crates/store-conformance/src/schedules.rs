//! A planned time is settled once, whatever races, and what it makes is made with it.

use std::sync::Arc;

use pointsman_core::fire::{Outcome, Punctual, Skipped};
use pointsman_core::store::{Plan as Planned, Standing, TaskFilter};
use pointsman_core::{RuleKind, Status, Timestamp};

use crate::Harness;
use crate::world::*;

fn plan() -> Plan {
    Plan::simple().collects("shop/orders", 100)
}

/// A world whose one schedule `nightly` is set up, and the next planned time, which has just come.
async fn nightly(harness: &dyn Harness) -> (World<'_>, Timestamp) {
    let mut world = World::new(harness, plan()).await;
    world.standing("nightly").await;
    world.tick(100);
    let planned = world.now;
    (world, planned)
}

fn emits() -> Fires {
    Fires::event(event("record").key("a").value("[1]"))
}

pub async fn a_new_schedule_stands_where_it_was_planned(harness: &dyn Harness) {
    let mut world = World::new(harness, plan()).await;
    let beginning = Standing { settled: world.now, held: false, unmet: None };
    assert_eq!(world.standing("nightly").await, beginning);
    world.tick(1000);
    assert_eq!(world.standing("nightly").await, beginning, "nothing has been settled since");
    let mut world = world.reopen().await;
    world.tick(1000);
    assert_eq!(world.standing("nightly").await, beginning, "also after a restart");
}

pub async fn a_firing_emits_its_event(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    world.tick(2);
    let before = world.emit(event("note").key("a")).await;
    let (fire, written) = world.settle(emits().at("nightly", planned)).await;
    assert!(written);
    assert_eq!((fire.planned, fire.at, fire.outcome), (planned, world.now, Outcome::Fired));
    let emitted = world.read_after(before.id, &Default::default()).await;
    assert_eq!(emitted.iter().map(|event| Some(event.id)).collect::<Vec<_>>(), [fire.event]);
    assert_eq!((emitted[0].prev, emitted[0].value.as_str()), (Some(before.id), "[1]"));
    let task = world.claim_one().await;
    assert_eq!((task.event().id, task.planned), (emitted[0].id, Some(planned)));
    assert_eq!(world.task(&task.id).await.planned_at, Some(planned));
    assert_eq!(world.standing("nightly").await.settled, planned);
    world.succeed(&task).await;
    assert_eq!(world.task(&task.id).await.planned_at, Some(planned), "the history knows it, too");
}

pub async fn a_firing_makes_its_run(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let (fire, written) = world.settle(Fires::run("shop/orders").at("nightly", planned)).await;
    assert_eq!((written, fire.outcome, fire.event), (true, Outcome::Fired, None));
    let id = fire.task.expect("a run is a task");
    let run = world.run("shop/orders").await;
    assert_eq!((&run.task, run.created), (&id, false));
    assert_eq!(world.task(&id).await.planned_at, Some(planned));
    let task = world.claim_one().await;
    assert_eq!((&task.id, task.planned), (&id, Some(planned)));
    let world = world.reopen().await;
    assert_eq!(world.task(&id).await.planned_at, Some(planned));
}

pub async fn a_time_fires_once_whatever_races(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let racers: Vec<_> = (0..20)
        .map(|_| {
            let (store, now, firing) = (Arc::clone(&world.store), world.now, emits().at("nightly", planned));
            tokio::spawn(async move { must(store.settle(vec![firing], now).await).remove(0) })
        })
        .collect();
    let mut answers = Vec::new();
    for racer in racers {
        answers.push(racer.await.expect("the racer ended well"));
    }
    assert_eq!(answers.iter().filter(|(_, written)| *written).count(), 1);
    assert!(answers.iter().all(|(fire, _)| *fire == answers[0].0), "all hear of the same");
    assert_eq!(world.read_all().await.len(), 1);
    assert_eq!(world.run_all().await.len(), 1);
}

pub async fn a_settled_time_stays_as_it_is(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    let twice = vec![emits().at("nightly", planned), emits().at("nightly", planned)];
    let answers = world.settle_all(twice).await;
    assert_eq!((answers[0].1, answers[1].1), (true, false), "within one call, too");
    let first = answers[0].0.clone();
    world.tick(50);
    let world = world.reopen().await;
    for again in [
        emits().at("nightly", planned),
        emits().when(Punctual::Late).at("nightly", planned),
        emits().when(Punctual::CaughtUp).at("nightly", planned),
        let_go("nightly", planned),
    ] {
        assert_eq!(world.settle(again).await, (first.clone(), false));
    }
    assert_eq!(world.read_all().await.len(), 1);
    assert_eq!(world.fires("nightly").await, [first]);
}

pub async fn every_time_and_every_schedule_fires_for_itself(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let names = ["nightly", "hourly", "shop/orders"];
    world.plan_schedules(&names.map(|name| self::planned(name, "daily"))).await;
    let next = planned.plus(secs(1));
    let firings = vec![
        emits().at("hourly", planned),
        Fires::run("shop/orders").at("shop/orders", planned),
        emits().at("nightly", planned),
        emits().at("hourly", next),
    ];
    let answers = world.settle_all(firings).await;
    assert!(answers.iter().all(|(fire, written)| *written && fire.outcome == Outcome::Fired));
    let times: Vec<_> = answers.iter().map(|(fire, _)| fire.planned).collect();
    assert_eq!(times, [planned, planned, planned, next], "answered in the order asked");
    let events: Vec<_> = answers.iter().filter_map(|(fire, _)| fire.event).collect();
    assert_eq!(events.len(), 3);
    assert_ascending(&events);
    let standings = world.plan_schedules(&names.map(|name| self::planned(name, "daily"))).await;
    let settled: Vec<_> = standings.iter().map(|standing| standing.settled).collect();
    assert_eq!(settled, [planned, next, planned]);
}

pub async fn a_firing_is_on_time_late_or_caught_up(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let mut seconds = 0;
    for (when, outcome) in [
        (Punctual::OnTime, Outcome::Fired),
        (Punctual::Late, Outcome::Late),
        (Punctual::CaughtUp, Outcome::CaughtUp),
    ] {
        seconds += 1;
        let firing = emits().when(when).at("nightly", planned.plus(secs(seconds)));
        let (fire, written) = world.settle(firing).await;
        assert_eq!((fire.outcome, written, fire.event.is_some()), (outcome, true, true));
    }
    assert_eq!(world.read_all().await.len(), 3);
}

pub async fn a_time_may_be_let_go(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let (fire, written) = world.settle(let_go("nightly", planned)).await;
    assert_eq!((fire.outcome, written), (Outcome::Skipped(Skipped::Missed), true));
    assert_eq!((fire.event, &fire.task), (None, &None));
    assert_eq!(world.settle(emits().at("nightly", planned)).await, (fire, false));
    assert!(world.read_all().await.is_empty());
    let standing = world.standing("nightly").await;
    assert_eq!((standing.settled, standing.unmet), (planned, None));
}

pub async fn what_is_settled_never_goes_back(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let earlier = planned.minus(secs(10));
    for time in [planned, earlier] {
        assert!(world.settle(emits().at("nightly", time)).await.1);
    }
    assert_eq!(world.standing("nightly").await.settled, planned);
}

pub async fn a_held_schedule_skips_its_times(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let later = planned.plus(secs(60));
    for kind in RuleKind::ALL {
        must(world.store.hold(world.rule(kind, "@nightly", None)).await);
    }
    assert!(must(world.store.release(RuleKind::Pause, &place("@nightly"), None).await));
    assert!(world.standing("nightly").await.held, "the block still stands");
    for time in [planned, later] {
        let (fire, written) = world.settle(emits().at("nightly", time)).await;
        assert_eq!((fire.outcome, written), (Outcome::Skipped(Skipped::Held), true));
        assert_eq!((fire.event, fire.task), (None, None));
    }
    let world = world.reopen().await;
    let standing = world.standing("nightly").await;
    assert_eq!(standing, Standing { settled: later, held: true, unmet: Some(planned) });
    assert!(world.read_all().await.is_empty());
    assert_eq!(must(world.store.rules().await).len(), 1);
    assert!(must(world.store.release(RuleKind::Block, &place("@nightly"), None).await));
    assert!(!world.standing("nightly").await.held);
    assert!(world.settle(emits().at("nightly", later.plus(secs(60)))).await.0.event.is_some());
}

pub async fn what_was_held_can_be_caught_up(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    world.pause("@nightly").await;
    let (held, _) = world.settle(emits().at("nightly", planned)).await;
    let catch_up = || emits().when(Punctual::CaughtUp).at("nightly", planned);
    let (still, _) = world.settle(catch_up()).await;
    assert_eq!((still.outcome, still.event), (held.outcome, None), "not while it is held");
    world.resume("@nightly").await;
    world.tick(500);
    assert_eq!(world.settle(emits().at("nightly", planned)).await, (still, false), "nor by another firing");
    let (fire, written) = world.settle(catch_up()).await;
    assert_eq!((fire.outcome, fire.at, written), (Outcome::CaughtUp, world.now, true));
    assert_eq!(world.settle(catch_up()).await, (fire.clone(), false), "once");
    assert_eq!(world.read_all().await.iter().map(|event| Some(event.id)).collect::<Vec<_>>(), [fire.event]);
    assert_eq!(world.fires("nightly").await, [fire]);
}

pub async fn what_was_missed_is_not_caught_up(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let (missed, _) = world.settle(let_go("nightly", planned)).await;
    let firing = emits().when(Punctual::CaughtUp).at("nightly", planned);
    assert_eq!(world.settle(firing).await, (missed, false));
}

pub async fn what_is_made_up_for_is_unmet_no_longer(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    world.pause("@nightly").await;
    world.settle(emits().at("nightly", planned)).await;
    world.resume("@nightly").await;
    assert_eq!(world.standing("nightly").await.unmet, Some(planned));
    must(world.store.made_up(&schedule("nightly"), planned).await);
    assert_eq!(world.standing("nightly").await.unmet, None);
    let world = world.reopen().await;
    let standing = world.standing("nightly").await;
    assert_eq!((standing.unmet, standing.settled), (None, planned));
    must(world.store.made_up(&schedule("unheard-of"), planned).await);
}

/// Whoever makes up for one hold must not forget the next.
pub async fn what_a_later_rule_held_stays_unmet(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let later = planned.plus(secs(60));
    world.pause("@nightly").await;
    for time in [planned, later] {
        world.settle(emits().at("nightly", time)).await;
    }
    world.resume("@nightly").await;
    must(world.store.made_up(&schedule("nightly"), planned).await);
    assert_eq!(world.standing("nightly").await.unmet, Some(later));
}

/// A schedule's rule holds its firings and no task; a collection's rule holds its tasks and no firing.
pub async fn rules_of_schedules_and_of_tasks_are_apart(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    world.plan_schedules(&[self::planned("shop/orders", "daily")]).await;
    world.pause("@shop/orders").await;
    let run = world.run_anew("shop/orders").await;
    let task = world.claim_one().await;
    assert_eq!(task.id, run);
    world.succeed(&task).await;
    world.resume("@shop/orders").await;
    world.pause("shop/orders").await;
    let (fire, _) = world.settle(Fires::run("shop/orders").at("shop/orders", planned)).await;
    assert_eq!(fire.outcome, Outcome::Fired);
    assert!(world.claim(10).await.is_empty());
    world.resume("shop/orders").await;
    assert_eq!(Some(world.claim_one().await.id), fire.task);
}

pub async fn a_pair_that_has_gone_is_skipped(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    for (n, name) in ["nobody/orders", "shop/nothing", "index/record"].into_iter().enumerate() {
        let (fire, written) =
            world.settle(Fires::run(name).at("nightly", planned.plus(secs(n as u64)))).await;
        assert_eq!(
            (fire.outcome, fire.task, written),
            (Outcome::Skipped(Skipped::Gone), None, true),
            "{name}"
        );
    }
    world.register(plan().without_collection("shop/orders")).await;
    let firing = Fires::run("shop/orders").at("nightly", planned.plus(secs(10)));
    assert_eq!(world.settle(firing).await.0.outcome, Outcome::Skipped(Skipped::Gone));
    assert!(world.tasks(&TaskFilter::default()).await.is_empty());
}

pub async fn another_expression_begins_anew(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    world.settle(emits().at("nightly", planned)).await;
    world.pause("@nightly").await;
    world.settle(emits().at("nightly", planned.plus(secs(5)))).await;
    world.resume("@nightly").await;
    world.tick(1000);
    let anew = Standing { settled: world.now, held: false, unmet: None };
    let other = self::planned("nightly", "hourly");
    assert_eq!(world.plan_schedules(std::slice::from_ref(&other)).await, [anew]);
    world.tick(1000);
    assert_eq!(world.plan_schedules(&[other]).await, [anew]);
}

/// Two schedules that are settled up to the planned time.
async fn settled_pair(harness: &dyn Harness) -> (World<'_>, [Planned; 2], Timestamp) {
    let (world, planned) = nightly(harness).await;
    let both = ["nightly", "hourly"].map(|name| self::planned(name, "daily"));
    world.plan_schedules(&both).await;
    world.settle_all(vec![emits().at("nightly", planned), emits().at("hourly", planned)]).await;
    (world, both, planned)
}

/// Plans these over and over, as a clock does.
async fn keep_planning(world: &mut World<'_>, plans: &[Planned], hours: u64) {
    for _ in 0..2 * hours {
        world.tick(1800);
        world.plan_schedules(plans).await;
    }
}

async fn settled(world: &World<'_>, plans: &[Planned]) -> Vec<Timestamp> {
    world.plan_schedules(plans).await.iter().map(|standing| standing.settled).collect()
}

/// Another node may have what this one does not plan.
pub async fn a_schedule_that_comes_back_within_a_day_goes_on(harness: &dyn Harness) {
    let (mut world, both, planned) = settled_pair(harness).await;
    keep_planning(&mut world, &both[1..], 23).await;
    assert_eq!(settled(&world, &both).await, [planned, planned]);
    keep_planning(&mut world, &both[..1], 23).await;
    assert_eq!(settled(&world, &both).await, [planned, planned]);
    keep_planning(&mut world, &[], 23).await;
    assert_eq!(settled(&world, &both).await, [planned, planned]);
}

pub async fn a_schedule_that_nobody_plans_for_a_day_is_forgotten(harness: &dyn Harness) {
    let (mut world, both, planned) = settled_pair(harness).await;
    keep_planning(&mut world, &both[1..], 26).await;
    assert_eq!(settled(&world, &both).await, [world.now, planned]);
    keep_planning(&mut world, &[], 26).await;
    assert_eq!(settled(&world, &both).await, [world.now, world.now]);
}

/// After an outage the nodes come back one by one.
pub async fn nothing_is_forgotten_while_nobody_plans(harness: &dyn Harness) {
    let (mut world, both, planned) = settled_pair(harness).await;
    world.tick(3 * 24 * 3600);
    assert_eq!(settled(&world, &both[1..]).await, [planned]);
    world.tick(1000);
    assert_eq!(settled(&world, &both).await, [planned, planned]);
}

pub async fn what_was_settled_survives_a_restart(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let (fire, _) = world.settle(emits().at("nightly", planned)).await;
    let mut world = world.reopen().await;
    world.tick(1000);
    assert_eq!(world.standing("nightly").await.settled, planned);
    assert_eq!(world.settle(emits().at("nightly", planned)).await, (fire, false));
    let ran = world.run_all().await;
    assert_eq!(ran.iter().map(|task| task.planned).collect::<Vec<_>>(), [Some(planned)]);
    assert_eq!(world.status(&ran[0].id).await, Status::Done);
}
