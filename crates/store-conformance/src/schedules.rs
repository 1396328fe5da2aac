//! A planned time has one recorded fire, even if nodes race, and the event, order or task of the fire commits with it.

use std::sync::Arc;

use pointsman_core::fire::{FireOutcome, Punctuality, SkipReason};
use pointsman_core::store::{ScheduleDef, ScheduleProgress, TaskFilter};
use pointsman_core::{RuleKind, TaskStatus, Timestamp};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::single_handler().collection("shop/orders", 100)
}

/// A fixture with the schedule `nightly`, and a planned time that is now due.
async fn fixture_with_due_schedule(harness: &dyn Harness) -> (StoreFixture<'_>, Timestamp) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.register_daily_schedule("nightly").await;
    fixture.advance_clock(100);
    let planned = fixture.now;
    (fixture, planned)
}

fn event_fire_builder() -> FireRequestBuilder {
    FireRequestBuilder::emitting_event(new_event("record").with_key("a").with_value("[1]"))
}

pub async fn a_new_schedule_starts_when_it_is_first_registered(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let beginning =
        ScheduleProgress { processed_up_to: fixture.now, paused: false, first_skipped_while_paused: None };
    assert_eq!(fixture.register_daily_schedule("nightly").await, beginning);
    fixture.advance_clock(1000);
    assert_eq!(
        fixture.register_daily_schedule("nightly").await,
        beginning,
        "nothing has been processed since"
    );
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(1000);
    assert_eq!(fixture.register_daily_schedule("nightly").await, beginning, "also after a restart");
}

pub async fn a_fire_emits_its_event(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.advance_clock(2);
    let before = fixture.emit(new_event("note").with_key("a")).await;
    let (fire, written) = fixture.record_fire(event_fire_builder().build("nightly", planned)).await;
    assert!(written);
    assert_eq!((fire.planned_at, fire.recorded_at, fire.outcome), (planned, fixture.now, FireOutcome::Fired));
    let emitted = fixture.read_events_after(before.id, &Default::default()).await;
    assert_eq!(emitted.iter().map(|event| Some(event.id)).collect::<Vec<_>>(), [fire.event_id]);
    assert_eq!((emitted[0].prev, emitted[0].value.as_str()), (Some(before.id), "[1]"));
    let task = fixture.claim_one().await;
    assert_eq!((task.event().id, task.planned_at), (emitted[0].id, Some(planned)));
    assert_eq!(fixture.read_task(&task.id).await.planned_at, Some(planned));
    assert_eq!(fixture.register_daily_schedule("nightly").await.processed_up_to, planned);
    fixture.succeed(&task).await;
    assert_eq!(fixture.read_task(&task.id).await.planned_at, Some(planned), "the history knows it, too");
}

pub async fn a_fire_creates_its_collection_run(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let (fire, written) = fixture
        .record_fire(FireRequestBuilder::running_collection("shop/orders").build("nightly", planned))
        .await;
    assert_eq!((written, fire.outcome, fire.event_id), (true, FireOutcome::Fired, None));
    let id = fire.task.expect("a run is a task");
    let run = fixture.request_collection_run("shop/orders").await;
    assert_eq!((&run.task, run.created), (&id, false));
    assert_eq!(fixture.read_task(&id).await.planned_at, Some(planned));
    let task = fixture.claim_one().await;
    assert_eq!((&task.id, task.planned_at), (&id, Some(planned)));
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.read_task(&id).await.planned_at, Some(planned));
}

