//! The one writer: a thread that owns the connection and commits in groups.
//!
//! Whatever arrives while a commit waits for the disk goes into the next transaction, so that the cost of
//! making things durable is shared by all who wait, and nobody waits for a timer. An answer is given after the
//! commit and never before.
//!
//! A job checks before it writes: a refusal leaves no trace. If the file itself fails in the middle (a full
//! disk), the whole group is rolled back, everyone is told, and the memory beside the file is read again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pointsman_core::Timestamp;
use pointsman_core::store::{Listener, Signal, StoreError};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Fault, Result};
use crate::open::Lock;
use crate::state::State;

/// The most jobs in one transaction: enough to share a commit widely, few enough to bound its length.
const GROUP: usize = 512;

/// The transaction that a job runs in.
pub(crate) struct Txn<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) state: &'a mut State,
}

pub(crate) trait Job: Send {
    /// Which jobs of a group come first. None of them has been answered, so that any order is as good to their
    /// callers; but an event that is journaled before a slot is filled can have that slot.
    fn place(&self) -> Place;
    fn work(&mut self, txn: &mut Txn<'_>) -> Result<()>;
    fn answer(self: Box<Self>, committed: std::result::Result<(), StoreError>);
}

/// Where in its group a job is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// It brings work.
    First,
    Last,
}

/// A closure as a job, with somebody waiting for its result.
struct Asked<F, T> {
    place: Place,
    work: Option<F>,
    result: Option<T>,
    answer: oneshot::Sender<std::result::Result<T, StoreError>>,
}

impl<F, T> Job for Asked<F, T>
where
    F: FnOnce(&mut Txn<'_>) -> Result<T> + Send,
    T: Send,
{
    fn place(&self) -> Place {
        self.place
    }

    fn work(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        if let Some(work) = self.work.take() {
            self.result = Some(work(txn)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), StoreError>) {
        let Self { result, answer, .. } = *self;
        // Whoever asked may have gone; what was committed stays committed.
        let _ = answer.send(committed.and_then(|()| result.ok_or(StoreError::Closed)));
    }
}

type Jobs = mpsc::UnboundedSender<Box<dyn Job>>;

/// Hands jobs to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: Arc<Mutex<Option<Jobs>>>,
    listeners: Arc<Mutex<Vec<Arc<dyn Listener>>>>,
    thread: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
    work: Arc<Work>,
}

impl Writer {
    pub(crate) fn start(conn: Connection, state: State, lock: Lock) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::unbounded_channel();
        let listeners = Arc::new(Mutex::new(Vec::new()));
        let work = Arc::new(Work::default());
        let mut thread = WriterThread {
            conn,
            state,
            listeners: listeners.clone(),
            stale: false,
            work: work.clone(),
            _lock: lock,
        };
        let thread =
            std::thread::Builder::new().name("sqlite-writer".into()).spawn(move || thread.run(inbox))?;
        Ok(Self {
            jobs: Arc::new(Mutex::new(Some(jobs))),
            listeners,
            thread: Arc::new(Mutex::new(Some(thread))),
            work,
        })
    }

    /// Runs `work` in the next transaction; answers after its commit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        self.run_at(Place::Last, work).await
    }

    /// The same, at its place in the group.
    pub(crate) async fn run_at<T: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        let (answer, result) = oneshot::channel();
        let job = Box::new(Asked { place, work: Some(work), result: None, answer });
        {
            let jobs = self.jobs.lock().unwrap_or_else(|e| e.into_inner());
            let sender = jobs.as_ref().ok_or(StoreError::Closed)?;
            sender.send(job).map_err(|_| StoreError::Closed)?;
        }
        result.await.unwrap_or(Err(StoreError::Closed))
    }

    /// What has been done since the start. Holding it keeps nothing alive.
    pub(crate) fn work(&self) -> Arc<Work> {
        self.work.clone()
    }

    pub(crate) fn listen(&self, listener: Arc<dyn Listener>) {
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).push(listener);
    }

    /// Lets the writer finish what it was given, and waits for it.
    pub(crate) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(|e| e.into_inner()).take());
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

