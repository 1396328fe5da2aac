//! The signals that stop a run: SIGTERM and SIGINT.

use tokio::signal::unix::{SignalKind, signal};

/// The exit code of an interrupted run, as a shell sets it for SIGINT.
pub(crate) const INTERRUPTED_EXIT_CODE: u8 = 130;

/// Waits for SIGTERM or SIGINT. A second signal exits the process immediately, because cleaning up after the first may
/// take long.
pub(crate) async fn wait_for_stop_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    let (signal_sender, first_signal) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut wait_for_either = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        wait_for_either().await;
        // The receiver is gone if the run has ended meanwhile.
        let _ = signal_sender.send(());
        wait_for_either().await;
        std::process::exit(INTERRUPTED_EXIT_CODE.into());
    });
    let _ = first_signal.await;
}
