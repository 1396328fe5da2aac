//! The end of an attempt as it is stored, whether a handler or a pull worker ran it.

use std::time::Duration;

use pointsman_core::event::MAX_DEPTH;
use pointsman_core::names::check_emittable;
use pointsman_core::store::{Ended, Ending};
use pointsman_core::wire::check_result;
use pointsman_core::{Cause, NewEvent};

use crate::AttemptOutcome;
use crate::claim_summary::ClaimSummary;
use crate::log_writer::{LogQuota, truncate_line};

/// The shortest snooze of a worker, a command or a target. A snooze costs no retry, so a shorter one would be a tight
/// loop.
pub(crate) const MIN_SNOOZE: Duration = Duration::from_secs(1);

/// An attempt that has ended, and its end as it is stored.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) task: ClaimSummary,
    pub(crate) ending: Ending,
}

impl EndedAttempt {
    /// The error of a failed attempt.
    pub(crate) fn error(&self) -> Option<&str> {
        match &self.ending.ended {
            Ended::Failed { error, .. } => Some(error),
            Ended::Succeeded { .. } | Ended::Snoozed { .. } | Ended::Released => None,
        }
    }
}

/// The outcome of an attempt whose task is released unfinished, without a retry.
pub(crate) fn released_outcome() -> AttemptOutcome {
    AttemptOutcome { ended: Ended::Released, ..AttemptOutcome::done() }
}

/// Builds the stored end of an attempt: its emits with their cause, or none if it did not succeed, and its log lines up
/// to the quota.
pub(crate) fn build_ending(task: &ClaimSummary, outcome: AttemptOutcome, mut allowance: LogQuota) -> Ending {
    let (ended, emits) = match outcome.ended {
        Ended::Succeeded { .. } | Ended::Snoozed { .. } => {
            let emits = check_result_size(task, &outcome.ended).and_then(|()| set_cause(task, outcome.emits));
            match emits {
                Ok(emits) => (outcome.ended, emits),
                Err(error) => (Ended::Failed { error, code: 1, after: None, last: true }, vec![]),
            }
        }
        Ended::Failed { error, code, after, last } => {
            (Ended::Failed { error: truncate_line(error), code, after, last }, vec![])
        }
        Ended::Released => (Ended::Released, vec![]),
    };
    let logs = outcome.logs.into_iter().filter_map(|line| allowance.admit_line(line)).collect();
    Ending { task: task.seq, fence: task.fence, ended, target: outcome.target_health, emits, logs }
}

/// Checks the size of the result. A result that is too large fails the attempt without a retry.
fn check_result_size(task: &ClaimSummary, ended: &Ended) -> Result<(), String> {
    match ended {
        Ended::Succeeded { result: Some(result) } => {
            check_result(result.as_str().len(), task.max_result_bytes)
        }
        _ => Ok(()),
    }
}

/// Sets the cause of each emitted event. An event that may not be emitted fails the attempt without a retry, because a
/// retry would emit it again.
fn set_cause(task: &ClaimSummary, mut emits: Vec<NewEvent>) -> Result<Vec<NewEvent>, String> {
    let depth = task.cause_depth.saturating_add(1);
    if !emits.is_empty() && depth > MAX_DEPTH {
        return Err(format!(
            "event storm: {MAX_DEPTH} events have caused each other up to this one, and it may cause no more"
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
