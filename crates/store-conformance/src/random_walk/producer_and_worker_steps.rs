//! Random steps of workers and producers, each with its effect on the model.

use std::collections::BTreeSet;
use std::time::Duration;

use pointsman_core::store::{
    AttemptResult, ClaimRequest, ClaimResult, Claimant, EmitReceipt, EmittedEventReceipt, FinishReceipt,
    FinishedAttempt, IdempotencyError, NewCollectionRun, NoSuchCollection, TaskFilter,
};
use pointsman_core::task::{TaskCommand, TaskCommandError, TaskSeq, TaskState};
use pointsman_core::{HandlerName, NewEvent, TaskStatus, Timestamp};

use super::{HANDLER_NAMES, RandomWalk, SOURCE_COLLECTIONS};
use crate::fixture::*;

pub(super) const TENANTS: [&str; 2] = ["default", "shop"];

impl<'h> RandomWalk<'h> {
    /// Runs one step, chosen at random.
    pub(super) async fn run_random_step(mut self) -> Self {
        let chance = self.rng.next_below(1000);
        match chance {
            0..210 => self.emit_random_events().await,
            210..230 => self.repeat_idempotent_emit_batch().await,
            230..260 => self.request_random_collection_run().await,
            260..480 => self.claim_random_tasks().await,
            480..730 => self.finish_random_attempts().await,
            730..745 => self.renew_random_lease().await,
            745..830 => self.advance_clock_randomly(),
            830..870 => self.schedule_random_number_of_tasks().await,
            870..900 => self.set_random_rule().await,
            900..925 => self.lift_random_rule().await,
            925..950 => self.retry_random_task().await,
            950..965 => self.cancel_random_task().await,
            965..973 => self.adopt_tasks_of_random_handler().await,
            973..981 => self.undefine_or_restore_handler().await,
            981..989 => self.crash_random_node().await,
            989..993 => self.prune_old_events().await,
            _ => self = self.restart_store().await,
        }
        self
    }

    fn random_event(&mut self) -> NewEvent {
        let kind = *self.rng.choose(&["record", "record.published", "record.published", "note", "unrouted"]);
        let mut new = new_event(kind).with_value(&self.rng.next_below(1000).to_string());
        new = new.for_tenant(TENANTS[usize::from(self.rng.chance_percent(25))]);
        if self.rng.chance_percent(85) {
            new = new.with_key(&format!("k{}", self.rng.next_below(4)));
        }
        if self.rng.chance_percent(20) {
            new = new.with_priority(self.rng.number_in(1, 9000));
        }
        if self.rng.chance_percent(10) {
            new = new.due_at(self.fixture.seconds_from_now(self.rng.next_below(60) as u64));
        }
        new
    }

    fn random_claim_request(&mut self) -> ClaimRequest {
        let names = HANDLER_NAMES.iter().filter(|name| !self.undefined_handlers.contains(*name));
        let mut handlers: BTreeSet<HandlerName> = names.map(|name| handler_name(name)).collect();
        if self.rng.chance_percent(30) {
            handlers.remove(&handler_name(HANDLER_NAMES[self.rng.next_below(HANDLER_NAMES.len())]));
        }
        self.fixture.node_id = self.node_ids[self.rng.next_below(2)];
        let max = 1 + self.rng.next_below(8);
        let claim = self.fixture.claim_request_for_handlers(handlers, max);
        if !self.rng.chance_percent(20) {
            return claim;
        }
        let tenant = self.rng.chance_percent(30).then(|| tenant(TENANTS[self.rng.next_below(2)]));
        ClaimRequest {
            claimant: Claimant::PullWorker { lease_until: self.lease_end_from_now(), tenant },
            ..claim
        }
    }

    /// The end of a lease granted now: never on a full second, where expiry would be ambiguous.
    fn lease_end_from_now(&self) -> Timestamp {
        self.fixture.seconds_from_now(LEASE_SECS).plus(Duration::from_millis(1))
    }

    /// Requests a run of a collection, whether or not it has an unfinished one.
    async fn request_random_collection_run(&mut self) {
        let collection = source_collection(SOURCE_COLLECTIONS[self.rng.next_below(SOURCE_COLLECTIONS.len())]);
        self.step_log.add(format!("run {collection}"));
        let run = NewCollectionRun { source_collection: collection.clone(), priority: None };
        let answer = expect_ok(self.fixture.store.run_collection(run, None, self.fixture.now).await);
        if self.undefined_handlers.contains(collection.source.as_str()) {
            assert_eq!(answer, Err(NoSuchCollection(collection).into()));
            return;
        }
        let run = answer.expect("the collection is registered");
        match self.model.queued_or_running_task_of_collection(&collection) {
            Some(seq) => assert_eq!((&run.task, run.created), (&self.model.tasks[&seq].id, false)),
            None => {
                assert!(run.created);
                let task = self.fixture.read_task(&run.task).await;
                self.model.add_collection_run(&collection, &task);
            }
        }
        self.check_queue_counters(&BTreeSet::new()).await;
    }

