//! A running command: its processes and its standard streams.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use pointsman_core::task::LogLevel;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::cgroup::Cgroup;
use super::children::{self, AwaitedChild};
use super::process_scope::ProcessScope;
use super::{output, stdin_text, write_stdin};
use crate::Delivery;
use crate::attempt::CANCEL_GRACE;

/// How long a process group may take to end after SIGTERM before it is killed: most of the grace period of the worker.
const TERM_GRACE: Duration = Duration::from_millis(CANCEL_GRACE.as_millis() as u64 * 3 / 4);
/// How long output may stay open after the command itself has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

pub(super) struct RunningCommand {
    /// Dropped first: once the command is reaped, its pid may become another process's.
    scope: ProcessScope,
    child: Child,
    awaited_child: AwaitedChild,
}

/// How a command ended.
pub(super) struct CommandEnd {
    pub(super) status: ExitStatus,
    /// Whether the attempt was cancelled.
    pub(super) is_cancelled: bool,
    /// The last line on its stderr.
    pub(super) last_stderr_line: Vec<u8>,
    /// The number of processes that it had left running, which were killed.
    pub(super) killed_process_count: usize,
}

impl RunningCommand {
    /// Starts a command. `variable` is a `NAME=value` of its environment that no other attempt has.
    pub(super) fn start(mut command: Command, variable: Vec<u8>) -> io::Result<Self> {
        let cgroup = Cgroup::create();
        // Dropping the child also hands it to the runtime to be reaped; the scope kills what it has started.
        let (child, process, awaited) = children::spawn_awaited(command.process_group(0).kill_on_drop(true))?;
        Ok(Self { scope: ProcessScope::new(process, cgroup, variable), child, awaited_child: awaited })
    }

    /// Writes the command's stdin, logs its output, and waits for it to end, or ends it when the attempt is cancelled.
    /// Then kills what it has left running.
    pub(super) async fn run_to_end(self, delivery: &Delivery) -> io::Result<CommandEnd> {
        // If the attempt is dropped, these are dropped in reverse order.
        let Self { awaited_child: awaited, mut child, mut scope } = self;
        let child = &mut child;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("the command has no standard streams"));
        };
        let over = CancellationToken::new();
        let output = async {
            let (_, last_error) = tokio::join!(
                output::forward_output(stdout, LogLevel::Info, &delivery.log_sink, &over),
                output::forward_output(stderr, LogLevel::Error, &delivery.log_sink, &over)
            );
            last_error
        };
        let mut output = std::pin::pin!(output);
        let mut last_error = None;
        let (status, cancelled) = {
            let mut waiting = std::pin::pin!(wait_or_terminate(child, &scope, &delivery.cancel_token));
            let mut feeding = std::pin::pin!(write_stdin(stdin, stdin_text(&delivery.task)));
            let mut fed = false;
            loop {
                tokio::select! {
                    ended = &mut waiting => break ended?,
                    line = &mut output, if last_error.is_none() => last_error = Some(line),
                    () = &mut feeding, if !fed => fed = true,
                }
            }
        };
        drop(awaited);
        scope.set_leader_reaped();
        let last_error = match last_error {
            Some(line) => line,
            None => match timeout(OUTPUT_GRACE, &mut output).await {
                Ok(line) => line,
                Err(_) => {
                    // A process that the command left running still has the streams open.
                    scope.kill();
                    over.cancel();
                    output.await
                }
            },
        };
        let left = scope.kill_until_gone().await;
        Ok(CommandEnd {
            status,
            is_cancelled: cancelled,
            last_stderr_line: last_error,
            killed_process_count: left,
        })
    }
}

/// Waits for the command itself; when the attempt is cancelled, sends SIGTERM to its group, and kills everything soon
/// after.
async fn wait_or_terminate(
    child: &mut Child,
    scope: &ProcessScope,
    cancel: &CancellationToken,
) -> io::Result<(ExitStatus, bool)> {
    tokio::select! {
        status = child.wait() => return Ok((status?, false)),
        () = cancel.cancelled() => {}
    }
    scope.signal_group(Signal::SIGTERM);
    let in_time = timeout(TERM_GRACE, child.wait()).await;
    // Also when the command obeyed: its other processes may not have.
    scope.kill();
    let status = match in_time {
        Ok(status) => status?,
        Err(_) => child.wait().await?,
    };
    Ok((status, true))
}
