//! The core's table of states and commands, case by case.
//!
//! Each case brings a task into a state by store calls and then executes a command that has a store call. The result
//! must match [`transition`]: the same state, the same attempt record, in or out of the history; and for an illegal
//! command the same refusal and an unchanged task.

use pointsman_core::store::{AttemptResult, ClaimedTask, FinishedAttempt};
use pointsman_core::task::lifecycle::{TaskEffect, all_states_and_commands, transition};
use pointsman_core::task::{Lease, Task, TaskCommand, TaskCommandError, TaskLifecycle, TaskState};
use pointsman_core::{TaskId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

/// A fixture with one task in the required state.
struct LifecycleCase<'h> {
    fixture: StoreFixture<'h>,
    /// Whether pull workers claim the task, not nodes.
    is_pulled: bool,
    task_id: TaskId,
    /// The last claim of the task, if there was one.
    last_claim: Option<ClaimedTask>,
}

impl<'h> LifecycleCase<'h> {
    async fn with_task_in_state(harness: &'h dyn Harness, state: TaskState) -> Self {
        let halts = matches!(state, TaskState::Error { halts_lane: true, .. });
        let pulled = matches!(state, TaskState::Locked(lease) if lease.until.is_some());
        let registration = if halts {
            RegistrationBuilder::single_handler().halt_on_error("index")
        } else {
            RegistrationBuilder::single_handler()
        };
        let registration = if pulled { registration.pulled_by_workers("index") } else { registration };
        let mut fixture = StoreFixture::new(harness, registration.clone()).await;
        let id = fixture.emit(new_event("record").with_key("a")).await.tasks.remove(0);
        let mut claimed = None;
        match state {
            TaskState::New { .. } => {}
            TaskState::Scheduled => assert_eq!(fixture.schedule_tasks(1).await, 1),
            TaskState::Locked(_) if pulled => claimed = Some(fixture.claim_one_as_pull_worker("index").await),
            TaskState::Locked(_) => claimed = Some(fixture.claim_one().await),
            TaskState::Done => {
                let task = fixture.claim_one().await;
                fixture.succeed(&task).await;
                claimed = Some(task);
            }
            TaskState::Error { .. } => {
                let task = fixture.claim_one().await;
                fixture.fail_permanently(&task).await;
                claimed = Some(task);
            }
            TaskState::Missing { .. } => {
                assert_eq!(fixture.undefine_handler_and_rescue("index").await, 1);
                fixture.register(registration).await;
            }
        }
        Self { fixture, is_pulled: pulled, task_id: id, last_claim: claimed }
    }

    /// Returns the table's command with this task's fence and the fixture's time.
    fn command_with_actual_fence_and_time(&self, command: TaskCommand) -> TaskCommand {
        let fence =
            self.last_claim.as_ref().map_or(all_states_and_commands::LOCKED_STATE_FENCE, |task| task.fence);
        let now = self.fixture.now;
        match command {
            TaskCommand::Succeed { .. } => TaskCommand::Succeed { fence },
            TaskCommand::Fail { retry_at: after, permanent: last, .. } => {
                TaskCommand::Fail { fence, retry_at: after, permanent: last }
            }
            TaskCommand::Snooze { .. } => TaskCommand::Snooze { fence, until: now.plus(secs(60)) },
            TaskCommand::Release { .. } => TaskCommand::Release { fence },
            TaskCommand::RenewLease { .. } => {
                TaskCommand::RenewLease { fence, until: now.plus(secs(2 * LEASE_SECS)) }
            }
            TaskCommand::ExpireLease { .. } => TaskCommand::ExpireLease { fence },
            TaskCommand::Lock(lease) => {
                TaskCommand::Lock(Lease { node: self.fixture.node_id, since: now, ..lease })
            }
            TaskCommand::Schedule
            | TaskCommand::Unschedule
            | TaskCommand::MarkMissing
            | TaskCommand::AdoptMissing
            | TaskCommand::Retry
            | TaskCommand::Cancel => command,
        }
    }

