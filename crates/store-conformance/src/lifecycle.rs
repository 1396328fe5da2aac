//! The core's table of states and commands, case by case.
//!
//! Each case brings a task into a state by store calls and then executes a command that has a store call. The result
//! must match [`transition`]: the same state, the same attempt record, in or out of the history; and for an illegal
//! command the same refusal and an unchanged task.

use pointsman_core::store::{Claimed, Ended, Ending};
use pointsman_core::task::lifecycle::{Effect, table, transition};
use pointsman_core::task::{Command, Lease, Life, Rejected, State, Task};
use pointsman_core::{Status, TaskId};

use crate::Harness;
use crate::fixture::*;

/// A fixture with one task in the required state.
struct LifecycleCase<'h> {
    fixture: StoreFixture<'h>,
    /// Workers fetch the task.
    is_pulled: bool,
    id: TaskId,
    /// The last claim of the task, if there was one.
    claimed: Option<Claimed>,
}

impl<'h> LifecycleCase<'h> {
    async fn with_task_in_state(harness: &'h dyn Harness, state: State) -> Self {
        let halts = matches!(state, State::Error { halts: true, .. });
        let pulled = matches!(state, State::Locked(lease) if lease.until.is_some());
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
            State::New { .. } => {}
            State::Scheduled => assert_eq!(fixture.schedule_ahead(1).await, 1),
            State::Locked(_) if pulled => claimed = Some(fixture.fetch_one_as_worker("index").await),
            State::Locked(_) => claimed = Some(fixture.claim_one().await),
            State::Done => {
                let task = fixture.claim_one().await;
                fixture.succeed(&task).await;
                claimed = Some(task);
            }
            State::Error { .. } => {
                let task = fixture.claim_one().await;
                fixture.fail_permanently(&task).await;
                claimed = Some(task);
            }
            State::Missing { .. } => {
                assert_eq!(fixture.undefine_handler("index").await, 1);
                fixture.register(registration).await;
            }
        }
        Self { fixture, is_pulled: pulled, id, claimed }
    }

    /// The table's command with this task's fence and the fixture's time.
    fn command_for_task(&self, command: Command) -> Command {
        let fence = self.claimed.as_ref().map_or(table::FENCE, |task| task.fence);
        let now = self.fixture.now;
        match command {
            Command::Succeed { .. } => Command::Succeed { fence },
            Command::Fail { after, last, .. } => Command::Fail { fence, after, last },
            Command::Snooze { .. } => Command::Snooze { fence, until: now.plus(secs(60)) },
            Command::Release { .. } => Command::Release { fence },
            Command::Renew { .. } => Command::Renew { fence, until: now.plus(secs(2 * LEASE_SECS)) },
            Command::Expire { .. } => Command::Expire { fence },
            Command::Lock(lease) => Command::Lock(Lease { node: self.fixture.node, since: now, ..lease }),
            Command::Schedule
            | Command::Unschedule
            | Command::Lose
            | Command::Adopt
            | Command::Retry
            | Command::Cancel => command,
        }
    }

    /// Executes a command by a store call. Returns the command as executed, and the refusal if the call reports one.
    async fn execute_command(&mut self, command: Command, before: &Task) -> (Command, Option<Rejected>) {
        let (mut done, mut refusal) = (command, None);
        match command {
            Command::Schedule => drop(self.fixture.schedule_ahead(100).await),
            Command::Unschedule => self.fixture.pause("index").await,
            Command::Lock(lease) => {
                let claimed = match self.is_pulled {
                    true => self.fixture.fetch_as_worker(&["index"], 10).await,
                    false => self.fixture.claim(10).await,
                };
                if let Some(task) = claimed.first() {
                    done = Command::Lock(Lease { fence: task.fence, ..lease });
                }
            }
            Command::Succeed { fence } => refusal = self.finish_task(before, fence, success()).await,
            Command::Fail { fence, last, .. } => {
                let ended = if last { permanent_failure() } else { retryable_failure() };
                refusal = self.finish_task(before, fence, ended).await;
            }
            Command::Snooze { fence, until } => {
                refusal = self.finish_task(before, fence, Ended::Snoozed { until }).await;
            }
            Command::Release { fence } => refusal = self.finish_task(before, fence, Ended::Released).await,
            Command::Renew { fence, until } => {
                refusal = expect_ok(self.fixture.store.renew(before.seq, fence, until).await).err();
            }
            Command::Expire { .. } => {
                self.fixture.advance_clock(LEASE_SECS + 1);
                self.fixture.rescue_tasks().await;
            }
            Command::Lose => drop(self.fixture.undefine_handler("index").await),
            Command::Adopt => drop(self.fixture.adopt_missing_tasks("index").await),
            Command::Retry => refusal = self.fixture.retry_task(&self.id).await.err(),
            Command::Cancel => refusal = self.fixture.cancel_task(&self.id).await.err(),
        }
        (done, refusal)
    }

    async fn finish_task(&self, task: &Task, fence: i64, ended: Ended) -> Option<Rejected> {
        let (target, emits, logs) = (None, vec![], vec![]);
        self.fixture.finish_attempt(Ending { task: task.seq, fence, ended, target, emits, logs }).await.err()
    }
}

