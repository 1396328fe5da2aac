//! How long it takes to see which of many schedules are due.
//!
//! A day is gone through minute by minute with the agenda that the clock keeps: what is due is taken out, its next
//! time is reckoned, and it is put back.

use std::time::{Duration, Instant};

use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};
use pointsman_core::store::Plan;
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_engine::Agenda;

use crate::Options;
use crate::ground::Site;
use crate::report::{Figure, Unit, percentile};

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Pacific/Chatham",
];

const MINUTE: Duration = Duration::from_secs(60);
const DAY: usize = 24 * 60;

pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let schedules = (0..options.schedules).map(schedule).collect::<anyhow::Result<Vec<_>>>()?;
    let mut figures = checks(&schedules);
    figures.push(plans(site, &schedules).await?);
    Ok(figures)
}

/// The n-th schedule: a mixture of what people write. Most name a time of their own; some fall together.
fn schedule(n: usize) -> anyhow::Result<Schedule> {
    let (minute, hour, day) = (n / 7 % 60, n / 11 % 24, n / 13 % 28 + 1);
    let text = match n % 12 {
        0 | 1 => format!("{minute} {hour} * * *"),
        2 => format!("{minute} * * * *"),
        3 => format!("0 {minute} {hour} ? * MON-FRI"),
        4 => format!("{minute} {hour} {day} * *"),
        5 => format!("0 {minute} {hour} L * ?"),
        6 => format!("0 {minute} {hour} ? * 2#1"),
        7 => format!("0 {minute} {hour} {day}W * ?"),
        8 => "0 0/15 8-18 ? * MON-FRI".to_owned(),
        9 => "@daily".to_owned(),
        10 => "@hourly".to_owned(),
        _ => "every 12h".to_owned(),
    };
    let zone = Zone::named(ZONES[n / 17 % ZONES.len()])?;
    Ok(Schedule::new(Expression::parse(&text, Dialect::Auto)?, zone))
}

fn checks(schedules: &[Schedule]) -> Vec<Figure> {
    let begin = pointsman_engine::now();
    let (mut agenda, all) = timed(|| {
        let mut agenda = Agenda::new();
        for (number, schedule) in schedules.iter().enumerate() {
            agenda.put(number, schedule.next(begin));
        }
        agenda
    });
    let mut now = begin;
    let mut fired = 0;
    let mut took: Vec<f64> = (0..DAY)
        .map(|_| {
            now = now.plus(MINUTE);
            let (due, took) = timed(|| check(&mut agenda, schedules, now));
            fired += due;
            took
        })
        .collect();
    let count = schedules.len();
    let figure = |which: &str, took: f64| {
        let name = format!("{count} schedules due-checked, {which} minute of a day with {fired} firings");
        Figure::new(name, took, Unit::Milliseconds).against("the next times of all reckoned", all).below(50.0)
    };
    vec![figure("slowest", percentile(&mut took, 1.0)), figure("median", percentile(&mut took, 0.5))]
}

/// Takes out what is due and puts it back for its next time; answers how many were.
fn check(agenda: &mut Agenda, schedules: &[Schedule], now: Timestamp) -> usize {
    let mut due = 0;
    while let Some(number) = agenda.due(now) {
        agenda.put(number, schedules[number].next(now));
        due += 1;
    }
    due
}

/// What a start asks the store: where each schedule stands.
async fn plans(site: &Site, schedules: &[Schedule]) -> anyhow::Result<Figure> {
    let ground = site.ground()?;
    let store = ground.open("schedules").await?.store;
    let plans = schedules.iter().enumerate().map(|(n, schedule)| {
        let expression = format!("{} {}", schedule.expression(), schedule.zone().name());
        Ok(Plan { name: ScheduleName::new(format!("schedule-{n}"))?, expression })
    });
    let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
    let mut took = [0.0; 2];
    for took in &mut took {
        let plans = plans.clone();
        let start = Instant::now();
        store.plan(plans, pointsman_engine::now()).await?;
        *took = milliseconds(start);
    }
    store.close();
    let [new, known] = took;
    let name = format!("where {} schedules stand, asked at a start", schedules.len());
    Ok(Figure::new(name, known, Unit::Milliseconds).against("when all of them are new", new))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = work();
    (done, milliseconds(start))
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}
