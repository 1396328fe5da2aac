//! The unit of work: commands of an application and its events, run by one script.
//!
//! A statement is a Redis command, and its parameters are further arguments: `execute("SET", ["stock:7", 5])`. Commands are
//! collected while the work runs, and run together at its end. The events are pushed to the outboxes of their objects, as
//! in document 001, so that a unit needs no write lock. Redis has no rollback: if it refuses a command (wrong type of a
//! key), those before it have run, and no event is pushed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::NewEvent;
use pointsman_core::store::StoreError;
use pointsman_store::StoreReader;
use pointsman_store::sql::{
    BoxError, SqlError, SqlRow, SqlTransaction, SqlValue, TransactError, error_from_panic,
};
use uuid::Uuid;

use crate::Redis;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs, args, to_arg};
use crate::error::{is_connection_fault, store_error_from_fault};
use crate::keys::{Keys, object_name};
use crate::outbox::encode_entry;
use crate::overlay::{decode_integer, decode_list, decode_text_reply};
use crate::script;

/// Time to live of the key that marks a unit as run, in milliseconds: longer than the unit is resent.
const DEDUPLICATION_TTL_MS: &str = "600000";
/// Time for which a unit without a reply is resent.
const RESEND_WINDOW: Duration = Duration::from_secs(10);
const RESEND_DELAY: Duration = Duration::from_millis(100);

/// Commands that a unit of work must not contain: they control transactions or connections, or affect more than keys.
const FORBIDDEN_COMMANDS: [&str; 20] = [
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "MONITOR",
    "EVAL",
    "EVALSHA",
    "SCRIPT",
    "FUNCTION",
    "FCALL",
    "SELECT",
    "SWAPDB",
    "FLUSHALL",
    "FLUSHDB",
    "CONFIG",
    "SHUTDOWN",
];

type WorkResult = Result<Vec<NewEvent>, BoxError>;

/// Runs units of work over idle connections, or new ones.
#[derive(Clone, Debug)]
pub(crate) struct UnitOfWorkRunner {
    endpoint: Arc<Endpoint>,
    idle_connections: Arc<Mutex<Vec<BlockingConnection>>>,
}

impl UnitOfWorkRunner {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, idle_connections: Arc::default() }
    }
}

impl Redis {
    /// Runs `work`, and then, in one step, its commands and the pushes of the events that it returns. If `work` fails or
    /// panics, nothing has happened.
    pub async fn transact<F>(&self, work: F) -> Result<(), TransactError>
    where
        F: FnOnce(&mut dyn SqlTransaction) -> WorkResult + Send + 'static,
    {
        if let Some(reason) = self.emit_refusal_reason() {
            return Err(StoreError::unavailable(reason).into());
        }
        let runner = self.unit_of_work_runner.clone();
        let outcome = tokio::task::spawn_blocking(move || runner.run_work(work));
        outcome.await.unwrap_or_else(|error| Err(TransactError::WorkFailed(error.into())))
    }
}

impl UnitOfWorkRunner {
    fn run_work(
        &self,
        work: impl FnOnce(&mut dyn SqlTransaction) -> WorkResult,
    ) -> Result<(), TransactError> {
        let keys = Keys::new(self.endpoint.key_prefix());
        let mut collector =
            CommandCollector { commands: vec![], reserved_prefix: keys.with_prefix("pointsman:") };
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut collector)));
        let result = result.unwrap_or_else(|panic| Err(error_from_panic(panic.as_ref())));
        let events = result.map_err(TransactError::WorkFailed)?;
        let args = build_unit_of_work_command(&keys, &collector.commands, &events)
            .map_err(TransactError::WorkFailed)?;
        let idle = self.idle_connections.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = idle.unwrap_or_else(|| BlockingConnection::new(self.endpoint.clone()));
        let outcome = send_unit_with_retries(&mut connection, &args, &collector.commands);
        self.idle_connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        outcome
    }
}

