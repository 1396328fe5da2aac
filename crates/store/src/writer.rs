//! The writer: a thread that owns the database connection and commits jobs in groups.
//!
//! Jobs that arrive while a commit waits for the disk go into the next transaction, so all waiting callers share the
//! cost of durability, and no caller waits for a timer. A result is sent after the commit, never before.
//!
//! A job checks its input before it writes, so a rejected job has written nothing. If the database fails in the middle
//! (a full disk), the whole group is rolled back, all callers get the error, and the cached state is reloaded. If the
//! commit itself fails, or its response is lost, it is unknown whether the group is durable, and the callers' error
//! says so.
//!
//! A panic in a job counts as a failed transaction: its group gets an error, and the writer continues.
//!
//! A job that writes to an object whose outbox is too large to be drained in one transaction is postponed to the next
//! transaction; the other jobs do not wait for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pointsman_core::store::{StoreError, StoreListener, StoreSignal};
use pointsman_core::task::Lease;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::error::{TableResult, panic_message};
use crate::tables::{Backend, CacheState, ReadSet, Tables};
use crate::writer_state::WriterState;
use crate::writer_status::WriterStatus;

/// Most jobs in one transaction: enough to share the cost of a commit, few enough to bound its duration.
const MAX_GROUP_JOBS: usize = 512;

/// The transaction in which a job runs.
pub struct Txn<'a, T> {
    pub tables: &'a mut T,
    pub state: &'a mut WriterState,
}

