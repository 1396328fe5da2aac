//! A brute-force reference: it steps through a year minute by minute, or through the hours around a clock change second
//! by second, computes the local time at each step and compares it with the plain lists of an expression.
//!
//! It uses no bit sets, no search and no ambiguous local times. It detects a clock change as a person would: the local
//! time repeats, or jumps ahead.

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};
use pointsman_testing::Rng;

use crate::generator::{
    GeneratedExpression, GeneratedField, SpecialMonthDay, SpecialWeekday, generate_quartz, generate_vixie,
};

/// Zones, each with a year in which its clock changed in an unusual way.
const ZONES_AND_YEARS: [(&str, i16); 12] = [
    ("UTC", 2024),
    ("Europe/Berlin", 2026),
    ("America/New_York", 2026),
    ("Australia/Lord_Howe", 2026),
    ("America/Sao_Paulo", 2018),
    ("Africa/Casablanca", 2026),
    ("Asia/Kathmandu", 1986),
    ("Pacific/Apia", 2011),
    ("America/St_Johns", 2006),
    ("America/Caracas", 2007),
    ("Antarctica/Troll", 2030),
    ("Africa/Cairo", 2045),
];

/// One reading of the local clock: an instant and its local time.
struct ClockReading {
    instant: i64,
    /// The local time in seconds, as if it were UTC.
    local_seconds: i64,
    local_time: LocalTime,
}

#[derive(Clone, Copy)]
struct LocalTime {
    month: i64,
    day: i64,
    hour: usize,
    minute: usize,
    second: usize,
    weekday: i64,
    days_in_month: i64,
    /// The weekday of the first day of this month.
    first_weekday: i64,
}

impl LocalTime {
    fn new(at: DateTime) -> Self {
        Self {
            month: at.month().into(),
            day: at.day().into(),
            hour: at.hour() as usize,
            minute: at.minute() as usize,
            second: at.second() as usize,
            weekday: at.weekday().to_sunday_zero_offset().into(),
            days_in_month: at.days_in_month().into(),
            first_weekday: at.first_of_month().weekday().to_sunday_zero_offset().into(),
        }
    }

    fn with_time_of_day(self, at: DateTime) -> Self {
        let (hour, minute, second) = (at.hour() as usize, at.minute() as usize, at.second() as usize);
        Self { hour, minute, second, ..self }
    }
}

/// Reads the local clock of a zone every `step` seconds.
fn read_clock_at_steps(zone: &TimeZone, from: i64, until: i64, step: i64) -> Vec<ClockReading> {
    let mut readings: Vec<ClockReading> = Vec::new();
    let mut last_date = Date::ZERO;
    for instant in (from..until).step_by(step as usize) {
        let at = zone.to_datetime(jiff::Timestamp::from_second(instant).unwrap());
        let local = Offset::UTC.to_timestamp(at).unwrap().as_second();
        // The members that concern the day are computed once a day.
        let local_time = match readings.last() {
            Some(last) if last_date == at.date() => last.local_time.with_time_of_day(at),
            _ => LocalTime::new(at),
        };
        last_date = at.date();
        readings.push(ClockReading { instant, local_seconds: local, local_time });
    }
    readings
}

/// Lookup tables of the values of an expression's time fields, so that half a million readings are matched quickly.
struct MatchTables<'s> {
    expression: &'s GeneratedExpression,
    seconds: [bool; 60],
    minutes: [bool; 60],
    hours: [bool; 60],
}

impl<'s> MatchTables<'s> {
    fn new(expression: &'s GeneratedExpression) -> Self {
        let table = |values: &[i64]| std::array::from_fn(|value| values.contains(&(value as i64)));
        let [seconds, minutes, hours] =
            [&expression.seconds, &expression.minutes, &expression.hours].map(|f| table(&f.values));
        Self { expression, seconds, minutes, hours }
    }

    fn matches(&self, local_time: &LocalTime) -> bool {
        self.minutes[local_time.minute]
            && self.hours[local_time.hour]
            && self.seconds[local_time.second]
            && self.expression.months.values.contains(&local_time.month)
            && matches_day(self.expression, local_time)
    }
}

