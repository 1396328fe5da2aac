//! Tasks from `new` to their end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{NodeId, Result, Sequenced};
use crate::task::{LogLine, Rejected, TaskSeq};
use crate::{Event, EventId, HandlerName, Json, NewEvent, Status, TaskId, Timestamp};

/// A node asks for work.
#[derive(Clone, Debug)]
pub struct Claim {
    pub node: NodeId,
    /// What this node can run.
    pub handlers: Arc<BTreeSet<HandlerName>>,
    /// How many slots it has free.
    pub max: usize,
}

/// A task that a node now holds.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub seq: TaskSeq,
    pub id: TaskId,
    pub handler: HandlerName,
    pub event: Arc<Event>,
    /// 1 for the first run.
    pub attempt: u32,
    pub retries: u32,
    pub fence: i64,
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
    /// When the next waiting task falls due.
    pub next_due: Option<Timestamp>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Succeeded {
        result: Option<Json>,
    },
    /// `after`: a wait that the target asked for; `last`: the handler said not to try again.
    Failed {
        error: String,
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

/// What a sweep of the rescuer found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rescued {
    /// Tasks taken from nodes that are gone, and where each stands now.
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

    /// Adds lines to the logs of running attempts; lines with a stale fence are dropped.
    async fn log(&self, lines: Vec<NewLogLine>) -> Result<()>;

    /// Frees what nodes held that have not been heard of for `lease`, and parks what has no handler any more.
    async fn rescue(&self, lease: Duration, now: Timestamp) -> Result<Rescued>;
}
