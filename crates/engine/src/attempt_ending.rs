//! The end of an attempt as it is stored, whether a handler or a pull worker ran it.

use std::time::Duration;

use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::event_json::check_result_size;
use pointsman_core::names::check_emittable;
use pointsman_core::store::{AttemptResult, FinishedAttempt};
use pointsman_core::{Cause, NewEvent};

use crate::HandlerOutcome;
use crate::claim_summary::ClaimSummary;
use crate::log_writer::{LogQuota, truncate_line};

/// The shortest snooze of a worker, a command or a target. A snooze costs no retry, so a shorter one would be a tight
/// loop.
pub(crate) const MIN_SNOOZE: Duration = Duration::from_secs(1);

/// An attempt that has ended, and its end as it is stored.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) task: ClaimSummary,
    pub(crate) ending: FinishedAttempt,
}

impl EndedAttempt {
    /// The error of a failed attempt.
    pub(crate) fn error(&self) -> Option<&str> {
        match &self.ending.result {
            AttemptResult::Failed { error, .. } => Some(error),
            AttemptResult::Succeeded { .. } | AttemptResult::Snoozed { .. } | AttemptResult::Released => None,
        }
    }
}

/// The outcome of an attempt whose task is released unfinished, without a retry.
pub(crate) fn released_outcome() -> HandlerOutcome {
    HandlerOutcome { ended: AttemptResult::Released, ..HandlerOutcome::done() }
}

/// Builds the stored end of an attempt: its emits with their cause, or none if it did not succeed, and its log lines up
/// to the quota.
pub(crate) fn build_ending(
    task: &ClaimSummary,
    outcome: HandlerOutcome,
    mut allowance: LogQuota,
) -> FinishedAttempt {
    let (ended, emits) = match outcome.ended {
        AttemptResult::Succeeded { .. } | AttemptResult::Snoozed { .. } => {
            let emits =
                check_attempt_result(task, &outcome.ended).and_then(|()| set_cause(task, outcome.emits));
            match emits {
                Ok(emits) => (outcome.ended, emits),
                Err(error) => {
                    (AttemptResult::Failed { error, return_code: 1, retry_at: None, permanent: true }, vec![])
                }
            }
        }
        AttemptResult::Failed { error, return_code: code, retry_at: after, permanent: last } => (
            AttemptResult::Failed {
                error: truncate_line(error),
                return_code: code,
                retry_at: after,
                permanent: last,
            },
            vec![],
        ),
        AttemptResult::Released => (AttemptResult::Released, vec![]),
    };
    let logs = outcome.logs.into_iter().filter_map(|line| allowance.admit_line(line)).collect();
    FinishedAttempt {
        task: task.seq,
        fence: task.fence,
        result: ended,
        target_health: outcome.target_health,
        emitted_events: emits,
        log_lines: logs,
    }
}

/// Checks the size of the result. A result that is too large fails the attempt without a retry.
fn check_attempt_result(task: &ClaimSummary, ended: &AttemptResult) -> Result<(), String> {
    match ended {
        AttemptResult::Succeeded { result: Some(result) } => {
            check_result_size(result.as_str().len(), task.max_result_bytes)
        }
        _ => Ok(()),
    }
}

/// Sets the cause of each emitted event. An event that may not be emitted fails the attempt without a retry, because a
/// retry would emit it again.
fn set_cause(task: &ClaimSummary, mut emits: Vec<NewEvent>) -> Result<Vec<NewEvent>, String> {
    let depth = task.cause_depth.saturating_add(1);
    if !emits.is_empty() && depth > MAX_CAUSE_DEPTH {
        return Err(format!(
            "event storm: {MAX_CAUSE_DEPTH} events have caused each other up to this one, and it may cause no more"
        ));
    }
    for emit in &emits {
        check_emittable(&emit.kind)
            .map_err(|reserved| format!("the handler's emit was refused: {reserved}"))?;
    }
    for emit in &mut emits {
        emit.cause = Some(Cause { event: task.cause_event_id, task: task.seq, depth });
    }
    Ok(emits)
}