    /// Renews a lease that a worker may already have lost.
    async fn renew_random_lease(&mut self) {
        let Some(task) = self.rng.try_choose(&self.claimed_tasks).cloned() else { return };
        let until = self.lease_end_from_now();
        self.step_log.add(format!("renew {}", task.id));
        let answer = expect_ok(self.fixture.store.renew_pull_worker_lease(task.seq, task.fence, until).await);
        let command = TaskCommand::RenewLease { fence: task.fence, until };
        assert_eq!(answer, self.model.apply_command(task.seq, command, self.fixture.now), "{}", task.id);
    }

    async fn emit_random_events(&mut self) {
        let mut batches = Vec::new();
        for _ in 0..=self.rng.next_below(2) {
            let events: Vec<_> = (0..=self.rng.next_below(2)).map(|_| self.random_event()).collect();
            batches.push(match self.rng.chance_percent(10) {
                true => new_idempotent_emit_batch(
                    "default",
                    &format!("once-{}", self.idempotent_batches_and_receipts.len()),
                    1,
                    events,
                ),
                false => new_emit_batch(events),
            });
            if batches
                .last()
                .is_some_and(|last: &pointsman_core::store::EmitBatch| last.idempotency_key.is_some())
            {
                break;
            }
        }
        let claim = self.rng.chance_percent(30).then(|| self.random_claim_request());
        self.step_log.add(format!("emit {} with claim {claim:?}", batches.len()));
        let result = self.fixture.store.append(batches.clone(), claim.clone(), self.fixture.now).await;
        let (answers, claims) = expect_ok(result);
        for (batch, answer) in batches.into_iter().zip(answers) {
            let receipt = answer.expect("a new key, or none");
            assert!(!receipt.repeated);
            self.add_events_to_model(&batch.events, &receipt.events).await;
            if batch.idempotency_key.is_some() {
                self.idempotent_batches_and_receipts.push((batch, receipt));
            }
        }
        self.check_claim_and_queue_counters(claim, claims).await;
    }

    /// Adds journaled events to the model.
    async fn add_events_to_model(&mut self, new: &[NewEvent], got: &[EmittedEventReceipt]) {
        assert_eq!(new.len(), got.len());
        for (new, got) in new.iter().zip(got) {
            let mut seqs = Vec::new();
            for id in &got.tasks {
                seqs.push(self.fixture.read_task(id).await.seq);
            }
            self.model.add_event(&self.fixture.registration, new, got, &seqs, self.fixture.now);
        }
    }

    async fn check_claim_and_queue_counters(&mut self, claim: Option<ClaimRequest>, claims: ClaimResult) {
        match claim {
            None => {
                assert!(claims.tasks.is_empty());
                self.check_queue_counters(&BTreeSet::new()).await;
            }
            Some(claim) => {
                self.check_claim_result(&claim, &claims);
                self.check_queue_counters(&claim.handlers).await;
            }
        }
    }

    /// Repeats an emission under its idempotency key, sometimes with other content.
    async fn repeat_idempotent_emit_batch(&mut self) {
        let Some((mut batch, receipt)) = self.rng.try_choose(&self.idempotent_batches_and_receipts).cloned()
        else {
            return;
        };
        let other = self.rng.chance_percent(30);
        let Some(idempotency) = batch.idempotency_key.as_mut() else { return };
        idempotency.request_digest[0] ^= u8::from(other) << 7;
        self.step_log.add(format!("repeat {} with other content: {other}", idempotency.key));
        let want = match other {
            true => Err(IdempotencyError::Conflict(idempotency.key.clone())),
            false => Ok(EmitReceipt { repeated: true, ..receipt }),
        };
        assert_eq!(self.fixture.append(vec![batch]).await, [want]);
    }

    async fn claim_random_tasks(&mut self) {
        let claim = self.random_claim_request();
        self.step_log.add(format!("claim {claim:?}"));
        let claims = expect_ok(self.fixture.store.claim_tasks(claim.clone(), self.fixture.now).await);
        self.check_claim_and_queue_counters(Some(claim), claims).await;
    }

    async fn finish_random_attempts(&mut self) {
        let mut attempts = Vec::new();
        for _ in 0..=self.rng.next_below(5) {
            if let Some(attempt) = self.random_finished_attempt() {
                attempts.push(attempt);
            }
        }
        let claim = self.rng.chance_percent(30).then(|| self.random_claim_request());
        self.step_log.add(format!("finish {attempts:?} with claim {claim:?}"));
        let (answers, claims) = expect_ok(
            self.fixture.store.finish_attempts(attempts.clone(), claim.clone(), self.fixture.now).await,
        );
        assert_eq!(answers.len(), attempts.len());
        for (attempt, answer) in attempts.into_iter().zip(answers) {
            self.check_finish_result(attempt, answer).await;
        }
        self.check_claim_and_queue_counters(claim, claims).await;
    }

