//! A claimed task without its payload: enough to end it and to notify watchers. So a running task, on this node or
//! at a pull worker, takes little memory here whatever the size of its event.

use pointsman_core::store::ClaimedTask;
use pointsman_core::{EventId, HandlerName, ObjectKey, TaskId, TaskSeq, Tenant};

/// A claimed task without its payload.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedTaskSummary {
    pub(crate) seq: TaskSeq,
    pub(crate) id: TaskId,
    pub(crate) handler: HandlerName,
    pub(crate) tenant: Tenant,
    pub(crate) key: Option<ObjectKey>,
    /// The event that the task handles; `None` for the task of a source or a step.
    pub(crate) event_id: Option<EventId>,
    /// The cause of the events that the task emits: the event that the task handles, or for a step the event that
    /// created its order.
    pub(crate) cause_event_id: Option<EventId>,
    /// The length of the chain of causes up to and including `cause_event_id`.
    pub(crate) cause_depth: u16,
    /// The maximum size of the task's result.
    pub(crate) max_result_bytes: usize,
    pub(crate) attempt: u32,
    pub(crate) fence: i64,
}

impl ClaimedTaskSummary {
    pub(crate) fn from_claimed_task(task: &ClaimedTask) -> Self {
        Self {
            seq: task.seq,
            id: task.id.clone(),
            handler: task.handler.clone(),
            tenant: task.subject.tenant().clone(),
            key: task.subject.key().cloned(),
            event_id: task.subject.event().map(|event| event.id),
            cause_event_id: task.subject.cause_event(),
            cause_depth: task.subject.cause_depth(),
            max_result_bytes: task.subject.max_result_bytes(),
            attempt: task.attempt,
            fence: task.fence,
        }
    }

    /// The type of the task's event, or the collection that its source runs: the middle part of the task id.
    pub(crate) fn subject_name(&self) -> &str {
        let prefix = self.id.as_str().rsplit_once('_').map_or("", |(prefix, _uuid)| prefix);
        prefix.strip_prefix(self.handler.as_str()).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointsman_core::task::TaskIdNamespace;

    #[test]
    fn subject_name_is_parsed_from_the_task_id() {
        let id = TaskId::new("in_dex_a", "a_b.c_d", TaskIdNamespace(1).uuid_of_seq(TaskSeq(9)));
        let summary = ClaimedTaskSummary {
            seq: TaskSeq(9),
            id,
            handler: HandlerName::new("in_dex_a").unwrap(),
            tenant: Tenant::default(),
            key: None,
            event_id: None,
            cause_event_id: None,
            cause_depth: 0,
            max_result_bytes: 0,
            attempt: 1,
            fence: 1,
        };
        assert_eq!(summary.subject_name(), "a_b.c_d");
        assert_eq!(ClaimedTaskSummary { id: TaskId::from_text("nonsense"), ..summary }.subject_name(), "");
    }
}
