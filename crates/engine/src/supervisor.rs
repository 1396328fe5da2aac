//! The supervisor: starts the services of a node, restarts a service that fails, and stops all of them in order.
//!
//! ```text
//!   start ─▶ run ──panic, unexpected end──▶ delay ─▶ run again, with the same state
//!             │                               └─ too many restarts ─▶ the node has failed ─┐
//!             └──────────────────── stop ─────────────────────────────────────────────────┴─▶ last run, end
//! ```
//!
//! A service keeps its state outside of its `run`, so a restart loses nothing that it had received. A service that
//! fails too often is a fault that a restart does not cure: the node then reports the failure, and its process is
//! expected to stop the engine and exit, so that other nodes take over and somebody notices. Even such a service gets a
//! last run at the stop, in which it stores what it still has in memory.

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// How long a service may take to stop before it is aborted. Only a service that waits for a hanging store takes
/// longer.
const SERVICE_STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of restarts of one service within [`RESTART_WINDOW`] after which the node has failed.
const MAX_RESTARTS: usize = 5;
/// The time for which a restart counts against [`MAX_RESTARTS`].
const RESTART_WINDOW: Duration = Duration::from_secs(600);
/// The delay before the first restart. Each further delay within the window is three times as long.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(50);

/// A long-running part of the engine, which can be run again after it has failed.
pub(crate) trait Service: Send + 'static {
    /// Runs until `stop` is cancelled, and then completes the work that was handed over before.
    fn run(&mut self, stop: CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Services without state of their own are functions.
impl<F, R> Service for F
where
    F: FnMut(CancellationToken) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    fn run(&mut self, stop: CancellationToken) -> impl Future<Output = ()> + Send {
        self(stop)
    }
}

/// A service that failed more often than it is restarted. The node no longer does its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service `{service}` has failed and is not restarted again: {reason}")]
pub struct ServiceFailure {
    /// The name of the service.
    pub service: &'static str,
    /// Why the last run of the service ended: a panic, or an end that nobody requested.
    pub reason: String,
}

/// Records the first service that failed too often, and counts all failures in the metrics. Shared by all groups of a
/// node.
#[derive(Clone)]
pub(crate) struct ServiceFailureRecorder {
    first_failure: watch::Sender<Option<ServiceFailure>>,
    metrics: Arc<Metrics>,
}

impl ServiceFailureRecorder {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { first_failure: watch::Sender::new(None), metrics }
    }

    /// The failure that made this node unable to work, if there was one.
    pub(crate) fn first_failure(&self) -> Option<ServiceFailure> {
        self.first_failure.borrow().clone()
    }

    /// Waits until a service has failed too often.
    pub(crate) async fn wait_for_failure(&self) -> ServiceFailure {
        let mut failures = self.first_failure.subscribe();
        match failures.wait_for(Option::is_some).await.map(|failure| failure.clone()) {
            Ok(Some(failure)) => failure,
            // This value owns the sender, so the channel is open while it waits.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    fn record_failure(&self, failure: ServiceFailure) {
        tracing::error!(
            service = failure.service,
            reason = failure.reason,
            failure_count = MAX_RESTARTS + 1,
            "service failed too often and is not restarted again; this node stops, and other nodes take over its tasks"
        );
        self.first_failure.send_if_modified(|first| match first {
            Some(_) => false,
            None => first.replace(failure).is_none(),
        });
    }
}

/// Services that are stopped together.
pub(crate) struct ServiceGroup {
    stop_token: CancellationToken,
    failure_recorder: ServiceFailureRecorder,
    services: Vec<(&'static str, JoinHandle<()>)>,
}

impl ServiceGroup {
    pub(crate) fn new(failure_recorder: ServiceFailureRecorder) -> Self {
        Self { stop_token: CancellationToken::new(), failure_recorder, services: Vec::new() }
    }

    pub(crate) fn start_service(&mut self, name: &'static str, service: impl Service) {
        let supervised = supervise(name, service, self.stop_token.clone(), self.failure_recorder.clone());
        self.services.push((name, tokio::spawn(supervised)));
    }

