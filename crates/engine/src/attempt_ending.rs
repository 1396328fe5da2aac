//! The end of an attempt as it is stored, whether a handler or a pull worker ran it.

use std::time::Duration;

use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::event_json_parser::check_result_size;
use pointsman_core::names::check_emittable_type;
use pointsman_core::store::{AttemptResult, FinishedAttempt};
use pointsman_core::{Cause, NewEvent};

use crate::HandlerOutcome;
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::{LogQuota, truncate_line};

/// The shortest snooze that a pull worker, a command or an HTTP target may request. A snooze costs no retry, so a
/// shorter one would be a tight loop.
pub(crate) const MIN_SNOOZE: Duration = Duration::from_secs(1);

/// An attempt that has ended: its task, and its end as it is stored.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) task_summary: ClaimedTaskSummary,
    pub(crate) finished_attempt: FinishedAttempt,
}

impl EndedAttempt {
    /// Returns the error message of a failed attempt; `None` for any other result.
    pub(crate) fn error(&self) -> Option<&str> {
        match &self.finished_attempt.result {
            AttemptResult::Failed { error, .. } => Some(error),
            AttemptResult::Succeeded { .. } | AttemptResult::Snoozed { .. } | AttemptResult::Released => None,
        }
    }
}

/// The outcome of an attempt whose task is released unfinished, without a retry.
pub(crate) fn released_outcome() -> HandlerOutcome {
    HandlerOutcome { result: AttemptResult::Released, ..HandlerOutcome::succeeded() }
}

/// Builds the stored end of an attempt: its emits with their cause, or none if it did not succeed, and its log lines up
/// to the quota.
pub(crate) fn build_finished_attempt(
    task: &ClaimedTaskSummary,
    outcome: HandlerOutcome,
    mut log_quota: LogQuota,
) -> FinishedAttempt {
    let (result, emits) = match outcome.result {
        AttemptResult::Succeeded { .. } | AttemptResult::Snoozed { .. } => {
            let emits = check_result_within_limit(task, &outcome.result)
                .and_then(|()| check_emits_and_set_cause(task, outcome.emitted_events));
            match emits {
                Ok(emits) => (outcome.result, emits),
                Err(error) => {
                    (AttemptResult::Failed { error, return_code: 1, retry_at: None, permanent: true }, vec![])
                }
            }
        }
        AttemptResult::Failed { error, return_code, retry_at, permanent } => {
            (AttemptResult::Failed { error: truncate_line(error), return_code, retry_at, permanent }, vec![])
        }
        AttemptResult::Released => (AttemptResult::Released, vec![]),
    };
    let logs = outcome.log_lines.into_iter().filter_map(|line| log_quota.admit_line(line)).collect();
    FinishedAttempt {
        task_seq: task.seq,
        fence: task.fence,
        result,
        target_health: outcome.target_health,
        emitted_events: emits,
        log_lines: logs,
    }
}

/// Checks the size of the result. A result that is too large fails the attempt without a retry.
fn check_result_within_limit(task: &ClaimedTaskSummary, result: &AttemptResult) -> Result<(), String> {
    match result {
        AttemptResult::Succeeded { result: Some(result) } => {
            check_result_size(result.as_str().len(), task.max_result_bytes)
        }
        _ => Ok(()),
    }
}

/// Checks the emitted events and sets their cause. An event that may not be emitted fails the attempt without a retry,
/// because a retry would emit it again.
fn check_emits_and_set_cause(
    task: &ClaimedTaskSummary,
    mut emits: Vec<NewEvent>,
) -> Result<Vec<NewEvent>, String> {
    let depth = task.cause_depth.saturating_add(1);
    if !emits.is_empty() && depth > MAX_CAUSE_DEPTH {
        return Err(format!(
            "event storm: the chain of causes has {MAX_CAUSE_DEPTH} events, so this attempt may not emit"
        ));
    }
    for emit in &emits {
        check_emittable_type(&emit.event_type)
            .map_err(|reserved| format!("the handler's emit was refused: {reserved}"))?;
    }
    for emit in &mut emits {
        emit.cause = Some(Cause { event: task.cause_event_id, task: task.seq, depth });
    }
    Ok(emits)
}
