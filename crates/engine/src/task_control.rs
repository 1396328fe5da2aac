//! What people do to tasks and queues while the node works.

use pointsman_core::store::{Idempotency, NewRun, RunRefused, RunTask, StoreError, TaskFilter};
use pointsman_core::task::{Rejected, State, Task};
use pointsman_core::{HandlerName, Place, Rule, RuleKind, TaskId, Tenant};

use crate::Engine;
use crate::start_gate::Pause;

impl Engine {
    /// Sets a rule. When this answers, no new attempt begins: what was claimed before and has not begun is given
    /// back.
    pub async fn set_rule(&self, rule: Rule) -> Result<(), StoreError> {
        self.store().hold(rule.clone()).await?;
        self.node().start_gate.pause(Pause::Rule(rule)).await;
        Ok(())
    }

    /// Lifts a rule; `false` if there was none.
    pub async fn lift_rule(
        &self,
        kind: RuleKind,
        place: &Place,
        tenant: Option<&Tenant>,
    ) -> Result<bool, StoreError> {
        let lifted = self.store().release(kind, place, tenant).await?;
        self.node().rule_lifted.notify_one();
        self.wake_services();
        Ok(lifted)
    }

    /// Has a collection synchronised: by the task that is queued or running, or else by a new one. A repeat under the
    /// same idempotency key creates none, and gets the first answer.
    pub async fn run_collection(
        &self,
        run: NewRun,
        idempotency: Option<Idempotency>,
    ) -> Result<Result<RunTask, RunRefused>, StoreError> {
        let result = self.store().run(run, idempotency, self.now()).await?;
        if let Ok(RunTask { task, created: true, repeated: false }) = &result {
            self.notify_waiting_task(task).await?;
        }
        Ok(result)
    }

    /// Runs a task in `error` again.
    pub async fn retry_task(&self, id: &TaskId) -> Result<Result<(), Rejected>, StoreError> {
        let Some((task, _)) = self.store().task(id).await? else { return Ok(Err(Rejected::NoSuchTask)) };
        let retried = self.store().retry(vec![task.seq], self.now()).await?;
        let retried = retried.into_iter().next().unwrap_or(Err(Rejected::NoSuchTask));
        if retried.is_ok() {
            self.notify_waiting_task(id).await?;
        }
        Ok(retried)
    }

    /// Ends a task. If it runs, its attempt is cut short; a worker elsewhere is told when it next comes back.
    pub async fn cancel_task(&self, id: &TaskId) -> Result<Result<(), Rejected>, StoreError> {
        let cancelled = self.store().cancel(id, self.now()).await?;
        if cancelled.is_ok() {
            if let Some((task, _)) = self.store().task(id).await? {
                self.node().metrics.count_ended_task(&task.handler, task.life.state.status());
                self.node().task_changes.notify_task_state(task, self.now());
            }
            self.wake_services();
        }
        Ok(cancelled)
    }

    /// Takes up a handler's `missing` tasks; answers how many.
    pub async fn adopt_missing_tasks(&self, handler: &HandlerName) -> Result<u64, StoreError> {
        let missing = self.list_missing_tasks(handler).await?;
        let adopted = self.store().adopt(handler, self.now()).await?;
        self.wake_services();
        let of_handler = TaskFilter { handler: Some(handler.clone()), ..TaskFilter::default() };
        self.notify_retried_tasks(&of_handler, &missing).await;
        Ok(adopted)
    }

    /// Tells the rooms that something was changed in the store past them, so that a running attempt that lost
    /// its task is ended and new work is looked for.
    pub fn wake_services(&self) {
        self.node().attempt_check_requested.notify_one();
        self.node().signals.notify_work();
    }

    /// Tells those who watch that a task waits to be run. One that runs already, or has ended since, has been told
    /// of by whoever ran it.
    async fn notify_waiting_task(&self, id: &TaskId) -> Result<(), StoreError> {
        let waits = |task: &Task| matches!(task.life.state, State::New { .. } | State::Scheduled);
        if let Some((task, _)) = self.store().task(id).await?.filter(|(task, _)| waits(task)) {
            self.node().task_changes.notify_task_state(task, self.now());
        }
        self.wake_services();
        Ok(())
    }
}
