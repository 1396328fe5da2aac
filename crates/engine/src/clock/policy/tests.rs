//! Tables of planned times and their decisions.

use pointsman_core::cron::{Dialect, Expression, Zone};
use pointsman_core::store::NewRun;
use pointsman_core::{HandlingKey, NewEvent, ScheduleName};

use super::*;

const FIRE: FireDecision = FireDecision::Fire(Punctual::OnTime);
const LATE: FireDecision = FireDecision::Fire(Punctual::Late);
const CAUGHT_UP: FireDecision = FireDecision::Fire(Punctual::CaughtUp);
const SKIP: FireDecision = FireDecision::Skip;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// A time of the 31st of January, or a whole one.
fn at(text: &str) -> Timestamp {
    let text = if text.contains('T') { text.to_owned() } else { format!("2026-01-31T{text}Z") };
    text.parse().unwrap()
}

fn schedule_in(zone: &str, when: &str, catch_up: CatchUp, within: Duration) -> ScheduleSpec {
    let expression = Expression::parse(when, Dialect::Auto).unwrap();
    let when = cron::Schedule::new(expression, Zone::named(zone).unwrap());
    let event = NewEvent::of(HandlingKey::new("tick").unwrap());
    let schedule = ScheduleSpec::new(ScheduleName::new("s").unwrap(), when, Makes::Event(Box::new(event)));
    ScheduleSpec { catch_up, catch_up_window: within, ..schedule }
}

fn schedule(when: &str, catch_up: CatchUp, within: Duration) -> ScheduleSpec {
    schedule_in("UTC", when, catch_up, within)
}

fn decided_times(schedule: &ScheduleSpec, resolved: &str, now: &str) -> Vec<(String, FireDecision)> {
    let due_times = decide_due_times(schedule, at(resolved), at(now));
    assert!(!due_times.has_omitted_older);
    due_times.times.into_iter().map(|(planned, decision)| (planned.to_string(), decision)).collect()
}

/// The decisions without their planned times.
fn decisions(schedule: &ScheduleSpec, resolved: &str, now: &str) -> Vec<FireDecision> {
    decided_times(schedule, resolved, now).into_iter().map(|(_, decision)| decision).collect()
}

#[test]
fn recent_times_fire_under_every_policy() {
    for catch_up in [CatchUp::One, CatchUp::All, CatchUp::None] {
        let hourly = schedule("@hourly", catch_up, Duration::ZERO);
        for (resolved, now, expected) in [
            ("11:00:00", "11:59:59.999999", vec![]),
            ("11:00:00", "12:00:00", vec![FIRE]),
            ("11:00:00", "12:00:05", vec![FIRE]),
            ("11:00:00", "12:00:05.000001", vec![LATE]),
            ("11:00:00", "12:01:00", vec![LATE]),
            ("11:00:00", "12:01:00.000001", vec![SKIP]),
            ("12:00:00", "12:00:00", vec![]),
            ("12:00:00", "12:59:59", vec![]),
            // A clock that was set back.
            ("12:00:00", "10:30:00", vec![]),
        ] {
            assert_eq!(decisions(&hourly, resolved, now), expected, "{catch_up:?} {resolved} {now}");
        }
    }
}

#[test]
fn missed_times_follow_the_catch_up_policy() {
    for (catch_up, within, resolved, now, expected) in [
        // The latest fires, the others do not.
        (CatchUp::One, DAY, "07:00:00", "10:30:00", vec![SKIP, SKIP, CAUGHT_UP]),
        (CatchUp::One, DAY, "09:00:00", "10:30:00", vec![CAUGHT_UP]),
        // Something newer fires anyway.
        (CatchUp::One, DAY, "07:00:00", "10:00:30", vec![SKIP, SKIP, LATE]),
        (CatchUp::One, DAY, "07:00:00", "10:00:01", vec![SKIP, SKIP, FIRE]),
        // The missed time is older than the window.
        (CatchUp::One, HOUR / 2, "07:00:00", "10:30:00", vec![SKIP, SKIP, CAUGHT_UP]),
        (CatchUp::One, HOUR / 2, "07:00:00", "10:30:01", vec![SKIP, SKIP, SKIP]),
        (CatchUp::All, DAY, "07:00:00", "10:30:00", vec![CAUGHT_UP, CAUGHT_UP, CAUGHT_UP]),
        (CatchUp::All, DAY, "07:00:00", "10:00:30", vec![CAUGHT_UP, CAUGHT_UP, LATE]),
        (CatchUp::All, HOUR * 2, "07:00:00", "10:30:00", vec![SKIP, CAUGHT_UP, CAUGHT_UP]),
        (CatchUp::None, DAY, "07:00:00", "10:30:00", vec![SKIP, SKIP, SKIP]),
        (CatchUp::None, DAY, "07:00:00", "10:00:30", vec![SKIP, SKIP, LATE]),
    ] {
        let hourly = schedule("@hourly", catch_up, within);
        assert_eq!(decisions(&hourly, resolved, now), expected, "{catch_up:?} {within:?} {resolved} {now}");
    }
}