fn matches_day(expression: &GeneratedExpression, local_time: &LocalTime) -> bool {
    let by_month = expression.listed_month_days.contains(&local_time.day)
        || match expression.special_month_day {
            None => false,
            Some(SpecialMonthDay::Last(before)) => local_time.day == local_time.days_in_month - before,
            Some(SpecialMonthDay::LastWorkingDay) => {
                local_time.day == nearest_working_day(local_time, local_time.days_in_month)
            }
            Some(SpecialMonthDay::NearestWorkingDay(day)) => {
                day <= local_time.days_in_month && local_time.day == nearest_working_day(local_time, day)
            }
        };
    let by_week = expression.listed_weekdays.contains(&local_time.weekday)
        || match expression.special_weekday {
            None => false,
            Some(SpecialWeekday::Nth(day, nth)) => {
                local_time.weekday == day && (local_time.day + 6) / 7 == nth
            }
            Some(SpecialWeekday::Last(day)) => {
                local_time.weekday == day && local_time.day + 7 > local_time.days_in_month
            }
        };
    if expression.day_matches_either_field { by_month || by_week } else { by_month && by_week }
}

/// The day from Monday to Friday that is the fewest days from `day`, within the month.
fn nearest_working_day(local_time: &LocalTime, day: i64) -> i64 {
    let is_working_day = |candidate: &i64| {
        let weekday = (local_time.first_weekday + candidate - 1) % 7;
        (1..=local_time.days_in_month).contains(candidate) && (1..=5).contains(&weekday)
    };
    [0, -1, 1, -2, 2].map(|offset| day + offset).into_iter().find(is_working_day).unwrap()
}

/// Computes from the readings the instants at which the expression fires.
fn expected_fires(expression: &GeneratedExpression, readings: &[ClockReading], step: i64) -> Vec<i64> {
    let (tables, is_fixed) = (MatchTables::new(expression), expression.lists_clock_times());
    let mut fired = Vec::new();
    let mut latest_local = readings[0].local_seconds - step;
    for reading in readings {
        let (local, is_repeated) = (reading.local_seconds, reading.local_seconds <= latest_local);
        let mut fires = tables.matches(&reading.local_time);
        if is_fixed && is_repeated {
            fires = false;
        } else if is_fixed && local > latest_local + step {
            let skipped = skipped_times(latest_local + step, local, step);
            fires |= skipped.iter().any(|local_time| tables.matches(local_time));
        }
        if fires {
            fired.push(reading.instant);
        }
        latest_local = latest_local.max(local);
    }
    fired
}

/// The local times that were skipped between two readings.
fn skipped_times(from: i64, until: i64, step: i64) -> Vec<LocalTime> {
    let mut skipped = Vec::new();
    let mut local = from;
    while local < until {
        skipped.push(LocalTime::new(Offset::UTC.to_datetime(jiff::Timestamp::from_second(local).unwrap())));
        local += step;
    }
    skipped
}

fn parse_schedule(expression: &GeneratedExpression, zone: &str) -> Option<Schedule> {
    match Expression::parse(&expression.text, Dialect::Auto) {
        Ok(expression) => Some(Schedule::new(expression, Zone::from_name(zone).unwrap())),
        Err(error) if error.problem.contains("never fires") => None,
        Err(error) => panic!("{}: {error}", expression.text),
    }
}

