//! Explains why a task is not running: the gates that it has to pass, in order, each open or closed, and what closes
//! it.
//!
//! A store reads the [`GateInputs`]; the gates and their texts are computed here, so that all stores give the same
//! explanation.

use serde::{Deserialize, Serialize};

use super::{TaskId, TaskState, TaskStatus};
use crate::limit::{Admission, LimiterAndBreakerState, Limits};
use crate::{HandlerName, Rule, Timestamp};

/// A condition that a task has to meet before it runs: the gate is open if the task meets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The condition that the gate checks.
    #[serde(rename = "gate")]
    pub kind: GateKind,
    /// Whether the task meets the condition.
    pub open: bool,
    /// The check and its result, as a text for people.
    pub detail: String,
    /// When the gate opens by itself, if that is known.
    #[serde(rename = "until")]
    pub opens_at: Option<Timestamp>,
    /// The tasks that keep the gate closed.
    #[serde(rename = "tasks")]
    pub blocking_tasks: Vec<TaskId>,
    /// The rule that keeps the gate closed.
    pub rule: Option<Rule>,
}

/// The condition that a gate checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// The task's handler is defined. Also closed for a task that is still `missing` though its handler is defined
    /// again, and for one that failed for good and halts its lane.
    #[serde(rename = "handler")]
    HandlerDefined,
    /// The event's earlier synchronous tasks have had their first attempt.
    #[serde(rename = "sync")]
    EarlierSyncTasksAttempted,
    /// The task is the first of its lane.
    #[serde(rename = "lane")]
    FirstInLane,
    /// The task's order may continue: it is not suspended, and its chain and node are not stopped.
    #[serde(rename = "order")]
    OrderNotBlocked,
    /// The task's due time has passed.
    #[serde(rename = "due")]
    DueTimePassed,
    /// No rule pauses or blocks the task.
    #[serde(rename = "rule")]
    NoBlockingRule,
    /// The concurrency limit of the task's object is not reached.
    ConcurrencyPerKey,
    /// The concurrency limit of the task's handler is not reached.
    Concurrency,
    /// The rate limit of the task's handler is not used up.
    Rate,
    /// The circuit breaker of the handler's target is not open.
    #[serde(rename = "target")]
    BreakerNotOpen,
    /// A live node has the task's handler; for a pull handler, a worker has claimed its tasks recently. Free slots do
    /// not matter.
    #[serde(rename = "worker")]
    CapableNodeOrWorker,
    /// The task is selected for the next free slot, by fairness and priority.
    #[serde(rename = "turn")]
    SelectedToRunNext,
}

/// The data from which the gates of a waiting task are computed.
#[derive(Clone, Debug)]
pub struct GateInputs {
    /// The task's state.
    pub task_state: TaskState,
    /// The task's handler.
    pub handler: HandlerName,
    /// Whether the handler is registered.
    pub is_handler_defined: bool,
    /// Whether pull workers run the handler.
    pub is_pull_handler: bool,
    /// The synchronous task of the same event for which the task waits.
    pub blocking_sync_task: Option<(TaskId, TaskStatus)>,
    /// The earlier task of the same lane for which the task waits.
    pub blocking_lane_task: Option<(TaskId, TaskStatus)>,
    /// Why the order whose step the task runs may not continue, as a text for people.
    pub order_blocked_because: Option<String>,
    /// The rules that pause or block the task.
    pub blocking_rules: Vec<Rule>,
    /// The limits of the task's handler.
    pub limits: Limits,
    /// The state of the handler's rate limiter and circuit breaker.
    pub limiter: LimiterAndBreakerState,
    /// The number of the handler's running tasks.
    pub running_task_count: u32,
    /// Some of the handler's running tasks.
    pub some_running_tasks: Vec<TaskId>,
    /// The running tasks of the same object, if they use up its concurrency limit.
    pub tasks_that_fill_key_limit: Vec<TaskId>,
    /// The names of the live nodes that can run the task.
    pub capable_node_names: Vec<String>,
    /// When a worker last claimed tasks of this handler.
    pub last_pull_worker_claim_at: Option<Timestamp>,
    /// The number of tasks before this one in its queue, counted up to [`MAX_COUNTED_TASKS_AHEAD`].
    pub task_count_ahead_in_queue: u64,
}

