//! How a task lives.
//!
//! ```text
//!            schedule          lock               succeed
//!   ┌────▶ new ─────▶ scheduled ─────▶ locked ─────────────▶ done
//!   │       ▲ ▲  ◀─────────┘             │ │ │
//!   │       │ │  unschedule              │ │ └─ fail (retries used up), expire (crashes used up) ─▶ error
//!   │       │ └── fail, snooze, release, ┘ │                                                         │
//!   │       │     expire                   └─ lose ─▶ missing                                        │
//!   │       └──────────── adopt ──────────────────────────┘                                          │
//!   └──────────── retry (a person) ──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`transition`] is the only place that decides. It is pure: the state, a command and the time go in; the
//! next state and the effects to be carried out in the same transaction come out. Stores interpret effects;
//! they never decide.

use serde::{Deserialize, Serialize};

use super::{Status, TaskSeq};
use crate::{HandlerDef, LaneFailure, Timestamp};

/// Who runs a task, and the token that fences the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub node: i64,
    /// Larger than that of every earlier claim in the store.
    pub fence: i64,
    pub since: Timestamp,
    /// When it runs out unless it is renewed. None: it holds as long as its node lives.
    pub until: Option<Timestamp>,
}

/// Why a task ended in `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// Retries used up, or the handler said not to try again.
    Failed,
    /// Too many nodes died running it.
    Crashed,
    /// A person ended it.
    Canceled,
}

/// Where a task stands. Each state owns what only it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    New {
        due: Timestamp,
    },
    Scheduled,
    Locked(Lease),
    Done,
    Error {
        reason: EndReason,
        /// It still holds its lane, until a person retries or drops it.
        halts: bool,
    },
    Missing {
        /// When it would have fallen due.
        due: Timestamp,
    },
}

impl State {
    pub fn status(&self) -> Status {
        match self {
            Self::New { .. } => Status::New,
            Self::Scheduled => Status::Scheduled,
            Self::Locked(_) => Status::Locked,
            Self::Done => Status::Done,
            Self::Error { .. } => Status::Error,
            Self::Missing { .. } => Status::Missing,
        }
    }

    pub fn reason(&self) -> Option<EndReason> {
        match self {
            Self::Error { reason, .. } => Some(*reason),
            Self::New { .. } | Self::Scheduled | Self::Locked(_) | Self::Done | Self::Missing { .. } => None,
        }
    }
}

/// A task's state and what it has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    pub state: State,
    /// How often it was claimed.
    pub attempt: u32,
    /// How many failures it has been forgiven.
    pub retries: u32,
    /// How many nodes died running it.
    pub crashes: u32,
    /// It lost its place in the order: retried by a person after it was parked, adopted, or replayed.
    pub late: bool,
    /// It belongs in a lane, whether it stands there now or not.
    pub laned: bool,
    /// It stands in its lane, and those behind it wait for it. One that is lost or ended does not.
    pub ordered: bool,
}

impl Life {
    pub fn beginning(due: Timestamp, laned: bool) -> Self {
        let state = State::New { due };
        Self { state, attempt: 0, retries: 0, crashes: 0, late: false, laned, ordered: laned }
    }

    /// The beginning of a task that comes after its time: a replay.
    pub fn late(due: Timestamp, laned: bool) -> Self {
        Self { late: true, ..Self::beginning(due, laned) }
    }
}

/// What can be done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The scheduler picks it for one of the next free slots.
    Schedule,
    /// A rule takes it back.
    Unschedule,
    /// A worker claims it. From `new` this is scheduling and locking in one step.
    Lock(Lease),
    Succeed {
        fence: i64,
    },
    /// `after`: a wait that the target asked for; `last`: the handler said not to try again.
    Fail {
        fence: i64,
        after: Option<Timestamp>,
        last: bool,
    },
    Snooze {
        fence: i64,
        until: Timestamp,
    },
    /// The node gives it back unfinished: a drain, a deploy.
    Release {
        fence: i64,
    },
    /// The worker that holds it is still at it.
    Renew {
        fence: i64,
        until: Timestamp,
    },
    /// The node or the worker that held it is dead.
    Expire {
        fence: i64,
    },
    /// The handler's definition has gone.
    Lose,
    /// The handler is back, and a person wants its tasks run.
    Adopt,
    /// A person wants it run again.
    Retry,
    /// A person wants it gone.
    Cancel,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptEnd {
    Succeeded,
    Failed,
    Snoozed,
    Released,
    Crashed,
    Canceled,
}

