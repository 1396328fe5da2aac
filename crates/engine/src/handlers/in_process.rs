//! Handlers that are functions of this process.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use pointsman_core::store::Ended;
use pointsman_core::task::Subject;

use crate::{AttemptOutcome, Delivery, Runner};

/// Runs attempts by calling a function.
pub struct InProcessHandler<F> {
    function: F,
}

impl<F, Fut> InProcessHandler<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = AttemptOutcome> + Send,
{
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

#[async_trait]
impl<F, Fut> Runner for InProcessHandler<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = AttemptOutcome> + Send,
{
    fn kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> AttemptOutcome {
        match delivery.task.subject {
            Subject::Event(_) | Subject::Step(_) => (self.function)(delivery).await,
            Subject::Run(_) => source_unsupported_outcome(),
        }
    }
}

/// The outcome for a source, which only a command, an HTTP target or a pull worker can run.
fn source_unsupported_outcome() -> AttemptOutcome {
    let error = "a function of this process cannot be a source; run a command, an HTTP target or a worker";
    let ended = Ended::Failed { error: error.into(), code: 1, after: None, last: true };
    AttemptOutcome { ended, ..AttemptOutcome::done() }
}

impl<F> fmt::Debug for InProcessHandler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessHandler").finish_non_exhaustive()
    }
}
