//! A brute-force oracle: it walks through a year minute by minute, or through the days around a moved clock
//! second by second, reads the wall clock at each step and compares it with the plain lists of an expression.
//!
//! It knows nothing of bit sets, of searching, or of ambiguous local times. That the clock was moved it sees as a
//! person would: the wall shows a time it has shown before, or one that does not follow.

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

use crate::generate::{Dice, Field, MonthDay, Spec, WeekDay, quartz, vixie};

/// Zones and the year in which each of them did something odd.
const PLACES: [(&str, i16); 12] = [
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

/// One reading of the clock.
struct Reading {
    instant: i64,
    /// Seconds on the wall, as if it were UTC.
    local: i64,
    wall: Wall,
}

#[derive(Clone, Copy)]
struct Wall {
    month: i64,
    day: i64,
    hour: usize,
    minute: usize,
    second: usize,
    weekday: i64,
    length: i64,
    /// The weekday of the first day of this month.
    first: i64,
}

impl Wall {
    fn new(at: DateTime) -> Self {
        Self {
            month: at.month().into(),
            day: at.day().into(),
            hour: at.hour() as usize,
            minute: at.minute() as usize,
            second: at.second() as usize,
            weekday: at.weekday().to_sunday_zero_offset().into(),
            length: at.days_in_month().into(),
            first: at.first_of_month().weekday().to_sunday_zero_offset().into(),
        }
    }

    fn at_time(self, at: DateTime) -> Self {
        let (hour, minute, second) = (at.hour() as usize, at.minute() as usize, at.second() as usize);
        Self { hour, minute, second, ..self }
    }
}

fn readings(zone: &TimeZone, from: i64, until: i64, step: i64) -> Vec<Reading> {
    let mut all: Vec<Reading> = Vec::new();
    let mut today = Date::ZERO;
    for instant in (from..until).step_by(step as usize) {
        let at = zone.to_datetime(jiff::Timestamp::from_second(instant).unwrap());
        let local = Offset::UTC.to_timestamp(at).unwrap().as_second();
        // What concerns the day is worked out once a day.
        let wall = match all.last() {
            Some(last) if today == at.date() => last.wall.at_time(at),
            _ => Wall::new(at),
        };
        today = at.date();
        all.push(Reading { instant, local, wall });
    }
    all
}

/// The values of an expression's fields as tables to look up, so that half a million readings take no time.
struct Tables<'s> {
    spec: &'s Spec,
    seconds: [bool; 60],
    minutes: [bool; 60],
    hours: [bool; 60],
}

impl<'s> Tables<'s> {
    fn new(spec: &'s Spec) -> Self {
        let table = |values: &[i64]| std::array::from_fn(|value| values.contains(&(value as i64)));
        let [seconds, minutes, hours] = [&spec.seconds, &spec.minutes, &spec.hours].map(|f| table(&f.values));
        Self { spec, seconds, minutes, hours }
    }

    fn match_wall(&self, wall: &Wall) -> bool {
        self.minutes[wall.minute]
            && self.hours[wall.hour]
            && self.seconds[wall.second]
            && self.spec.months.values.contains(&wall.month)
            && day_matches(self.spec, wall)
    }
}

fn day_matches(spec: &Spec, wall: &Wall) -> bool {
    let by_month = spec.month_days.contains(&wall.day)
        || match spec.month_mark {
            None => false,
            Some(MonthDay::Last(before)) => wall.day == wall.length - before,
            Some(MonthDay::LastWeekday) => wall.day == nearest(wall, wall.length),
            Some(MonthDay::Nearest(day)) => day <= wall.length && wall.day == nearest(wall, day),
        };
    let by_week = spec.week_days.contains(&wall.weekday)
        || match spec.week_mark {
            None => false,
            Some(WeekDay::Nth(day, nth)) => wall.weekday == day && (wall.day + 6) / 7 == nth,
            Some(WeekDay::Last(day)) => wall.weekday == day && wall.day + 7 > wall.length,
        };
    if spec.either { by_month || by_week } else { by_month && by_week }
}

/// The day from Monday to Friday that is the fewest days from `day`, within the month.
fn nearest(wall: &Wall, day: i64) -> i64 {
    let working = |candidate: &i64| {
        let weekday = (wall.first + candidate - 1) % 7;
        (1..=wall.length).contains(candidate) && (1..=5).contains(&weekday)
    };
    [0, -1, 1, -2, 2].map(|away| day + away).into_iter().find(working).unwrap()
}

