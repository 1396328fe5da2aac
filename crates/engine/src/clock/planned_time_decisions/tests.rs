//! Tables of planned times and their decisions.

use pointsman_core::cron::{Dialect, Expression, Zone};
use pointsman_core::store::NewCollectionRun;
use pointsman_core::{EventType, NewEvent, ScheduleName};

use super::*;

const FIRE_ON_TIME: PlannedTimeDecision = PlannedTimeDecision::Fire(Punctuality::OnTime);
const FIRE_LATE: PlannedTimeDecision = PlannedTimeDecision::Fire(Punctuality::Late);
const FIRE_CAUGHT_UP: PlannedTimeDecision = PlannedTimeDecision::Fire(Punctuality::CaughtUp);
const SKIP: PlannedTimeDecision = PlannedTimeDecision::Skip;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Parses a time of day on 2026-01-31, or a complete timestamp.
fn parse_time(text: &str) -> Timestamp {
    let text = if text.contains('T') { text.to_owned() } else { format!("2026-01-31T{text}Z") };
    text.parse().unwrap()
}

fn schedule_in_zone(zone: &str, expression: &str, catch_up: CatchUpPolicy, window: Duration) -> ScheduleSpec {
    let expression = Expression::parse(expression, Dialect::Auto).unwrap();
    let cron = cron::Schedule::new(expression, Zone::from_name(zone).unwrap());
    let event = NewEvent::new(EventType::new("tick").unwrap());
    let schedule =
        ScheduleSpec::new(ScheduleName::new("s").unwrap(), cron, FireAction::EmitEvent(Box::new(event)));
    ScheduleSpec { catch_up, catch_up_window: window, ..schedule }
}

fn utc_schedule(expression: &str, catch_up: CatchUpPolicy, window: Duration) -> ScheduleSpec {
    schedule_in_zone("UTC", expression, catch_up, window)
}

fn decided_times(
    schedule: &ScheduleSpec,
    processed_up_to: &str,
    now: &str,
) -> Vec<(String, PlannedTimeDecision)> {
    let due_times = decide_which_due_times_fire(schedule, parse_time(processed_up_to), parse_time(now));
    assert!(!due_times.has_omitted_older);
    due_times
        .planned_times_with_decisions
        .into_iter()
        .map(|(planned, decision)| (planned.to_string(), decision))
        .collect()
}

/// The decisions without their planned times.
fn decisions(schedule: &ScheduleSpec, processed_up_to: &str, now: &str) -> Vec<PlannedTimeDecision> {
    decided_times(schedule, processed_up_to, now).into_iter().map(|(_, decision)| decision).collect()
}

#[test]
fn recent_times_fire_under_every_policy() {
    for catch_up in [CatchUpPolicy::One, CatchUpPolicy::All, CatchUpPolicy::None] {
        let hourly = utc_schedule("@hourly", catch_up, Duration::ZERO);
        for (processed_up_to, now, expected) in [
            ("11:00:00", "11:59:59.999999", vec![]),
            ("11:00:00", "12:00:00", vec![FIRE_ON_TIME]),
            ("11:00:00", "12:00:05", vec![FIRE_ON_TIME]),
            ("11:00:00", "12:00:05.000001", vec![FIRE_LATE]),
            ("11:00:00", "12:01:00", vec![FIRE_LATE]),
            ("11:00:00", "12:01:00.000001", vec![SKIP]),
            ("12:00:00", "12:00:00", vec![]),
            ("12:00:00", "12:59:59", vec![]),
            // A clock that was set back.
            ("12:00:00", "10:30:00", vec![]),
        ] {
            assert_eq!(
                decisions(&hourly, processed_up_to, now),
                expected,
                "{catch_up:?} {processed_up_to} {now}"
            );
        }
    }
}

