//! Compares planned times with those of the crate `croner`, for expressions that it treats by the same rules.
//!
//! These expressions are not compared:
//! - Expressions that croner does not parse: ranges around the end of a field (`22-2`, `FRI-MON`) and `L-3`.
//! - `*/2` in one day field with a restricted other one: croner accepts either, cron has always required both.
//! - `1/3` in a crontab's day of week: croner also includes Sunday, as 7; Pointsman stops at Saturday.
//! - Lists of times (`0 1,2 * * *`) where clocks change: croner treats them as an interval, Pointsman as
//!   fixed times. Ranges of one value (`5-5`) are treated the other way round.
//! - Fixed times on days on which the clock is set forward: croner fires a second time at the end of the gap,
//!   though the time itself was before the gap. The last test checks that croner still does that, so that this exception
//!   can be removed when it no longer does.

use croner::Cron;
use croner::parser::CronParser;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};
use pointsman_testing::Rng;

use crate::generator::{GeneratedExpression, generate_quartz, generate_vixie};

/// The number of planned times that are compared after each start.
const COMPARED_TIME_COUNT: usize = 20;

fn parse_with_croner(expression: &GeneratedExpression) -> Option<Cron> {
    let parser = CronParser::builder().sloppy_ranges(true).alternative_weekdays(expression.is_quartz).build();
    parser.parse(&expression.text).ok()
}

/// Whether Pointsman and croner have the same rules for the days of this expression.
fn has_same_day_rules(expression: &GeneratedExpression) -> bool {
    let fields: Vec<&str> = expression.text.split(' ').rev().collect();
    let (of_week, of_month) = (fields[0], fields[2]);
    let has_star_step = |text: &str| text.starts_with("*/");
    let has_star_step_and_other_field =
        (has_star_step(of_month) && of_week != "*") || (has_star_step(of_week) && of_month != "*");
    let includes_sunday_as_7 =
        !expression.is_quartz && of_week.contains('/') && !of_week.contains(['*', '-']);
    !includes_sunday_as_7 && (expression.is_quartz || !has_star_step_and_other_field)
}

/// Whether Pointsman and croner treat clock changes alike: both as for fixed times, or both as for an interval.
fn has_same_dst_handling(expression: &GeneratedExpression) -> bool {
    let is_fixed_in_croner = [&expression.seconds, &expression.minutes, &expression.hours]
        .iter()
        .all(|field| field.values.len() == 1);
    is_fixed_in_croner == expression.lists_clock_times()
}

fn parse_with_pointsman_and_croner(expression: &GeneratedExpression, zone: &str) -> Option<(Schedule, Cron)> {
    let parsed = Expression::parse(&expression.text, Dialect::Auto).ok()?;
    Some((Schedule::new(parsed, Zone::from_name(zone).unwrap()), parse_with_croner(expression)?))
}

/// The local days on which the clock is set forward, in the compared years.
fn list_days_with_gaps(zone: &TimeZone) -> Vec<Date> {
    let from: jiff::Timestamp = "2023-01-01T00:00:00Z".parse().unwrap();
    let until: jiff::Timestamp = "2045-01-01T00:00:00Z".parse().unwrap();
    let is_set_forward =
        |at: jiff::Timestamp| zone.to_offset(at) > zone.to_offset(at - jiff::SignedDuration::from_secs(1));
    let instants = zone.following(from).map(|transition| transition.timestamp());
    instants
        .take_while(|at| *at < until)
        .filter(|at| is_set_forward(*at))
        .map(|at| zone.to_datetime(at).date())
        .collect()
}