pub async fn racing_requests_for_one_planned_time_fire_once(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let racers: Vec<_> = (0..20)
        .map(|_| {
            let (store, now, request) =
                (Arc::clone(&fixture.store), fixture.now, event_fire_builder().build("nightly", planned));
            tokio::spawn(
                async move { expect_ok(store.execute_fire_requests(vec![request], now).await).remove(0) },
            )
        })
        .collect();
    let mut answers = Vec::new();
    for racer in racers {
        answers.push(racer.await.expect("the racing call succeeded"));
    }
    assert_eq!(answers.iter().filter(|(_, written)| *written).count(), 1);
    assert!(answers.iter().all(|(fire, _)| *fire == answers[0].0), "all get the same fire");
    assert_eq!(fixture.read_all_events().await.len(), 1);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

pub async fn a_recorded_fire_does_not_change(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    let twice =
        vec![event_fire_builder().build("nightly", planned), event_fire_builder().build("nightly", planned)];
    let answers = fixture.record_fires(twice).await;
    assert_eq!((answers[0].1, answers[1].1), (true, false), "within one call, too");
    let first = answers[0].0.clone();
    fixture.advance_clock(50);
    let fixture = fixture.reopen().await;
    for again in [
        event_fire_builder().build("nightly", planned),
        event_fire_builder().with_punctuality(Punctuality::Late).build("nightly", planned),
        event_fire_builder().with_punctuality(Punctuality::CaughtUp).build("nightly", planned),
        skip_fire_request("nightly", planned),
    ] {
        assert_eq!(fixture.record_fire(again).await, (first.clone(), false));
    }
    assert_eq!(fixture.read_all_events().await.len(), 1);
    assert_eq!(fixture.list_fires("nightly").await, [first]);
}

pub async fn planned_times_and_schedules_fire_independently(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let names = ["nightly", "hourly", "shop/orders"];
    fixture.register_schedules(&names.map(|name| self::schedule_definition(name, "daily"))).await;
    let next = planned.plus(secs(1));
    let requests = vec![
        event_fire_builder().build("hourly", planned),
        FireRequestBuilder::running_collection("shop/orders").build("shop/orders", planned),
        event_fire_builder().build("nightly", planned),
        event_fire_builder().build("hourly", next),
    ];
    let answers = fixture.record_fires(requests).await;
    assert!(answers.iter().all(|(fire, written)| *written && fire.outcome == FireOutcome::Fired));
    let times: Vec<_> = answers.iter().map(|(fire, _)| fire.planned_at).collect();
    assert_eq!(times, [planned, planned, planned, next], "results are in the order of the requests");
    let events: Vec<_> = answers.iter().filter_map(|(fire, _)| fire.event_id).collect();
    assert_eq!(events.len(), 3);
    assert_strictly_ascending(&events);
    let progress =
        fixture.register_schedules(&names.map(|name| self::schedule_definition(name, "daily"))).await;
    let processed: Vec<_> = progress.iter().map(|progress| progress.processed_up_to).collect();
    assert_eq!(processed, [planned, next, planned]);
}

pub async fn fires_are_recorded_as_on_time_late_or_caught_up(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let mut seconds = 0;
    for (punctuality, outcome) in [
        (Punctuality::OnTime, FireOutcome::Fired),
        (Punctuality::Late, FireOutcome::Late),
        (Punctuality::CaughtUp, FireOutcome::CaughtUp),
    ] {
        seconds += 1;
        let request =
            event_fire_builder().with_punctuality(punctuality).build("nightly", planned.plus(secs(seconds)));
        let (fire, written) = fixture.record_fire(request).await;
        assert_eq!((fire.outcome, written, fire.event_id.is_some()), (outcome, true, true));
    }
    assert_eq!(fixture.read_all_events().await.len(), 3);
}

pub async fn a_skip_request_records_the_planned_time_as_missed(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let (fire, written) = fixture.record_fire(skip_fire_request("nightly", planned)).await;
    assert_eq!((fire.outcome, written), (FireOutcome::Skipped(SkipReason::Missed), true));
    assert_eq!((fire.event_id, &fire.task), (None, &None));
    assert_eq!(fixture.record_fire(event_fire_builder().build("nightly", planned)).await, (fire, false));
    assert!(fixture.read_all_events().await.is_empty());
    let progress = fixture.register_daily_schedule("nightly").await;
    assert_eq!((progress.processed_up_to, progress.first_skipped_while_paused), (planned, None));
}

pub async fn processed_up_to_never_moves_back(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let earlier = planned.minus(secs(10));
    for time in [planned, earlier] {
        assert!(fixture.record_fire(event_fire_builder().build("nightly", time)).await.1);
    }
    assert_eq!(fixture.register_daily_schedule("nightly").await.processed_up_to, planned);
}

pub async fn a_paused_schedule_skips_its_times(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let later = planned.plus(secs(60));
    for kind in RuleKind::ALL {
        expect_ok(fixture.store.set_rule(fixture.new_rule(kind, "@nightly", None)).await);
    }
    assert!(expect_ok(fixture.store.lift_rule(RuleKind::Pause, &rule_scope("@nightly"), None).await));
    assert!(fixture.register_daily_schedule("nightly").await.paused, "the block rule is still set");
    for time in [planned, later] {
        let (fire, written) = fixture.record_fire(event_fire_builder().build("nightly", time)).await;
        assert_eq!((fire.outcome, written), (FireOutcome::Skipped(SkipReason::PausedByRule), true));
        assert_eq!((fire.event_id, fire.task), (None, None));
    }
    let fixture = fixture.reopen().await;
    let progress = fixture.register_daily_schedule("nightly").await;
    assert_eq!(
        progress,
        ScheduleProgress { processed_up_to: later, paused: true, first_skipped_while_paused: Some(planned) }
    );
    assert!(fixture.read_all_events().await.is_empty());
    assert_eq!(expect_ok(fixture.store.list_rules().await).len(), 1);
    assert!(expect_ok(fixture.store.lift_rule(RuleKind::Block, &rule_scope("@nightly"), None).await));
    assert!(!fixture.register_daily_schedule("nightly").await.paused);
    assert!(
        fixture
            .record_fire(event_fire_builder().build("nightly", later.plus(secs(60))))
            .await
            .0
            .event_id
            .is_some()
    );
}

pub async fn times_skipped_by_a_pause_can_be_caught_up(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.set_pause_rule("@nightly").await;
    let (skipped, _) = fixture.record_fire(event_fire_builder().build("nightly", planned)).await;
    let catch_up = || event_fire_builder().with_punctuality(Punctuality::CaughtUp).build("nightly", planned);
    let (skipped_again, _) = fixture.record_fire(catch_up()).await;
    assert_eq!(
        (skipped_again.outcome, skipped_again.event_id),
        (skipped.outcome, None),
        "not while the schedule is paused"
    );
    fixture.lift_pause_rule("@nightly").await;
    fixture.advance_clock(500);
    assert_eq!(
        fixture.record_fire(event_fire_builder().build("nightly", planned)).await,
        (skipped_again, false),
        "nor by another request"
    );
    let (fire, written) = fixture.record_fire(catch_up()).await;
    assert_eq!((fire.outcome, fire.recorded_at, written), (FireOutcome::CaughtUp, fixture.now, true));
    assert_eq!(fixture.record_fire(catch_up()).await, (fire.clone(), false), "once");
    assert_eq!(
        fixture.read_all_events().await.iter().map(|event| Some(event.id)).collect::<Vec<_>>(),
        [fire.event_id]
    );
    assert_eq!(fixture.list_fires("nightly").await, [fire]);
}

pub async fn missed_times_are_not_caught_up(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let (missed, _) = fixture.record_fire(skip_fire_request("nightly", planned)).await;
    let request = event_fire_builder().with_punctuality(Punctuality::CaughtUp).build("nightly", planned);
    assert_eq!(fixture.record_fire(request).await, (missed, false));
}

pub async fn caught_up_times_no_longer_count_as_skipped(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.set_pause_rule("@nightly").await;
    fixture.record_fire(event_fire_builder().build("nightly", planned)).await;
    fixture.lift_pause_rule("@nightly").await;
    assert_eq!(fixture.register_daily_schedule("nightly").await.first_skipped_while_paused, Some(planned));
    expect_ok(fixture.store.mark_caught_up(&schedule_name("nightly"), planned).await);
    assert_eq!(fixture.register_daily_schedule("nightly").await.first_skipped_while_paused, None);
    let fixture = fixture.reopen().await;
    let progress = fixture.register_daily_schedule("nightly").await;
    assert_eq!((progress.first_skipped_while_paused, progress.processed_up_to), (None, planned));
    expect_ok(fixture.store.mark_caught_up(&schedule_name("unheard-of"), planned).await);
}

/// Catching up the times of one pause must not hide the times that a later pause skipped.
pub async fn catching_up_keeps_later_skipped_times(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let later = planned.plus(secs(60));
    fixture.set_pause_rule("@nightly").await;
    for time in [planned, later] {
        fixture.record_fire(event_fire_builder().build("nightly", time)).await;
    }
    fixture.lift_pause_rule("@nightly").await;
    expect_ok(fixture.store.mark_caught_up(&schedule_name("nightly"), planned).await);
    assert_eq!(fixture.register_daily_schedule("nightly").await.first_skipped_while_paused, Some(later));
}

/// A schedule's rule blocks its fires and no task; a collection's rule blocks its tasks and no fire.
pub async fn schedule_rules_and_collection_rules_are_independent(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.register_schedules(&[self::schedule_definition("shop/orders", "daily")]).await;
    fixture.set_pause_rule("@shop/orders").await;
    let run = fixture.request_new_collection_run("shop/orders").await;
    let task = fixture.claim_one().await;
    assert_eq!(task.id, run);
    fixture.succeed(&task).await;
    fixture.lift_pause_rule("@shop/orders").await;
    fixture.set_pause_rule("shop/orders").await;
    let (fire, _) = fixture
        .record_fire(FireRequestBuilder::running_collection("shop/orders").build("shop/orders", planned))
        .await;
    assert_eq!(fire.outcome, FireOutcome::Fired);
    assert!(fixture.claim(10).await.is_empty());
    fixture.lift_pause_rule("shop/orders").await;
    assert_eq!(Some(fixture.claim_one().await.id), fire.task);
}

pub async fn a_fire_for_an_unknown_collection_is_skipped(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    for (n, name) in ["nobody/orders", "shop/nothing", "index/record"].into_iter().enumerate() {
        let (fire, written) = fixture
            .record_fire(
                FireRequestBuilder::running_collection(name).build("nightly", planned.plus(secs(n as u64))),
            )
            .await;
        assert_eq!(
            (fire.outcome, fire.task, written),
            (FireOutcome::Skipped(SkipReason::TargetUndefined), None, true),
            "{name}"
        );
    }
    fixture.register(base_registration().without_collection("shop/orders")).await;
    let request =
        FireRequestBuilder::running_collection("shop/orders").build("nightly", planned.plus(secs(10)));
    assert_eq!(
        fixture.record_fire(request).await.0.outcome,
        FireOutcome::Skipped(SkipReason::TargetUndefined)
    );
    assert!(fixture.list_tasks(&TaskFilter::default()).await.is_empty());
}

pub async fn a_changed_expression_restarts_the_schedule(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.record_fire(event_fire_builder().build("nightly", planned)).await;
    fixture.set_pause_rule("@nightly").await;
    fixture.record_fire(event_fire_builder().build("nightly", planned.plus(secs(5)))).await;
    fixture.lift_pause_rule("@nightly").await;
    fixture.advance_clock(1000);
    let restarted_progress =
        ScheduleProgress { processed_up_to: fixture.now, paused: false, first_skipped_while_paused: None };
    let other = self::schedule_definition("nightly", "hourly");
    assert_eq!(fixture.register_schedules(std::slice::from_ref(&other)).await, [restarted_progress]);
    fixture.advance_clock(1000);
    assert_eq!(fixture.register_schedules(&[other]).await, [restarted_progress]);
}

/// A fixture with two schedules that have both fired at the planned time.
async fn fixture_with_two_fired_schedules(
    harness: &dyn Harness,
) -> (StoreFixture<'_>, [ScheduleDef; 2], Timestamp) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let definitions = ["nightly", "hourly"].map(|name| self::schedule_definition(name, "daily"));
    fixture.register_schedules(&definitions).await;
    fixture
        .record_fires(vec![
            event_fire_builder().build("nightly", planned),
            event_fire_builder().build("hourly", planned),
        ])
        .await;
    (fixture, definitions, planned)
}

/// Registers these schedules every half hour, as the clock service does.
async fn register_schedules_for_hours(
    fixture: &mut StoreFixture<'_>,
    definitions: &[ScheduleDef],
    hours: u64,
) {
    for _ in 0..2 * hours {
        fixture.advance_clock(1800);
        fixture.register_schedules(definitions).await;
    }
}

async fn register_and_read_processed_up_to(
    fixture: &StoreFixture<'_>,
    definitions: &[ScheduleDef],
) -> Vec<Timestamp> {
    fixture.register_schedules(definitions).await.iter().map(|progress| progress.processed_up_to).collect()
}

/// A schedule that the other nodes do not register continues if it is registered again in time.
pub async fn a_schedule_registered_again_within_a_day_continues(harness: &dyn Harness) {
    let (mut fixture, definitions, planned) = fixture_with_two_fired_schedules(harness).await;
    register_schedules_for_hours(&mut fixture, &definitions[1..], 23).await;
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [planned, planned]);
    register_schedules_for_hours(&mut fixture, &definitions[..1], 23).await;
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [planned, planned]);
    register_schedules_for_hours(&mut fixture, &[], 23).await;
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [planned, planned]);
}

