//! Redrives: background jobs that retry all failed tasks that match a filter.
//!
//! ```text
//!   redrive ─▶ job: read matching tasks ─▶ [canary: retry the first few, wait for them] ─▶ retry the rest, rate limited
//! ```
//!
//! A job runs on the node that started it, and stops when that node stops: tasks that it has not retried by then stay
//! in `error`, and the same redrive can be requested again. All matching tasks are read first, so that a task that
//! fails again is not retried twice; the oldest are retried first, so that lanes are filled in order.

mod redrive_job;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_core::store::{StoreError, TaskFilter};
use pointsman_core::task::{ErrorReason, Task};
use pointsman_core::{Rate, TaskStatus, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Engine;
use redrive_job::RedriveJob;

/// The maximum number of jobs that a node runs at a time. Each job has the sequence numbers of all its tasks in memory.
const MAX_RUNNING_JOBS: usize = 4;
/// The number of ended jobs that are still listed.
const MAX_LISTED_ENDED_JOBS: usize = 100;
/// The number of tasks that are read at a time.
const TASKS_PER_PAGE: usize = 500;
/// The number of tasks that [`Engine::count_and_sample_failed_tasks`] returns as a sample.
const FAILED_TASK_SAMPLE_SIZE: usize = 20;

/// A request to retry failed tasks.
#[derive(Clone, Debug)]
pub struct RedriveRequest {
    /// Selects the tasks in `error` that are retried. Cancelled tasks are retried only if the filter's error reasons
    /// name them.
    pub filter: TaskFilter,
    /// The maximum rate of retries; unlimited if not given.
    pub rate: Option<Rate>,
    /// The number of tasks that are retried first. If one of them fails again, the others are not retried.
    pub canary_count: Option<usize>,
    /// The user who requested the redrive.
    pub requested_by: String,
}

/// A redrive and its progress.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RedriveStatus {
    /// The redrive's id, unique across nodes and restarts.
    pub id: String,
    /// Selects the tasks that are retried.
    pub filter: TaskFilter,
    /// The maximum rate of retries; unlimited if not given.
    pub rate: Option<Rate>,
    /// The number of tasks that are retried first.
    pub canary_count: Option<usize>,
    /// The person or program that requested the redrive.
    pub requested_by: String,
    /// The state of the redrive: its present step, or how it ended.
    pub state: RedriveState,
    /// The number of matching tasks that the job has read so far.
    pub matched_count: u64,
    /// The number of tasks that the job has retried so far.
    pub retried_count: u64,
    /// The number of tasks that the store refused to retry: they were retried meanwhile, or their events have expired.
    pub refused_count: u64,
    /// When the redrive was started.
    pub started_at: Timestamp,
    /// When the redrive ended.
    pub ended_at: Option<Timestamp>,
}

/// The state of a redrive: its present step, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveState {
    /// The job reads or retries tasks.
    Running,
    /// The canaries have been retried, and the job waits for them to end.
    WaitingForCanaries,
    /// All matching tasks have been retried, or refused.
    Done,
    /// The redrive ended before all tasks were retried, for this reason.
    Stopped(String),
}

impl RedriveState {
    /// The name of the state in the API.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingForCanaries => "canary",
            Self::Done => "done",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Whether the redrive retries no further tasks.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Running | Self::WaitingForCanaries => false,
            Self::Done | Self::Stopped(_) => true,
        }
    }
}

/// Why a redrive was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedriveError {
    /// This node already runs the maximum number of redrives.
    #[error("{MAX_RUNNING_JOBS} redrives are running already; wait for one of them to end, or stop it")]
    TooManyRunning,
    /// The redrive with this id runs already and would retry the same tasks.
    #[error("redrive {0} has the same filter and is still running; wait for it to end, or stop it")]
    AlreadyRunning(String),
}

/// A redrive that has a reserved place among the jobs of the node and has not started. Dropping it releases the
/// reservation.
#[derive(Debug)]
pub struct PreparedRedrive {
    engine: Engine,
    job_number: u64,
    status: Arc<Mutex<RedriveStatus>>,
    stop_token: CancellationToken,
    is_started: bool,
}

impl PreparedRedrive {
    /// The redrive in its initial state.
    pub fn status(&self) -> RedriveStatus {
        lock_status(&self.status).clone()
    }

    /// Releases the reservation, which [`PreparedRedrive::reserve_again`] can restore.
    pub fn release_reservation(&self) {
        self.engine.node().redrive_jobs.lock_jobs().remove(&self.job_number);
    }

    /// Reserves the redrive again, unless too many redrives run by now, or one with the same filter.
    pub fn reserve_again(&self) -> Result<(), RedriveError> {
        let status = self.status();
        let mut jobs = self.engine.node().redrive_jobs.lock_jobs();
        check_job_admission(&jobs, &status.filter)?;
        jobs.insert(
            self.job_number,
            RedriveEntry { status: self.status.clone(), stop_token: self.stop_token.clone() },
        );
        Ok(())
    }

    /// Starts the redrive; returns its id.
    pub fn start(mut self) -> String {
        self.is_started = true;
        let job = RedriveJob::new(self.engine.clone(), self.status.clone());
        self.engine.node().redrive_jobs.job_tracker.spawn(job.run(self.stop_token.clone()));
        lock_status(&self.status).id.clone()
    }
}

impl Drop for PreparedRedrive {
    fn drop(&mut self) {
        if !self.is_started {
            self.release_reservation();
        }
    }
}

/// The redrive jobs of a node, the newest last.
#[derive(Debug, Default)]
pub(crate) struct RedriveJobs {
    jobs: Mutex<BTreeMap<u64, RedriveEntry>>,
    last_job_number: AtomicU64,
    stop_token: CancellationToken,
    job_tracker: TaskTracker,
}

