//! Prometheus metrics of a node. Ids and keys are never labels, because their number is unbounded.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use pointsman_core::store::{AttemptResult, ClaimedTask, QueueView};
use pointsman_core::{HandlerName, TaskStatus, Timestamp};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The node's metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) events_emitted: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) journal_reads: Counter,
    pub(crate) objects_pruned: Counter,
    service_failures: Family<ServiceLabels, Counter>,
    emit_seconds: Histogram,
    start_latency: Histogram,
    attempt_seconds: Family<HandlerLabels, Histogram, fn() -> Histogram>,
    tasks_ended: Family<TaskEndLabels, Counter>,
    ended_attempts: Family<AttemptEndLabels, Counter>,
    ended_attempt_counters: EndedAttemptCounters,
    slots: Gauge,
    slots_busy: Gauge,
    backlog: Family<BacklogLabels, Gauge>,
    /// 1 if the store returned the backlog for the last scrape, else 0.
    is_backlog_read: Gauge,
}

/// The number of ended attempts of all handlers, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedAttemptCounts {
    /// The number of attempts that succeeded.
    pub succeeded: u64,
    /// The number of attempts that failed.
    pub failed: u64,
    /// Attempts whose handler asked to run the task again later.
    pub snoozed: u64,
    /// Attempts that were released unfinished, without a retry.
    pub released: u64,
}

/// The counters behind [`EndedAttemptCounts`].
#[derive(Debug, Default)]
struct EndedAttemptCounters {
    succeeded: Counter,
    failed: Counter,
    snoozed: Counter,
    released: Counter,
}

/// A handler's name as a label, without copying its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HandlerNameLabel(HandlerName);

impl EncodeLabelValue for HandlerNameLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.0.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandlerLabels {
    handler: HandlerNameLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskEndLabels {
    handler: HandlerNameLabel,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptEndLabels {
    handler: HandlerNameLabel,
    end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BacklogLabels {
    handler: HandlerNameLabel,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    service: &'static str,
}

/// Creates a histogram whose buckets reach from a tenth of a millisecond to nearly a minute.
fn seconds_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 20))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("pointsman"),
            events_emitted: Counter::default(),
            store_errors: Counter::default(),
            journal_reads: Counter::default(),
            objects_pruned: Counter::default(),
            service_failures: Family::default(),
            emit_seconds: seconds_histogram(),
            start_latency: seconds_histogram(),
            attempt_seconds: Family::new_with_constructor(seconds_histogram),
            tasks_ended: Family::default(),
            ended_attempts: Family::default(),
            ended_attempt_counters: EndedAttemptCounters::default(),
            slots: Gauge::default(),
            slots_busy: Gauge::default(),
            backlog: Family::default(),
            is_backlog_read: Gauge::default(),
        };
        metrics.register_all();
        metrics
    }
}

impl Metrics {
    fn register_all(&mut self) {
        let registry = &mut self.registry;
        registry.register("events_emitted", "Events journaled by this node", self.events_emitted.clone());
        registry.register("tasks_ended", "Tasks that ended", self.tasks_ended.clone());
        registry.register(
            "task_attempts",
            "Attempts that ended, by how they ended",
            self.ended_attempts.clone(),
        );
        registry.register("slots", "Attempts that may run at a time", self.slots.clone());
        registry.register("slots_busy", "Slots that are occupied by attempts", self.slots_busy.clone());
        registry.register(
            "emit_seconds",
            "Time from an emit until its events are durable",
            self.emit_seconds.clone(),
        );
        registry.register("task_seconds", "Duration of attempts", self.attempt_seconds.clone());
        let latency = "Time from the journaling of an event to the start of its first attempt";
        registry.register("start_latency_seconds", latency, self.start_latency.clone());
        registry.register("store_errors", "Store calls that failed", self.store_errors.clone());
        registry.register("journal_reads", "Reads of the journal by observers", self.journal_reads.clone());
        let pruned = "Objects that this node deleted because nothing referred to them any more";
        registry.register("objects_pruned", pruned, self.objects_pruned.clone());
        let failures = "Runs of a service that ended with a panic or before the stop";
        registry.register("service_failures", failures, self.service_failures.clone());
        registry.register("backlog_tasks", "Active tasks, by state", self.backlog.clone());
        let is_read = "1 if the store returned the backlog in time, 0 if backlog_tasks is missing";
        registry.register("backlog_read", is_read, self.is_backlog_read.clone());
    }

    /// Encodes all metrics in the Prometheus text format (OpenMetrics). The gauges of slots and backlog have their last
    /// values; [`Engine::metrics_text`](crate::Engine::metrics_text) updates them first.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// The attempts that have ended on this node, or at pull workers connected to it.
    pub fn ended_attempt_counts(&self) -> EndedAttemptCounts {
        EndedAttemptCounts {
            succeeded: self.ended_attempt_counters.succeeded.get(),
            failed: self.ended_attempt_counters.failed.get(),
            snoozed: self.ended_attempt_counters.snoozed.get(),
            released: self.ended_attempt_counters.released.get(),
        }
    }