#[test]
fn frequent_schedules_fire_once_after_a_short_gap() {
    for (catch_up, now, expected) in [
        (CatchUp::One, "10:00:46", vec![SKIP, SKIP, LATE]),
        (CatchUp::One, "10:00:42", vec![SKIP, SKIP, FIRE]),
        (CatchUp::None, "10:00:46", vec![SKIP, SKIP, LATE]),
        (CatchUp::All, "10:00:46", vec![CAUGHT_UP, CAUGHT_UP, LATE]),
        // A short delay does not make a time late.
        (CatchUp::One, "10:00:04", vec![FIRE]),
    ] {
        let often = schedule("every 20s", catch_up, DAY);
        assert_eq!(decisions(&often, "09:59:40", now), expected, "{catch_up:?} {now}");
    }
    let each_second = schedule("every 1s", CatchUp::One, DAY);
    assert_eq!(decisions(&each_second, "10:00:00", "10:00:04"), vec![FIRE; 4]);
}

#[test]
fn work_after_a_gap_is_bounded() {
    for (catch_up, expected) in [(CatchUp::One, 0), (CatchUp::All, MAX_PLANNED_TIMES - 6), (CatchUp::None, 0)]
    {
        let each_second = schedule("every 1s", catch_up, DAY);
        let now = at("12:00:00");
        let DueTimes { times, has_omitted_older } =
            decide_due_times(&each_second, now.minus(DAY * 3650), now);
        assert!(has_omitted_older);
        assert_eq!((times.len(), times.last().unwrap().0), (MAX_PLANNED_TIMES, now));
        assert!(times.is_sorted_by(|a, b| a.0 < b.0));
        let caught_up = times.iter().filter(|(_, decision)| *decision == CAUGHT_UP).count();
        // Times that were due within the last seconds are not missed yet.
        assert_eq!(caught_up, expected, "{catch_up:?}");
        let just = decide_due_times(&each_second, now.minus(SECOND * MAX_PLANNED_TIMES as u32), now);
        assert_eq!((just.times.len(), just.has_omitted_older), (MAX_PLANNED_TIMES, false));
    }
}

#[test]
fn deciding_in_parts_gives_the_same_decisions() {
    for catch_up in [CatchUp::One, CatchUp::All, CatchUp::None] {
        let minutely = schedule("* * * * *", catch_up, HOUR / 2);
        let (resolved, now) = (at("09:00:00"), at("10:00:40"));
        let whole = decide_due_times(&minutely, resolved, now).times;
        for (done, (planned, _)) in whole.iter().enumerate() {
            assert_eq!(decide_due_times(&minutely, *planned, now).times, whole[done + 1..]);
        }
    }
}