#[track_caller]
fn assert_same_times(
    expression: &GeneratedExpression,
    zone: &TimeZone,
    start: i64,
    (ours, theirs): (&Schedule, &Cron),
    ignored_days: &[Date],
) {
    let local_day = |at: jiff::Timestamp| zone.to_datetime(at).date();
    let our_times: Vec<jiff::Timestamp> = ours
        .upcoming(Timestamp::from_millis(start * 1000))
        .take(COMPARED_TIME_COUNT)
        .map(|at| jiff::Timestamp::from_microsecond(at.micros()).unwrap())
        .collect();
    let Some(last) = our_times.last().copied() else { return };
    let after = jiff::Timestamp::from_second(start).unwrap().to_zoned(zone.clone());
    let their_times: Vec<jiff::Timestamp> =
        theirs.iter_after(after).map(|at| at.timestamp()).take_while(|at| *at <= last).collect();
    let without_ignored_days = |times: Vec<jiff::Timestamp>| -> Vec<jiff::Timestamp> {
        times.into_iter().filter(|at| !ignored_days.contains(&local_day(*at))).collect()
    };
    assert_eq!(
        without_ignored_days(our_times),
        without_ignored_days(their_times),
        "{} after {start}",
        expression.text
    );
}

#[test]
fn expressions_agree_with_croner_in_utc() {
    let mut rng = Rng::new(7);
    let mut compared = 0;
    for round in 0..400 {
        let expression = if round % 2 == 0 { generate_vixie(&mut rng) } else { generate_quartz(&mut rng) };
        let Some((ours, theirs)) =
            parse_with_pointsman_and_croner(&expression, "UTC").filter(|_| has_same_day_rules(&expression))
        else {
            continue;
        };
        compared += 1;
        for _ in 0..3 {
            let start = rng.number_in(1_700_000_000, 2_000_000_000);
            assert_same_times(&expression, &TimeZone::UTC, start, (&ours, &theirs), &[]);
        }
    }
    assert!(compared >= 200, "only {compared} expressions could be compared");
}

#[test]
fn expressions_agree_with_croner_in_zones_with_clock_changes() {
    for (seed, name) in [(11, "Europe/Berlin"), (12, "America/New_York"), (13, "Australia/Lord_Howe")] {
        let zone = TimeZone::get(name).unwrap();
        let days_with_gaps = list_days_with_gaps(&zone);
        let clock_changes: Vec<i64> = zone
            .following("2026-01-01T00:00:00Z".parse().unwrap())
            .take(4)
            .map(|transition| transition.timestamp().as_second())
            .collect();
        let mut rng = Rng::new(seed);
        let mut compared = 0;
        for round in 0..100 {
            let expression =
                if round % 2 == 0 { generate_vixie(&mut rng) } else { generate_quartz(&mut rng) };
            let comparable = has_same_day_rules(&expression) && has_same_dst_handling(&expression);
            let Some((ours, theirs)) =
                parse_with_pointsman_and_croner(&expression, name).filter(|_| comparable)
            else {
                continue;
            };
            compared += 1;
            for clock_change in &clock_changes {
                let ignored_days =
                    if expression.lists_clock_times() { days_with_gaps.as_slice() } else { &[] };
                assert_same_times(
                    &expression,
                    &zone,
                    clock_change - rng.number_in(-7200, 7200),
                    (&ours, &theirs),
                    ignored_days,
                );
            }
        }
        assert!(compared >= 40, "only {compared} expressions could be compared in {name}");
    }
}

#[test]
fn croner_fires_again_at_the_end_of_a_gap() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let expression =
        GeneratedExpression { text: "0 5 1 ? * *".into(), ..GeneratedExpression::every_midnight() };
    let (ours, theirs) = parse_with_pointsman_and_croner(&expression, "Europe/Berlin").unwrap();
    // 01:05 of that morning in Berlin; the gap is from 02:00 to 03:00.
    let fired: jiff::Timestamp = "2026-03-29T00:05:00Z".parse().unwrap();
    let next = ours.next(Timestamp::from_micros(fired.as_microsecond())).unwrap();
    assert_eq!(next, "2026-03-29T23:05:00Z".parse().unwrap());
    let again = theirs.iter_after(fired.to_zoned(zone)).next().unwrap();
    assert_eq!(again.timestamp(), "2026-03-29T01:00:00Z".parse().unwrap());
}