#[test]
fn missed_times_follow_the_catch_up_policy() {
    for (catch_up, window, processed_up_to, now, expected) in [
        // The latest missed time fires, the others do not.
        (CatchUpPolicy::One, DAY, "07:00:00", "10:30:00", vec![SKIP, SKIP, FIRE_CAUGHT_UP]),
        (CatchUpPolicy::One, DAY, "09:00:00", "10:30:00", vec![FIRE_CAUGHT_UP]),
        // A newer time fires anyway, so no missed time does.
        (CatchUpPolicy::One, DAY, "07:00:00", "10:00:30", vec![SKIP, SKIP, FIRE_LATE]),
        (CatchUpPolicy::One, DAY, "07:00:00", "10:00:01", vec![SKIP, SKIP, FIRE_ON_TIME]),
        // The missed time is older than the window.
        (CatchUpPolicy::One, HOUR / 2, "07:00:00", "10:30:00", vec![SKIP, SKIP, FIRE_CAUGHT_UP]),
        (CatchUpPolicy::One, HOUR / 2, "07:00:00", "10:30:01", vec![SKIP, SKIP, SKIP]),
        (
            CatchUpPolicy::All,
            DAY,
            "07:00:00",
            "10:30:00",
            vec![FIRE_CAUGHT_UP, FIRE_CAUGHT_UP, FIRE_CAUGHT_UP],
        ),
        (CatchUpPolicy::All, DAY, "07:00:00", "10:00:30", vec![FIRE_CAUGHT_UP, FIRE_CAUGHT_UP, FIRE_LATE]),
        (CatchUpPolicy::All, HOUR * 2, "07:00:00", "10:30:00", vec![SKIP, FIRE_CAUGHT_UP, FIRE_CAUGHT_UP]),
        (CatchUpPolicy::None, DAY, "07:00:00", "10:30:00", vec![SKIP, SKIP, SKIP]),
        (CatchUpPolicy::None, DAY, "07:00:00", "10:00:30", vec![SKIP, SKIP, FIRE_LATE]),
    ] {
        let hourly = utc_schedule("@hourly", catch_up, window);
        assert_eq!(
            decisions(&hourly, processed_up_to, now),
            expected,
            "{catch_up:?} {window:?} {processed_up_to} {now}"
        );
    }
}

#[test]
fn late_times_of_a_frequent_schedule_count_as_missed_if_a_newer_one_is_due() {
    for (catch_up, now, expected) in [
        (CatchUpPolicy::One, "10:00:46", vec![SKIP, SKIP, FIRE_LATE]),
        (CatchUpPolicy::One, "10:00:42", vec![SKIP, SKIP, FIRE_ON_TIME]),
        (CatchUpPolicy::None, "10:00:46", vec![SKIP, SKIP, FIRE_LATE]),
        (CatchUpPolicy::All, "10:00:46", vec![FIRE_CAUGHT_UP, FIRE_CAUGHT_UP, FIRE_LATE]),
        // A short delay does not make a time late.
        (CatchUpPolicy::One, "10:00:04", vec![FIRE_ON_TIME]),
    ] {
        let often = utc_schedule("every 20s", catch_up, DAY);
        assert_eq!(decisions(&often, "09:59:40", now), expected, "{catch_up:?} {now}");
    }
    let each_second = utc_schedule("every 1s", CatchUpPolicy::One, DAY);
    assert_eq!(decisions(&each_second, "10:00:00", "10:00:04"), vec![FIRE_ON_TIME; 4]);
}

#[test]
fn decided_times_after_a_long_gap_are_limited() {
    for (catch_up, expected) in [
        (CatchUpPolicy::One, 0),
        (CatchUpPolicy::All, MAX_TIMES_DECIDED_AT_ONCE - 6),
        (CatchUpPolicy::None, 0),
    ] {
        let each_second = utc_schedule("every 1s", catch_up, DAY);
        let now = parse_time("12:00:00");
        let DueTimeDecisions { planned_times_with_decisions, has_omitted_older } =
            decide_which_due_times_fire(&each_second, now.minus(DAY * 3650), now);
        assert!(has_omitted_older);
        assert_eq!(
            (planned_times_with_decisions.len(), planned_times_with_decisions.last().unwrap().0),
            (MAX_TIMES_DECIDED_AT_ONCE, now)
        );
        assert!(planned_times_with_decisions.is_sorted_by(|a, b| a.0 < b.0));
        let caught_up =
            planned_times_with_decisions.iter().filter(|(_, decision)| *decision == FIRE_CAUGHT_UP).count();
        // Times that were due within the last seconds are not missed yet.
        assert_eq!(caught_up, expected, "{catch_up:?}");
        let just = decide_which_due_times_fire(
            &each_second,
            now.minus(SECOND * MAX_TIMES_DECIDED_AT_ONCE as u32),
            now,
        );
        assert_eq!(
            (just.planned_times_with_decisions.len(), just.has_omitted_older),
            (MAX_TIMES_DECIDED_AT_ONCE, false)
        );
    }
}

