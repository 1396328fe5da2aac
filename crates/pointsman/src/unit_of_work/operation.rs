//! Operations of a unit of work.

use pointsman_core::NewEvent;

use super::{BoxError, Tx, UnitOfWork};

/// An operation of a unit of work. By default every hook does nothing.
///
/// ```
/// use pointsman::{BoxError, Operation, Tx};
///
/// struct SaveTitle { id: i64, title: String }
///
/// impl Operation for SaveTitle {
///     fn before_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
///         let changed = tx.execute(
///             "UPDATE records SET title = ?1 WHERE id = ?2",
///             &[self.title.as_str().into(), self.id.into()],
///         )?;
///         if changed == 1 { Ok(()) } else { Err("no such record".into()) }
///     }
/// }
/// ```
pub trait Operation: Send + 'static {
    /// Called when the operation is added to a unit of work; it may add others. After an error it is not added.
    fn on_register(&mut self, uow: &mut UnitOfWork) -> Result<(), BoxError> {
        let _ = uow;
        Ok(())
    }

    /// Called inside the transaction. An error rolls everything back.
    fn before_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        let _ = tx;
        Ok(())
    }

    /// Called when the transaction is committed and durable.
    fn on_post_commit(&mut self) {}

    /// Called when the transaction was rolled back or the unit of work was dropped, in reverse order of the operations.
    fn on_rollback(&mut self) {}
}

/// An operation that emits an event.
pub(super) struct EmitOperation(pub(super) Option<NewEvent>);

impl Operation for EmitOperation {
    fn before_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        Ok(self.0.take().map_or(Ok(()), |event| tx.add_event(event))?)
    }
}

/// An operation that runs a function inside the transaction.
pub(super) struct BeforeCommitOperation<F>(pub(super) Option<F>);

impl<F: FnOnce(&mut Tx<'_>) -> Result<(), BoxError> + Send + 'static> Operation for BeforeCommitOperation<F> {
    fn before_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        self.0.take().map_or(Ok(()), |work| work(tx))
    }
}

/// An operation that runs a function after the commit.
pub(super) struct PostCommitOperation<F>(pub(super) Option<F>);

impl<F: FnOnce() + Send + 'static> Operation for PostCommitOperation<F> {
    fn on_post_commit(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