    /// Executes a command by a store call. Returns the command as executed, and the refusal if the call reports one.
    async fn execute_command(
        &mut self,
        command: TaskCommand,
        before: &Task,
    ) -> (TaskCommand, Option<TaskCommandError>) {
        let (mut executed, mut refusal) = (command, None);
        match command {
            TaskCommand::Schedule => drop(self.fixture.schedule_tasks(100).await),
            TaskCommand::Unschedule => self.fixture.set_pause_rule("index").await,
            TaskCommand::Lock(lease) => {
                let claimed = match self.is_pulled {
                    true => self.fixture.claim_as_pull_worker(&["index"], 10).await,
                    false => self.fixture.claim(10).await,
                };
                if let Some(task) = claimed.first() {
                    executed = TaskCommand::Lock(Lease { fence: task.fence, ..lease });
                }
            }
            TaskCommand::Succeed { fence } => refusal = self.finish_task(before, fence, success()).await,
            TaskCommand::Fail { fence, permanent: last, .. } => {
                let result = if last { permanent_failure() } else { retryable_failure() };
                refusal = self.finish_task(before, fence, result).await;
            }
            TaskCommand::Snooze { fence, until } => {
                refusal = self.finish_task(before, fence, AttemptResult::Snoozed { until }).await;
            }
            TaskCommand::Release { fence } => {
                refusal = self.finish_task(before, fence, AttemptResult::Released).await
            }
            TaskCommand::RenewLease { fence, until } => {
                refusal =
                    expect_ok(self.fixture.store.renew_pull_worker_lease(before.seq, fence, until).await)
                        .err();
            }
            TaskCommand::ExpireLease { .. } => {
                self.fixture.advance_clock(LEASE_SECS + 1);
                self.fixture.rescue_tasks().await;
            }
            TaskCommand::MarkMissing => drop(self.fixture.undefine_handler_and_rescue("index").await),
            TaskCommand::AdoptMissing => drop(self.fixture.adopt_missing_tasks("index").await),
            TaskCommand::Retry => refusal = self.fixture.retry_task(&self.task_id).await.err(),
            TaskCommand::Cancel => refusal = self.fixture.cancel_task(&self.task_id).await.err(),
        }
        (executed, refusal)
    }

    async fn finish_task(&self, task: &Task, fence: i64, result: AttemptResult) -> Option<TaskCommandError> {
        let (target, emits, logs) = (None, vec![], vec![]);
        self.fixture
            .finish_attempt(FinishedAttempt {
                task_seq: task.seq,
                fence,
                result,
                target_health: target,
                emitted_events: emits,
                log_lines: logs,
            })
            .await
            .err()
    }
}

/// Whether the store call of this command reports a refusal. The other calls skip a task that they cannot change.
fn store_call_reports_refusal(command: TaskCommand) -> bool {
    match command {
        TaskCommand::Succeed { .. }
        | TaskCommand::Fail { .. }
        | TaskCommand::Snooze { .. }
        | TaskCommand::Release { .. }
        | TaskCommand::RenewLease { .. }
        | TaskCommand::Retry
        | TaskCommand::Cancel => true,
        TaskCommand::Schedule
        | TaskCommand::Unschedule
        | TaskCommand::Lock(_)
        | TaskCommand::ExpireLease { .. }
        | TaskCommand::MarkMissing
        | TaskCommand::AdoptMissing => false,
    }
}

/// Replaces the due time of a waiting task, for comparisons: setting a rule takes no time argument, so the store chooses
/// the due time of an unscheduled task.
fn normalize_due_time(life: TaskLifecycle) -> TaskLifecycle {
    match life.state {
        TaskState::New { .. } => TaskLifecycle { state: TaskState::New { due: START_TIME }, ..life },
        _ => life,
    }
}

