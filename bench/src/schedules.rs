//! Measures how long it takes to find the due schedules among many.
//!
//! The measurement steps through a day minute by minute with the due queue of the clock: it removes each due schedule,
//! computes its next time, and inserts it again.

use std::time::{Duration, Instant};

use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};
use pointsman_core::store::ScheduleDef;
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_engine::DueQueue;

use crate::BenchOptions;
use crate::report::{Figure, MeasurementUnit, percentile};
use crate::stores::RunEnvironment;

const TIME_ZONES: [&str; 8] = [
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
const MINUTES_PER_DAY: usize = 24 * 60;

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let schedules = (0..options.schedule_count).map(nth_schedule).collect::<anyhow::Result<Vec<_>>>()?;
    let mut figures = measure_due_checks(&schedules);
    figures.push(measure_schedule_registration(environment, &schedules).await?);
    Ok(figures)
}

/// Returns the n-th schedule of a realistic mixture. Most have their own time; some are due together.
fn nth_schedule(n: usize) -> anyhow::Result<Schedule> {
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
    let zone = Zone::from_name(TIME_ZONES[n / 17 % TIME_ZONES.len()])?;
    Ok(Schedule::new(Expression::parse(&text, Dialect::Auto)?, zone))
}

fn measure_due_checks(schedules: &[Schedule]) -> Vec<Figure> {
    let start = pointsman_engine::machine_clock_now();
    let (mut due_queue, fill_ms) = time_call(|| {
        let mut due_queue = DueQueue::new();
        for (number, schedule) in schedules.iter().enumerate() {
            due_queue.set_due_time(number, schedule.next(start));
        }
        due_queue
    });
    let mut now = start;
    let mut fire_count = 0;
    let mut times_ms: Vec<f64> = (0..MINUTES_PER_DAY)
        .map(|_| {
            now = now.plus(MINUTE);
            let (due, time_ms) = time_call(|| reschedule_due_schedules(&mut due_queue, schedules, now));
            fire_count += due;
            time_ms
        })
        .collect();
    let count = schedules.len();
    let figure = |which: &str, time_ms: f64| {
        let name =
            format!("{count} schedules due-checked, {which} minute of a day with {fire_count} firings");
        Figure::new(name, time_ms, MeasurementUnit::Milliseconds)
            .with_comparison("computing the next times of all", fill_ms)
            .with_max_value(50.0)
    };
    vec![figure("slowest", percentile(&mut times_ms, 1.0)), figure("median", percentile(&mut times_ms, 0.5))]
}

/// Removes the due schedules and inserts them again with their next times; returns their number.
fn reschedule_due_schedules(due_queue: &mut DueQueue, schedules: &[Schedule], now: Timestamp) -> usize {
    let mut due = 0;
    while let Some(number) = due_queue.pop_due_item(now) {
        due_queue.set_due_time(number, schedules[number].next(now));
        due += 1;
    }
    due
}

/// Measures how long a starting node takes to register all schedules, which returns the progress of each.
async fn measure_schedule_registration(
    environment: &RunEnvironment,
    schedules: &[Schedule],
) -> anyhow::Result<Figure> {
    let stores = environment.new_store_factory()?;
    let store = stores.open_store("schedules").await?.store;
    let definitions = schedules.iter().enumerate().map(|(n, schedule)| {
        let expression = format!("{} {}", schedule.expression(), schedule.zone().name());
        Ok(ScheduleDef {
            name: ScheduleName::new(format!("schedule-{n}"))?,
            expression_zone_and_dialect: expression,
        })
    });
    let definitions = definitions.collect::<anyhow::Result<Vec<_>>>()?;
    let mut times_ms = [0.0; 2];
    for time_ms in &mut times_ms {
        let definitions = definitions.clone();
        let start = Instant::now();
        store.register_schedules(definitions, pointsman_engine::machine_clock_now()).await?;
        *time_ms = elapsed_ms(start);
    }
    store.close();
    let [new, existing] = times_ms;
    let name = format!("states of {} schedules read at a start", schedules.len());
    Ok(Figure::new(name, existing, MeasurementUnit::Milliseconds)
        .with_comparison("when all of them are new", new))
}

/// Calls `work`; returns its result and its duration in milliseconds.
fn time_call<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, elapsed_ms(start))
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}
