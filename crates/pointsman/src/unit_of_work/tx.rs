//! The transaction as operations see it.

use pointsman_core::{Cause, Context, NewEvent, Timestamp};
use pointsman_store::sql::{Sql, SqlError};

use crate::emit::{BadEvent, Emit, check_context};
use crate::event::describe;
use crate::{Event, SqlRow, Value};

/// The store's own transaction, while the operations of a unit of work run in it.
pub struct Tx<'a> {
    sql: &'a mut (dyn Sql + 'a),
    events: Vec<NewEvent>,
    context: Context,
    /// The writer's thread knows nothing of the attempt that began the work, so this comes along.
    cause: Option<Cause>,
    now: Timestamp,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        sql: &'a mut (dyn Sql + 'a),
        context: Context,
        cause: Option<Cause>,
        now: Timestamp,
    ) -> Self {
        Self { sql, events: Vec::new(), context, cause, now }
    }

    /// Runs a statement; answers how many rows it changed.
    pub fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<usize, SqlError> {
        self.sql.execute(sql, parameters)
    }

    /// Runs a query; answers all its rows.
    pub fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<SqlRow>, SqlError> {
        self.sql.query(sql, parameters)
    }

    /// Emits an event with this commit: for what only the transaction knows, such as the id of a new row.
    pub fn emit<E: Event>(&mut self, event: E) -> Result<(), BadEvent> {
        self.emit_with(event, Emit::new())
    }

    /// The same, with more to say.
    pub fn emit_with<E: Event>(&mut self, event: E, how: Emit) -> Result<(), BadEvent> {
        how.without_idempotency(E::TYPE)?;
        let event = describe(&event, &how, self.cause, self.now)?;
        self.add(event)
    }

    /// Adds an event; one without a context gets that of the unit of work.
    pub(super) fn add(&mut self, event: NewEvent) -> Result<(), BadEvent> {
        let context = if event.context.is_empty() { self.context.clone() } else { event.context };
        check_context(&context).map_err(|fault| BadEvent::new(event.kind.as_str(), &fault))?;
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
