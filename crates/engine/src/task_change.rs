//! Task changes for watchers. They are neither journaled nor durable; the state of a task is in the store.

use std::sync::Arc;

use pointsman_core::store::{ClaimedTask, EmittedEventReceipt, FinishReceipt};
use pointsman_core::task::{ErrorReason, Task, TaskState};
use pointsman_core::{
    EventId, EventType, HandlerName, NewEvent, ObjectKey, TaskId, TaskStatus, Tenant, Timestamp,
};
use tokio::sync::broadcast;

use crate::claimed_task_summary::ClaimedTaskSummary;

/// A task changed its status.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskChange {
    /// The task's id.
    pub id: TaskId,
    /// The handler.
    pub handler: HandlerName,
    /// The tenant.
    pub tenant: Tenant,
    /// The type of the task's event, or the collection that its source synchronises.
    pub subject_name: Arc<str>,
    /// The object that the task's event or order is about.
    pub key: Option<ObjectKey>,
    /// The event of the task; `None` for the task of a source or a step.
    pub event_id: Option<EventId>,
    /// The task's status now.
    pub status: TaskStatus,
    /// Why the task ended in `error`, if not just by a failure.
    pub error_reason: Option<ErrorReason>,
    /// The number of the latest attempt.
    pub attempt: u32,
    /// The error of the latest failed attempt.
    pub error: Option<String>,
    /// When the task will run, or run again; `None` if it does not wait for a time.
    pub due_at: Option<Timestamp>,
    /// When the task changed.
    pub changed_at: Timestamp,
}

/// The number of changes that a receiver may be behind before it misses some.
const TASK_CHANGE_CHANNEL_CAPACITY: usize = 4096;

/// Sends task changes to watchers. Without watchers it does nothing.
#[derive(Debug)]
pub(crate) struct TaskChangeNotifier {
    sender: broadcast::Sender<TaskChange>,
}

impl TaskChangeNotifier {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::Sender::new(TASK_CHANGE_CHANNEL_CAPACITY) }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<TaskChange> {
        self.sender.subscribe()
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Reports the tasks that were created for these events.
    pub(crate) fn notify_tasks_created(
        &self,
        events: &[NewEvent],
        sequenced: &[EmittedEventReceipt],
        at: Timestamp,
    ) {
        if !self.has_subscribers() {
            return;
        }
        for (event, sequenced) in events.iter().zip(sequenced) {
            for id in &sequenced.tasks {
                let Some(handler) = parse_handler_from_task_id(id, &event.event_type) else { continue };
                self.send(TaskChange {
                    id: id.clone(),
                    handler,
                    tenant: event.tenant.clone(),
                    subject_name: event.event_type.as_str().into(),
                    key: event.key.clone(),
                    event_id: Some(sequenced.id),
                    status: TaskStatus::New,
                    error_reason: None,
                    attempt: 0,
                    error: None,
                    due_at: event.due,
                    changed_at: at,
                });
            }
        }
    }

    /// Reports that an attempt starts.
    pub(crate) fn notify_attempt_started(&self, task: &ClaimedTask, at: Timestamp) {
        if self.has_subscribers() {
            self.send(change_from_summary(
                &ClaimedTaskSummary::from_claimed_task(task),
                TaskStatus::Locked,
                at,
            ));
        }
    }

    /// Reports that an attempt has ended.
    pub(crate) fn notify_attempt_finished(
        &self,
        task: &ClaimedTaskSummary,
        finished: &FinishReceipt,
        error: Option<&str>,
        at: Timestamp,
    ) {
        if self.has_subscribers() {
            let error = error.map(Into::into);
            self.send(TaskChange {
                error,
                due_at: finished.next_attempt_due_at,
                ..change_from_summary(task, finished.status, at)
            });
        }
    }

    /// Reports a task that was created for a source, freed from a dead node, or changed by an operator.
    pub(crate) fn notify_task_state(&self, task: Task, at: Timestamp) {
        let due = match task.lifecycle.state {
            TaskState::New { due } => Some(due),
            TaskState::Scheduled
            | TaskState::Locked(_)
            | TaskState::Done
            | TaskState::Error { .. }
            | TaskState::Missing { .. } => None,
        };
        self.send(TaskChange {
            status: task.lifecycle.state.status(),
            error_reason: task.lifecycle.state.error_reason(),
            attempt: task.lifecycle.attempt,
            event_id: task.event_id,
            id: task.id,
            handler: task.handler,
            tenant: task.tenant,
            subject_name: task.subject_name,
            key: task.key,
            error: task.error,
            due_at: due,
            changed_at: at,
        });
    }

    fn send(&self, change: TaskChange) {
        // The last receiver may have been dropped meanwhile.
        let _ = self.sender.send(change);
    }
}

fn change_from_summary(task: &ClaimedTaskSummary, status: TaskStatus, at: Timestamp) -> TaskChange {
    TaskChange {
        id: task.id.clone(),
        handler: task.handler.clone(),
        tenant: task.tenant.clone(),
        subject_name: task.subject_name().into(),
        key: task.key.clone(),
        event_id: task.event_id,
        status,
        error_reason: None,
        attempt: task.attempt,
        error: None,
        due_at: None,
        changed_at: at,
    }
}

/// Parses the handler from a task's id, which has the form `handler_type_uuid`.
fn parse_handler_from_task_id(id: &TaskId, event_type: &EventType) -> Option<HandlerName> {
    let (prefix, _uuid) = id.as_str().rsplit_once('_')?;
    HandlerName::new(prefix.strip_suffix(event_type.as_str())?.strip_suffix('_')?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointsman_core::TaskSeq;
    use pointsman_core::task::TaskIdNamespace;

    #[test]
    fn handler_name_is_parsed_from_the_task_id() {
        let event_type = EventType::new("a_b.c_d").unwrap();
        let id = TaskId::new("in_dex_a", event_type.as_str(), TaskIdNamespace(1).uuid_of_seq(TaskSeq(9)));
        assert_eq!(parse_handler_from_task_id(&id, &event_type).unwrap().as_str(), "in_dex_a");
        assert_eq!(parse_handler_from_task_id(&TaskId::from_text("nonsense"), &event_type), None);
    }
}