/// Whether the store call of this command reports a refusal; the others just find nothing to do.
fn reports_refusal(command: Command) -> bool {
    match command {
        Command::Succeed { .. }
        | Command::Fail { .. }
        | Command::Snooze { .. }
        | Command::Release { .. }
        | Command::Renew { .. }
        | Command::Retry
        | Command::Cancel => true,
        Command::Schedule
        | Command::Unschedule
        | Command::Lock(_)
        | Command::Expire { .. }
        | Command::Lose
        | Command::Adopt => false,
    }
}

/// Setting a rule takes no time argument, so the store chooses the due time of an unscheduled task.
fn without_due_time(life: Life) -> Life {
    match life.state {
        State::New { .. } => Life { state: State::New { due: START_TIME }, ..life },
        _ => life,
    }
}

async fn check_transition(harness: &dyn Harness, state: State, command: Command) {
    let mut cell = LifecycleCase::with_task_in_state(harness, state).await;
    let name = format!("{state:?} × {command:?}");
    let def = cell.fixture.registration.handler_def("index").clone();
    let before = cell.fixture.read_task(&cell.id).await;
    assert_eq!(before.life.state.status(), state.status(), "{name}: brought into its state");
    let command = cell.command_for_task(command);
    let (command, refusal) = cell.execute_command(command, &before).await;
    let after = cell.fixture.read_task(&cell.id).await;
    match transition(before.seq, before.life, command, &def, cell.fixture.now) {
        Err(rejected) => {
            assert_eq!(after, before, "{name}: an illegal cell changes nothing");
            if reports_refusal(command) {
                assert_eq!(refusal, Some(rejected), "{name}");
            }
        }
        Ok((life, effects)) => {
            assert_eq!(refusal, None, "{name}");
            let taken_back = command == Command::Unschedule;
            let (got, want) = if taken_back {
                (without_due_time(after.life), without_due_time(life))
            } else {
                (after.life, life)
            };
            assert_eq!(got, want, "{name}");
            check_effects(&cell, &before, &after, &effects, &name).await;
        }
    }
}

async fn check_effects(
    cell: &LifecycleCase<'_>,
    before: &Task,
    after: &Task,
    effects: &[Effect],
    name: &str,
) {
    let recorded = effects.iter().find_map(|effect| match effect {
        Effect::RecordAttempt(end) => Some(*end),
        Effect::OpenGate | Effect::Archive | Effect::AdvanceLane | Effect::Restore | Effect::JoinLane => None,
    });
    let new: Vec<_> = after.attempts[before.attempts.len()..].iter().map(|attempt| attempt.end).collect();
    assert_eq!(new, Vec::from_iter(recorded), "{name}: the record of the attempt");
    let queue = cell.fixture.read_queue("index").await;
    let live = queue.ready + queue.waiting + queue.scheduled + queue.running + queue.halted + queue.missing;
    let ended = matches!(after.life.state, State::Done | State::Error { halts: false, .. });
    assert_eq!(live, u64::from(!ended), "{name}: live or in the history");
    assert_eq!(
        after.finished_at.is_some(),
        matches!(after.life.state.status(), Status::Done | Status::Error),
        "{name}"
    );
}

/// Checks every command in all states with this status; one test per status keeps a failure readable.
async fn check_rows_of_status(harness: &dyn Harness, status: Status) {
    for state in table::states(START_TIME) {
        if state.status() == status {
            for command in table::commands(START_TIME) {
                check_transition(harness, state, command).await;
            }
        }
    }
}

pub async fn every_command_on_a_new_task_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::New).await;
}

pub async fn every_command_on_a_scheduled_task_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::Scheduled).await;
}

pub async fn every_command_on_a_locked_task_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::Locked).await;
}

/// Locked by a worker, whose lease expires without a rescue of its node.
pub async fn every_command_on_a_fetched_task_follows_the_transition_table(harness: &dyn Harness) {
    let until = Some(START_TIME.plus(secs(LEASE_SECS)));
    let lease = Lease { node: 0, fence: table::FENCE, since: START_TIME, until };
    for command in table::commands(START_TIME) {
        check_transition(harness, State::Locked(lease), command).await;
    }
}

pub async fn every_command_on_a_done_task_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::Done).await;
}

pub async fn every_command_on_a_task_in_error_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::Error).await;
}

pub async fn every_command_on_a_missing_task_follows_the_transition_table(harness: &dyn Harness) {
    check_rows_of_status(harness, Status::Missing).await;
}
