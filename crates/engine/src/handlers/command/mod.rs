//! Handlers that are commands.
//!
//! ```text
//!            stdin: the event ──▶ ┌───────────────┐ ──▶ stdout, stderr: log lines, while it runs
//!   environment: POINTSMAN_… ──▶ │ process group │ ──▶ effects file: emits, result, snooze
//!                                 └───────────────┘ ──▶ exit code: 0 done, 75 snooze, other failure
//! ```
//!
//! A command comes from the configuration as a list of arguments; nothing of an event is ever read by a shell. The
//! stdin of a source's command has the collection to synchronise instead of an event, and that of a step's command has
//! the order and its value; what a step returns as its result becomes the order's value. All processes of a command end
//! with the attempt (`process_scope`): when the attempt is cancelled SIGTERM is sent to the command's process group, and
//! everything is killed soon after; when the attempt is dropped everything is killed at once; when the command ends by
//! itself, what it has left running is killed, after a short grace if it keeps the output open.

mod cgroup;
mod children;
mod effects_file;
mod environment;
mod output;
mod process;
mod process_scope;
mod process_temp_folder;
mod procfs;
mod run_as;
mod running_command;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::Signal;
use pointsman_core::event_json_parser::JsonError;
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::{LogLevel, TaskSubject};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use super::clean_text::excerpt_for_error;
use super::{collection_run_body, effects, step_body};
use crate::{Delivery, HandlerOutcome, Runner};
pub use children::{adopt_orphans, kill_orphans};
use effects_file::EffectsFile;
pub use run_as::{BadRunAsUser, RunAsUser};
use running_command::{CommandEnd, RunningCommand};

/// The exit code of a snooze (EX_TEMPFAIL).
const SNOOZE_EXIT_CODE: i32 = 75;
/// The duration of a snooze if the effects give none.
const DEFAULT_SNOOZE: Duration = Duration::from_secs(300);

/// How to start a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Environment variables in addition to those that every command has.
    pub env: BTreeMap<String, String>,
    /// The working directory; that of this process if not given.
    pub working_dir: Option<PathBuf>,
    /// The user and group that the command runs as; those of this process if not given.
    pub run_as: Option<RunAsUser>,
}

/// Why a command is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    /// The command has no program.
    #[error("the command is empty; name at least a program")]
    NoProgram,
    /// An argument cannot be passed to a process.
    #[error("an argument of the command contains a NUL character")]
    NulInArgument,
    /// The name of an environment variable is invalid.
    #[error("{0:?} cannot be the name of an environment variable, or its value contains a NUL character")]
    InvalidVariable(String),
}

/// A summary of a command without secrets: the program's name without its folder, and the number of its arguments.
pub fn summarize_command(argv: &[String]) -> String {
    let Some((program, arguments)) = argv.split_first() else { return String::new() };
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    match arguments.len() {
        0 => name.into_owned(),
        1 => format!("{name} (1 argument)"),
        count => format!("{name} ({count} arguments)"),
    }
}

/// Runs a command for each attempt.
#[derive(Clone, Debug)]
pub struct CommandHandler {
    spec: CommandSpec,
}

impl CommandHandler {
    /// A handler that runs this command.
    pub fn new(spec: CommandSpec) -> Result<Self, BadCommand> {
        if spec.argv.first().is_none_or(String::is_empty) {
            return Err(BadCommand::NoProgram);
        }
        if spec.argv.iter().any(|argument| argument.contains('\0')) {
            return Err(BadCommand::NulInArgument);
        }
        let is_invalid = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if let Some((name, _)) = spec.env.iter().find(is_invalid) {
            return Err(BadCommand::InvalidVariable(name.clone()));
        }
        Ok(Self { spec })
    }