/// The tasks before a waiting one in its queue are counted up to this number.
pub const MAX_COUNTED_TASKS_AHEAD: u64 = 1000;

/// A pull worker that claimed within this many seconds counts as active.
const PULL_WORKER_ACTIVE_SECONDS: u64 = 60;

/// Computes the gates in the order in which a task passes them; none for a task that runs or has ended.
pub fn evaluate_gates(inputs: &GateInputs, now: Timestamp) -> Vec<Gate> {
    match inputs.task_state {
        TaskState::Locked(_) | TaskState::Done => return vec![],
        TaskState::Error { halts_lane: false, .. } => return vec![],
        TaskState::New { .. }
        | TaskState::Scheduled
        | TaskState::Missing { .. }
        | TaskState::Error { .. } => {}
    }
    let mut gates =
        vec![handler_defined_gate(inputs), earlier_sync_tasks_gate(inputs), first_in_lane_gate(inputs)];
    gates.extend(
        inputs.order_blocked_because.iter().map(|why| Gate::new_closed(GateKind::OrderNotBlocked, why)),
    );
    gates.push(due_gate(inputs, now));
    gates.extend(rule_gates(inputs));
    gates.extend(limit_and_breaker_gates(inputs, now));
    gates.push(capable_node_or_worker_gate(inputs, now));
    gates.push(selection_gate(inputs, gates.iter().all(|gate| gate.open)));
    gates
}

impl Gate {
    fn new_open(kind: GateKind, detail: impl Into<String>) -> Self {
        Self { kind, open: true, detail: detail.into(), opens_at: None, blocking_tasks: vec![], rule: None }
    }

    fn new_closed(kind: GateKind, detail: impl Into<String>) -> Self {
        Self { open: false, ..Self::new_open(kind, detail) }
    }
}

fn handler_defined_gate(inputs: &GateInputs) -> Gate {
    let name = &inputs.handler;
    match (inputs.task_state, inputs.is_handler_defined) {
        (TaskState::Error { .. }, _) => Gate::new_closed(
            GateKind::HandlerDefined,
            "it failed for good and halts its lane; retry it, or cancel it so that the lane continues",
        ),
        (TaskState::Missing { .. }, true) => Gate::new_closed(
            GateKind::HandlerDefined,
            format!("{name} was not defined for a while and is defined again; adopt its missing tasks"),
        ),
        (_, true) => Gate::new_open(GateKind::HandlerDefined, format!("{name} is defined")),
        (_, false) => Gate::new_closed(GateKind::HandlerDefined, format!("{name} is not defined")),
    }
}

fn earlier_sync_tasks_gate(inputs: &GateInputs) -> Gate {
    match &inputs.blocking_sync_task {
        None => Gate::new_open(GateKind::EarlierSyncTasksAttempted, "no synchronous handler comes before it"),
        Some((task, status)) => Gate {
            blocking_tasks: vec![task.clone()],
            ..Gate::new_closed(
                GateKind::EarlierSyncTasksAttempted,
                format!(
                    "waits for the first attempt of the synchronous task {task}, which is `{}`",
                    status.as_str()
                ),
            )
        },
    }
}

fn first_in_lane_gate(inputs: &GateInputs) -> Gate {
    match &inputs.blocking_lane_task {
        None => Gate::new_open(GateKind::FirstInLane, "no task of the same object comes before it"),
        Some((task, status)) => Gate {
            blocking_tasks: vec![task.clone()],
            ..Gate::new_closed(
                GateKind::FirstInLane,
                format!("waits for {task} of the same object, which is `{}`", status.as_str()),
            )
        },
    }
}

