//! A unit of work: the program's own writes and the events about them, in one transaction.
//!
//! ```text
//!  register ─▶ on_register              at once
//!  emit                                 buffered until the commit
//!  commit ───▶ before_commit, in order  inside the transaction ─▶ COMMIT ─▶ on_post_commit, in order
//!                │ one fails                                       │ fails
//!                └──────────────▶ rolled back ◀────────────────────┘
//!                                 on_rollback, in reverse order
//! ```
//!
//! The transaction is one of the store: the program's tables are in the same file or database as the journal, and an
//! event exists if and only if the commit succeeded. A unit of work takes no locks before its commit; the transaction
//! lasts as long as the operations run.
//!
//! On SQLite the operations run on the thread of the store's only writer, and all other commits wait for them:
//! operations should only write, and leave slow work to handlers. Table names that begin with `pointsman_` are reserved
//! for the store. On PostgreSQL the operations run on a connection of their own, and no other commit waits. The schema
//! `pointsman` is reserved for the store; the events go to its outbox, so that a commit returns receipts
//! ([`CommittedEvents`]).
//!
//! On Redis a statement is a command, and its parameters are the command's arguments, as in `execute("SET",
//! ["stock:7".into(), 5.into()])`. Commands run together at the end, and nothing can be read. Redis does not roll back:
//! if it rejects a command, because a key is of another type, those before it stay in effect, and no event is emitted.
//! Events need a key: they are appended to the list of their object, and there are no receipts. Keys that begin with
//! `pointsman:` are reserved for the store.
//!
//! Once begun, a commit runs to its end even if its caller is dropped.

mod committed_events;
mod operation;
mod tx;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::store::StoreError;
use pointsman_core::{Cause, Context};
use pointsman_store::sql::{SqlTransaction, TransactError};

pub use committed_events::{CommittedEvents, EventReceipt};
pub use operation::Operation;
pub use tx::Tx;

use crate::emit::{EmitOptions, InvalidEvent};
use crate::event::to_new_event;
use crate::handler::panic_error_text;
use crate::{Bus, Event, RequestContext, SqlValue, attempt_scope};
use operation::{BeforeCommitOperation, EmitOperation, PostCommitOperation};

/// An error of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Operations = Vec<Box<dyn Operation>>;