pub async fn a_schedule_not_registered_for_a_day_expires(harness: &dyn Harness) {
    let (mut fixture, definitions, planned) = fixture_with_two_fired_schedules(harness).await;
    register_schedules_for_hours(&mut fixture, &definitions[1..], 26).await;
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [fixture.now, planned]);
    register_schedules_for_hours(&mut fixture, &[], 26).await;
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [fixture.now, fixture.now]);
}

/// After an outage, in which no node registered a schedule, the nodes start again one by one.
pub async fn schedules_do_not_expire_while_no_node_registers_any(harness: &dyn Harness) {
    let (mut fixture, definitions, planned) = fixture_with_two_fired_schedules(harness).await;
    fixture.advance_clock(3 * 24 * 3600);
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions[1..]).await, [planned]);
    fixture.advance_clock(1000);
    assert_eq!(register_and_read_processed_up_to(&fixture, &definitions).await, [planned, planned]);
}

pub async fn processed_up_to_survives_a_restart(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let (fire, _) = fixture.record_fire(event_fire_builder().build("nightly", planned)).await;
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(1000);
    assert_eq!(fixture.register_daily_schedule("nightly").await.processed_up_to, planned);
    assert_eq!(fixture.record_fire(event_fire_builder().build("nightly", planned)).await, (fire, false));
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(ran.iter().map(|task| task.planned_at).collect::<Vec<_>>(), [Some(planned)]);
    assert_eq!(fixture.read_task_status(&ran[0].id).await, TaskStatus::Done);
}
