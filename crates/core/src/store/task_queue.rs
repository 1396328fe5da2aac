//! The task queue: scheduling, claiming and finishing attempts, collection runs, rescue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{EmittedEventReceipt, IdempotencyError, IdempotencyKey, NodeId, StoreResult};
use crate::limit::TargetHealth;
use crate::task::{LogLine, TaskCommandError, TaskSeq, TaskSubject};
use crate::{
    EventId, HandlerName, Json, NewEvent, Priority, SourceCollection, TaskId, TaskStatus, Tenant, Timestamp,
};

/// A request of a node or a worker for tasks to run.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The node or worker that claims.
    pub claimant: Claimant,
    /// The handlers that the claimant can run. A node is given no tasks of pull handlers, a worker only those.
    pub handlers: Arc<BTreeSet<HandlerName>>,
    /// The largest number of tasks to claim.
    pub max_tasks: usize,
}

impl ClaimRequest {
    /// Whether a pull worker claims, and not a node.
    pub fn is_by_pull_worker(&self) -> bool {
        matches!(self.claimant, Claimant::PullWorker { .. })
    }
}

/// The node or worker that claims tasks, and how long its lease lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// The lease lasts as long as the node sends heartbeats.
    Node(NodeId),
    /// The lease lasts until a given time, unless it is renewed.
    PullWorker {
        /// When the lease ends.
        lease_until: Timestamp,
        /// Only tasks of this tenant are claimed, if given.
        tenant: Option<Tenant>,
    },
}

/// A task that a node or a worker has leased.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// The task's number in the store.
    pub seq: TaskSeq,
    /// The task's id.
    pub id: TaskId,
    /// The handler to run.
    pub handler: HandlerName,
    /// The event, the collection or the step to handle.
    pub subject: TaskSubject,
    /// The time for which a schedule planned the task.
    pub planned_at: Option<Timestamp>,
    /// The number of this attempt: 1 for the first run.
    pub attempt: u32,
    /// The number of failures after which the task was retried.
    pub retries: u32,
    /// The token of this claim, without which the end of the attempt is refused.
    pub fence: i64,
    /// When a pull worker's lease ends; None if a node claimed the task.
    pub pull_worker_lease_until: Option<Timestamp>,
    /// The previous event of the same object that was delivered to this handler.
    pub prev_sent_event_id: Option<EventId>,
    /// The task runs outside the order of its lane: it was retried by a person, adopted or replayed.
    pub out_of_order: bool,
}

/// The result of a [`ClaimRequest`].
#[derive(Clone, Debug, Default)]
pub struct ClaimResult {
    /// The claimed tasks.
    pub tasks: Vec<ClaimedTask>,
    /// More tasks are ready than this claim could take.
    pub has_more: bool,
    /// The number of tasks created in this transaction that would have been claimed too if the claim had had more
    /// slots.
    pub new_task_count_without_slot: usize,
    /// When the next waiting task is due, or a limit admits the next one.
    pub next_task_due_at: Option<Timestamp>,
}

/// How an attempt ended, with the data of that end.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptResult {
    /// The handler has succeeded.
    Succeeded {
        /// The value that the handler returned.
        result: Option<Json>,
    },
    /// The handler has failed.
    Failed {
        /// The error, as a text for people.
        error: String,
        /// The exit code of a command, the HTTP status, or what a worker reported.
        return_code: i64,
        /// When the target asked to be tried again.
        retry_at: Option<Timestamp>,
        /// The handler said not to retry.
        permanent: bool,
    },
    /// The handler asked to run the task again later.
    Snoozed {
        /// When the task runs again.
        until: Timestamp,
    },
    /// A node that stops gave the task back unfinished.
    Released,
}

/// The end of an attempt with everything that commits together with it.
#[derive(Clone, Debug)]
pub struct FinishedAttempt {
    /// The task.
    pub task_seq: TaskSeq,
    /// The token of the attempt's claim.
    pub fence: i64,
    /// How the attempt ended.
    pub result: AttemptResult,
    /// The health of the handler's target, if the attempt reports it.
    pub target_health: Option<TargetHealth>,
    /// The events that the handler emitted; each names its cause.
    pub emitted_events: Vec<NewEvent>,
    /// The last log lines of the attempt.
    pub log_lines: Vec<LogLine>,
}

/// The state of a task after an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishReceipt {
    /// The task's status now.
    pub status: TaskStatus,
    /// When the task will be retried, if it will.
    pub next_attempt_due_at: Option<Timestamp>,
    /// The events that the handler emitted, as they were journaled.
    pub emitted_events: Vec<EmittedEventReceipt>,
}

