//! What a handler returns.
//!
//! | returned | what it means |
//! |---|---|
//! | `()`, `Ok(())` | done |
//! | `Ok(value)` | done, and the task keeps the value as its result; an order goes on with it as its value |
//! | `Err(error)` | failed; tried again while the handler's retries last |
//! | `Err(HandlerError::permanent(…))` | failed for good |
//! | [`Snooze`], also as an error | not now: tried again later, at no cost |

use std::error::Error;
use std::fmt::{self, Display};
use std::time::Duration;

use pointsman_core::store::Ended;
use pointsman_core::{Json, Timestamp};
use serde::Serialize;

/// Not now: the task is tried again later and loses no retry. Five minutes later if nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snooze(Duration);

impl Snooze {
    pub fn after(wait: Duration) -> Self {
        Self(wait)
    }
}

impl Default for Snooze {
    fn default() -> Self {
        Self(Duration::from_secs(300))
    }
}

/// Why an attempt did not succeed, and what is to be done about it.
///
/// Every error converts into it by `?`, with all that caused it in the text, and is then tried again.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Failed { error: String, after: Option<Duration>, last: bool },
    Snoozed(Snooze),
}

impl HandlerError {
    /// A failure that is tried again by the handler's policy.
    pub fn new(error: impl Display) -> Self {
        Self(Kind::Failed { error: text(&error), after: None, last: false })
    }

    /// A failure that no further attempt would mend.
    pub fn permanent(error: impl Display) -> Self {
        Self(Kind::Failed { error: text(&error), after: None, last: true })
    }

    /// A failure that is tried again after this wait, whatever the policy says about waits.
    pub fn retry_after(error: impl Display, wait: Duration) -> Self {
        Self(Kind::Failed { error: text(&error), after: Some(wait), last: false })
    }

    /// What went wrong, in words.
    pub fn message(&self) -> &str {
        match &self.0 {
            Kind::Failed { error, .. } => error,
            Kind::Snoozed(_) => "snoozed",
        }
    }

    pub(crate) fn into_ended(self, now: Timestamp) -> Ended {
        match self.0 {
            Kind::Failed { error, after, last } => {
                Ended::Failed { error, code: 1, after: after.map(|wait| now.plus(wait)), last }
            }
            Kind::Snoozed(Snooze(wait)) => Ended::Snoozed { until: now.plus(wait) },
        }
    }
}

/// The alternate form, in which error types that carry their causes along print them all.
fn text(error: &impl Display) -> String {
    format!("{error:#}")
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut words = text(&error);
        let mut cause = error.source();
        while let Some(next) = cause {
            words.push_str(": ");
            words.push_str(&next.to_string());
            cause = next.source();
        }
        Self::new(words)
    }
}

impl From<Snooze> for HandlerError {
    fn from(snooze: Snooze) -> Self {
        Self(Kind::Snoozed(snooze))
    }
}

/// What may stand in the `Err` of a handler: a [`HandlerError`], or anything that can be shown.
pub trait Failure {
    fn into_error(self) -> HandlerError;
}

impl Failure for HandlerError {
    fn into_error(self) -> HandlerError {
        self
    }
}

impl Failure for Snooze {
    fn into_error(self) -> HandlerError {
        self.into()
    }
}

impl<E: Display> Failure for E {
    fn into_error(self) -> HandlerError {
        HandlerError::new(self)
    }
}

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    note = "it returns `()`, `Snooze`, or a `Result` of something that serialises and an error"
)]
pub trait Answer {
    /// The task's result, or why it has none.
    fn into_result(self) -> Result<Option<Json>, HandlerError>;
}

impl Answer for () {
    fn into_result(self) -> Result<Option<Json>, HandlerError> {
        Ok(None)
    }
}

impl Answer for Snooze {
    fn into_result(self) -> Result<Option<Json>, HandlerError> {
        Err(self.into())
    }
}

impl<T: Serialize, E: Failure> Answer for Result<T, E> {
    fn into_result(self) -> Result<Option<Json>, HandlerError> {
        let value = self.map_err(E::into_error)?;
        let fault = |what| HandlerError::permanent(format!("the handler's result: {what}"));
        let result = Json::of(&value).map_err(fault)?;
        Ok((result.as_str() != "null").then_some(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn ended(answer: impl Answer) -> Ended {
        match answer.into_result() {
            Ok(result) => Ended::Succeeded { result },
            Err(error) => error.into_ended(NOW),
        }
    }

    fn failed(error: &str, after: Option<Timestamp>, last: bool) -> Ended {
        Ended::Failed { error: error.into(), code: 1, after, last }
    }

    #[test]
    fn answers_become_ends() {
        let done = Ended::Succeeded { result: None };
        assert_eq!(ended(()), done);
        assert_eq!(ended(Ok::<_, String>(())), done);
        assert_eq!(
            ended(Ok::<_, String>(vec![1, 2])),
            Ended::Succeeded { result: Some(Json::parse("[1,2]").unwrap()) }
        );
        assert_eq!(ended(Err::<(), _>("no")), failed("no", None, false));
        assert_eq!(
            ended(Err::<(), _>(Box::<dyn Error + Send + Sync>::from("no"))),
            failed("no", None, false)
        );
        assert_eq!(ended(Err::<(), _>(HandlerError::permanent("no"))), failed("no", None, true));
        let wait = Duration::from_secs(1);
        let later = Timestamp::from_millis(2000);
        assert_eq!(
            ended(Err::<(), _>(HandlerError::retry_after("no", wait))),
            failed("no", Some(later), false)
        );
        assert_eq!(ended(Snooze::after(wait)), Ended::Snoozed { until: later });
        assert_eq!(ended(Err::<(), _>(Snooze::after(wait))), Ended::Snoozed { until: later });
        assert_eq!(ended(Snooze::default()), Ended::Snoozed { until: Timestamp::from_millis(301_000) });
    }

    #[test]
    fn causes_are_told() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let error = "x".parse::<i32>().map_err(Outer).map_err(HandlerError::from).unwrap_err();
        assert_eq!(error.message(), "outer: invalid digit found in string");
    }
}
