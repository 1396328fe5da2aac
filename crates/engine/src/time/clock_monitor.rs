//! The clock monitor: reads the machine's clocks every second, measures the store's clock every few seconds, and
//! reports the result with the node, so that a clock that is wrong or was set is noticed on an idle node as well.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_core::store::{ClockReport, TimeAtUptime};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// How often the machine's clocks are read.
const CLOCK_READ_INTERVAL: Duration = Duration::from_secs(1);
/// How often the store's clock is measured while the node is in service.
const STORE_CLOCK_MEASURE_INTERVAL: Duration = Duration::from_secs(3);
/// The minimum change of the clock's offset that is reported with the node, in milliseconds.
const MIN_REPORTED_OFFSET_CHANGE_MS: u64 = 1000;

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(monitor_clock(node)).await;
}

async fn monitor_clock(node: Arc<Node>) {
    let mut reported = node.time_source.clock_report();
    let (mut measured_at, mut was_out_of_service) = (Instant::now(), !node.time_source.is_in_service());
    loop {
        sleep(CLOCK_READ_INTERVAL).await;
        if was_out_of_service
            || measured_at.elapsed() >= STORE_CLOCK_MEASURE_INTERVAL
            || needs_report(reported, node.time_source.clock_report())
        {
            measured_at = Instant::now();
            if let Err(error) = node
                .time_source
                .measure_server_clock(async || node.store.read_store_server_clock().await)
                .await
            {
                node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error),
                    "could not measure the store's clock; the node continues with the last measurement and retries \
                     in a few seconds"
                );
            }
        }
        let is_out_of_service = !node.time_source.is_in_service();
        if std::mem::replace(&mut was_out_of_service, is_out_of_service) && !is_out_of_service {
            node.wake_signals.notify_work();
        }
        let report = node.time_source.clock_report();
        if needs_report(reported, report) {
            reported = report;
            node.store_capabilities_or_retry_later().await;
        }
    }
}

/// Whether the clock has changed so much since the last report that it should be reported again.
fn needs_report(reported: ClockReport, current: ClockReport) -> bool {
    let ClockReport { offset_ms, out_of_service, last_step, time_at_uptime: boot } = current;
    let is_unconfirmed =
        |boot: Option<TimeAtUptime>| boot.is_some_and(|boot| boot.unconfirmed_time.is_some());
    is_unconfirmed(boot) != is_unconfirmed(reported.time_at_uptime)
        || out_of_service != reported.out_of_service
        || last_step != reported.last_step
        || offset_ms.abs_diff(reported.offset_ms) >= MIN_REPORTED_OFFSET_CHANGE_MS
}