fn due_gate(inputs: &GateInputs, now: Timestamp) -> Gate {
    match inputs.task_state {
        TaskState::New { due } | TaskState::Missing { due } if due > now => {
            Gate { opens_at: Some(due), ..Gate::new_closed(GateKind::DueTimePassed, format!("due at {due}")) }
        }
        _ => Gate::new_open(GateKind::DueTimePassed, "it is due"),
    }
}

fn rule_gates(inputs: &GateInputs) -> Vec<Gate> {
    if inputs.blocking_rules.is_empty() {
        return vec![Gate::new_open(GateKind::NoBlockingRule, "no rule pauses or blocks it")];
    }
    let gates = inputs.blocking_rules.iter().map(|rule| {
        let why = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
        let detail = format!("a {} by {} since {}{why}", rule.kind.as_str(), rule.set_by, rule.since);
        Gate { rule: Some(rule.clone()), ..Gate::new_closed(GateKind::NoBlockingRule, detail) }
    });
    gates.collect()
}

fn limit_and_breaker_gates(inputs: &GateInputs, now: Timestamp) -> Vec<Gate> {
    let GateInputs { limits, limiter, running_task_count: running_count, .. } = inputs;
    let mut gates = Vec::new();
    if let Some(limit) = limits.concurrency_per_key {
        gates.push(match inputs.tasks_that_fill_key_limit.is_empty() {
            true => Gate::new_open(
                GateKind::ConcurrencyPerKey,
                format!("fewer than {limit} tasks of its object run"),
            ),
            false => Gate {
                blocking_tasks: inputs.tasks_that_fill_key_limit.clone(),
                ..Gate::new_closed(
                    GateKind::ConcurrencyPerKey,
                    format!("{limit} tasks of its object run or are selected"),
                )
            },
        });
    }
    let admission = limiter.admission(limits, *running_count, now);
    gates.push(match (admission, limits.concurrency) {
        (Admission::ConcurrencyFull, _) if limiter.is_breaker_tripped() => Gate {
            blocking_tasks: inputs.some_running_tasks.clone(),
            ..Gate::new_closed(
                GateKind::Concurrency,
                "the circuit breaker is half-open: the target keeps failing, and one task at a time tries it",
            )
        },
        (Admission::ConcurrencyFull, limit) => Gate {
            blocking_tasks: inputs.some_running_tasks.clone(),
            ..Gate::new_closed(
                GateKind::Concurrency,
                format!("{running_count} of at most {} run", limit.unwrap_or(*running_count)),
            )
        },
        (_, Some(limit)) => {
            Gate::new_open(GateKind::Concurrency, format!("{running_count} of at most {limit} run"))
        }
        (_, None) => Gate::new_open(GateKind::Concurrency, "no limit"),
    });
    gates.push(match (admission, limits.rate) {
        (Admission::RateLimited(until), Some(rate)) => Gate {
            opens_at: Some(until),
            ..Gate::new_closed(GateKind::Rate, format!("{rate} is used up; the next may start at {until}"))
        },
        (_, Some(rate)) => Gate::new_open(GateKind::Rate, format!("within {rate}")),
        (_, None) => Gate::new_open(GateKind::Rate, "no limit"),
    });
    gates.extend(breaker_gate(limiter, admission));
    gates
}

/// The gate of the circuit breaker. None if no attempt has reported a failing or busy target: most handlers have none.
fn breaker_gate(limiter: &LimiterAndBreakerState, admission: Admission) -> Option<Gate> {
    let no_reports = LimiterAndBreakerState {
        next_evenly_spaced_start: limiter.next_evenly_spaced_start,
        ..LimiterAndBreakerState::default()
    };
    match admission {
        Admission::BreakerOpen(until) => {
            let why = match limiter.consecutive_failures {
                0 => "the target requested a pause".to_owned(),
                n => format!("the target failed {n} times in a row"),
            };
            let detail = format!("the circuit breaker is open until {until}: {why}");
            Some(Gate { opens_at: Some(until), ..Gate::new_closed(GateKind::BreakerNotOpen, detail) })
        }
        Admission::Admitted(_) | Admission::ConcurrencyFull | Admission::RateLimited(_) => (*limiter
            != no_reports)
            .then(|| Gate::new_open(GateKind::BreakerNotOpen, "the circuit breaker is not open")),
    }
}

