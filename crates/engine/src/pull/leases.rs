//! What this node remembers of the leases that workers come back for: the task, since when, and how much its
//! attempt may still log. Forgotten with the attempt, or when the lease has run out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::store::{Claimed, Store, StoreError};
use pointsman_core::task::{LogLine, Rejected, Run, State, Subject, Task};
use pointsman_core::{CollectionName, Context, Event, HandlingKey, Json, Pair, TaskId, Timestamp};

use crate::logbook::Allowance;

/// A lease that ran out so long ago is nobody's: others had the time to take it, and no clock is this wrong.
const LONG_OVER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<i64, Leased>>);

#[derive(Debug)]
struct Leased {
    task: Claimed,
    since: Timestamp,
    until: Timestamp,
    allowance: Allowance,
}

impl Leases {
    pub(crate) fn begin(&self, task: Claimed, since: Timestamp, until: Timestamp) {
        let leased = Leased { since, until, allowance: Allowance::default(), task };
        self.all().insert(leased.task.fence, leased);
    }

    /// The task that is leased under this fence. One that another node gave out is read from the store.
    pub(crate) async fn find(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<Claimed, Rejected>, StoreError> {
        if let Some(leased) = self.all().get(&fence) {
            return Ok(if leased.task.id == *id {
                Ok(leased.task.clone())
            } else {
                Err(Rejected::StaleFence)
            });
        }
        let (task, since, until) = match held(store, id, fence).await? {
            Ok(held) => held,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let Some(task) = claimed(store, task, fence).await? else {
            return Ok(Err(Rejected::Forgotten));
        };
        self.begin(task.clone(), since, until);
        Ok(Ok(task))
    }

    /// Forgets the lease if the store no longer knows of it, and says why.
    pub(crate) async fn forget_lost(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<(), Rejected>, StoreError> {
        let held = held(store, id, fence).await?.map(|_| ());
        if held.is_err() {
            self.forget(fence);
        }
        Ok(held)
    }

    pub(crate) fn renewed(&self, fence: i64, until: Timestamp) {
        if let Some(leased) = self.all().get_mut(&fence) {
            leased.until = until;
        }
    }

    /// Those of the lines that are within what the attempt may log.
    pub(crate) fn admit(&self, fence: i64, lines: Vec<LogLine>) -> Vec<LogLine> {
        match self.all().get_mut(&fence) {
            Some(leased) => lines.into_iter().filter_map(|line| leased.allowance.admit(line)).collect(),
            None => vec![],
        }
    }

    /// So many lines were not logged after all.
    pub(crate) fn take_back(&self, fence: i64, lines: usize) {
        if let Some(leased) = self.all().get_mut(&fence) {
            leased.allowance.take_back(lines);
        }
    }

    pub(crate) fn allowance(&self, fence: i64) -> Allowance {
        self.all().get(&fence).map(|leased| leased.allowance).unwrap_or_default()
    }

    pub(crate) fn since(&self, fence: i64) -> Option<Timestamp> {
        self.all().get(&fence).map(|leased| leased.since)
    }

    pub(crate) fn forget(&self, fence: i64) {
        self.all().remove(&fence);
    }

    /// Forgets what ran out long ago.
    pub(crate) fn forget_old(&self, now: Timestamp) {
        self.all().retain(|_, leased| leased.until.plus(LONG_OVER) > now);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<i64, Leased>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task if a worker holds it under this fence, since when and until when.
async fn held(
    store: &dyn Store,
    id: &TaskId,
    fence: i64,
) -> Result<Result<(Task, Timestamp, Timestamp), Rejected>, StoreError> {
    let Some((task, _)) = store.task(id).await? else { return Ok(Err(Rejected::NoSuchTask)) };
    Ok(match task.life.state {
        State::Locked(lease) => match lease.until {
            Some(until) if lease.fence == fence => Ok((task, lease.since, until)),
            // What a node runs is not for workers to end, whatever fence they name.
            Some(_) | None => Err(Rejected::StaleFence),
        },
        State::New { .. } | State::Scheduled | State::Done | State::Error { .. } | State::Missing { .. } => {
            Err(Rejected::WrongState(task.life.state.status()))
        }
    })
}

/// A running task as a claim would have brought it.
async fn claimed(store: &dyn Store, task: Task, fence: i64) -> Result<Option<Claimed>, StoreError> {
    let subject = match task.event {
        None => run(&task).map(Subject::Run),
        Some(id) => {
            let event = store.event(id).await?.map(|view| view.event);
            event.or_else(|| remembered(&task).map(Arc::new)).map(Subject::Event)
        }
    };
    Ok(subject.map(|subject| Claimed {
        seq: task.seq,
        id: task.id,
        handler: task.handler,
        subject,
        planned: task.planned_at,
        attempt: task.life.attempt,
        retries: task.life.retries,
        fence,
        until: None,
        prev_sent: None,
        late: task.life.late,
    }))
}

fn run(task: &Task) -> Option<Run> {
    let collection = CollectionName::new(&task.collection).ok()?;
    Some(Run { pair: Pair { source: task.handler.clone(), collection }, tenant: task.tenant.clone() })
}

/// An event that the journal has forgotten while its task ran, as far as the task tells of it: enough to say what
/// its emits are caused by.
fn remembered(task: &Task) -> Option<Event> {
    Some(Event {
        id: task.event?,
        prev: None,
        kind: HandlingKey::new(&task.collection).ok()?,
        key: task.key.clone(),
        sub: None,
        value: Json::null(),
        context: Context::new(),
        tenant: task.tenant.clone(),
        cause: None,
    })
}
