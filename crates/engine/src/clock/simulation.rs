//! Simulates nodes that die and whose clocks jump, over a day on a real store: every planned time is recorded once.

use std::collections::BTreeSet;

use pointsman_core::cron::{self, Dialect, Expression, Zone};
use pointsman_core::fire::{CatchUpPolicy, FireAction};
use pointsman_core::store::{Journal, JournalQuery, Schedules, Store};
use pointsman_core::{EventId, EventType, NewEvent, ScheduleName};
use pointsman_store_sqlite::{Sqlite, SqliteStore};
use pointsman_testing::Rng;
use tokio::sync::mpsc;

use super::*;
use crate::Settings;
use crate::log_writer::LogWriterHandle;
use crate::metrics::Metrics;
use crate::node::NodeParts;
use crate::pull::LongPollBroker;

const NODE_COUNT: usize = 5;
const SIMULATION_STEP: Duration = Duration::from_secs(20);
const DAY: Duration = Duration::from_secs(86_400);
/// The maximum error of a clock.
const MAX_CLOCK_ERROR: Duration = Duration::from_secs(300);

/// A node whose clock is ahead or behind.
struct SimulatedNode {
    clock_service: Clock,
    clock_ahead_by: Duration,
    clock_behind_by: Duration,
    /// The number of simulation steps for which the node is still down.
    remaining_down_steps: u64,
}

impl SimulatedNode {
    fn new(store: &SqliteStore, setup: &Setup) -> Self {
        let store: Arc<dyn Store> = Arc::new(store.clone());
        let metrics = Arc::new(Metrics::default());
        let (log_writer, _) = LogWriterHandle::new(store.clone(), metrics.clone());
        let ((pull_broker, _), (ended_attempt_sender, _)) =
            (LongPollBroker::new(), mpsc::unbounded_channel());
        let parts = NodeParts {
            store,
            settings: Settings::default(),
            metrics,
            log_writer,
            pull_broker,
            ended_attempt_sender,
        };
        let clock = Clock::new(Arc::new(Node::new(parts, 1, setup.clone())));
        Self {
            clock_service: clock,
            clock_ahead_by: Duration::ZERO,
            clock_behind_by: Duration::ZERO,
            remaining_down_steps: 0,
        }
    }

    /// The time that the node's clock shows.
    fn node_time(&self, true_time: Timestamp) -> Timestamp {
        true_time.plus(self.clock_ahead_by).minus(self.clock_behind_by)
    }

    async fn run_step(&mut self, true_time: Timestamp, must_refresh: bool) {
        let now = self.node_time(true_time);
        if must_refresh {
            self.clock_service.refresh_schedules(now).await.unwrap();
        }
        while self.clock_service.due_queue.earliest_due_time().is_some_and(|next| next <= now) {
            self.clock_service.record_due_fires(now).await.unwrap();
        }
    }
}

fn build_schedules(zone: &str, catch_up: CatchUpPolicy, count: usize) -> Vec<ScheduleSpec> {
    let expressions = ["*/10 * * * *", "0 * * * *", "30 2 * * *", "every 15m", "0 7/20 1-4 * * ?"];
    let build_schedule = |number: usize| {
        let expression = Expression::parse(expressions[number % expressions.len()], Dialect::Auto).unwrap();
        let name = ScheduleName::new(format!("s{number}")).unwrap();
        let event = NewEvent::new(EventType::new("tick").unwrap());
        let when = cron::Schedule::new(expression, Zone::from_name(zone).unwrap());
        let jitter = Duration::from_secs(if number.is_multiple_of(3) { 120 } else { 0 });
        ScheduleSpec {
            catch_up,
            jitter,
            ..ScheduleSpec::new(name, when, FireAction::EmitEvent(Box::new(event)))
        }
    };
    (0..count).map(build_schedule).collect()
}