fn capable_node_or_worker_gate(inputs: &GateInputs, now: Timestamp) -> Gate {
    let name = &inputs.handler;
    if inputs.is_pull_handler {
        return match inputs.last_pull_worker_claim_at {
            Some(at) if now.duration_since(at).as_secs() <= PULL_WORKER_ACTIVE_SECONDS => Gate::new_open(
                GateKind::CapableNodeOrWorker,
                format!("a worker last claimed tasks of {name} at {at}"),
            ),
            Some(at) => Gate::new_closed(
                GateKind::CapableNodeOrWorker,
                format!("no worker has claimed tasks of {name} since {at}; start one"),
            ),
            None => Gate::new_closed(
                GateKind::CapableNodeOrWorker,
                format!("no worker has claimed tasks of {name} yet; start one"),
            ),
        };
    }
    match inputs.capable_node_names.is_empty() {
        true => Gate::new_closed(GateKind::CapableNodeOrWorker, format!("no live node can run {name}")),
        false => Gate::new_open(
            GateKind::CapableNodeOrWorker,
            format!("{} can run it", inputs.capable_node_names.join(", ")),
        ),
    }
}

fn selection_gate(inputs: &GateInputs, other_gates_open: bool) -> Gate {
    let tasks_ahead = match inputs.task_count_ahead_in_queue {
        0 => "it is the next of its queue".to_owned(),
        1 => "one task of its queue comes before it".to_owned(),
        MAX_COUNTED_TASKS_AHEAD => {
            format!("{MAX_COUNTED_TASKS_AHEAD} tasks of its queue or more come before it")
        }
        n => format!("{n} tasks of its queue come before it"),
    };
    match (inputs.task_state, other_gates_open) {
        (TaskState::Scheduled, _) => {
            Gate::new_open(GateKind::SelectedToRunNext, "it is selected for the next free slot")
        }
        (_, true) if inputs.is_pull_handler => Gate::new_closed(
            GateKind::SelectedToRunNext,
            format!("waits for a worker to take it; {tasks_ahead}"),
        ),
        (_, true) => {
            Gate::new_closed(GateKind::SelectedToRunNext, format!("waits for a free slot; {tasks_ahead}"))
        }
        // Only a task that passes the other gates is selected, so this gate keeps no other task from running.
        (_, false) => {
            Gate::new_open(GateKind::SelectedToRunNext, format!("not evaluated yet; {tasks_ahead}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{RuleKind, RuleScope};

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn inputs_of_ready_task() -> GateInputs {
        GateInputs {
            task_state: TaskState::New { due: NOW },
            handler: HandlerName::new("index").unwrap(),
            is_handler_defined: true,
            is_pull_handler: false,
            blocking_sync_task: None,
            blocking_lane_task: None,
            order_blocked_because: None,
            blocking_rules: vec![],
            limits: Limits::default(),
            limiter: LimiterAndBreakerState::default(),
            running_task_count: 0,
            some_running_tasks: vec![],
            tasks_that_fill_key_limit: vec![],
            capable_node_names: vec!["a".into()],
            last_pull_worker_claim_at: None,
            task_count_ahead_in_queue: 0,
        }
    }

    fn kinds_of_closed_gates(inputs: &GateInputs) -> Vec<GateKind> {
        evaluate_gates(inputs, NOW).into_iter().filter(|gate| !gate.open).map(|gate| gate.kind).collect()
    }

    #[test]
    fn a_task_that_passes_the_other_gates_waits_for_selection() {
        assert_eq!(kinds_of_closed_gates(&inputs_of_ready_task()), [GateKind::SelectedToRunNext]);
        assert_eq!(
            kinds_of_closed_gates(&GateInputs { task_state: TaskState::Scheduled, ..inputs_of_ready_task() }),
            []
        );
    }

    #[test]
    fn every_closed_gate_states_what_blocks_the_task() {
        let rule = Rule {
            kind: RuleKind::Pause,
            scope: RuleScope::Handler(inputs_of_ready_task().handler),
            tenant: None,
            set_by: "ops".into(),
            reason: "broken".into(),
            since: NOW,
        };
        let block = Rule { kind: RuleKind::Block, ..rule.clone() };
        let other = TaskId::from_text("index_record_1");
        let due = NOW.plus(Duration::from_secs(60));
        let inputs = GateInputs {
            task_state: TaskState::New { due },
            blocking_lane_task: Some((other.clone(), TaskStatus::Locked)),
            blocking_rules: vec![rule, block],
            limits: Limits { concurrency: Some(1), rate: "1/m".parse().ok(), ..Limits::default() },
            running_task_count: 1,
            some_running_tasks: vec![other.clone()],
            capable_node_names: vec![],
            ..inputs_of_ready_task()
        };
        use GateKind::{CapableNodeOrWorker, Concurrency, DueTimePassed, FirstInLane, NoBlockingRule};
        assert_eq!(
            kinds_of_closed_gates(&inputs),
            [FirstInLane, DueTimePassed, NoBlockingRule, NoBlockingRule, Concurrency, CapableNodeOrWorker]
        );
        let gates = evaluate_gates(&inputs, NOW);
        let find = |kind| gates.iter().find(|gate| gate.kind == kind).unwrap();
        assert_eq!(find(FirstInLane).blocking_tasks, std::slice::from_ref(&other));
        assert_eq!(find(Concurrency).blocking_tasks, [other]);
        assert_eq!(find(DueTimePassed).opens_at, Some(due));
        let rule_detail = &find(NoBlockingRule).detail;
        assert!(rule_detail.contains("ops") && rule_detail.contains("broken"));
    }

    #[test]
    fn the_breaker_gate_exists_only_after_a_failing_or_busy_target_was_reported() {
        let find = |limiter| {
            let gates = evaluate_gates(&GateInputs { limiter, ..inputs_of_ready_task() }, NOW);
            gates.into_iter().find(|gate| gate.kind == GateKind::BreakerNotOpen).map(|gate| gate.open)
        };
        assert_eq!(
            find(LimiterAndBreakerState {
                next_evenly_spaced_start: NOW,
                ..LimiterAndBreakerState::default()
            }),
            None,
            "a rate limit is no report about a target"
        );
        assert_eq!(
            find(LimiterAndBreakerState { consecutive_failures: 1, ..LimiterAndBreakerState::default() }),
            Some(true)
        );
        let until = NOW.plus(Duration::from_secs(60));
        assert_eq!(
            find(LimiterAndBreakerState {
                breaker_open_until: until,
                breaker_opened_at: NOW,
                ..LimiterAndBreakerState::default()
            }),
            Some(false)
        );
    }

    #[test]
    fn ended_and_running_tasks_have_no_gates() {
        let lease = super::super::Lease { node: 1, fence: 1, since: NOW, until: None };
        for task_state in [TaskState::Done, TaskState::Locked(lease)] {
            assert!(evaluate_gates(&GateInputs { task_state, ..inputs_of_ready_task() }, NOW).is_empty());
        }
    }

    #[test]
    fn a_task_of_a_pull_handler_waits_for_a_worker_that_claims() {
        let pulled = GateInputs { is_pull_handler: true, ..inputs_of_ready_task() };
        assert_eq!(kinds_of_closed_gates(&pulled), [GateKind::CapableNodeOrWorker]);
        assert_eq!(
            kinds_of_closed_gates(&GateInputs { last_pull_worker_claim_at: Some(NOW), ..pulled }),
            [GateKind::SelectedToRunNext]
        );
    }
}