/// The instants at which the expression fires.
fn firings(spec: &Spec, readings: &[Reading], step: i64) -> Vec<i64> {
    let (tables, fixed) = (Tables::new(spec), spec.fixed());
    let mut fired = Vec::new();
    let mut shown_until = readings[0].local - step;
    for reading in readings {
        let (local, again) = (reading.local, reading.local <= shown_until);
        let mut due = tables.match_wall(&reading.wall);
        if fixed && again {
            due = false;
        } else if fixed && local > shown_until + step {
            let lost = lost_times(shown_until + step, local, step);
            due |= lost.iter().any(|wall| tables.match_wall(wall));
        }
        if due {
            fired.push(reading.instant);
        }
        shown_until = shown_until.max(local);
    }
    fired
}

/// What the wall should have shown between two readings.
fn lost_times(from: i64, until: i64, step: i64) -> Vec<Wall> {
    let mut lost = Vec::new();
    let mut local = from;
    while local < until {
        lost.push(Wall::new(Offset::UTC.to_datetime(jiff::Timestamp::from_second(local).unwrap())));
        local += step;
    }
    lost
}

fn schedule(spec: &Spec, zone: &str) -> Option<Schedule> {
    match Expression::parse(&spec.text, Dialect::Auto) {
        Ok(expression) => Some(Schedule::new(expression, Zone::named(zone).unwrap())),
        Err(error) if error.problem.contains("never fires") => None,
        Err(error) => panic!("{}: {error}", spec.text),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

/// Compares every firing in `from..until`, forwards and backwards.
fn compare(spec: &Spec, schedule: &Schedule, zone: &str, fired: &[i64], from: i64, until: i64) {
    let want: Vec<i64> = fired.iter().copied().filter(|second| (from..until).contains(second)).collect();
    let got: Vec<i64> =
        schedule.between(at(from - 1), at(until - 1)).map(|t| t.micros() / 1_000_000).collect();
    assert_same(spec, zone, "forwards", &want, &got);
    let back = std::iter::successors(schedule.prev(at(until)), |found| schedule.prev(*found));
    let mut got: Vec<i64> =
        back.map(|t| t.micros() / 1_000_000).take_while(|second| *second >= from).collect();
    got.reverse();
    assert_same(spec, zone, "backwards", &want, &got);
}

/// Asks from instants at and around a moved clock, where a search may begin in the middle of things.
fn probe(spec: &Spec, schedule: &Schedule, zone: &str, fired: &[i64], moment: i64) {
    const AWAY: [i64; 11] = [-7200, -3600, -1801, -61, -1, 0, 1, 59, 1800, 3599, 3600];
    for start in AWAY.map(|away| moment + away) {
        let next = schedule.next(at(start)).map(|found| found.micros() / 1_000_000);
        let want = fired.get(fired.partition_point(|second| *second <= start)).copied();
        // The walk ends somewhere; what lies beyond it is not compared.
        if want.is_some() {
            assert_eq!(next, want, "{} in {zone}, after {}", spec.text, at(start));
        }
        let prev = schedule.prev(at(start)).map(|found| found.micros() / 1_000_000);
        let want = fired[..fired.partition_point(|second| *second < start)].last().copied();
        if want.is_some() {
            assert_eq!(prev, want, "{} in {zone}, before {}", spec.text, at(start));
        }
    }
}

fn assert_same(spec: &Spec, zone: &str, way: &str, want: &[i64], got: &[i64]) {
    let differs = (0..want.len().max(got.len())).find(|place| want.get(*place) != got.get(*place));
    if let Some(place) = differs {
        let told = |second: Option<&i64>| second.map(|second| at(*second).to_string());
        let (want, got) = (told(want.get(place)), told(got.get(place)));
        panic!("{} in {zone}, {way}: want {want:?}, got {got:?}", spec.text);
    }
}

fn year(zone: &TimeZone, year: i16) -> (i64, i64) {
    let start = |year| zone.to_timestamp(jiff::civil::date(year, 1, 1).at(0, 0, 0, 0)).unwrap().as_second();
    (start(year) - 7 * 86_400, start(year + 1))
}

/// The instants in the readings at which the wall did not go on evenly.
fn moved(readings: &[Reading], step: i64) -> Vec<i64> {
    let pairs = readings.windows(2).filter(|pair| pair[1].local - pair[0].local != step);
    pairs.map(|pair| pair[1].instant).collect()
}

/// More firings than this a year are compared around moved clocks only.
const MANY: usize = 1_500;

#[test]
fn expressions_agree_minute_by_minute_over_whole_years() {
    whole_years(100, &PLACES[..6]);
}

#[test]
fn expressions_agree_minute_by_minute_over_whole_years_elsewhere() {
    whole_years(200, &PLACES[6..]);
}

fn whole_years(seed: u64, places: &[(&str, i16)]) {
    for (number, (name, in_year)) in places.iter().copied().enumerate() {
        let zone = TimeZone::get(name).unwrap();
        let (from, until) = year(&zone, in_year);
        let readings = readings(&zone, from, until, 60);
        let moved = moved(&readings, 60);
        assert_eq!(moved.is_empty(), name == "UTC", "{name} moved its clock in {in_year}");
        let mut dice = Dice::new(seed + number as u64);
        for turn in 0..36 {
            let spec = if turn % 3 == 0 { on_the_minute(quartz(&mut dice)) } else { vixie(&mut dice) };
            let fired = firings(&spec, &readings, 60);
            let Some(schedule) = schedule(&spec, name) else {
                assert!(fired.is_empty(), "{} was said never to fire", spec.text);
                continue;
            };
            moved.iter().for_each(|moment| probe(&spec, &schedule, name, &fired, *moment));
            if fired.len() <= MANY {
                compare(&spec, &schedule, name, &fired, from, until);
                continue;
            }
            for moment in moved.iter().chain([&(from + 86_400)]) {
                let (start, end) = (moment - 5 * 3600, moment + 5 * 3600);
                compare(&spec, &schedule, name, &fired, start.max(from), end.min(until));
            }
        }
    }
}

/// The walk goes by minutes, so it can check second 0 only.
fn on_the_minute(spec: Spec) -> Spec {
    let rest = spec.text.split_once(' ').unwrap().1;
    let seconds = Field { text: "0".into(), values: vec![0], named: true };
    Spec { text: format!("0 {rest}"), seconds, ..spec }
}

#[test]
fn quartz_expressions_agree_second_by_second_around_moved_clocks() {
    for (number, (name, in_year)) in PLACES.into_iter().enumerate() {
        let zone = TimeZone::get(name).unwrap();
        let (from, until) = year(&zone, in_year);
        let mut dice = Dice::new(300 + number as u64);
        for moment in moved(&readings(&zone, from, until, 60), 60) {
            let (start, end) = (moment - 5 * 3600, moment + 3 * 3600);
            let readings = readings(&zone, start, end, 1);
            for _ in 0..12 {
                let mut spec = quartz(&mut dice);
                // Days are the business of the other walks; here they only make most specs silent.
                spec.text =
                    [&spec.seconds, &spec.minutes, &spec.hours].map(|f| f.text.as_str()).join(" ") + " ? * *";
                spec.months.values = (1..=12).collect();
                (spec.month_days, spec.month_mark) = ((1..=31).collect(), None);
                (spec.week_days, spec.week_mark) = ((0..=6).collect(), None);
                let fired = firings(&spec, &readings, 1);
                let schedule = schedule(&spec, name).unwrap();
                // The walk does not know what the wall showed before it began.
                let settled = start + 2 * 3600;
                compare(&spec, &schedule, name, &fired, settled, end);
                let fired: Vec<i64> = fired.into_iter().filter(|second| *second >= settled).collect();
                probe(&spec, &schedule, name, &fired, moment);
            }
        }
    }
}

#[test]
fn marked_days_agree_day_by_day_over_forty_years() {
    let from: jiff::Timestamp = "2000-01-01T00:00:00Z".parse().unwrap();
    let until: jiff::Timestamp = "2040-01-01T00:00:00Z".parse().unwrap();
    let (from, until) = (from.as_second(), until.as_second());
    let readings = readings(&TimeZone::UTC, from, until, 86_400);
    for spec in marked_days() {
        let fired = firings(&spec, &readings, 86_400);
        let schedule = schedule(&spec, "UTC").unwrap();
        compare(&spec, &schedule, "UTC", &fired, from, until);
    }
}

/// Every mark there is for a day, at midnight.
fn marked_days() -> Vec<Spec> {
    let by_month = |text: String, mark| Spec {
        text: format!("0 0 0 {text} * ?"),
        month_days: vec![],
        month_mark: Some(mark),
        ..Spec::midnight()
    };
    let by_week = |text: String, mark| Spec {
        text: format!("0 0 0 ? * {text}"),
        week_days: vec![],
        week_mark: Some(mark),
        ..Spec::midnight()
    };
    let mut specs = vec![by_month("LW".into(), MonthDay::LastWeekday)];
    specs.extend((1..=31).map(|day| by_month(format!("{day}W"), MonthDay::Nearest(day))));
    specs.extend((0..=30).map(|before| by_month(format!("L-{before}"), MonthDay::Last(before))));
    for day in 0..7 {
        specs.push(by_week(format!("{}L", day + 1), WeekDay::Last(day)));
        specs.extend((1..=5).map(|nth| by_week(format!("{}#{nth}", day + 1), WeekDay::Nth(day, nth))));
    }
    specs
}
