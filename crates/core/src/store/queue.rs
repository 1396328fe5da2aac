//! Tasks from `new` to their end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Idempotency, NodeId, Refused, Result, Sequenced};
use crate::limit::Target;
use crate::task::{LogLine, Rejected, Subject, TaskSeq};
use crate::{EventId, HandlerName, Json, NewEvent, Pair, Priority, Status, TaskId, Tenant, Timestamp};

/// Somebody asks for work.
#[derive(Clone, Debug)]
pub struct Claim {
    pub by: Claimant,
    /// What it can run. A node is given none that are pulled, a worker none that are not.
    pub handlers: Arc<BTreeSet<HandlerName>>,
    /// How many it can take.
    pub max: usize,
}

impl Claim {
    pub fn by_worker(&self) -> bool {
        matches!(self.by, Claimant::Worker { .. })
    }
}

/// Who asks for work, and how long it may keep what it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// As long as the node lives.
    Node(NodeId),
    /// Until then, unless it renews; and only what is this tenant's, if one is named.
    Worker { until: Timestamp, tenant: Option<Tenant> },
}

/// A task that a node or a worker now holds.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub seq: TaskSeq,
    pub id: TaskId,
    pub handler: HandlerName,
    pub subject: Subject,
    /// The time that a schedule planned it for.
    pub planned: Option<Timestamp>,
    /// 1 for the first run.
    pub attempt: u32,
    pub retries: u32,
    pub fence: i64,
    /// When a worker's lease runs out.
    pub until: Option<Timestamp>,
    /// The previous event of the object that this handler was sent.
    pub prev_sent: Option<EventId>,
    /// It runs outside the order of its lane.
    pub late: bool,
}

/// The answer to a claim.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    pub tasks: Vec<Claimed>,
    /// Others are ready that this claim had no room for.
    pub more: bool,
    /// How many tasks were made just now that would have been the next to run, had there been room for them.
    pub turned_away: usize,
    /// When the next waiting task falls due, or a limit lets the next one through.
    pub next_due: Option<Timestamp>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Succeeded {
        result: Option<Json>,
    },
    /// `after`: a wait that the target asked for; `last`: the handler said not to try again; `code`: what it
    /// returned.
    Failed {
        error: String,
        code: i64,
        after: Option<Timestamp>,
        last: bool,
    },
    Snoozed {
        until: Timestamp,
    },
    /// Given back unfinished by a node that stops.
    Released,
}

/// The end of an attempt with all that commits together with it.
#[derive(Clone, Debug)]
pub struct Ending {
    pub task: TaskSeq,
    pub fence: i64,
    pub ended: Ended,
    /// How the target behind the handler fares, if the attempt tells.
    pub target: Option<Target>,
    /// Emitted by the handler; each names its cause.
    pub emits: Vec<NewEvent>,
    pub logs: Vec<LogLine>,
}

/// Where a task stands after an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub status: Status,
    /// When it will be tried again.
    pub due: Option<Timestamp>,
    pub emitted: Vec<Sequenced>,
}

/// A log line of a running attempt.
#[derive(Clone, Debug)]
pub struct NewLogLine {
    pub task: TaskSeq,
    pub fence: i64,
    pub line: LogLine,
}

/// A source's collection is to be synchronised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub pair: Pair,
    /// The collection's own if not given.
    pub priority: Option<Priority>,
}

/// The task of a pair that is queued or running now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTask {
    pub task: TaskId,
    /// It was made by this call; otherwise it was there before.
    pub created: bool,
    /// The idempotency key was used before: this is the answer it got then.
    #[serde(skip)]
    pub repeated: bool,
}

/// Why no task was created for a pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefused {
    #[error(transparent)]
    NoSuchPair(#[from] NoSuchPair),
    #[error(transparent)]
    Idempotency(#[from] Refused),
}

/// There is no such source, or it has no such collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no collection {0}")]
pub struct NoSuchPair(pub Pair);

/// What a sweep of the rescuer looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Nodes that have not been heard of for so long are dead.
    pub silence: Duration,
    /// Workers are dead whose leases have run out, if they got them since then. Those that got theirs before a start
    /// could not be heard for a while.
    pub workers_since: Timestamp,
    /// Tasks without a handler are parked.
    pub missing: bool,
}

impl Sweep {
    /// For everything there is.
    pub fn whole(silence: Duration) -> Self {
        Self { silence, workers_since: Timestamp::MIN, missing: true }
    }
}

/// What a sweep of the rescuer found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rescued {
    /// Tasks taken from nodes and workers that are gone, and where each stands now.
    pub tasks: Vec<(TaskId, Status)>,
    /// Tasks parked as `missing` because their handler is no longer defined.
    pub missing: u64,
}

#[async_trait]
pub trait Queue: Send + Sync {
    /// `new` → `scheduled` for up to `ahead` tasks in all, chosen fairly: the look-ahead for slots that will
    /// soon be free. Answers how many stand scheduled.
    async fn schedule(&self, ahead: usize, now: Timestamp) -> Result<usize>;

    /// → `locked`: what is scheduled first, then what is ready, chosen fairly.
    async fn claim(&self, claim: Claim, now: Timestamp) -> Result<Claims>;

    /// Ends attempts. Each with its effects is all or nothing; a stale fence is refused and changes nothing.
    async fn finish(
        &self,
        endings: Vec<Ending>,
        claim: Option<Claim>,
        now: Timestamp,
    ) -> Result<(Vec<std::result::Result<Finished, Rejected>>, Claims)>;

    /// Adds lines to the logs of running attempts; answers how many. Lines with a stale fence are dropped.
    async fn log(&self, lines: Vec<NewLogLine>) -> Result<usize>;

    /// A worker is still at it: its lease runs until then. A stale fence is refused.
    async fn renew(
        &self,
        task: TaskSeq,
        fence: i64,
        until: Timestamp,
    ) -> Result<std::result::Result<(), Rejected>>;

    /// Of attempts, each a task and a fence, the fences of those that no longer hold their task: it was cancelled, or
    /// given to another.
    async fn lost(&self, held: Vec<(TaskSeq, i64)>) -> Result<Vec<i64>>;

    /// Makes a task for a pair, unless one is queued or running; then answers that one. Whatever races, there is
    /// one. A repeat under the same idempotency key creates nothing and gets the first answer.
    async fn run(
        &self,
        run: NewRun,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<std::result::Result<RunTask, RunRefused>>;

    /// Frees what the dead held, and parks what has no handler any more.
    async fn rescue(&self, sweep: Sweep, now: Timestamp) -> Result<Rescued>;
}