/// What a transition asks the store to do, in the same transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Keep a record of the attempt.
    RecordAttempt(AttemptEnd),
    /// If the task is synchronous, let the event's next ones run.
    OpenGate,
    /// Move the task to the history.
    Archive,
    /// Let the next task of the lane come to its head.
    AdvanceLane,
    /// Take the task back out of the history.
    Restore,
    /// Put it at the end of its lane, if it belongs in one.
    JoinLane,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the task is `{}`, and from there this cannot be done", .0.as_str())]
    WrongState(Status),
    #[error("another attempt holds the task now")]
    StaleFence,
    #[error("no such task")]
    NoSuchTask,
    #[error("the task's event has been forgotten, so that it cannot be run again")]
    Forgotten,
    #[error("it is a step of an order; resume the order to run it again")]
    ResumeItsOrder,
    #[error("another task of its source and collection is queued or running")]
    PairIsBusy,
}

type Outcome = Result<(Life, Vec<Effect>), Rejected>;

/// The one place that decides how a task goes on. Exhaustive, without catch-all arms.
pub fn transition(seq: TaskSeq, life: Life, command: Command, def: &HandlerDef, now: Timestamp) -> Outcome {
    let wrong = Err(Rejected::WrongState(life.state.status()));
    match (life.state, command) {
        (State::New { .. }, Command::Schedule) => Ok((Life { state: State::Scheduled, ..life }, vec![])),
        (State::Scheduled, Command::Unschedule) => {
            Ok((Life { state: State::New { due: now }, ..life }, vec![]))
        }
        (State::New { .. } | State::Scheduled, Command::Lock(lease)) => {
            Ok((Life { state: State::Locked(lease), attempt: life.attempt + 1, ..life }, vec![]))
        }
        (State::New { .. } | State::Scheduled, Command::Lose) => {
            let due = match life.state {
                State::New { due } => due,
                State::Scheduled
                | State::Locked(_)
                | State::Done
                | State::Error { .. }
                | State::Missing { .. } => now,
            };
            let life = Life { state: State::Missing { due }, ordered: false, ..life };
            Ok((life, vec![Effect::OpenGate, Effect::AdvanceLane]))
        }
        (State::New { .. } | State::Scheduled | State::Missing { .. }, Command::Cancel) => {
            Ok(canceled(life, vec![]))
        }
        (State::Locked(_), Command::Cancel) => {
            Ok(canceled(life, vec![Effect::RecordAttempt(AttemptEnd::Canceled)]))
        }
        (State::Locked(lease), command) => locked(seq, life, lease, command, def, now),

        (State::Missing { due }, Command::Adopt) => {
            let life = Life { state: State::New { due }, late: true, ordered: life.laned, ..life };
            Ok((life, vec![Effect::JoinLane]))
        }
        (State::Error { halts, .. }, Command::Retry) => {
            let again = Life { state: State::New { due: now }, retries: 0, crashes: 0, ..life };
            Ok(match halts {
                true => (again, vec![]),
                false => {
                    let late = Life { late: true, ordered: life.laned, ..again };
                    (late, vec![Effect::Restore, Effect::JoinLane])
                }
            })
        }
        (State::Error { halts: true, .. }, Command::Cancel) => Ok(canceled(life, vec![])),

        (
            State::New { .. },
            Command::Unschedule
            | Command::Succeed { .. }
            | Command::Fail { .. }
            | Command::Snooze { .. }
            | Command::Release { .. }
            | Command::Renew { .. }
            | Command::Expire { .. }
            | Command::Adopt
            | Command::Retry,
        )
        | (
            State::Scheduled,
            Command::Schedule
            | Command::Succeed { .. }
            | Command::Fail { .. }
            | Command::Snooze { .. }
            | Command::Release { .. }
            | Command::Renew { .. }
            | Command::Expire { .. }
            | Command::Adopt
            | Command::Retry,
        )
        | (
            State::Done,
            Command::Schedule
            | Command::Unschedule
            | Command::Lock(_)
            | Command::Succeed { .. }
            | Command::Fail { .. }
            | Command::Snooze { .. }
            | Command::Release { .. }
            | Command::Renew { .. }
            | Command::Expire { .. }
            | Command::Lose
            | Command::Adopt
            | Command::Retry
            | Command::Cancel,
        )
        | (
            State::Error { .. },
            Command::Schedule
            | Command::Unschedule
            | Command::Lock(_)
            | Command::Succeed { .. }
            | Command::Fail { .. }
            | Command::Snooze { .. }
            | Command::Release { .. }
            | Command::Renew { .. }
            | Command::Expire { .. }
            | Command::Lose
            | Command::Adopt,
        )
        | (State::Error { halts: false, .. }, Command::Cancel)
        | (
            State::Missing { .. },
            Command::Schedule
            | Command::Unschedule
            | Command::Lock(_)
            | Command::Succeed { .. }
            | Command::Fail { .. }
            | Command::Snooze { .. }
            | Command::Release { .. }
            | Command::Renew { .. }
            | Command::Expire { .. }
            | Command::Lose
            | Command::Retry,
        ) => wrong,
    }
}

