//! Handlers that are functions of this process.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use pointsman_core::store::AttemptResult;
use pointsman_core::task::TaskSubject;

use crate::{Delivery, HandlerOutcome, Runner};

/// Runs attempts by calling a function.
pub struct InProcessHandler<F> {
    function: F,
}

impl<F, Fut> InProcessHandler<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = HandlerOutcome> + Send,
{
    /// A handler that calls this function.
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

#[async_trait]
impl<F, Fut> Runner for InProcessHandler<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = HandlerOutcome> + Send,
{
    fn handler_kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        match delivery.task.subject {
            TaskSubject::Event(_) | TaskSubject::Step(_) => (self.function)(delivery).await,
            TaskSubject::CollectionRun(_) => source_unsupported_outcome(),
        }
    }
}

/// The outcome for a source, which only a command, an HTTP target or a pull worker can run.
fn source_unsupported_outcome() -> HandlerOutcome {
    let error = "a function of this process cannot be a source; run a command, an HTTP target or a worker";
    let result =
        AttemptResult::Failed { error: error.into(), return_code: 1, retry_at: None, permanent: true };
    HandlerOutcome { result, ..HandlerOutcome::succeeded() }
}

impl<F> fmt::Debug for InProcessHandler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessHandler").finish_non_exhaustive()
    }
}
