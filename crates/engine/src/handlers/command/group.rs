//! A command while it runs: the process, the group it leads, and the streams between.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pointsman_core::task::Level;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{feed, output, told};
use crate::Delivery;
use crate::attempt::GRACE;

/// How long a group that was asked to end may take before it is made to: most of what the worker leaves us.
const TERM_GRACE: Duration = Duration::from_millis(GRACE.as_millis() as u64 * 3 / 4);
/// How long output may stay open after the command itself has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

pub(super) struct Running {
    /// Dropped before the child: once a leader is reaped, its number may become another group's.
    group: Group,
    child: Child,
}

/// How a command ended.
pub(super) struct End {
    pub(super) status: ExitStatus,
    /// It was told to.
    pub(super) cancelled: bool,
    /// The last line on its stderr.
    pub(super) last_error: Vec<u8>,
}

impl Running {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        // Dropping the child also hands it to the runtime to be reaped; the group is killed by `Group`.
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let group = Group(leader.map(Pid::from_raw));
        Ok(Self { group, child })
    }

    /// Feeds the command, passes its output on, and waits for it to end, or ends it when told to.
    pub(super) async fn finish(mut self, delivery: &Delivery) -> io::Result<End> {
        let child = &mut self.child;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("it has no standard streams"));
        };
        let over = CancellationToken::new();
        let output = async {
            let (_, last_error) = tokio::join!(
                output::pump(stdout, Level::Info, &delivery.log, &over),
                output::pump(stderr, Level::Error, &delivery.log, &over)
            );
            last_error
        };
        let mut output = std::pin::pin!(output);
        let mut last_error = None;
        let (status, cancelled) = {
            let mut waiting = std::pin::pin!(wait(child, &self.group, &delivery.cancel));
            let mut feeding = std::pin::pin!(feed(stdin, told(&delivery.task)));
            let mut fed = false;
            loop {
                tokio::select! {
                    ended = &mut waiting => break ended?,
                    said = &mut output, if last_error.is_none() => last_error = Some(said),
                    () = &mut feeding, if !fed => fed = true,
                }
            }
        };
        let last_error = match last_error {
            Some(said) => said,
            None => match timeout(OUTPUT_GRACE, &mut output).await {
                Ok(said) => said,
                Err(_) => {
                    // Whoever still holds the streams is not the command.
                    self.group.signal(Signal::SIGKILL);
                    over.cancel();
                    output.await
                }
            },
        };
        self.group.release();
        Ok(End { status, cancelled, last_error })
    }
}

/// Waits for the command itself; when cancelled, asks its group to end, and makes it.
async fn wait(
    child: &mut Child,
    group: &Group,
    cancel: &CancellationToken,
) -> io::Result<(ExitStatus, bool)> {
    tokio::select! {
        status = child.wait() => return Ok((status?, false)),
        () = cancel.cancelled() => {}
    }
    group.signal(Signal::SIGTERM);
    let in_time = timeout(TERM_GRACE, child.wait()).await;
    // Also when the command obeyed: what it started may not have.
    group.signal(Signal::SIGKILL);
    let status = match in_time {
        Ok(status) => status?,
        Err(_) => child.wait().await?,
    };
    Ok((status, true))
}

/// A process group that does not outlive its attempt: dropped before it was released, it is killed.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // The only fault there can be is that nobody is left to get it.
            let _ = killpg(leader, signal);
        }
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