/// What happens to a running task. Every end of an attempt carries its fence.
fn locked(
    seq: TaskSeq,
    life: Life,
    lease: Lease,
    command: Command,
    def: &HandlerDef,
    now: Timestamp,
) -> Outcome {
    let fence = match command {
        Command::Succeed { fence }
        | Command::Fail { fence, .. }
        | Command::Snooze { fence, .. }
        | Command::Release { fence }
        | Command::Renew { fence, .. }
        | Command::Expire { fence } => fence,
        Command::Schedule
        | Command::Unschedule
        | Command::Lock(_)
        | Command::Lose
        | Command::Adopt
        | Command::Retry
        | Command::Cancel => return Err(Rejected::WrongState(Status::Locked)),
    };
    if fence != lease.fence {
        return Err(Rejected::StaleFence);
    }
    let again = |due, changed: Life| Life { state: State::New { due }, ..changed };
    Ok(match command {
        Command::Succeed { .. } => (
            Life { state: State::Done, ordered: false, ..life },
            vec![
                Effect::RecordAttempt(AttemptEnd::Succeeded),
                Effect::OpenGate,
                Effect::Archive,
                Effect::AdvanceLane,
            ],
        ),
        Command::Fail { after, last, .. } => {
            if last || life.retries >= def.retry.max {
                errored(life, EndReason::Failed, AttemptEnd::Failed, def)
            } else {
                let retries = life.retries + 1;
                let backoff = now.plus(def.retry.delay(retries, seq.0 as u64));
                let due = after.map_or(backoff, |asked| asked.max(now));
                let effects = vec![Effect::RecordAttempt(AttemptEnd::Failed), Effect::OpenGate];
                (again(due, Life { retries, ..life }), effects)
            }
        }
        Command::Snooze { until, .. } => {
            (again(until.max(now), life), vec![Effect::RecordAttempt(AttemptEnd::Snoozed), Effect::OpenGate])
        }
        Command::Release { .. } => (again(now, life), vec![Effect::RecordAttempt(AttemptEnd::Released)]),
        Command::Renew { until, .. } => {
            let lease = Lease { until: lease.until.map(|_| until), ..lease };
            (Life { state: State::Locked(lease), ..life }, vec![])
        }
        Command::Expire { .. } => {
            let crashes = life.crashes + 1;
            let life = Life { crashes, ..life };
            if crashes >= def.crashes {
                errored(life, EndReason::Crashed, AttemptEnd::Crashed, def)
            } else {
                (again(now, life), vec![Effect::RecordAttempt(AttemptEnd::Crashed), Effect::OpenGate])
            }
        }
        Command::Schedule
        | Command::Unschedule
        | Command::Lock(_)
        | Command::Lose
        | Command::Adopt
        | Command::Retry
        | Command::Cancel => return Err(Rejected::WrongState(Status::Locked)),
    })
}

