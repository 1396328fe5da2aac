//! What people do to tasks and queues while the node works.

use pointsman_core::store::{Idempotency, NewRun, RunRefused, RunTask, StoreError, TaskFilter};
use pointsman_core::task::{Rejected, State, Task};
use pointsman_core::{HandlerName, Place, Rule, RuleKind, TaskId, Tenant};

use crate::Engine;
use crate::start_gate::Pause;

impl Engine {
    /// Sets a rule. When this answers, no new attempt begins: what was claimed before and has not begun is given
    /// back.
    pub async fn hold(&self, rule: Rule) -> Result<(), StoreError> {
        self.store().hold(rule.clone()).await?;
        self.node().held.hold(Pause::Rule(rule)).await;
        Ok(())
    }

    /// Lifts a rule; `false` if there was none.
    pub async fn release(
        &self,
        kind: RuleKind,
        place: &Place,
        tenant: Option<&Tenant>,
    ) -> Result<bool, StoreError> {
        let lifted = self.store().release(kind, place, tenant).await?;
        self.node().released.notify_one();
        self.nudge();
        Ok(lifted)
    }

    /// Has a collection synchronised: by the task that is queued or running, or else by a new one. A repeat under the
    /// same idempotency key creates none, and gets the first answer.
    pub async fn run(
        &self,
        run: NewRun,
        idempotency: Option<Idempotency>,
    ) -> Result<Result<RunTask, RunRefused>, StoreError> {
        let ran = self.store().run(run, idempotency, self.now()).await?;
        if let Ok(RunTask { task, created: true, repeated: false }) = &ran {
            self.tell_waiting(task).await?;
        }
        Ok(ran)
    }

    /// Runs a task in `error` again.
    pub async fn retry(&self, id: &TaskId) -> Result<Result<(), Rejected>, StoreError> {
        let Some((task, _)) = self.store().task(id).await? else { return Ok(Err(Rejected::NoSuchTask)) };
        let retried = self.store().retry(vec![task.seq], self.now()).await?;
        let retried = retried.into_iter().next().unwrap_or(Err(Rejected::NoSuchTask));
        if retried.is_ok() {
            self.tell_waiting(id).await?;
        }
        Ok(retried)
    }

    /// Ends a task. If it runs, its attempt is cut short; a worker elsewhere is told when it next comes back.
    pub async fn cancel(&self, id: &TaskId) -> Result<Result<(), Rejected>, StoreError> {
        let cancelled = self.store().cancel(id, self.now()).await?;
        if cancelled.is_ok() {
            if let Some((task, _)) = self.store().task(id).await? {
                self.node().metrics.task_stands(&task.handler, task.life.state.status());
                self.node().changes.moved(task, self.now());
            }
            self.nudge();
        }
        Ok(cancelled)
    }

    /// Takes up a handler's `missing` tasks; answers how many.
    pub async fn adopt(&self, handler: &HandlerName) -> Result<u64, StoreError> {
        let missing = self.missing(handler).await?;
        let adopted = self.store().adopt(handler, self.now()).await?;
        self.nudge();
        let of_handler = TaskFilter { handler: Some(handler.clone()), ..TaskFilter::default() };
        self.tell_again(&of_handler, &missing).await;
        Ok(adopted)
    }

    /// Tells the rooms that something was changed in the store past them, so that a running attempt that lost
    /// its task is ended and new work is looked for.
    pub fn nudge(&self) {
        self.node().nudged.notify_one();
        self.node().signals.work();
    }

    /// Tells those who watch that a task waits to be run. One that runs already, or has ended since, has been told
    /// of by whoever ran it.
    async fn tell_waiting(&self, id: &TaskId) -> Result<(), StoreError> {
        let waits = |task: &Task| matches!(task.life.state, State::New { .. } | State::Scheduled);
        if let Some((task, _)) = self.store().task(id).await?.filter(|(task, _)| waits(task)) {
            self.node().changes.moved(task, self.now());
        }
        self.nudge();
        Ok(())
    }
}