/// Why a commit failed. Nothing was stored, except as [`CommitError::OutcomeUnknown`] says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// An operation returned an error or panicked.
    #[error("an operation failed, and everything was rolled back")]
    Operation(#[source] BoxError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection to the database broke during the commit, and the outcome could not be read afterwards.
    #[error("it is unknown whether the unit of work was committed; check its rows before you repeat it")]
    OutcomeUnknown(#[source] BoxError),
}

/// Operations and events that are committed together. Dropping a unit of work without a
/// commit rolls it back.
pub struct UnitOfWork {
    bus: Bus,
    operations: Operations,
    context: Context,
    /// The attempt that began the unit of work; `None` if no handler did.
    cause: Option<Cause>,
}

impl UnitOfWork {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, operations: Vec::new(), context: Context::new(), cause: attempt_scope::current_cause() }
    }

    /// Sets the request that the unit of work belongs to. Events without a context of their own get this one.
    pub fn set_context(&mut self, request: RequestContext) {
        self.context = request.into();
    }

    /// Adds an operation, unless its `on_register` returns an error.
    pub fn register(&mut self, mut operation: impl Operation) -> Result<(), BoxError> {
        operation.on_register(self)?;
        self.operations.push(Box::new(operation));
        Ok(())
    }

    /// Runs a statement inside the transaction.
    pub fn execute(&mut self, sql: impl Into<String>, parameters: impl IntoIterator<Item = SqlValue>) {
        let (sql, parameters) = (sql.into(), parameters.into_iter().collect::<Vec<_>>());
        self.before_commit(move |tx| Ok(tx.execute(&sql, &parameters).map(|_| ())?));
    }

    /// Adds a function that runs inside the transaction. An error rolls everything back.
    pub fn before_commit(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<(), BoxError> + Send + 'static) {
        self.operations.push(Box::new(BeforeCommitOperation(Some(work))));
    }

    /// Adds a function that runs after the commit, and only if it succeeded.
    pub fn on_post_commit(&mut self, work: impl FnOnce() + Send + 'static) {
        self.operations.push(Box::new(PostCommitOperation(Some(work))));
    }

    /// Emits an event with the commit. Events are journaled in the order of their operations.
    pub fn emit<E: Event>(&mut self, event: E) -> Result<(), InvalidEvent> {
        self.emit_with(event, EmitOptions::new())
    }

    /// Like [`emit`](Self::emit), with options.
    pub fn emit_with<E: Event>(&mut self, event: E, options: EmitOptions) -> Result<(), InvalidEvent> {
        options.reject_idempotency_key(E::TYPE)?;
        let event = to_new_event(&event, &options, self.cause, self.bus.now())?;
        self.operations.push(Box::new(EmitOperation(Some(event))));
        Ok(())
    }

    /// Commits. When this returns, everything is durable, and the hooks after the commit have run.
    pub async fn commit(mut self) -> Result<CommittedEvents, CommitError> {
        let operations = std::mem::take(&mut self.operations);
        let context = std::mem::take(&mut self.context);
        // The commit runs on a spawned future, because a caller that is dropped (a request that was cancelled) must not
        // prevent the hooks after the commit.
        let commit_run = tokio::spawn(run_commit(self.bus.clone(), operations, context, self.cause));
        commit_run.await.unwrap_or(Err(CommitError::Store(StoreError::Closed)))
    }
}

impl Drop for UnitOfWork {
    fn drop(&mut self) {
        run_rollback_hooks(std::mem::take(&mut self.operations));
    }
}

async fn run_commit(
    bus: Bus,
    operations: Operations,
    context: Context,
    cause: Option<Cause>,
) -> Result<CommittedEvents, CommitError> {
    // The thread of the transaction locks the operations while it runs them; the hooks after it run here.
    let operations = Arc::new(Mutex::new(operations));
    let operations_for_commit = operations.clone();
    let now = bus.now();
    let work = move |sql: &mut dyn SqlTransaction| {
        let mut operations = operations_for_commit.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = Tx::new(sql, context, cause, now);
        operations.iter_mut().try_for_each(|operation| operation.before_commit(&mut tx))?;
        Ok(tx.into_events())
    };
    let committed = bus.store.run_unit_of_work(Box::new(work), now).await;
    let operations = std::mem::take(&mut *operations.lock().unwrap_or_else(PoisonError::into_inner));
    match committed {
        Ok(events) => {
            for mut operation in operations {
                run_hook("on_post_commit", || operation.on_post_commit());
            }
            Ok(CommittedEvents::new(bus, events))
        }
        // No hook runs, because each would imply that the outcome is known.
        Err(TransactError::OutcomeUnknown(cause)) => Err(CommitError::OutcomeUnknown(cause)),
        Err(TransactError::WorkFailed(error)) => {
            run_rollback_hooks(operations);
            Err(CommitError::Operation(error))
        }
        Err(TransactError::Store(error)) => {
            run_rollback_hooks(operations);
            Err(CommitError::Store(error))
        }
    }
}

fn run_rollback_hooks(operations: Operations) {
    for mut operation in operations.into_iter().rev() {
        run_hook("on_rollback", || operation.on_rollback());
    }
}

/// Runs a hook after the commit or the rollback. A panic is logged, and the remaining hooks still run.
fn run_hook(hook: &str, run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        tracing::error!(
            hook,
            error = panic_error_text(&*panic),
            "a hook of a unit of work panicked; the commit or rollback is unaffected and the remaining hooks run; fix the hook"
        );
    }
}

impl std::fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnitOfWork").field("operations", &self.operations.len()).finish()
    }
}