/// The end in `error`, according to what the lane does then.
fn errored(life: Life, reason: EndReason, end: AttemptEnd, def: &HandlerDef) -> (Life, Vec<Effect>) {
    // A task that stands in no lane holds nobody up.
    let halts = def.on_error == LaneFailure::Halt && life.ordered;
    let mut effects = vec![Effect::RecordAttempt(end), Effect::OpenGate];
    if !halts {
        effects.extend([Effect::Archive, Effect::AdvanceLane]);
    }
    (Life { state: State::Error { reason, halts }, ordered: halts, ..life }, effects)
}

fn canceled(life: Life, mut effects: Vec<Effect>) -> (Life, Vec<Effect>) {
    effects.extend([Effect::OpenGate, Effect::Archive, Effect::AdvanceLane]);
    let state = State::Error { reason: EndReason::Canceled, halts: false };
    (Life { state, ordered: false, ..life }, effects)
}

/// One of each state and one of each command, for tests that walk the whole table.
pub mod table {
    use super::*;

    pub const FENCE: i64 = 7;

    pub fn states(now: Timestamp) -> Vec<State> {
        let lease = Lease { node: 1, fence: FENCE, since: now, until: None };
        vec![
            State::New { due: now },
            State::Scheduled,
            State::Locked(lease),
            State::Done,
            State::Error { reason: EndReason::Failed, halts: false },
            State::Error { reason: EndReason::Failed, halts: true },
            State::Missing { due: now },
        ]
    }