/// Simulates a day; returns the time at its end.
async fn simulate_day(store: &SqliteStore, setup: &Setup, begin: Timestamp, rng: &mut Rng) -> Timestamp {
    let mut nodes: Vec<_> = (0..NODE_COUNT).map(|_| SimulatedNode::new(store, setup)).collect();
    nodes[0].run_step(begin, true).await;
    let mut time = begin;
    let mut restarted = [true; NODE_COUNT];
    while time < begin.plus(DAY) {
        time = time.plus(SIMULATION_STEP);
        for (number, node) in nodes.iter_mut().enumerate() {
            match rng.next_below(400) {
                // The node dies and restarts after a while, without its memory.
                0 => {
                    (*node, restarted[number]) = (
                        SimulatedNode {
                            remaining_down_steps: rng.next_below(90) as u64,
                            ..SimulatedNode::new(store, setup)
                        },
                        true,
                    )
                }
                1 => {
                    node.clock_ahead_by =
                        Duration::from_secs(rng.next_below(MAX_CLOCK_ERROR.as_secs() as usize) as u64)
                }
                2 => {
                    node.clock_behind_by =
                        Duration::from_secs(rng.next_below(MAX_CLOCK_ERROR.as_secs() as usize) as u64)
                }
                3 => (node.clock_ahead_by, node.clock_behind_by) = (Duration::ZERO, Duration::ZERO),
                _ => {}
            }
            if node.remaining_down_steps > 0 {
                node.remaining_down_steps -= 1;
                continue;
            }
            let must_refresh = std::mem::take(&mut restarted[number]) || rng.next_below(6) == 0;
            node.run_step(time, must_refresh).await;
        }
    }
    SimulatedNode::new(store, setup).run_step(time, true).await;
    time
}

/// The schedule and planned time of each emitted event.
async fn list_emitted_planned_times(store: &SqliteStore) -> Vec<(String, String)> {
    let mut after = EventId::ZERO;
    let mut emitted_times = Vec::new();
    loop {
        let query = JournalQuery {
            after_event_id: after,
            up_to_event_id: None,
            filter: Default::default(),
            limit: 1000,
            backwards: false,
        };
        let page = store.read_events(query).await.unwrap();
        let context_value = |name: &str, event: &pointsman_core::Event| event.context[name].clone();
        emitted_times.extend(
            page.events
                .iter()
                .map(|event| (context_value("schedule", event), context_value("planned_at", event))),
        );
        if page.last_scanned_event_id == after {
            return emitted_times;
        }
        after = page.last_scanned_event_id;
    }
}

async fn check_every_time_recorded_once(zone: &str, begin: &str, catch_up: CatchUpPolicy) {
    let begin: Timestamp = begin.parse().unwrap();
    let store = Sqlite::in_memory(begin).unwrap();
    let setup = Setup { schedules: build_schedules(zone, catch_up, 100), ..Setup::default() };
    let end = simulate_day(&store, &setup, begin, &mut Rng::new(begin.micros() as u64)).await;

    let mut fired = BTreeSet::new();
    for schedule in &setup.schedules {
        let mut fires = store.list_fires(&schedule.name, None, 10_000).await.unwrap().fires;
        fires.reverse();
        let planned: Vec<_> = fires.iter().map(|fire| fire.planned_at).collect();
        let last = planned.last().map_or(end, |last| end.minus(schedule.jitter).max(*last));
        let expected: Vec<_> = schedule.cron.between(begin, last).collect();
        assert_eq!(planned, expected, "{} in {zone}: a row for every time", schedule.cron.expression());
        let with_event = fires.iter().filter(|fire| fire.event_id.is_some());
        fired.extend(with_event.map(|fire| (schedule.name.to_string(), fire.planned_at.to_string())));
        if catch_up == CatchUpPolicy::All {
            assert!(fires.iter().all(|fire| fire.event_id.is_some()), "{fires:?}");
        }
    }
    let events = list_emitted_planned_times(&store).await;
    assert_eq!(events.len(), fired.len(), "no planned time has two events");
    assert_eq!(events.into_iter().collect::<BTreeSet<_>>(), fired);
}

#[tokio::test]
async fn no_planned_time_is_lost_or_doubled_when_daylight_saving_starts() {
    check_every_time_recorded_once("Europe/Berlin", "2026-03-28T12:00:00Z", CatchUpPolicy::All).await;
}

#[tokio::test]
async fn no_planned_time_is_lost_or_doubled_when_daylight_saving_ends() {
    check_every_time_recorded_once("America/New_York", "2026-10-31T18:00:00Z", CatchUpPolicy::All).await;
    check_every_time_recorded_once("Europe/Berlin", "2026-10-24T12:00:00Z", CatchUpPolicy::One).await;
}

#[tokio::test]
async fn no_planned_time_is_lost_or_doubled_when_daylight_saving_shifts_by_half_an_hour() {
    check_every_time_recorded_once("Australia/Lord_Howe", "2026-04-04T03:00:00Z", CatchUpPolicy::All).await;
    check_every_time_recorded_once("Australia/Lord_Howe", "2026-10-03T03:00:00Z", CatchUpPolicy::None).await;
}
