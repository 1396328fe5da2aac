//! A second opinion: the crate `croner`, where it means the same and is right.
//!
//! Left out, each for its reason:
//! - What croner does not read: ranges round the end of a field (`22-2`, `FRI-MON`) and `L-3`.
//! - `*/2` in one day field beside a restricted one: croner takes either, cron has always asked for both.
//! - `1/3` in a crontab's day of week: croner counts on to the Sunday that is 7, we stop at Saturday.
//! - Lists of times (`0 1,2 * * *`) where clocks are moved: croner takes them for a rhythm, we for fixed times.
//!   Ranges of one value (`5-5`): the other way round.
//! - Fixed times on days on which the clock is put forward: croner fires a second time at the end of the gap,
//!   though the time itself came before it. The last test holds it to that, so that this line can go when it no
//!   longer does.

use croner::Cron;
use croner::parser::CronParser;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

use crate::generate::{Dice, Spec, quartz, vixie};

/// How many times after each start are compared.
const TIMES: usize = 20;

fn croner(spec: &Spec) -> Option<Cron> {
    let parser = CronParser::builder().sloppy_ranges(true).alternative_weekdays(spec.quartz).build();
    parser.parse(&spec.text).ok()
}

/// Whether both mean the same by the days of this expression.
fn same_days(spec: &Spec) -> bool {
    let fields: Vec<&str> = spec.text.split(' ').rev().collect();
    let (of_week, of_month) = (fields[0], fields[2]);
    let stepped = |text: &str| text.starts_with("*/");
    let narrowed = (stepped(of_month) && of_week != "*") || (stepped(of_week) && of_month != "*");
    let counted_on = !spec.quartz && of_week.contains('/') && !of_week.contains(['*', '-']);
    !counted_on && (spec.quartz || !narrowed)
}

/// Whether both call it a fixed time, or both a rhythm.
fn same_manner(spec: &Spec) -> bool {
    let single = [&spec.seconds, &spec.minutes, &spec.hours].iter().all(|field| field.values.len() == 1);
    single == spec.fixed()
}

fn both(spec: &Spec, zone: &str) -> Option<(Schedule, Cron)> {
    let expression = Expression::parse(&spec.text, Dialect::Auto).ok()?;
    Some((Schedule::new(expression, Zone::named(zone).unwrap()), croner(spec)?))
}

/// The local days on which the clock is put forward, in the years compared.
fn days_of_gaps(zone: &TimeZone) -> Vec<Date> {
    let from: jiff::Timestamp = "2023-01-01T00:00:00Z".parse().unwrap();
    let until: jiff::Timestamp = "2045-01-01T00:00:00Z".parse().unwrap();
    let later =
        |at: jiff::Timestamp| zone.to_offset(at) > zone.to_offset(at - jiff::SignedDuration::from_secs(1));
    let instants = zone.following(from).map(|transition| transition.timestamp());
    instants
        .take_while(|at| *at < until)
        .filter(|at| later(*at))
        .map(|at| zone.to_datetime(at).date())
        .collect()
}

#[track_caller]
fn agree(spec: &Spec, zone: &TimeZone, start: i64, (ours, theirs): (&Schedule, &Cron), apart_from: &[Date]) {
    let local_day = |at: jiff::Timestamp| zone.to_datetime(at).date();
    let mine: Vec<jiff::Timestamp> = ours
        .upcoming(Timestamp::from_millis(start * 1000))
        .take(TIMES)
        .map(|at| jiff::Timestamp::from_microsecond(at.micros()).unwrap())
        .collect();
    let Some(last) = mine.last().copied() else { return };
    let after = jiff::Timestamp::from_second(start).unwrap().to_zoned(zone.clone());
    let second: Vec<jiff::Timestamp> =
        theirs.iter_after(after).map(|at| at.timestamp()).take_while(|at| *at <= last).collect();
    let compared = |times: Vec<jiff::Timestamp>| -> Vec<jiff::Timestamp> {
        times.into_iter().filter(|at| !apart_from.contains(&local_day(*at))).collect()
    };
    assert_eq!(compared(mine), compared(second), "{} after {start}", spec.text);
}

#[test]
fn in_utc_every_kind_of_expression_agrees() {
    let mut dice = Dice::new(7);
    let mut compared = 0;
    for turn in 0..400 {
        let spec = if turn % 2 == 0 { vixie(&mut dice) } else { quartz(&mut dice) };
        let Some((ours, theirs)) = both(&spec, "UTC").filter(|_| same_days(&spec)) else { continue };
        compared += 1;
        for _ in 0..3 {
            let start = dice.roll(1_700_000_000, 2_000_000_000);
            agree(&spec, &TimeZone::UTC, start, (&ours, &theirs), &[]);
        }
    }
    assert!(compared >= 200, "only {compared} expressions could be compared");
}

#[test]
fn where_clocks_are_moved_the_rest_of_the_year_agrees() {
    for (seed, name) in [(11, "Europe/Berlin"), (12, "America/New_York"), (13, "Australia/Lord_Howe")] {
        let zone = TimeZone::get(name).unwrap();
        let gaps = days_of_gaps(&zone);
        let moved: Vec<i64> = zone
            .following("2026-01-01T00:00:00Z".parse().unwrap())
            .take(4)
            .map(|transition| transition.timestamp().as_second())
            .collect();
        let mut dice = Dice::new(seed);
        let mut compared = 0;
        for turn in 0..100 {
            let spec = if turn % 2 == 0 { vixie(&mut dice) } else { quartz(&mut dice) };
            let comparable = same_days(&spec) && same_manner(&spec);
            let Some((ours, theirs)) = both(&spec, name).filter(|_| comparable) else { continue };
            compared += 1;
            for moment in &moved {
                let apart_from = if spec.fixed() { gaps.as_slice() } else { &[] };
                agree(&spec, &zone, moment - dice.roll(-7200, 7200), (&ours, &theirs), apart_from);
            }
        }
        assert!(compared >= 40, "only {compared} expressions could be compared in {name}");
    }
}

#[test]
fn croner_fires_again_at_the_end_of_a_gap() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let spec = Spec { text: "0 5 1 ? * *".into(), ..Spec::midnight() };
    let (ours, theirs) = both(&spec, "Europe/Berlin").unwrap();
    // 01:05 of that morning in Berlin; the gap is from 02:00 to 03:00.
    let fired: jiff::Timestamp = "2026-03-29T00:05:00Z".parse().unwrap();
    let next = ours.next(Timestamp::from_micros(fired.as_microsecond())).unwrap();
    assert_eq!(next, "2026-03-29T23:05:00Z".parse().unwrap());
    let again = theirs.iter_after(fired.to_zoned(zone)).next().unwrap();
    assert_eq!(again.timestamp(), "2026-03-29T01:00:00Z".parse().unwrap());
}
