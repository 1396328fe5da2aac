//! A unit of work: the program's own writes and the events that tell of them, in one transaction.
//!
//! ```text
//!  register ─▶ on_register          at once
//!  emit                             nothing yet
//!  commit ───▶ on_commit, in order  inside the transaction ─▶ COMMIT ─▶ on_post_commit, in order
//!                │ one fails                                   │ fails
//!                └──────────────▶ rolled back ◀────────────────┘
//!                                 on_rollback, in reverse order
//! ```
//!
//! The transaction is the store's own: the program's tables lie in the same file as the journal, and an event
//! exists if and only if the commit did. Names that begin with `pointsman_` are the store's. Nothing is held
//! while a unit of work is put together; the transaction is as long as the operations take to run, on the
//! thread of the store's one writer. Everybody else's commits wait for it, so operations write, and leave
//! what is slow to handlers.
//!
//! Once begun, a commit runs to its end even if whoever waits for it goes away.

mod operation;
mod tx;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::store::StoreError;
use pointsman_core::{Cause, Context};
use pointsman_store_sqlite::{SqliteStore, TransactError};

pub use operation::Operation;
pub use tx::Tx;

use crate::emit::{BadEvent, Emit, Emitted};
use crate::event::describe;
use crate::handler::panicked;
use crate::{Bus, Event, RequestContext, Value, scope};
use operation::{Emission, OnCommit, OnPostCommit};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Operations = Vec<Box<dyn Operation>>;

/// Why a commit did not happen. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// An operation refused.
    #[error("an operation failed, and everything was rolled back")]
    Operation(#[source] BoxError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Operations and events that are committed together. Dropped without a commit, it leaves no trace in the
/// store.
pub struct UnitOfWork {
    bus: Bus,
    operations: Operations,
    context: Context,
    /// What the handler that began it works on, if one did.
    cause: Option<Cause>,
}

impl UnitOfWork {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, operations: Vec::new(), context: Context::new(), cause: scope::cause() }
    }

    /// The request that all of this is done for. Events that are emitted without a context of their own get
    /// this one.
    pub fn context(&mut self, request: RequestContext) {
        self.context = request.into();
    }

    /// Adds an operation. One that refuses in `on_register` is not added.
    pub fn register(&mut self, mut operation: impl Operation) -> Result<(), BoxError> {
        operation.on_register(self)?;
        self.operations.push(Box::new(operation));
        Ok(())
    }

    /// Runs a statement inside the transaction.
    pub fn execute(&mut self, sql: impl Into<String>, parameters: impl IntoIterator<Item = Value>) {
        let (sql, parameters) = (sql.into(), parameters.into_iter().collect::<Vec<_>>());
        self.on_commit(move |tx| Ok(tx.execute(&sql, &parameters).map(|_| ())?));
    }

    /// Does something inside the transaction. An error rolls everything back.
    pub fn on_commit(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<(), BoxError> + Send + 'static) {
        self.operations.push(Box::new(OnCommit(Some(work))));
    }

    /// Does something after the commit, and only if there was one.
    pub fn on_post_commit(&mut self, work: impl FnOnce() + Send + 'static) {
        self.operations.push(Box::new(OnPostCommit(Some(work))));
    }

    /// Emits an event with the commit. Events stand in the journal in the order of their operations.
    pub fn emit<E: Event>(&mut self, event: E) -> Result<(), BadEvent> {
        self.emit_with(event, Emit::new())
    }

    /// The same, with more to say.
    pub fn emit_with<E: Event>(&mut self, event: E, how: Emit) -> Result<(), BadEvent> {
        how.without_idempotency(E::TYPE)?;
        let event = describe(&event, &how, self.cause, pointsman_engine::now())?;
        self.operations.push(Box::new(Emission(Some(event))));
        Ok(())
    }

    /// Commits. When this answers, all of it is on disk, and the hooks after the commit have run.
    pub async fn commit(mut self) -> Result<Vec<Emitted>, CommitError> {
        let operations = std::mem::take(&mut self.operations);
        let context = std::mem::take(&mut self.context);
        let store = self.bus.sqlite().clone();
        // A task of its own, because a caller that goes away (a request that was cut off) must not come
        // between the commit and the hooks that follow it.
        let settled = tokio::spawn(settle(store, operations, context, self.cause));
        settled.await.unwrap_or(Err(CommitError::Store(StoreError::Closed)))
    }
}

impl Drop for UnitOfWork {
    fn drop(&mut self) {
        roll_back(std::mem::take(&mut self.operations));
    }
}

async fn settle(
    store: SqliteStore,
    operations: Operations,
    context: Context,
    cause: Option<Cause>,
) -> Result<Vec<Emitted>, CommitError> {
    // The writer's thread borrows the operations for the transaction; the hooks after it run here.
    let operations = Arc::new(Mutex::new(operations));
    let lent = operations.clone();
    let now = pointsman_engine::now();
    let work = move |tx: &mut pointsman_store_sqlite::Tx<'_>| {
        let mut operations = lent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = Tx::new(tx, context, cause, now);
        operations.iter_mut().try_for_each(|operation| operation.on_commit(&mut tx))?;
        Ok(tx.into_events())
    };
    let committed = store.transact(work, now).await;
    let operations = std::mem::take(&mut *operations.lock().unwrap_or_else(PoisonError::into_inner));
    match committed {
        Ok(receipt) => {
            for mut operation in operations {
                guarded("on_post_commit", || operation.on_post_commit());
            }
            Ok(Emitted::all(receipt))
        }
        Err(fault) => {
            roll_back(operations);
            Err(match fault {
                TransactError::Work(fault) => CommitError::Operation(fault),
                TransactError::Store(fault) => CommitError::Store(fault),
            })
        }
    }
}

fn roll_back(operations: Operations) {
    for mut operation in operations.into_iter().rev() {
        guarded("on_rollback", || operation.on_rollback());
    }
}

/// Runs a hook that nothing depends on any more. The next ones run even if it panics.
fn guarded(hook: &str, run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        tracing::error!(hook, "a hook of a unit of work {}", panicked(&*panic));
    }
}

impl std::fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnitOfWork").field("operations", &self.operations.len()).finish()
    }
}