async fn check_transition(harness: &dyn Harness, state: TaskState, command: TaskCommand) {
    let mut case = LifecycleCase::with_task_in_state(harness, state).await;
    let label = format!("{state:?} × {command:?}");
    let def = case.fixture.registration.expect_handler_def("index").clone();
    let before = case.fixture.read_task(&case.task_id).await;
    assert_eq!(before.lifecycle.state.status(), state.status(), "{label}: brought into its state");
    let command = case.command_with_actual_fence_and_time(command);
    let (command, refusal) = case.execute_command(command, &before).await;
    let after = case.fixture.read_task(&case.task_id).await;
    match transition(before.seq, before.lifecycle, command, &def, case.fixture.now) {
        Err(rejected) => {
            assert_eq!(after, before, "{label}: an illegal command changes nothing");
            if store_call_reports_refusal(command) {
                assert_eq!(refusal, Some(rejected), "{label}");
            }
        }
        Ok((life, effects)) => {
            assert_eq!(refusal, None, "{label}");
            let unscheduled = command == TaskCommand::Unschedule;
            let (got, want) = if unscheduled {
                (normalize_due_time(after.lifecycle), normalize_due_time(life))
            } else {
                (after.lifecycle, life)
            };
            assert_eq!(got, want, "{label}");
            check_effects(&case, &before, &after, &effects, &label).await;
        }
    }
}

async fn check_effects(
    case: &LifecycleCase<'_>,
    before: &Task,
    after: &Task,
    effects: &[TaskEffect],
    label: &str,
) {
    let recorded = effects.iter().find_map(|effect| match effect {
        TaskEffect::RecordAttempt(end) => Some(*end),
        TaskEffect::OpenSyncGate
        | TaskEffect::Archive
        | TaskEffect::AdvanceLane
        | TaskEffect::Unarchive
        | TaskEffect::JoinLane => None,
    });
    let new: Vec<_> = after.attempts[before.attempts.len()..].iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(new, Vec::from_iter(recorded), "{label}: the record of the attempt");
    let queue = case.fixture.read_queue("index").await;
    let active_count = queue.ready_count
        + queue.waiting_count
        + queue.scheduled_count
        + queue.running_count
        + queue.halted_count
        + queue.missing_count;
    let has_ended =
        matches!(after.lifecycle.state, TaskState::Done | TaskState::Error { halts_lane: false, .. });
    assert_eq!(active_count, u64::from(!has_ended), "{label}: active or in the history");
    assert_eq!(
        after.finished_at.is_some(),
        matches!(after.lifecycle.state.status(), TaskStatus::Done | TaskStatus::Error),
        "{label}"
    );
}

/// Checks every command in all states with this status; one test per status keeps a failure readable.
async fn check_states_with_status(harness: &dyn Harness, status: TaskStatus) {
    for state in all_states_and_commands::all_states(START_TIME) {
        if state.status() == status {
            for command in all_states_and_commands::all_commands(START_TIME) {
                check_transition(harness, state, command).await;
            }
        }
    }
}

pub async fn every_command_on_a_new_task_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::New).await;
}

pub async fn every_command_on_a_scheduled_task_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::Scheduled).await;
}

pub async fn every_command_on_a_locked_task_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::Locked).await;
}

/// The task is locked by a pull worker, whose lease expires by itself, not with a node.
pub async fn every_command_on_a_task_leased_by_a_worker_follows_the_transition_table(harness: &dyn Harness) {
    let until = Some(START_TIME.plus(secs(LEASE_SECS)));
    let lease =
        Lease { node: 0, fence: all_states_and_commands::LOCKED_STATE_FENCE, since: START_TIME, until };
    for command in all_states_and_commands::all_commands(START_TIME) {
        check_transition(harness, TaskState::Locked(lease), command).await;
    }
}

pub async fn every_command_on_a_done_task_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::Done).await;
}

pub async fn every_command_on_a_task_in_error_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::Error).await;
}

pub async fn every_command_on_a_missing_task_follows_the_transition_table(harness: &dyn Harness) {
    check_states_with_status(harness, TaskStatus::Missing).await;
}