    pub(crate) fn count_service_failure(&self, service: &'static str) {
        self.service_failures.get_or_create(&ServiceLabels { service }).inc();
    }

    pub(crate) fn observe_emit_duration(&self, time: Duration) {
        self.emit_seconds.observe(time.as_secs_f64());
    }

    /// Observes the start latency. Only the first attempt of an event's task counts.
    pub(crate) fn observe_start_latency(&self, task: &ClaimedTask, at: Timestamp) {
        if let Some(event) = task.subject.event().filter(|_| task.attempt == 1) {
            self.start_latency.observe(at.duration_since(event.id.timestamp()).as_secs_f64());
        }
    }

    pub(crate) fn count_ended_attempt(&self, handler: &HandlerName, ended: &AttemptResult, time: Duration) {
        let (end, counter) = match ended {
            AttemptResult::Succeeded { .. } => ("succeeded", &self.ended_attempt_counters.succeeded),
            AttemptResult::Failed { .. } => ("failed", &self.ended_attempt_counters.failed),
            AttemptResult::Snoozed { .. } => ("snoozed", &self.ended_attempt_counters.snoozed),
            AttemptResult::Released => ("released", &self.ended_attempt_counters.released),
        };
        counter.inc();
        let handler = HandlerNameLabel(handler.clone());
        self.attempt_seconds
            .get_or_create(&HandlerLabels { handler: handler.clone() })
            .observe(time.as_secs_f64());
        self.ended_attempts.get_or_create(&AttemptEndLabels { handler, end }).inc();
    }

    /// Counts a task if it has ended.
    pub(crate) fn count_task_if_ended(&self, handler: &HandlerName, status: TaskStatus) {
        match status {
            TaskStatus::Done | TaskStatus::Error | TaskStatus::Missing => {
                let labels =
                    TaskEndLabels { handler: HandlerNameLabel(handler.clone()), status: status.as_str() };
                self.tasks_ended.get_or_create(&labels).inc();
            }
            TaskStatus::New | TaskStatus::Scheduled | TaskStatus::Locked => {}
        }
    }

    pub(crate) fn set_slot_gauges(&self, total: usize, busy: usize) {
        self.slots.set(total as i64);
        self.slots_busy.set(busy as i64);
    }

    /// Sets the backlog gauges from the store's queues, summed over all tenants of a handler; `None` clears them.
    pub(crate) fn set_backlog_gauges(&self, queues: Option<&[QueueView]>) {
        self.is_backlog_read.set(i64::from(queues.is_some()));
        let mut sums: BTreeMap<(&HandlerName, &'static str), u64> = BTreeMap::new();
        for queue in queues.unwrap_or_default() {
            for (state, count) in [
                ("ready", queue.ready_count),
                ("waiting", queue.waiting_count),
                ("scheduled", queue.scheduled_count),
                ("running", queue.running_count),
                ("halted", queue.halted_count),
                ("missing", queue.missing_count),
            ] {
                *sums.entry((&queue.handler, state)).or_default() += count;
            }
        }
        self.backlog.clear();
        for ((handler, state), count) in sums {
            let labels = BacklogLabels { handler: HandlerNameLabel(handler.clone()), state };
            self.backlog.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_all_handlers_are_counted_together() {
        let metrics = Metrics::default();
        let failed =
            AttemptResult::Failed { error: String::new(), return_code: 1, retry_at: None, permanent: false };
        for (handler, ended) in [("a", &failed), ("b", &failed), ("a", &AttemptResult::Released)] {
            metrics.count_ended_attempt(&HandlerName::new(handler).unwrap(), ended, Duration::ZERO);
        }
        assert_eq!(
            metrics.ended_attempt_counts(),
            EndedAttemptCounts { failed: 2, released: 1, ..EndedAttemptCounts::default() }
        );
    }

    #[test]
    fn metrics_are_encoded_under_stable_names() {
        let metrics = Metrics::default();
        let handler = HandlerName::new("index").unwrap();
        metrics.count_task_if_ended(&handler, TaskStatus::Done);
        metrics.count_task_if_ended(&handler, TaskStatus::New);
        metrics.count_ended_attempt(&handler, &AttemptResult::Released, Duration::from_millis(1));
        metrics.set_slot_gauges(16, 3);
        let text = metrics.encode();
        for line in [
            "pointsman_events_emitted_total 0",
            "pointsman_tasks_ended_total{handler=\"index\",status=\"done\"} 1",
            "pointsman_task_attempts_total{handler=\"index\",end=\"released\"} 1",
            "pointsman_slots 16",
            "pointsman_slots_busy 3",
            "pointsman_emit_seconds_count 0",
            "pointsman_task_seconds_count{handler=\"index\"} 1",
            "pointsman_start_latency_seconds_count 0",
            "pointsman_store_errors_total 0",
            "pointsman_journal_reads_total 0",
            "pointsman_objects_pruned_total 0",
        ] {
            assert!(text.lines().any(|encoded_line| encoded_line == line), "{line} in\n{text}");
        }
    }
}