/// A log line of a running attempt.
#[derive(Clone, Debug)]
pub struct AttemptLogLine {
    /// The task.
    pub task_seq: TaskSeq,
    /// The token of the attempt's claim.
    pub fence: i64,
    /// The line.
    pub line: LogLine,
}

/// A request to synchronise a collection of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCollectionRun {
    /// The source and its collection.
    pub source_collection: SourceCollection,
    /// The collection's configured priority if not given.
    pub priority: Option<Priority>,
}

/// The result of [`TaskQueue::run_collection`]: the task of the collection that is queued or running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionRunReceipt {
    /// The task.
    pub task: TaskId,
    /// This call created the task; otherwise it existed before.
    pub created: bool,
    /// The idempotency key was used before: this is the result of the first request.
    #[serde(skip)]
    pub repeated: bool,
}

/// Why no task was created for a collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectionRunError {
    /// The collection is not defined.
    #[error(transparent)]
    NoSuchCollection(#[from] NoSuchCollection),
    /// The idempotency key was used for another request.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
}

/// The source does not exist, or has no such collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no collection {0}")]
pub struct NoSuchCollection(pub SourceCollection);

/// The options of [`TaskQueue::rescue_tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RescueOptions {
    /// Nodes without a heartbeat for this long are dead.
    pub node_timeout: Duration,
    /// Workers whose leases have expired are dead, if they got the lease at or after this time. Earlier leases may have
    /// expired while no node ran that could have received a renewal.
    pub pull_worker_leases_since: Timestamp,
    /// Whether tasks whose handler is not defined become `missing`.
    pub mark_missing: bool,
}

impl RescueOptions {
    /// The options of a sweep over all leases and all tasks.
    pub fn full_sweep(node_timeout: Duration) -> Self {
        Self { node_timeout, pull_worker_leases_since: Timestamp::MIN, mark_missing: true }
    }
}

/// The tasks that a rescue sweep changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RescueReport {
    /// Tasks taken from dead nodes and workers, and the status of each now.
    pub freed_tasks_with_status: Vec<(TaskId, TaskStatus)>,
    /// The number of tasks that became `missing` because their handler is no longer defined.
    pub marked_missing_count: u64,
}

/// Schedules, claims and finishes tasks.
#[async_trait]
pub trait TaskQueue: Send + Sync {
    /// Schedules tasks ahead of free slots: `new` → `scheduled`, selected fairly, until `max_scheduled` tasks are
    /// scheduled in all. Returns how many are scheduled then.
    async fn schedule_tasks_ahead(&self, max_scheduled: usize, now: Timestamp) -> StoreResult<usize>;

    /// Leases tasks, which become `locked`: scheduled ones first, then ready ones, selected fairly.
    async fn claim_tasks(&self, claim: ClaimRequest, now: Timestamp) -> StoreResult<ClaimResult>;

    /// Ends attempts, and claims further tasks if `claim` is given. Each end is committed with all its effects or not
    /// at all; an end with a stale fence is refused and changes nothing.
    async fn finish_attempts(
        &self,
        attempts: Vec<FinishedAttempt>,
        claim: Option<ClaimRequest>,
        now: Timestamp,
    ) -> StoreResult<(Vec<Result<FinishReceipt, TaskCommandError>>, ClaimResult)>;

    /// Appends lines to the logs of running attempts; returns how many. Lines with a stale fence are dropped.
    async fn append_log_lines(&self, lines: Vec<AttemptLogLine>) -> StoreResult<usize>;

    /// Extends a worker's lease until `until`. A stale fence is refused.
    async fn renew_pull_worker_lease(
        &self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> StoreResult<Result<(), TaskCommandError>>;

    /// Returns the fences of the given attempts, each a task and a fence, that have lost their lease: the task was
    /// cancelled, or claimed again.
    async fn find_lost_attempts(&self, attempts: Vec<(TaskSeq, i64)>) -> StoreResult<Vec<i64>>;

    /// Creates a task for a collection, unless one is queued or running; then returns that one. Concurrent calls create
    /// one task. A repeat under the same idempotency key creates nothing and gets the first result.
    async fn run_collection(
        &self,
        run: NewCollectionRun,
        idempotency: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> StoreResult<Result<CollectionRunReceipt, CollectionRunError>>;

    /// Frees tasks leased by dead nodes and workers, and marks tasks whose handler is no longer defined as `missing`.
    async fn rescue_tasks(&self, sweep: RescueOptions, now: Timestamp) -> StoreResult<RescueReport>;
}