/// Work that the writer runs in a transaction, and the result that it sends after the commit.
trait Job<T>: Send {
    /// Returns the position of the job in its group. Any order of the jobs is correct, because none has been answered.
    /// But a task can get a slot of a claim only if the job with the task's event runs before the job with the claim.
    fn position(&self) -> JobPosition;
    fn add_to_read_set(&self, state: &mut WriterState, read_set: &mut ReadSet);
    fn run_work(&mut self, txn: &mut Txn<'_, T>) -> TableResult<()>;
    fn send_result(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Position of a job in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobPosition {
    /// For jobs that create tasks, so that jobs with a claim can lease them.
    First,
    Last,
}

/// A request to the writer: its input, its position in the group, and how to collect its read set.
#[derive(Debug)]
pub struct JobRequest<A> {
    pub position: JobPosition,
    pub input: A,
    pub add_to_read_set: fn(&A, &mut WriterState, &mut ReadSet),
}

impl<A> JobRequest<A> {
    /// Builds a request without a read set.
    fn without_read_set(input: A) -> Self {
        Self { position: JobPosition::Last, input, add_to_read_set: |_, _, _| {} }
    }
}

/// A job that runs a closure and sends its result to the caller that waits for it.
struct AwaitedJob<A, F, T> {
    request: Option<JobRequest<A>>,
    work: Option<F>,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<A, F, T, B> Job<B> for AwaitedJob<A, F, T>
where
    A: Send,
    F: FnOnce(&mut Txn<'_, B>, A) -> TableResult<T> + Send,
    T: Send,
{
    fn position(&self) -> JobPosition {
        self.request.as_ref().map_or(JobPosition::Last, |request| request.position)
    }

    fn add_to_read_set(&self, state: &mut WriterState, read_set: &mut ReadSet) {
        if let Some(request) = &self.request {
            (request.add_to_read_set)(&request.input, state, read_set);
        }
    }

    fn run_work(&mut self, txn: &mut Txn<'_, B>) -> TableResult<()> {
        if let (Some(work), Some(request)) = (self.work.take(), self.request.take()) {
            self.result = Some(work(txn, request.input)?);
        }
        Ok(())
    }

    fn send_result(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may be gone; the commit stays in effect.
        let _ = reply.send(committed.and_then(|()| result.ok_or(StoreError::Closed)));
    }
}

type JobGroup<T> = Vec<Box<dyn Job<T>>>;
type JobInbox<T> = mpsc::UnboundedReceiver<Box<dyn Job<T>>>;
type JobSender<T> = mpsc::UnboundedSender<Box<dyn Job<T>>>;
type ListenerList = Arc<Mutex<Vec<Arc<dyn StoreListener>>>>;
type CommitHookSlot = Arc<Mutex<Option<Arc<dyn CommitHook>>>>;

/// A callback after this writer's own commits. Commits of other nodes do not call it.
pub trait CommitHook: Send + Sync {
    /// Called once after each commit that others may wait for. `head` is the new head of the journal, if it moved;
    /// `has_new_work`: tasks became ready, or will be due earlier than those that waited before.
    fn after_commit(&self, head: Option<EventId>, has_new_work: bool);
}

/// Handle of the writer thread.
pub struct Writer<T> {
    job_sender: Arc<Mutex<Option<JobSender<T>>>>,
    listeners: ListenerList,
    commit_hook: CommitHookSlot,
    thread: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
    status: Arc<WriterStatus>,
}

impl<T> Clone for Writer<T> {
    fn clone(&self) -> Self {
        let Self { job_sender: jobs, listeners, commit_hook, thread, status } = self;
        Self {
            job_sender: jobs.clone(),
            listeners: listeners.clone(),
            commit_hook: commit_hook.clone(),
            thread: thread.clone(),
            status: status.clone(),
        }
    }
}

impl<T: Tables> Writer<T> {
    /// Loads the state and starts the thread.
    pub fn start<B: Backend<Tables = T>>(
        mut backend: B,
        name: &str,
        now: Timestamp,
    ) -> std::io::Result<TableResult<Self>> {
        let state = match WriterState::load(backend.tables(), now) {
            Ok(state) => state,
            Err(fault) => return Ok(Err(fault)),
        };
        let (jobs, inbox) = mpsc::unbounded_channel();
        let (listeners, commit_hook) = (ListenerList::default(), CommitHookSlot::default());
        let status = Arc::new(WriterStatus::default());
        let mut thread = WriterThread {
            backend,
            state,
            listeners: listeners.clone(),
            commit_hook: commit_hook.clone(),
            must_reload_state: false,
            unreported_attempts: Vec::new(),
            status: status.clone(),
        };
        let thread =
            std::thread::Builder::new().name(name.into()).spawn(move || thread.run_until_closed(inbox))?;
        Ok(Ok(Self {
            job_sender: Arc::new(Mutex::new(Some(jobs))),
            listeners,
            commit_hook,
            thread: Arc::new(Mutex::new(Some(thread))),
            status,
        }))
    }

    /// Runs `work` in the next transaction; returns after its commit.
    pub async fn run_in_transaction<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Txn<'_, T>) -> TableResult<R> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.run_job(JobRequest::without_read_set(()), move |txn, ()| work(txn)).await
    }

    /// Runs a job with a position in its group and a read set.
    pub async fn run_job<A: Send + 'static, R: Send + 'static>(
        &self,
        request: JobRequest<A>,
        work: impl FnOnce(&mut Txn<'_, T>, A) -> TableResult<R> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (reply, result) = oneshot::channel();
        let job = Box::new(AwaitedJob { request: Some(request), work: Some(work), result: None, reply });
        {
            let jobs = self.job_sender.lock().unwrap_or_else(|e| e.into_inner());
            let sender = jobs.as_ref().ok_or(StoreError::Closed)?;
            sender.send(job).map_err(|_| StoreError::Closed)?;
        }
        result.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Returns the text stored under a name; stores `text` if there is none.
    pub async fn get_or_init_named_text(&self, name: &'static str, text: &str) -> Result<String, StoreError> {
        let initial = text.to_string();
        let read_or_init = move |txn: &mut Txn<'_, T>| match txn.tables.read_named_text(name)? {
            Some(stored_text) => Ok(stored_text),
            None => {
                txn.tables.write_named_text(name, &initial)?;
                Ok(initial)
            }
        };
        self.run_in_transaction(read_or_init).await
    }

    /// Returns the status of the writer. The returned handle does not keep the writer running.
    pub fn status(&self) -> Arc<WriterStatus> {
        self.status.clone()
    }

    pub fn add_listener(&self, listener: Arc<dyn StoreListener>) {
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).push(listener);
    }

    /// Sets the hook that is called after this writer's own commits; signals of
    /// [`Writer::notify_listeners_of_peer_commit`] do not call it.
    pub fn set_commit_hook(&self, hook: Arc<dyn CommitHook>) {
        self.commit_hook.lock().unwrap_or_else(|e| e.into_inner()).replace(hook);
    }

    /// Notifies all listeners about a commit of another node.
    pub fn notify_listeners_of_peer_commit(&self, signal: StoreSignal) {
        notify_listeners(&self.listeners, signal);
    }

    /// Closes the writer to new jobs, and waits until it has finished those it has.
    pub fn close(&self) {
        drop(self.job_sender.lock().unwrap_or_else(|e| e.into_inner()).take());
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.listeners.lock().unwrap_or_else(|e| e.into_inner()).clear();
        self.commit_hook.lock().unwrap_or_else(|e| e.into_inner()).take();
    }
}

fn notify_listeners(listeners: &ListenerList, signal: StoreSignal) {
    let listeners = listeners.lock().unwrap_or_else(|e| e.into_inner()).clone();
    for listener in listeners {
        listener.on_signal(signal);
    }
}

/// Logs the panic of a group, and returns the error that its callers get. The group may have been committed before.
fn log_panic_and_build_error(panic: &(dyn Any + Send)) -> StoreError {
    let text = panic_message(panic);
    tracing::error!(
        panic = text,
        "a transaction panicked; its callers get an error and the writer continues. Please report this error"
    );
    StoreError::unavailable(format!("the transaction panicked: {text}"))
}

/// Waits for the first job of a group, unless postponed jobs are in it already; returns `false` when the writer is
/// closed.
fn wait_for_first_job<T>(group: &mut JobGroup<T>, inbox: &mut JobInbox<T>) -> bool {
    if group.is_empty() {
        group.extend(inbox.blocking_recv());
    }
    !group.is_empty()
}

/// Adds waiting jobs to a group and sorts them by position.
fn fill_job_group<T>(group: &mut JobGroup<T>, inbox: &mut JobInbox<T>) {
    while group.len() < MAX_GROUP_JOBS
        && let Ok(job) = inbox.try_recv()
    {
        group.push(job);
    }
    group.sort_by_key(|job| job.position());
}

/// The writer thread: its connection, its cache, and the listeners to notify after a commit.
struct WriterThread<B> {
    backend: B,
    state: WriterState,
    listeners: ListenerList,
    commit_hook: CommitHookSlot,
    /// Whether the state must be reloaded before the next job, because a transaction failed.
    must_reload_state: bool,
    /// Attempts begun by a commit whose outcome is unknown. No caller was notified of them.
    unreported_attempts: Vec<(TaskSeq, Lease)>,
    status: Arc<WriterStatus>,
}

impl<B: Backend> WriterThread<B> {
    fn run_until_closed(&mut self, mut inbox: JobInbox<B::Tables>) {
        let mut group = Vec::new();
        while wait_for_first_job(&mut group, &mut inbox) {
            fill_job_group(&mut group, &mut inbox);
            let previous_head = self.state.event_id_generator.last_id();
            self.status.record_transaction_begin(Instant::now());
            let outcome = self.try_run_and_commit_group(&mut group, &mut inbox);
            let done_count = outcome.as_ref().map_or(group.len(), |done_count| *done_count);
            let outcome = outcome.map(drop);
            self.status.record_transaction_end(&outcome, Instant::now());
            if outcome.is_err() {
                self.backend.roll_back();
                self.must_reload_state = true;
            }
            // The head is announced before results are sent, so that a caller finds its events in the journal.
            let head = outcome.is_ok().then(|| self.notify_journal_head(previous_head)).flatten();
            for job in group.drain(..done_count) {
                job.send_result(outcome.clone());
            }
            let has_new_work = outcome.is_ok() && self.notify_ready_tasks();
            if head.is_some() || has_new_work {
                self.call_commit_hook(head, has_new_work);
            }
        }
    }

    /// Runs a group and commits; see [`Self::run_and_commit_group`]. If it fails or panics, attempts that it began are
    /// released later.
    fn try_run_and_commit_group(
        &mut self,
        group: &mut JobGroup<B::Tables>,
        inbox: &mut JobInbox<B::Tables>,
    ) -> Result<usize, StoreError> {
        let mut fence_at_begin = None;
        // After a panic the transaction is rolled back and the state reloaded, so nothing half-done is used again.
        let committed =
            catch_unwind(AssertUnwindSafe(|| self.run_and_commit_group(group, inbox, &mut fence_at_begin)));
        let error = match committed {
            Ok(Ok(done_count)) => return Ok(done_count),
            Ok(Err(fault)) => B::to_store_error(fault),
            Err(panic) => log_panic_and_build_error(&*panic),
        };
        if let Some(fence) = fence_at_begin {
            self.unreported_attempts.extend(self.state.list_attempts_after_fence(fence));
        }
        Err(error)
    }

    /// Runs a group and commits; returns how many of its first jobs are done. The others are postponed. Sets
    /// `fence_at_begin` to the last fence before the jobs, when the state includes the commits of other nodes.
    fn run_and_commit_group(
        &mut self,
        group: &mut JobGroup<B::Tables>,
        inbox: &mut JobInbox<B::Tables>,
        fence_at_begin: &mut Option<i64>,
    ) -> TableResult<usize> {
        let read_set = if self.must_reload_state { ReadSet::default() } else { self.collect_read_set(group) };
        match self.backend.begin(read_set)? {
            CacheState::Fresh if !self.must_reload_state => {}
            CacheState::Stale(changes) if !self.must_reload_state => {
                self.state.apply_peer_changes(self.backend.tables(), changes)?;
                self.add_waiting_jobs(group, inbox)?;
            }
            CacheState::Fresh | CacheState::Stale(_) | CacheState::Unknown => self.reload_state(group)?,
        }
        *fence_at_begin = Some(self.state.counters.last_fence);
        let done_count = self.run_jobs(group)?;
        self.backend.commit()?;
        self.unreported_attempts.clear();
        self.status.record_commit(self.backend.rows_written());
        Ok(done_count)
    }

    /// Collects the read set of jobs.
    fn collect_read_set(&mut self, jobs: &[Box<dyn Job<B::Tables>>]) -> ReadSet {
        let mut read_set = ReadSet::default();
        jobs.iter().for_each(|job| job.add_to_read_set(&mut self.state, &mut read_set));
        read_set
    }

    /// Adds jobs that arrived while another node had the write lock. They share this commit; otherwise two nodes would
    /// need twice as many commits as one.
    fn add_waiting_jobs(
        &mut self,
        group: &mut JobGroup<B::Tables>,
        inbox: &mut JobInbox<B::Tables>,
    ) -> TableResult<()> {
        let mut added = Vec::new();
        fill_job_group(&mut added, inbox);
        if added.is_empty() {
            return Ok(());
        }
        let read_set = self.collect_read_set(&added);
        group.append(&mut added);
        group.sort_by_key(|job| job.position());
        self.backend.extend_read_set(read_set)
    }

    fn run_jobs(&mut self, group: &mut JobGroup<B::Tables>) -> TableResult<usize> {
        let mut txn = Txn { tables: self.backend.tables(), state: &mut self.state };
        for (task, lease) in &self.unreported_attempts {
            txn.release_unreported_attempt(*task, *lease)?;
        }
        let done_count =
            if B::drain_outboxes_first(&mut txn)? { group.len() } else { self.postpone_jobs(group) };
        let mut txn = Txn { tables: self.backend.tables(), state: &mut self.state };
        for job in group.iter_mut().take(done_count) {
            job.run_work(&mut txn)?;
        }
        self.state.flush_changes(self.backend.tables())?;
        Ok(done_count)
    }

    /// Moves jobs that must be postponed to the end of the group; returns how many jobs are before them.
    fn postpone_jobs(&mut self, group: &mut JobGroup<B::Tables>) -> usize {
        let (ready, postponed): (JobGroup<B::Tables>, JobGroup<B::Tables>) =
            group.drain(..).partition(|job| {
                let mut read_set = ReadSet::default();
                job.add_to_read_set(&mut self.state, &mut read_set);
                !self.backend.must_postpone_job(&read_set)
            });
        let done_count = ready.len();
        group.extend(ready.into_iter().chain(postponed));
        done_count
    }

    fn reload_state(&mut self, group: &[Box<dyn Job<B::Tables>>]) -> TableResult<()> {
        self.state = WriterState::load(self.backend.tables(), self.state.event_id_generator.observed_time())?;
        // Listeners here were not notified of tasks that other nodes made ready.
        self.state.has_new_ready_tasks = true;
        if std::mem::take(&mut self.must_reload_state) {
            // Before the reload the state was invalid, so no read set could be collected.
            let read_set = self.collect_read_set(group);
            self.backend.extend_read_set(read_set)?;
        }
        Ok(())
    }

    /// Notifies listeners of the journal's new head, if it moved; returns it.
    fn notify_journal_head(&self, previous_head: EventId) -> Option<EventId> {
        let head = Some(self.state.event_id_generator.last_id()).filter(|head| *head != previous_head)?;
        notify_listeners(&self.listeners, StoreSignal::JournalGrew(head));
        Some(head)
    }

    /// Notifies listeners if a commit created work; returns whether it did.
    fn notify_ready_tasks(&mut self) -> bool {
        let has_ready =
            std::mem::take(&mut self.state.has_new_ready_tasks) && self.state.has_runnable_queue();
        let has_new_work = std::mem::take(&mut self.state.has_earlier_due_time) || has_ready;
        if has_new_work {
            notify_listeners(&self.listeners, StoreSignal::TasksReady);
        }
        has_new_work
    }

    fn call_commit_hook(&self, head: Option<EventId>, has_new_work: bool) {
        if let Some(hook) = &*self.commit_hook.lock().unwrap_or_else(|e| e.into_inner()) {
            hook.after_commit(head, has_new_work);
        }
    }
}

impl<T> std::fmt::Debug for Txn<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Txn")
    }
}

impl<T> std::fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}