    fn start_command(&self, delivery: &Delivery, effects: &EffectsFile) -> std::io::Result<RunningCommand> {
        let mut command = Command::new(&self.spec.argv[0]);
        command
            .args(&self.spec.argv[1..])
            .env_clear()
            .envs(environment::build_environment(&self.spec, &delivery.task, effects.path()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(dir) = &self.spec.working_dir {
            command.current_dir(dir);
        }
        if let Some(run_as) = &self.spec.run_as {
            // Setting the user also clears the supplementary groups.
            command.uid(run_as.uid.as_raw()).gid(run_as.gid.as_raw());
        }
        RunningCommand::start(command, environment::attempt_marker_variable(effects.path()))
    }

    /// The outcome of a command that could not be started. The operating system reports the same error for a missing
    /// program and a missing folder.
    fn start_failure_outcome(&self, error: &std::io::Error) -> HandlerOutcome {
        let program = &self.spec.argv[0];
        match &self.spec.working_dir {
            Some(dir) if !dir.is_dir() => HandlerOutcome::failed(format!(
                "cannot start {program:?}: its folder {} does not exist",
                dir.display()
            )),
            _ if error.kind() == std::io::ErrorKind::PermissionDenied && self.spec.run_as.is_some() => {
                HandlerOutcome::failed(format!(
                    "cannot start {program:?}: its user may not execute the program, or may not enter its folder"
                ))
            }
            _ if error.kind() == std::io::ErrorKind::NotFound => {
                HandlerOutcome::failed(format!("cannot start {program:?}: there is no such program"))
            }
            _ => HandlerOutcome::failed(format!("cannot start {program:?}: {error}")),
        }
    }
}

#[async_trait]
impl Runner for CommandHandler {
    fn handler_kind(&self) -> &'static str {
        "command"
    }

    /// The program's name without its folder, and the number of its arguments, which may contain secrets.
    fn target_label(&self) -> Option<String> {
        Some(summarize_command(&self.spec.argv))
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        if delivery.cancel_token.is_cancelled() {
            return HandlerOutcome::failed("cancelled before it was started");
        }
        let effects = match EffectsFile::create(self.spec.run_as.as_ref()) {
            Ok(effects) => effects,
            Err(e) => {
                return HandlerOutcome::failed(format!(
                    "cannot create the effects file in the temporary folder: {e}"
                ));
            }
        };
        let running = match self.start_command(&delivery, &effects) {
            Ok(running) => running,
            Err(error) => return self.start_failure_outcome(&error),
        };
        match running.run_to_end(&delivery).await {
            Err(error) => HandlerOutcome::failed(format!("cannot wait for the command: {error}")),
            Ok(end) if end.is_cancelled => HandlerOutcome::failed_with_return_code(
                shell_exit_code(end.exit_status),
                format!("cancelled; {}", describe_exit(end.exit_status, &[])),
            ),
            Ok(end) => {
                write_killed_count_to_task_log(&end, &delivery).await;
                outcome_from_exit(end.exit_status, &end.last_stderr_line, effects.read().await, &delivery)
            }
        }
    }
}

/// Logs in the log of the task that processes were killed with the attempt: the author of the command may have expected
/// them to survive.
async fn write_killed_count_to_task_log(end: &CommandEnd, delivery: &Delivery) {
    let processes = match end.killed_process_count {
        0 => return,
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    let message = format!("killed {processes} that the command had left running");
    delivery.log_sink.write_line(delivery.log_sink.now(), LogLevel::Info, message).await;
}

/// The text on the stdin of the command.
fn stdin_text(task: &ClaimedTask) -> String {
    match &task.subject {
        TaskSubject::Event(event) => event.to_json(),
        TaskSubject::CollectionRun(run) => collection_run_body::encode_collection_run_body(task, run),
        TaskSubject::Step(step) => step_body::encode_step_body(task, step),
    }
}

/// Writes the text to the stdin of the command. A command that does not read it has not failed.
async fn write_stdin(mut stdin: ChildStdin, text: String) {
    let _ = stdin.write_all(text.as_bytes()).await;
    let _ = stdin.shutdown().await;
}

/// Derives the outcome of an attempt from its exit status and its effects.
fn outcome_from_exit(
    status: ExitStatus,
    last_stderr_line: &[u8],
    effects_text: Result<String, String>,
    delivery: &Delivery,
) -> HandlerOutcome {
    let now = delivery.log_sink.now();
    let effects = effects_text
        .map_err(|error| JsonError::new("", error))
        .and_then(|text| effects::parse_effects_file(&text, delivery.task.subject.tenant(), now));
    let outcome = match status.code() {
        Some(0) => effects.map(|effects| effects.into_outcome(now)),
        Some(SNOOZE_EXIT_CODE) => {
            effects.and_then(|effects| effects.into_snoozed_outcome(DEFAULT_SNOOZE, now))
        }
        _ => {
            return effects::failure_outcome(
                shell_exit_code(status),
                describe_exit(status, last_stderr_line),
                effects,
                now,
            );
        }
    };
    outcome.unwrap_or_else(|fault| effects::invalid_effects_outcome(&fault))
}

/// An exit status as a number, as in shells: 128 plus the signal if the command was killed.
fn shell_exit_code(status: ExitStatus) -> i64 {
    let killed = || status.signal().map(|number| 128 + number);
    status.code().or_else(killed).unwrap_or(1).into()
}

/// An exit status as text, with the last line of the command's stderr.
fn describe_exit(status: ExitStatus, last_stderr_line: &[u8]) -> String {
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by signal {number} ({signal})"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "ended without an exit code".into(),
    };
    match excerpt_for_error(last_stderr_line) {
        text if text.is_empty() => end,
        text => format!("{end}: {text}"),
    }
}
