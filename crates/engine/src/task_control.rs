//! Operations on tasks and rules: set and lift rules, run a collection, retry, cancel and adopt tasks.

use pointsman_core::store::{
    CollectionRunError, CollectionRunReceipt, IdempotencyKey, NewCollectionRun, StoreError, TaskFilter,
};
use pointsman_core::task::{Task, TaskCommandError, TaskState};
use pointsman_core::{HandlerName, Rule, RuleKind, RuleScope, TaskId, Tenant};

use crate::Engine;
use crate::start_gate::Pause;

impl Engine {
    /// Sets a rule. When this returns, no new attempt starts under it: tasks that were claimed before and have not
    /// started are released.
    pub async fn set_rule(&self, rule: Rule) -> Result<(), StoreError> {
        self.store().set_rule(rule.clone()).await?;
        self.node().start_gate.apply_pause(Pause::Rule(rule)).await;
        Ok(())
    }

    /// Lifts a rule; `false` if there was none.
    pub async fn lift_rule(
        &self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> Result<bool, StoreError> {
        let lifted = self.store().lift_rule(kind, scope, tenant).await?;
        self.node().rule_lifted.notify_one();
        self.wake_services();
        Ok(lifted)
    }

    /// Synchronises a collection: returns its queued or running task, or else creates one. A repeat under the same
    /// idempotency key creates no task and returns the first result.
    pub async fn run_collection(
        &self,
        run: NewCollectionRun,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Result<CollectionRunReceipt, CollectionRunError>, StoreError> {
        let result = self.store().run_collection(run, idempotency, self.now()).await?;
        if let Ok(CollectionRunReceipt { task, created: true, repeated: false }) = &result {
            self.notify_waiting_task_and_wake_services(task).await?;
        }
        Ok(result)
    }

    /// Retries a task in `error`.
    pub async fn retry_task(&self, id: &TaskId) -> Result<Result<(), TaskCommandError>, StoreError> {
        let Some((task, _)) = self.store().read_task(id).await? else {
            return Ok(Err(TaskCommandError::NoSuchTask));
        };
        let retried = self.store().retry_tasks(vec![task.seq], self.now()).await?;
        let retried = retried.into_iter().next().unwrap_or(Err(TaskCommandError::NoSuchTask));
        if retried.is_ok() {
            self.notify_waiting_task_and_wake_services(id).await?;
        }
        Ok(retried)
    }

    /// Cancels a task. A running attempt is stopped; a pull worker learns of it with its next request.
    pub async fn cancel_task(&self, id: &TaskId) -> Result<Result<(), TaskCommandError>, StoreError> {
        let cancelled = self.store().cancel_task(id, self.now()).await?;
        if cancelled.is_ok() {
            if let Some((task, _)) = self.store().read_task(id).await? {
                self.node().metrics.count_task_if_ended(&task.handler, task.lifecycle.state.status());
                self.node().task_changes.notify_task_state(task, self.now());
            }
            self.wake_services();
        }
        Ok(cancelled)
    }

    /// Makes a handler's `missing` tasks ready again; returns their number.
    pub async fn adopt_missing_tasks(&self, handler: &HandlerName) -> Result<u64, StoreError> {
        let missing_tasks = self.list_missing_tasks_for_watchers(handler).await?;
        let adopted = self.store().adopt_missing_tasks(handler, self.now()).await?;
        self.wake_services();
        let handler_filter = TaskFilter { handler: Some(handler.clone()), ..TaskFilter::default() };
        self.notify_watchers_of_retried_tasks(&handler_filter, &missing_tasks).await;
        Ok(adopted)
    }

    /// Wakes the services after a change in the store that they did not make, so that attempts that lost their task are
    /// stopped and new work is claimed.
    pub fn wake_services(&self) {
        self.node().attempt_check_requested.notify_one();
        self.node().wake_signals.notify_work();
    }

    /// Notifies watchers that a task waits to be run. A task that runs already, or has ended since, was reported by the
    /// node that ran it.
    async fn notify_waiting_task_and_wake_services(&self, id: &TaskId) -> Result<(), StoreError> {
        let waits =
            |task: &Task| matches!(task.lifecycle.state, TaskState::New { .. } | TaskState::Scheduled);
        if let Some((task, _)) = self.store().read_task(id).await?.filter(|(task, _)| waits(task)) {
            self.node().task_changes.notify_task_state(task, self.now());
        }
        self.wake_services();
        Ok(())
    }
}