#[derive(Debug)]
struct RedriveEntry {
    status: Arc<Mutex<RedriveStatus>>,
    stop_token: CancellationToken,
}

impl RedriveJobs {
    /// Stops all jobs, and waits for them to end.
    pub(crate) async fn stop_all_jobs(&self) {
        self.stop_token.cancel();
        self.job_tracker.close();
        self.job_tracker.wait().await;
    }

    fn lock_jobs(&self) -> MutexGuard<'_, BTreeMap<u64, RedriveEntry>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the oldest ended jobs if there are too many.
fn drop_oldest_ended_jobs(jobs: &mut BTreeMap<u64, RedriveEntry>) {
    let ended = jobs.iter().filter(|(_, job)| lock_status(&job.status).state.has_ended());
    let ended: Vec<u64> = ended.map(|(number, _)| *number).collect();
    for number in ended.iter().take(ended.len().saturating_sub(MAX_LISTED_ENDED_JOBS)) {
        jobs.remove(number);
    }
}

/// Checks whether a job with this filter may start in addition to those that run.
fn check_job_admission(jobs: &BTreeMap<u64, RedriveEntry>, filter: &TaskFilter) -> Result<(), RedriveError> {
    let (mut running, mut same_filter_id) = (0, None);
    for job in jobs.values() {
        let status = lock_status(&job.status);
        if !status.state.has_ended() {
            running += 1;
            if status.filter == *filter {
                same_filter_id = Some(status.id.clone());
            }
        }
    }
    match same_filter_id {
        Some(id) => Err(RedriveError::AlreadyRunning(id)),
        None if running >= MAX_RUNNING_JOBS => Err(RedriveError::TooManyRunning),
        None => Ok(()),
    }
}

fn lock_status(status: &Mutex<RedriveStatus>) -> MutexGuard<'_, RedriveStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Starts a job that retries failed tasks; returns its id at once.
    pub fn start_redrive(&self, request: RedriveRequest) -> Result<String, RedriveError> {
        Ok(self.prepare_redrive(request)?.start())
    }

    /// Reserves a place for a redrive among the jobs of this node, so that it can then be started.
    pub fn prepare_redrive(&self, request: RedriveRequest) -> Result<PreparedRedrive, RedriveError> {
        let node = self.node();
        let redrives = &node.redrive_jobs;
        let RedriveRequest { filter, rate, canary_count, requested_by } = request;
        let filter = restrict_filter_to_failed(filter);
        let mut jobs = redrives.lock_jobs();
        check_job_admission(&jobs, &filter)?;
        let number = redrives.last_job_number.fetch_add(1, Ordering::Relaxed) + 1;
        // The id is unique across nodes and restarts.
        let id = format!("{}-{number}", node.id());
        let status = Arc::new(Mutex::new(RedriveStatus {
            id,
            filter,
            rate,
            canary_count: canary_count.filter(|count| *count > 0),
            requested_by,
            state: RedriveState::Running,
            matched_count: 0,
            retried_count: 0,
            refused_count: 0,
            started_at: self.now(),
            ended_at: None,
        }));
        let stop = redrives.stop_token.child_token();
        jobs.insert(number, RedriveEntry { status: status.clone(), stop_token: stop.clone() });
        drop_oldest_ended_jobs(&mut jobs);
        Ok(PreparedRedrive {
            engine: self.clone(),
            job_number: number,
            status,
            stop_token: stop,
            is_started: false,
        })
    }

    /// Lists the redrives that run on this node, and the last ones that have ended, the newest first.
    pub fn list_redrives(&self) -> Vec<RedriveStatus> {
        self.node()
            .redrive_jobs
            .lock_jobs()
            .values()
            .rev()
            .map(|job| lock_status(&job.status).clone())
            .collect()
    }

    /// Finds a redrive of this node by its id.
    pub fn find_redrive(&self, id: &str) -> Option<RedriveStatus> {
        self.list_redrives().into_iter().find(|job| job.id == id)
    }

    /// Stops a redrive; tasks that it has not retried stay as they are. `false`: no redrive of this id is running.
    pub fn stop_redrive(&self, id: &str) -> bool {
        let jobs = self.node().redrive_jobs.lock_jobs();
        let found = jobs.values().find(|job| {
            let status = lock_status(&job.status);
            status.id == id && !status.state.has_ended()
        });
        found.inspect(|job| job.stop_token.cancel()).is_some()
    }

    /// Counts the tasks that a redrive with this filter would retry, up to `limit`, and returns the newest of them.
    pub async fn count_and_sample_failed_tasks(
        &self,
        filter: TaskFilter,
        limit: u64,
    ) -> Result<(u64, Vec<Task>), StoreError> {
        let filter = restrict_filter_to_failed(filter);
        let (mut count, mut sample, mut before) = (0, Vec::new(), None);
        loop {
            let page = self.store().list_tasks(filter.clone(), before, TASKS_PER_PAGE).await?;
            count += page.tasks.len() as u64;
            sample.extend(page.tasks.into_iter().take(FAILED_TASK_SAMPLE_SIZE - sample.len()));
            before = page.next_cursor;
            if before.is_none() || count >= limit {
                return Ok((count.min(limit), sample));
            }
        }
    }
}

/// Restricts a filter to tasks in `error`, and to those that were not cancelled unless it names reasons.
fn restrict_filter_to_failed(filter: TaskFilter) -> TaskFilter {
    let reasons = match filter.error_reasons.is_empty() {
        true => vec![ErrorReason::Failed, ErrorReason::Crashed],
        false => filter.error_reasons,
    };
    TaskFilter { statuses: vec![TaskStatus::Error], error_reasons: reasons, ..filter }
}
