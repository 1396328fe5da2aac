//! Where the code that runs now belongs.
//!
//! While a handler works, its attempt is local to the async task that polls it. Two things look there: the
//! layer that makes log lines of what is traced, and whoever emits, so that an event that a handler brings
//! about by any way (its context, the bus, a unit of work) names its cause, and a storm is seen for what it is.

use std::future::Future;

use pointsman_core::Cause;
use pointsman_core::store::Claimed;

use crate::task_log::Lines;

/// The attempt that runs now.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) lines: Lines,
    cause: Cause,
}

tokio::task_local! {
    static CURRENT: Scope;
}

impl Scope {
    pub(crate) fn new(task: &Claimed, lines: Lines) -> Self {
        let depth = task.subject.depth().saturating_add(1);
        Self { lines, cause: Cause { event: task.subject.cause(), task: task.seq, depth } }
    }

    /// Runs a future inside the attempt.
    pub(crate) fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self, work)
    }
}

/// Acts on the lines of the attempt that runs now, if one does.
pub(crate) fn with_lines(act: impl FnOnce(&Lines)) {
    // Outside every attempt there is nothing to act on.
    let _ = CURRENT.try_with(|scope| act(&scope.lines));
}

/// What an event that is emitted now is caused by.
pub(crate) fn cause() -> Option<Cause> {
    CURRENT.try_with(|scope| scope.cause).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pointsman_core::TaskSeq;

    /// Runs a future as if an attempt with these lines did.
    pub(crate) async fn inside<F: Future>(lines: Lines, work: F) -> F::Output {
        let cause = Cause { event: None, task: TaskSeq(7), depth: 3 };
        Scope { lines, cause }.run(work).await
    }

    #[tokio::test]
    async fn what_is_emitted_inside_an_attempt_is_caused_by_it() {
        assert_eq!(cause(), None);
        let inner = inside(Lines::new(std::sync::Arc::default()).0, async { cause() }).await;
        assert_eq!(inner.map(|cause| (cause.task, cause.depth)), Some((TaskSeq(7), 3)));
        assert_eq!(cause(), None);
    }
}
