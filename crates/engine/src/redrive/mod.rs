//! Running many failed tasks again, by what they have in common.
//!
//! ```text
//!   redrive ─▶ job: read what matches ─▶ [canary: the first few, until they have ended] ─▶ the rest, paced
//! ```
//!
//! A job lives on the node that began it, and ends with it: what it has not retried by then stays in `error`, and
//! the same redrive asked again finds it. What matches is read first, so that a task that fails again is not
//! retried twice; the oldest come first, so that lanes are filled in order.

mod job;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_core::store::{StoreError, TaskFilter};
use pointsman_core::task::{EndReason, Task};
use pointsman_core::{Rate, Status, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Engine;
use job::RedriveJob;

/// How many jobs a node has at a time. Each keeps the numbers of all that it found in memory.
const MAX_RUNNING_JOBS: usize = 4;
/// How many jobs that have ended are remembered.
const MAX_ENDED_JOBS: usize = 100;
/// How many tasks are read at a time.
const PAGE_SIZE: usize = 500;
/// How many tasks a count shows.
const SAMPLE_SIZE: usize = 20;

/// What is to be run again, and how carefully.
#[derive(Clone, Debug)]
pub struct RedriveRequest {
    /// Which tasks; of these, those in `error`. Cancelled ones only if the reasons name them.
    pub filter: TaskFilter,
    /// How fast; as fast as the store takes them if not given.
    pub rate: Option<Rate>,
    /// So many are run first. If one of them fails again, the others are left alone.
    pub canary: Option<usize>,
    /// Who wants it.
    pub by: String,
}

/// A redrive, as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Redrive {
    pub id: String,
    pub filter: TaskFilter,
    pub rate: Option<Rate>,
    pub canary: Option<usize>,
    pub by: String,
    pub state: RedriveState,
    /// How many tasks it is about, as far as they have been read.
    pub matched: u64,
    pub retried: u64,
    /// How many could not be retried: somebody was quicker, or their events have been forgotten.
    pub refused: u64,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveState {
    Running,
    /// The first few have been retried, and the others wait for them to end.
    Canary,
    Done,
    /// It ended before its time, for this reason.
    Stopped(String),
}

impl RedriveState {
    /// One word for people and programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Canary => "canary",
            Self::Done => "done",
            Self::Stopped(_) => "stopped",
        }
    }

    pub fn has_ended(&self) -> bool {
        match self {
            Self::Running | Self::Canary => false,
            Self::Done | Self::Stopped(_) => true,
        }
    }
}

/// Why a redrive was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedriveRefused {
    #[error("{MAX_RUNNING_JOBS} redrives go on already; wait for one of them to end, or stop it")]
    TooMany,
    /// It would retry what that one is about to.
    #[error("the redrive {0} is about the same tasks and goes on; wait for it to end, or stop it")]
    AlreadyRunning(String),
}

/// A redrive that has its place among the jobs of the node and has not begun. Dropped, it gives its place up.
#[derive(Debug)]
pub struct PreparedRedrive {
    engine: Engine,
    number: u64,
    status: Arc<Mutex<Redrive>>,
    stop: CancellationToken,
    is_started: bool,
}

impl PreparedRedrive {
    /// The redrive as it is when it begins.
    pub fn status(&self) -> Redrive {
        lock_status(&self.status).clone()
    }

    /// Gives its place up until it is admitted again.
    pub fn release_reservation(&self) {
        self.engine.node().redrive_jobs.lock_jobs().remove(&self.number);
    }

    /// Takes its place again, unless too many redrives run by now, or one for the same tasks.
    pub fn reserve_again(&self) -> Result<(), RedriveRefused> {
        let status = self.status();
        let mut jobs = self.engine.node().redrive_jobs.lock_jobs();
        check_admission(&jobs, &status.filter)?;
        jobs.insert(self.number, RedriveEntry { status: self.status.clone(), stop: self.stop.clone() });
        Ok(())
    }

