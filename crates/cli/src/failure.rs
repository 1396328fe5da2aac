//! Failures that a person reads: what was wrong, and what to do next. Each has its exit code.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use pointsman_api::client::ClientError;

use crate::output::{Paint, clean_lines};

/// The exit codes, as `--help` lists them. 75 and 78 are those of `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Whoever read our output has gone. That is no failure of ours, and nobody is there to be told.
    Unheard = 0,
    Runtime = 1,
    Usage = 2,
    Unavailable = 75,
    Configuration = 78,
    /// Ended by a signal after all was put in order: what a shell makes of one that ends a process.
    Interrupted = 130,
}

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    /// What to do next.
    hint: Option<String>,
}

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Display) -> Self {
        Self { exit, what: what.to_string(), hint: None }
    }

    pub(crate) fn runtime(what: impl Display) -> Self {
        Self::new(Exit::Runtime, what)
    }

    pub(crate) fn usage(what: impl Display) -> Self {
        Self::new(Exit::Usage, what)
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Whether the same may work later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.exit == Exit::Unavailable
    }

    /// Tells the person, and gives the process its exit code.
    pub(crate) fn report(&self, paint: Paint) -> ExitCode {
        if self.exit != Exit::Unheard {
            let hint =
                self.hint.as_ref().map(|hint| format!("\n\n{}", clean_lines(hint))).unwrap_or_default();
            let what = clean_lines(&self.what);
            // That nobody reads it any more changes nothing.
            let _ = writeln!(io::stderr().lock(), "{} {what}{hint}", paint.bad("error:"));
        }
        ExitCode::from(self.exit as u8)
    }
}

/// What was wrong, without what to do next.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

/// Writing to standard output failed, or reading a file did.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(Exit::Unheard, error),
            _ => Self::runtime(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::runtime(error)
    }
}

/// What every call of the API can meet. A command that knows more replaces the hint with a better one.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Address(_) => Self::usage(&error),
            ClientError::Unreachable { .. } | ClientError::Silent { .. } => {
                Self::new(Exit::Unavailable, with_root(&error)).hint(START_A_SERVER)
            }
            ClientError::Unreadable { .. } => Self::runtime(&error)
                .hint("Is it a Pointsman server, and of the same version as this command? See `--url`."),
            ClientError::Refused(refusal) => match refusal.status {
                401 => Self::runtime(&error).hint(ABOUT_TOKENS),
                403 => Self::runtime(&error).hint(ABOUT_ROLES),
                // A server says itself whether something may have been done.
                503 if refusal.kind.starts_with(OURS) => Self::new(Exit::Unavailable, &error).hint(LATER),
                429 | 502..=504 => Self::new(Exit::Unavailable, &error).hint(TRY_AGAIN),
                _ => Self::runtime(&error),
            },
        }
    }
}

/// How the types of problems begin that a Pointsman server tells of.
const OURS: &str = "urn:pointsman:problem:";

const LATER: &str = "Try again in a moment.";

const TRY_AGAIN: &str = "Try again in a moment. Whether what was asked for has been done may not be known: with \
     --idempotency-key, `emit` can be repeated safely.";

const START_A_SERVER: &str = "\
Start a server in another terminal:

    pointsman serve

or name one that runs elsewhere with --url or POINTSMAN_URL.";

const ABOUT_ROLES: &str = "\
The token is good, but its role or its tenant does not allow this. Use one that may: an admin of the server makes
it with `pointsman token new --role ROLE`, and puts the line that this prints into the server's configuration.";

const ABOUT_TOKENS: &str = "\
Commands find their token in --token, POINTSMAN_TOKEN, or the file named by POINTSMAN_TOKEN_FILE.
A server that has no tokens configured makes one on its first start and prints it, once:

    export POINTSMAN_TOKEN=…

It keeps only a hash. If that token is lost, remove what is kept of it, and start the servers again:

    SQLite      delete the file that ends in `.token` beside the store
    PostgreSQL  DELETE FROM pointsman.meta WHERE name = 'first_token'
    Redis       HDEL pointsman:texts first_token, behind the prefix of the URL

That works only where no tokens are configured: a server with `auth.tokens` accepts those and no other.
`pointsman token new` makes one and prints its line for there.";

/// An error and what lies at the bottom of it. The layers between speak of the client's own workings.
fn with_root(error: &dyn std::error::Error) -> String {
    match std::iter::successors(error.source(), |cause| cause.source()).last() {
        Some(root) => format!("{error}: {root}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::Problem;

    use super::*;

    #[test]
    fn what_a_server_says_of_an_outage_is_not_said_again() {
        let hint = |kind: &str| {
            let problem = Problem {
                kind: kind.into(),
                title: "Service Unavailable".into(),
                status: 503,
                detail: String::new(),
                parameter: None,
                pointer: None,
            };
            Failure::from(ClientError::Refused(Box::new(problem))).hint
        };
        assert_eq!(hint("urn:pointsman:problem:unavailable").as_deref(), Some(LATER));
        assert_eq!(hint("about:blank").as_deref(), Some(TRY_AGAIN), "a proxy does not know");
    }
}