    pub fn commands(now: Timestamp) -> Vec<Command> {
        vec![
            Command::Schedule,
            Command::Unschedule,
            Command::Lock(Lease { node: 1, fence: FENCE + 1, since: now, until: None }),
            Command::Succeed { fence: FENCE },
            Command::Fail { fence: FENCE, after: None, last: false },
            Command::Fail { fence: FENCE, after: None, last: true },
            Command::Snooze { fence: FENCE, until: now },
            Command::Release { fence: FENCE },
            Command::Renew { fence: FENCE, until: now },
            Command::Expire { fence: FENCE },
            Command::Lose,
            Command::Adopt,
            Command::Retry,
            Command::Cancel,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HandlerName;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn def() -> HandlerDef {
        HandlerDef::new(HandlerName::new("h").unwrap())
    }

    fn apply(life: Life, command: Command) -> Outcome {
        transition(TaskSeq(1), life, command, &def(), NOW)
    }

    fn running(retries: u32, crashes: u32) -> Life {
        let lease = Lease { node: 1, fence: 7, since: NOW, until: None };
        let beginning = Life::beginning(NOW, true);
        Life { state: State::Locked(lease), attempt: 1, retries, crashes, ..beginning }
    }

    /// The whole table, drawn: a row a state, a column a command, the status it leads to or `·`.
    #[test]
    fn the_table() {
        let mut drawn = String::new();
        for state in table::states(NOW) {
            let halts = matches!(state, State::Error { halts: true, .. });
            drawn.push_str(&format!("{:<10}", if halts { "halted" } else { state.status().as_str() }));
            for command in table::commands(NOW) {
                let life = Life { state, attempt: 1, ..Life::beginning(NOW, true) };
                let cell = apply(life, command).map_or("·", |(life, _)| life.state.status().as_str());
                drawn.push_str(&format!("{cell:<10}"));
            }
            drawn = drawn.trim_end().to_string() + "\n";
        }
        let want = "\
new       scheduled ·         locked    ·         ·         ·         ·         ·         ·         ·         missing   ·         ·         error
scheduled ·         new       locked    ·         ·         ·         ·         ·         ·         ·         missing   ·         ·         error
locked    ·         ·         ·         done      new       error     new       new       locked    new       ·         ·         ·         error
done      ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·
error     ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         new       ·
halted    ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         new       error
missing   ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         ·         new       ·         error
";
        assert_eq!(drawn, want, "\n{drawn}");
    }

    #[test]
    fn three_runs_by_default_then_error() {
        let fail = Command::Fail { fence: 7, after: None, last: false };
        let (life, _) = apply(running(1, 0), fail).unwrap();
        assert_eq!((life.state.status(), life.retries), (Status::New, 2));
        let (life, effects) = apply(running(2, 0), fail).unwrap();
        assert_eq!(life.state, State::Error { reason: EndReason::Failed, halts: false });
        assert!(effects.contains(&Effect::Archive) && effects.contains(&Effect::AdvanceLane));
    }

    #[test]
    fn a_snooze_and_a_release_cost_no_retry() {
        let until = NOW.plus(std::time::Duration::from_secs(300));
        let (life, _) = apply(running(2, 0), Command::Snooze { fence: 7, until }).unwrap();
        assert_eq!((life.state, life.retries), (State::New { due: until }, 2));
        let (life, effects) = apply(running(2, 2), Command::Release { fence: 7 }).unwrap();
        assert_eq!((life.state, life.retries, life.crashes), (State::New { due: NOW }, 2, 2));
        assert!(!effects.contains(&Effect::OpenGate), "a released attempt has not ended");
    }

    #[test]
    fn crashes_have_a_budget_of_their_own() {
        let (life, _) = apply(running(2, 1), Command::Expire { fence: 7 }).unwrap();
        assert_eq!((life.state.status(), life.retries, life.crashes), (Status::New, 2, 2));
        let (life, _) = apply(running(0, 2), Command::Expire { fence: 7 }).unwrap();
        assert_eq!(life.state.reason(), Some(EndReason::Crashed));
    }

    #[test]
    fn a_zombie_is_refused() {
        for command in [
            Command::Succeed { fence: 6 },
            Command::Fail { fence: 6, after: None, last: true },
            Command::Snooze { fence: 8, until: NOW },
            Command::Release { fence: 6 },
            Command::Renew { fence: 6, until: NOW },
            Command::Expire { fence: 6 },
        ] {
            assert_eq!(apply(running(0, 0), command), Err(Rejected::StaleFence), "{command:?}");
        }
    }

    #[test]
    fn a_halted_head_keeps_its_place_and_a_parked_one_comes_late() {
        let halting = HandlerDef { on_error: LaneFailure::Halt, ..def() };
        let fail = Command::Fail { fence: 7, after: None, last: true };
        let (halted, effects) = transition(TaskSeq(1), running(0, 0), fail, &halting, NOW).unwrap();
        assert!(!effects.contains(&Effect::AdvanceLane));
        let (again, _) = apply(halted, Command::Retry).unwrap();
        assert!(!again.late);
        let (parked, _) = apply(running(0, 0), fail).unwrap();
        let (again, effects) = apply(parked, Command::Retry).unwrap();
        assert!(again.late && effects.contains(&Effect::Restore));
        assert!(again.ordered && effects.contains(&Effect::JoinLane), "and stands in its lane again");
    }

    #[test]
    fn a_workers_lease_is_renewed_and_a_nodes_has_no_end() {
        let (soon, later) =
            (NOW.plus(std::time::Duration::from_secs(60)), NOW.plus(std::time::Duration::from_secs(90)));
        let renew = Command::Renew { fence: 7, until: later };
        let (life, effects) = apply(running(0, 0), renew).unwrap();
        assert_eq!((life, effects), (running(0, 0), vec![]));
        let lease = Lease { node: 0, fence: 7, since: NOW, until: Some(soon) };
        let (life, _) = apply(Life { state: State::Locked(lease), ..running(0, 0) }, renew).unwrap();
        assert_eq!(life.state, State::Locked(Lease { until: Some(later), ..lease }));
    }

    #[test]
    fn a_task_without_a_lane_halts_nothing() {
        let halting = HandlerDef { on_error: LaneFailure::Halt, ..def() };
        let fail = Command::Fail { fence: 7, after: None, last: true };
        let alone = Life { laned: false, ordered: false, ..running(0, 0) };
        let (parked, effects) = transition(TaskSeq(1), alone, fail, &halting, NOW).unwrap();
        assert_eq!(parked.state, State::Error { reason: EndReason::Failed, halts: false });
        assert!(effects.contains(&Effect::Archive));
    }

    #[test]
    fn a_target_may_ask_for_a_longer_wait() {
        let asked = NOW.plus(std::time::Duration::from_secs(3600));
        let (life, _) =
            apply(running(0, 0), Command::Fail { fence: 7, after: Some(asked), last: false }).unwrap();
        assert_eq!(life.state, State::New { due: asked });
    }
}
