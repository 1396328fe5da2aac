//! Operations: what a unit of work is made of.

use pointsman_core::NewEvent;

use super::{BoxError, Tx, UnitOfWork};

/// Something that a unit of work does. Every hook does nothing unless it says otherwise.
///
/// ```
/// use pointsman::{BoxError, Operation, Tx};
///
/// struct SaveTitle { id: i64, title: String }
///
/// impl Operation for SaveTitle {
///     fn on_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
///         let changed = tx.execute(
///             "UPDATE records SET title = ?1 WHERE id = ?2",
///             &[self.title.as_str().into(), self.id.into()],
///         )?;
///         if changed == 1 { Ok(()) } else { Err("no such record".into()) }
///     }
/// }
/// ```
pub trait Operation: Send + 'static {
    /// It joins a unit of work, and may add others to it. An error keeps it out.
    fn on_register(&mut self, uow: &mut UnitOfWork) -> Result<(), BoxError> {
        let _ = uow;
        Ok(())
    }

    /// Inside the transaction. An error rolls everything back.
    fn on_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        let _ = tx;
        Ok(())
    }

    /// The transaction is committed and durable.
    fn on_post_commit(&mut self) {}

    /// The transaction was rolled back, or the unit of work dropped. Called in reverse order.
    fn on_rollback(&mut self) {}
}

pub(super) struct Emission(pub(super) Option<NewEvent>);

impl Operation for Emission {
    fn on_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        Ok(self.0.take().map_or(Ok(()), |event| tx.add(event))?)
    }
}

pub(super) struct OnCommit<F>(pub(super) Option<F>);

impl<F: FnOnce(&mut Tx<'_>) -> Result<(), BoxError> + Send + 'static> Operation for OnCommit<F> {
    fn on_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        self.0.take().map_or(Ok(()), |work| work(tx))
    }
}

pub(super) struct OnPostCommit<F>(pub(super) Option<F>);

impl<F: FnOnce() + Send + 'static> Operation for OnPostCommit<F> {
    fn on_post_commit(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