#[test]
fn a_skipped_hour_moves_a_fixed_time_and_a_doubled_hour_does_not_repeat_it() {
    let daily = schedule_in("Europe/Berlin", "30 2 * * *", CatchUp::All, DAY * 7);
    // On 29 March 02:30 does not exist; the clock goes from 02:00 to 03:00, which is 01:00 UTC.
    let spring = decided_times(&daily, "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z");
    let spring: Vec<_> = spring.iter().map(|(planned, _)| planned.as_str()).collect();
    assert_eq!(
        spring,
        ["2026-03-28T01:30:00.000000Z", "2026-03-29T01:00:00.000000Z", "2026-03-30T00:30:00.000000Z"]
    );
    // On 25 October 02:30 comes twice.
    let autumn = decided_times(&daily, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
    assert_eq!(autumn, [("2026-10-25T00:30:00.000000Z".into(), CAUGHT_UP)]);
    // Between the two occurrences nothing is due.
    assert_eq!(decisions(&daily, "2026-10-25T00:30:00Z", "2026-10-25T01:30:02Z"), []);
}

#[test]
fn intervals_run_through_a_doubled_hour_and_omit_a_skipped_one() {
    for (zone, resolved, now, count) in [
        // 24 hours less one, and more one; in Lord Howe the clock moves by half an hour.
        ("Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 46),
        ("Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 50),
        ("America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 50),
        ("Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", 49),
    ] {
        let half_hourly = schedule_in(zone, "*/30 * * * *", CatchUp::All, DAY * 2);
        let all = decided_times(&half_hourly, resolved, now);
        assert_eq!(all.len(), count, "{zone} {resolved}");
        assert!(all.iter().all(|(_, decision)| *decision != SKIP));
    }
}

#[test]
fn paused_times_are_caught_up_by_the_policy() {
    for (catch_up, within, resolved, now, expected) in [
        (CatchUp::One, DAY, "10:00:00", "10:30:00", vec!["10:00:00"]),
        (CatchUp::All, DAY, "10:00:00", "10:30:00", vec!["08:00:00", "09:00:00", "10:00:00"]),
        (CatchUp::None, DAY, "10:00:00", "10:30:00", vec![]),
        // Also a time that was paused a moment ago.
        (CatchUp::One, DAY, "10:00:00", "10:00:02", vec!["10:00:00"]),
        // Too long ago.
        (CatchUp::One, HOUR / 4, "10:00:00", "10:30:00", vec![]),
        (CatchUp::All, HOUR * 2, "10:00:00", "10:30:00", vec!["09:00:00", "10:00:00"]),
        // A newer time is due, which fires.
        (CatchUp::One, DAY, "09:00:00", "10:00:02", vec![]),
        (CatchUp::All, DAY, "09:00:00", "10:00:02", vec!["08:00:00", "09:00:00"]),
    ] {
        let hourly = schedule("@hourly", catch_up, within);
        let made_up = times_to_catch_up(&hourly, at("08:00:00"), at(resolved), at(now));
        let expected: Vec<_> = expected.into_iter().map(at).collect();
        assert_eq!(made_up, expected, "{catch_up:?} {within:?} {resolved} {now}");
    }
}

#[test]
fn jitter_is_spread_deterministic_and_keeps_the_order() {
    let span = Duration::from_secs(600);
    let jittery = ScheduleSpec { jitter: span, ..schedule("every 1m", CatchUp::All, DAY) };
    let planned: Vec<_> = jittery.cron.between(at("06:00:00"), at("12:00:00")).collect();
    let due_times: Vec<_> = planned.iter().map(|planned| due_time(&jittery, *planned)).collect();
    assert_eq!(due_times, planned.iter().map(|planned| due_time(&jittery, *planned)).collect::<Vec<_>>());
    assert!(due_times.is_sorted_by(|a, b| a < b), "the next planned time bounds it");
    let offsets: Vec<_> = due_times.iter().zip(&planned).map(|(up, planned)| up.since(*planned)).collect();
    let early = offsets.iter().filter(|offset| **offset < SECOND * 30).count();
    assert!((120..240).contains(&early), "{early} of {} in the first half", offsets.len());
    let renamed = ScheduleSpec { name: ScheduleName::new("t").unwrap(), ..jittery.clone() };
    let same = planned.iter().filter(|at| due_time(&jittery, **at) == due_time(&renamed, **at)).count();
    assert!(same < 5, "schedules of the same times do not come up together: {same}");
    let daily = ScheduleSpec { jitter: span, ..schedule("@daily", CatchUp::All, DAY) };
    assert!(due_time(&daily, at("00:00:00")) < at("00:10:00"));
}

#[test]
fn a_jittered_time_is_on_time_at_its_due_time() {
    let daily = ScheduleSpec { jitter: HOUR, ..schedule("@daily", CatchUp::One, DAY) };
    let (before, planned) = (at("2026-01-30T00:00:00Z"), at("00:00:00"));
    let up = due_time(&daily, planned);
    assert!(up > planned);
    assert_eq!(next_due_time(&daily, before), Some(up));
    let decision = |now| decide_due_times(&daily, before, now).times;
    assert_eq!(decision(up.minus(ONE_MICROSECOND)), []);
    assert_eq!(decision(up), [(planned, FIRE)]);
    assert_eq!(decision(up.plus(MISSED)), [(planned, LATE)]);
    assert_eq!(decision(up.plus(MISSED + ONE_MICROSECOND)), [(planned, CAUGHT_UP)]);
}

#[test]
fn a_scheduled_event_names_its_schedule_and_planned_time() {
    let mut hourly = schedule("@hourly", CatchUp::One, DAY);
    if let Makes::Event(event) = &mut hourly.action {
        event.context.insert("team".into(), "books".into());
    }
    let Makes::Event(event) = action_for_time(&hourly, at("12:00:00")) else { panic!("it makes an event") };
    assert_eq!(event.planned, Some(at("12:00:00")));
    let context: Vec<_> = event.context.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("planned_at", "2026-01-31T12:00:00.000000Z"), ("schedule", "s"), ("team", "books")];
    assert_eq!(context, expected);
    let run = Makes::Run(NewRun { pair: "shop/orders".parse().unwrap(), priority: None });
    assert_eq!(action_for_time(&ScheduleSpec { action: run.clone(), ..hourly }, at("12:00:00")), run);
}

/// The clock sleeps until a time comes up, and then there is something to do: otherwise it would spin.
#[test]
fn decisions_exist_exactly_when_the_next_due_time_has_passed() {
    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"] {
        for when in ["30 2 * * *", "*/20 * * * *", "0 0/7 1-3 * * ?", "0 1,2,3 * * *", "every 45m", "@weekly"]
        {
            for jitter in [Duration::ZERO, HOUR / 2] {
                let it = ScheduleSpec { jitter, ..schedule_in(zone, when, CatchUp::All, DAY * 7) };
                for edge in ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-04-04T15:00:00Z"] {
                    let begin = at(edge).minus(HOUR * 3);
                    for step in 0..24u32 {
                        let resolved = begin.plus(HOUR / 4 * step);
                        for wait in [ONE_MICROSECOND, SECOND * 7, HOUR / 6, HOUR * 2, DAY] {
                            let now = resolved.plus(wait);
                            let up = next_due_time(&it, resolved).is_some_and(|next| next <= now);
                            let due = !decide_due_times(&it, resolved, now).times.is_empty();
                            assert_eq!(due, up, "{zone} {when} {resolved} {now}");
                        }
                    }
                }
            }
        }
    }
}
