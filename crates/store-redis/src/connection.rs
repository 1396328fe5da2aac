//! The blocking connection of the writer or of a reader.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_store::error::TableResult;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use crate::command_encoding::{self, CommandArgsBuffer};
use crate::connect::Endpoint;
use crate::error::{is_connection_fault, must_reconnect};
use crate::script;
use crate::write_lock::LOCK_RENEWAL_INTERVAL;

/// Maximum number of attempts to send over broken connections.
const MAX_SEND_ATTEMPTS: usize = 3;
/// A command is not repeated after this time: a server that was silent for that long would be silent again.
const RETRY_WINDOW: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Arguments of a command, including its name.
pub(crate) type CommandArgs = Vec<Vec<u8>>;

/// Builds the arguments of a command.
macro_rules! args {
    ($($arg:expr),+ $(,)?) => { Vec::from([$($crate::connection::to_arg($arg)),+]) };
}
pub(crate) use args;

pub(crate) fn to_arg(arg: impl AsRef<[u8]>) -> Vec<u8> {
    arg.as_ref().to_vec()
}

/// A connection that blocks its thread. It connects when it is first used, and again after an error.
pub(crate) struct BlockingConnection {
    endpoint: Arc<Endpoint>,
    connection: Option<redis::Connection>,
    /// Encoded command that renews the write lock, and when it was last sent.
    lock_renewal: Option<(Vec<u8>, Instant)>,
}

impl BlockingConnection {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, connection: None, lock_renewal: None }
    }

    /// Connects unless there is a connection; returns whether it connected.
    pub(crate) fn connect_if_needed(&mut self) -> TableResult<bool> {
        if self.connection.is_some() {
            return Ok(false);
        }
        let mut opened = self.endpoint.connect_blocking()?;
        load_scripts(&mut opened)?;
        self.connection = Some(opened);
        Ok(true)
    }

    /// Sends commands in one pipeline and returns their replies.
    pub(crate) fn execute_all(&mut self, commands: &[CommandArgs]) -> TableResult<Vec<Value>> {
        self.execute_encoded(&encode_commands(commands), commands.len(), &mut || {})
    }

    /// Sends one command.
    pub(crate) fn execute(&mut self, command: CommandArgs) -> TableResult<Value> {
        Ok(self.execute_all(&[command])?.pop().unwrap_or(Value::Nil))
    }

    /// Sends one encoded command.
    pub(crate) fn execute_buffer(&mut self, command: &CommandArgsBuffer) -> TableResult<Value> {
        self.execute_buffer_while(command, &mut || {})
    }

    /// Sends one encoded command, and runs `meanwhile` (once per attempt) before the reply is read.
    pub(crate) fn execute_buffer_while(
        &mut self,
        command: &CommandArgsBuffer,
        meanwhile: &mut dyn FnMut(),
    ) -> TableResult<Value> {
        Ok(self.execute_encoded(&command.encode_as_one_command(), 1, meanwhile)?.pop().unwrap_or(Value::Nil))
    }

    /// Starts to renew the write lock before other commands, every [`LOCK_RENEWAL_INTERVAL`].
    pub(crate) fn enable_lock_renewal_on_send(&mut self, lock_renewal: &CommandArgsBuffer) {
        self.lock_renewal = Some((lock_renewal.encode_as_one_command(), Instant::now()));
    }

    /// Stops renewing the write lock before other commands.
    pub(crate) fn disable_lock_renewal_on_send(&mut self) {
        self.lock_renewal = None;
    }

    /// Renews the write lock if its last renewal is long ago. If this fails, the lease may expire, and the commit fails if
    /// another node committed meanwhile.
    fn renew_lock_if_due(&mut self) {
        if let Some((command, _)) =
            self.lock_renewal.take_if(|(_, last)| last.elapsed() >= LOCK_RENEWAL_INTERVAL)
        {
            let _ = self.execute_encoded_once(&command, 1, &mut || {});
            self.lock_renewal = Some((command, Instant::now()));
        }
    }

    /// Sends encoded commands, and retries over a new connection, because an idle one may have been closed. All commands
    /// sent here are safe to repeat: they only read, or recognise a repetition.
    fn execute_encoded(
        &mut self,
        encoded: &[u8],
        command_count: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> TableResult<Vec<Value>> {
        self.renew_lock_if_due();
        let begun = Instant::now();
        for _ in 1..MAX_SEND_ATTEMPTS {
            match self.execute_encoded_once(encoded, command_count, meanwhile) {
                Err(fault) if is_connection_fault(&fault) && begun.elapsed() < RETRY_WINDOW => {
                    std::thread::sleep(RETRY_DELAY)
                }
                replies => return replies,
            }
        }
        self.execute_encoded_once(encoded, command_count, meanwhile)
    }

    /// Sends encoded commands once and reads their replies. Drops the connection if it broke or its server must be resolved
    /// again.
    fn execute_encoded_once(
        &mut self,
        encoded: &[u8],
        command_count: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> TableResult<Vec<Value>> {
        self.connect_if_needed()?;
        let Some(open) = &mut self.connection else { return Ok(vec![]) };
        let replies = match send_and_receive(open, encoded, command_count, meanwhile) {
            // The server lost the scripts (SCRIPT FLUSH): they are loaded again.
            Err(error) if is_noscript_error(&error) => {
                load_scripts(open).and_then(|()| send_and_receive(open, encoded, command_count, meanwhile))
            }
            replies => replies,
        };
        if replies.as_ref().is_err_and(must_reconnect) {
            self.connection = None;
        }
        Ok(replies?)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Sends commands if there is a connection, and ignores errors.
    pub(crate) fn execute_if_connected(&mut self, commands: &[CommandArgs]) {
        if let Some(open) = &mut self.connection {
            let _ = send_and_receive(open, &encode_commands(commands), commands.len(), &mut || {});
        }
    }

    /// Drops the connection.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }
}

fn load_scripts(connection: &mut redis::Connection) -> redis::RedisResult<()> {
    let loads: Vec<CommandArgs> =
        script::ALL_SCRIPTS.iter().map(|script| script.build_load_command()).collect();
    send_and_receive(connection, &encode_commands(&loads), loads.len(), &mut || {}).map(drop)
}

fn is_noscript_error(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn encode_commands(commands: &[CommandArgs]) -> Vec<u8> {
    let mut encoded = Vec::new();
    commands.iter().for_each(|args| command_encoding::encode_command_into(args, &mut encoded));
    encoded
}

/// Reads a reply for each command, even if others fail; but after a timeout no further reply is awaited.
fn send_and_receive(
    connection: &mut redis::Connection,
    encoded: &[u8],
    command_count: usize,
    meanwhile: &mut dyn FnMut(),
) -> redis::RedisResult<Vec<Value>> {
    connection.send_packed_command(encoded)?;
    meanwhile();
    let replies: Vec<Value> =
        (0..command_count).map(|_| connection.recv_response()).collect::<redis::RedisResult<_>>()?;
    replies.into_iter().map(Value::extract_error).collect()
}

impl std::fmt::Debug for BlockingConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingConnection").field("endpoint", &self.endpoint).finish()
    }
}