    /// Finishes a random attempt: mostly that of a running task, sometimes one that has ended, sometimes with an invalid
    /// fence.
    fn random_finished_attempt(&mut self) -> Option<FinishedAttempt> {
        let any_claimed = self.rng.chance_percent(10);
        let running = |seq: TaskSeq| self.model.tasks[&seq].lifecycle.state.status() == TaskStatus::Locked;
        let candidates: Vec<_> =
            self.claimed_tasks.iter().filter(|task| any_claimed || running(task.seq)).cloned().collect();
        let task = self.rng.try_choose(&candidates)?.clone();
        let result = match self.rng.next_below(100) {
            0..60 => success(),
            60..78 => retryable_failure(),
            78..84 => permanent_failure(),
            84..94 => AttemptResult::Snoozed {
                until: self.fixture.seconds_from_now(self.rng.next_below(30) as u64),
            },
            _ => AttemptResult::Released,
        };
        let emits = match result {
            AttemptResult::Succeeded { .. }
                if task.subject.cause_depth() < 3 && self.rng.chance_percent(15) =>
            {
                vec![self.random_event().caused_by(&task)]
            }
            _ => vec![],
        };
        let fence = task.fence - i64::from(self.rng.chance_percent(4)) * 1_000_000;
        Some(FinishedAttempt { fence, emitted_events: emits, ..finished_attempt(&task, result) })
    }

    async fn check_finish_result(
        &mut self,
        attempt: FinishedAttempt,
        answer: Result<FinishReceipt, TaskCommandError>,
    ) {
        let fence = attempt.fence;
        let command = match attempt.result {
            AttemptResult::Succeeded { .. } => TaskCommand::Succeed { fence },
            AttemptResult::Failed { retry_at: after, permanent: last, .. } => {
                TaskCommand::Fail { fence, retry_at: after, permanent: last }
            }
            AttemptResult::Snoozed { until } => TaskCommand::Snooze { fence, until },
            AttemptResult::Released => TaskCommand::Release { fence },
        };
        let verdict = self.model.apply_command(attempt.task_seq, command, self.fixture.now);
        let finished = match (verdict, answer) {
            (Ok(()), Ok(finished)) => finished,
            (verdict, answer) => {
                assert_eq!(answer.map(|_| ()), verdict, "{}: {command:?}", attempt.task_seq);
                return;
            }
        };
        let state = self.model.tasks[&attempt.task_seq].lifecycle.state;
        let due = if let TaskState::New { due } = state { Some(due) } else { None };
        assert_eq!(
            (finished.status, finished.next_attempt_due_at),
            (state.status(), due),
            "{}: {command:?}",
            attempt.task_seq
        );
        self.add_events_to_model(&attempt.emitted_events, &finished.emitted_events).await;
    }

    fn advance_clock_randomly(&mut self) {
        let seconds = 1 + self.rng.next_below(15) as u64;
        self.step_log.add(format!("{seconds} s pass"));
        self.fixture.advance_clock(seconds);
    }

    async fn schedule_random_number_of_tasks(&mut self) {
        let ahead = 1 + self.rng.next_below(8);
        self.step_log.add(format!("schedule {ahead}"));
        let free = |seq: &TaskSeq| !self.model.is_blocked_by_rule(&self.model.tasks[seq]);
        let ready: BTreeSet<_> = self.model.ready_tasks(self.fixture.now).into_iter().filter(free).collect();
        let before = self.model.active_tasks_with_status(TaskStatus::Scheduled);
        let capacity = ahead.saturating_sub(before.len());
        let max_scheduled =
            before.len() + self.model.count_tasks_within_limits(ready.iter().copied()).min(capacity);
        // The store may or may not prefetch limited tasks and tasks of workers.
        let plain = |seq: &&TaskSeq| {
            let handler = &self.model.tasks[*seq].handler;
            !self.model.has_concurrency_limit(handler) && !self.model.is_pulled(handler)
        };
        let min_scheduled = before.len() + ready.iter().filter(plain).count().min(capacity);
        let want = self.fixture.schedule_tasks(ahead).await;
        assert!(
            (min_scheduled..=max_scheduled).contains(&want),
            "{want} are scheduled, not {min_scheduled} to {max_scheduled}"
        );
        let filter = TaskFilter { statuses: vec![TaskStatus::Scheduled], ..TaskFilter::default() };
        let found: BTreeSet<_> = self.fixture.list_tasks(&filter).await.iter().map(|task| task.seq).collect();
        assert_eq!(found.len(), want);
        assert!(before.iter().all(|seq| found.contains(seq)), "nothing is taken back");
        for seq in found.iter().filter(|seq| !before.contains(seq)) {
            assert!(ready.contains(seq), "{seq} could not run");
            self.model.apply_command(*seq, TaskCommand::Schedule, self.fixture.now).expect("it was new");
        }
        self.check_queue_counters(&BTreeSet::new()).await;
    }
}
