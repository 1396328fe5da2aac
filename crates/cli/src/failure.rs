//! Errors for the user: what failed, what to do next, and the exit code.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use pointsman_api::client::ClientError;

use crate::output::{Paint, escape_controls_in_lines};

/// Why the process exits, with the exit code that `--help` lists. 75 and 78 are those of `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The reader of standard output closed it. Not an error, and nothing is printed.
    OutputClosed = 0,
    /// The command failed.
    Runtime = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The server or its store is not available. The same command may succeed later.
    Unavailable = 75,
    /// The configuration is invalid, or the configured store cannot be used as it is.
    Configuration = 78,
}

/// An error that ends the command: its message, a hint and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    exit_reason: ExitReason,
    message: String,
    /// What to do next.
    hint: Option<String>,
}

/// The result of a command or of a step of it.
pub(crate) type CommandResult<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit_reason: ExitReason, message: impl Display) -> Self {
        Self { exit_reason, message: message.to_string(), hint: None }
    }

    pub(crate) fn runtime(message: impl Display) -> Self {
        Self::new(ExitReason::Runtime, message)
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(ExitReason::Usage, message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Whether the same command may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.exit_reason == ExitReason::Unavailable
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn print_and_get_exit_code(&self, paint: Paint) -> ExitCode {
        if self.exit_reason != ExitReason::OutputClosed {
            let hint = self
                .hint
                .as_ref()
                .map(|hint| format!("\n\n{}", escape_controls_in_lines(hint)))
                .unwrap_or_default();
            let message = escape_controls_in_lines(&self.message);
            // A closed standard error does not change the exit code.
            let _ = writeln!(io::stderr().lock(), "{} {message}{hint}", paint.red("error:"));
        }
        ExitCode::from(self.exit_reason as u8)
    }
}

/// The message without the hint.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Converts an I/O error of standard output or of a file. A closed pipe ends the command without a message.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(ExitReason::OutputClosed, error),
            _ => Self::runtime(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::runtime(error)
    }
}

/// Converts an error that any API request can return, with a general hint. A command that knows more replaces the hint.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::InvalidRequest(_) => Self::usage(&error),
            ClientError::ClientCreation(_) => Self::usage(format_with_root_cause(&error)),
            ClientError::Unreachable { .. } | ClientError::StreamTimeout { .. } => {
                Self::new(ExitReason::Unavailable, format_with_root_cause(&error)).with_hint(NO_SERVER_HINT)
            }
            ClientError::InvalidResponse { .. } => Self::runtime(format_with_root_cause(&error))
                .with_hint("Check --url: is it a Pointsman server of the same version as this command?"),
            ClientError::ErrorResponse(refusal) => match refusal.status {
                401 => Self::runtime(&error).with_hint(TOKEN_HINT),
                403 => Self::runtime(&error).with_hint(ROLE_HINT),
                // The server's own message says whether the request may have taken effect.
                503 if is_problem_from_pointsman_server(&error) => {
                    Self::new(ExitReason::Unavailable, &error).with_hint(RETRY_HINT)
                }
                429 | 502..=504 => Self::new(ExitReason::Unavailable, &error).with_hint(UNKNOWN_OUTCOME_HINT),
                _ => Self::runtime(&error),
            },
        }
    }
}

/// The prefix of problem types that a Pointsman server sends.
const PROBLEM_TYPE_PREFIX: &str = "urn:pointsman:problem:";

const RETRY_HINT: &str = "Try again in a moment.";

const UNKNOWN_OUTCOME_HINT: &str = "Try again in a moment. The request may have taken effect: with --idempotency-key, \
     `emit` can be repeated safely.";

const NO_SERVER_HINT: &str = "\
Start a server in another terminal:

    pointsman serve

or set the URL of a running server with --url or POINTSMAN_URL.";

const ROLE_HINT: &str = "\
The token is valid, but its role or its tenant does not allow this. An admin can create another one with
`pointsman token new --role ROLE` and add the line that it prints to the server's configuration.";

const TOKEN_HINT: &str = "\
Set the token with --token, POINTSMAN_TOKEN, or a file named by POINTSMAN_TOKEN_FILE.
A server without configured tokens creates one on its first start and prints it once:

    export POINTSMAN_TOKEN=…

The server stores only a hash. If that token is lost, delete the hash and restart the servers to get a new token:

    SQLite      delete the file next to the store whose name ends in `.token`
    PostgreSQL  DELETE FROM pointsman.meta WHERE name = 'first_token'
    Redis       HDEL pointsman:texts first_token (with the prefix of the URL before `pointsman:texts`)

A server with `auth.tokens` in its configuration accepts only those tokens.
`pointsman token new` creates one and prints its line for the configuration.";

/// Whether the response is a Pointsman server's own problem document, and not that of a proxy.
pub(crate) fn is_problem_from_pointsman_server(error: &ClientError) -> bool {
    matches!(error, ClientError::ErrorResponse(problem) if problem.type_uri.starts_with(PROBLEM_TYPE_PREFIX))
}

/// The message of the error and that of its root cause. The causes between them are details of the HTTP client.
pub(crate) fn format_with_root_cause(error: &dyn std::error::Error) -> String {
    match std::iter::successors(error.source(), |cause| cause.source()).last() {
        Some(root) => format!("{error}: {root}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::ProblemDetails;

    use super::*;

    #[test]
    fn the_hint_of_a_503_depends_on_whether_the_server_or_a_proxy_sent_it() {
        let hint = |type_uri: &str| {
            let problem = ProblemDetails {
                type_uri: type_uri.into(),
                title: "Service Unavailable".into(),
                status: 503,
                detail: String::new(),
                parameter: None,
                pointer: None,
            };
            Failure::from(ClientError::ErrorResponse(Box::new(problem))).hint
        };
        assert_eq!(hint("urn:pointsman:problem:unavailable").as_deref(), Some(RETRY_HINT));
        assert_eq!(hint("about:blank").as_deref(), Some(UNKNOWN_OUTCOME_HINT), "a proxy does not know");
    }
}
