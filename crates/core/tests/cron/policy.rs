//! What is promised about moved clocks, leap days and the ends of time, in examples.

use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

fn schedule(text: &str, zone: &str) -> Schedule {
    Schedule::new(Expression::parse(text, Dialect::Auto).unwrap(), Zone::named(zone).unwrap())
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[track_caller]
fn fires(text: &str, zone: &str, from: &str, to: &str, want: &[&str]) {
    let got: Vec<Timestamp> = schedule(text, zone).between(time(from), time(to)).collect();
    let want: Vec<Timestamp> = want.iter().map(|text| time(text)).collect();
    assert_eq!(got, want, "{text} in {zone}");
}

const BERLIN: &str = "Europe/Berlin";

#[test]
fn a_fixed_time_in_a_gap_fires_at_its_end() {
    let (from, to) = ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    fires("30 2 * * *", BERLIN, from, to, &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    // Both lost times and the one at the end of the gap are one firing.
    fires("0,30 2,3 29 3 *", BERLIN, from, to, &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
}

#[test]
fn a_fixed_time_in_a_fold_fires_once() {
    let (from, to) = ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    fires("30 2 * * *", BERLIN, from, to, &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // Also when the search begins in the second pass.
    fires("30 2 * * *", BERLIN, "2026-10-25T01:10:00Z", "2026-10-26T12:00:00Z", &["2026-10-26T01:30:00Z"]);
    let before = schedule("30 2 * * *", BERLIN).prev(time("2026-10-25T01:10:00Z"));
    assert_eq!(before, Some(time("2026-10-25T00:30:00Z")));
}

#[test]
fn a_rhythm_leaves_the_gap_out_and_fires_in_both_passes() {
    fires("*/30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", &[]);
    fires(
        "30 * * * *",
        BERLIN,
        "2026-03-29T00:00:00Z",
        "2026-03-29T02:00:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"],
    );
    fires(
        "*/30 2 * * *",
        BERLIN,
        "2026-10-24T12:00:00Z",
        "2026-10-25T12:00:00Z",
        &["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"],
    );
}

#[test]
fn a_day_that_was_skipped_fires_at_its_end() {
    // Samoa went from 29 to 31 December 2011.
    fires(
        "0 9 30 12 *",
        "Pacific/Apia",
        "2011-12-01T00:00:00Z",
        "2012-01-31T00:00:00Z",
        &["2011-12-30T10:00:00Z"],
    );
}

#[test]
fn midnight_may_be_missing() {
    fires(
        "@daily",
        "America/Sao_Paulo",
        "2018-11-03T12:00:00Z",
        "2018-11-05T12:00:00Z",
        &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
    );
}

#[test]
fn leap_days_and_the_ends_of_time() {
    fires(
        "0 0 29 2 *",
        "UTC",
        "2095-01-01T00:00:00Z",
        "2105-01-01T00:00:00Z",
        &["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"],
    );
    let last = schedule("59 59 23 31 12 ? 2199", "UTC");
    assert_eq!(last.next(time("2026-01-01T00:00:00Z")), Some(time("2199-12-31T23:59:59Z")));
    assert_eq!(last.next(time("2199-12-31T23:59:59Z")), None);
    let past = schedule("0 0 0 1 1 ? 2020", "UTC");
    assert_eq!(past.next(time("2026-01-01T00:00:00Z")), None);
    assert_eq!(past.prev(time("2026-01-01T00:00:00Z")), Some(time("2020-01-01T00:00:00Z")));
    for edge in
        [Timestamp::MIN, Timestamp::MAX, Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX)]
    {
        for text in ["* * * * * ?", "0 0 29 2 *", "every 90s", "Fortnightly"] {
            for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
                let schedule = schedule(text, zone);
                assert!(schedule.next(edge).is_none_or(|found| found > edge && found >= Timestamp::MIN));
                assert!(schedule.prev(edge).is_none_or(|found| found < edge && found >= Timestamp::MIN));
            }
        }
    }
}

#[test]
fn after_and_before_do_not_count_themselves() {
    let hourly = schedule("0 * * * *", "UTC");
    assert_eq!(hourly.next(time("2026-01-01T10:00:00Z")), Some(time("2026-01-01T11:00:00Z")));
    assert_eq!(hourly.next(time("2026-01-01T09:59:59.999999Z")), Some(time("2026-01-01T10:00:00Z")));
    assert_eq!(hourly.prev(time("2026-01-01T10:00:00Z")), Some(time("2026-01-01T09:00:00Z")));
    assert_eq!(hourly.prev(time("2026-01-01T10:00:00.000001Z")), Some(time("2026-01-01T10:00:00Z")));
}

#[test]
fn intervals_are_multiples_since_1970_in_every_zone() {
    for zone in ["UTC", "Asia/Kathmandu"] {
        fires(
            "every 1h30m",
            zone,
            "1970-01-01T00:00:00Z",
            "1970-01-01T04:00:00Z",
            &["1970-01-01T01:30:00Z", "1970-01-01T03:00:00Z"],
        );
    }
    fires(
        "Fortnightly",
        "UTC",
        "1970-01-01T00:00:00Z",
        "1970-02-02T00:00:00Z",
        &["1970-01-04T00:00:00Z", "1970-01-18T00:00:00Z", "1970-02-01T00:00:00Z"],
    );
}

#[test]
fn the_example_that_does_not_mean_what_its_comment_says() {
    let day = ("2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z");
    let count = |text| schedule(text, "UTC").between(time(day.0), time(day.1)).count();
    assert_eq!(count("0/1 * 0 ? * * *"), 3_600);
    assert_eq!(count("0 0/1 * ? * * *"), 1_440);
}