fn build_unit_of_work_command(
    keys: &Keys,
    commands: &[CommandArgs],
    events: &[NewEvent],
) -> Result<CommandArgs, BoxError> {
    let marker_key = keys.with_prefix(&format!("pointsman:unit-of-work:{}", Uuid::new_v4()));
    let mut arguments = args![keys.with_prefix(""), DEDUPLICATION_TTL_MS, commands.len().to_string()];
    for command in commands {
        arguments.push(to_arg(command.len().to_string()));
        arguments.extend(command.iter().cloned());
    }
    for event in events {
        let key = event.key.as_ref().ok_or(
            "on Redis an event of a unit of work needs a key: it is pushed to the outbox of its object",
        )?;
        arguments.extend([to_arg(object_name(&event.tenant, key.as_str())), encode_entry(event)?]);
    }
    Ok(script::UNIT_OF_WORK
        .build_evalsha_command(vec![marker_key, keys.with_prefix("objects.with.events")], arguments))
}

/// Sends a unit, and sends it again if there is no reply: the script recognises a repetition.
fn send_unit_with_retries(
    connection: &mut BlockingConnection,
    args: &CommandArgs,
    commands: &[CommandArgs],
) -> Result<(), TransactError> {
    let begun = Instant::now();
    let reply = loop {
        match connection.execute(args.clone()) {
            Ok(reply) => break reply,
            Err(fault) if is_connection_fault(&fault) && begun.elapsed() < RESEND_WINDOW => {
                std::thread::sleep(RESEND_DELAY)
            }
            Err(fault) if is_connection_fault(&fault) => {
                return Err(TransactError::OutcomeUnknown(store_error_from_fault(fault).into()));
            }
            Err(fault) => return Err(TransactError::Store(store_error_from_fault(fault))),
        }
    };
    decode_refused_command(reply, commands)
        .map_err(|fault| TransactError::Store(store_error_from_fault(fault)))?
        .map_or(Ok(()), |refused| Err(TransactError::WorkFailed(refused.into())))
}

/// Returns the command that Redis refused, if any.
fn decode_refused_command(
    reply: redis::Value,
    commands: &[CommandArgs],
) -> pointsman_store::TableResult<Option<SqlError>> {
    let mut parts = decode_list(reply)?.into_iter();
    let number = decode_integer(parts.next().unwrap_or(redis::Value::Nil))?;
    if number == 0 {
        return Ok(None);
    }
    let reason = parts.next().map(decode_text_reply).transpose()?.unwrap_or_default();
    let command_name = usize::try_from(number - 1).ok().and_then(|index| commands.get(index)?.first());
    let command_name =
        command_name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
    let effect = if number == 1 { "nothing was done" } else { "the commands before it were run" };
    let problem = format!("command {number}, {command_name}: {reason}; {effect}, and no event was emitted");
    Ok(Some(SqlError::StatementFailed(problem.into())))
}

/// Collects the commands of a unit of work.
struct CommandCollector {
    commands: Vec<CommandArgs>,
    /// Prefix of the keys of the store, which a unit must not name.
    reserved_prefix: Vec<u8>,
}

impl SqlTransaction for CommandCollector {
    fn execute(&mut self, command: &str, parameters: &[SqlValue]) -> Result<usize, SqlError> {
        let mut args: CommandArgs = command.split_whitespace().map(to_arg).collect();
        let Some(command_name) = args.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase())
        else {
            return Err(SqlError::StatementFailed("this is no command".into()));
        };
        if FORBIDDEN_COMMANDS.contains(&command_name.as_str()) {
            return Err(SqlError::TransactionControl(command_name));
        }
        args.extend(parameters.iter().map(encode_parameter));
        if args.iter().any(|arg| arg.starts_with(&self.reserved_prefix)) {
            return Err(SqlError::StoreTablesReadOnly);
        }
        self.commands.push(args);
        Ok(0)
    }

    fn query(&mut self, _command: &str, _parameters: &[SqlValue]) -> Result<Vec<SqlRow>, SqlError> {
        let reason =
            "on Redis a unit of work writes only: its commands run together at its end; read before it";
        Err(SqlError::StatementFailed(reason.into()))
    }
}

fn encode_parameter(value: &SqlValue) -> Vec<u8> {
    match value {
        SqlValue::Null => Vec::new(),
        SqlValue::Integer(number) => to_arg(number.to_string()),
        SqlValue::Real(number) => to_arg(number.to_string()),
        SqlValue::Text(text) => to_arg(text),
        SqlValue::Blob(bytes) => bytes.clone(),
    }
}
