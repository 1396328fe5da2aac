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
//! The transaction is the store's own: the program's tables lie in the same file or database as the journal, and an
//! event exists if and only if the commit did. Nothing is held while a unit of work is put together; the transaction is
//! as long as the operations take to run.
//!
//! On SQLite they run on the thread of the store's one writer, and everybody else's commits wait for them: operations
//! write, and leave what is slow to handlers. Names that begin with `pointsman_` are the store's. On PostgreSQL they run
//! on a connection of their own, and nobody waits. The schema `pointsman` is the store's; the events are left there to be
//! sequenced, so that a commit is answered with receipts ([`Committed`]).
//!
//! On Redis a statement is a command, and its parameters are further words: `execute("SET", ["stock:7".into(), 5.into()])`.
//! Commands are done together at the end, and nothing can be read. Redis takes nothing back: if it refuses a command,
//! because a key is of another type, those before it are done, and no event is emitted. Events need a key: they are left in
//! the list of their object, and there are no receipts. Keys that begin with `pointsman:` are the store's.
//!
//! Once begun, a commit runs to its end even if whoever waits for it goes away.

mod committed;
mod operation;
mod tx;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::store::StoreError;
use pointsman_core::{Cause, Context};
use pointsman_store::sql::{Sql, TransactError};

pub use committed::{Committed, Receipt};
pub use operation::Operation;
pub use tx::Tx;

use crate::emit::{BadEvent, Emit};
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
    /// The one exception: the connection to the database broke while it committed, and it could not be asked since.
    #[error("whether it was committed is not known: {0}")]
    Unknown(String),
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
        let event = describe(&event, &how, self.cause, self.bus.now())?;
        self.operations.push(Box::new(Emission(Some(event))));
        Ok(())
    }

    /// Commits. When this answers, all of it is on disk, and the hooks after the commit have run.
    pub async fn commit(mut self) -> Result<Committed, CommitError> {
        let operations = std::mem::take(&mut self.operations);
        let context = std::mem::take(&mut self.context);
        // A task of its own, because a caller that goes away (a request that was cut off) must not come
        // between the commit and the hooks that follow it.
        let settled = tokio::spawn(settle(self.bus.clone(), operations, context, self.cause));
        settled.await.unwrap_or(Err(CommitError::Store(StoreError::Closed)))
    }
}

impl Drop for UnitOfWork {
    fn drop(&mut self) {
        roll_back(std::mem::take(&mut self.operations));
    }
}

async fn settle(
    bus: Bus,
    operations: Operations,
    context: Context,
    cause: Option<Cause>,
) -> Result<Committed, CommitError> {
    // The transaction's thread borrows the operations for the transaction; the hooks after it run here.
    let operations = Arc::new(Mutex::new(operations));
    let lent = operations.clone();
    let now = bus.now();
    let work = move |sql: &mut dyn Sql| {
        let mut operations = lent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = Tx::new(sql, context, cause, now);
        operations.iter_mut().try_for_each(|operation| operation.on_commit(&mut tx))?;
        Ok(tx.into_events())
    };
    let committed = bus.opened().transact(work, now).await;
    let operations = std::mem::take(&mut *operations.lock().unwrap_or_else(PoisonError::into_inner));
    match committed {
        Ok(made) => {
            for mut operation in operations {
                guarded("on_post_commit", || operation.on_post_commit());
            }
            Ok(Committed::new(bus, made))
        }
        // Neither hook would say the truth.
        Err(TransactError::Unknown(why)) => Err(CommitError::Unknown(why)),
        Err(TransactError::Work(fault)) => {
            roll_back(operations);
            Err(CommitError::Operation(fault))
        }
        Err(TransactError::Store(fault)) => {
            roll_back(operations);
            Err(CommitError::Store(fault))
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
