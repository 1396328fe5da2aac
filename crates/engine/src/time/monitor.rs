//! The clock monitor: it reads the clocks every second and measures the store's every few seconds, so
//! that a clock that is off or was set is noticed on an idle node as well, and it reports the clock with the node.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{BootMark, ClockReport};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// How often the machine's clocks are read.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How often the store's clock is measured while all is well.
const MEASURE_INTERVAL: Duration = Duration::from_secs(3);
/// A change of the offset by less is not worth a write.
const MIN_REPORTED_CHANGE_MS: u64 = 1000;

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(monitor_clock(node)).await;
}

async fn monitor_clock(node: Arc<Node>) {
    let mut reported = node.time_source.clock_report();
    let (mut measured, mut was_out) = (Instant::now(), !node.time_source.is_in_service());
    loop {
        sleep(READ_INTERVAL).await;
        if was_out
            || measured.elapsed() >= MEASURE_INTERVAL
            || needs_report(reported, node.time_source.clock_report())
        {
            measured = Instant::now();
            if let Err(error) =
                node.time_source.measure_server_clock(async || node.store.read_clock().await).await
            {
                node.count_store_error();
                tracing::debug!(
                    %error,
                    "could not measure the store's clock; the node continues with the last measurement and retries \
                     in a few seconds"
                );
            }
        }
        let is_out = !node.time_source.is_in_service();
        if std::mem::replace(&mut was_out, is_out) && !is_out {
            node.signals.notify_work();
        }
        let report = node.time_source.clock_report();
        if needs_report(reported, report) {
            reported = report;
            node.announce_or_retry_later().await;
        }
    }
}

/// Whether the clock has changed so much that other nodes should be informed.
fn needs_report(reported: ClockReport, report: ClockReport) -> bool {
    let ClockReport { offset_ms, out_of_service, last_step, boot } = report;
    let is_unconfirmed = |boot: Option<BootMark>| boot.is_some_and(|boot| boot.unconfirmed.is_some());
    is_unconfirmed(boot) != is_unconfirmed(reported.boot)
        || out_of_service != reported.out_of_service
        || last_step != reported.last_step
        || offset_ms.abs_diff(reported.offset_ms) >= MIN_REPORTED_CHANGE_MS
}