    /// Stops the services and waits until each has ended, up to a limit.
    pub(crate) async fn stop(self) {
        self.stop_token.cancel();
        for (service, mut handle) in self.services {
            if timeout(SERVICE_STOP_TIMEOUT, &mut handle).await.is_err() {
                tracing::error!(
                    service,
                    timeout = ?SERVICE_STOP_TIMEOUT,
                    "service did not stop in time; aborting it: attempt ends that it had not stored are lost, and \
                     their tasks run again after the lease"
                );
                handle.abort();
            }
        }
    }
}

/// Runs a service until it is stopped, and again after each failure.
async fn supervise(
    name: &'static str,
    mut service: impl Service,
    stop: CancellationToken,
    failure_recorder: ServiceFailureRecorder,
) {
    let mut restarts = RestartBudget::default();
    loop {
        let is_last_run = stop.is_cancelled();
        let reason = match catch_panic(service.run(stop.clone())).await {
            Ok(()) if stop.is_cancelled() => return,
            Ok(()) => "it ended although it was not stopped".to_owned(),
            Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
        };
        failure_recorder.metrics.count_service_failure(name);
        if is_last_run {
            tracing::error!(
                service = name,
                reason,
                "service failed while it was being stopped; its unfinished work is dropped, as if the node had \
                 died. Please report this error"
            );
            return;
        }
        match restarts.take_restart(Instant::now()) {
            Some(delay) => {
                tracing::error!(
                    service = name,
                    reason,
                    ?delay,
                    "service failed; restarting it after a delay, with the state it had. Please report this error"
                );
                stop.run_until_cancelled(sleep(delay)).await;
            }
            None => {
                failure_recorder.record_failure(ServiceFailure { service: name, reason });
                stop.cancelled().await;
            }
        }
    }
}

/// Runs a future; a panic is returned as an error.
async fn catch_panic<T>(run: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut run = pin!(run);
    // The future is not polled again after a panic. A service's own state is read again: it is written so that a run
    // can be cut off at any point.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// The restarts of one service within the window.
#[derive(Debug, Default)]
struct RestartBudget {
    recent_restarts: VecDeque<Instant>,
}

impl RestartBudget {
    /// Counts a restart and returns the delay before it; `None` if there were too many within the window.
    fn take_restart(&mut self, now: Instant) -> Option<Duration> {
        self.recent_restarts.retain(|restart| now.duration_since(*restart) < RESTART_WINDOW);
        let earlier_restarts = self.recent_restarts.len();
        if earlier_restarts >= MAX_RESTARTS {
            return None;
        }
        self.recent_restarts.push_back(now);
        Some(FIRST_RESTART_DELAY * 3u32.pow(earlier_restarts as u32))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Panics in its first runs, and records every item that it has received.
    struct FlakyService {
        remaining_panics: usize,
        waiting_items: VecDeque<u32>,
        recorded_items: Arc<Mutex<Vec<u32>>>,
    }

    impl Service for FlakyService {
        async fn run(&mut self, stop: CancellationToken) {
            if self.remaining_panics > 0 {
                self.remaining_panics -= 1;
                panic!("a flaky service");
            }
            while let Some(item) = self.waiting_items.pop_front() {
                self.recorded_items.lock().unwrap().push(item);
            }
            stop.cancelled().await;
        }
    }

    fn flaky_service(panics: usize) -> (FlakyService, Arc<Mutex<Vec<u32>>>) {
        let recorded_items = Arc::<Mutex<Vec<u32>>>::default();
        let service = FlakyService {
            remaining_panics: panics,
            waiting_items: [1, 2, 3].into(),
            recorded_items: recorded_items.clone(),
        };
        (service, recorded_items)
    }

    fn new_recorder() -> ServiceFailureRecorder {
        ServiceFailureRecorder::new(Arc::new(Metrics::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_service_is_restarted_with_its_state() {
        let recorder = new_recorder();
        let mut group = ServiceGroup::new(recorder.clone());
        let (service, recorded) = flaky_service(MAX_RESTARTS);
        group.start_service("flaky", service);
        while recorded.lock().unwrap().len() < 3 {
            sleep(Duration::from_secs(1)).await;
        }
        group.stop().await;
        assert_eq!((&recorded.lock().unwrap()[..], recorder.first_failure()), (&[1, 2, 3][..], None));
        assert!(recorder.metrics.encode().contains("service_failures_total{service=\"flaky\"} 5"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_fails_too_often_is_reported_and_gets_a_last_run() {
        let recorder = new_recorder();
        let mut group = ServiceGroup::new(recorder.clone());
        let (service, recorded) = flaky_service(MAX_RESTARTS + 1);
        group.start_service("flaky", service);
        let failure = recorder.wait_for_failure().await;
        assert_eq!(
            failure.to_string(),
            "the service `flaky` has failed and is not restarted again: it panicked: a flaky service"
        );
        assert!(recorded.lock().unwrap().is_empty());
        group.stop().await;
        assert_eq!(*recorded.lock().unwrap(), [1, 2, 3]);
        assert_eq!(recorder.first_failure(), Some(failure));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_ends_by_itself_is_restarted() {
        let runs = Arc::new(Mutex::new(0));
        let recorder = new_recorder();
        let mut group = ServiceGroup::new(recorder.clone());
        let counter = runs.clone();
        group.start_service("short", move |_stop| {
            *counter.lock().unwrap() += 1;
            std::future::ready(())
        });
        let failure = recorder.wait_for_failure().await;
        assert_eq!((*runs.lock().unwrap(), failure.service), (MAX_RESTARTS + 1, "short"));
        assert_eq!(failure.reason, "it ended although it was not stopped");
        group.stop().await;
    }

    #[test]
    fn restarts_are_limited_within_a_window_and_delayed_longer_each_time() {
        let (start, mut budget) = (Instant::now(), RestartBudget::default());
        let delays: Vec<_> = (0..MAX_RESTARTS).filter_map(|_| budget.take_restart(start)).collect();
        assert_eq!(delays.len(), MAX_RESTARTS);
        assert!(delays.is_sorted() && delays[0] == FIRST_RESTART_DELAY);
        assert_eq!(budget.take_restart(start + RESTART_WINDOW / 2), None);
        assert_eq!(budget.take_restart(start + RESTART_WINDOW), Some(FIRST_RESTART_DELAY));
    }
}
