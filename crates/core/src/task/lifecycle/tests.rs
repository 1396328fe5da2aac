use super::*;
use crate::HandlerName;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn handler_def() -> HandlerDef {
    HandlerDef::new(HandlerName::new("h").unwrap())
}

fn apply_command(lifecycle: TaskLifecycle, command: TaskCommand) -> TransitionResult {
    transition(TaskSeq(1), lifecycle, command, &handler_def(), NOW)
}

fn running_lifecycle(retries: u32, crashes: u32) -> TaskLifecycle {
    let lease = Lease { node: 1, fence: 7, since: NOW, until: None };
    let new = TaskLifecycle::new(NOW, true);
    TaskLifecycle { state: TaskState::Locked(lease), attempt: 1, retries, crashes, ..new }
}

/// Each row is a state, each column a command, each cell the resulting status, or `·` if refused.
#[test]
fn each_state_and_command_gives_the_expected_status() {
    let mut table = String::new();
    for state in all_states_and_commands::all_states(NOW) {
        let halts_lane = matches!(state, TaskState::Error { halts_lane: true, .. });
        table.push_str(&format!("{:<10}", if halts_lane { "halted" } else { state.status().as_str() }));
        for command in all_states_and_commands::all_commands(NOW) {
            let lifecycle = TaskLifecycle { state, attempt: 1, ..TaskLifecycle::new(NOW, true) };
            let cell = apply_command(lifecycle, command)
                .map_or("·", |(lifecycle, _)| lifecycle.state.status().as_str());
            table.push_str(&format!("{cell:<10}"));
        }
        table = table.trim_end().to_string() + "\n";
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
    assert_eq!(table, want, "\n{table}");
}

#[test]
fn a_task_fails_for_good_at_the_third_failure_by_default() {
    let fail = TaskCommand::Fail { fence: 7, retry_at: None, permanent: false };
    let (lifecycle, _) = apply_command(running_lifecycle(1, 0), fail).unwrap();
    assert_eq!((lifecycle.state.status(), lifecycle.retries), (TaskStatus::New, 2));
    let (lifecycle, effects) = apply_command(running_lifecycle(2, 0), fail).unwrap();
    assert_eq!(lifecycle.state, TaskState::Error { reason: ErrorReason::Failed, halts_lane: false });
    assert!(effects.contains(&TaskEffect::Archive) && effects.contains(&TaskEffect::AdvanceLane));
}

#[test]
fn snoozing_and_releasing_a_task_use_no_retry() {
    let until = NOW.plus(std::time::Duration::from_secs(300));
    let (lifecycle, _) =
        apply_command(running_lifecycle(2, 0), TaskCommand::Snooze { fence: 7, until }).unwrap();
    assert_eq!((lifecycle.state, lifecycle.retries), (TaskState::New { due: until }, 2));
    let (lifecycle, effects) =
        apply_command(running_lifecycle(2, 2), TaskCommand::Release { fence: 7 }).unwrap();
    assert_eq!((lifecycle.state, lifecycle.retries, lifecycle.crashes), (TaskState::New { due: NOW }, 2, 2));
    assert!(!effects.contains(&TaskEffect::OpenSyncGate), "a released attempt has not ended");
}

#[test]
fn crashes_have_a_limit_separate_from_retries() {
    let (lifecycle, _) =
        apply_command(running_lifecycle(2, 1), TaskCommand::ExpireLease { fence: 7 }).unwrap();
    assert_eq!((lifecycle.state.status(), lifecycle.retries, lifecycle.crashes), (TaskStatus::New, 2, 2));
    let (lifecycle, _) =
        apply_command(running_lifecycle(0, 2), TaskCommand::ExpireLease { fence: 7 }).unwrap();
    assert_eq!(lifecycle.state.error_reason(), Some(ErrorReason::Crashed));
}

#[test]
fn commands_with_a_stale_fence_are_refused() {
    for command in [
        TaskCommand::Succeed { fence: 6 },
        TaskCommand::Fail { fence: 6, retry_at: None, permanent: true },
        TaskCommand::Snooze { fence: 8, until: NOW },
        TaskCommand::Release { fence: 6 },
        TaskCommand::RenewLease { fence: 6, until: NOW },
        TaskCommand::ExpireLease { fence: 6 },
    ] {
        assert_eq!(
            apply_command(running_lifecycle(0, 0), command),
            Err(TaskCommandError::StaleFence),
            "{command:?}"
        );
    }
}

#[test]
fn a_retried_halted_head_keeps_its_lane_position_and_a_retried_parked_task_runs_out_of_order() {
    let halting_def = HandlerDef { on_error: LaneFailurePolicy::Halt, ..handler_def() };
    let fail = TaskCommand::Fail { fence: 7, retry_at: None, permanent: true };
    let (halted, effects) = transition(TaskSeq(1), running_lifecycle(0, 0), fail, &halting_def, NOW).unwrap();
    assert!(!effects.contains(&TaskEffect::AdvanceLane));
    let (retried, _) = apply_command(halted, TaskCommand::Retry).unwrap();
    assert!(!retried.out_of_order);
    let (parked, _) = apply_command(running_lifecycle(0, 0), fail).unwrap();
    let (retried, effects) = apply_command(parked, TaskCommand::Retry).unwrap();
    assert!(retried.out_of_order && effects.contains(&TaskEffect::Unarchive));
    assert!(retried.in_lane && effects.contains(&TaskEffect::JoinLane), "it joins its lane again");
}

#[test]
fn a_workers_lease_is_renewed_and_a_nodes_lease_has_no_end() {
    let (soon, later) =
        (NOW.plus(std::time::Duration::from_secs(60)), NOW.plus(std::time::Duration::from_secs(90)));
    let renew = TaskCommand::RenewLease { fence: 7, until: later };
    let (lifecycle, effects) = apply_command(running_lifecycle(0, 0), renew).unwrap();
    assert_eq!((lifecycle, effects), (running_lifecycle(0, 0), vec![]));
    let lease = Lease { node: 0, fence: 7, since: NOW, until: Some(soon) };
    let (lifecycle, _) =
        apply_command(TaskLifecycle { state: TaskState::Locked(lease), ..running_lifecycle(0, 0) }, renew)
            .unwrap();
    assert_eq!(lifecycle.state, TaskState::Locked(Lease { until: Some(later), ..lease }));
}

#[test]
fn a_failed_task_without_a_lane_halts_no_lane() {
    let halting_def = HandlerDef { on_error: LaneFailurePolicy::Halt, ..handler_def() };
    let fail = TaskCommand::Fail { fence: 7, retry_at: None, permanent: true };
    let without_lane = TaskLifecycle { has_lane: false, in_lane: false, ..running_lifecycle(0, 0) };
    let (parked, effects) = transition(TaskSeq(1), without_lane, fail, &halting_def, NOW).unwrap();
    assert_eq!(parked.state, TaskState::Error { reason: ErrorReason::Failed, halts_lane: false });
    assert!(effects.contains(&TaskEffect::Archive));
}

#[test]
fn a_failed_task_is_retried_when_its_target_requested() {
    let requested = NOW.plus(std::time::Duration::from_secs(3600));
    let (lifecycle, _) = apply_command(
        running_lifecycle(0, 0),
        TaskCommand::Fail { fence: 7, retry_at: Some(requested), permanent: false },
    )
    .unwrap();
    assert_eq!(lifecycle.state, TaskState::New { due: requested });
}