/// What the writer has done since it started.
#[derive(Debug, Default)]
pub(crate) struct Work {
    commits: AtomicU64,
    rows: AtomicU64,
}

impl Work {
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

struct WriterThread {
    conn: Connection,
    state: State,
    listeners: Arc<Mutex<Vec<Arc<dyn Listener>>>>,
    /// The state could not be read again after a failure, and must be before anything else is done.
    stale: bool,
    work: Arc<Work>,
    _lock: Lock,
}

impl WriterThread {
    fn run(&mut self, mut inbox: mpsc::UnboundedReceiver<Box<dyn Job>>) {
        let mut group: Vec<Box<dyn Job>> = Vec::new();
        while let Some(first) = inbox.blocking_recv() {
            group.push(first);
            while group.len() < GROUP {
                match inbox.try_recv() {
                    Ok(job) => group.push(job),
                    Err(_) => break,
                }
            }
            group.sort_by_key(|job| job.place());
            let head = self.state.ids.last();
            let committed = self.commit(&mut group);
            let outcome = committed.as_ref().copied().map_err(StoreError::from);
            if let Err(fault) = &committed {
                tracing::error!(%fault, "a transaction failed and was rolled back");
                self.recover();
            }
            // The head is told first: whoever acts on an answer finds in the journal what belongs to it.
            if outcome.is_ok() {
                self.tell_head(head);
            }
            for job in group.drain(..) {
                job.answer(outcome.clone());
            }
            if outcome.is_ok() {
                self.tell_work();
            }
        }
    }

    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<()> {
        if self.stale {
            self.reload()?;
        }
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for job in group {
            job.work(&mut Txn { conn: &self.conn, state: &mut self.state })?;
        }
        self.state.flush(&self.conn)?;
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        self.work.commits.fetch_add(1, Ordering::Relaxed);
        self.work.rows.store(self.conn.total_changes(), Ordering::Relaxed);
        Ok(())
    }

    /// After a failed transaction the file is as it was before; the memory beside it must be so too.
    fn recover(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the transaction could not be rolled back");
        }
        if let Err(fault) = self.reload() {
            tracing::error!(%fault, "the state could not be read again");
            self.stale = true;
        }
    }

    fn reload(&mut self) -> Result<()> {
        self.state = State::load(&self.conn, self.state.ids.seen())?;
        self.stale = false;
        Ok(())
    }

    /// Tells listeners how far the journal has grown by a commit.
    fn tell_head(&self, before: pointsman_core::EventId) {
        let head = self.state.ids.last();
        if head != before {
            self.tell(Signal::Journal(head));
        }
    }

    /// Tells listeners whether a commit brought work.
    fn tell_work(&mut self) {
        let woke = std::mem::take(&mut self.state.woke) && self.state.any_runnable();
        let sooner = std::mem::take(&mut self.state.sooner);
        if woke || sooner {
            self.tell(Signal::Work);
        }
    }

    fn tell(&self, signal: Signal) {
        let listeners = self.listeners.lock().unwrap_or_else(|e| e.into_inner()).clone();
        for listener in listeners {
            listener.heard(signal);
        }
    }
}

/// The state of a file that was just opened: made on the first start, and with everybody who held it before
/// taken for gone, because the lock says that no other process has it.
pub(crate) fn first_state(conn: &Connection, now: Timestamp) -> Result<State> {
    let random = || uuid::Uuid::new_v4().as_u64_pair();
    let (realm, _) = random();
    let (_, salt) = random();
    let sql = "INSERT OR IGNORE INTO pointsman_meta (name, value) VALUES (?1, ?2)";
    conn.execute(sql, ("realm", (realm & ((1 << 60) - 1)) as i64))?;
    conn.execute(sql, ("salt", salt as i64))?;
    conn.execute("UPDATE pointsman_node SET heard = 0 WHERE gone = 0", [])?;
    State::load(conn, now)
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::from(&fault)
    }
}
