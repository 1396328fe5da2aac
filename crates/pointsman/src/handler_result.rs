//! The values that a handler may return, and how they end the attempt.
//!
//! | returned | meaning |
//! |---|---|
//! | `()`, `Ok(())` | done |
//! | `Ok(value)` | done; the value is the task's result, and for a step the order's new value |
//! | `Err(error)` | failed; retried while the handler's retries last |
//! | `Err(HandlerError::permanent(…))` | failed for good |
//! | [`Snooze`], also as an error | snoozed: the task runs again later, and no retry is counted |

use std::error::Error;
use std::fmt::{self, Display};
use std::time::Duration;

use pointsman_core::store::AttemptResult;
use pointsman_core::{ErrorChain, Json, Timestamp};
use serde::Serialize;

/// Postpones the task: it runs again later, and no retry is counted. The default is five minutes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snooze(Duration);

impl Snooze {
    /// Runs the task again after this delay.
    pub fn after(delay: Duration) -> Self {
        Self(delay)
    }
}

impl Default for Snooze {
    fn default() -> Self {
        Self(Duration::from_secs(300))
    }
}

/// Why an attempt did not succeed, and whether and when it is retried.
///
/// Every error converts into a `HandlerError` by `?`, with all its sources in the message, and is then retried.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError(HandlerErrorKind);

#[derive(Clone, PartialEq, Eq)]
enum HandlerErrorKind {
    Failed { message: String, retry_after: Option<Duration>, is_permanent: bool },
    Snoozed(Snooze),
}

impl HandlerError {
    /// A failure that is retried by the handler's policy.
    pub fn new(error: impl Display) -> Self {
        Self(HandlerErrorKind::Failed {
            message: format_error(&error),
            retry_after: None,
            is_permanent: false,
        })
    }

    /// A failure that is not retried, because no further attempt would succeed.
    pub fn permanent(error: impl Display) -> Self {
        Self(HandlerErrorKind::Failed {
            message: format_error(&error),
            retry_after: None,
            is_permanent: true,
        })
    }

    /// A failure that is retried after this delay instead of the delay of the handler's policy.
    pub fn retry_after(error: impl Display, delay: Duration) -> Self {
        Self(HandlerErrorKind::Failed {
            message: format_error(&error),
            retry_after: Some(delay),
            is_permanent: false,
        })
    }

    /// The error message.
    pub fn message(&self) -> &str {
        match &self.0 {
            HandlerErrorKind::Failed { message, .. } => message,
            HandlerErrorKind::Snoozed(_) => "snoozed",
        }
    }

    /// Converts the error into the attempt result that the engine records.
    pub(crate) fn into_attempt_result(self, now: Timestamp) -> AttemptResult {
        match self.0 {
            HandlerErrorKind::Failed { message, retry_after, is_permanent } => AttemptResult::Failed {
                error: message,
                return_code: 1,
                retry_at: retry_after.map(|delay| now.plus(delay)),
                permanent: is_permanent,
            },
            HandlerErrorKind::Snoozed(Snooze(delay)) => AttemptResult::Snoozed { until: now.plus(delay) },
        }
    }
}

/// Formats an error in the alternate form, in which some error types print all their sources.
fn format_error(error: &impl Display) -> String {
    format!("{error:#}")
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::new(ErrorChain(&error))
    }
}

impl From<Snooze> for HandlerError {
    fn from(snooze: Snooze) -> Self {
        Self(HandlerErrorKind::Snoozed(snooze))
    }
}

/// An error that a handler may return: a [`HandlerError`], or any type that implements `Display`.
pub trait IntoHandlerError {
    /// Converts a returned error into the error that ends the attempt.
    fn into_handler_error(self) -> HandlerError;
}

impl IntoHandlerError for HandlerError {
    fn into_handler_error(self) -> HandlerError {
        self
    }
}

impl IntoHandlerError for Snooze {
    fn into_handler_error(self) -> HandlerError {
        self.into()
    }
}

impl<E: Display> IntoHandlerError for E {
    fn into_handler_error(self) -> HandlerError {
        HandlerError::new(self)
    }
}

/// A value that a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    note = "it returns `()`, `Snooze`, or a `Result` of something that serialises and an error"
)]
pub trait IntoHandlerResult {
    /// Converts a returned value into the task's result, or into the error that ends the attempt.
    fn into_handler_result(self) -> Result<Option<Json>, HandlerError>;
}

impl IntoHandlerResult for () {
    fn into_handler_result(self) -> Result<Option<Json>, HandlerError> {
        Ok(None)
    }
}

impl IntoHandlerResult for Snooze {
    fn into_handler_result(self) -> Result<Option<Json>, HandlerError> {
        Err(self.into())
    }
}

impl<T: Serialize, E: IntoHandlerError> IntoHandlerResult for Result<T, E> {
    fn into_handler_result(self) -> Result<Option<Json>, HandlerError> {
        let value = self.map_err(E::into_handler_error)?;
        let invalid =
            |error| HandlerError::permanent(format!("the handler's result is not valid JSON: {error}"));
        let result = Json::from_value(&value).map_err(invalid)?;
        Ok((result.as_str() != "null").then_some(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn attempt_result_of(returned: impl IntoHandlerResult) -> AttemptResult {
        match returned.into_handler_result() {
            Ok(result) => AttemptResult::Succeeded { result },
            Err(error) => error.into_attempt_result(NOW),
        }
    }

    fn failed_result(error: &str, retry_at: Option<Timestamp>, permanent: bool) -> AttemptResult {
        AttemptResult::Failed { error: error.into(), return_code: 1, retry_at, permanent }
    }

    #[test]
    fn returned_values_determine_how_the_attempt_ends() {
        let done = AttemptResult::Succeeded { result: None };
        assert_eq!(attempt_result_of(()), done);
        assert_eq!(attempt_result_of(Ok::<_, String>(())), done);
        assert_eq!(
            attempt_result_of(Ok::<_, String>(vec![1, 2])),
            AttemptResult::Succeeded { result: Some(Json::parse("[1,2]").unwrap()) }
        );
        assert_eq!(attempt_result_of(Err::<(), _>("an error")), failed_result("an error", None, false));
        assert_eq!(
            attempt_result_of(Err::<(), _>(Box::<dyn Error + Send + Sync>::from("an error"))),
            failed_result("an error", None, false)
        );
        assert_eq!(
            attempt_result_of(Err::<(), _>(HandlerError::permanent("an error"))),
            failed_result("an error", None, true)
        );
        let delay = Duration::from_secs(1);
        let retry_at = Timestamp::from_millis(2000);
        assert_eq!(
            attempt_result_of(Err::<(), _>(HandlerError::retry_after("an error", delay))),
            failed_result("an error", Some(retry_at), false)
        );
        assert_eq!(attempt_result_of(Snooze::after(delay)), AttemptResult::Snoozed { until: retry_at });
        assert_eq!(
            attempt_result_of(Err::<(), _>(Snooze::after(delay))),
            AttemptResult::Snoozed { until: retry_at }
        );
        assert_eq!(
            attempt_result_of(Snooze::default()),
            AttemptResult::Snoozed { until: Timestamp::from_millis(301_000) }
        );
    }

    #[test]
    fn error_sources_are_part_of_the_message() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let error = "x".parse::<i32>().map_err(Outer).map_err(HandlerError::from).unwrap_err();
        assert_eq!(error.message(), "outer: invalid digit found in string");
    }
}
