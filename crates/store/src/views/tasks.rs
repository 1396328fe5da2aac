//! Builds the views of tasks, and pages of them, from rows that a store has read.

use std::time::Duration;

use pointsman_core::journal::JournalRange;
use pointsman_core::store::{TaskFilter, TaskPage};
use pointsman_core::task::{
    AttemptOutcome, AttemptRecord, ErrorReason, QueueSubject, Task, TaskIdNamespace, TaskSeq, TaskStatus,
};
use pointsman_core::{HandlerName, Json, ObjectKey, Priority, TaskId, Tenant, Timestamp};

use super::MAX_SCANNED_ROWS_PER_PAGE;
use crate::error::{Fault, TableResult};
use crate::row::{ActiveTaskRow, ArchivedTaskRow};

/// Most bytes of a log in one page.
pub const MAX_LOG_PAGE_BYTES: usize = 1 << 20;

/// Values that the view of an unfinished task needs beyond its row.
#[derive(Clone, Debug)]
pub struct ActiveTaskDetails {
    pub handler: HandlerName,
    pub tenant: Tenant,
    /// The event's type, the source's collection, or the chain node of the step.
    pub subject_name: String,
    pub key: Option<String>,
    /// When its last attempt ended; needed only for a task that [`is_halted_or_missing`].
    pub last_attempt_ended_at: Option<Timestamp>,
}

impl ActiveTaskDetails {
    /// Derives the subject's name and the key: from the event's type and key, from the queue's collection, or from its
    /// chain node and the key of the order.
    pub fn new(
        (handler, tenant): (HandlerName, Tenant),
        subject: &QueueSubject,
        event_type_and_key: Option<(String, Option<String>)>,
        order_key: Option<String>,
    ) -> Self {
        let (subject_name, key) = match (event_type_and_key, subject) {
            (Some(type_and_key), _) => type_and_key,
            (None, QueueSubject::ChainNode { node, .. }) => (node.to_string(), order_key),
            (None, QueueSubject::Events | QueueSubject::Collection(_)) => (subject.to_text(), None),
        };
        Self { handler, tenant, subject_name, key, last_attempt_ended_at: None }
    }
}

/// Returns whether an unfinished task will have no further attempt by itself: it blocks its lane in `error`, or its
/// handler is missing.
pub fn is_halted_or_missing(task_row: &ActiveTaskRow) -> bool {
    matches!(task_row.lifecycle.state.status(), TaskStatus::Error | TaskStatus::Missing)
}

/// Builds the view of an unfinished task, without its attempts.
pub fn task_from_active_row(
    task_row: ActiveTaskRow,
    details: ActiveTaskDetails,
    task_id_namespace: TaskIdNamespace,
) -> TableResult<Task> {
    let is_ended = is_halted_or_missing(&task_row);
    Ok(Task {
        id: TaskId::new(
            details.handler.as_str(),
            &details.subject_name,
            task_id_namespace.uuid_of_seq(task_row.seq),
        ),
        seq: task_row.seq,
        handler: details.handler,
        tenant: details.tenant,
        subject_name: details.subject_name.into(),
        key: details.key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event_id: task_row.event,
        priority: Priority::try_from(task_row.priority).map_err(Fault::damaged)?,
        lifecycle: task_row.lifecycle,
        planned_at: task_row.planned_at,
        created_at: task_row.created_at,
        started_at: task_row.started_at,
        finished_at: details.last_attempt_ended_at.filter(|_| is_ended),
        error: task_row.error,
        result: None,
        attempts: Vec::new(),
    })
}

/// Builds the view of an archived task, without its attempts.
pub fn task_from_archived_row(
    archived_row: ArchivedTaskRow,
    handler: HandlerName,
    tenant: Tenant,
    task_id_namespace: TaskIdNamespace,
) -> TableResult<Task> {
    Ok(Task {
        id: TaskId::new(
            handler.as_str(),
            &archived_row.subject_name,
            task_id_namespace.uuid_of_seq(archived_row.seq),
        ),
        seq: archived_row.seq,
        handler,
        tenant,
        subject_name: archived_row.subject_name.into(),
        key: archived_row.key.map(ObjectKey::new).transpose().map_err(Fault::damaged)?,
        event_id: archived_row.event,
        priority: Priority::try_from(archived_row.priority).map_err(Fault::damaged)?,
        lifecycle: archived_row.lifecycle,
        planned_at: archived_row.planned_at,
        created_at: archived_row.created_at,
        started_at: archived_row.started_at,
        finished_at: Some(archived_row.finished_at),
        error: archived_row.error,
        result: archived_row.result.map(Json::from_trusted),
        attempts: Vec::new(),
    })
}

/// Adds the successful attempt, which is recorded in the task itself, to the recorded attempts.
pub fn append_successful_attempt(task: &Task, mut attempts: Vec<AttemptRecord>) -> Vec<AttemptRecord> {
    if let (TaskStatus::Done, Some(started_at), Some(ended_at)) =
        (task.lifecycle.state.status(), task.started_at, task.finished_at)
    {
        let number = task.lifecycle.attempt;
        attempts.push(AttemptRecord {
            number,
            started_at,
            ended_at,
            outcome: AttemptOutcome::Succeeded,
            error: None,
        });
    }
    attempts
}

/// Which unfinished tasks a list scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveRowFilter {
    All,
    /// Locked tasks.
    Running,
    /// Halted or missing tasks.
    HaltedOrMissing,
}

