//! Handlers that are functions of this process.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use pointsman_core::store::Ended;
use pointsman_core::task::Subject;

use crate::{Delivery, Outcome, Runner};

/// Runs attempts by calling a function.
pub struct InProcess<F> {
    function: F,
}

impl<F, Fut> InProcess<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send,
{
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

#[async_trait]
impl<F, Fut> Runner for InProcess<F>
where
    F: Fn(Delivery) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send,
{
    fn kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> Outcome {
        match delivery.task.subject {
            Subject::Event(_) | Subject::Step(_) => (self.function)(delivery).await,
            Subject::Run(_) => no_source(),
        }
    }
}

/// A source is run by a command, a target or a worker, which can be told of a collection.
fn no_source() -> Outcome {
    let error = "a function of this process cannot be a source; run a command, an HTTP target or a worker";
    let ended = Ended::Failed { error: error.into(), code: 1, after: None, last: true };
    Outcome { ended, ..Outcome::done() }
}

impl<F> fmt::Debug for InProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
