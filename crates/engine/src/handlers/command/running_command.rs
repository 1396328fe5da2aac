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

/// How long a process group may take to end after SIGTERM before it is killed: three quarters of the
/// time that the worker gives a cancelled handler.
const SIGTERM_GRACE: Duration = Duration::from_millis(CANCEL_GRACE.as_millis() as u64 * 3 / 4);
/// How long other processes may keep the output open after the command itself has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// A command that was started and whose end has not been waited for.
pub(super) struct RunningCommand {
    /// Dropped first: once the command is reaped, its pid may become another process's.
    process_scope: ProcessScope,
    child: Child,
    awaited_child: AwaitedChild,
}

/// How a command ended.
pub(super) struct CommandEnd {
    pub(super) exit_status: ExitStatus,
    /// Whether the attempt was cancelled.
    pub(super) is_cancelled: bool,
    /// The last line on the command's stderr.
    pub(super) last_stderr_line: Vec<u8>,
    /// The number of processes that the command had left running and that were killed.
    pub(super) killed_process_count: usize,
}

impl RunningCommand {
    /// Starts a command. `marker_variable` is a `NAME=value` of its environment that no other attempt has.
    pub(super) fn start(mut command: Command, marker_variable: Vec<u8>) -> io::Result<Self> {
        let cgroup = Cgroup::create();
        // Dropping the child also hands it to the runtime to be reaped; the scope kills what it has started.
        let (child, process, awaited_child) =
            children::spawn_awaited_child(command.process_group(0).kill_on_drop(true))?;
        Ok(Self { process_scope: ProcessScope::new(process, cgroup, marker_variable), child, awaited_child })
    }

    /// Writes the command's stdin, logs its output, and waits for it to end, or ends it when the attempt is cancelled.
    /// Then kills what it has left running.
    pub(super) async fn run_to_end(self, delivery: &Delivery) -> io::Result<CommandEnd> {
        // If the attempt is dropped, these variables are dropped in reverse order: the scope, which kills the processes,
        // comes first.
        let Self { awaited_child, mut child, process_scope: mut scope } = self;
        let child = &mut child;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("the command has no standard streams"));
        };
        let command_ended = CancellationToken::new();
        let output = async {
            let (_, last_stderr_line) = tokio::join!(
                output::forward_output_to_log(stdout, LogLevel::Info, &delivery.log_sink, &command_ended),
                output::forward_output_to_log(stderr, LogLevel::Error, &delivery.log_sink, &command_ended)
            );
            last_stderr_line
        };
        let mut output = std::pin::pin!(output);
        let mut last_stderr_line = None;
        let (status, is_cancelled) = {
            let mut exit_or_cancellation =
                std::pin::pin!(wait_or_terminate(child, &scope, &delivery.cancel_token));
            let mut stdin_write = std::pin::pin!(write_stdin(stdin, stdin_text(&delivery.task)));
            let mut is_stdin_written = false;
            loop {
                tokio::select! {
                    ended = &mut exit_or_cancellation => break ended?,
                    line = &mut output, if last_stderr_line.is_none() => last_stderr_line = Some(line),
                    () = &mut stdin_write, if !is_stdin_written => is_stdin_written = true,
                }
            }
        };
        drop(awaited_child);
        scope.set_leader_reaped();
        let last_stderr_line = match last_stderr_line {
            Some(line) => line,
            None => match timeout(OUTPUT_GRACE, &mut output).await {
                Ok(line) => line,
                Err(_) => {
                    // A process that the command left running still has the streams open.
                    scope.kill_found_processes();
                    command_ended.cancel();
                    output.await
                }
            },
        };
        let killed_process_count = scope.kill_until_gone().await;
        Ok(CommandEnd { exit_status: status, is_cancelled, last_stderr_line, killed_process_count })
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
    let result = timeout(SIGTERM_GRACE, child.wait()).await;
    // Everything is killed even if the command has ended: its other processes may still run.
    scope.kill_found_processes();
    let status = match result {
        Ok(status) => status?,
        Err(_) => child.wait().await?,
    };
    Ok((status, true))
}