fn to_timestamp(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

/// Asserts that a schedule fires in `from..until` exactly at `fired`, searched forwards and backwards.
fn assert_schedule_fires_as_expected(
    expression: &GeneratedExpression,
    schedule: &Schedule,
    zone: &str,
    fired: &[i64],
    from: i64,
    until: i64,
) {
    let want: Vec<i64> = fired.iter().copied().filter(|second| (from..until).contains(second)).collect();
    let got: Vec<i64> = schedule
        .between(to_timestamp(from - 1), to_timestamp(until - 1))
        .map(|t| t.micros() / 1_000_000)
        .collect();
    assert_equal_fires(expression, zone, "forwards", &want, &got);
    let back = std::iter::successors(schedule.prev(to_timestamp(until)), |found| schedule.prev(*found));
    let mut got: Vec<i64> =
        back.map(|t| t.micros() / 1_000_000).take_while(|second| *second >= from).collect();
    got.reverse();
    assert_equal_fires(expression, zone, "backwards", &want, &got);
}

/// Asserts the results of `next` and `prev` from instants at and around a clock change, where a search may start inside
/// a gap or fold.
fn assert_next_and_prev_near_clock_change(
    expression: &GeneratedExpression,
    schedule: &Schedule,
    zone: &str,
    fired: &[i64],
    clock_change: i64,
) {
    const SECONDS_FROM_CLOCK_CHANGE: [i64; 11] = [-7200, -3600, -1801, -61, -1, 0, 1, 59, 1800, 3599, 3600];
    for start in SECONDS_FROM_CLOCK_CHANGE.map(|offset| clock_change + offset) {
        let next = schedule.next(to_timestamp(start)).map(|found| found.micros() / 1_000_000);
        let want = fired.get(fired.partition_point(|second| *second <= start)).copied();
        // Fires after the last reading are not compared.
        if want.is_some() {
            assert_eq!(next, want, "{} in {zone}, after {}", expression.text, to_timestamp(start));
        }
        let prev = schedule.prev(to_timestamp(start)).map(|found| found.micros() / 1_000_000);
        let want = fired[..fired.partition_point(|second| *second < start)].last().copied();
        if want.is_some() {
            assert_eq!(prev, want, "{} in {zone}, before {}", expression.text, to_timestamp(start));
        }
    }
}

fn assert_equal_fires(
    expression: &GeneratedExpression,
    zone: &str,
    direction: &str,
    want: &[i64],
    got: &[i64],
) {
    let differs = (0..want.len().max(got.len())).find(|index| want.get(*index) != got.get(*index));
    if let Some(index) = differs {
        let format_time = |second: Option<&i64>| second.map(|second| to_timestamp(*second).to_string());
        let (want, got) = (format_time(want.get(index)), format_time(got.get(index)));
        panic!("{} in {zone}, {direction}: want {want:?}, got {got:?}", expression.text);
    }
}

/// Returns the instants from which and until which the clock is read for a year: it starts a week before the year.
fn bounds_from_a_week_before_the_year(zone: &TimeZone, year: i16) -> (i64, i64) {
    let start_of =
        |year| zone.to_timestamp(jiff::civil::date(year, 1, 1).at(0, 0, 0, 0)).unwrap().as_second();
    (start_of(year) - 7 * 86_400, start_of(year + 1))
}

/// The instants of the readings at which the local time did not advance evenly.
fn find_clock_changes(readings: &[ClockReading], step: i64) -> Vec<i64> {
    let pairs = readings.windows(2).filter(|pair| pair[1].local_seconds - pair[0].local_seconds != step);
    pairs.map(|pair| pair[1].instant).collect()
}

/// An expression with more fires in a year than this is compared around clock changes only.
const MAX_FULLY_COMPARED_FIRES: usize = 1_500;

#[test]
fn expressions_agree_with_brute_force_over_whole_years() {
    compare_whole_years(100, &ZONES_AND_YEARS[..6]);
}

#[test]
fn expressions_agree_with_brute_force_over_whole_years_in_more_zones() {
    compare_whole_years(200, &ZONES_AND_YEARS[6..]);
}

fn compare_whole_years(seed: u64, zones_and_years: &[(&str, i16)]) {
    for (number, (name, year)) in zones_and_years.iter().copied().enumerate() {
        let zone = TimeZone::get(name).unwrap();
        let (from, until) = bounds_from_a_week_before_the_year(&zone, year);
        let readings = read_clock_at_steps(&zone, from, until, 60);
        let clock_changes = find_clock_changes(&readings, 60);
        assert_eq!(clock_changes.is_empty(), name == "UTC", "{name} moved its clock in {year}");
        let mut rng = Rng::new(seed + number as u64);
        for round in 0..36 {
            let expression = if round % 3 == 0 {
                with_second_zero(generate_quartz(&mut rng))
            } else {
                generate_vixie(&mut rng)
            };
            let fired = expected_fires(&expression, &readings, 60);
            let Some(schedule) = parse_schedule(&expression, name) else {
                assert!(fired.is_empty(), "{} was said never to fire", expression.text);
                continue;
            };
            clock_changes.iter().for_each(|clock_change| {
                assert_next_and_prev_near_clock_change(&expression, &schedule, name, &fired, *clock_change)
            });
            if fired.len() <= MAX_FULLY_COMPARED_FIRES {
                assert_schedule_fires_as_expected(&expression, &schedule, name, &fired, from, until);
                continue;
            }
            for clock_change in clock_changes.iter().chain([&(from + 86_400)]) {
                let (start, end) = (clock_change - 5 * 3600, clock_change + 5 * 3600);
                assert_schedule_fires_as_expected(
                    &expression,
                    &schedule,
                    name,
                    &fired,
                    start.max(from),
                    end.min(until),
                );
            }
        }
    }
}

/// Changes the second field to `0`, because the readings are a minute apart: only second 0 can be checked.
fn with_second_zero(expression: GeneratedExpression) -> GeneratedExpression {
    let rest = expression.text.split_once(' ').unwrap().1;
    let seconds = GeneratedField { text: "0".into(), values: vec![0], each_value_listed_singly: true };
    GeneratedExpression { text: format!("0 {rest}"), seconds, ..expression }
}

#[test]
fn quartz_expressions_agree_with_brute_force_around_clock_changes() {
    for (number, (name, year)) in ZONES_AND_YEARS.into_iter().enumerate() {
        let zone = TimeZone::get(name).unwrap();
        let (from, until) = bounds_from_a_week_before_the_year(&zone, year);
        let mut rng = Rng::new(300 + number as u64);
        for clock_change in find_clock_changes(&read_clock_at_steps(&zone, from, until, 60), 60) {
            let (start, end) = (clock_change - 5 * 3600, clock_change + 3 * 3600);
            let readings = read_clock_at_steps(&zone, start, end, 1);
            for _ in 0..12 {
                let mut expression = generate_quartz(&mut rng);
                // Days are tested elsewhere; here they would only prevent most expressions from firing.
                expression.text = [&expression.seconds, &expression.minutes, &expression.hours]
                    .map(|f| f.text.as_str())
                    .join(" ")
                    + " ? * *";
                expression.months.values = (1..=12).collect();
                (expression.listed_month_days, expression.special_month_day) = ((1..=31).collect(), None);
                (expression.listed_weekdays, expression.special_weekday) = ((0..=6).collect(), None);
                let fired = expected_fires(&expression, &readings, 1);
                let schedule = parse_schedule(&expression, name).unwrap();
                // The local times before the first reading are unknown.
                let comparable_from = start + 2 * 3600;
                assert_schedule_fires_as_expected(&expression, &schedule, name, &fired, comparable_from, end);
                let fired: Vec<i64> = fired.into_iter().filter(|second| *second >= comparable_from).collect();
                assert_next_and_prev_near_clock_change(&expression, &schedule, name, &fired, clock_change);
            }
        }
    }
}

#[test]
fn special_days_agree_with_brute_force_over_forty_years() {
    let from: jiff::Timestamp = "2000-01-01T00:00:00Z".parse().unwrap();
    let until: jiff::Timestamp = "2040-01-01T00:00:00Z".parse().unwrap();
    let (from, until) = (from.as_second(), until.as_second());
    let readings = read_clock_at_steps(&TimeZone::UTC, from, until, 86_400);
    for expression in special_day_expressions() {
        let fired = expected_fires(&expression, &readings, 86_400);
        let schedule = parse_schedule(&expression, "UTC").unwrap();
        assert_schedule_fires_as_expected(&expression, &schedule, "UTC", &fired, from, until);
    }
}

/// An expression at midnight for every kind of special day.
fn special_day_expressions() -> Vec<GeneratedExpression> {
    let by_month = |text: String, special_day| GeneratedExpression {
        text: format!("0 0 0 {text} * ?"),
        listed_month_days: vec![],
        special_month_day: Some(special_day),
        ..GeneratedExpression::every_midnight()
    };
    let by_week = |text: String, special_day| GeneratedExpression {
        text: format!("0 0 0 ? * {text}"),
        listed_weekdays: vec![],
        special_weekday: Some(special_day),
        ..GeneratedExpression::every_midnight()
    };
    let mut expressions = vec![by_month("LW".into(), SpecialMonthDay::LastWorkingDay)];
    expressions
        .extend((1..=31).map(|day| by_month(format!("{day}W"), SpecialMonthDay::NearestWorkingDay(day))));
    expressions.extend((0..=30).map(|before| by_month(format!("L-{before}"), SpecialMonthDay::Last(before))));
    for day in 0..7 {
        expressions.push(by_week(format!("{}L", day + 1), SpecialWeekday::Last(day)));
        expressions
            .extend((1..=5).map(|nth| by_week(format!("{}#{nth}", day + 1), SpecialWeekday::Nth(day, nth))));
    }
    expressions
}
