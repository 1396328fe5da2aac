//! Handlers that are functions of this process.

use std::fmt;
use std::future::Future;

use async_trait::async_trait;

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
        (self.function)(delivery).await
    }
}

impl<F> fmt::Debug for InProcess<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
