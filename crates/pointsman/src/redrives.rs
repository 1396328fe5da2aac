//! Operations of the bus on redrives, which retry many failed tasks.

use pointsman_core::Rate;
use pointsman_core::store::{StoreError, TaskFilter};
use pointsman_engine::{RedriveError, RedriveRequest, RedriveStatus};

use crate::Bus;

/// A redrive to be started with [`Bus::start_redrive`].
///
/// ```
/// # use pointsman::{Bus, NewRedrive, TaskFilter};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pointsman::BoxError> {
/// # let bus = Bus::builder("sqlite::memory:").start().await?;
/// let failed_at_index = TaskFilter { handler: Some("index".parse()?), ..TaskFilter::default() };
/// let id = bus.start_redrive(NewRedrive::new(failed_at_index).rate("100/m".parse()?).canaries(3))?;
/// assert_eq!(bus.find_redrive(&id).expect("it was started").matched_count, 0);
/// # bus.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NewRedrive {
    filter: TaskFilter,
    rate: Option<Rate>,
    canary_count: Option<usize>,
}

impl NewRedrive {
    /// A redrive of the failed tasks that match. Cancelled tasks are retried only if the filter's error reasons name
    /// them.
    pub fn new(filter: TaskFilter) -> Self {
        Self { filter, rate: None, canary_count: None }
    }

    /// Limits the rate of retries.
    pub fn rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Retries this many tasks first, the oldest. If one of them fails again, the others are not retried.
    pub fn canaries(self, count: usize) -> Self {
        Self { canary_count: Some(count), ..self }
    }
}

impl Bus {
    /// Starts a redrive in the background of this program, and returns its id. When the program stops, tasks that the
    /// redrive has not retried by then stay failed.
    pub fn start_redrive(&self, redrive: NewRedrive) -> Result<String, RedriveError> {
        let NewRedrive { filter, rate, canary_count } = redrive;
        let requested_by = self.program_name.to_string();
        self.engine.start_redrive(RedriveRequest { filter, rate, canary_count, requested_by })
    }

    /// Lists the redrives that run in this program, and the last ones that have ended, newest first.
    pub fn list_redrives(&self) -> Vec<RedriveStatus> {
        self.engine.list_redrives()
    }

    /// Finds a redrive of this program by its id.
    pub fn find_redrive(&self, id: &str) -> Option<RedriveStatus> {
        self.engine.find_redrive(id)
    }

    /// Stops a redrive; `false` if none of this id runs. Tasks that it has not retried stay failed.
    pub fn stop_redrive(&self, id: &str) -> bool {
        self.engine.stop_redrive(id)
    }

    /// Counts the failed tasks that a redrive with this filter would retry, up to `limit`.
    pub async fn count_failed_tasks(&self, filter: TaskFilter, limit: u64) -> Result<u64, StoreError> {
        Ok(self.engine.count_and_sample_failed_tasks(filter, limit).await?.0)
    }
}
