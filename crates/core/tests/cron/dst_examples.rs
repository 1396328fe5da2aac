//! Examples of the documented behaviour at clock changes, leap days and the ends of the supported years.

use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

fn parse_schedule(text: &str, zone: &str) -> Schedule {
    Schedule::new(Expression::parse(text, Dialect::Auto).unwrap(), Zone::from_name(zone).unwrap())
}

fn parse_timestamp(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[track_caller]
fn assert_fires(text: &str, zone: &str, from: &str, to: &str, want: &[&str]) {
    let got: Vec<Timestamp> =
        parse_schedule(text, zone).between(parse_timestamp(from), parse_timestamp(to)).collect();
    let want: Vec<Timestamp> = want.iter().map(|text| parse_timestamp(text)).collect();
    assert_eq!(got, want, "{text} in {zone}");
}

const BERLIN: &str = "Europe/Berlin";

#[test]
fn a_fixed_time_in_a_gap_fires_at_its_end() {
    let (from, to) = ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_fires("30 2 * * *", BERLIN, from, to, &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    // Both skipped times and the one at the end of the gap are one fire.
    assert_fires("0,30 2,3 29 3 *", BERLIN, from, to, &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
}

#[test]
fn a_fixed_time_in_a_fold_fires_once() {
    let (from, to) = ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_fires("30 2 * * *", BERLIN, from, to, &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // A search that starts in the second pass does not find the repeated time again.
    assert_fires(
        "30 2 * * *",
        BERLIN,
        "2026-10-25T01:10:00Z",
        "2026-10-26T12:00:00Z",
        &["2026-10-26T01:30:00Z"],
    );
    let before = parse_schedule("30 2 * * *", BERLIN).prev(parse_timestamp("2026-10-25T01:10:00Z"));
    assert_eq!(before, Some(parse_timestamp("2026-10-25T00:30:00Z")));
}

#[test]
fn an_expression_with_a_star_or_step_skips_the_gap_and_fires_in_both_passes_of_a_fold() {
    assert_fires("*/30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", &[]);
    assert_fires(
        "30 * * * *",
        BERLIN,
        "2026-03-29T00:00:00Z",
        "2026-03-29T02:00:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"],
    );
    assert_fires(
        "*/30 2 * * *",
        BERLIN,
        "2026-10-24T12:00:00Z",
        "2026-10-25T12:00:00Z",
        &["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"],
    );
}

#[test]
fn a_fixed_time_on_a_skipped_day_fires_at_the_end_of_that_day() {
    // Samoa went from 29 to 31 December 2011.
    assert_fires(
        "0 9 30 12 *",
        "Pacific/Apia",
        "2011-12-01T00:00:00Z",
        "2012-01-31T00:00:00Z",
        &["2011-12-30T10:00:00Z"],
    );
}

#[test]
fn a_skipped_midnight_fires_at_the_end_of_the_gap() {
    assert_fires(
        "@daily",
        "America/Sao_Paulo",
        "2018-11-03T12:00:00Z",
        "2018-11-05T12:00:00Z",
        &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
    );
}

#[test]
fn leap_days_fire_and_searches_end_at_the_supported_years() {
    assert_fires(
        "0 0 29 2 *",
        "UTC",
        "2095-01-01T00:00:00Z",
        "2105-01-01T00:00:00Z",
        &["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"],
    );
    let last = parse_schedule("59 59 23 31 12 ? 2199", "UTC");
    assert_eq!(
        last.next(parse_timestamp("2026-01-01T00:00:00Z")),
        Some(parse_timestamp("2199-12-31T23:59:59Z"))
    );
    assert_eq!(last.next(parse_timestamp("2199-12-31T23:59:59Z")), None);
    let past = parse_schedule("0 0 0 1 1 ? 2020", "UTC");
    assert_eq!(past.next(parse_timestamp("2026-01-01T00:00:00Z")), None);
    assert_eq!(
        past.prev(parse_timestamp("2026-01-01T00:00:00Z")),
        Some(parse_timestamp("2020-01-01T00:00:00Z"))
    );
    for edge in
        [Timestamp::MIN, Timestamp::MAX, Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX)]
    {
        for text in ["* * * * * ?", "0 0 29 2 *", "every 90s", "Fortnightly"] {
            for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
                let schedule = parse_schedule(text, zone);
                assert!(schedule.next(edge).is_none_or(|found| found > edge && found >= Timestamp::MIN));
                assert!(schedule.prev(edge).is_none_or(|found| found < edge && found >= Timestamp::MIN));
            }
        }
    }
}

#[test]
fn next_and_prev_exclude_the_given_time() {
    let hourly = parse_schedule("0 * * * *", "UTC");
    assert_eq!(
        hourly.next(parse_timestamp("2026-01-01T10:00:00Z")),
        Some(parse_timestamp("2026-01-01T11:00:00Z"))
    );
    assert_eq!(
        hourly.next(parse_timestamp("2026-01-01T09:59:59.999999Z")),
        Some(parse_timestamp("2026-01-01T10:00:00Z"))
    );
    assert_eq!(
        hourly.prev(parse_timestamp("2026-01-01T10:00:00Z")),
        Some(parse_timestamp("2026-01-01T09:00:00Z"))
    );
    assert_eq!(
        hourly.prev(parse_timestamp("2026-01-01T10:00:00.000001Z")),
        Some(parse_timestamp("2026-01-01T10:00:00Z"))
    );
}

#[test]
fn intervals_are_multiples_since_1970_in_every_zone() {
    for zone in ["UTC", "Asia/Kathmandu"] {
        assert_fires(
            "every 1h30m",
            zone,
            "1970-01-01T00:00:00Z",
            "1970-01-01T04:00:00Z",
            &["1970-01-01T01:30:00Z", "1970-01-01T03:00:00Z"],
        );
    }
    assert_fires(
        "Fortnightly",
        "UTC",
        "1970-01-01T00:00:00Z",
        "1970-02-02T00:00:00Z",
        &["1970-01-04T00:00:00Z", "1970-01-18T00:00:00Z", "1970-02-01T00:00:00Z"],
    );
}

#[test]
fn documented_quartz_examples_fire_as_often_as_documented() {
    let day = ("2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z");
    let count =
        |text| parse_schedule(text, "UTC").between(parse_timestamp(day.0), parse_timestamp(day.1)).count();
    assert_eq!(count("0/1 * 0 ? * * *"), 3_600);
    assert_eq!(count("0 0/1 * ? * * *"), 1_440);
}
