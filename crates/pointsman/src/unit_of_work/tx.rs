//! The transaction of a unit of work, as its operations use it.

use pointsman_core::{Cause, Context, NewEvent, Timestamp};
use pointsman_store::sql::{SqlError, SqlTransaction};

use crate::emit::{EmitOptions, InvalidEvent, check_context_limits};
use crate::event::to_new_event;
use crate::{Event, SqlRow, SqlValue};

/// The transaction that the operations of a unit of work run in.
pub struct Tx<'a> {
    transaction: &'a mut (dyn SqlTransaction + 'a),
    events: Vec<NewEvent>,
    context: Context,
    /// The attempt that began the unit of work; the thread of the transaction cannot read it from its own context.
    cause: Option<Cause>,
    now: Timestamp,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        transaction: &'a mut (dyn SqlTransaction + 'a),
        context: Context,
        cause: Option<Cause>,
        now: Timestamp,
    ) -> Self {
        Self { transaction, events: Vec::new(), context, cause, now }
    }

    /// Runs a statement; returns the number of changed rows.
    pub fn execute(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<usize, SqlError> {
        self.transaction.execute(sql, parameters)
    }

    /// Runs a query; returns all its rows.
    pub fn query(&mut self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError> {
        self.transaction.query(sql, parameters)
    }

    /// Emits an event with this commit: for data that exists only inside the transaction, such as the id of a new row.
    pub fn emit<E: Event>(&mut self, event: E) -> Result<(), InvalidEvent> {
        self.emit_with(event, EmitOptions::new())
    }

    /// Like [`emit`](Self::emit), with options.
    pub fn emit_with<E: Event>(&mut self, event: E, options: EmitOptions) -> Result<(), InvalidEvent> {
        options.reject_idempotency_key(E::TYPE)?;
        let event = to_new_event(&event, &options, self.cause, self.now)?;
        self.add_event(event)
    }

    /// Adds an event, which gets the context of the unit of work if it has none.
    pub(super) fn add_event(&mut self, event: NewEvent) -> Result<(), InvalidEvent> {
        let context = if event.context.is_empty() { self.context.clone() } else { event.context };
        check_context_limits(&context)
            .map_err(|reason| InvalidEvent::new(event.event_type.as_str(), &reason))?;
        self.events.push(NewEvent { context, ..event });
        Ok(())
    }

    pub(super) fn into_events(self) -> Vec<NewEvent> {
        self.events
    }
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("events", &self.events.len()).finish()
    }
}