    /// Begins it; answers what it is called.
    pub fn start(mut self) -> String {
        self.is_started = true;
        let job = RedriveJob::new(self.engine.clone(), self.status.clone());
        self.engine.node().redrive_jobs.job_tracker.spawn(job.run(self.stop.clone()));
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

/// The jobs of a node, the newest last.
#[derive(Debug, Default)]
pub(crate) struct RedriveJobs {
    jobs: Mutex<BTreeMap<u64, RedriveEntry>>,
    last_number: AtomicU64,
    stop: CancellationToken,
    job_tracker: TaskTracker,
}

#[derive(Debug)]
struct RedriveEntry {
    status: Arc<Mutex<Redrive>>,
    stop: CancellationToken,
}

impl RedriveJobs {
    /// Ends all jobs, and waits for them.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.job_tracker.close();
        self.job_tracker.wait().await;
    }

    fn lock_jobs(&self) -> MutexGuard<'_, BTreeMap<u64, RedriveEntry>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest of those that have ended, if they are too many.
fn drop_oldest_ended(jobs: &mut BTreeMap<u64, RedriveEntry>) {
    let ended = jobs.iter().filter(|(_, job)| lock_status(&job.status).state.has_ended());
    let ended: Vec<u64> = ended.map(|(number, _)| *number).collect();
    for number in ended.iter().take(ended.len().saturating_sub(MAX_ENDED_JOBS)) {
        jobs.remove(number);
    }
}

/// Whether a job for these tasks may begin beside those that go on.
fn check_admission(jobs: &BTreeMap<u64, RedriveEntry>, filter: &TaskFilter) -> Result<(), RedriveRefused> {
    let (mut running, mut same) = (0, None);
    for job in jobs.values() {
        let status = lock_status(&job.status);
        if !status.state.has_ended() {
            running += 1;
            if status.filter == *filter {
                same = Some(status.id.clone());
            }
        }
    }
    match same {
        Some(id) => Err(RedriveRefused::AlreadyRunning(id)),
        None if running >= MAX_RUNNING_JOBS => Err(RedriveRefused::TooMany),
        None => Ok(()),
    }
}

fn lock_status(status: &Mutex<Redrive>) -> MutexGuard<'_, Redrive> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Begins to run failed tasks again; answers at once with what the job is called.
    pub fn start_redrive(&self, request: RedriveRequest) -> Result<String, RedriveRefused> {
        Ok(self.prepare_redrive(request)?.start())
    }

    /// Reserves the place of a redrive, which begins when it is started.
    pub fn prepare_redrive(&self, request: RedriveRequest) -> Result<PreparedRedrive, RedriveRefused> {
        let node = self.node();
        let redrives = &node.redrive_jobs;
        let RedriveRequest { filter, rate, canary, by } = request;
        let filter = restrict_to_failed(filter);
        let mut jobs = redrives.lock_jobs();
        check_admission(&jobs, &filter)?;
        let number = redrives.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        // Jobs of two nodes are never called the same, nor those of one before and after a start.
        let id = format!("{}-{number}", node.id());
        let status = Arc::new(Mutex::new(Redrive {
            id,
            filter,
            rate,
            canary: canary.filter(|first| *first > 0),
            by,
            state: RedriveState::Running,
            matched: 0,
            retried: 0,
            refused: 0,
            started_at: self.now(),
            ended_at: None,
        }));
        let stop = redrives.stop.child_token();
        jobs.insert(number, RedriveEntry { status: status.clone(), stop: stop.clone() });
        drop_oldest_ended(&mut jobs);
        Ok(PreparedRedrive { engine: self.clone(), number, status, stop, is_started: false })
    }

    /// The redrives that run on this node, and the last ones that have ended, the newest first.
    pub fn list_redrives(&self) -> Vec<Redrive> {
        self.node()
            .redrive_jobs
            .lock_jobs()
            .values()
            .rev()
            .map(|job| lock_status(&job.status).clone())
            .collect()
    }

    /// One of them.
    pub fn find_redrive(&self, id: &str) -> Option<Redrive> {
        self.list_redrives().into_iter().find(|job| job.id == id)
    }

    /// Ends a redrive: what it has not retried stays as it is. `false`: there is none of this name that runs.
    pub fn stop_redrive(&self, id: &str) -> bool {
        let jobs = self.node().redrive_jobs.lock_jobs();
        let found = jobs.values().find(|job| {
            let status = lock_status(&job.status);
            status.id == id && !status.state.has_ended()
        });
        found.inspect(|job| job.stop.cancel()).is_some()
    }

    /// How many tasks a redrive with this filter would be about, counted up to `most`, and the newest of them.
    pub async fn count_failed_tasks(
        &self,
        filter: TaskFilter,
        most: u64,
    ) -> Result<(u64, Vec<Task>), StoreError> {
        let filter = restrict_to_failed(filter);
        let (mut count, mut sample, mut before) = (0, Vec::new(), None);
        loop {
            let page = self.store().tasks(filter.clone(), before, PAGE_SIZE).await?;
            count += page.tasks.len() as u64;
            sample.extend(page.tasks.into_iter().take(SAMPLE_SIZE - sample.len()));
            before = page.next;
            if before.is_none() || count >= most {
                return Ok((count.min(most), sample));
            }
        }
    }
}

/// Of these, those that can be run again and that nobody has ended on purpose.
fn restrict_to_failed(filter: TaskFilter) -> TaskFilter {
    let reasons = match filter.reasons.is_empty() {
        true => vec![EndReason::Failed, EndReason::Crashed],
        false => filter.reasons,
    };
    TaskFilter { statuses: vec![Status::Error], reasons, ..filter }
}