#[test]
fn deciding_in_parts_gives_the_same_decisions() {
    for catch_up in [CatchUpPolicy::One, CatchUpPolicy::All, CatchUpPolicy::None] {
        let minutely = utc_schedule("* * * * *", catch_up, HOUR / 2);
        let (processed_up_to, now) = (parse_time("09:00:00"), parse_time("10:00:40"));
        let whole = decide_which_due_times_fire(&minutely, processed_up_to, now).planned_times_with_decisions;
        for (done, (planned, _)) in whole.iter().enumerate() {
            assert_eq!(
                decide_which_due_times_fire(&minutely, *planned, now).planned_times_with_decisions,
                whole[done + 1..]
            );
        }
    }
}

#[test]
fn a_skipped_hour_moves_a_fixed_time_and_a_doubled_hour_does_not_repeat_it() {
    let daily = schedule_in_zone("Europe/Berlin", "30 2 * * *", CatchUpPolicy::All, DAY * 7);
    // On 29 March 02:30 does not exist; the clock goes from 02:00 to 03:00, which is 01:00 UTC.
    let spring = decided_times(&daily, "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z");
    let spring: Vec<_> = spring.iter().map(|(planned, _)| planned.as_str()).collect();
    assert_eq!(
        spring,
        ["2026-03-28T01:30:00.000000Z", "2026-03-29T01:00:00.000000Z", "2026-03-30T00:30:00.000000Z"]
    );
    // On 25 October 02:30 occurs twice.
    let autumn = decided_times(&daily, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
    assert_eq!(autumn, [("2026-10-25T00:30:00.000000Z".into(), FIRE_CAUGHT_UP)]);
    // Between the two occurrences nothing is due.
    assert_eq!(decisions(&daily, "2026-10-25T00:30:00Z", "2026-10-25T01:30:02Z"), []);
}

#[test]
fn intervals_run_through_a_doubled_hour_and_omit_a_skipped_one() {
    for (zone, processed_up_to, now, count) in [
        // Days of 23 and of 25 hours; on Lord Howe Island the clock moves by half an hour.
        ("Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 46),
        ("Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 50),
        ("America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 50),
        ("Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", 49),
    ] {
        let half_hourly = schedule_in_zone(zone, "*/30 * * * *", CatchUpPolicy::All, DAY * 2);
        let all = decided_times(&half_hourly, processed_up_to, now);
        assert_eq!(all.len(), count, "{zone} {processed_up_to}");
        assert!(all.iter().all(|(_, decision)| *decision != SKIP));
    }
}

#[test]
fn paused_times_are_caught_up_by_the_policy() {
    for (catch_up, window, processed_up_to, now, expected) in [
        (CatchUpPolicy::One, DAY, "10:00:00", "10:30:00", vec!["10:00:00"]),
        (CatchUpPolicy::All, DAY, "10:00:00", "10:30:00", vec!["08:00:00", "09:00:00", "10:00:00"]),
        (CatchUpPolicy::None, DAY, "10:00:00", "10:30:00", vec![]),
        // A time that was paused a moment ago is caught up too.
        (CatchUpPolicy::One, DAY, "10:00:00", "10:00:02", vec!["10:00:00"]),
        // The paused times are older than the window.
        (CatchUpPolicy::One, HOUR / 4, "10:00:00", "10:30:00", vec![]),
        (CatchUpPolicy::All, HOUR * 2, "10:00:00", "10:30:00", vec!["09:00:00", "10:00:00"]),
        // A newer time is due and fires, so no paused time is caught up.
        (CatchUpPolicy::One, DAY, "09:00:00", "10:00:02", vec![]),
        (CatchUpPolicy::All, DAY, "09:00:00", "10:00:02", vec!["08:00:00", "09:00:00"]),
    ] {
        let hourly = utc_schedule("@hourly", catch_up, window);
        let caught_up_times = paused_times_to_catch_up(
            &hourly,
            parse_time("08:00:00"),
            parse_time(processed_up_to),
            parse_time(now),
        );
        let expected: Vec<_> = expected.into_iter().map(parse_time).collect();
        assert_eq!(caught_up_times, expected, "{catch_up:?} {window:?} {processed_up_to} {now}");
    }
}

#[test]
fn jitter_is_spread_deterministic_and_keeps_the_order() {
    let span = Duration::from_secs(600);
    let jittery = ScheduleSpec { jitter: span, ..utc_schedule("every 1m", CatchUpPolicy::All, DAY) };
    let planned: Vec<_> = jittery.cron.between(parse_time("06:00:00"), parse_time("12:00:00")).collect();
    let due_times: Vec<_> = planned.iter().map(|planned| due_time_with_jitter(&jittery, *planned)).collect();
    assert_eq!(
        due_times,
        planned.iter().map(|planned| due_time_with_jitter(&jittery, *planned)).collect::<Vec<_>>()
    );
    assert!(due_times.is_sorted_by(|a, b| a < b), "a due time is before the next planned time");
    let offsets: Vec<_> =
        due_times.iter().zip(&planned).map(|(due, planned)| due.duration_since(*planned)).collect();
    let early = offsets.iter().filter(|offset| **offset < SECOND * 30).count();
    assert!((120..240).contains(&early), "{early} of {} in the first half", offsets.len());
    let renamed = ScheduleSpec { name: ScheduleName::new("t").unwrap(), ..jittery.clone() };
    let same = planned
        .iter()
        .filter(|at| due_time_with_jitter(&jittery, **at) == due_time_with_jitter(&renamed, **at))
        .count();
    assert!(same < 5, "schedules with the same times are not due together: {same}");
    let daily = ScheduleSpec { jitter: span, ..utc_schedule("@daily", CatchUpPolicy::All, DAY) };
    assert!(due_time_with_jitter(&daily, parse_time("00:00:00")) < parse_time("00:10:00"));
}

#[test]
fn a_jittered_time_is_on_time_at_its_due_time() {
    let daily = ScheduleSpec { jitter: HOUR, ..utc_schedule("@daily", CatchUpPolicy::One, DAY) };
    let (before, planned) = (parse_time("2026-01-30T00:00:00Z"), parse_time("00:00:00"));
    let due = due_time_with_jitter(&daily, planned);
    assert!(due > planned);
    assert_eq!(next_due_time(&daily, before), Some(due));
    let decision = |now| decide_which_due_times_fire(&daily, before, now).planned_times_with_decisions;
    assert_eq!(decision(due.minus(ONE_MICROSECOND)), []);
    assert_eq!(decision(due), [(planned, FIRE_ON_TIME)]);
    assert_eq!(decision(due.plus(MISSED_AFTER)), [(planned, FIRE_LATE)]);
    assert_eq!(decision(due.plus(MISSED_AFTER + ONE_MICROSECOND)), [(planned, FIRE_CAUGHT_UP)]);
}

#[test]
fn the_event_of_a_fire_names_its_schedule_and_planned_time() {
    let mut hourly = utc_schedule("@hourly", CatchUpPolicy::One, DAY);
    if let FireAction::EmitEvent(event) = &mut hourly.action {
        event.context.insert("team".into(), "books".into());
    }
    let FireAction::EmitEvent(event) = action_at_planned_time(&hourly, parse_time("12:00:00")) else {
        panic!("the action must emit an event")
    };
    assert_eq!(event.planned_at, Some(parse_time("12:00:00")));
    let context: Vec<_> = event.context.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("planned_at", "2026-01-31T12:00:00.000000Z"), ("schedule", "s"), ("team", "books")];
    assert_eq!(context, expected);
    let run = FireAction::RunCollection(NewCollectionRun {
        source_collection: "shop/orders".parse().unwrap(),
        priority: None,
    });
    assert_eq!(
        action_at_planned_time(&ScheduleSpec { action: run.clone(), ..hourly }, parse_time("12:00:00")),
        run
    );
}

/// The clock sleeps until the next due time. If no decision existed then, the clock would spin.
#[test]
fn decisions_exist_exactly_when_the_next_due_time_has_passed() {
    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"] {
        for when in ["30 2 * * *", "*/20 * * * *", "0 0/7 1-3 * * ?", "0 1,2,3 * * *", "every 45m", "@weekly"]
        {
            for jitter in [Duration::ZERO, HOUR / 2] {
                let schedule =
                    ScheduleSpec { jitter, ..schedule_in_zone(zone, when, CatchUpPolicy::All, DAY * 7) };
                for transition in ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-04-04T15:00:00Z"] {
                    let begin = parse_time(transition).minus(HOUR * 3);
                    for step in 0..24u32 {
                        let processed_up_to = begin.plus(HOUR / 4 * step);
                        for wait in [ONE_MICROSECOND, SECOND * 7, HOUR / 6, HOUR * 2, DAY] {
                            let now = processed_up_to.plus(wait);
                            let has_passed =
                                next_due_time(&schedule, processed_up_to).is_some_and(|next| next <= now);
                            let has_decisions = !decide_which_due_times_fire(&schedule, processed_up_to, now)
                                .planned_times_with_decisions
                                .is_empty();
                            assert_eq!(has_decisions, has_passed, "{zone} {when} {processed_up_to} {now}");
                        }
                    }
                }
            }
        }
    }
}