/// Which archived tasks a list scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchivedRowFilter {
    All,
    None,
    /// Tasks without an event and without a key.
    CollectionRuns,
    Failed,
}

/// Chooses the rows that a list scans, so that few are scanned in vain: rare kinds (failures, runs of sources, running
/// tasks) have an index. `is_source_handler`: the requested handler is a source and nothing else.
pub fn choose_row_filters(
    filter: &TaskFilter,
    is_source_handler: bool,
) -> (ActiveRowFilter, ArchivedRowFilter) {
    use TaskStatus::{Done, Error, Locked, Missing, New, Scheduled};
    let only = |wanted: &[TaskStatus]| {
        !filter.statuses.is_empty() && filter.statuses.iter().all(|status| wanted.contains(status))
    };
    let active_filter = if only(&[Locked]) {
        ActiveRowFilter::Running
    } else if only(&[Done, Error, Missing]) {
        ActiveRowFilter::HaltedOrMissing
    } else {
        ActiveRowFilter::All
    };
    let archived_filter = if only(&[New, Scheduled, Locked, Missing]) {
        ArchivedRowFilter::None
    } else if is_source_handler {
        ArchivedRowFilter::CollectionRuns
    } else if only(&[Error, Missing, New, Scheduled, Locked]) {
        ArchivedRowFilter::Failed
    } else {
        ArchivedRowFilter::All
    };
    (active_filter, archived_filter)
}

/// Builds a page of tasks from the tasks that a reader passes to it, the newest first.
#[derive(Debug)]
pub struct TaskPageBuilder<'f> {
    filter: &'f TaskFilter,
    limit: usize,
    page: TaskPage,
    scanned_rows: usize,
    last_scanned: Option<TaskSeq>,
}

impl<'f> TaskPageBuilder<'f> {
    pub fn new(filter: &'f TaskFilter, limit: usize, journal_range: JournalRange) -> Self {
        let page = TaskPage { tasks: Vec::new(), next_cursor: None, journal_range };
        Self { filter, limit, page, scanned_rows: 0, last_scanned: None }
    }

    /// Adds the next task to the page if it matches the filter; returns whether the reader is to pass further tasks.
    pub fn scan_task(&mut self, task: Task) -> bool {
        if self.filter.created_from.is_some_and(|start| are_task_and_older_created_before(start, &task)) {
            return false;
        }
        self.scanned_rows += 1;
        let seq = task.seq;
        if task_matches_filter(self.filter, &task) {
            self.page.tasks.push(task);
        }
        let is_full = self.page.tasks.len() >= self.limit || self.scanned_rows >= MAX_SCANNED_ROWS_PER_PAGE;
        if is_full {
            self.last_scanned = Some(seq);
        }
        !is_full
    }

    /// Returns the page. `has_more_rows`: there are rows after the last scanned one.
    pub fn into_page(mut self, has_more_rows: bool) -> TaskPage {
        self.page.next_cursor = self.last_scanned.filter(|_| has_more_rows);
        self.page
    }
}

/// Builds a page from a few tasks that are in any order: filters, sorts and truncates them.
pub fn build_page_of_unsorted_tasks(
    mut tasks: Vec<Task>,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
    journal_range: JournalRange,
) -> TaskPage {
    tasks.retain(|task| before.is_none_or(|before| task.seq < before) && task_matches_filter(filter, task));
    tasks.sort_by_key(|task| std::cmp::Reverse(task.seq));
    let next = tasks.get(limit.max(1) - 1).filter(|_| tasks.len() > limit).map(|task| task.seq);
    tasks.truncate(limit);
    TaskPage { tasks, next_cursor: next, journal_range }
}

/// Returns whether a task and all tasks with smaller numbers were created before `start`. Event ids ascend even if the
/// clock steps back; if the clock jumps ahead they lag, and the creation time decides. An event id has millisecond
/// resolution. For a task without an event, a margin for clock skew applies.
pub fn are_task_and_older_created_before(start: Timestamp, task: &Task) -> bool {
    match task.event_id {
        Some(event) => {
            let journaled = event.timestamp().plus(Duration::from_millis(1));
            journaled <= start && task.created_at < start && !task.lifecycle.out_of_order
        }
        None => task.created_at.plus(CLOCK_SKEW_MARGIN) <= start,
    }
}

/// How far the creation times of tasks from different nodes may be out of order.
const CLOCK_SKEW_MARGIN: Duration = Duration::from_secs(24 * 3600);

/// Returns whether a task matches a filter.
pub fn task_matches_filter(filter: &TaskFilter, task: &Task) -> bool {
    let matches_reason =
        |reason: ErrorReason| filter.error_reasons.is_empty() || filter.error_reasons.contains(&reason);
    (filter.statuses.is_empty() || filter.statuses.contains(&task.lifecycle.state.status()))
        && task.lifecycle.state.error_reason().is_none_or(matches_reason)
        && filter.handler.as_ref().is_none_or(|handler| task.handler == *handler)
        && filter.subject_name.as_ref().is_none_or(|name| *task.subject_name == **name)
        && filter.tenant.as_ref().is_none_or(|tenant| task.tenant == *tenant)
        && filter.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
        && filter.created_from.is_none_or(|start| task.created_at >= start)
        && filter.created_before.is_none_or(|end| task.created_at < end)
}
